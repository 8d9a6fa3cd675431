#include "client/dlctl/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define CHUNK_BYTES 65536u
#define PRINT_MAX   2048u /* bytes of one print */

struct traced_file {
        char path[PATH_MAX];
        bool force;
        bool is_hidden; /* else it is standard output */
        gzFile out;     /* also writes what is not compressed */
        int error;
        size_t n_bytes; /* in `chunk` */
        char chunk[CHUNK_BYTES];
};

static char hidden[PATH_MAX + 16]; /* the one that is being written; "": none */

void traced_file_unlink(void) {
        if (hidden[0])
                unlink(hidden);
}

static int trace_file_refuse(const struct traced_file *file, int error, struct why *why) {
        if (error == -EEXIST)
                return why_set(why, error, "trace: %.400s exists; choose another name, or --force to replace it",
                               file->path);
        return why_errno(why, error, "trace: cannot write %.400s", file->path);
}

static bool is_compressed(const char *path) {
        size_t n = strlen(path);

        return n > 3 && strcmp(path + n - 3, ".gz") == 0;
}

/* Beside its place, so that it can be renamed. With the rights that any new file gets. */
static int open_hidden(struct traced_file *file) {
        const char *name = strrchr(file->path, '/');
        struct stat status;
        mode_t mask;
        int fd;

        if (!file->force && lstat(file->path, &status) == 0)
                return -EEXIST;
        name = name ? name + 1 : file->path;
        snprintf(hidden, sizeof(hidden), "%.*s.%s.XXXXXX", (int)(name - file->path), file->path, name);
        fd = mkostemp(hidden, O_CLOEXEC);
        if (fd < 0) {
                hidden[0] = '\0';
                return -errno;
        }
        mask = umask(0);
        umask(mask);
        fchmod(fd, 0666 & ~mask);
        return fd;
}

int traced_file_begin(const char *path, bool force, struct traced_file **ret_file, struct why *why) {
        struct traced_file *file = calloc(1, sizeof(*file));
        int fd;

        if (!file)
                return why_errno(why, -ENOMEM, "trace");
        if (strlen(path) >= sizeof(file->path)) {
                free(file);
                return why_set(why, -ENAMETOOLONG, "trace: the name of the file is too long");
        }
        snprintf(file->path, sizeof(file->path), "%s", path);
        file->force = force;
        file->is_hidden = strcmp(path, "-") != 0;
        fd = file->is_hidden ? open_hidden(file) : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        if (fd < 0) {
                fd = trace_file_refuse(file, file->is_hidden ? fd : -errno, why);
                free(file);
                return fd;
        }
        file->out = gzdopen(fd, is_compressed(path) ? "wb6" : "wbT");
        if (!file->out) {
                close(fd);
                traced_file_drop(file);
                return why_errno(why, -ENOMEM, "trace");
        }
        *ret_file = file;
        return 0;
}

/* zlib reports an error of the system by Z_ERRNO. */
static void trace_file_flush(struct traced_file *file) {
        if (file->error == 0 && file->n_bytes > 0) {
                errno = 0;
                if (gzwrite(file->out, file->chunk, (unsigned)file->n_bytes) == 0)
                        file->error = errno != 0 ? -errno : -EIO;
        }
        file->n_bytes = 0;
}

void traced_file_print(struct traced_file *file, const char *format, ...) {
        va_list arguments;
        int n;

        if (file->n_bytes + PRINT_MAX > CHUNK_BYTES)
                trace_file_flush(file);
        va_start(arguments, format);
        n = vsnprintf(file->chunk + file->n_bytes, PRINT_MAX, format, arguments);
        va_end(arguments);
        if (n < 0 || n >= (int)PRINT_MAX)
                file->error = -EOVERFLOW; /* never: names are shorter */
        else
                file->n_bytes += (size_t)n;
}

/* Nobody's file is replaced unless that was asked for, also if it has come since. */
static int trace_file_show(const struct traced_file *file) {
        if (!file->is_hidden)
                return 0;
        if (file->force)
                return rename(hidden, file->path) < 0 ? -errno : 0;
        if (renameat2(AT_FDCWD, hidden, AT_FDCWD, file->path, RENAME_NOREPLACE) == 0)
                return 0;
        if (errno != EINVAL && errno != ENOSYS)
                return -errno;
        if (link(hidden, file->path) < 0) /* where the file system has no such renaming */
                return -errno;
        unlink(hidden);
        return 0;
}

int traced_file_end(struct traced_file *file, struct why *why) {
        int r;

        trace_file_flush(file);
        errno = 0;
        r = gzclose(file->out);
        file->out = NULL;
        if (r != Z_OK && file->error == 0)
                file->error = errno != 0 ? -errno : -EIO;
        r = file->error;
        if (r == 0)
                r = trace_file_show(file);
        if (r < 0)
                r = trace_file_refuse(file, r, why);
        else
                hidden[0] = '\0';
        traced_file_drop(file);
        return r;
}

void traced_file_drop(struct traced_file *file) {
        if (!file)
                return;
        if (file->out)
                gzclose(file->out);
        traced_file_unlink();
        hidden[0] = '\0';
        free(file);
}
