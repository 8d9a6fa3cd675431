#include "daemon/plugin/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/plugin/area.h"
#include "daemon/plugin/wire.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define SETTLE_TIMEOUT_S 5u  /* for what the main thread waits for */
#define LOOK_MS          200 /* between looks whether it has ended */
#define GRACE_MS         200 /* for a process that has hung up to say how it ended */
#define LOW_FDS          16  /* the daemon's own ends lie above those that the process gets */

struct process {
        struct process_terms terms;
        struct area area;
        pid_t pid; /* 0: it does not run */
        int fd;
        struct plugin_table table;
};

int process_new(const struct process_terms *terms, struct process **ret_process, struct why *why) {
        struct process *process = calloc(1, sizeof(*process));
        int r;

        if (!process)
                return why_errno(why, -ENOMEM, "cannot be started");
        process->terms = *terms;
        process->fd = -1;
        r = area_make(&process->area);
        if (r < 0) {
                free(process);
                return why_errno(why, r, "cannot be started");
        }
        *ret_process = process;
        return 0;
}

/* There is always room for the table, so that starting a process moves nothing. */
int process_reserve(struct process *process, uint64_t n_input_bytes, uint64_t n_output_bytes, struct why *why) {
        uint64_t n_least = sizeof(process->table);

        return area_reserve(&process->area, n_input_bytes, n_output_bytes > n_least ? n_output_bytes : n_least, why);
}

/* ---- the end -------------------------------------------------------------------------------------------------------
 */

