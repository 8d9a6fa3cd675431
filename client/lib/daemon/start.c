#include "client/lib/daemon/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/lib/client_clock.h"
#include "client/lib/daemon/daemon_program.h"
#include "client/lib/daemon/holder.h"
#include "proto/base/cleanup.h"

#define FAILED_MAX     3
#define BUSY_MAX       5
#define LOG_FLAGS      (O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK)
#define LOCKED_NS      30000000000ull
#define STATUS_RUNNING 75 /* of dataloaderd: another one runs, or is just ending */
#define LAST_LINE_MAX  300
#define LEFT_BEHIND_MS 10
#define N_LEFT_BEHIND  50

/* ---- why it did not start -------------------------------------------------------------------------------------- */

/* The last line that was written since the start; "" if there is none. */
static void read_last_line(const struct dli_start *start, char ret_line[LAST_LINE_MAX]) {
        _cleanup_(closep) int fd = open(start->place.log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        char text[4096], *line;
        struct stat status;
        off_t from;
        ssize_t n;

        ret_line[0] = '\0';
        if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
                return;
        from = status.st_size > (off_t)sizeof(text) - 1 ? status.st_size - (off_t)sizeof(text) + 1 : 0;
        if (from < start->logged && start->logged <= status.st_size)
                from = start->logged;
        n = pread(fd, text, sizeof(text) - 1, from);
        while (n > 0 && text[n - 1] == '\n')
                n--;
        if (n <= 0)
                return;
        text[n] = '\0';
        line = strrchr(text, '\n');
        snprintf(ret_line, LAST_LINE_MAX, "%.*s", LAST_LINE_MAX - 1, line ? line + 1 : text);
}

static int start_failed(const struct dli_start *start, const char *what, struct why *reason) {
        char line[LAST_LINE_MAX];

        read_last_line(start, line);
        return why_set(reason, -ECONNREFUSED, "a private daemon could not be started: %s%s%s (log: %s)", what,
                       line[0] ? ": " : "", line, start->place.log);
}

/* ---- starting -------------------------------------------------------------------------------------------------- */

/* Is the locked file still the one at the path? Somebody may have removed it in between. */
static bool start_is_same_file(int fd, const char *path) {
        struct stat mine, there;

        return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino &&
               mine.st_dev == there.st_dev;
}

/* A daemon holds this lock as long as it lives, and a second one would only end again: none is started while it is
 * held. Nobody answers, so its holder is just beginning or ending, which takes a few seconds; or it hangs. 0: it is
 * free. */
static int look_at_lock(struct dli_start *start, struct why *reason) {
        char path[DLP_PRIVATE_PATH_MAX + 8];
        struct why holder;

        snprintf(path, sizeof(path), "%s.lock", start->place.socket);
        if (!dli_is_locked(path, NULL)) {
                start->locked_ns = 0;
                return 0;
        }
        if (start->locked_ns == 0)
                start->locked_ns = clock_now_ns();
        if (clock_now_ns() - start->locked_ns < LOCKED_NS)
                return why_set(reason, -EAGAIN, "nobody answers at %s, but another process has locked %s",
                               start->place.socket, path);
        if (!dli_is_locked(path, &holder))
                return 0;
        return why_set(reason, -ECONNREFUSED,
                       "a private daemon could not be started: %s, and nobody has answered at %s for %llu s: end that "
                       "process (log: %s)",
                       holder.text, start->place.socket, LOCKED_NS / 1000000000u, start->place.log);
}

/* 0 if this process has it now, -EAGAIN if another one starts a daemon. */
static int start_lock(struct dli_start *start, struct why *reason) {
        _cleanup_(closep) int fd = open(start->place.start, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                                        0600);

        if (fd < 0)
                return why_errno(reason, errno == EINTR ? -EAGAIN : -errno, "a private daemon could not be started: %s",
                                 start->place.start);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK || errno == EINTR
                               ? why_set(reason, -EAGAIN, "another process is starting one: %s is locked",
                                         start->place.start)
                               : why_errno(reason, -errno, "a private daemon could not be started: locking %s",
                                           start->place.start);
        if (!start_is_same_file(fd, start->place.start))
                return why_set(reason, -EAGAIN, "%s was replaced", start->place.start);
        start->lock_fd = take_fd(&fd);
        return 0;
}

/* Without what is loaded into this program by force (a profiler, an allocator): it is not meant for the daemon. */
static char **start_make_environment(void) {
        size_t n = 0, n_kept = 0;
        char **kept;

        while (environ && environ[n])
                n++;
        kept = calloc(n + 1, sizeof(*kept));
        for (size_t i = 0; kept && i < n; i++)
                if (strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0)
                        kept[n_kept++] = environ[i];
        return kept;
}

/* A session of its own, no descriptors, no signals of ours. */
static int start_set_up(posix_spawnattr_t *attributes, posix_spawn_file_actions_t *actions, const char *log) {
        sigset_t all, none;
        int r;

        sigfillset(&all);
        sigemptyset(&none);
        r = posix_spawnattr_setsigdefault(attributes, &all);
        if (r == 0)
                r = posix_spawnattr_setsigmask(attributes, &none);
        if (r == 0)
                r = posix_spawnattr_setflags(attributes,
                                             POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
        if (r == 0)
                r = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_addopen(actions, 2, log, LOG_FLAGS, 0600);
        if (r == 0)
                r = posix_spawn_file_actions_addclosefrom_np(actions, 3);
        return r;
}

static int start_spawn(const char *program, const char *log, pid_t *ret_pid) {
        _cleanup_(freep) char **environment = start_make_environment();
        char *arguments[] = { (char *)(uintptr_t)program, (char *)(uintptr_t) "--private", NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int r = environment ? posix_spawn_file_actions_init(&actions) : ENOMEM;

        if (r != 0)
                return -r;
        r = posix_spawnattr_init(&attributes);
        if (r == 0) {
                r = start_set_up(&attributes, &actions, log);
                if (r == 0)
                        r = posix_spawn(ret_pid, program, &actions, &attributes, arguments, environment);
                posix_spawnattr_destroy(&attributes);
        }
        posix_spawn_file_actions_destroy(&actions);
        return -r;
}

/* posix_spawn() says what failed and not where: is it the log, or the program? */
static int not_run(const struct dli_start *start, const char *program, int error, struct why *reason) {
        _cleanup_(closep) int log_fd = open(start->place.log, LOG_FLAGS | O_CLOEXEC, 0600);

        if (log_fd < 0)
                return why_set(reason, -ECONNREFUSED, "a private daemon could not be started: its log %s: %s",
                               start->place.log, strerror(errno));
        return why_set(reason, -ECONNREFUSED,
                       "a private daemon could not be started: running %s: %s (DATALOADERD_PROGRAM names another "
                       "program)",
                       program, strerror(error));
}

static int start_begin(struct dli_start *start, struct why *reason) {
        char program[PATH_MAX];
        struct stat status;
        int r = dli_program_find(program, reason);

        if (r < 0)
                return r;
        start->logged = stat(start->place.log, &status) == 0 ? status.st_size : 0;
        r = start_spawn(program, start->place.log, &start->pid);
        if (r < 0) {
                start->pid = 0;
                return not_run(start, program, -r, reason);
        }
        return why_set(reason, -EAGAIN, "a private daemon is being started (%s)", start->place.socket);
}

/* ---- waiting for it -------------------------------------------------------------------------------------------- */

/* The process that starts the daemon has ended, or not. The caller's own handler of SIGCHLD may have been faster; then
 * how it ended is not known, and the socket tells. */
static int look_after(struct dli_start *start, struct why *reason) {
        int status = 0;
        pid_t pid = waitpid(start->pid, &status, WNOHANG);
        char what[64];

        if (pid == 0 || (pid < 0 && errno == EINTR))
                return why_set(reason, -EAGAIN, "a private daemon is being started (%s)", start->place.socket);
        start->pid = 0;
        closep(&start->lock_fd);
        start->lock_fd = -1;
        if (pid < 0)
                status = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_RUNNING) {
                if (start->n_busy++ >= BUSY_MAX)
                        return start_failed(start, "each one that was started found another one", reason);
                return why_set(reason, -EAGAIN, "a private daemon is just starting or ending (%s)",
                               start->place.socket);
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
                if (start->n_failed++ < FAILED_MAX)
                        return 0;
                return start_failed(
                        start,
                        "it ended at once, or is of another version than the library (DATALOADERD_PROGRAM names "
                        "another program)",
                        reason);
        }
        if (WIFSIGNALED(status))
                snprintf(what, sizeof(what), "signal %d ended it", WTERMSIG(status));
        else
                snprintf(what, sizeof(what), "it ended with status %d", WEXITSTATUS(status));
        return start_failed(start, what, reason);
}

int dli_start_step(struct dli_start *start, struct why *reason) {
        int r;

        if (start->pid > 0)
                return look_after(start, reason);
        r = look_at_lock(start, reason);
        if (r < 0)
                return r;
        if (start->lock_fd < 0)
                return start_lock(start, reason); /* the one before may have been ready: look again, with the lock */
        return start_begin(start, reason);
}

void dli_start_end(struct dli_start *start) {
        for (int i = 0; i < N_LEFT_BEHIND && start->pid > 0; i++) {
                if (waitpid(start->pid, NULL, WNOHANG) != 0)
                        start->pid = 0;
                else
                        poll(NULL, 0, LEFT_BEHIND_MS);
        }
        closep(&start->lock_fd);
        *start = DLI_START_NONE;
}
