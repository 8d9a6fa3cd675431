/* A folder on this machine, or on a disk that it has mounted: file:///folder. Walked by descriptors, so that a folder
 * that is replaced by a link meanwhile leads nowhere else. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/fetch/origin/origin_private.h"
#include "proto/base/cleanup.h"

#define DEPTH_MAX 64u /* folders in each other: a descriptor each while they are walked */

struct folder_walk {
        struct origin_run *run;
        char *root;          /* without links, as realpath() says it */
        char path[PATH_MAX]; /* of what is looked at, below the root */
        char url[URL_BYTES_MAX];
        uint64_t n_files;
};

static void origin_folder_closedirp(DIR **dir) {
        if (*dir)
                closedir(*dir);
}

static int origin_folder_fail(struct folder_walk *walk, struct why *why, int error, const char *what) {
        return why_set(why, error, "%s: \"%s\" %s", walk->run->shown, walk->path, what);
}

static int origin_folder_add_file(struct folder_walk *walk, const struct stat *found, struct why *why) {
        char etag[64];
        struct plan_file file = { .path = walk->path, .n_bytes = (uint64_t)found->st_size, .etag = etag };
        struct why inner = { 0 };
        int r = plan_path_check(walk->path, strlen(walk->path), &inner);

        /* Checked first: the name is not in the URL then. */
        if (r < 0)
                return why_set(why, r, "%s: %s", walk->run->shown, inner.text);
        if (walk->run->address.n_path + 3 * strlen(walk->path) + 32 > sizeof(walk->url))
                return origin_folder_fail(walk, why, -ENAMETOOLONG, "has too long a path");
        origin_local_etag(found, etag, sizeof(etag));
        url_below(&walk->run->address, walk->path, walk->url);
        r = origin_add(walk->run, &file, walk->url, why);
        return r < 0 ? r : origin_progress(walk->run, ++walk->n_files, why);
}

/* A link may lead to a file inside the folder. A link to a folder could lead round in circles. */
static int add_link(struct folder_walk *walk, struct why *why) {
        char path[2 * PATH_MAX];
        _cleanup_(freep) char *target = NULL;
        size_t n_root = strlen(walk->root);
        struct stat found;

        snprintf(path, sizeof(path), "%s/%s", walk->root, walk->path);
        target = realpath(path, NULL);
        if (!target)
                return origin_folder_fail(walk, why, -errno, "is a broken link");
        if (strncmp(target, walk->root, n_root) != 0 || (n_root > 1 && target[n_root] != '/'))
                return origin_folder_fail(walk, why, -EINVAL,
                                          "is a link to something outside the folder; put the file itself there");
        if (lstat(target, &found) < 0)
                return origin_folder_fail(walk, why, -errno, "is a link to something that no longer exists");
        if (!S_ISREG(found.st_mode))
                return origin_folder_fail(walk, why, -EINVAL,
                                          "is a link to something that is not a file; put the thing itself there");
        return origin_folder_add_file(walk, &found, why);
}

static int walk_folder(struct folder_walk *walk, int parent_fd, const char *name, size_t n_path, uint32_t depth,
                       struct why *why);

static int origin_folder_look_at(struct folder_walk *walk, int dir_fd, const char *name, size_t n_path, uint32_t depth,
                                 struct why *why) {
        size_t n_name = strlen(name), n = n_path + (n_path > 0);
        struct stat found;

        if (n + n_name >= sizeof(walk->path))
                return origin_folder_fail(walk, why, -ENAMETOOLONG, "has a name in it that makes too long a path");
        if (n_path > 0)
                walk->path[n_path] = '/';
        memcpy(walk->path + n, name, n_name + 1);
        if (fstatat(dir_fd, name, &found, AT_SYMLINK_NOFOLLOW) < 0)
                return origin_folder_fail(walk, why, -errno,
                                          "has just disappeared; the folder must not change while it is listed");
        if (S_ISREG(found.st_mode))
                return origin_folder_add_file(walk, &found, why);
        if (S_ISLNK(found.st_mode))
                return add_link(walk, why);
        if (S_ISDIR(found.st_mode))
                return walk_folder(walk, dir_fd, name, n + n_name, depth + 1, why);
        return origin_folder_fail(walk, why, -EINVAL, "is not a file: sockets, pipes and devices cannot be staged");
}

static int walk_folder(struct folder_walk *walk, int parent_fd, const char *name, size_t n_path, uint32_t depth,
                       struct why *why) {
        _cleanup_(origin_folder_closedirp) DIR *dir = NULL;
        struct dirent *entry;
        int fd, r;

        if (depth > DEPTH_MAX)
                return origin_folder_fail(walk, why, -ELOOP, "lies deeper than 64 folders");
        /* The root itself may be a link: that is how it was configured. */
        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth > 0 ? O_NOFOLLOW : 0));
        if (fd < 0)
                return why_errno(why, -errno, "%s: \"%s\"", walk->run->shown, walk->path);
        dir = fdopendir(fd);
        if (!dir) {
                r = -errno;
                close(fd);
                return r;
        }
        for (errno = 0; (entry = readdir(dir)); errno = 0) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                r = origin_folder_look_at(walk, dirfd(dir), entry->d_name, n_path, depth, why);
                if (r < 0)
                        return r;
                walk->path[n_path] = '\0';
        }
        if (errno != 0)
                return why_errno(why, -errno, "%s: \"%s\"", walk->run->shown, walk->path);
        return 0;
}

int origin_folder(struct origin_run *run, struct why *why) {
        _cleanup_(freep) char *root = NULL;
        _cleanup_(freep) struct folder_walk *walk = calloc(1, sizeof(*walk)); /* too large for a stack */
        char path[PATH_MAX];
        int r;

        if (!walk)
                return -ENOMEM;
        r = url_local_path(&run->address, path, why);
        if (r < 0)
                return r;
        root = realpath(path, NULL);
        if (!root)
                return why_errno(why, -errno, "%s", run->shown);
        walk->run = run;
        walk->root = root;
        return walk_folder(walk, AT_FDCWD, root, 0, 0, why);
}
