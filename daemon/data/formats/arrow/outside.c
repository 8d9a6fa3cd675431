#include "daemon/data/formats/arrow/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"

void arrow_outside_init(struct arrow_outside *outside, int root_fd, const char *root, struct index_builder *builder) {
        *outside = (struct arrow_outside){ .root_fd = root_fd, .root = root, .builder = builder };
}

void arrow_outside_fini(struct arrow_outside *outside) {
        *outside = (struct arrow_outside){ .root_fd = -1 };
}

/* Reads the path, and makes it relative to the root. */
static int read_path(const struct arrow_outside *outside, int fd, const struct arrow_cell *cell, char *path,
                     const char **ret_inner, struct why *why) {
        size_t n_root = strlen(outside->root);
        char *inner = path;
        int r;

        if (cell->n_bytes >= PATH_MAX)
                return why_set(why, -ENAMETOOLONG, "a path has %llu bytes; %d are allowed",
                               (unsigned long long)cell->n_bytes, PATH_MAX - 1);
        r = arrow_read(fd, path, cell->n_bytes, cell->offset);
        if (r < 0)
                return why_errno(why, r, "a path cannot be read");
        path[cell->n_bytes] = '\0';
        if (strlen(path) != cell->n_bytes)
                return why_set(why, -EINVAL, "the path \"%.200s\" contains a NUL", path);
        if (strncmp(inner, outside->root, n_root) == 0 && inner[n_root] == '/')
                inner += n_root + 1;
        while (inner[0] == '.' && inner[1] == '/')
                inner += 2;
        if (inner[0] == '\0' || !index_is_inner_path(inner))
                return why_set(
                        why, -EINVAL,
                        "the path \"%.200s\" is not within the dataset's folder; copy the files there, or save the "
                        "dataset again with their bytes inside",
                        path);
        *ret_inner = inner;
        return 0;
}

static int add_file(struct arrow_outside *outside, const char *path, const struct stat *status,
                    struct index_row *ret_row) {
        const char *slash = strrchr(path, '/');
        size_t n_dir = slash ? (size_t)(slash - path) : 0;
        uint32_t flags = !status ? INDEX_FILE_UNREACHABLE : S_ISREG(status->st_mode) ? 0 : INDEX_FILE_NOT_REGULAR;
        struct index_row row = { .length = flags ? 0 : (uint64_t)status->st_size };
        int r = 0;

        if (n_dir == 0) {
                outside->dir[0] = '\0';
                outside->idx_dir = 0;
        } else if (strncmp(outside->dir, path, n_dir) != 0 || outside->dir[n_dir] != '\0') {
                memcpy(outside->dir, path, n_dir);
                outside->dir[n_dir] = '\0';
                r = index_builder_add_dir(outside->builder, outside->dir, NULL, &outside->idx_dir);
        }
        if (r >= 0)
                r = index_builder_add_file(outside->builder, outside->idx_dir, slash ? slash + 1 : path, flags,
                                           &row.file);
        if (r >= 0)
                *ret_row = row;
        return r;
}

int arrow_outside_find(struct arrow_outside *outside, int fd, const struct arrow_cell *cell, struct index_row *ret_row,
                       struct why *why) {
        char path[PATH_MAX];
        const char *inner = path;
        struct stat status;
        int r = read_path(outside, fd, cell, path, &inner, why);

        if (r < 0)
                return r;
        r = fstatat(outside->root_fd, inner, &status, 0);
        r = add_file(outside, inner, r < 0 ? NULL : &status, ret_row);
        return r < 0 ? why_set(why, r, "no memory for its index") : 0;
}
