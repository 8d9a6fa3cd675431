/* Work that one of many does: the library's part. What processes make of it is in tests/integration/test_once.py. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/include/dlclient.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

static struct tree tree;
static char progress[512];

static void on_progress(void *userdata, const char *text) {
        snprintf(progress, sizeof(progress), "%s", text);
}

static struct dlc_once *open_with(const char *key, bool again) {
        struct dlc_once_options options = DLC_ONCE_OPTIONS_INIT;
        struct dlc_once *once = NULL;

        options.name = "work";
        options.scope = "cluster";
        options.dir = tree.root;
        options.key = key;
        options.again = again;
        options.on_progress = on_progress;
        ck_assert_msg(dlc_once_open(&options, &once) == 0, "%s", dlc_last_error());
        return once;
}

static struct dlc_once *begin(const char *key) {
        struct dlc_once *once = open_with(key, false);

        ck_assert_int_eq(dlc_once_wait(once, 0), DLC_ONCE_RUN);
        return once;
}

START_TEST(the_first_runs_and_what_it_leaves_reaches_the_others) {
        struct dlc_once *runner, *waiter, *later;

        tree_make(&tree);
        runner = begin("k");
        waiter = open_with("k", false);
        ck_assert_int_eq(dlc_once_wait(waiter, 0), -ETIMEDOUT);
        ck_assert_ptr_nonnull(strstr(dlc_last_error(), "still being done by pid"));
        ck_assert_ptr_null(dlc_once_get_info(waiter));
        ck_assert_int_eq(dlc_once_wait(runner, 0), DLC_ONCE_RUN);
        ck_assert_int_eq(dlc_once_end(runner, DLC_ONCE_DONE, 0, NULL, "[1,\n2]"), 0);
        ck_assert_int_eq(dlc_once_wait(waiter, 1000), DLC_ONCE_DONE);
        ck_assert_str_eq(dlc_once_get_info(waiter)->result, "[1,\n2]");
        ck_assert_int_eq(dlc_once_get_info(waiter)->pid, getpid());
        later = open_with("k", false);
        ck_assert_int_eq(dlc_once_wait(later, 0), DLC_ONCE_DONE);
        ck_assert_uint_eq(dlc_once_get_info(later)->attempt, 1);
        dlc_once_close(later);
        dlc_once_close(waiter);
        dlc_once_close(runner);
        tree_remove(&tree);
}
END_TEST

START_TEST(a_failure_is_for_those_who_waited) {
        struct dlc_once *runner, *waiter, *other, *later;

        tree_make(&tree);
        runner = begin("k");
        waiter = open_with("k", false);
        other = open_with("another key", false);
        ck_assert_int_eq(dlc_once_end(runner, DLC_ONCE_FAILED, 7, "no luck", NULL), 0);
        later = open_with("k", false);
        ck_assert_int_eq(dlc_once_wait(waiter, 0), DLC_ONCE_FAILED);
        ck_assert_int_eq(dlc_once_get_info(waiter)->status, 7);
        ck_assert_str_eq(dlc_once_get_info(waiter)->text, "no luck");
        ck_assert_int_eq(dlc_once_wait(later, 0), DLC_ONCE_RUN);
        ck_assert_uint_eq(dlc_once_get_info(later)->attempt, 2);
        ck_assert_int_eq(dlc_once_wait(other, 0), -ETIMEDOUT);
        dlc_once_close(later);
        ck_assert_int_eq(dlc_once_wait(other, 0), DLC_ONCE_RUN);
        ck_assert_ptr_nonnull(strstr(dlc_once_get_info(other)->remark, "died"));
        dlc_once_close(other);
        dlc_once_close(waiter);
        dlc_once_close(runner);
        tree_remove(&tree);
}
END_TEST

START_TEST(again_counts_only_what_is_done_from_now_on) {
        struct dlc_once *runner, *first, *second;

        tree_make(&tree);
        runner = begin("k");
        dlc_once_end(runner, DLC_ONCE_DONE, 0, NULL, NULL);
        first = open_with("k", true);
        second = open_with("k", true);
        ck_assert_int_eq(dlc_once_wait(first, 0), DLC_ONCE_RUN);
        ck_assert_int_eq(dlc_once_wait(second, 0), -ETIMEDOUT);
        dlc_once_end(first, DLC_ONCE_DONE, 0, NULL, NULL);
        ck_assert_int_eq(dlc_once_wait(second, 0), DLC_ONCE_DONE);
        ck_assert_uint_eq(dlc_once_get_info(second)->attempt, 2);
        dlc_once_close(second);
        dlc_once_close(first);
        dlc_once_close(runner);
        tree_remove(&tree);
}
END_TEST

/* Spoils the record while the lock is free. */
static void damage(void) {
        tree_file(&tree, "work.once", "garbage");
}

