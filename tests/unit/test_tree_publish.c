/* The last steps of a version and the first of the next: what is linked, what is seen, what is removed, who may. */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/store/tree/lock.h"
#include "proto/base/cleanup.h"
#include "tests/support/staged.h"

static struct staged staged;
static uint8_t *buffer, *should;

static const struct staged_file FIRST[] = {
        { "a/large.bin", 3 * CHUNK_BYTES + 5, 1, true, NULL, false },
        { "a/small-1.jpg", 100000, 2, true, NULL, false },
        { "a/small-2.jpg", 200000, 3, true, NULL, false },
        { "b/by-etag.bin", 2 * CHUNK_BYTES, 4, false, "\"same\"", false },
        { "b/weak.jpg", 1000, 5, false, "W/\"same\"", false },
        { "c/gone.jpg", 1000, 6, true, NULL, false },
        { "z.tar", CHUNK_BYTES + 1, 7, true, NULL, true },
};

/* small-2 and its neighbour share a chunk; one of them changed, one came, one went. */
static const struct staged_file SECOND[] = {
        { "a/large.bin", 3 * CHUNK_BYTES + 5, 1, true, NULL, false },
        { "a/new.jpg", 50000, 20, true, NULL, false },
        { "a/small-1.jpg", 100000, 2, true, NULL, false },
        { "a/small-2.jpg", 200000, 30, true, NULL, false },
        { "b/by-etag.bin", 2 * CHUNK_BYTES, 4, false, "\"same\"", false },
        { "b/weak.jpg", 1000, 5, false, "W/\"same\"", false },
        { "z.tar", CHUNK_BYTES + 1, 7, true, NULL, true },
};

static void setup(void) {
        staged_begin(&staged);
        staged_plan(&staged, FIRST, ARRAY_SIZE(FIRST));
        buffer = malloc(CHUNK_BYTES);
        should = malloc(CHUNK_BYTES);
}

static void teardown(void) {
        staged_end(&staged);
        free(buffer);
        free(should);
}

static void publish(void) {
        int r = staged_publish(&staged);

        ck_assert_msg(r == 0, "%d %s", r, staged.why.text);
}

static void stage(const struct staged_file *files, size_t n_files) {
        staged_plan(&staged, files, n_files);
        staged_must_open(&staged);
        staged_fill(&staged, UINT64_MAX);
        publish();
}

static bool exists(const char *suffix) {
        char version[PLACE_VERSION_SIZE], path[PATH_MAX];
        struct stat status;

        place_version(plan_digest(staged.plan), version);
        ck_assert_int_eq(place_file(&staged.place, version, suffix, path), 0);
        return lstat(path, &status) == 0;
}

static uint64_t inode_of(const char *path) {
        struct stat status;
        char at[PATH_MAX];

        staged_path(&staged, path, at);
        ck_assert_int_eq(stat(at, &status), 0);
        return status.st_ino;
}

/* ---- publishing ----------------------------------------------------------------------------------------------- */

START_TEST(what_is_published_is_seen_at_the_path_and_stamped) {
        char target[PATH_MAX], should_be[PATH_MAX];
        struct stamp stamp;
        ssize_t n;

        stage(FIRST, ARRAY_SIZE(FIRST));
        ck_assert_int_eq(stamp_read(&staged.place, &stamp, &staged.why), 0);
        ck_assert_str_eq(stamp.dataset, "photos");
        ck_assert_str_eq(stamp.manifest, plan_digest(staged.plan));
        ck_assert_str_eq(stamp.source, stamp.manifest);
        ck_assert_str_eq(stamp.source_version, stamp.version);
        ck_assert_uint_eq(stamp.n_files, ARRAY_SIZE(FIRST));
        n = readlink(staged.place.path, target, sizeof(target) - 1);
        ck_assert_int_gt(n, 0);
        target[n] = '\0';
        snprintf(should_be, sizeof(should_be), ".photos.staged/%s", stamp.version);
        ck_assert_str_eq(target, should_be);
        ck_assert(exists(".manifest") && exists(".journal"));
}
END_TEST

