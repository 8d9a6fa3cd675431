#include "daemon/staging/nodes/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/staging/nodes/cluster_guard.h"
#include "daemon/staging/nodes/launch_said.h"
#include "daemon/staging/nodes/launcher.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define NS_PER_S      1000000000ull
#define ASKED_S       5u  /* from the signal to the kill: systemd's TimeoutStopSec is that, too */
#define ENDING_S      10u /* from the launcher's word that it ends to the kill: 4 s usually, for ever over a cut link */
#define STARTUP_S     60u /* until all nodes have answered */
#define MEETING       4u  /* ... and so many times that until they have found the launcher, and a process runs */
#define HOSTS_A_S     4u  /* ... and a second more for so many, since ssh comes to them one by one */
#define LATE_SIZE     300u /* of their names */
#define DRAIN_MS      500  /* what comes after the launcher has ended */
#define OUR_PROBLEM   EX_OSERR
#define SIGNAL_STATUS 128

#define LAUNCHER (&LAUNCHER_OPENMPI)

/* stdout or stderr of the launcher, which speaks on both. */
struct launcher_output {
        struct said said;
        int fd; /* -1 after its end */
};

struct run {
        const struct launcher *launcher;
        struct launcher_output out, err;
        pid_t pid;
        int signals_fd; /* SIGINT, SIGTERM, SIGHUP; SIGCHLD: the launcher has ended */
        const char *hosts;
        uint64_t startup_s;
        uint64_t up_ns;       /* all nodes must have answered by then; UINT64_MAX: they have */
        uint64_t begun_ns;    /* a process must run by then; UINT64_MAX: this was looked at */
        char late[LATE_SIZE]; /* which have not answered */
        bool is_apart;        /* all have, but not all have found the launcher */
        uint64_t kill_ns;     /* when patience ends; UINT64_MAX: it does not */
        int forwarded;        /* the first signal that we were asked to end by; 0: none */
        bool is_killed;
        bool has_ended;
        int wait_status;
};

/* ---- the launcher ------------------------------------------------------------------------------------------------ */

static _Noreturn void become_launcher(const struct launch_command *command, int out_fd, int err_fd, int errno_fd,
                                      const sigset_t *mask) {
        int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC), error;

        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        setenv(LAST_WORD_VARIABLE, "1", 1);
        signal(SIGPIPE, SIG_DFL);
        if (null_fd >= 0 && dup2(null_fd, STDIN_FILENO) >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0 &&
            dup2(err_fd, STDERR_FILENO) >= 0) {
                sigprocmask(SIG_SETMASK, mask, NULL);
                execvp(command->words[0], (char *const *)command->words);
        }
        error = errno;
        _exit(write(errno_fd, &error, sizeof(error)) == sizeof(error) ? EX_UNAVAILABLE : EX_OSERR);
}

static int make_pipe(const struct run *run, int *ret_read_fd, int *ret_write_fd, struct why *why) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return why_errno(why, -errno, "a pipe for %s", run->launcher->name);
        *ret_read_fd = fds[0];
        *ret_write_fd = fds[1];
        return 0;
}

/* Returns once it is the launcher, or is known not to become it. */
static int launch_start(struct run *run, const struct launch_command *command, const sigset_t *mask, struct why *why) {
        _cleanup_(closep) int out_write = -1, err_write = -1, errno_read = -1, errno_write = -1;
        int error = 0, r;

        r = make_pipe(run, &run->out.fd, &out_write, why);
        if (r == 0)
                r = make_pipe(run, &run->err.fd, &err_write, why);
        if (r == 0)
                r = make_pipe(run, &errno_read, &errno_write, why);
        if (r < 0)
                return r;
        run->pid = fork();
        if (run->pid < 0)
                return why_errno(why, -errno, "starting %s", run->launcher->name);
        if (run->pid == 0)
                become_launcher(command, out_write, err_write, errno_write, mask);
        setpgid(run->pid, run->pid);
        close(take_fd(&out_write));
        close(take_fd(&err_write));
        close(take_fd(&errno_write));
        if (read(errno_read, &error, sizeof(error)) == sizeof(error)) {
                waitpid(run->pid, NULL, 0);
                return why_errno(why, -error, "%s, which starts the other nodes, cannot be run (%s)",
                                 run->launcher->name, run->launcher->package);
        }
        return 0;
}

static void be_patient(struct run *run, uint64_t seconds) {
        uint64_t until_ns = clock_now_ns() + seconds * NS_PER_S;

        if (until_ns < run->kill_ns && !run->is_killed)
                run->kill_ns = until_ns;
}

static void take_signals(struct run *run) {
        struct signalfd_siginfo info;

        while (read(run->signals_fd, &info, sizeof(info)) == sizeof(info)) {
                if (info.ssi_signo == SIGCHLD)
                        continue;
                if (run->forwarded == 0) {
                        run->forwarded = (int)info.ssi_signo;
                        log_info("launch", "%s: ending the processes on all nodes", strsignal(run->forwarded));
                        kill(run->pid, SIGTERM);
                }
                be_patient(run, ASKED_S);
        }
}

