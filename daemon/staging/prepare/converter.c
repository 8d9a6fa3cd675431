#include "daemon/staging/prepare/converter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define PIPE_BYTES (1 << 20) /* a program that writes 64 KiB at a time would wait for us each time */
#define WORDS_SIZE 400u      /* of what it says on stderr, the end */
#define LOOK_MS    100       /* how often cancellation and the clock are looked at */
#define GRACE_NS   2000000000ull
#define NS_PER_S   1000000000ull
#define HEAR_MAX   32u /* reads: more than a pipe of 64 KiB holds */

extern char **environ;

struct converter {
        const struct converter_job *job;
        pid_t pid;
        int out_fd, err_fd; /* ours to read; -1 after their end */
        uint8_t *buffer;    /* PIPE_BYTES */
        uint8_t head[FORMAT_HEAD_BYTES];
        uint64_t n_bytes;
        uint8_t last_byte;
        uint64_t moved_ns;      /* when something came last */
        char words[WORDS_SIZE]; /* the last line of stderr that is not empty */
        size_t n_words;
        bool is_line_over; /* the next byte begins another line */
};

const struct format *converted_format(uint64_t kind) {
        const struct format *format = kind >= CONVERTED_FORMATS ? format_at(kind - CONVERTED_FORMATS) : NULL;

        return format && format->written ? format : NULL;
}

const char *converted_suffix(uint64_t kind) {
        const struct format *format = converted_format(kind);

        if (kind < CONVERTED_FORMATS)
                return kind == CONVERTED_NAMED ? ".named" : ".none";
        return format ? format->written->suffix : NULL;
}

/* ---- its life -------------------------------------------------------------------------------------------------- */

static int converter_set_up(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes,
                            const struct converter_job *job, int out_fd, int err_fd) {
        sigset_t none, all;
        int error;

        sigemptyset(&none);
        sigfillset(&all);
        error = posix_spawnattr_setflags(attributes,
                                         POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        if (error == 0)
                error = posix_spawnattr_setsigdefault(attributes, &all);
        if (error == 0)
                error = posix_spawnattr_setsigmask(attributes, &none);
        if (error == 0)
                error = posix_spawn_file_actions_addchdir_np(actions, job->folder);
        if (error == 0)
                error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, job->path, O_RDONLY, 0);
        if (error == 0)
                error = posix_spawn_file_actions_adddup2(actions, out_fd, STDOUT_FILENO);
        if (error == 0)
                error = posix_spawn_file_actions_adddup2(actions, err_fd, STDERR_FILENO);
        return -error;
}

/* Our environment and the file's name. The array is the caller's (free), its texts are not. */
static char **converter_make_environment(char *file_text) {
        size_t n = 0;
        char **variables;

        while (environ[n])
                n++;
        variables = calloc(n + 2, sizeof(*variables));
        if (!variables)
                return NULL;
        variables[0] = file_text;
        n = 1;
        for (char **variable = environ; *variable; variable++)
                if (strncmp(*variable, "DATALOADERD_FILE=", 17) != 0)
                        variables[n++] = *variable;
        return variables;
}