START_TEST(nothing_that_is_not_whole_is_published) {
        struct stamp stamp;

        staged_must_open(&staged);
        staged_fill(&staged, chunks_count(staged.chunks) - 1);
        ck_assert_int_eq(staged_publish(&staged), -EINVAL);
        ck_assert_ptr_nonnull(strstr(staged.why.text, "z.tar"));
        ck_assert_int_eq(stamp_read(&staged.place, &stamp, &staged.why), STAMP_ABSENT);
        ck_assert_int_lt(access(staged.place.path, F_OK), 0);
}
END_TEST

START_TEST(an_empty_folder_at_the_path_becomes_the_link) {
        ck_assert_int_eq(mkdir(staged.place.path, 0755), 0);
        stage(FIRST, ARRAY_SIZE(FIRST));
        ck_assert_int_eq(readlink(staged.place.path, (char *)buffer, 100) > 0, 1);
}
END_TEST

START_TEST(a_strangers_folder_file_or_link_at_the_path_is_left_alone) {
        char path[PATH_MAX + 8];

        ck_assert_int_eq(mkdir(staged.place.path, 0755), 0);
        snprintf(path, sizeof(path), "%s/mine", staged.place.path);
        close(open(path, O_CREAT | O_WRONLY, 0644));
        ck_assert_int_eq(staged_open(&staged), -EEXIST);
        ck_assert_ptr_nonnull(strstr(staged.why.text, staged.place.path));
        ck_assert_int_eq(access(path, F_OK), 0);
        unlink(path);
        rmdir(staged.place.path);
        close(open(staged.place.path, O_CREAT | O_WRONLY, 0644));
        ck_assert_int_eq(staged_open(&staged), -EEXIST);
        unlink(staged.place.path);
        ck_assert_int_eq(symlink("/etc", staged.place.path), 0);
        ck_assert_int_eq(staged_open(&staged), -EEXIST);
        unlink(staged.place.path);
        ck_assert_int_eq(symlink(".photos.staged/../../etc", staged.place.path), 0);
        ck_assert_int_eq(staged_open(&staged), -EEXIST);
        unlink(staged.place.path);
        staged_must_open(&staged);
        staged_fill(&staged, UINT64_MAX);
        ck_assert_int_eq(mkdir(staged.place.path, 0755), 0); /* while it was at work */
        close(open(path, O_CREAT | O_WRONLY, 0644));
        ck_assert_int_eq(staged_publish(&staged), -EEXIST);
        ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_stamped_version_is_believed_and_its_files_looked_for) {
        char path[PATH_MAX];

        stage(FIRST, ARRAY_SIZE(FIRST));
        staged_damage(&staged, "a/small-1.jpg", 5);
        staged_must_open(&staged);
        ck_assert_uint_eq(staged_n_missing(&staged), 0);
        ck_assert_uint_eq(staged.n_kept_bytes, 0); /* nothing was read */
        for (uint64_t i = 0; i < plan_n_files(staged.plan); i++)
                ck_assert(tree_file_is_whole(staged.tree, i));
        ck_assert_int_eq(tree_verify(staged.tree, &staged.why), 1);
        ck_assert_uint_eq(staged_fill(&staged, UINT64_MAX), 1);
        publish();
        staged_path(&staged, "a/large.bin", path);
        ck_assert_int_eq(truncate(path, 100), 0);
        staged_path(&staged, "b/weak.jpg", path);
        unlink(path);
        staged_must_open(&staged);
        ck_assert_uint_eq(staged.n_bad, 2);
        ck_assert_uint_eq(staged_n_missing(&staged), 5);
        staged_fill(&staged, UINT64_MAX);
        publish();
        staged_check_all(&staged);
}
END_TEST

/* ---- the next version ----------------------------------------------------------------------------------------- */

