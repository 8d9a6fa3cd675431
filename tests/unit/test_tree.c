/* A version on the disk: chunks in and out, what an earlier run left, damage, and disks that are full or read-only. */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "tests/support/staged.h"

static struct staged staged;
static uint8_t *buffer, *should;

static const struct staged_file MIXED[] = {
        { "a/large.bin", 5 * CHUNK_BYTES + 12345, 1, true, NULL, false },
        { "a/small-1.jpg", 100000, 2, true, NULL, false },
        { "a/small-2.jpg", 1, 3, true, NULL, false },
        { "b/c/d/empty", 0, 4, true, NULL, false },
        { "b/unsaid.bin", 3 * CHUNK_BYTES, 5, false, "\"e1\"", false },
        { "b/unsaid.jpg", 70000, 6, false, "\"e2\"", false },
        { "just-a-chunk", CHUNK_BYTES, 7, true, NULL, false },
        { "z.tar", 2 * CHUNK_BYTES + 1, 8, true, NULL, true },
};

static void setup(void) {
        staged_begin(&staged);
        staged_plan(&staged, MIXED, ARRAY_SIZE(MIXED));
        buffer = malloc(CHUNK_BYTES);
        should = malloc(CHUNK_BYTES);
}

static void teardown(void) {
        staged_end(&staged);
        free(buffer);
        free(should);
}

static uint64_t n_chunks(void) {
        return chunks_count(staged.chunks);
}

static uint64_t chunk_of(const char *path, uint64_t part) {
        uint64_t first;

        chunks_of_file(staged.chunks, (uint64_t)plan_find(staged.plan, path), &first);
        return first + part;
}

static bool is_whole(const char *path) {
        return tree_file_is_whole(staged.tree, (uint64_t)plan_find(staged.plan, path));
}

static int write_chunk(uint64_t idx_chunk) {
        staged_chunk(&staged, idx_chunk, buffer);
        return tree_write(staged.tree, idx_chunk, buffer, &staged.why);
}

static int write_damaged(uint64_t idx_chunk) {
        staged_chunk(&staged, idx_chunk, buffer);
        buffer[77] ^= 1;
        return tree_write(staged.tree, idx_chunk, buffer, &staged.why);
}

/* ---- writing and reading ------------------------------------------------------------------------------------- */

START_TEST(what_is_written_chunk_by_chunk_is_the_files) {
        staged_must_open(&staged);
        ck_assert_uint_eq(staged_n_missing(&staged), n_chunks());
        ck_assert_uint_eq(tree_n_missing_bytes(staged.tree), plan_n_bytes(staged.plan));
        staged_fill(&staged, n_chunks());
        ck_assert_uint_eq(tree_n_missing_bytes(staged.tree), 0);
        staged_check_all(&staged);
        for (uint64_t i = 0; i < plan_n_files(staged.plan); i++) {
                const struct plan_file *file = plan_file(staged.plan, i);

                ck_assert(tree_file_is_whole(staged.tree, i));
                ck_assert(!file->sha256 || memcmp(file->sha256, tree_sha256(staged.tree, i), 32) == 0);
        }
        ck_assert_int_eq(tree_verify(staged.tree, &staged.why), 0);
        ck_assert_uint_eq(staged.n_kept_bytes, plan_n_bytes(staged.plan));
}
END_TEST

START_TEST(chunks_of_a_file_may_come_in_any_order) {
        staged_must_open(&staged);
        for (uint64_t i = n_chunks(); i-- > 0;)
                ck_assert_int_eq(write_chunk(i), 0);
        staged_check_all(&staged);
        for (uint64_t i = 0; i < plan_n_files(staged.plan); i++)
                ck_assert(tree_file_is_whole(staged.tree, i));
}
END_TEST

/* Threads that take chunk after chunk, as the writers of a transfer do. */
struct writing {
        _Atomic uint64_t next;
        uint64_t damaged; /* this chunk is written with a wrong byte */
        _Atomic uint32_t n_bad, n_failed;
};

static void *write_chunks(void *argument) {
        struct writing *writing = argument;
        uint8_t *bytes = malloc(CHUNK_BYTES);
        uint64_t idx;

        while ((idx = atomic_fetch_add(&writing->next, 1)) < n_chunks()) {
                struct why why;
                int r;

                if (!tree_is_missing(staged.tree, idx))
                        continue;
                staged_chunk(&staged, idx, bytes);
                bytes[77] ^= idx == writing->damaged;
                r = tree_write(staged.tree, idx, bytes, &why);
                atomic_fetch_add(&writing->n_bad, r == TREE_BAD_FILE);
                atomic_fetch_add(&writing->n_failed, r < 0);
        }
        free(bytes);
        return NULL;
}

