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

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/staging/nodes/cluster_guard.h"
#include "daemon/staging/nodes/launch_late.h"
#include "daemon/staging/nodes/launch_said.h"

#define NS_PER_S      1000000000ull
#define ASKED_S       5u   /* from the signal to the kill: systemd's TimeoutStopSec is that, too */
#define ENDING_S      10u  /* from mpirun's word that it ends to the kill: 4 s usually, for ever over a cut link */
#define STARTUP_S     60u  /* until all nodes have answered */
#define MEETING       4u   /* ... and so many times that until they have found mpirun, and a process runs */
#define HOSTS_A_S     4u   /* ... and a second more for so many, since ssh comes to them one by one */
#define LATE_SIZE     300u /* of their names */
#define DRAIN_MS      500  /* what comes on stderr after mpirun has ended */
#define WORDS_MAX     256u
#define HOSTS_SIZE    65536u
#define OUR_PROBLEM   EX_OSERR
#define SIGNAL_STATUS 128
#define MPIRUNS_FROM  128 /* statuses from here on: 137 a kill, 205 a lost connection, 255 a node out of reach */

/* What Open MPI is told. Measured with 4.1.4: ARCHITECTURE, Staging. */
static const struct {
        const char *name, *value;
} SETTINGS[] = {
        { "plm", "rsh" },
        { "plm_rsh_no_tree_spawn", "1" }, /* nodes need not reach each other by ssh */
        { "orte_keep_fqdn_hostnames", "1" },
        { "oob_tcp_keepalive_time", "3" }, /* a cut link is noticed in 6 s; else never */
        { "oob_tcp_keepalive_intvl", "1" },
        { "oob_tcp_keepalive_probes", "3" },
        { "oob_tcp_retry_delay", "1" }, /* or a node whose link just came up asks ten times at once, and gives up */
        { "pml", "ob1" },
        { "btl", "tcp,self" },
        { "mpi_yield_when_idle", "1" },
};

/* Without ConnectTimeout a dead host takes two minutes; with BatchMode nobody waits for a password to be typed. */
#define SSH "ssh -o ConnectTimeout=5 -o BatchMode=yes"

static const char *const FORWARDED[] = {
        "http_proxy",
        "https_proxy",
        "HTTPS_PROXY",
        "no_proxy",
        "NO_PROXY",
        "all_proxy",
        "ALL_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "CURL_CA_BUNDLE",
        "DATALOADERD_STAGE_TERMINAL", /* staging/run/report.h: the first node draws on our terminal */
};

struct command {
        const char *words[WORDS_MAX];
        uint32_t n_words;
        char hosts[HOSTS_SIZE];
        uint32_t n_hosts;
        char timeout[16];
};

