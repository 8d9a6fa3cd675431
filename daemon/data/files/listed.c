#include "daemon/data/files/listed.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

void listed_fini(struct listed *listed) {
        free(listed->names);
        growing_fini(&listed->memory);
        listed->names = NULL;
        listed->n = 0;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

int listed_add(struct listed *listed, const char *name) {
        const char *part = listed->part;
        size_t n_part = strlen(part);

        listed->n++;
        if (n_part > 0 &&
            (growing_append(&listed->memory, part, n_part) < 0 || growing_append(&listed->memory, "/", 1) < 0))
                return -ENOMEM;
        return growing_append(&listed->memory, name, strlen(name) + 1) < 0 ? -ENOMEM : 0;
}

int listed_end(struct listed *listed) {
        const char *name = (const char *)listed->memory.bytes;

        listed->names = calloc(listed->n + 1, sizeof(*listed->names));
        if (!listed->names)
                return -ENOMEM;
        for (size_t i = 0; i < listed->n; i++, name += strlen(name) + 1)
                listed->names[i] = name;
        return 0;
}

static int listed_by_name(const void *one, const void *other) {
        return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* ---- a folder ---------------------------------------------------------------------------------------------------- */

/* A folder that is called as a file is taken, too, and refused when it is opened: without it this would be another
 * dataset. Where only folders are called so, as by Spark, the files are in them. */
static int listed_gather(struct listed *listed, DIR *dir, bool (*is_taken)(const char *name)) {
        const struct dirent *entry;
        size_t n_files = 0;
        int r = 0;

        for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
                if (!is_taken(entry->d_name)) {
                        indexing_pass_over(entry->d_name, is_taken);
                        continue;
                }
                r = listed_add(listed, entry->d_name);
                n_files += entry->d_type != DT_DIR;
        }
        if (r == 0)
                r = -errno; /* 0 at the end of the folder */
        if (n_files == 0)
                listed_fini(listed);
        if (r == 0)
                r = listed_end(listed);
        if (r == 0)
                qsort(listed->names, listed->n, sizeof(*listed->names), listed_by_name);
        return r;
}

/* The root is looked at when its own files are listed: what it has below is looked for after that. */
int listed_note(struct listed *listed, int root_fd, const char *root, const char *part, int64_t *settled_ns,
                struct why *why) {
        const char *end = part;
        size_t depth = 0;
        int r;

        do {
                char path[PATH_MAX] = ".";
                _cleanup_(closep) int fd = -1;

                if (*end) {
                        end = strchrnul(end + (depth++ > 0), '/');
                        snprintf(path, sizeof(path), "%.*s", (int)(end - part), part);
                }
                assert(depth < ARRAY_SIZE(listed->folders));
                fd = beneath_open(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                r = fd < 0 ? -errno : index_settle(fd, settled_ns, &listed->folders[depth]);
        } while (r == 0 && *end);
        if (part[0] && (r == -ENOENT || r == -ENOTDIR))
                return LISTED_NOT_THERE;
        if (r < 0)
                return why_errno(why, r, "%s%s%s: the folder cannot be read", root, part[0] ? "/" : "", part);
        memmove(listed->part, part, strlen(part) + 1);
        return 0;
}

int listed_folder(struct listed *listed, int root_fd, const char *root, const char *part,
                  bool (*is_taken)(const char *name), int64_t *settled_ns, struct why *why) {
        int fd, r = listed_note(listed, root_fd, root, part, settled_ns, why);
        DIR *dir;

        listed_fini(listed);
        if (r != 0)
                return r < 0 ? r : 0;
        fd = beneath_open(root_fd, part[0] ? part : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = fd < 0 ? NULL : fdopendir(fd);
        r = dir ? listed_gather(listed, dir, is_taken) : -errno;
        if (dir)
                closedir(dir);
        else
                closep(&fd);
        return r < 0 ? why_errno(why, r, "%s%s%s: the folder cannot be read to its end", root, part[0] ? "/" : "", part)
                     : 0;
}

int listed_find(struct listed *listed, int root_fd, const struct files *files, bool (*is_taken)(const char *name),
                int64_t *settled_ns, struct why *why) {
        if (files->n_names == 0)
                return listed_folder(listed, root_fd, files->root, "", is_taken, settled_ns, why);
        if (beneath_stat(root_fd, ".", &listed->folders[0]) < 0)
                return why_errno(why, -errno, "%s: the folder cannot be looked at", files->root);
        listed->names = calloc(files->n_names, sizeof(*listed->names));
        if (!listed->names)
                return why_errno(why, -ENOMEM, "%s: the names of its files", files->root);
        memcpy(listed->names, files->names, files->n_names * sizeof(*listed->names));
        listed->n = files->n_names;
        return 0;
}

int listed_give_root(const struct listed *listed, const struct files *files, struct index_builder *builder) {
        const char *end = listed->part;
        uint32_t idx_dir;
        int r = index_builder_add_dir(builder, "", &listed->folders[0], &idx_dir);

        if (r == 0 && files->n_names > 0)
                index_builder_set_named(builder);
        for (size_t depth = 1; *end && r == 0; depth++) {
                char path[PATH_MAX];

                end = strchrnul(end + (depth > 1), '/');
                snprintf(path, sizeof(path), "%.*s", (int)(end - listed->part), listed->part);
                r = index_builder_add_dir(builder, path, &listed->folders[depth], &idx_dir);
        }
        return r;
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

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
        ret_status->st_size = (off_t)indexing_length(name, (uint64_t)ret_status->st_size);
        return take_fd(&fd);
}

int listed_read(int fd, void *into, size_t n_bytes, uint64_t offset, struct why *why) {
        int r = indexing_read_at(fd, into, n_bytes, offset);

        if (r == -ENODATA)
                return why_set(why, -EBADMSG, "became shorter while it was read, at byte %" PRIu64, offset);
        return r < 0 ? why_errno(why, r, "cannot be read at byte %" PRIu64, offset) : 0;
}