START_TEST(files_that_did_not_change_are_linked_and_the_old_version_stays_as_it_was) {
        uint64_t inode;

        stage(FIRST, ARRAY_SIZE(FIRST));
        inode = inode_of("a/large.bin");
        staged_plan(&staged, SECOND, ARRAY_SIZE(SECOND));
        staged_must_open(&staged);
        ck_assert_uint_eq(staged.n_linked, 4); /* large, small-1, by-etag, z.tar */
        ck_assert_uint_eq(inode, inode_of("a/large.bin"));
        ck_assert(tree_file_is_whole(staged.tree, (uint64_t)plan_find(staged.plan, "a/small-1.jpg")));
        ck_assert(!tree_file_is_whole(staged.tree, (uint64_t)plan_find(staged.plan, "b/weak.jpg")));
        staged_fill(&staged, UINT64_MAX);
        staged_check_all(&staged);
        publish();
        staged_plan(&staged, FIRST, ARRAY_SIZE(FIRST));
        staged_check_all(&staged); /* kept for those who still read it */
}
END_TEST

START_TEST(linked_files_are_served_to_other_nodes_and_checked) {
        stage(FIRST, ARRAY_SIZE(FIRST));
        staged_plan(&staged, SECOND, ARRAY_SIZE(SECOND));
        staged_must_open(&staged);
        staged_fill(&staged, UINT64_MAX);
        for (uint64_t i = 0; i < chunks_count(staged.chunks); i++) {
                staged_chunk(&staged, i, should);
                ck_assert_int_eq(tree_read(staged.tree, i, buffer, &staged.why), 0);
                ck_assert_mem_eq(buffer, should, chunks_get(staged.chunks, i).n_bytes);
        }
}
END_TEST

START_TEST(a_damaged_file_that_was_linked_is_not_served) {
        stage(FIRST, ARRAY_SIZE(FIRST));
        staged_damage(&staged, "a/large.bin", CHUNK_BYTES);
        staged_plan(&staged, SECOND, ARRAY_SIZE(SECOND));
        staged_must_open(&staged);
        ck_assert_int_eq(tree_read(staged.tree, 2, buffer, &staged.why), -EBADMSG);
        ck_assert_uint_eq(staged_n_missing(&staged) >= 4, 1); /* which part it is nobody knows */
        staged_fill(&staged, UINT64_MAX);
        staged_check_all(&staged);
}
END_TEST

/* What is fetched anew gets a file of its own: the version before is served, and is not ours to change. */
START_TEST(what_is_written_again_is_not_written_into_the_version_before) {
        uint64_t large, small;

        stage(FIRST, ARRAY_SIZE(FIRST));
        staged_plan(&staged, SECOND, ARRAY_SIZE(SECOND));
        staged_must_open(&staged);
        staged_fill(&staged, UINT64_MAX);
        large = inode_of("a/large.bin");
        small = inode_of("a/small-1.jpg");
        staged_damage(&staged, "a/large.bin", 5);
        staged_damage(&staged, "a/small-1.jpg", 5);
        ck_assert_int_eq(tree_verify(staged.tree, &staged.why), 2);
        staged_fill(&staged, UINT64_MAX);
        staged_check_all(&staged);
        ck_assert_uint_ne(inode_of("a/large.bin"), large);
        ck_assert_uint_ne(inode_of("a/small-1.jpg"), small);
        staged_plan(&staged, FIRST, ARRAY_SIZE(FIRST));
        ck_assert_uint_eq(inode_of("a/large.bin"), large);
        ck_assert_uint_eq(inode_of("a/small-1.jpg"), small);
        ck_assert(!staged_is_right(&staged, (uint64_t)plan_find(staged.plan, "a/large.bin")));
        ck_assert(!staged_is_right(&staged, (uint64_t)plan_find(staged.plan, "a/small-1.jpg")));
}
END_TEST

