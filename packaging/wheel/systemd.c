/* libsystemd's functions that the programs use, for the wheel: there is no static libsystemd. They are short, and what
 * they speak is a stable interface: sd_notify(3) and sd_listen_fds(3) describe it for such use. */
#include <systemd/sd-daemon.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A number without a sign in the environment. 1 and the number; 0: it is not there; -EINVAL. */
static int number(const char *name, unsigned long long *ret_number) {
        const char *text = getenv(name);
        char *end;
        unsigned long long value;

        if (!text)
                return 0;
        errno = 0;
        value = strtoull(text, &end, 10);
        if (errno || end == text || *end || *text < '0' || *text > '9')
                return -EINVAL;
        *ret_number = value;
        return 1;
}

/* Is what the environment says meant for this process? 1, 0 or -EINVAL. `missing`: the answer without a PID. */
static int is_mine(const char *name, int missing) {
        unsigned long long pid;
        int r = number(name, &pid);

        return r < 0 ? r : r == 0 ? missing : pid == (unsigned long long)getpid();
}

int sd_notify(int unset_environment, const char *state) {
        const char *path = getenv("NOTIFY_SOCKET");
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        size_t n = path ? strlen(path) : 0;
        int fd, r = 1;

        if (!path)
                return 0;
        if (*path != '/' && *path != '@')
                return -EAFNOSUPPORT;
        if (n >= sizeof(address.sun_path))
                return -E2BIG;
        memcpy(address.sun_path, path, n);
        if (*path == '@')
                address.sun_path[0] = '\0';
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0 ||
            connect(fd, (const struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) <
                    0 ||
            send(fd, state, strlen(state), MSG_NOSIGNAL) < 0)
                r = -errno;
        if (fd >= 0)
                close(fd);
        return r;
}

int sd_notifyf(int unset_environment, const char *format, ...) {
        va_list arguments;
        char *state;
        int n, r;

        va_start(arguments, format);
        n = vasprintf(&state, format, arguments);
        va_end(arguments);
        if (n < 0)
                return -ENOMEM;
        r = sd_notify(unset_environment, state);
        free(state);
        return r;
}

int sd_watchdog_enabled(int unset_environment, uint64_t *ret_us) {
        unsigned long long us;
        int r = number("WATCHDOG_USEC", &us);

        if (r <= 0)
                return r;
        r = is_mine("WATCHDOG_PID", 1);
        if (r > 0)
                *ret_us = us;
        return r;
}

int sd_listen_fds(int unset_environment) {
        unsigned long long n = 0;
        int r = is_mine("LISTEN_PID", 0);

        if (r > 0) {
                r = number("LISTEN_FDS", &n);
                r = r > 0 && n > 1024 ? -EINVAL : r < 0 ? r : (int)n;
        }
        for (int fd = SD_LISTEN_FDS_START; r > 0 && fd < SD_LISTEN_FDS_START + (int)n; fd++)
                if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
                        r = -errno;
        if (unset_environment) {
                unsetenv("LISTEN_PID");
                unsetenv("LISTEN_FDS");
                unsetenv("LISTEN_FDNAMES");
        }
        return r;
}

/* Whatever its address: the programs ask no more. */
int sd_is_socket_unix(int fd, int type, int listening, const char *path, size_t length) {
        struct sockaddr_un address;
        socklen_t n_address = sizeof(address), n = sizeof(int);
        int its_type, accepts;

        if (getsockname(fd, (struct sockaddr *)&address, &n_address) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &its_type, &n) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &n) < 0)
                return errno == ENOTSOCK ? 0 : -errno;
        return address.sun_family == AF_UNIX && (!type || its_type == type) && (listening < 0 || accepts == listening);
}