struct run {
        struct said *said;
        pid_t pid;
        int signals_fd; /* SIGINT, SIGTERM, SIGHUP; SIGCHLD: mpirun has ended */
        int stderr_fd;  /* -1 after its end */
        const char *hosts;
        uint64_t startup_s;
        uint64_t up_ns;       /* all nodes must have answered by then; UINT64_MAX: they have */
        uint64_t begun_ns;    /* a process must run by then; UINT64_MAX: this was looked at */
        char late[LATE_SIZE]; /* which have not answered */
        bool is_apart;        /* all have, but not all have found mpirun */
        uint64_t kill_ns;     /* when patience ends; UINT64_MAX: it does not */
        int forwarded;        /* the first signal that we were asked to end by; 0: none */
        bool is_killed;
        bool has_ended;
        int wait_status;
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

static void add(struct command *command, const char *word) {
        if (command->n_words < WORDS_MAX - 1)
                command->words[command->n_words++] = word;
}

static void add_setting(struct command *command, const char *name, const char *value) {
        add(command, "--mca");
        add(command, name);
        add(command, value);
}

/* Blanks become commas; a name that begins with a dash would be taken for an option. */
static int list_hosts(struct command *command, const char *hosts, struct why *why) {
        static const char GOOD[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
        size_t n_bytes = 0;

        for (const char *place = hosts;;) {
                size_t n;

                place += strspn(place, ", \t\n");
                n = strspn(place, GOOD);
                if (*place == '\0')
                        break;
                if (n == 0 || place[0] == '-' || !strchr(", \t\n", place[n]))
                        return why_set(why, -EINVAL, "hosts: \"%.100s\" is no name or address of a host", place);
                if (n_bytes + n + 2 > sizeof(command->hosts))
                        return why_set(why, -EINVAL, "hosts: more than %u bytes", HOSTS_SIZE);
                if (n_bytes > 0)
                        command->hosts[n_bytes++] = ',';
                memcpy(command->hosts + n_bytes, place, n);
                n_bytes += n;
                place += n;
                command->n_hosts++;
        }
        command->hosts[n_bytes] = '\0';
        return command->n_hosts > 0 ? 0 : why_set(why, -EINVAL, "hosts: there is none");
}

static int compose(struct command *command, const struct launch_options *options, struct why *why) {
        int r = list_hosts(command, options->hosts, why);

        if (r < 0)
                return r;
        add(command, "mpirun");
        add(command, "--map-by");
        add(command, "ppr:1:node"); /* one process a node, */
        add(command, "--bind-to");
        add(command, "none"); /* which has threads: the default is one core */
        add(command, "--stdin");
        add(command, "none");
        for (size_t i = 0; i < ARRAY_SIZE(SETTINGS); i++)
                add_setting(command, SETTINGS[i].name, SETTINGS[i].value);
        if (geteuid() == 0)
                add(command, "--allow-run-as-root");
        add(command, "--host");
        add(command, command->hosts);
        add_setting(command, "plm_rsh_agent", options->agent[0] ? options->agent : SSH);
        if (options->network[0]) {
                add_setting(command, "btl_tcp_if_include", options->network);
                add_setting(command, "oob_tcp_if_include", options->network);
        }
        if (options->timeout_s > 0) {
                snprintf(command->timeout, sizeof(command->timeout), "%u", options->timeout_s);
                add(command, "--timeout");
                add(command, command->timeout);
        }
        for (size_t i = 0; i < ARRAY_SIZE(FORWARDED); i++)
                if (getenv(FORWARDED[i])) {
                        add(command, "-x");
                        add(command, FORWARDED[i]);
                }
        add(command, "-x");
        add(command, LAST_WORD_VARIABLE);
        for (char *const *word = options->arguments; *word; word++)
                add(command, *word);
        if (command->n_words == WORDS_MAX - 1)
                return why_set(why, -E2BIG, "more than %u words on a command line", WORDS_MAX);
        command->words[command->n_words] = NULL;
        return 0;
}

/* ---- mpirun ------------------------------------------------------------------------------------------------------ */

static _Noreturn void become_mpirun(const struct command *command, int stderr_fd, int errno_fd, const sigset_t *mask) {
        int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC), error;

        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        setenv(LAST_WORD_VARIABLE, "1", 1);
        if (null_fd >= 0 && dup2(null_fd, STDIN_FILENO) >= 0 && dup2(stderr_fd, STDERR_FILENO) >= 0) {
                sigprocmask(SIG_SETMASK, mask, NULL);
                execvp(command->words[0], (char *const *)command->words);
        }
        error = errno;
        _exit(write(errno_fd, &error, sizeof(error)) == sizeof(error) ? EX_UNAVAILABLE : EX_OSERR);
}

/* Returns once it is mpirun, or is known not to become it. */
static int start(struct run *run, const struct command *command, const sigset_t *mask, struct why *why) {
        _cleanup_(closep) int stderr_read = -1, stderr_write = -1, errno_read = -1, errno_write = -1;
        int fds[2], error = 0;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return why_errno(why, -errno, "a pipe for mpirun");
        stderr_read = fds[0];
        stderr_write = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return why_errno(why, -errno, "a pipe for mpirun");
        errno_read = fds[0];
        errno_write = fds[1];
        run->pid = fork();
        if (run->pid < 0)
                return why_errno(why, -errno, "starting mpirun");
        if (run->pid == 0)
                become_mpirun(command, stderr_write, errno_write, mask);
        setpgid(run->pid, run->pid);
        close(take_fd(&errno_write));
        if (read(errno_read, &error, sizeof(error)) == sizeof(error)) {
                waitpid(run->pid, NULL, 0);
                return why_errno(why, -error,
                                 "mpirun, which starts the other nodes, cannot be run (Debian: openmpi-bin)");
        }
        run->stderr_fd = take_fd(&stderr_read);
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

/* Also others than mpirun: processes of this node that became ours when it was killed. */
static void reap(struct run *run) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                if (pid == run->pid) {
                        run->has_ended = true;
                        run->wait_status = status;
                }
}

static void take_words(struct run *run) {
        char bytes[4096];
        ssize_t n = read(run->stderr_fd, bytes, sizeof(bytes));

        if (n > 0)
                said_feed(run->said, bytes, (size_t)n);
        else if (n == 0 || errno != EINTR)
                close(take_fd(&run->stderr_fd));
        if (said_is_ending(run->said))
                be_patient(run, ENDING_S);
}

static void end_late(struct run *run) {
        kill(run->pid, SIGTERM);
        be_patient(run, ASKED_S);
}

/* Ends it if there are nodes that were called and do not come up. */
static void check_late(struct run *run) {
        uint64_t now_ns = clock_now_ns();
        bool is_ending = run->forwarded != 0 || said_is_ending(run->said);

        if (now_ns >= run->up_ns) {
                run->up_ns = UINT64_MAX;
                if (!is_ending && late_hosts(run->pid, run->hosts, run->late, sizeof(run->late)) > 0)
                        end_late(run);
        }
        if (now_ns >= run->begun_ns) {
                run->begun_ns = UINT64_MAX;
                run->is_apart = !is_ending && run->late[0] == '\0' && !said_has_begun(run->said);
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

static void watch_it(struct run *run) {
        while (!run->has_ended) {
                struct pollfd fds[] = { { .fd = run->signals_fd, .events = POLLIN },
                                        { .fd = run->stderr_fd, .events = POLLIN } };

                if (poll(fds, ARRAY_SIZE(fds), ms_left(run)) < 0 && errno != EINTR)
                        break;
                if (fds[1].revents)
                        take_words(run);
                if (fds[0].revents)
                        take_signals(run);
                reap(run);
                check_late(run);
                if (!run->has_ended && !run->is_killed && clock_now_ns() >= run->kill_ns) {
                        log_warning("launch", "mpirun does not end: killing it");
                        run->is_killed = true;
                        run->kill_ns = UINT64_MAX;
                        kill(-run->pid, SIGKILL);
                }
        }
        for (int i = 0; run->stderr_fd >= 0 && i < 64; i++) {
                struct pollfd fd = { .fd = run->stderr_fd, .events = POLLIN };

                if (poll(&fd, 1, DRAIN_MS) <= 0)
                        break;
                take_words(run);
        }
        said_end(run->said);
}

/* Processes of this node are in groups of their own; with mpirun gone they are our children (we are their subreaper).
 * Those of the other nodes end when their connection to mpirun does. */
static void kill_orphans(struct run *run) {
        for (int i = 0; i < 200; i++) {
                _cleanup_(closep) int fd = -1;
                char path[64], text[4096], *rest = NULL;
                ssize_t n;

                reap(run);
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

static int conclude(const struct run *run, struct why *why) {
        int status = WIFEXITED(run->wait_status) ? WEXITSTATUS(run->wait_status)
                                                 : MPIRUNS_FROM + WTERMSIG(run->wait_status);

        why_set(why, 0, "%s", "");
        if (status == 0)
                return 0;
        if (run->forwarded != 0)
                return SIGNAL_STATUS + run->forwarded;
        if (run->late[0]) {
                why_set(why, 0, "%s did not come up: reached, but Open MPI's orted was not started there in time",
                        run->late);
                return OUR_PROBLEM;
        }
        if (run->is_apart) {
                why_set(why, 0,
                        "not all nodes have found mpirun on this one within %llu s: Open MPI's orted was started on "
                        "each, but a firewall or a broken link keeps some from connecting (stage_network says which "
                        "network to use)",
                        (unsigned long long)(run->startup_s * MEETING));
                return OUR_PROBLEM;
        }
        if (said_sentence(run->said)[0]) {
                why_set(why, 0, "%s", said_sentence(run->said));
                return OUR_PROBLEM;
        }
        if (said_last_word(run->said) > 0)
                return said_last_word(run->said); /* it has said why */
        if (status < MPIRUNS_FROM && said_program_ended_it(run->said))
                return status;
        why_set(why, 0, "mpirun ended with status %d", status);
        return OUR_PROBLEM;
}

static void pass_on(void *userdata, const char *bytes, size_t n_bytes) {
        while (n_bytes > 0) {
                ssize_t n = write(STDERR_FILENO, bytes, n_bytes);

                if (n < 0 && errno != EINTR)
                        return;
                bytes += n > 0 ? n : 0;
                n_bytes -= n > 0 ? (size_t)n : 0;
        }
}

static int see_to_it(const struct command *command, const struct launch_options *options, const sigset_t *mask,
                     const sigset_t *watched, struct why *why) {
        struct run run = { .signals_fd = -1, .stderr_fd = -1, .kill_ns = UINT64_MAX };
        int r;

        run.hosts = command->hosts;
        run.startup_s = options->startup_s > 0 ? options->startup_s : STARTUP_S + command->n_hosts / HOSTS_A_S;
        run.up_ns = clock_now_ns() + run.startup_s * NS_PER_S;
        run.begun_ns = clock_now_ns() + run.startup_s * MEETING * NS_PER_S;

        if (said_new(command->hosts, pass_on, NULL, &run.said) < 0)
                return why_set(why, -ENOMEM, "no memory");
        run.signals_fd = signalfd(-1, watched, SFD_CLOEXEC | SFD_NONBLOCK);
        r = run.signals_fd < 0 ? why_errno(why, -errno, "waiting for signals") : start(&run, command, mask, why);
        if (r == 0) {
                if (options->timeout_s > 0)
                        be_patient(&run, (uint64_t)options->timeout_s + ENDING_S);
                watch_it(&run);
                kill_orphans(&run);
                r = conclude(&run, why);
        }
        closep(&run.stderr_fd);
        closep(&run.signals_fd);
        said_free(run.said);
        return r;
}

int launch(const struct launch_options *options, struct why *why) {
        _cleanup_(freep) struct command *command = calloc(1, sizeof(*command));
        sigset_t watched, mask;
        int r;

        if (!command)
                return why_set(why, -ENOMEM, "no memory");
        r = compose(command, options, why);
        if (r < 0)
                return r;
        sigemptyset(&watched);
        sigaddset(&watched, SIGINT);
        sigaddset(&watched, SIGTERM);
        sigaddset(&watched, SIGHUP);
        sigaddset(&watched, SIGCHLD);
        sigprocmask(SIG_BLOCK, &watched, &mask);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        r = see_to_it(command, options, &mask, &watched, why);
        prctl(PR_SET_CHILD_SUBREAPER, 0);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        return r;
}