static void write_by_threads(struct writing *writing) {
        pthread_t threads[4];

        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, write_chunks, writing), 0);
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                pthread_join(threads[i], NULL);
        ck_assert_uint_eq(writing->n_failed, 0);
}

START_TEST(several_threads_write_the_chunks_of_the_same_files) {
        struct writing writing = { .damaged = UINT64_MAX };

        staged_must_open(&staged);
        ck_assert_int_eq(write_chunk(chunk_of("a/large.bin", 3)), 0); /* is hashed between the others */
        write_by_threads(&writing);
        ck_assert_uint_eq(writing.n_bad, 0);
        ck_assert_uint_eq(staged_n_missing(&staged), 0);
        staged_check_all(&staged);
        for (uint64_t i = 0; i < plan_n_files(staged.plan); i++)
                ck_assert(tree_file_is_whole(staged.tree, i));
        ck_assert_int_eq(tree_verify(staged.tree, &staged.why), 0);
}
END_TEST

START_TEST(a_bad_file_is_found_whatever_threads_write_it) {
        struct writing writing = { .damaged = chunk_of("a/large.bin", 2) };

        staged_must_open(&staged);
        write_by_threads(&writing);
        ck_assert_uint_eq(writing.n_bad, 1);
        ck_assert_uint_eq(staged_n_missing(&staged), 6);
        ck_assert(!is_whole("a/large.bin"));
        writing = (struct writing){ .damaged = UINT64_MAX };
        write_by_threads(&writing);
        ck_assert_uint_eq(staged_n_missing(&staged), 0);
        staged_check_all(&staged);
}
END_TEST

START_TEST(what_is_read_for_another_node_is_what_was_written) {
        staged_must_open(&staged);
        ck_assert_int_eq(tree_read(staged.tree, 0, buffer, &staged.why), -EBADMSG);
        staged_fill(&staged, n_chunks());
        for (uint64_t i = 0; i < n_chunks(); i++) {
                staged_chunk(&staged, i, should);
                ck_assert_int_eq(tree_read(staged.tree, i, buffer, &staged.why), 0);
                ck_assert_mem_eq(buffer, should, chunks_get(staged.chunks, i).n_bytes);
        }
}
END_TEST

START_TEST(an_archive_lies_in_the_spool_and_not_in_the_version) {
        char path[PATH_MAX];
        int fd;

        staged_must_open(&staged);
        staged_fill(&staged, n_chunks());
        staged_path(&staged, "z.tar", path);
        ck_assert_int_lt(access(path, F_OK), 0);
        fd = tree_spool_open(staged.tree, (uint64_t)plan_find(staged.plan, "z.tar"), &staged.why);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(pread(fd, buffer, 100, 0), 100);
        close(fd);
}
END_TEST

START_TEST(a_file_with_another_sha256_is_told_with_both_and_missing_again) {
        uint64_t last = chunk_of("a/large.bin", 5);

        staged_must_open(&staged);
        for (uint64_t i = chunk_of("a/large.bin", 0); i < last; i++)
                ck_assert_int_eq(i == last - 2 ? write_damaged(i) : write_chunk(i), 0);
        ck_assert_int_eq(write_chunk(last), TREE_BAD_FILE);
        ck_assert_ptr_nonnull(strstr(staged.why.text, "a/large.bin"));
        ck_assert_uint_eq(staged.n_bad, 1);
        ck_assert_uint_eq(staged_n_missing(&staged), n_chunks());
        ck_assert_int_eq(write_damaged(chunk_of("just-a-chunk", 0)), TREE_BAD_FILE);
        ck_assert_ptr_nonnull(strstr(staged.why.text, "just-a-chunk"));
        ck_assert(staged_is_missing(&staged, chunk_of("just-a-chunk", 0)));
        staged_fill(&staged, n_chunks());
        staged_check_all(&staged);
}
END_TEST

START_TEST(of_a_bad_chunk_of_small_files_the_good_ones_stay) {
        uint64_t idx = chunk_of("a/small-1.jpg", 0);

        ck_assert_uint_eq(idx, chunk_of("a/small-2.jpg", 0));
        staged_must_open(&staged);
        ck_assert_int_eq(write_damaged(idx), TREE_BAD_FILE);
        ck_assert(!is_whole("a/small-1.jpg") && is_whole("a/small-2.jpg"));
        ck_assert_int_eq(
                tree_read_file(staged.tree, (uint64_t)plan_find(staged.plan, "a/small-2.jpg"), buffer, &staged.why), 0);
        ck_assert_int_eq(write_chunk(idx), 0);
        ck_assert(is_whole("a/small-1.jpg"));
}
END_TEST