START_TEST(a_run_that_was_interrupted_after_linking_links_again) {
        stage(FIRST, ARRAY_SIZE(FIRST));
        staged_plan(&staged, SECOND, ARRAY_SIZE(SECOND));
        staged_must_open(&staged);
        staged_must_open(&staged);
        ck_assert_uint_eq(staged.n_linked, 4);
        ck_assert_uint_eq(staged.n_bad, 0);
        staged_fill(&staged, 1);
        staged_must_open(&staged);
        ck_assert_uint_eq(staged.n_bad, 0);
        staged_fill(&staged, UINT64_MAX);
        publish();
        staged_check_all(&staged);
}
END_TEST

START_TEST(a_half_fetched_file_gives_way_to_a_link) {
        static const struct staged_file LARGE[] = { { "x", 3 * CHUNK_BYTES, 1, true, NULL, false } };
        static const struct staged_file BOTH[] = { { "x", 3 * CHUNK_BYTES, 1, true, NULL, false },
                                                   { "y", 5, 2, true, NULL, false } };

        staged_plan(&staged, BOTH, 2);
        staged_must_open(&staged);
        staged_fill(&staged, 1);
        stage(LARGE, 1);
        staged_plan(&staged, BOTH, 2); /* swept away by the other: begins anew */
        staged_must_open(&staged);
        ck_assert_uint_eq(staged.n_linked, 1);
        ck_assert_uint_eq(staged_n_missing(&staged), 1);
        staged_fill(&staged, UINT64_MAX);
        publish();
        staged_check_all(&staged);
}
END_TEST

START_TEST(a_damaged_manifest_of_the_old_version_only_costs_the_links) {
        char path[PATH_MAX + 16];

        stage(FIRST, ARRAY_SIZE(FIRST));
        snprintf(path, sizeof(path), "%s.manifest", tree_root(staged.tree));
        ck_assert_int_eq(truncate(path, 150), 0);
        staged_plan(&staged, SECOND, ARRAY_SIZE(SECOND));
        staged_must_open(&staged);
        ck_assert_uint_eq(staged.n_bad, 1);
        staged_fill(&staged, UINT64_MAX);
        publish();
        staged_check_all(&staged);
}
END_TEST

START_TEST(the_version_before_is_kept_until_the_next_and_others_are_removed) {
        struct staged_file files[] = { { "d/e/f", 10, 0, true, NULL, false } };
        char path[PATH_MAX], victim[PATH_MAX];
        struct stat status;

        snprintf(victim, sizeof(victim), "%s/victim", staged.root);
        ck_assert_int_eq(mkdir(victim, 0755), 0);
        for (uint64_t i = 0; i < 4; i++) {
                files[0].seed = i;
                stage(files, 1);
                for (uint64_t k = 0; k <= i; k++) {
                        files[0].seed = k;
                        staged_plan(&staged, files, 1);
                        ck_assert_int_eq(exists(""), k + 1 >= i);
                        ck_assert_int_eq(exists(".manifest"), k + 1 >= i);
                        ck_assert_int_eq(exists(".journal"), k + 1 >= i);
                }
                if (i == 1) { /* a link in a version is removed, not followed */
                        staged_path(&staged, "d/link", path);
                        ck_assert_int_eq(symlink(victim, path), 0);
                }
        }
        ck_assert_int_eq(stat(victim, &status), 0);
}
END_TEST

START_TEST(the_version_that_it_was_made_from_is_kept_believed_and_linked_from) {
        static const struct staged_file MADE[] = { { "shard-000000.shard", 1000, 9, true, NULL, false } };
        struct stamp stamp = { .n_nodes = 1, .prepare = "jpeg(90)", .format = "packed" };

        staged_must_open(&staged);
        staged_fill(&staged, UINT64_MAX);
        ck_assert_int_eq(tree_sync(staged.tree, &staged.why), 0); /* never published itself */
        ck_assert(exists(".manifest"));
        strcpy(stamp.source, plan_digest(staged.plan));
        place_version(plan_digest(staged.plan), stamp.source_version);
        staged_plan(&staged, MADE, 1);
        staged_must_open(&staged);
        staged_fill(&staged, UINT64_MAX);
        ck_assert_int_eq(tree_publish(staged.tree, &stamp, &staged.why), 0);
        staged_plan(&staged, FIRST, ARRAY_SIZE(FIRST));
        ck_assert(exists("") && exists(".spool"));
        staged_must_open(&staged);
        ck_assert_uint_eq(staged_n_missing(&staged), 0);
        ck_assert_uint_eq(staged.n_kept_bytes, 0);
        staged_plan(&staged, SECOND, ARRAY_SIZE(SECOND));
        staged_must_open(&staged);
        ck_assert_uint_eq(staged.n_linked, 4);
}
END_TEST

