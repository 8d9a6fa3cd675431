#include "daemon/staging/fetch/local_file.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"

#define SCHEME  "file://"
#define NOWHERE "/dev/null/" /* below which nothing lies */

/* The path that a URL names, decoded; the caller's (free). NULL: none, or no memory. */
static char *path_of(const char *url) {
        const char *path = strncasecmp(url, SCHEME, strlen(SCHEME)) == 0 ? strchr(url + strlen(SCHEME), '/') : NULL;
        char *decoded = path ? curl_easy_unescape(NULL, path, 0, NULL) : NULL, *copy;

        if (!decoded)
                return NULL;
        copy = strdup(decoded); /* libcurl's memory is libcurl's */
        curl_free(decoded);
        return copy;
}

/* What was opened, not what the path leads to by now. openat2() could refuse links, but containers refuse openat2(). */
static int check_place(int fd, const char *below) {
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
        _cleanup_(freep) char *path = path_of(url);
        _cleanup_(closep) int fd = -1;
        struct stat status;
        int r;

        if (!path)
                return -ENOMEM;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe there holds up nobody */
        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
        r = check_place(fd, below);
        if (r < 0)
                return r;
        *ret_fd = take_fd(&fd);
        return 0;
}

/* Whoever may write the folder may put another file there: he is not asked for more than the file itself says, since
 * the configuration names the path. */
static bool is_ours(const struct stat *status) {
        return (status->st_uid == geteuid() || status->st_uid == 0) && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

void local_file_reach(const char *url, char folder[PATH_MAX]) {
        _cleanup_(freep) char *path = path_of(url);
        _cleanup_(freep) char *real = path ? realpath(path, NULL) : NULL;
        struct stat status;

        strcpy(folder, NOWHERE);
        if (!real || strlen(real) + 2 > PATH_MAX || stat(real, &status) < 0)
                return;
        strcpy(folder, real);
        if (S_ISDIR(status.st_mode) && strcmp(real, "/") != 0)
                strcat(folder, "/");
        else if (!S_ISDIR(status.st_mode) && is_ours(&status))
                folder[0] = '\0';
        else
                strrchr(folder, '/')[1] = '\0';
}
