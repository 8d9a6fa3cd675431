#include "daemon/data/files/globs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/beneath.h"
#include "proto/base/cleanup.h"

#define NAMES_MAX 1000000u
#define DEPTH_MAX 32u

struct globbing {
        int root_fd;
        const char *root;
        struct growing found, hidden; /* paths relative to the root, each with a NUL */
        size_t n_found, n_hidden;
        struct why *why;
};

static int globs_visit(struct globbing *globbing, const char *path, const char *pattern, unsigned depth);

static int globs_add_file(struct globbing *globbing, const char *path, struct growing *list, size_t *n) {
        if (*n == NAMES_MAX && list == &globbing->hidden)
                return 0; /* more than are told of */
        if (*n == NAMES_MAX)
                return why_set(globbing->why, -E2BIG, "%s: the pattern names more than %u files", globbing->root,
                               NAMES_MAX);
        if (growing_append(list, path, strlen(path) + 1) < 0)
                return why_set(globbing->why, -ENOMEM, "%s: no memory for the names of its files", globbing->root);
        (*n)++;
        return 0;
}

/* What matches the first component: a folder if others follow, else a file. */
static int globs_enter(struct globbing *globbing, const char *path, const char *rest, unsigned depth) {
        struct stat status;

        if (beneath_stat(globbing->root_fd, path, &status) < 0)
                return errno == EXDEV ? why_errno(globbing->why, -EXDEV, "%s/%s", globbing->root, path) : 0;
        if (rest)
                return S_ISDIR(status.st_mode) ? globs_visit(globbing, path, rest, depth + 1) : 0;
        return S_ISREG(status.st_mode) ? globs_add_file(globbing, path, &globbing->found, &globbing->n_found) : 0;
}

/* A link to a folder is none: one that leads back would make ** endless. */
static bool globs_is_folder(int dir_fd, const char *name) {
        struct stat status;

        return fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

static int match_entry(struct globbing *globbing, int dir_fd, const char *path, const char *name, const char *pattern,
                       unsigned depth) {
        size_t n = strcspn(pattern, "/");
        const char *rest = pattern[n] ? pattern + n + 1 : NULL;
        char component[NAME_MAX + 1], inner[PATH_MAX];

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || n >= sizeof(component) ||
            (size_t)snprintf(inner, sizeof(inner), "%s%s%s", path, path[0] ? "/" : "", name) >= sizeof(inner))
                return 0;
        if (n == 2 && strncmp(pattern, "**", 2) == 0) /* one folder more; none at all is tried by globs_visit() */
                return name[0] != '.' && globs_is_folder(dir_fd, name)
                               ? globs_visit(globbing, inner, pattern, depth + 1)
                               : 0;
        memcpy(component, pattern, n);
        component[n] = '\0';
        if (glob_match_name(component, name, false))
                return globs_enter(globbing, inner, rest, depth);
        return !rest && glob_match_name(component, name, true) && !globs_is_folder(dir_fd, name)
                       ? globs_add_file(globbing, inner, &globbing->hidden, &globbing->n_hidden)
                       : 0;
}

static int globs_read_folder(struct globbing *globbing, DIR *folder, const char *path, const char *pattern,
                             unsigned depth) {
        for (;;) {
                const struct dirent *entry;
                int r;

                errno = 0;
                entry = readdir(folder);
                if (!entry)
                        return errno == 0 ? 0
                                          : why_errno(globbing->why, -errno, "%s/%s: the folder cannot be read",
                                                      globbing->root, path);
                r = match_entry(globbing, dirfd(folder), path, entry->d_name, pattern, depth);
                if (r < 0)
                        return r;
        }
}

static int globs_visit(struct globbing *globbing, const char *path, const char *pattern, unsigned depth) {
        DIR *folder;
        int r = 0, fd;

        if (depth > DEPTH_MAX)
                return 0;
        if (strncmp(pattern, "**/", 3) == 0)
                r = globs_visit(globbing, path, pattern + 3, depth + 1);
        if (r < 0)
                return r;
        fd = beneath_open(globbing->root_fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        folder = fd < 0 ? NULL : fdopendir(fd);
        if (!folder) {
                r = why_errno(globbing->why, -errno, "%s/%s: the folder cannot be read", globbing->root, path);
                closep(&fd);
                return r;
        }
        r = globs_read_folder(globbing, folder, path, strcmp(pattern, "**") == 0 ? "*" : pattern, depth);
        closedir(folder);
        return r;
}

static int globs_by_name(const void *one, const void *other) {
        return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* In order; a file that ** finds in two ways once. `texts` NULL: they are only counted. */
static int append_sorted(const struct growing *found, size_t n, struct growing *texts, size_t *n_names) {
        _cleanup_(freep) const char **sorted = calloc(n + 1, sizeof(*sorted));
        const char *at = (const char *)found->bytes;

        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
                sorted[i] = at;
        qsort(sorted, n, sizeof(*sorted), globs_by_name);
        for (size_t i = 0; i < n; i++) {
                if (i > 0 && strcmp(sorted[i - 1], sorted[i]) == 0)
                        continue;
                if (texts && growing_append(texts, sorted[i], strlen(sorted[i]) + 1) < 0)
                        return -ENOMEM;
                (*n_names)++;
        }
        return 0;
}

int globs_expand(int root_fd, const char *root, const char *pattern, struct growing *texts, size_t *n_names,
                 uint32_t *n_hidden, struct why *why) {
        struct globbing globbing = { .root_fd = root_fd, .root = root, .why = why };
        int r = globs_visit(&globbing, "", pattern, 0);
        size_t n = 0;

        if (r == 0 && globbing.n_found == 0)
                r = why_set(why, -ENOENT, "%s/%s: no file matches the pattern", root, pattern);
        if (r == 0 && (append_sorted(&globbing.found, globbing.n_found, texts, n_names) < 0 ||
                       append_sorted(&globbing.hidden, globbing.n_hidden, NULL, &n) < 0))
                r = why_set(why, -ENOMEM, "%s: no memory for the names of its files", root);
        *n_hidden += (uint32_t)n; /* at most NAMES_MAX */
        growing_fini(&globbing.found);
        growing_fini(&globbing.hidden);
        return r;
}
