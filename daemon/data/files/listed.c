#include "daemon/data/files/listed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/files/splits.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

void listed_fini(struct listed *listed) {
        free(listed->names);
        growing_fini(&listed->memory);
        *listed = (struct listed){ 0 };
}

/* Gathers the names one after the other, each with a NUL. Takes the descriptor. */
static int gather(struct listed *listed, int fd, bool (*is_taken)(const char *name)) {
        struct dirent *entry;
        DIR *dir = fdopendir(fd);
        int r = 0;

        if (!dir) {
                r = -errno;
                close(fd);
                return r;
        }
        while (r >= 0) {
                errno = 0;
                entry = readdir(dir);
                if (!entry) {
                        r = -errno; /* errno is 0 at the end of the folder */
                        break;
                }
                if (!is_taken(entry->d_name)) {
                        indexing_pass_over(entry->d_name, is_taken);
                        continue;
                }
                r = growing_append(&listed->memory, entry->d_name, strlen(entry->d_name) + 1);
                listed->n++;
        }
        closedir(dir);
        return r;
}

static int by_name(const void *one, const void *other) {
        return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static int sort(struct listed *listed) {
        const char *name = (const char *)listed->memory.bytes;

        if (listed->n == 0)
                return 0;
        listed->names = calloc(listed->n, sizeof(*listed->names));
        if (!listed->names)
                return -ENOMEM;
        for (size_t i = 0; i < listed->n; i++, name += strlen(name) + 1)
                listed->names[i] = name;
        qsort(listed->names, listed->n, sizeof(*listed->names), by_name);
        return 0;
}

static int list_folder(struct listed *listed, int root_fd, const struct files *files,
                       bool (*is_taken)(const char *name), int64_t *settled_ns, struct why *why) {
        int fd = beneath_open(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : index_settle(fd, settled_ns, &listed->folder);

        if (r < 0) {
                closep(&fd);
                return why_errno(why, r, "%s: the folder cannot be read", files->root);
        }
        r = gather(listed, fd, is_taken);
        if (r >= 0)
                r = sort(listed);
        return r < 0 ? why_errno(why, r, "%s: the folder cannot be read to its end", files->root) : 0;
}

int listed_find(struct listed *listed, int root_fd, const struct files *files, bool (*is_taken)(const char *name),
                int64_t *settled_ns, struct why *why) {
        if (files->n_names == 0)
                return list_folder(listed, root_fd, files, is_taken, settled_ns, why);
        if (beneath_stat(root_fd, ".", &listed->folder) < 0)
                return why_errno(why, -errno, "%s: the folder cannot be looked at", files->root);
        listed->names = calloc(files->n_names, sizeof(*listed->names));
        if (!listed->names)
                return why_errno(why, -ENOMEM, "%s: the names of its files", files->root);
        memcpy(listed->names, files->names, files->n_names * sizeof(*listed->names));
        listed->n = files->n_names;
        return 0;
}

int listed_choose(struct listed *listed, const struct files *files, const char *split, struct why *why) {
        if (files->n_names == 0)
                return splits_choose(files->root, split, listed->names, &listed->n, why);
        return split ? why_set(why, -EINVAL,
                               "%s/%s: the path names the files, so split = \"%s\" chooses nothing; name the folder, "
                               "or leave split out",
                               files->root, files->names[0], split)
                     : 0;
}

int listed_open(int root_fd, const char *root, const char *name, int64_t *settled_ns, struct stat *ret_status,
                struct why *why) {
        /* O_NONBLOCK: opening a FIFO must not block. */
        _cleanup_(closep) int fd = beneath_open(root_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        int r;

        if (fd < 0)
                return why_errno(why, -errno, "%s/%s", root, name);
        r = index_settle(fd, settled_ns, ret_status);
        if (r < 0)
                return why_errno(why, r, "%s/%s cannot be looked at", root, name);
        if (!S_ISREG(ret_status->st_mode))
                return why_set(why, -EINVAL, "%s/%s: is not a regular file", root, name);
        return take_fd(&fd);
}

int listed_read(int fd, void *into, size_t n_bytes, uint64_t offset, struct why *why) {
        int r = indexing_read_at(fd, into, n_bytes, offset);

        if (r == -ENODATA)
                return why_set(why, -EBADMSG, "became shorter while it was read, at byte %" PRIu64, offset);
        return r < 0 ? why_errno(why, r, "cannot be read at byte %" PRIu64, offset) : 0;
}
