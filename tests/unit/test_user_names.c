/* Names of users: looked up on a thread of their own; a directory service that does not answer is waited for by nobody.
 *
 * getpwuid_r() is this test's own: no service that hangs can be had on every machine. */
#include <check.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/ctl/users/user_names.h"

#define HANGS   4000u /* its lookup ends when the test lets it */
#define UNKNOWN 5000u
#define FIRST   6000u /* from here on user N is called "user N" */

static _Atomic bool may_end;
static _Atomic uint32_t n_lookups, n_ended;

int getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t capacity, struct passwd **ret) {
        atomic_fetch_add(&n_lookups, 1);
        while (uid == HANGS && !atomic_load(&may_end))
                usleep(1000);
        snprintf(buffer, capacity, "user %u", uid);
        entry->pw_name = buffer;
        *ret = uid == UNKNOWN ? NULL : entry;
        atomic_fetch_add(&n_ended, 1);
        return 0;
}

static void wait_for(struct user_names *names, uid_t uid, const char *expected) {
        char buffer[USER_NAME_SIZE];

        for (int i = 0; i < 20000 && strcmp(user_name(names, uid, buffer), expected) != 0; i++)
                usleep(1000);
        ck_assert_str_eq(user_name(names, uid, buffer), expected);
}

static void wait_for_lookups(uint32_t n) {
        for (int i = 0; i < 20000 && atomic_load(&n_lookups) < n; i++)
                usleep(1000);
        ck_assert_uint_ge(atomic_load(&n_lookups), n);
}

START_TEST(the_number_stands_in_until_the_name_is_known) {
        struct user_names *names;
        char buffer[USER_NAME_SIZE];

        ck_assert_int_eq(user_names_new(&names), 0);
        ck_assert_str_eq(user_name(names, FIRST, buffer), "6000");
        wait_for(names, FIRST, "user 6000");
        wait_for(names, FIRST + 1, "user 6001");
        wait_for(names, UNKNOWN, "5000");
        user_names_free(names);
        user_names_free(NULL);
}
END_TEST

START_TEST(a_name_is_looked_up_once_and_so_is_that_there_is_none) {
        struct user_names *names;
        uint32_t n_before;

        ck_assert_int_eq(user_names_new(&names), 0);
        n_before = atomic_load(&n_lookups);
        wait_for(names, UNKNOWN, "5000");
        wait_for_lookups(n_before + 1);
        wait_for(names, FIRST, "user 6000");
        for (int i = 0; i < 100; i++) {
                wait_for(names, UNKNOWN, "5000");
                wait_for(names, FIRST, "user 6000");
        }
        wait_for(names, FIRST + 7, "user 6007"); /* after all that was wanted before it */
        ck_assert_uint_eq(atomic_load(&n_lookups), n_before + 3);
        user_names_free(names);
}
END_TEST

START_TEST(a_lookup_that_hangs_holds_up_neither_questions_nor_the_end) {
        struct user_names *names;
        char buffer[USER_NAME_SIZE];
        uint32_t n_before = atomic_load(&n_ended);

        atomic_store(&may_end, false);
        ck_assert_int_eq(user_names_new(&names), 0);
        wait_for(names, FIRST, "user 6000");
        ck_assert_str_eq(user_name(names, HANGS, buffer), "4000");
        wait_for_lookups(n_before + 2);
        ck_assert_str_eq(user_name(names, FIRST, buffer), "user 6000");
        ck_assert_str_eq(user_name(names, FIRST + 1, buffer), "6001");
        user_names_free(names); /* does not wait; the thread frees what is left when its lookup ends */
        ck_assert_uint_eq(atomic_load(&n_ended), n_before + 1);
        atomic_store(&may_end, true);
        while (atomic_load(&n_ended) < n_before + 2)
                usleep(1000);
        usleep(100000); /* for the leak checker: let the thread come to its end */
}
END_TEST

START_TEST(more_users_than_are_kept_are_named_all_the_same) {
        struct user_names *names;
        char expected[USER_NAME_SIZE];

        ck_assert_int_eq(user_names_new(&names), 0);
        for (uid_t uid = FIRST; uid < FIRST + 1000; uid++) {
                snprintf(expected, sizeof(expected), "user %u", uid);
                wait_for(names, uid, expected);
        }
        wait_for(names, FIRST, "user 6000");
        user_names_free(names);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("user names");
        TCase *names = tcase_create("user names");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_test(names, the_number_stands_in_until_the_name_is_known);
        tcase_add_test(names, a_name_is_looked_up_once_and_so_is_that_there_is_none);
        tcase_add_test(names, a_lookup_that_hangs_holds_up_neither_questions_nor_the_end);
        tcase_add_test(names, more_users_than_are_kept_are_named_all_the_same);
        tcase_set_timeout(names, 60);
        suite_add_tcase(suite, names);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
