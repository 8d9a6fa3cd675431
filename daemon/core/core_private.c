#include "daemon/core/core_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/cpus.h"
#include "daemon/base/machine/machine_memory.h"
#include "daemon/core/listen.h"
#include "proto/base/cleanup.h"

#define LOG_MAX    (1 << 20)     /* bytes */
#define MEMORY_MIN (64ull << 20) /* bytes */
#define IDLE_S     "600"

/* ---- leaving the process that was started ---------------------------------------------------------------------- */

/* What a service manager gave to the trainer is not for us, and a library that was loaded into the trainer may not fit.
 */
static void clean_environment(void) {
        static const char *const NAMES[] = { "NOTIFY_SOCKET", "LISTEN_PID",    "LISTEN_FDS",      "LISTEN_FDNAMES",
                                             "WATCHDOG_PID",  "WATCHDOG_USEC", "CACHE_DIRECTORY", "JOURNAL_STREAM" };
        sigset_t none;

        for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
                unsetenv(NAMES[i]);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        umask(077);
        if (chdir("/") < 0)
                return; /* a folder that cannot be unmounted, no more */
}

static int open_log(const struct private_daemon *private) {
        return open(private->place.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

static void use_streams(const struct private_daemon *private) {
        _cleanup_(closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC), log_fd = open_log(private);

        if (null_fd >= 0) {
                dup2(null_fd, STDIN_FILENO);
                dup2(null_fd, STDOUT_FILENO);
        }
        if (log_fd >= 0 || null_fd >= 0) /* a full disk: without a log, the daemon still works */
                dup2(log_fd >= 0 ? log_fd : null_fd, STDERR_FILENO);
}

/* The daemon has written a byte, or has ended. */
static int core_private_await(int ready_fd, pid_t pid) {
        int status = 0;
        ssize_t n;
        char byte;

        do
                n = read(ready_fd, &byte, 1);
        while (n < 0 && errno == EINTR);
        if (n == 1)
                return PRIVATE_SERVES;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return WIFEXITED(status) && WEXITSTATUS(status) > 0 ? WEXITSTATUS(status) : EX_OSERR;
}

static int core_private_leave(struct private_daemon *private, struct why *why) {
        int ends[2];
        pid_t pid;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return why_errno(why, -errno, "private");
        pid = fork();
        if (pid < 0) {
                int error = -errno;

                close(ends[0]);
                close(ends[1]);
                return why_errno(why, error, "private: starting a process");
        }
        if (pid > 0) {
                int r;

                close(ends[1]);
                r = core_private_await(ends[0], pid);
                close(ends[0]);
                return r;
        }
        close(ends[0]);
        private->ready_fd = ends[1];
        setsid();
        use_streams(private);
        return 0;
}

int private_begin(struct private_daemon *private, bool in_foreground, struct why *why) {
        int r;

        *private = (struct private_daemon){ .lock_fd = -1, .ready_fd = -1 };
        clean_environment();
        r = dlp_private_find(&private->place, why);
        if (r == 0)
                r = listener_lock(&LISTENER_PRIVATE, private->place.socket, &private->lock_fd, why);
        return r < 0 || in_foreground ? r : core_private_leave(private, why);
}

void private_ready(struct private_daemon *private) {
        if (private->ready_fd >= 0 && write(private->ready_fd, "", 1) < 0)
                log_info("core", "whoever started this daemon is gone");
        closep(&private->ready_fd);
        private->ready_fd = -1;
}

void private_end(struct private_daemon *private) {
        closep(&private->ready_fd);
        closep(&private->lock_fd);
}

void private_trim_log(const struct private_daemon *private) {
        char older[DLP_PRIVATE_PATH_MAX + 2];
        struct stat status;
        int fd;

        if (fstat(STDERR_FILENO, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size < LOG_MAX)
                return;
        snprintf(older, sizeof(older), "%s.1", private->place.log);
        if (rename(private->place.log, older) < 0 && errno != ENOENT && ftruncate(STDERR_FILENO, 0) < 0)
                return;
        fd = open_log(private);
        if (fd >= 0)
                dup2(fd, STDERR_FILENO);
        closep(&fd);
}

/* ---- settings -------------------------------------------------------------------------------------------------- */

/* A quarter of what the control group, the machine or a limit of this process allows. */
static uint64_t memory_share(void) {
        uint64_t most = memory_of_ours();
        struct rlimit limit;

        if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < most)
                most = limit.rlim_cur;
        return most / 4 < MEMORY_MIN ? MEMORY_MIN : most / 4;
}

/* Makes the folder and those above it. Can files be made there? */
static bool make_folder(const char *path) {
        _cleanup_(freep) char *copy = strdup(path);

        if (!copy || path[0] != '/')
                return false;
        for (char *end = strchr(copy + 1, '/'); end; end = strchr(end + 1, '/')) {
                *end = '\0';
                mkdir(copy, 0700);
                *end = '/';
        }
        mkdir(copy, 0700);
        return access(copy, R_OK | W_OK | X_OK) == 0;
}

/* In the user's cache; or, where that cannot be written, beside the socket. */
static char *core_private_find_index_dir(const struct private_daemon *private) {
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        char *path = NULL;

        if (cache && cache[0] == '/' && asprintf(&path, "%s/dataloaderd", cache) >= 0) {
                if (make_folder(path))
                        return path;
                free(path);
        }
        if (home && home[0] == '/' && asprintf(&path, "%s/.cache/dataloaderd", home) >= 0) {
                if (make_folder(path))
                        return path;
                free(path);
        }
        return asprintf(&path, "%s/index", private->place.folder) < 0 ? NULL : path;
}

/* The user's own; those of the node only where the user has none. */
static char *find_tokenizers(void) {
        const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
        const char *of_node = setting_find(SETTINGS, N_SETTINGS, "tokenizers")->initial;
        char *path = NULL;
        int n = -1;

        if (config && config[0] == '/')
                n = asprintf(&path, "%s/dataloaderd/tokenizers", config);
        else if (home && home[0] == '/')
                n = asprintf(&path, "%s/.config/dataloaderd/tokenizers", home);
        if (n >= 0 && (access(path, R_OK | X_OK) == 0 || access(of_node, X_OK) < 0))
                return path; /* also if it is still to be made: messages name it */
        if (n >= 0)
                free(path);
        return NULL;
}

static int core_private_take(struct settings *settings, const char *name, const char *value, struct why *why) {
        const struct setting *setting = setting_find(SETTINGS, N_SETTINGS, name);

        if (!setting || strcmp(name, "socket") == 0 || strcmp(name, "socket_mode") == 0)
                return why_set(why, -EINVAL, "\"%s\" is not a setting of a private daemon", name);
        return setting_parse(setting, settings, value, why);
}

/* "workers=4 memory_limit=2GiB" */
static int take_environment(struct settings *settings, struct why *why) {
        const char *idle = getenv("DATALOADERD_IDLE"), *text = getenv(PRIVATE_VARIABLE);
        _cleanup_(freep) char *copy = strdup(text ? text : "");
        char *rest = NULL;
        struct why reason;
        int r = 0;

        if (!copy)
                return why_errno(why, -ENOMEM, "settings");
        for (char *word = strtok_r(copy, " ", &rest); word && r == 0; word = strtok_r(NULL, " ", &rest)) {
                char *equals = strchr(word, '=');

                if (!equals)
                        return why_set(why, -EINVAL,
                                       "DATALOADERD_PRIVATE: \"%s\" is not KEY=VALUE; write settings of "
                                       "dataloaderd.conf(5) with blanks between them",
                                       word);
                *equals = '\0';
                r = core_private_take(settings, word, equals + 1, &reason);
        }
        if (r < 0)
                return why_set(why, r, "DATALOADERD_PRIVATE: %s", reason.text);
        if (idle && *idle && core_private_take(settings, "idle_timeout", idle, &reason) < 0)
                return why_set(why, -EINVAL, "DATALOADERD_IDLE: %s", reason.text);
        return 0;
}

int private_settings(const struct private_daemon *private, struct settings *ret_settings, struct why *why) {
        struct settings settings = { .memory_limit = memory_share(), .paths = true };
        int r;

        settings.socket = strdup(private->place.socket);
        settings.socket_mode = strdup("0600");
        settings.index_dir = core_private_find_index_dir(private);
        settings.tokenizers = find_tokenizers();
        r = settings.socket && settings.socket_mode && settings.index_dir ? 0 : why_errno(why, -ENOMEM, "settings");
        if (r == 0)
                r = core_private_take(&settings, "idle_timeout", IDLE_S, why);
        if (r == 0)
                r = take_environment(&settings, why);
        if (r == 0)
                r = settings_complete(&settings, why);
        if (r < 0) {
                settings_fini(&settings);
                return r;
        }
        *ret_settings = settings;
        return 0;
}