/* Also others than the launcher: processes of this node that became ours when it was killed. */
static void launch_reap(struct run *run) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                if (pid == run->pid) {
                        run->has_ended = true;
                        run->wait_status = status;
                }
}

static void launch_take_words(struct run *run, struct launcher_output *output) {
        char bytes[4096];
        ssize_t n = read(output->fd, bytes, sizeof(bytes));

        if (n > 0)
                said_feed(&output->said, bytes, (size_t)n);
        else if (n == 0 || errno != EINTR)
                close(take_fd(&output->fd));
        if (said_is_ending(&output->said))
                be_patient(run, ENDING_S);
}

static void end_late(struct run *run) {
        kill(run->pid, SIGTERM);
        be_patient(run, ASKED_S);
}

/* Ends it if there are nodes that were called and do not come up. */
static void check_late(struct run *run) {
        uint64_t now_ns = clock_now_ns();
        bool is_ending = run->forwarded != 0 || said_is_ending(&run->err.said);

        if (now_ns >= run->up_ns) {
                run->up_ns = UINT64_MAX;
                if (!is_ending && run->launcher->late_hosts(run->pid, run->hosts, run->late, sizeof(run->late)) > 0)
                        end_late(run);
        }
        if (now_ns >= run->begun_ns) {
                run->begun_ns = UINT64_MAX;
                run->is_apart = !is_ending && run->late[0] == '\0' && !run->err.said.has_begun;
                if (run->is_apart)
                        end_late(run);
        }
}

static int ms_left(const struct run *run) {
        uint64_t now_ns = clock_now_ns(), left_ns = run->up_ns < run->kill_ns ? run->up_ns : run->kill_ns;

        if (run->begun_ns < left_ns)
                left_ns = run->begun_ns;
        if (left_ns == UINT64_MAX)
                return -1;
        left_ns = left_ns > now_ns ? left_ns - now_ns : 0;
        return left_ns > 60 * NS_PER_S ? 60000 : (int)(left_ns / 1000000 + 1);
}

/* May stdout be written without waiting for its reader? Also if that has gone. */
static bool has_room(void) {
        return poll(&(struct pollfd){ .fd = STDOUT_FILENO, .events = POLLOUT }, 1, 0) != 0;
}

/* False: a signal says that nobody wants the rest. */
static bool wait_for_room(struct run *run) {
        while (!has_room()) {
                struct pollfd fds[] = { { .fd = run->signals_fd, .events = POLLIN },
                                        { .fd = STDOUT_FILENO, .events = POLLOUT } };

                if (run->forwarded != 0)
                        return false;
                if (poll(fds, ARRAY_SIZE(fds), -1) > 0 && fds[0].revents)
                        take_signals(run);
        }
        return true;
}

static void drain(struct run *run, struct launcher_output *output) {
        for (int i = 0; output->fd >= 0 && i < 64; i++) {
                struct pollfd fd = { .fd = output->fd, .events = POLLIN };

                if (poll(&fd, 1, DRAIN_MS) <= 0)
                        break;
                if (output == &run->out && !wait_for_room(run))
                        return;
                launch_take_words(run, output);
        }
        said_end(&output->said);
}

static void watch_it(struct run *run) {
        while (!run->has_ended) {
                /* A reader of stdout that stands still must not keep signals and time limits from being seen. */
                bool may_pass_on = has_room();
                struct pollfd fds[] = { { .fd = run->signals_fd, .events = POLLIN },
                                        { .fd = run->err.fd, .events = POLLIN },
                                        { .fd = STDOUT_FILENO, .events = POLLOUT } };

                if (may_pass_on)
                        fds[2] = (struct pollfd){ .fd = run->out.fd, .events = POLLIN };

                if (poll(fds, ARRAY_SIZE(fds), ms_left(run)) < 0 && errno != EINTR)
                        break;
                if (fds[1].revents)
                        launch_take_words(run, &run->err);
                if (fds[2].revents && may_pass_on)
                        launch_take_words(run, &run->out);
                if (fds[0].revents)
                        take_signals(run);
                launch_reap(run);
                check_late(run);
                if (!run->has_ended && !run->is_killed && clock_now_ns() >= run->kill_ns) {
                        log_warning("launch", "%s does not end: killing it", run->launcher->name);
                        run->is_killed = true;
                        run->kill_ns = UINT64_MAX;
                        kill(-run->pid, SIGKILL);
                }
        }
        drain(run, &run->err);
        drain(run, &run->out);
}

/* Processes of this node are in groups of their own; with the launcher gone they are our children (we are their
 * subreaper). Those of the other nodes end when their connection to it does. */