/* ---- files that were made here -------------------------------------------------------------------------------- */

static void make(const char *name, uint64_t idx_file, char path[PATH_MAX]) {
        uint64_t first, n = chunks_of_file(staged.chunks, idx_file, &first);
        uint64_t skipped = 0;
        int fd;

        snprintf(path, PATH_MAX, "%s/%s", staged.root, name);
        fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
        for (uint64_t i = first; i < first + n; i++) {
                struct chunk chunk = chunks_get(staged.chunks, i);
                uint64_t n_bytes = plan_file(staged.plan, idx_file)->n_bytes - chunk.offset;

                for (uint64_t k = chunk.first_file; k < idx_file; k++)
                        skipped += plan_file(staged.plan, k)->n_bytes;
                n_bytes = n_bytes < chunk.n_bytes ? n_bytes : chunk.n_bytes;
                staged_chunk(&staged, i, buffer);
                ck_assert_int_eq(pwrite(fd, buffer + skipped, n_bytes, (off_t)chunk.offset), (ssize_t)n_bytes);
        }
        close(fd);
}

START_TEST(files_made_here_are_taken_over_and_known_to_the_next_run) {
        char path[PATH_MAX];

        staged_must_open(&staged);
        for (uint64_t i = 0; i < plan_n_files(staged.plan); i++) {
                make("made", i, path);
                ck_assert_int_eq(tree_adopt(staged.tree, i, path, &staged.why), 0);
                ck_assert_int_lt(access(path, F_OK), 0);
        }
        ck_assert_uint_eq(staged_n_missing(&staged), 0);
        staged_check_all(&staged);
        staged_must_open(&staged);
        ck_assert_uint_eq(staged_n_missing(&staged), 0);
        publish();
}
END_TEST

START_TEST(a_file_from_another_file_system_is_copied) {
        char path[PATH_MAX], far_path[PATH_MAX];
        struct stat here, there;

        if (stat("/dev/shm", &there) < 0 || stat(staged.root, &here) < 0 || here.st_dev == there.st_dev) {
                printf("skipped: /dev/shm is not another file system\n");
                return;
        }
        staged_must_open(&staged);
        make("made", 0, path);
        snprintf(far_path, sizeof(far_path), "/dev/shm/%s", strrchr(staged.root, '/') + 1);
        ck_assert_int_eq(symlink(path, far_path), 0);
        ck_assert_int_eq(tree_adopt(staged.tree, 0, far_path, &staged.why), -ELOOP);
        unlink(far_path);
        {
                char command[3 * PATH_MAX];

                snprintf(command, sizeof(command), "cp %s %s", path, far_path);
                ck_assert_int_eq(system(command), 0);
        }
        ck_assert_int_eq(tree_adopt(staged.tree, 0, far_path, &staged.why), 0);
        ck_assert_int_lt(access(far_path, F_OK), 0);
        ck_assert(staged_is_right(&staged, 0));
}
END_TEST

START_TEST(what_the_plan_does_not_say_is_not_taken_over) {
        char path[PATH_MAX];

        staged_must_open(&staged);
        make("made", 0, path);
        ck_assert_int_eq(tree_adopt(staged.tree, 1, path, &staged.why), -EBADMSG); /* its size */
        ck_assert_int_eq(truncate(path, 100000), 0);
        ck_assert_int_eq(tree_adopt(staged.tree, 1, path, &staged.why), -EBADMSG); /* its content */
        ck_assert_int_eq(access(path, F_OK), 0);
        ck_assert(staged_is_missing(&staged, 0));
}
END_TEST