/* ---- what an earlier run left --------------------------------------------------------------------------------- */

START_TEST(an_interrupted_run_goes_on_where_it_was) {
        for (uint64_t n = 0; n <= n_chunks(); n++) {
                staged_must_open(&staged);
                ck_assert_uint_eq(staged_n_missing(&staged), n_chunks() - (n > 0 ? n - 1 : 0));
                ck_assert_uint_eq(staged.n_bad, 0);
                ck_assert_uint_eq(staged_fill(&staged, n), n > 0);
        }
        staged_must_open(&staged);
        ck_assert_uint_eq(staged_n_missing(&staged), 0);
        ck_assert_uint_eq(staged.n_kept_bytes, plan_n_bytes(staged.plan));
        for (uint64_t i = 0; i < plan_n_files(staged.plan); i++)
                ck_assert(tree_file_is_whole(staged.tree, i));
        staged_check_all(&staged);
}
END_TEST

START_TEST(a_hole_in_the_middle_of_a_file_is_filled_and_hashed) {
        staged_must_open(&staged);
        for (uint64_t i = 0; i < 6; i++)
                if (i != 2 && i != 4)
                        ck_assert_int_eq(write_chunk(chunk_of("a/large.bin", i)), 0);
        staged_must_open(&staged);
        ck_assert_int_eq(write_chunk(chunk_of("a/large.bin", 2)), 0);
        ck_assert(!is_whole("a/large.bin"));
        ck_assert_int_eq(write_chunk(chunk_of("a/large.bin", 4)), 0);
        ck_assert(is_whole("a/large.bin"));
}
END_TEST

START_TEST(what_the_journal_claims_and_the_disk_has_not_is_missing) {
        char path[PATH_MAX];

        staged_must_open(&staged);
        staged_fill(&staged, n_chunks());
        staged_close(&staged);
        staged_damage(&staged, "a/large.bin", CHUNK_BYTES + 5);
        staged_damage(&staged, "a/small-1.jpg", 99999);
        staged_damage(&staged, "b/unsaid.jpg", 0);
        staged_path(&staged, "just-a-chunk", path);
        ck_assert_int_eq(truncate(path, CHUNK_BYTES - 1), 0);
        staged_path(&staged, "b/unsaid.bin", path);
        ck_assert_int_eq(truncate(path, 2 * CHUNK_BYTES + 7), 0);
        staged_must_open(&staged);
        ck_assert(staged_is_missing(&staged, chunk_of("a/large.bin", 1)));
        ck_assert(staged_is_missing(&staged, chunk_of("a/small-1.jpg", 0)));
        ck_assert(staged_is_missing(&staged, chunk_of("b/unsaid.jpg", 0)));
        ck_assert(staged_is_missing(&staged, chunk_of("just-a-chunk", 0)));
        ck_assert(staged_is_missing(&staged, chunk_of("b/unsaid.bin", 2)));
        ck_assert_uint_eq(staged_n_missing(&staged), 5);
        ck_assert_uint_ge(staged.n_bad, 5);
        staged_fill(&staged, n_chunks());
        staged_check_all(&staged);
}
END_TEST

START_TEST(a_file_of_zeros_as_a_power_cut_leaves_it_is_missing) {
        char path[PATH_MAX];

        staged_must_open(&staged);
        staged_fill(&staged, n_chunks());
        staged_close(&staged);
        staged_path(&staged, "a/large.bin", path);
        ck_assert_int_eq(truncate(path, 0), 0);
        ck_assert_int_eq(truncate(path, (off_t)MIXED[0].n_bytes), 0);
        staged_must_open(&staged);
        ck_assert_uint_eq(staged_n_missing(&staged), 6);
        staged_fill(&staged, n_chunks());
        staged_check_all(&staged);
}
END_TEST

START_TEST(a_run_without_its_journal_begins_anew) {
        char path[PATH_MAX];

        staged_must_open(&staged);
        staged_fill(&staged, n_chunks());
        snprintf(path, sizeof(path), "%s.journal", tree_root(staged.tree));
        staged_close(&staged);
        ck_assert_int_eq(truncate(path, 40), 0);
        staged_must_open(&staged);
        ck_assert_uint_eq(staged_n_missing(&staged), n_chunks());
        staged_fill(&staged, n_chunks());
        staged_check_all(&staged);
}
END_TEST