static void kill_orphans(struct run *run) {
        for (int i = 0; i < 200; i++) {
                _cleanup_(closep) int fd = -1;
                char path[64], text[4096], *rest = NULL;
                ssize_t n;

                launch_reap(run);
                if (waitpid(-1, NULL, WNOHANG) < 0)
                        return; /* ECHILD: there are none */
                snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
                fd = open(path, O_RDONLY | O_CLOEXEC);
                n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
                text[n > 0 ? n : 0] = '\0';
                for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
                        kill((pid_t)atoi(word), SIGKILL);
                usleep(10000);
        }
}

/* ---- what became of it ------------------------------------------------------------------------------------------- */

static int launch_conclude(const struct run *run, struct why *why) {
        int status = WIFEXITED(run->wait_status) ? WEXITSTATUS(run->wait_status)
                                                 : run->launcher->statuses_from + WTERMSIG(run->wait_status);

        why_set(why, 0, "%s", "");
        if (status == 0)
                return 0;
        if (run->forwarded != 0)
                return SIGNAL_STATUS + run->forwarded;
        if (run->late[0]) {
                why_set(why, 0, "%s did not come up: reached, but %s was not started there in time", run->late,
                        run->launcher->agent);
                return OUR_PROBLEM;
        }
        if (run->is_apart) {
                why_set(why, 0,
                        "not all nodes have found %s on this one within %llu s: %s was started on each, but a firewall "
                        "or a broken link keeps some from connecting (stage_network says which network to use)",
                        run->launcher->name, (unsigned long long)(run->startup_s * MEETING), run->launcher->agent);
                return OUR_PROBLEM;
        }
        if (run->err.said.sentence[0]) {
                why_set(why, 0, "%s", run->err.said.sentence);
                return OUR_PROBLEM;
        }
        if (run->err.said.last_word > 0)
                return run->err.said.last_word; /* it has said why */
        if (status < run->launcher->statuses_from && said_program_ended_it(&run->err.said))
                return status;
        why_set(why, 0, "%s ended with status %d%s%s", run->launcher->name, status, run->err.said.error[0] ? ": " : "",
                run->err.said.error);
        return OUR_PROBLEM;
}

static void pass_on(void *userdata, const char *bytes, size_t n_bytes) {
        while (n_bytes > 0) {
                ssize_t n = write((int)(intptr_t)userdata, bytes, n_bytes);

                if (n < 0 && errno != EINTR)
                        return;
                bytes += n > 0 ? n : 0;
                n_bytes -= n > 0 ? (size_t)n : 0;
        }
}

static int see_to_it(const struct launch_command *command, const struct launch_options *options, const sigset_t *mask,
                     const sigset_t *watched, struct why *why) {
        const struct said said = { .launcher = LAUNCHER, .hosts = command->hosts, .pass_on = pass_on };
        struct run run = {
                .launcher = LAUNCHER,
                .out = { .said = said, .fd = -1 },
                .err = { .said = said, .fd = -1 },
                .signals_fd = -1,
                .kill_ns = UINT64_MAX,
        };
        int r;

        run.out.said.userdata = (void *)(intptr_t)STDOUT_FILENO;
        run.err.said.userdata = (void *)(intptr_t)STDERR_FILENO;
        run.hosts = command->hosts;
        run.startup_s = options->startup_s > 0 ? options->startup_s : STARTUP_S + command->n_hosts / HOSTS_A_S;
        run.up_ns = clock_now_ns() + run.startup_s * NS_PER_S;
        run.begun_ns = clock_now_ns() + run.startup_s * MEETING * NS_PER_S;

        run.signals_fd = signalfd(-1, watched, SFD_CLOEXEC | SFD_NONBLOCK);
        r = run.signals_fd < 0 ? why_errno(why, -errno, "waiting for signals") : launch_start(&run, command, mask, why);
        if (r == 0) {
                if (options->timeout_s > 0)
                        be_patient(&run, (uint64_t)options->timeout_s + ENDING_S);
                watch_it(&run);
                kill_orphans(&run);
                r = launch_conclude(&run, why);
        }
        closep(&run.out.fd);
        closep(&run.err.fd);
        closep(&run.signals_fd);
        return r;
}

int launch(const struct launch_options *options, struct why *why) {
        _cleanup_(freep) struct launch_command *command = calloc(1, sizeof(*command));
        sigset_t watched, mask;
        int r;

        if (!command)
                return why_set(why, -ENOMEM, "no memory");
        r = LAUNCHER->compose(command, options, why);
        if (r < 0)
                return r;
        sigemptyset(&watched);
        sigaddset(&watched, SIGINT);
        sigaddset(&watched, SIGTERM);
        sigaddset(&watched, SIGHUP);
        sigaddset(&watched, SIGCHLD);
        signal(SIGPIPE, SIG_IGN); /* a reader that goes does not end the run */
        sigprocmask(SIG_BLOCK, &watched, &mask);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        r = see_to_it(command, options, &mask, &watched, why);
        prctl(PR_SET_CHILD_SUBREAPER, 0);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        return r;
}