/* ---- who may -------------------------------------------------------------------------------------------------- */

START_TEST(two_runs_at_once_are_refused_and_the_other_is_named) {
        char process[64];
        pid_t pid;
        int pipes[2], go[2], status;
        char byte;

        ck_assert_int_eq(pipe(pipes), 0);
        ck_assert_int_eq(pipe(go), 0);
        pid = fork();
        if (pid == 0) {
                int r = staged_open(&staged);

                if (r < 0 || write(pipes[1], "x", 1) != 1 || read(go[0], &byte, 1) < 0)
                        _exit(1);
                _exit(0); /* as a killed one: the kernel gives the lock back */
        }
        ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
        ck_assert_int_eq(staged_open(&staged), -EBUSY);
        snprintf(process, sizeof(process), "process %d on ", (int)pid);
        ck_assert_ptr_nonnull(strstr(staged.why.text, process));
        ck_assert_int_eq(write(go[1], "x", 1), 1);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        staged_must_open(&staged);
}
END_TEST

START_TEST(trees_of_one_run_share_its_lock) {
        int fd = tree_lock(&staged.place, &staged.why);
        struct tree_options options = { .lock_fd = fd };

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(staged_open_with(&staged, &options), 0);
        staged_close(&staged);
        ck_assert_int_eq(staged_open(&staged), -EBUSY); /* it was not given back */
        close(fd);
        staged_must_open(&staged);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("tree_publish");
        TCase *publishing = tcase_create("publishing"), *next = tcase_create("next"), *made = tcase_create("made");
        SRunner *runner;
        int n_failed;

        tcase_add_checked_fixture(publishing, setup, teardown);
        tcase_add_test(publishing, what_is_published_is_seen_at_the_path_and_stamped);
        tcase_add_test(publishing, nothing_that_is_not_whole_is_published);
        tcase_add_test(publishing, an_empty_folder_at_the_path_becomes_the_link);
        tcase_add_test(publishing, a_strangers_folder_file_or_link_at_the_path_is_left_alone);
        tcase_add_test(publishing, a_stamped_version_is_believed_and_its_files_looked_for);
        tcase_add_test(publishing, two_runs_at_once_are_refused_and_the_other_is_named);
        tcase_add_test(publishing, trees_of_one_run_share_its_lock);
        tcase_set_timeout(publishing, 120);
        suite_add_tcase(suite, publishing);

        tcase_add_checked_fixture(next, setup, teardown);
        tcase_add_test(next, files_that_did_not_change_are_linked_and_the_old_version_stays_as_it_was);
        tcase_add_test(next, linked_files_are_served_to_other_nodes_and_checked);
        tcase_add_test(next, a_damaged_file_that_was_linked_is_not_served);
        tcase_add_test(next, what_is_written_again_is_not_written_into_the_version_before);
        tcase_add_test(next, a_run_that_was_interrupted_after_linking_links_again);
        tcase_add_test(next, a_half_fetched_file_gives_way_to_a_link);
        tcase_add_test(next, a_damaged_manifest_of_the_old_version_only_costs_the_links);
        tcase_add_test(next, the_version_before_is_kept_until_the_next_and_others_are_removed);
        tcase_add_test(next, the_version_that_it_was_made_from_is_kept_believed_and_linked_from);
        tcase_set_timeout(next, 120);
        suite_add_tcase(suite, next);

        tcase_add_checked_fixture(made, setup, teardown);
        tcase_add_test(made, files_made_here_are_taken_over_and_known_to_the_next_run);
        tcase_add_test(made, a_file_from_another_file_system_is_copied);
        tcase_add_test(made, what_the_plan_does_not_say_is_not_taken_over);
        tcase_set_timeout(made, 120);
        suite_add_tcase(suite, made);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