/* Has it ended? It stays as it is: nobody else gets its number. */
static bool has_ended(const struct process *process, int patience_ms) {
        for (int ms = 0;; ms += 5) {
                siginfo_t info = { 0 };

                if (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
                        return errno != EINTR;
                if (info.si_pid != 0 || ms >= patience_ms)
                        return info.si_pid != 0;
                poll(NULL, 0, 5);
        }
}

/* It is given a moment to end by itself, if it has hung up. Says how it ended. What it has forked ends with it. */
static void process_end(struct process *process, int patience_ms, char *text, size_t size) {
        bool was_killed = patience_ms == 0 || !has_ended(process, patience_ms);
        int status = 0;

        kill(-process->pid, SIGKILL);
        while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
                continue;
        close(process->fd);
        process->fd = -1;
        process->pid = 0;
        if (was_killed)
                snprintf(text, size, "hung up, and was killed");
        else if (WIFSIGNALED(status))
                snprintf(text, size, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
        else
                snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
}

void process_free(struct process *process) {
        char text[128];

        if (!process)
                return;
        if (process->pid > 0)
                process_end(process, 0, text, sizeof(text));
        area_fini(&process->area);
        free(process);
}

/* ---- the beginning -------------------------------------------------------------------------------------------------
 */

static int spawn(struct process *process, int their_fd, int their_area) {
        char *const words[] = { (char *)"dataloaderd", (char *)PROCESS_OPTION, (char *)(uintptr_t)process->terms.path,
                                (char *)(uintptr_t)process->terms.name, NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none, all;
        int r;

        sigemptyset(&none);
        sigfillset(&all);
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, their_fd, WIRE_SOCKET);
        posix_spawn_file_actions_adddup2(&actions, their_area, WIRE_AREA);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
        r = posix_spawn(&process->pid, process->terms.program, &actions, &attributes, words, environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        if (r > 0)
                process->pid = 0;
        return -r;
}

static int begin(struct process *process) {
        _cleanup_(closep) int theirs = -1, area = -1;
        int ends[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return -errno;
        process->fd = ends[0];
        theirs = fcntl(ends[1], F_DUPFD_CLOEXEC, LOW_FDS);
        r = theirs < 0 ? -errno : 0;
        close(ends[1]);
        area = fcntl(process->area.fd, F_DUPFD_CLOEXEC, LOW_FDS);
        if (area < 0 && r == 0)
                r = -errno;
        if (r == 0)
                r = spawn(process, theirs, area);
        if (r < 0) {
                close(process->fd);
                process->fd = -1;
        }
        return r;
}

/* ---- questions -----------------------------------------------------------------------------------------------------
 */

/* Waits until it has answered, hung up or ended: what it has forked may hold the socket after that. -ETIMEDOUT,
 * -ECANCELED. */
static int wait_for(const struct process *process, uint32_t timeout_s) {
        uint64_t end_ns = clock_now_ns() + timeout_s * UINT64_C(1000000000), now_ns;

        while ((now_ns = clock_now_ns()) < end_ns) {
                struct pollfd fds[] = { { .fd = process->fd, .events = POLLIN },
                                        { .fd = process->terms.stop_fd, .events = POLLIN } };

                uint64_t rest_ms = (end_ns - now_ns) / 1000000 + 1;
                int n = poll(fds, ARRAY_SIZE(fds), rest_ms < LOOK_MS ? (int)rest_ms : LOOK_MS);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if ((n > 0 && fds[0].revents) || (n == 0 && has_ended(process, 0)))
                        return 0;
                if (n <= 0)
                        continue;
                if (fds[1].revents)
                        return -ECANCELED;
        }
        return -ETIMEDOUT;
}

/* What has come is not what was asked for, or nothing has: says what became of the process. */
static int lost(struct process *process, int r, uint32_t timeout_s, struct why *why) {
        char text[128];

        if (r == -ETIMEDOUT || r == -ECANCELED) {
                process_end(process, 0, text, sizeof(text));
                return r == -ECANCELED ? why_set(why, r, "was not waited for: the daemon ends")
                                       : why_set(why, r,
                                                 "did not come back within %u seconds, and its process was "
                                                 "killed",
                                                 timeout_s);
        }
        process_end(process, GRACE_MS, text, sizeof(text));
        return why_set(why, -EPIPE, "has ended its process, which %s", text);
}

static int receive(struct process *process, uint32_t timeout_s, struct plugin_reply *ret_reply, struct why *why) {
        struct plugin_reply reply;
        int r = wait_for(process, timeout_s);
        ssize_t n = r < 0 ? -1 : recv(process->fd, &reply, sizeof(reply), MSG_DONTWAIT);

        if (n != (ssize_t)sizeof(reply))
                return lost(process, r, timeout_s, why);
        reply.text[sizeof(reply.text) - 1] = '\0';
        *ret_reply = reply;
        return 0;
}

/* Its first answer says whether the plug-in is loaded; the table then lies in the shared memory. */
static int start(struct process *process, struct why *why) {
        struct plugin_reply reply;
        struct stat now;
        int r = process_reserve(process, 0, 0, why);

        if (r < 0)
                return r;
        if (stat(process->terms.path, &now) < 0 || !library_is_same(&now, &process->terms.status))
                return why_set(why, -ENOEXEC, "has changed since the daemon began (%s): restart the daemon",
                               process->terms.path);
        r = begin(process);
        if (r < 0)
                return why_errno(why, r, "cannot be started in a process: %s", process->terms.program);
        /* The process learns the layout with each question. */
        r = wire_send(process->fd, &process->area, NULL);
        if (r == 0 || r == -EPIPE)
                r = receive(process, SETTLE_TIMEOUT_S, &reply, why);
        else
                r = lost(process, r, SETTLE_TIMEOUT_S, why);
        if (r < 0)
                return r;
        memcpy(&process->table, process->area.bytes + process->area.output_offset, sizeof(process->table));
        if (reply.result == 0 && table_is_valid(&process->table))
                return 0;
        r = reply.result < 0 ? why_set(why, -ENOEXEC, "%s", reply.text)
                             : why_set(why, -ENOEXEC, "says nonsense of itself");
        process_end(process, GRACE_MS, reply.text, sizeof(reply.text));
        return r;
}

int process_describe(struct process *process, struct plugin_table *ret_table, struct why *why) {
        int r = process->pid == 0 ? start(process, why) : 0;

        if (r == 0)
                *ret_table = process->table;
        return r;
}

int process_ask(struct process *process, const struct plugin_request *request, struct plugin_reply *ret_reply,
                struct why *why) {
        uint32_t timeout_s = process->terms.timeout_s;
        int r = wire_send(process->fd, &process->area, request);

        if (request->question == PLUGIN_SETTLE && timeout_s > SETTLE_TIMEOUT_S)
                timeout_s = SETTLE_TIMEOUT_S;
        return r < 0 ? lost(process, r, timeout_s, why) : receive(process, timeout_s, ret_reply, why);
}

/* ---- memory --------------------------------------------------------------------------------------------------------
 */

uint8_t *process_input(struct process *process) {
        return process->area.bytes;
}

const uint8_t *process_output(struct process *process) {
        return process->area.bytes + process->area.output_offset;
}

uint64_t process_bytes(const struct process *process) {
        return process->area.n_bytes;
}

void process_trim(struct process *process) {
        area_trim(&process->area);
}
