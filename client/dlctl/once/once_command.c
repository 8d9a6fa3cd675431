#include "client/dlctl/once/once_command.h"

/* Three processes: we, a keeper, the command. The keeper has copies of our descriptors, so a lock that we hold stays
 * held as long as one of the two lives. If we are killed, the keeper kills what is left of the command and ends. Only
 * then can another process take the lock and begin the same work again, so the two never run at once. The keeper is a
 * subreaper: the command's orphans become its children, so it finds them. If the keeper itself is killed, the command
 * is killed too. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_PAUSE_MS 5

static const int PASSED_ON[] = { SIGINT, SIGTERM, SIGHUP };

/* What the keeper tells us, once. */
struct report {
        int status;
        char tail[COMMAND_TAIL_SIZE];
};
_Static_assert(sizeof(struct report) <= 4096, "a report must go through a pipe in one piece");

/* Ctrl-C on a terminal reaches the command directly: only signals that one process sent to another are passed on. */
static bool was_sent(const struct signalfd_siginfo *info) {
        return info->ssi_code <= 0;
}

static void close_pair(const int pair[2]) {
        close(pair[0]);
        close(pair[1]);
}

/* ---- the command --------------------------------------------------------------------------------------------- */

static void become_command(char *const *arguments, int error_fd, pid_t keeper, const sigset_t *mask) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != keeper)
                _exit(126);
        dup2(error_fd, STDERR_FILENO);
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, mask, NULL);
        execvp(arguments[0], arguments);
        dprintf(STDERR_FILENO, "dlctl: %s: %s\n", arguments[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
}

/* ---- the keeper ---------------------------------------------------------------------------------------------- */

struct keeper {
        int report_fd; /* to us; has no reader any more once we are dead */
        int error_fd;  /* the command's stderr; -1: closed */
        int signal_fd;
        pid_t parent, command;
        bool has_ended;
        struct report report;
        size_t n_tail;
};

/* Reads what is there; returns 0 at the end, or if there is nothing now. */
static size_t pass_stderr(struct keeper *keeper) {
        char piece[4096];
        ssize_t n = read(keeper->error_fd, piece, sizeof(piece));
        size_t n_new, n_old, room = COMMAND_TAIL_SIZE - 1;

        if (n < 0)
                return 0;
        if (n == 0) {
                close(keeper->error_fd);
                keeper->error_fd = -1;
                return 0;
        }
        for (ssize_t done = 0, m; done < n; done += m) {
                m = write(STDERR_FILENO, piece + done, (size_t)(n - done));
                if (m <= 0)
                        break; /* our stderr is closed: the command's output is still kept */
        }
        n_new = (size_t)n < room ? (size_t)n : room;
        n_old = keeper->n_tail < room - n_new ? keeper->n_tail : room - n_new;
        memmove(keeper->report.tail, keeper->report.tail + keeper->n_tail - n_old, n_old);
        memcpy(keeper->report.tail + n_old, piece + (size_t)n - n_new, n_new);
        keeper->n_tail = n_old + n_new;
        return (size_t)n;
}

static void once_command_reap(struct keeper *keeper) {
        pid_t pid;
        int status;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                if (pid != keeper->command)
                        continue; /* an orphan of the command */
                keeper->has_ended = true;
                keeper->report.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
}

static void once_command_take_signal(struct keeper *keeper) {
        struct signalfd_siginfo info;

        if (read(keeper->signal_fd, &info, sizeof(info)) != sizeof(info))
                return;
        if (info.ssi_signo == SIGCHLD)
                once_command_reap(keeper);
        else if (was_sent(&info) && (pid_t)info.ssi_pid == keeper->parent && !keeper->has_ended)
                kill(keeper->command, (int)info.ssi_signo);
}

/* Kills our children, as the kernel lists them. False if the kernel cannot list them. */
static bool kill_children(void) {
        char path[64], *line = NULL, *at;
        size_t size = 0;
        FILE *file;
        pid_t pid;

        snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
        file = fopen(path, "re");
        if (!file)
                return false;
        if (getline(&line, &size, file) > 0)
                for (at = line; (pid = (pid_t)strtol(at, &at, 10)) > 0;)
                        kill(pid, SIGKILL);
        free(line);
        fclose(file);
        return true;
}

/* Kills until nothing is left: a process that hangs in the kernel may still write, so this waits for it, however
 * long. */
static void once_command_kill_all(const struct keeper *keeper) {
        bool is_complete = true;
        pid_t pid;

        if (!keeper->has_ended)
                kill(keeper->command, SIGKILL);
        for (;;) {
                is_complete = kill_children();
                while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
                        ;
                if ((pid < 0 && errno == ECHILD) || !is_complete)
                        return;
                poll(NULL, 0, KILL_PAUSE_MS);
        }
}

static void once_command_tell(struct keeper *keeper) {
        /* Reads the last output. A process that the command left running may hold the other end, so do not wait for its
         * end. */
        while (keeper->error_fd >= 0 && pass_stderr(keeper) > 0)
                ;
        for (size_t i = 0; i < keeper->n_tail; i++)
                if (keeper->report.tail[i] == '\0')
                        keeper->report.tail[i] = '?';
        keeper->report.tail[keeper->n_tail] = '\0';
        if (write(keeper->report_fd, &keeper->report, sizeof(keeper->report)) != sizeof(keeper->report))
                _exit(1);
}

static void once_command_keep(struct keeper *keeper) {
        enum {
                PARENT,
                SIGNALS,
                ERRORS
        };

        while (!keeper->has_ended) {
                struct pollfd fds[] = {
                        [PARENT] = { .fd = keeper->report_fd },
                        [SIGNALS] = { .fd = keeper->signal_fd, .events = POLLIN },
                        [ERRORS] = { .fd = keeper->error_fd, .events = POLLIN },
                };

                if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0)
                        continue;
                if (fds[ERRORS].revents)
                        pass_stderr(keeper);
                if (fds[SIGNALS].revents)
                        once_command_take_signal(keeper);
                if (fds[PARENT].revents & (POLLERR | POLLHUP)) {
                        once_command_kill_all(keeper);
                        _exit(1);
                }
        }
        if (keeper->report.status != 0)
                once_command_kill_all(keeper); /* leftovers must not disturb the next attempt */
        once_command_tell(keeper);
        _exit(0);
}

