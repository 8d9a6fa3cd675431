/* What disks and file systems do to a version, played by functions of libc that are ours here; and reading beside
 * writing, under the eyes of the thread sanitizer. */

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "tests/support/staged.h"

static struct staged staged;
static uint8_t *buffer, *should;
static _Atomic int syncfs_error, linkat_error, fallocate_error, pwrite_error; /* errnos; 0: as always */
static _Atomic unsigned syncfs_ms;

/* ---- libc, as it is linked into this program --------------------------------------------------------------------- */

int syncfs(int fd) {
        if (syncfs_ms > 0)
                usleep(syncfs_ms * 1000);
        errno = syncfs_error;
        return errno ? -1 : 0;
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags) {
        int (*real)(int, const char *, int, const char *, int);

        errno = linkat_error;
        if (errno)
                return -1;
        *(void **)&real = dlsym(RTLD_NEXT, "linkat");
        return real(from_fd, from, to_fd, to, flags);
}

int fallocate(int fd, int mode, off_t offset, off_t n) {
        int (*real)(int, int, off_t, off_t);

        errno = fallocate_error;
        if (errno)
                return -1;
        *(void **)&real = dlsym(RTLD_NEXT, "fallocate");
        return real(fd, mode, offset, n);
}

/* Of data only: journals and manifests are smaller. */
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset) {
        ssize_t (*real)(int, const void *, size_t, off_t);

        errno = n >= 100000 ? pwrite_error : 0;
        if (errno)
                return -1;
        *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
        return real(fd, bytes, n, offset);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct staged_file FILES[] = {
        { "a/large.bin", 7 * CHUNK_BYTES + 5, 1, true, NULL, false },
        { "a/small.jpg", 100000, 2, true, NULL, false },
        { "b/large.bin", 2 * CHUNK_BYTES, 3, false, "\"e\"", false },
        { "b/small.jpg", CHUNK_BYTES, 4, true, NULL, false },
};

static void setup(void) {
        syncfs_error = linkat_error = fallocate_error = pwrite_error = 0;
        syncfs_ms = 0;
        staged_begin(&staged);
        staged_plan(&staged, FILES, ARRAY_SIZE(FILES));
        buffer = malloc(CHUNK_BYTES);
        should = malloc(CHUNK_BYTES);
}

static void teardown(void) {
        staged_end(&staged);
        free(buffer);
        free(should);
}

START_TEST(what_the_disk_lost_is_never_stamped) {
        struct stamp stamp;

        staged_must_open(&staged);
        staged_fill(&staged, UINT64_MAX);
        syncfs_error = EIO;
        ck_assert_int_eq(staged_publish(&staged), -EIO);
        syncfs_error = 0;
        ck_assert_int_eq(tree_sync(staged.tree, &staged.why), -EIO); /* the kernel tells it once; we remember */
        ck_assert_int_eq(staged_publish(&staged), -EIO);
        ck_assert_int_eq(stamp_read(&staged.place, &stamp, &staged.why), STAMP_ABSENT);
        staged_must_open(&staged);
        ck_assert_uint_eq(staged.n_kept_bytes, plan_n_bytes(staged.plan)); /* read again */
        ck_assert_int_eq(staged_publish(&staged), 0);
}
END_TEST

static _Atomic unsigned n_waiting;

static void count_waiting(void *userdata, enum tree_event event, uint64_t n_bytes, const char *text) {
        n_waiting += event == TREE_WAITING;
}

START_TEST(a_slow_disk_is_waited_for_with_signs_of_life) {
        struct tree_options options = { .dataset = "photos", .lock_fd = -1, .event = count_waiting };

        staged_must_open(&staged);
        staged_fill(&staged, UINT64_MAX);
        staged_close(&staged);
        ck_assert_int_eq(tree_open(&staged.place, staged.plan, staged.chunks, &options, &staged.tree, &staged.why), 0);
        syncfs_ms = 1800;
        n_waiting = 0;
        ck_assert_int_eq(tree_sync(staged.tree, &staged.why), 0);
        ck_assert_uint_ge(n_waiting, 2);
}
END_TEST

static const int NO_LINKS[] = { EXDEV, EMLINK, EPERM, EOPNOTSUPP };

START_TEST(where_there_can_be_no_links_files_are_copied) {
        static const struct staged_file MORE[] = { { "a/large.bin", 7 * CHUNK_BYTES + 5, 1, true, NULL, false },
                                                   { "a/small.jpg", 100000, 2, true, NULL, false },
                                                   { "b/large.bin", 2 * CHUNK_BYTES, 3, false, "\"e\"", false },
                                                   { "b/small.jpg", CHUNK_BYTES, 5, true, NULL, false } };

        staged_must_open(&staged);
        staged_fill(&staged, UINT64_MAX);
        ck_assert_int_eq(staged_publish(&staged), 0);
        linkat_error = NO_LINKS[_i];
        staged_plan(&staged, MORE, ARRAY_SIZE(MORE));
        staged_must_open(&staged);
        ck_assert_uint_eq(staged.n_linked, 3);
        ck_assert_uint_eq(staged_n_missing(&staged), 1);
        staged_fill(&staged, UINT64_MAX);
        staged_check_all(&staged);
        ck_assert_int_eq(tree_verify(staged.tree, &staged.why), 0);
}
END_TEST

START_TEST(without_links_and_without_room_for_copies_files_are_missing) {
        staged_must_open(&staged);
        staged_fill(&staged, UINT64_MAX);
        ck_assert_int_eq(staged_publish(&staged), 0);
        linkat_error = EXDEV;
        pwrite_error = ENOSPC;
        staged_plan(&staged, FILES, ARRAY_SIZE(FILES) - 1);
        staged_must_open(&staged);
        ck_assert_uint_eq(staged.n_linked, 0);
        ck_assert_uint_eq(staged_n_missing(&staged), chunks_count(staged.chunks));
}
END_TEST

START_TEST(a_file_system_that_cannot_reserve_space_gets_files_with_holes) {
        struct stat status;
        char path[PATH_MAX];

        fallocate_error = EOPNOTSUPP;
        staged_must_open(&staged);
        staged_chunk(&staged, 6, buffer);
        ck_assert_int_eq(tree_write(staged.tree, 6, buffer, &staged.why), 0);
        staged_path(&staged, "a/large.bin", path);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_int_eq(status.st_size, 7 * CHUNK_BYTES + 5);
        ck_assert_int_lt(status.st_blocks * 512, 3 * CHUNK_BYTES);
        staged_fill(&staged, UINT64_MAX);
        staged_check_all(&staged);
}
END_TEST

START_TEST(no_room_for_a_large_file_is_said_before_its_first_byte) {
        struct stat status;
        char path[PATH_MAX];

        staged_must_open(&staged);
        fallocate_error = ENOSPC;
        staged_chunk(&staged, 0, buffer);
        ck_assert_int_eq(tree_write(staged.tree, 0, buffer, &staged.why), -ENOSPC);
        ck_assert_ptr_nonnull(strstr(staged.why.text, "a/large.bin"));
        staged_path(&staged, "a/large.bin", path);
        ck_assert_int_lt(stat(path, &status), 0);
        fallocate_error = 0;
        staged_fill(&staged, UINT64_MAX);
        staged_check_all(&staged);
}
END_TEST

/* A limit on the length of files lets through the beginning of what is written. */
START_TEST(a_write_that_fails_in_the_middle_leaves_the_chunk_missing) {
        struct rlimit limit, before;

        getrlimit(RLIMIT_FSIZE, &before);
        limit = before;
        signal(SIGXFSZ, SIG_IGN);
        fallocate_error = EOPNOTSUPP;
        staged_must_open(&staged);
        staged_fill(&staged, 2);
        limit.rlim_cur = 2 * CHUNK_BYTES + 1000;
        setrlimit(RLIMIT_FSIZE, &limit);
        staged_chunk(&staged, 2, buffer);
        ck_assert_int_eq(tree_write(staged.tree, 2, buffer, &staged.why), -EFBIG);
        ck_assert(staged_is_missing(&staged, 2));
        setrlimit(RLIMIT_FSIZE, &before);
        staged_fill(&staged, UINT64_MAX);
        staged_check_all(&staged);
        ck_assert(tree_file_is_whole(staged.tree, 0));
        staged_must_open(&staged);
        ck_assert_uint_eq(staged_n_missing(&staged), 0);
}
END_TEST

/* ---- threads -------------------------------------------------------------------------------------------------- */

static _Atomic uint64_t n_written;
static _Atomic bool is_over;

static void *read_behind(void *userdata) {
        uint8_t *into = malloc(CHUNK_BYTES), *expected = malloc(CHUNK_BYTES);
        uint64_t n_read = 0;
        struct why why;

        while (!is_over || n_read < n_written) {
                int r;

                if (n_read >= n_written) {
                        usleep(100);
                        continue;
                }
                staged_chunk(&staged, n_read, expected);
                r = tree_read(staged.tree, n_read, into, &why);
                if (r != 0 || memcmp(into, expected, chunks_get(staged.chunks, n_read).n_bytes) != 0) {
                        fprintf(stderr, "chunk %lu: %d %s\n", (unsigned long)n_read, r, why.text);
                        abort();
                }
                n_read++;
        }
        free(into);
        free(expected);
        return NULL;
}

START_TEST(chunks_are_read_for_others_while_more_are_written) {
        pthread_t thread;

        if (_i == 1)
                staged_plan_many(&staged, 2000, 5000, 1);
        n_written = 0;
        is_over = false;
        staged_must_open(&staged);
        ck_assert_int_eq(pthread_create(&thread, NULL, read_behind, NULL), 0);
        for (uint64_t i = 0; i < chunks_count(staged.chunks); i++) {
                staged_chunk(&staged, i, buffer);
                ck_assert_int_eq(tree_write(staged.tree, i, buffer, &staged.why), 0);
                n_written++;
        }
        is_over = true;
        pthread_join(thread, NULL);
        staged_check_all(&staged);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("tree_faults");
        TCase *faults = tcase_create("faults"), *threads = tcase_create("threads");
        SRunner *runner;
        int n_failed;

        tcase_add_checked_fixture(faults, setup, teardown);
        tcase_add_test(faults, what_the_disk_lost_is_never_stamped);
        tcase_add_test(faults, a_slow_disk_is_waited_for_with_signs_of_life);
        tcase_add_loop_test(faults, where_there_can_be_no_links_files_are_copied, 0, (int)ARRAY_SIZE(NO_LINKS));
        tcase_add_test(faults, without_links_and_without_room_for_copies_files_are_missing);
        tcase_add_test(faults, a_file_system_that_cannot_reserve_space_gets_files_with_holes);
        tcase_add_test(faults, no_room_for_a_large_file_is_said_before_its_first_byte);
        tcase_add_test(faults, a_write_that_fails_in_the_middle_leaves_the_chunk_missing);
        tcase_set_timeout(faults, 120);
        suite_add_tcase(suite, faults);

        tcase_add_checked_fixture(threads, setup, teardown);
        tcase_add_loop_test(threads, chunks_are_read_for_others_while_more_are_written, 0, 2);
        tcase_set_timeout(threads, 120);
        suite_add_tcase(suite, threads);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