START_TEST(a_dry_run_makes_nothing_and_believes_the_journal) {
        const struct tree_options dry = { .read_only = true, .lock_fd = -1 };
        struct stat status;

        ck_assert_int_eq(staged_open_with(&staged, &dry), 0);
        ck_assert_uint_eq(staged_n_missing(&staged), n_chunks());
        ck_assert_int_eq(tree_check_space(staged.tree, &staged.why), 0);
        ck_assert_int_lt(stat(staged.place.folder, &status), 0);
        staged_must_open(&staged);
        staged_fill(&staged, 4);
        ck_assert_int_eq(staged_open_with(&staged, &dry), 0);
        ck_assert_uint_eq(staged_n_missing(&staged), n_chunks() - 4);
}
END_TEST

/* ---- damage found later --------------------------------------------------------------------------------------- */

START_TEST(verifying_finds_every_damaged_file_and_just_that_is_fetched_again) {
        staged_must_open(&staged);
        staged_fill(&staged, n_chunks());
        staged_damage(&staged, "a/large.bin", 4 * CHUNK_BYTES + 5);
        staged_damage(&staged, "a/small-2.jpg", 0);
        staged_damage(&staged, "b/unsaid.bin", 0);
        ck_assert_int_eq(tree_verify(staged.tree, &staged.why), 3);
        ck_assert_uint_eq(staged.n_bad, 3);
        ck_assert_uint_eq(staged_n_missing(&staged), 3);
        ck_assert(staged_is_missing(&staged, chunk_of("a/large.bin", 4)));
        ck_assert(is_whole("a/small-1.jpg") && !is_whole("a/small-2.jpg"));
        ck_assert_uint_eq(staged_fill(&staged, n_chunks()), 3);
        staged_check_all(&staged);
        ck_assert_int_eq(tree_verify(staged.tree, &staged.why), 0);
}
END_TEST

/* The plan does not know its SHA-256; what was found when it was whole does as well, until all of it is fetched anew.
 */
START_TEST(a_mended_file_must_be_what_it_was) {
        uint64_t part = chunk_of("b/unsaid.bin", 1);

        staged_must_open(&staged);
        staged_fill(&staged, n_chunks());
        staged_damage(&staged, "b/unsaid.bin", CHUNK_BYTES);
        ck_assert_int_eq(tree_verify(staged.tree, &staged.why), 1);
        ck_assert(staged_is_missing(&staged, part));
        ck_assert_int_eq(write_damaged(part), TREE_BAD_FILE); /* the origin has another file now */
        ck_assert(staged_is_missing(&staged, part - 1) && staged_is_missing(&staged, part + 1));
        for (uint64_t i = part - 1; i <= part + 1; i++)
                ck_assert_int_eq(write_damaged(i), 0);
        ck_assert(is_whole("b/unsaid.bin"));
}
END_TEST

START_TEST(damage_is_found_when_it_is_read_for_another_node) {
        char path[PATH_MAX];

        staged_must_open(&staged);
        staged_fill(&staged, n_chunks());
        staged_damage(&staged, "a/large.bin", 9);
        staged_damage(&staged, "a/small-1.jpg", 9);
        staged_path(&staged, "just-a-chunk", path);
        unlink(path);
        ck_assert_int_eq(symlink("/etc/passwd", path), 0);
        ck_assert_int_eq(tree_read(staged.tree, chunk_of("a/large.bin", 0), buffer, &staged.why), -EBADMSG);
        ck_assert_int_eq(tree_read(staged.tree, chunk_of("a/large.bin", 1), buffer, &staged.why), 0);
        ck_assert_int_eq(tree_read(staged.tree, chunk_of("a/small-1.jpg", 0), buffer, &staged.why), -EBADMSG);
        ck_assert_ptr_nonnull(strstr(staged.why.text, "a/small-1.jpg"));
        ck_assert_int_eq(tree_read(staged.tree, chunk_of("just-a-chunk", 0), buffer, &staged.why), -EBADMSG);
        ck_assert_uint_eq(staged_n_missing(&staged), 3);
        staged_fill(&staged, n_chunks());
        staged_check_all(&staged); /* the link was replaced, not followed */
}
END_TEST