static void become_keeper(char *const *arguments, int report_fd, pid_t parent, const sigset_t *mask) {
        struct keeper keeper = { .report_fd = report_fd, .parent = parent };
        pid_t self = getpid();
        int error_fds[2];
        sigset_t watched;

        sigemptyset(&watched);
        sigaddset(&watched, SIGCHLD);
        for (size_t i = 0; i < sizeof(PASSED_ON) / sizeof(PASSED_ON[0]); i++)
                sigaddset(&watched, PASSED_ON[i]);
        sigprocmask(SIG_BLOCK, &watched, NULL);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGCHLD, SIG_DFL); /* some parents ignore it: waitpid() would then report nothing */
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        keeper.signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
        if (keeper.signal_fd < 0 || pipe2(error_fds, O_CLOEXEC) < 0)
                _exit(1);
        keeper.command = fork();
        if (keeper.command < 0)
                _exit(1);
        if (keeper.command == 0)
                become_command(arguments, error_fds[1], self, mask);
        close(error_fds[1]);
        keeper.error_fd = error_fds[0];
        fcntl(keeper.error_fd, F_SETFL, O_NONBLOCK);
        once_command_keep(&keeper);
}

/* ---- the parent ---------------------------------------------------------------------------------------------- */

/* Waits for the keeper's report and passes signals on meanwhile. Returns 0, or -ECHILD if the keeper died without
 * one. */
static int attend(int report_fd, int signal_fd, pid_t keeper, struct command_end *end) {
        struct signalfd_siginfo info;
        struct report report;

        for (;;) {
                struct pollfd fds[] = { { .fd = report_fd, .events = POLLIN }, { .fd = signal_fd, .events = POLLIN } };

                if (poll(fds, 2, -1) < 0)
                        continue;
                if (fds[1].revents && read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
                        end->interrupted = (int)info.ssi_signo;
                        if (was_sent(&info))
                                kill(keeper, (int)info.ssi_signo);
                }
                if (!fds[0].revents)
                        continue;
                if (read(report_fd, &report, sizeof(report)) != sizeof(report))
                        return -ECHILD;
                end->status = report.status;
                memcpy(end->tail, report.tail, sizeof(end->tail));
                return 0;
        }
}

int command_run(char *const *arguments, struct command_end *ret_end) {
        struct command_end end = { 0 };
        sigset_t watched, mask;
        int report_fds[2], signal_fd, r;
        pid_t self = getpid(), keeper;

        if (pipe2(report_fds, O_CLOEXEC) < 0)
                return -errno;
        sigemptyset(&watched);
        for (size_t i = 0; i < sizeof(PASSED_ON) / sizeof(PASSED_ON[0]); i++)
                sigaddset(&watched, PASSED_ON[i]);
        sigprocmask(SIG_BLOCK, &watched, &mask);
        signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
        keeper = signal_fd < 0 ? -1 : fork();
        if (keeper == 0) {
                close(report_fds[0]);
                close(signal_fd);
                become_keeper(arguments, report_fds[1], self, &mask);
        }
        if (keeper < 0) {
                r = -errno;
                close_pair(report_fds);
        } else {
                close(report_fds[1]);
                r = attend(report_fds[0], signal_fd, keeper, &end);
                while (waitpid(keeper, NULL, 0) < 0 && errno == EINTR)
                        ;
                close(report_fds[0]);
        }
        if (signal_fd >= 0)
                close(signal_fd);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        if (r == 0)
                *ret_end = end;
        return r;
}
