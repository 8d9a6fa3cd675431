/* A version that is read is not removed, by whomever on whatever node. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/store/record/version_lock.h"
#include "tests/support/tree.h"

#define VERSION "v-0123456789ab"

static struct tree tree;
static struct place place;
static int folder_fd;

static void setup(void) {
        char path[128];
        struct why why;

        tree_make(&tree);
        tree_dir(&tree, ".d.staged/" VERSION);
        snprintf(path, sizeof(path), "%s/d", tree.root);
        ck_assert_int_eq(place_init(&place, path, &why), 0);
        folder_fd = open(place.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_ge(folder_fd, 0);
}

static void teardown(void) {
        close(folder_fd);
        tree_remove(&tree);
}

static struct version_lock *take(void) {
        struct version_lock *lock = NULL;
        struct why why;
        int r = version_lock_take(&place, VERSION, &lock, &why);

        ck_assert_msg(r == 0, "%d %s", r, why.text);
        ck_assert(!version_lock_is_lease(lock));
        return lock;
}

static bool is_free(void) {
        struct version_claim claim;

        if (version_claim(folder_fd, VERSION, &claim) < 0)
                return false;
        version_claim_free(&claim);
        return true;
}

START_TEST(a_version_is_free_when_the_last_reader_has_let_go) {
        struct version_lock *one = take(), *other = take();

        ck_assert(!is_free());
        version_lock_free(one);
        ck_assert(!is_free());
        version_lock_free(other);
        ck_assert(is_free());
        version_lock_free(NULL);
}
END_TEST

/* As the daemon's user and the stager's may be two, with and without the file that the stager has made. */
START_TEST(who_may_not_write_there_keeps_it_as_well) {
        int pipe_fds[2], status;
        char byte;
        pid_t pid;

        if (geteuid() != 0)
                return; /* only root can be two users */
        if (_i == 1)
                ck_assert_int_eq(version_lock_prepare(folder_fd, VERSION), 0);
        ck_assert_int_eq(pipe(pipe_fds), 0);
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                struct version_lock *lock;
                struct why why;

                if (setgid(65534) < 0 || setuid(65534) < 0 || version_lock_take(&place, VERSION, &lock, &why) != 0)
                        _exit(1);
                if (write(pipe_fds[1], "x", 1) == 1)
                        pause();
                _exit(0);
        }
        close(pipe_fds[1]);
        ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
        ck_assert(!is_free());
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        ck_assert(is_free()); /* the kernel has let go for it */
        close(pipe_fds[0]);
}
END_TEST

START_TEST(a_version_that_is_being_removed_or_gone_is_not_taken) {
        struct version_lock *lock = NULL;
        struct version_claim claim;
        struct why why;

        ck_assert_int_eq(version_claim(folder_fd, VERSION, &claim), 0);
        ck_assert_int_eq(version_lock_take(&place, VERSION, &lock, &why), -ENOENT);
        version_claim_free(&claim);
        ck_assert_int_eq(unlinkat(folder_fd, VERSION, AT_REMOVEDIR), 0);
        ck_assert_int_eq(version_lock_take(&place, VERSION, &lock, &why), -ENOENT);
        ck_assert_ptr_null(lock);
}
END_TEST

START_TEST(a_lease_counts_until_it_is_stale) {
        struct timespec times[2] = { { 0 }, { 0 } };

        tree_file(&tree, ".d.staged/" VERSION ".lease-node1-17", "");
        ck_assert(!is_free());
        times[0].tv_sec = times[1].tv_sec = time(NULL) - VERSION_LEASE_STALE_S + 60;
        ck_assert_int_eq(utimensat(folder_fd, VERSION ".lease-node1-17", times, 0), 0);
        ck_assert(!is_free());
        times[0].tv_sec = times[1].tv_sec = time(NULL) - VERSION_LEASE_STALE_S - 60;
        ck_assert_int_eq(utimensat(folder_fd, VERSION ".lease-node1-17", times, 0), 0);
        ck_assert(is_free());
}
END_TEST

/* Its clock was set back. Whoever still reads renews the lease, so it has a whole term to do so. */
START_TEST(a_lease_from_the_future_counts_from_now_on) {
        struct timespec times[2] = { { 0 }, { 0 } };
        struct stat status;

        tree_file(&tree, ".d.staged/" VERSION ".lease-node1-17", "");
        times[0].tv_sec = times[1].tv_sec = time(NULL) + 365 * 86400;
        ck_assert_int_eq(utimensat(folder_fd, VERSION ".lease-node1-17", times, 0), 0);
        ck_assert(!is_free());
        ck_assert_int_eq(fstatat(folder_fd, VERSION ".lease-node1-17", &status, 0), 0);
        ck_assert_int_lt(status.st_mtim.tv_sec, time(NULL) + VERSION_LEASE_STALE_S);
        ck_assert(!is_free());
}
END_TEST

int main(void) {
        TCase *tcase = tcase_create("locks");
        Suite *suite = suite_create("version locks");
        SRunner *runner;
        int n_failed;

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_set_timeout(tcase, 60);
        tcase_add_test(tcase, a_version_is_free_when_the_last_reader_has_let_go);
        tcase_add_loop_test(tcase, who_may_not_write_there_keeps_it_as_well, 0, 2);
        tcase_add_test(tcase, a_version_that_is_being_removed_or_gone_is_not_taken);
        tcase_add_test(tcase, a_lease_counts_until_it_is_stale);
        tcase_add_test(tcase, a_lease_from_the_future_counts_from_now_on);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
