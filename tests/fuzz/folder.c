#include "tests/fuzz/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char root[64];
static pid_t owner; /* a forked child must not remove it */

static void must(int result, const char *what) {
        if (result >= 0)
                return;
        fprintf(stderr, "fuzz: %s: %s\n", what, strerror(errno));
        _exit(2);
}

/* In place of libc's: a file that was written a moment ago is looked at again two ticks of a clock later, in case it
 * changes meanwhile (data/index/index_stamp.c). Here all files were, and it would be nine tenths of a run. */
int nanosleep(const struct timespec *pause, struct timespec *rest) {
        return pause->tv_nsec >= 2000000 ? 0 : clock_nanosleep(CLOCK_MONOTONIC, 0, pause, rest);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where) {
        if (type == FTW_DNR)
                chmod(path, 0700);
        return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

static void remove_all(void) {
        if (getpid() == owner)
                nftw(root, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

const char *folder(void) {
        if (root[0])
                return root;
        snprintf(root, sizeof(root), "%s/dataloaderd-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(root))
                must(-1, root);
        owner = getpid();
        atexit(remove_all);
        return root;
}

const char *folder_path(const char *name, char path[PATH_MAX]) {
        snprintf(path, PATH_MAX, "%s/%s", folder(), name);
        return path;
}

void folder_write(const char *name, const void *bytes, size_t n_bytes) {
        char path[PATH_MAX];
        int fd = open(folder_path(name, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        must(fd, path);
        if (write(fd, bytes, n_bytes) != (ssize_t)n_bytes)
                must(-1, path);
        close(fd);
}

void folder_make(const char *name) {
        char path[PATH_MAX];

        must(mkdir(folder_path(name, path), 0755), path);
}

void folder_age(const char *name) {
        struct timespec times[2];
        char path[PATH_MAX];

        clock_gettime(CLOCK_REALTIME, &times[1]);
        times[1].tv_sec -= 3600;
        times[0] = times[1];
        must(utimensat(AT_FDCWD, folder_path(name, path), times, 0), path);
}

void folder_remove(const char *name) {
        char path[PATH_MAX];

        nftw(folder_path(name, path), remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

char *tree_bytes(const char *path, size_t *ret_n) {
        FILE *file = fopen(path, "rb");
        char *bytes;
        long n;

        if (!file || fseek(file, 0, SEEK_END) < 0)
                must(-1, path);
        n = ftell(file);
        rewind(file);
        bytes = malloc((size_t)n + 1);
        if (!bytes || fread(bytes, 1, (size_t)n, file) != (size_t)n)
                must(-1, path);
        bytes[n] = '\0';
        fclose(file);
        *ret_n = (size_t)n;
        return bytes;
}