static int converter_spawn(struct converter *converter, int out_fd, int err_fd) {
        const struct converter_job *job = converter->job;
        char file_text[2 * PATH_MAX + 32];
        _cleanup_(freep) char **variables = NULL;
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int r;

        if (snprintf(file_text, sizeof(file_text), "DATALOADERD_FILE=%s/%s", job->folder, job->path) >=
            (int)sizeof(file_text))
                return -ENAMETOOLONG;
        variables = converter_make_environment(file_text);
        if (!variables || posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        if (posix_spawnattr_init(&attributes) != 0) {
                posix_spawn_file_actions_destroy(&actions);
                return -ENOMEM;
        }
        r = converter_set_up(&actions, &attributes, job, out_fd, err_fd);
        if (r == 0)
                r = -posix_spawnp(&converter->pid, job->words[0], &actions, &attributes, (char *const *)job->words,
                                  variables);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        return r;
}

static int converter_start(struct converter *converter) {
        int out[2], err[2], r;

        if (pipe2(out, O_CLOEXEC) < 0)
                return -errno;
        converter->out_fd = out[0];
        if (pipe2(err, O_CLOEXEC) < 0) {
                r = -errno;
                close(out[1]);
                return r;
        }
        converter->err_fd = err[0];
        fcntl(out[0], F_SETPIPE_SZ, PIPE_BYTES); /* refused to users who have many pipes: then it is slower */
        fcntl(err[0], F_SETFL, O_NONBLOCK);
        r = converter_spawn(converter, out[1], err[1]);
        close(out[1]);
        close(err[1]);
        converter->moved_ns = clock_now_ns();
        return r;
}

/* Its status is not fetched yet, so its number, which is that of the group, belongs to nobody else. */
static bool converter_has_ended(const struct converter *converter) {
        siginfo_t info = { 0 };

        return waitid(P_PID, (id_t)converter->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != 0;
}

/* Whatever it left behind is in its group. Returns 0 with its status, or an errno if that is not known. */
static int converter_reap(struct converter *converter, int *ret_status) {
        int r = 0;

        kill(-converter->pid, SIGKILL);
        while (r == 0 && waitpid(converter->pid, ret_status, 0) < 0)
                r = errno == EINTR ? 0 : -errno;
        converter->pid = 0;
        return r;
}

static void converter_kill_all(struct converter *converter) {
        uint64_t end_ns = clock_now_ns() + GRACE_NS;
        int status;

        kill(-converter->pid, SIGTERM);
        while (!converter_has_ended(converter) && clock_now_ns() < end_ns)
                poll(NULL, 0, 10);
        converter_reap(converter, &status);
}

static void converter_stop(struct converter *converter) {
        if (converter->pid > 0)
                converter_kill_all(converter);
        closep(&converter->out_fd);
        closep(&converter->err_fd);
        free(converter->buffer);
}

/* ---- what it says ---------------------------------------------------------------------------------------------- */

/* The last line that is not empty is kept: there programs say why they give up. */
static void hear_byte(struct converter *converter, char byte) {
        if (byte == '\n' || byte == '\r') {
                converter->is_line_over = true;
                return;
        }
        if (converter->is_line_over)
                converter->n_words = 0;
        converter->is_line_over = false;
        if (converter->n_words < WORDS_SIZE - 1)
                converter->words[converter->n_words++] = byte >= 32 && byte < 127 ? byte : '?';
        converter->words[converter->n_words] = '\0';
}

static void converter_hear(struct converter *converter) {
        char text[4096];
        ssize_t n = read(converter->err_fd, text, sizeof(text));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                closep(&converter->err_fd);
                converter->err_fd = -1;
                return;
        }
        for (ssize_t i = 0; i < n; i++)
                hear_byte(converter, text[i]);
}

/* ---- what it writes -------------------------------------------------------------------------------------------- */

static int converter_write_all(const struct converter *converter, size_t n, struct why *why) {
        for (size_t done = 0; done < n;) {
                ssize_t r = write(converter->job->out_fd, converter->buffer + done, n - done);

                if (r < 0 && errno == EINTR)
                        continue;
                if (r < 0)
                        return why_errno(why, -errno, "what is made of %s", converter->job->path);
                done += (size_t)r;
        }
        return 0;
}

/* Returns 0 as well at the end: then out_fd is -1. */
static int converter_take(struct converter *converter, struct why *why) {
        const struct converter_job *job = converter->job;
        ssize_t n = read(converter->out_fd, converter->buffer, PIPE_BYTES);
        int r;

        if (n < 0)
                return errno == EINTR ? 0 : why_errno(why, -errno, "%s: the pipe of its command", job->path);
        if (n == 0) {
                closep(&converter->out_fd);
                converter->out_fd = -1;
                return 0;
        }
        if ((uint64_t)n > job->limit_bytes - converter->n_bytes)
                return why_set(why, -EFBIG,
                               "%s: its command writes more than %" PRIu64
                               " bytes; if that is right, raise unpack_limit",
                               job->path, job->limit_bytes);
        for (size_t i = 0; i < (size_t)n && converter->n_bytes + i < FORMAT_HEAD_BYTES; i++)
                converter->head[converter->n_bytes + i] = converter->buffer[i];
        converter->n_bytes += (uint64_t)n;
        converter->last_byte = converter->buffer[n - 1];
        r = converter_write_all(converter, (size_t)n, why);
        converter->moved_ns = clock_now_ns(); /* the disk's time is not the command's */
        return r;
}

static int check_time(const struct converter *converter, struct why *why) {
        const struct converter_job *job = converter->job;

        if (job->cancel && atomic_load(job->cancel))
                return -ECANCELED;
        if (clock_now_ns() - converter->moved_ns > job->stall_s * NS_PER_S)
                return why_set(why, -ETIMEDOUT,
                               "%s: its command wrote nothing for %u s; if it needs longer, raise stall_timeout",
                               job->path, job->stall_s);
        return 0;
}

static int converter_take_all(struct converter *converter, struct why *why) {
        int r = 0;

        while (r == 0 && converter->out_fd >= 0) {
                struct pollfd fds[] = {
                        { .fd = converter->out_fd, .events = POLLIN },
                        { .fd = converter->err_fd, .events = POLLIN },
                };

                if (poll(fds, 2, LOOK_MS) < 0 && errno != EINTR)
                        return why_errno(why, -errno, "%s: the pipe of its command", converter->job->path);
                if (fds[1].revents)
                        converter_hear(converter);
                if (fds[0].revents)
                        r = converter_take(converter, why);
                if (r == 0)
                        r = check_time(converter, why);
        }
        return r;
}

/* It may close its output long before it ends. */
static int converter_wait_for_end(struct converter *converter, int *ret_status, struct why *why) {
        int r = 0;

        while (!converter_has_ended(converter)) {
                struct pollfd fd = { .fd = converter->err_fd, .events = POLLIN };

                r = check_time(converter, why);
                if (r < 0)
                        return r;
                poll(&fd, 1, 10);
                if (fd.revents)
                        converter_hear(converter);
        }
        for (unsigned i = 0; i < HEAR_MAX && converter->err_fd >= 0; i++) /* what is left in the pipe */
                converter_hear(converter);
        r = converter_reap(converter, ret_status);
        return r < 0 ? why_errno(why, r, "%s: how its command ended", converter->job->path) : 0;
}

/* ---- what came of it --------------------------------------------------------------------------------------------- */

static int tell_status(const struct converter *converter, int status, struct why *why) {
        const char *path = converter->job->path, *words = converter->words;

        if (WIFSIGNALED(status))
                return why_set(why, -EINVAL, "%s: its command was ended by signal %d%s%s", path, WTERMSIG(status),
                               words[0] ? ": " : "", words);
        if (WEXITSTATUS(status) != 0)
                return why_set(why, -EINVAL, "%s: its command ended with status %d%s%s", path, WEXITSTATUS(status),
                               words[0] ? ": " : " and said nothing on stderr", words);
        return 0;
}

/* The kind of what was written, as far as its begin says; CONVERTED_NOTHING: none of those that are known, whose names'
 * ends are listed. */
static uint64_t converter_kind_of(const uint8_t *head, size_t n, char *ret_known, size_t size) {
        uint64_t found = CONVERTED_NOTHING;
        size_t n_best = 0, at = 0;

        for (uint64_t kind = CONVERTED_FORMATS; format_at(kind - CONVERTED_FORMATS); kind++) {
                const struct format *format = converted_format(kind);
                const struct format_written *written = format ? format->written : NULL;

                if (!written)
                        continue;
                if (n >= written->n_head && written->n_head > n_best && written->begins_so(head, n)) {
                        found = kind;
                        n_best = written->n_head;
                }
                if (at < size)
                        at += (size_t)snprintf(ret_known + at, size - at, "%s%s", at ? ", " : "", written->suffix);
        }
        return found;
}

static int tell_kind(const struct converter *converter, uint64_t *ret_kind, struct why *why) {
        const uint8_t *head = converter->head;
        const char *path = converter->job->path;
        size_t n = converter->n_bytes < FORMAT_HEAD_BYTES ? (size_t)converter->n_bytes : FORMAT_HEAD_BYTES;
        char known[128] = "";
        uint64_t kind;

        if (converter->job->is_named || n == 0) {
                *ret_kind = converter->job->is_named ? CONVERTED_NAMED : CONVERTED_NOTHING;
                return 0;
        }
        kind = converter_kind_of(head, n, known, sizeof(known));
        if (kind == CONVERTED_NOTHING)
                return why_set(why, -EINVAL,
                               "%s: what its command wrote is no file of samples (%s): the first byte is 0x%02x", path,
                               known, head[0]);
        if (converted_format(kind)->written->ends_in_line && converter->last_byte != '\n')
                return why_set(why, -EINVAL, "%s: the last line that its command wrote has no end", path);
        *ret_kind = kind;
        return 0;
}

int converter_run(const struct converter_job *job, uint64_t *ret_kind, struct why *why) {
        struct converter converter = { .job = job, .out_fd = -1, .err_fd = -1 };
        int r, status = 0;

        converter.buffer = malloc(PIPE_BYTES);
        r = converter.buffer ? converter_start(&converter) : -ENOMEM;
        if (r < 0)
                why_errno(why, r, "%s: the program %s cannot be started", job->path, job->words[0]);
        if (r == 0)
                r = converter_take_all(&converter, why);
        if (r == 0)
                r = converter_wait_for_end(&converter, &status, why);
        if (r == 0)
                r = tell_status(&converter, status, why);
        if (r == 0)
                r = tell_kind(&converter, ret_kind, why);
        converter_stop(&converter);
        return r;
}