START_TEST(a_folder_swapped_for_a_link_is_not_followed) {
        char path[PATH_MAX], outside[PATH_MAX];
        struct stat status;
        int r;

        staged_must_open(&staged);
        snprintf(outside, sizeof(outside), "%s/outside", staged.root);
        ck_assert_int_eq(mkdir(outside, 0755), 0);
        staged_path(&staged, "b", path);
        ck_assert_int_eq(symlink(outside, path), 0);
        r = write_chunk(chunk_of("b/unsaid.bin", 0));
        ck_assert_msg(r == -ELOOP || r == -ENOTDIR, "%d", r);
        ck_assert_ptr_nonnull(strstr(staged.why.text, "b/unsaid.bin"));
        ck_assert_int_lt(write_chunk(chunk_of("b/unsaid.jpg", 0)), 0);
        snprintf(outside + strlen(outside), 32, "/unsaid.bin");
        ck_assert_int_lt(lstat(outside, &status), 0);
        ck_assert_int_eq(unlink(path), 0);
        staged_fill(&staged, n_chunks());
        staged_check_all(&staged);
}
END_TEST

START_TEST(a_folder_that_vanishes_is_made_again) {
        char path[PATH_MAX];

        staged_plan_many(&staged, 300, 20000, 1); /* two chunks, three folders */
        staged_must_open(&staged);
        staged_fill(&staged, 1);
        for (int i = 200; i < 300; i++) {
                char name[64];

                snprintf(name, sizeof(name), "many/0002/%06d.bin", i);
                staged_path(&staged, name, path);
                unlink(path);
        }
        *strrchr(path, '/') = '\0';
        ck_assert_int_eq(rmdir(path), 0);
        staged_fill(&staged, n_chunks());
        for (uint64_t i = chunks_get(staged.chunks, 1).first_file; i < 300; i++)
                ck_assert(staged_is_right(&staged, i));
}
END_TEST

START_TEST(a_cancelled_check_ends) {
        const _Atomic bool cancel = true;

        staged_must_open(&staged);
        staged_fill(&staged, n_chunks());
        ck_assert_int_eq(staged_open_with(&staged, &(struct tree_options){ .lock_fd = -1, .cancel = &cancel }),
                         -ECANCELED);
        staged_must_open(&staged);
        ck_assert_uint_eq(staged_n_missing(&staged), 0);
}
END_TEST

/* ---- disks ---------------------------------------------------------------------------------------------------- */

/* A small file system of its own below the test's folder, seen by this process (a child) alone. */
static bool mount_small(const char *options) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return false;
        return mount("tmpfs", staged.root, "tmpfs", 0, options) == 0;
}

/* Runs it in a child, so that the mount goes with it. */
static void on_small_disk(const char *options, void (*test)(void)) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                if (!mount_small(options))
                        _exit(77);
                test();
                staged_close(&staged);
                _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
                printf("skipped: no mounts may be made here\n");
                return;
        }
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void must(bool is_true, int line) {
        if (is_true)
                return;
        fprintf(stderr, "test_tree.c:%d: not so (%s)\n", line, staged.why.text);
        _exit(1);
}
#define MUST(condition) must(condition, __LINE__)

static void fill_a_full_disk(void) {
        uint64_t n_written = 0;
        char path[PATH_MAX];
        int fd, r = 0;

        MUST(staged_open(&staged) == 0);
        MUST(tree_check_space(staged.tree, &staged.why) == -ENOSPC);
        for (uint64_t i = 0; i < n_chunks() && r == 0; i++) {
                r = write_chunk(i);
                n_written += r == 0;
        }
        MUST(r == -ENOSPC && n_written >= 6 && n_written < n_chunks());
        MUST(staged_n_missing(&staged) == n_chunks() - n_written);
        for (uint64_t i = 0; i < n_chunks(); i++) /* others may go on; the small ones fit */
                if (staged_is_missing(&staged, i))
                        write_chunk(i);
        MUST(is_whole("a/small-1.jpg"));
        MUST(mount(NULL, staged.root, NULL, MS_REMOUNT, "size=128M") == 0);
        snprintf(path, sizeof(path), "%s/ballast", staged.root);
        fd = open(path, O_CREAT | O_WRONLY, 0644);
        close(fd);
        MUST(staged_open(&staged) == 0);
        MUST(staged.n_bad == 0);
        MUST(tree_check_space(staged.tree, &staged.why) == 0);
        staged_fill(&staged, n_chunks());
        MUST(staged_n_missing(&staged) == 0);
        staged_check_all(&staged);
}

