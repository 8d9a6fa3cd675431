/* Processes at the other end of a connection: healthy, ending, gone. */
#include <check.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/machine/machine_process.h"

static const struct {
        const char *stat;
        bool ending;
} STATS[] = {
        { "12 (python3) S 1 12 12 0 -1 4194560 1 2", false },
        { "12 (python3) D 1 12 12 0 -1 4194560 1 2", false },
        { "12 (python3) Z 1 12 12 0 -1 4194560 1 2", true },
        { "12 (python3) X 1 12 12 0 -1 0 1 2", true },
        { "12 (python3) R 1 12 12 0 -1 4194564 1 2", true }, /* giving back its memory */
        { "12 (python3) D 1 12 12 0 -1 4195072 1 2", true }, /* dumping core */
        { "12 (python3) R 1 12 12 0 -1 4195584 1 2", true }, /* a signal is ending it */
        { "12 (a) Z 1) S 1 12 12 0 -1 4194560 1 2", false }, /* a name may hold anything */
        { "12 (a) S 1) Z 1 12 12 0 -1 4194560 1 2", true },
        { "12 (cut", false },
        { "12 (cut) Z 1 12", false },
        { "", false },
};

START_TEST(the_kernels_line_tells_who_is_ending) {
        ck_assert_msg(process_stat_is_ending(STATS[_i].stat) == STATS[_i].ending, "%s", STATS[_i].stat);
}
END_TEST

START_TEST(who_is_stopped_is_seen) {
        pid_t pid = fork();

        if (pid == 0)
                for (;;)
                        pause();
        ck_assert(!process_is_stopped(pid));
        ck_assert_int_eq(kill(pid, SIGSTOP), 0);
        ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
        ck_assert(process_is_stopped(pid));
        kill(pid, SIGCONT);
        ck_assert_int_eq(waitpid(pid, NULL, WCONTINUED), pid);
        ck_assert(!process_is_stopped(pid));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        ck_assert(!process_is_stopped(pid));
        ck_assert(!process_is_stopped(0));
        ck_assert(process_stat_is_stopped("12 (a) S 1) t 1 12"));
        ck_assert(!process_stat_is_stopped("12 (a) T 1) S 1 12"));
        ck_assert(!process_stat_is_stopped("12 (cut"));
}
END_TEST

START_TEST(a_pending_kill_is_an_end_and_other_signals_are_not) {
        ck_assert(process_status_is_ending("Name:\tx\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n"));
        ck_assert(process_status_is_ending("Name:\tx\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000004100\n"));
        ck_assert(!process_status_is_ending("Name:\tx\nSigPnd:\t0000000000004000\nShdPnd:\t0000000000000002\n"));
        ck_assert(!process_status_is_ending("Name:\tx\nSigBlk:\t0000000000000100\n"));
        ck_assert(!process_status_is_ending(""));
}
END_TEST

START_TEST(a_peer_is_healthy_until_it_is_killed) {
        struct process process, by_number;
        int sockets[2], status;
        pid_t pid;

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
        process = process_of_peer(sockets[0], getpid());
        ck_assert(!process_is_ending(&process));
        process_close(&process);
        ck_assert_int_eq(process.fd, -1);

        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0)
                for (;;)
                        pause();
        process = process_of_peer(-1, pid); /* no socket to ask: by its number */
        by_number = (struct process){ .fd = -1, .pid = pid };
        ck_assert(!process_is_ending(&process));
        ck_assert(!process_is_ending(&by_number));
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert(process_is_ending(&by_number)); /* at once, wherever it is on its way out */
        if (process.fd >= 0) {
                struct pollfd poll_fd = { .fd = process.fd, .events = POLLIN };

                ck_assert_int_eq(poll(&poll_fd, 1, 60000), 1);
        }
        ck_assert(process_is_ending(&process)); /* a zombie */
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(process_is_ending(&process));
        ck_assert(process_is_ending(&by_number)); /* gone */
        process_close(&process);
        close(sockets[0]);
        close(sockets[1]);
}
END_TEST

START_TEST(of_a_process_that_cannot_be_seen_nothing_is_said) {
        struct process process = PROCESS_NONE;

        ck_assert(!process_is_ending(&process));
        process = process_of_peer(-1, 0);
        ck_assert_int_eq(process.fd, -1);
        ck_assert(!process_is_ending(&process));
        process_close(&process);
}
END_TEST

static void *pause_for_ever(void *unused) {
        for (;;)
                pause();
        return unused;
}

/* A process that has given its memory back and has not ended: its first thread is through, another one is not. */
static pid_t start_one_without_memory(void) {
        pid_t pid = fork();
        pthread_t thread;

        ck_assert_int_ge(pid, 0);
        if (pid > 0)
                return pid;
        if (pthread_create(&thread, NULL, pause_for_ever, NULL) == 0)
                syscall(SYS_exit, 0);
        _exit(1);
}

static pid_t start_healthy_one(void) {
        pid_t pid = fork();

        ck_assert_int_ge(pid, 0);
        if (pid == 0)
                pause_for_ever(NULL);
        return pid;
}

/* As hidepid= and ProtectProc= of a unit have it: of other users' processes /proc shows nothing. */
static void hide_proc_and_be_another_user(void) {
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("proc", "/proc", "proc", 0, "hidepid=invisible") < 0)
                _exit(77);
        if (setgroups(0, NULL) < 0 || setgid(65533) < 0 || setuid(65533) < 0)
                _exit(78);
}

START_TEST(an_end_is_seen_where_proc_is_hidden) {
        pid_t healthy, ending, looker;
        int status;

        if (geteuid() != 0) {
                printf("not run: only root can hide /proc\n");
                return;
        }
        healthy = start_healthy_one();
        ending = start_one_without_memory();
        looker = fork();
        ck_assert_int_ge(looker, 0);
        if (looker == 0) {
                struct process one, other;
                int n_looks = 0;

                hide_proc_and_be_another_user();
                one = process_of_peer(-1, healthy);
                other = process_of_peer(-1, ending);
                while (!process_is_ending(&other) && n_looks++ < 1000)
                        usleep(10000); /* its first thread may not be through yet */
                _exit(process_is_ending(&one) ? 2 : process_is_ending(&other) ? 0 : 3);
        }
        ck_assert_int_eq(waitpid(looker, &status, 0), looker);
        kill(healthy, SIGKILL);
        kill(ending, SIGKILL);
        waitpid(healthy, NULL, 0);
        waitpid(ending, NULL, 0);
        ck_assert(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
                printf("not run: /proc cannot be mounted here\n");
        else
                ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("process");
        TCase *process = tcase_create("process");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_loop_test(process, the_kernels_line_tells_who_is_ending, 0, (int)(sizeof(STATS) / sizeof(STATS[0])));
        tcase_add_test(process, who_is_stopped_is_seen);
        tcase_add_test(process, a_pending_kill_is_an_end_and_other_signals_are_not);
        tcase_add_test(process, a_peer_is_healthy_until_it_is_killed);
        tcase_add_test(process, an_end_is_seen_where_proc_is_hidden);
        tcase_set_timeout(process, 60);
        tcase_add_test(process, of_a_process_that_cannot_be_seen_nothing_is_said);
        suite_add_tcase(suite, process);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
