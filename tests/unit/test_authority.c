/* What a process may do on this machine, as opposed to what its user's number promises. */
#include <check.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/machine/admins.h"
#include "daemon/ctl/users/authority.h"

#define SYS_ADMIN "0000000000200000"
#define ALL       "000001ffffffffff"
#define DOCKER    "00000000a80425fb"
#define NONE      "0000000000000000"

#define STATUS(permitted, bounding)                                                                                    \
        "Name:\tpython\nUid:\t0\t0\t0\t0\nCapInh:\t" NONE "\nCapPrm:\t" permitted "\nCapEff:\t" permitted              \
        "\nCapBnd:\t" bounding "\nCapAmb:\t" NONE "\n"

static const struct {
        const char *status;
        bool is_ours, is_root;
} STATUSES[] = {
        { STATUS(ALL, ALL), true, true },
        { STATUS(NONE, ALL), true, false },
        { STATUS(DOCKER, DOCKER), false, false },
        { STATUS(NONE, DOCKER), false, false },
        { STATUS(ALL, NONE), false, false },
        { STATUS(SYS_ADMIN, ALL), true, false },
        { "", false, false },
        { "Name:\tCapBnd:\nUid:\t0\n", false, false },
        { "Name:\tx\nCapPrm:\t" ALL "\n", false, false },
};

START_TEST(capabilities_tell_root_from_root_of_a_container) {
        uint64_t needed = 1ull << CAP_SYS_ADMIN | 1ull << CAP_DAC_OVERRIDE;
        struct authority authority = authority_parse(STATUSES[_i].status, needed);

        ck_assert_msg(authority.is_ours == STATUSES[_i].is_ours && authority.is_root == STATUSES[_i].is_root, "%s",
                      STATUSES[_i].status);
}
END_TEST

enum way {
        AS_IT_IS,
        IN_A_NAMESPACE,
        WITHOUT_A_CAPABILITY,
        N_WAYS
};

/* A process that says when it has become what it is to be. */
static pid_t start(enum way way) {
        int ends[2];
        char byte = 0;
        pid_t pid;

        ck_assert_int_eq(pipe(ends), 0);
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                bool is_made = way == AS_IT_IS || (way == IN_A_NAMESPACE && unshare(CLONE_NEWUSER) == 0) ||
                               (way == WITHOUT_A_CAPABILITY && prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 1 &&
                                prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) == 0);

                if (write(ends[1], is_made ? "y" : "n", 1) == 1)
                        pause();
                _exit(1);
        }
        ck_assert_int_eq(read(ends[0], &byte, 1), 1);
        close(ends[0]);
        close(ends[1]);
        if (byte == 'y')
                return pid;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return 0;
}

START_TEST(a_process_of_another_namespace_or_with_less_is_not_ours) {
        struct authority authority;
        struct process process;
        pid_t pid = start((enum way)_i);

        if (pid == 0) {
                printf("not run: this user may not\n");
                return;
        }
        process = process_of_peer(-1, pid);
        authority = authority_of(&process);
        ck_assert_int_eq(authority.is_ours, _i == AS_IT_IS);
        ck_assert_int_eq(authority.is_root, _i == AS_IT_IS && geteuid() == 0);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        authority = authority_of(&process);
        ck_assert(!authority.is_ours && !authority.is_root);
        process_close(&process);
}
END_TEST

/* Its number may be another one's by now. */
START_TEST(a_process_that_has_ended_lends_its_number_to_nobody) {
        pid_t pid = start(AS_IT_IS);
        struct process process = process_of_peer(-1, pid);

        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        if (process.fd >= 0) {
                process.pid = getpid();
                ck_assert(!authority_of(&process).is_ours);
        }
        process_close(&process);
}
END_TEST

START_TEST(a_process_that_cannot_be_seen_is_not_believed) {
        ck_assert(!authority_of(&PROCESS_NONE).is_ours);
        ck_assert(authority_is_seen());
}
END_TEST

START_TEST(users_and_groups_are_told_apart) {
        struct admins admins;

        ck_assert_int_eq(admins_parse("root, 1002 @7,@8\t1003", &admins, NULL), 0);
        for (uid_t user = 0; user < 2000; user++)
                ck_assert_int_eq(admins_has_user(&admins, user), user == 0 || user == 1002 || user == 1003);
        for (gid_t group = 0; group < 2000; group++)
                ck_assert_int_eq(admins_has_group(&admins, group), group == 7 || group == 8);
        admins_fini(&admins);
        admins_fini(&admins);
}
END_TEST

static const char *const BAD[] = { "",
                                   " ,",
                                   "@",
                                   "65534",
                                   "@65534",
                                   "4294967295",
                                   "root, no-such-user-here",
                                   "@no-such-group",
                                   "99999999999999999999" };

START_TEST(who_cannot_be_an_admin_is_refused) {
        struct admins admins;
        struct why why = { "" };

        ck_assert_msg(admins_parse(BAD[_i], &admins, &why) < 0, "%s", BAD[_i]);
        ck_assert(why.text[0]);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("authority");
        TCase *authority = tcase_create("authority");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_loop_test(authority, capabilities_tell_root_from_root_of_a_container, 0,
                            (int)(sizeof(STATUSES) / sizeof(STATUSES[0])));
        tcase_add_loop_test(authority, a_process_of_another_namespace_or_with_less_is_not_ours, 0, N_WAYS);
        tcase_add_test(authority, a_process_that_has_ended_lends_its_number_to_nobody);
        tcase_add_test(authority, a_process_that_cannot_be_seen_is_not_believed);
        tcase_add_test(authority, users_and_groups_are_told_apart);
        tcase_add_loop_test(authority, who_cannot_be_an_admin_is_refused, 0, (int)(sizeof(BAD) / sizeof(BAD[0])));
        tcase_set_timeout(authority, 60);
        suite_add_tcase(suite, authority);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
