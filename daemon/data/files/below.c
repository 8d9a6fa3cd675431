#include "daemon/data/files/below.h"

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
#include "proto/base/text.h"

#define FOLDERS_MAX 1000u

struct searching {
        int root_fd;
        bool (*is_taken)(const char *name);
        bool is_alone;
        struct below *below;
        size_t n_folders;
        struct why *why;
};

void below_fini(struct below *below) {
        free(below->paths);
        growing_fini(&below->memory);
        *below = (struct below){ .n = 0 };
}

/* What lies beside the files of many a dataset. */
static bool below_is_bystander(const char *name) {
        static const char *const ENDINGS[] = { ".md", ".json", ".txt", ".py", ".yaml", ".yml", ".crc" };

        for (size_t i = 0; i < ARRAY_SIZE(ENDINGS); i++)
                if (text_ends_with(name, ENDINGS[i]))
                        return true;
        return name[0] == '.' || name[0] == '_' || strncmp(name, "README", 6) == 0 || strncmp(name, "LICENSE", 7) == 0;
}

/* 1, 0 or an errno with `why`. */
static int below_is_folder(const struct searching *searching, int dir_fd, const struct dirent *entry,
                           const char *path) {
        struct stat status;

        if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
                return entry->d_type == DT_DIR;
        if (beneath_stat_entry(searching->root_fd, path, dir_fd, entry->d_name, &status) == 0)
                return S_ISDIR(status.st_mode);
        return errno == EXDEV ? why_errno(searching->why, -errno, "%s", path) : 0;
}

static int below_look_into(struct searching *searching, const char *path, unsigned depth);

/* Positive outcome: enough was seen. */
#define SEEN_ENOUGH 1

static int below_look_at(struct searching *searching, int dir_fd, const struct dirent *entry, const char *folder,
                         unsigned depth, bool *has_taken) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] ? "/" : "", entry->d_name), r;

        if (entry->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof(path))
                return 0;
        if (searching->is_taken(entry->d_name) && entry->d_type != DT_DIR) {
                *has_taken = true;
                return 0;
        }
        r = below_is_folder(searching, dir_fd, entry, path);
        if (r > 0 && depth == LISTED_DEPTH_MAX)
                searching->below->is_cut = true;
        if (r > 0)
                return depth < LISTED_DEPTH_MAX ? below_look_into(searching, path, depth + 1) : 0;
        if (r < 0 || below_is_bystander(entry->d_name))
                return r;
        if (!searching->below->other[0])
                snprintf(searching->below->other, sizeof(searching->below->other), "%.255s", path);
        return searching->is_alone ? SEEN_ENOUGH : 0;
}

static int below_look_into(struct searching *searching, const char *path, unsigned depth) {
        struct below *below = searching->below;
        const struct dirent *entry;
        bool has_taken = false;
        DIR *dir;
        int fd, r = 0;

        if (searching->n_folders++ == FOLDERS_MAX) {
                below->is_cut = true;
                return SEEN_ENOUGH;
        }
        fd = beneath_open(searching->root_fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                r = -errno;
                closep(&fd);
                if (path[0] && (r == -ENOENT || r == -ENOTDIR || r == -EACCES)) /* as lost+found */
                        return 0;
                return why_errno(searching->why, r, "%s", path[0] ? path : "the folder itself");
        }
        for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0)
                r = below_look_at(searching, dirfd(dir), entry, path, depth, &has_taken);
        if (r == 0 && errno != 0)
                r = why_errno(searching->why, -errno, "%s: the folder cannot be read to its end", path);
        closedir(dir);
        if (r < 0 || !has_taken)
                return r;
        if (growing_append(&below->memory, path, strlen(path) + 1) < 0)
                return why_errno(searching->why, -ENOMEM, "%s", path);
        below->n++;
        return r;
}

static int below_by_name(const void *one, const void *other) {
        return strcmp(*(const char *const *)one, *(const char *const *)other);
}

int below_find(int root_fd, bool (*is_taken)(const char *name), bool is_alone, struct below *ret_below,
               struct why *why) {
        struct below below = { .n = 0 };
        struct searching searching = {
                .root_fd = root_fd, .is_taken = is_taken, .is_alone = is_alone, .below = &below, .why = why
        };
        int r = below_look_into(&searching, "", 0);
        const char *path = (const char *)below.memory.bytes;

        below.paths = r < 0 ? NULL : calloc(below.n + 1, sizeof(*below.paths));
        if (r >= 0 && !below.paths)
                r = why_errno(why, -ENOMEM, "the names of its folders");
        if (r < 0) {
                below_fini(&below);
                return r;
        }
        for (size_t i = 0; i < below.n; i++, path += strlen(path) + 1)
                below.paths[i] = path;
        qsort(below.paths, below.n, sizeof(*below.paths), below_by_name);
        *ret_below = below;
        return 0;
}
