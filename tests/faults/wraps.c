/* The functions that the linker puts in the place of what calls.h lists. */
#include <curl/curl.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <grp.h>
#include <hwloc.h>
#include <liburing.h>
#include <locale.h>
#include <openssl/evp.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <archive.h>

#include "daemon/base/budget.h"
#include "tests/faults/points.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define COUNT_OF(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))
#define AT_POINT(call, errnos)                                                                                         \
        fault_point(call, errnos, COUNT_OF(errnos), __builtin_return_address(0), __builtin_frame_address(0))

#define FUNCTION(name, type, parameters)                                                                               \
        type __real_##name parameters;                                                                                 \
        type __wrap_##name parameters

#define ERRNO(name, type, value, parameters, arguments, ...)                                                           \
        FUNCTION(name, type, parameters) {                                                                             \
                static const int ERRNOS[] = { __VA_ARGS__ };                                                           \
                int failed = AT_POINT(#name, ERRNOS);                                                                  \
                                                                                                                       \
                if (!failed)                                                                                           \
                        return __real_##name arguments;                                                                \
                errno = failed;                                                                                        \
                return value;                                                                                          \
        }

#define BYTES(name, type, value, parameters, arguments, ...)                                                           \
        FUNCTION(name, type, parameters) {                                                                             \
                static const int ERRNOS[] = { __VA_ARGS__ };                                                           \
                int failed = AT_POINT(#name, ERRNOS);                                                                  \
                                                                                                                       \
                if (failed > 0) {                                                                                      \
                        errno = failed;                                                                                \
                        return value;                                                                                  \
                }                                                                                                      \
                n = failed == FAULT_SHORT && n > 1 ? n / 2 : n;                                                        \
                return __real_##name arguments;                                                                        \
        }

#define AFTER(name, type, value, parameters, arguments, ...)                                                           \
        FUNCTION(name, type, parameters) {                                                                             \
                static const int ERRNOS[] = { __VA_ARGS__ };                                                           \
                int failed = AT_POINT(#name, ERRNOS);                                                                  \
                type result = __real_##name arguments;                                                                 \
                                                                                                                       \
                if (!failed)                                                                                           \
                        return result;                                                                                 \
                errno = failed;                                                                                        \
                return value;                                                                                          \
        }

#define NEGATIVE(name, type, value, parameters, arguments, ...)                                                        \
        FUNCTION(name, type, parameters) {                                                                             \
                static const int ERRNOS[] = { __VA_ARGS__ };                                                           \
                int failed = AT_POINT(#name, ERRNOS);                                                                  \
                                                                                                                       \
                return failed ? (type)-failed : __real_##name arguments;                                               \
        }

#define POSITIVE(name, type, value, parameters, arguments, ...)                                                        \
        FUNCTION(name, type, parameters) {                                                                             \
                static const int ERRNOS[] = { __VA_ARGS__ };                                                           \
                int failed = AT_POINT(#name, ERRNOS);                                                                  \
                                                                                                                       \
                return failed ? (type)failed : __real_##name arguments;                                                \
        }

#define VALUE(name, type, value, parameters, arguments)                                                                \
        FUNCTION(name, type, parameters) {                                                                             \
                static const int ERRNOS[] = { ENOMEM };                                                                \
                                                                                                                       \
                return AT_POINT(#name, ERRNOS) ? value : __real_##name arguments;                                      \
        }

#define HAND(name)

#include "tests/faults/calls.h"

/* ---- by hand ------------------------------------------------------------------------------------------------- */

static const int OPENING[] = { EMFILE, EIO }, OPENING_AT[] = { EMFILE, EACCES, EIO };

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
        int failed = AT_POINT("open", OPENING);
        mode_t mode = 0;
        va_list rest;

        va_start(rest, flags);
        if (flags & (O_CREAT | O_TMPFILE))
                mode = va_arg(rest, mode_t);
        va_end(rest);
        if (!failed)
                return __real_open(path, flags, mode);
        errno = failed;
        return -1;
}

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...) {
        int failed = AT_POINT("openat", OPENING_AT);
        mode_t mode = 0;
        va_list rest;

        va_start(rest, flags);
        if (flags & (O_CREAT | O_TMPFILE))
                mode = va_arg(rest, mode_t);
        va_end(rest);
        if (!failed)
                return __real_openat(fd, path, flags, mode);
        errno = failed;
        return -1;
}

/* Eventfds and their like take and give their eight bytes always. */
static bool is_event(int fd) {
        struct stat stat;

        return !points || !atomic_load(&points->armed) ||
               (__real_fstat(fd, &stat) == 0 && (stat.st_mode & S_IFMT) == 0);
}

/* A word of the log is not a point: that it was said is what the test looks at. */
ssize_t __real_write(int fd, const void *buffer, size_t n);
ssize_t __wrap_write(int fd, const void *buffer, size_t n) {
        static const int ERRNOS[] = { ENOSPC, EIO, FAULT_SHORT };
        int failed = fd == STDERR_FILENO || is_event(fd) ? 0 : AT_POINT("write", ERRNOS);

        if (failed > 0) {
                errno = failed;
                return -1;
        }
        return __real_write(fd, buffer, failed && n > 1 ? n / 2 : n);
}

ssize_t __real_read(int fd, void *buffer, size_t n);
ssize_t __wrap_read(int fd, void *buffer, size_t n) {
        static const int ERRNOS[] = { EIO, FAULT_SHORT };
        int failed = is_event(fd) ? 0 : AT_POINT("read", ERRNOS);

        if (failed > 0) {
                errno = failed;
                return -1;
        }
        return __real_read(fd, buffer, failed && n > 1 ? n / 2 : n);
}

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...) {
        static const int ERRNOS[] = { EINVAL, EMFILE };
        int failed = AT_POINT("fcntl", ERRNOS);
        va_list rest;
        long value;

        va_start(rest, what);
        value = va_arg(rest, long);
        va_end(rest);
        if (!failed)
                return __real_fcntl(fd, what, value);
        errno = failed;
        return -1;
}

int __real_ioctl(int fd, unsigned long what, ...);
int __wrap_ioctl(int fd, unsigned long what, ...) {
        static const int ERRNOS[] = { ENOTTY };
        int failed = AT_POINT("ioctl", ERRNOS);
        va_list rest;
        void *value;

        va_start(rest, what);
        value = va_arg(rest, void *);
        va_end(rest);
        if (!failed)
                return __real_ioctl(fd, what, value);
        errno = failed;
        return -1;
}

int __real_prctl(int what, ...);
int __wrap_prctl(int what, ...) {
        static const int ERRNOS[] = { EINVAL };
        int failed = AT_POINT("prctl", ERRNOS);
        unsigned long values[4];
        va_list rest;

        va_start(rest, what);
        for (int i = 0; i < 4; i++)
                values[i] = va_arg(rest, unsigned long);
        va_end(rest);
        if (!failed)
                return __real_prctl(what, values[0], values[1], values[2], values[3]);
        errno = failed;
        return -1;
}

/* A futex does not fail: it is waited for in a loop anyway. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
        static const int ERRNOS[] = { EMFILE, ENOSYS };
        int failed = number == SYS_futex ? 0 : AT_POINT("syscall", ERRNOS);
        long values[6];
        va_list rest;

        va_start(rest, number);
        for (int i = 0; i < 6; i++)
                values[i] = va_arg(rest, long);
        va_end(rest);
        if (!failed)
                return __real_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
        errno = failed;
        return -1;
}

/* Reads within the ring end in the kernel; what came of them is changed before the reader looks. The lowest two bits of
 * user_data say what it was (daemon/io/uring.c). */
static void spoil_reads(struct io_uring *ring, const void *address, const void *frame) {
        static const int ERRNOS[] = { EIO, EAGAIN, FAULT_SHORT };
        struct io_uring_cqe *completion;
        unsigned head;

        io_uring_for_each_cqe(ring, head, completion) {
                int failed = (completion->user_data & 3) != 1 || completion->res <= 0
                                     ? 0
                                     : fault_point("io_uring's read", ERRNOS, COUNT_OF(ERRNOS), address, frame);

                if (failed)
                        completion->res = failed > 0 ? -failed : completion->res / 2;
        }
}

FUNCTION(io_uring_submit_and_wait_timeout, int,
         (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned n, struct __kernel_timespec *timeout,
          sigset_t *mask)) {
        static const int ERRNOS[] = { EINTR, EAGAIN };
        int failed = AT_POINT("io_uring_submit_and_wait_timeout", ERRNOS), r;

        if (failed)
                return -failed;
        r = __real_io_uring_submit_and_wait_timeout(ring, cqe, n, timeout, mask);
        spoil_reads(ring, __builtin_return_address(0), __builtin_frame_address(0));
        return r;
}

FUNCTION(dlopen, void *, (const char *name, int flags)) {
        static const int ERRNOS[] = { ENOENT };

        /* So that dlerror() says something. */
        return __real_dlopen(AT_POINT("dlopen", ERRNOS) ? "libraries/without/any.so" : name, flags);
}

int __wrap_asprintf(char **ret_text, const char *format, ...) {
        static const int ERRNOS[] = { ENOMEM };
        va_list rest;
        int r;

        if (AT_POINT("asprintf", ERRNOS))
                return -1;
        va_start(rest, format);
        r = vasprintf(ret_text, format, rest);
        va_end(rest);
        return r;
}

CURLcode __real_curl_easy_setopt(CURL *easy, CURLoption option, ...);
#undef curl_easy_setopt
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...) {
        static const int ERRNOS[] = { ENOMEM };
        va_list rest;
        void *value;

        if (AT_POINT("curl_easy_setopt", ERRNOS))
                return CURLE_OUT_OF_MEMORY;
        va_start(rest, option);
        value = va_arg(rest, void *);
        va_end(rest);
        return __real_curl_easy_setopt(easy, option, value);
}

/* Beginning anew needs no memory. */
FUNCTION(EVP_DigestInit_ex, int, (EVP_MD_CTX * context, const EVP_MD *type, ENGINE *engine)) {
        static const int ERRNOS[] = { ENOMEM };

        return type && AT_POINT("EVP_DigestInit_ex", ERRNOS) ? 0 : __real_EVP_DigestInit_ex(context, type, engine);
}

FUNCTION(budget_reserve, int, (struct budget * budget, uint64_t bytes, const char *what, struct why *why)) {
        static const int ERRNOS[] = { ENOMEM };

        if (AT_POINT("budget_reserve", ERRNOS))
                return why_set(why, -ENOMEM, "%s: memory_limit is exhausted (so the test says)", what);
        return __real_budget_reserve(budget, bytes, what, why);
}

/* ---- threads inherit whether they are counted ---------------------------------------------------------------- */

void *__interceptor_malloc(size_t n_bytes); /* does not fail here */

struct start {
        void *(*main)(void *);
        void *argument;
        bool exempt;
};

static void *start_thread(void *argument) {
        struct start start = *(struct start *)argument;

        free(argument);
        points_exempt = start.exempt;
        return start.main(start.argument);
}

FUNCTION(pthread_create, int,
         (pthread_t * thread, const pthread_attr_t *attributes, void *(*main)(void *), void *argument)) {
        static const int ERRNOS[] = { EAGAIN };
        int failed = AT_POINT("pthread_create", ERRNOS), r;
        struct start *start;

        if (failed)
                return failed;
        start = __interceptor_malloc(sizeof(*start));
        *start = (struct start){ main, argument, points_exempt };
        r = __real_pthread_create(thread, attributes, start_thread, start);
        if (r != 0)
                free(start);
        return r;
}