START_TEST(after_a_damaged_record_those_who_waited_still_take_what_was_done_for_them) {
        struct dlc_once *earlier, *first, *second, *runner;

        tree_make(&tree);
        for (int i = 0; i < 3; i++) {
                earlier = begin(i % 2 ? "odd" : "even");
                dlc_once_end(earlier, DLC_ONCE_DONE, 0, NULL, NULL);
                dlc_once_close(earlier);
        }

        /* They know of attempt 3. One that comes after the damage knows of none. */
        first = open_with("even", true);
        second = open_with("even", true);
        damage();
        runner = begin("even");
        ck_assert_ptr_nonnull(strstr(dlc_once_get_info(runner)->remark, "was damaged"));
        dlc_once_end(runner, DLC_ONCE_DONE, 0, NULL, "new");
        ck_assert_int_eq(dlc_once_wait(first, 0), DLC_ONCE_DONE);
        ck_assert_str_eq(dlc_once_get_info(first)->result, "new");
        dlc_once_close(runner);

        /* One of those who know of it runs it: the number goes on. */
        damage();
        runner = open_with("even", true);
        damage();
        ck_assert_int_eq(dlc_once_wait(second, 0), DLC_ONCE_RUN);
        ck_assert_uint_eq(dlc_once_get_info(second)->attempt, 4);
        dlc_once_end(second, DLC_ONCE_FAILED, 1, "no luck", NULL);
        ck_assert_int_eq(dlc_once_wait(runner, 0), DLC_ONCE_FAILED);
        dlc_once_close(runner);
        dlc_once_close(second);
        dlc_once_close(first);
        tree_remove(&tree);
}
END_TEST