START_TEST(on_a_full_disk_what_is_written_stays_and_it_goes_on_when_there_is_room) {
        on_small_disk("size=30M", fill_a_full_disk);
}
END_TEST

static void run_out_of_inodes(void) {
        int r = 0;

        staged_plan_many(&staged, 1000, 100, 1);
        MUST(staged_open(&staged) == 0);
        MUST(tree_check_space(staged.tree, &staged.why) == -ENOSPC);
        MUST(strstr(staged.why.text, "inodes"));
        for (uint64_t i = 0; i < n_chunks() && r == 0; i++)
                r = write_chunk(i);
        MUST(r == -ENOSPC);
        MUST(mount(NULL, staged.root, NULL, MS_REMOUNT, "size=256M,nr_inodes=4000") == 0);
        MUST(tree_check_space(staged.tree, &staged.why) == 0);
        staged_fill(&staged, n_chunks());
        staged_check_all(&staged);
}

START_TEST(without_inodes_it_is_said_before_and_goes_on_after) {
        on_small_disk("size=256M,nr_inodes=400", run_out_of_inodes);
}
END_TEST

static void write_read_only(void) {
        MUST(mount(NULL, staged.root, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
        MUST(staged_open(&staged) == -EROFS);
        MUST(strstr(staged.why.text, staged.place.folder));
        MUST(staged_open_with(&staged, &(struct tree_options){ .read_only = true, .lock_fd = -1 }) == 0);
}

START_TEST(a_read_only_target_is_an_error_that_names_it) {
        on_small_disk("size=8M", write_read_only);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("tree");
        TCase *moving = tcase_create("moving"), *resuming = tcase_create("resuming"), *damage = tcase_create("damage");
        TCase *disks = tcase_create("disks");
        SRunner *runner;
        int n_failed;

        tcase_add_checked_fixture(moving, setup, teardown);
        tcase_add_test(moving, what_is_written_chunk_by_chunk_is_the_files);
        tcase_add_test(moving, chunks_of_a_file_may_come_in_any_order);
        tcase_add_test(moving, several_threads_write_the_chunks_of_the_same_files);
        tcase_add_test(moving, a_bad_file_is_found_whatever_threads_write_it);
        tcase_add_test(moving, what_is_read_for_another_node_is_what_was_written);
        tcase_add_test(moving, an_archive_lies_in_the_spool_and_not_in_the_version);
        tcase_add_test(moving, a_file_with_another_sha256_is_told_with_both_and_missing_again);
        tcase_add_test(moving, of_a_bad_chunk_of_small_files_the_good_ones_stay);
        tcase_set_timeout(moving, 120);
        suite_add_tcase(suite, moving);

        tcase_add_checked_fixture(resuming, setup, teardown);
        tcase_add_test(resuming, an_interrupted_run_goes_on_where_it_was);
        tcase_add_test(resuming, a_hole_in_the_middle_of_a_file_is_filled_and_hashed);
        tcase_add_test(resuming, what_the_journal_claims_and_the_disk_has_not_is_missing);
        tcase_add_test(resuming, a_file_of_zeros_as_a_power_cut_leaves_it_is_missing);
        tcase_add_test(resuming, a_run_without_its_journal_begins_anew);
        tcase_add_test(resuming, a_dry_run_makes_nothing_and_believes_the_journal);
        tcase_add_test(resuming, a_cancelled_check_ends);
        tcase_set_timeout(resuming, 120);
        suite_add_tcase(suite, resuming);

        tcase_add_checked_fixture(damage, setup, teardown);
        tcase_add_test(damage, verifying_finds_every_damaged_file_and_just_that_is_fetched_again);
        tcase_add_test(damage, a_mended_file_must_be_what_it_was);
        tcase_add_test(damage, damage_is_found_when_it_is_read_for_another_node);
        tcase_add_test(damage, a_folder_swapped_for_a_link_is_not_followed);
        tcase_add_test(damage, a_folder_that_vanishes_is_made_again);
        tcase_set_timeout(damage, 120);
        suite_add_tcase(suite, damage);

        tcase_add_checked_fixture(disks, setup, teardown);
        tcase_add_test(disks, on_a_full_disk_what_is_written_stays_and_it_goes_on_when_there_is_room);
        tcase_add_test(disks, without_inodes_it_is_said_before_and_goes_on_after);
        tcase_add_test(disks, a_read_only_target_is_an_error_that_names_it);
        tcase_set_timeout(disks, 120);
        suite_add_tcase(suite, disks);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
