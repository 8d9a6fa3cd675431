#include "daemon/data/files/walked.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/formats/name_order.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/index/indexing_sort.h"
#include "proto/base/cleanup.h"

#define LOOK_UP_ENTRIES 4096u /* directory entries between two words about progress */

void walked_fini(struct walked *walked) {
        growing_fini(&walked->texts);
        growing_fini(&walked->dirs);
        growing_fini(&walked->files);
}

static int walked_look_up(struct walked *walked) {
        uint64_t n = walked->n_before + walked_n_files(walked);

        if (indexing_is_over())
                return why_set(walked->why, -ECANCELED, "%s: indexing was cancelled", walked->root);
        if (walked->n_entries++ % LOOK_UP_ENTRIES != 0 || !walked->watch)
                return 0;
        if (walked->watch->part) /* how many there are in all is known at the end */
                walked->watch->part(walked->watch->userdata, n, 0, "files");
        return format_look_up(walked->watch, n, walked->root, walked->why);
}

/* ---- what is found ----------------------------------------------------------------------------------------------- */

int walked_path(const struct walked *walked, uint32_t idx_dir, const char *name, char ret_path[PATH_MAX]) {
        const char *above = walked_text(walked, walked_dir(walked, idx_dir)->path);
        int n = snprintf(ret_path, PATH_MAX, "%s%s%s", above, above[0] ? "/" : "", name);

        if (n >= 0 && n < PATH_MAX)
                return 0;
        return why_set(walked->why, -ENAMETOOLONG, "%s/%s...: the path has more than %d bytes", walked->root, ret_path,
                       PATH_MAX - 1);
}

static int walked_add(struct walked *walked, const char *text, uint64_t *ret_offset, struct growing *list,
                      const void *item, size_t n_item) {
        int r;

        *ret_offset = walked->texts.n_bytes;
        r = growing_append(&walked->texts, text, strlen(text) + 1);
        if (r >= 0)
                r = growing_append(list, item, n_item);
        return r < 0 ? index_builder_refused(r, walked->root, walked->why) : 0;
}

int walked_add_dir(struct walked *walked, uint32_t parent, const char *path) {
        struct walked_dir dir = { .parent = parent };

        if (walked_n_dirs(walked) >= INDEX_DIRS_MAX)
                return index_builder_refused(-E2BIG, walked->root, walked->why);
        if (parent != WALKED_NO_PARENT)
                dir.depth = walked_dir(walked, parent)->depth + 1;
        return walked_add(walked, path, &dir.path, &walked->dirs, &dir, sizeof(dir));
}

int walked_add_file(struct walked *walked, uint32_t idx_dir, const char *name, const struct stat *status) {
        struct walked_file file = { .dir = idx_dir };
        int r;

        file.flags = !status ? INDEX_FILE_UNREACHABLE : S_ISREG(status->st_mode) ? 0 : INDEX_FILE_NOT_REGULAR;
        if (file.flags == 0)
                file.length = (uint64_t)status->st_size;
        r = walked_add(walked, name, &file.name, &walked->files, &file, sizeof(file));
        if (r == 0)
                walked_dir(walked, idx_dir)->n_files++;
        return r;
}

int walked_forget(struct walked *walked) {
        int r;

        growing_clear(&walked->files);
        growing_clear(&walked->texts);
        walked->dirs.n_bytes = sizeof(struct walked_dir);
        r = growing_append(&walked->texts, "", 1); /* the root's path */
        return r < 0 ? index_builder_refused(r, walked->root, walked->why) : 0;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int refuse_loop(const struct walked *walked, uint32_t idx, uint32_t above) {
        const char *path = walked_text(walked, walked_dir(walked, above)->path);

        return why_set(walked->why, -ELOOP, "%s/%s: this link leads back to %s%s%s, which contains it; remove the link",
                       walked->root, walked_text(walked, walked_dir(walked, idx)->path), walked->root,
                       path[0] ? "/" : "", path);
}

static int walked_check_loop(const struct walked *walked, uint32_t idx) {
        const struct walked_dir *dir = walked_dir(walked, idx);

        for (uint32_t above = dir->parent; above != WALKED_NO_PARENT; above = walked_dir(walked, above)->parent)
                if (walked_dir(walked, above)->status.st_dev == dir->status.st_dev &&
                    walked_dir(walked, above)->status.st_ino == dir->status.st_ino)
                        return refuse_loop(walked, idx, above);
        return 0;
}

static int refuse_dir(const struct walked *walked, uint32_t idx, int error, const char *what) {
        const char *path = walked_text(walked, walked_dir(walked, idx)->path);

        return why_errno(walked->why, error, "%s%s%s: the folder cannot be read%s", walked->root, path[0] ? "/" : "",
                         path, what);
}

static int walked_read_entries(struct walked *walked, uint32_t idx, DIR *dir) {
        for (;;) {
                const struct dirent *entry;
                int r = 0;

                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return errno == 0 ? 0 : refuse_dir(walked, idx, -errno, " to its end");
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
                        r = walked_look_up(walked);
                        if (r == 0)
                                r = walked->take(walked->userdata, idx, dirfd(dir), entry);
                }
                if (r < 0)
                        return r;
        }
}

static int walked_read_dir(struct walked *walked, uint32_t idx) {
        const char *path = walked_text(walked, walked_dir(walked, idx)->path);
        int fd = beneath_open(walked->root_fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : index_settle(fd, &walked->settled_ns, &walked_dir(walked, idx)->status);
        DIR *dir = r == 0 ? fdopendir(fd) : NULL;

        if (r == 0 && !dir)
                r = -errno;
        if (r < 0) {
                closep(&fd);
                return refuse_dir(walked, idx, r, "");
        }
        walked_dir(walked, idx)->idx_file = walked_n_files(walked);
        r = walked_check_loop(walked, idx);
        if (r == 0)
                r = walked_read_entries(walked, idx, dir);
        closedir(dir);
        return r;
}

int walked_read_root(struct walked *walked) {
        int r = walked_add_dir(walked, WALKED_NO_PARENT, "");

        return r < 0 ? r : walked_read_dir(walked, 0);
}

int walked_read(struct walked *walked, size_t first) {
        int r = 0;

        for (size_t i = first; r == 0 && i < walked_n_dirs(walked); i++)
                r = walked_read_dir(walked, (uint32_t)i);
        return r;
}

/* ---- sorting ----------------------------------------------------------------------------------------------------- */

static int walked_compare_files(const void *a, const void *b, void *texts) {
        return name_compare((const char *)texts + ((const struct walked_file *)a)->name,
                            (const char *)texts + ((const struct walked_file *)b)->name);
}

static int walked_compare_dirs(const void *a, const void *b, void *texts) {
        return name_compare((const char *)texts + ((const struct walked_dir *)a)->path,
                            (const char *)texts + ((const struct walked_dir *)b)->path);
}

int walked_sort_files(struct walked *walked, size_t first, size_t n) {
        return n > 1 ? indexing_sort(walked_file(walked, first), n, sizeof(struct walked_file), walked_compare_files,
                                     walked->texts.bytes)
                     : 0;
}

int walked_sort_dirs(struct walked *walked, size_t first) {
        return indexing_sort(walked_dir(walked, first), walked_n_dirs(walked) - first, sizeof(struct walked_dir),
                             walked_compare_dirs, walked->texts.bytes);
}
