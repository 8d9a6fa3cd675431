#include "daemon/fetch/local_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/record/url.h"
#include "proto/base/cleanup.h"

#define NOWHERE "/dev/null/" /* below which nothing lies */

/* The path that a URL names; an errno if it names none. */
static int path_of(const char *text, char path[PATH_MAX]) {
        struct url url;
        int r = url_parse(text, &url, NULL);

        if (r == 0 && url.scheme != URL_FILE)
                r = -EINVAL;
        return r < 0 ? r : url_local_path(&url, path, NULL);
}

/* Looks at what was opened, not at what the path leads to by now. openat2() could refuse links, but containers refuse
 * openat2(). */
static int local_file_check_place(int fd, const char *below) {
        char link[64], real[PATH_MAX];
        ssize_t n;

        if (below[0] == '\0')
                return 0;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, real, sizeof(real));
        if (n < 0)
                return -errno;
        return (size_t)n >= strlen(below) && memcmp(real, below, strlen(below)) == 0 ? 0 : -EXDEV;
}

int local_file_open(const char *url, const char *below, int *ret_fd) {
        _cleanup_(closep) int fd = -1;
        char path[PATH_MAX];
        struct stat status;
        int r = path_of(url, path);

        if (r < 0)
                return r;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe there holds up nobody */
        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
        r = local_file_check_place(fd, below);
        if (r < 0)
                return r;
        *ret_fd = take_fd(&fd);
        return 0;
}

/* Who may write to the folder could put another file there; only the file's own permissions count, since the
 * configuration names the path. */
static bool local_file_is_ours(const struct stat *status) {
        return (status->st_uid == geteuid() || status->st_uid == 0) && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

void local_file_reach(const char *url, char folder[PATH_MAX]) {
        _cleanup_(freep) char *real = NULL;
        char path[PATH_MAX];
        struct stat status;

        strcpy(folder, NOWHERE);
        if (path_of(url, path) == 0)
                real = realpath(path, NULL);
        if (!real || strlen(real) + 2 > PATH_MAX || stat(real, &status) < 0)
                return;
        strcpy(folder, real);
        if (S_ISDIR(status.st_mode) && strcmp(real, "/") != 0)
                strcat(folder, "/");
        else if (!S_ISDIR(status.st_mode) && local_file_is_ours(&status))
                folder[0] = '\0';
        else
                strrchr(folder, '/')[1] = '\0';
}