START_TEST(a_forks_child_that_closes_leaves_the_lock_to_its_parent) {
        struct dlc_once *runner, *waiter;
        int status;
        pid_t pid;

        tree_make(&tree);
        runner = begin("k");
        waiter = open_with("k", false);
        pid = fork();
        if (pid == 0) {
                bool ok = dlc_once_end(runner, DLC_ONCE_DONE, 0, NULL, NULL) == -ECHILD;

                dlc_once_close(runner);
                _exit(ok && dlc_once_wait(waiter, 0) == -ECHILD ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        ck_assert_int_eq(dlc_once_wait(waiter, 0), -ETIMEDOUT);
        dlc_once_close(runner);
        ck_assert_int_eq(dlc_once_wait(waiter, 0), DLC_ONCE_RUN);
        dlc_once_close(waiter);
        tree_remove(&tree);
}
END_TEST

START_TEST(only_who_runs_it_ends_it_and_once) {
        static char result[DLC_ONCE_RESULT_MAX + 2], text[DLC_ONCE_TEXT_MAX + 100];
        struct dlc_once *runner, *waiter;

        tree_make(&tree);
        memset(result, 'r', sizeof(result) - 1);
        memset(text, 't', sizeof(text) - 1);
        memcpy(text + 98, "\303\244", 2); /* the text that is kept would begin in its middle */
        runner = begin("k");
        waiter = open_with("k", false);
        ck_assert_int_eq(dlc_once_end(waiter, DLC_ONCE_DONE, 0, NULL, NULL), -EINVAL);
        ck_assert_int_eq(dlc_once_end(runner, DLC_ONCE_RUN, 0, NULL, NULL), -EINVAL);
        ck_assert_int_eq(dlc_once_end(runner, DLC_ONCE_DONE, 0, NULL, result), -E2BIG);
        result[DLC_ONCE_RESULT_MAX] = '\0';
        ck_assert_int_eq(dlc_once_end(runner, DLC_ONCE_FAILED, 1, text, result), 0);
        ck_assert_int_eq(dlc_once_end(runner, DLC_ONCE_DONE, 0, NULL, NULL), -EINVAL);
        ck_assert_int_eq(dlc_once_wait(waiter, 0), DLC_ONCE_FAILED);
        ck_assert_uint_eq(strlen(dlc_once_get_info(waiter)->result), DLC_ONCE_RESULT_MAX);
        ck_assert_uint_eq(strlen(dlc_once_get_info(waiter)->text), DLC_ONCE_TEXT_MAX - 1);
        ck_assert_int_eq(dlc_once_get_info(waiter)->text[0], 't');
        dlc_once_close(waiter);
        dlc_once_close(runner);
        tree_remove(&tree);
}
END_TEST

START_TEST(options_are_checked) {
        struct dlc_once_options options = DLC_ONCE_OPTIONS_INIT;
        char newer[sizeof(options) + 8] = { 0 };
        struct dlc_once *once = NULL;

        ck_assert_int_eq(dlc_once_open(NULL, &once), -EINVAL);
        ck_assert_int_eq(dlc_once_open(&options, &once), -EINVAL);
        options.name = "work";
        ck_assert_int_eq(dlc_once_open(&options, NULL), -EINVAL);
        options.key = "a\nb";
        ck_assert_int_eq(dlc_once_open(&options, &once), -EINVAL);
        options.key = "";
        ck_assert_int_eq(dlc_once_open(&options, &once), -EINVAL);
        options.key = NULL;
        options.size = 3;
        ck_assert_int_eq(dlc_once_open(&options, &once), -EINVAL);
        options.size = sizeof(newer);
        memcpy(newer, &options, sizeof(options));
        newer[sizeof(newer) - 1] = 1;
        ck_assert_int_eq(dlc_once_open((const struct dlc_once_options *)newer, &once), -EINVAL);
        ck_assert_ptr_null(once);
        ck_assert_int_eq(dlc_once_wait(NULL, 0), -EINVAL);
        ck_assert_int_eq(dlc_once_end(NULL, DLC_ONCE_DONE, 0, NULL, NULL), -EINVAL);
        ck_assert_ptr_null(dlc_once_get_info(NULL));
        dlc_once_close(NULL);
}
END_TEST

START_TEST(a_wait_tells_for_whom) {
        struct dlc_once *runner, *waiter;

        tree_make(&tree);
        progress[0] = '\0';
        runner = begin("k");
        waiter = open_with("k", false);
        ck_assert_int_eq(dlc_once_wait(waiter, 3500), -ETIMEDOUT);
        ck_assert_ptr_nonnull(strstr(progress, "work: waiting for pid"));
        dlc_once_close(waiter);
        dlc_once_close(runner);
        tree_remove(&tree);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "once", the_first_runs_and_what_it_leaves_reaches_the_others },
                { "once", a_failure_is_for_those_who_waited },
                { "once", again_counts_only_what_is_done_from_now_on },
                { "once", after_a_damaged_record_those_who_waited_still_take_what_was_done_for_them },
                { "once", a_forks_child_that_closes_leaves_the_lock_to_its_parent },
                { "once", only_who_runs_it_ends_it_and_once },
                { "once", options_are_checked },
                { "once", a_wait_tells_for_whom },
        };

        return suite_run("client_once", rows, sizeof(rows) / sizeof(rows[0]));
}
