#include "daemon/data/formats/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/beneath.h"
#include "proto/base/cleanup.h"

void outside_init(struct outside_files *outside, int root_fd, const char *root, struct index_builder *builder) {
        *outside = (struct outside_files){ .root_fd = root_fd, .root = root, .builder = builder };
}

int outside_check_length(uint64_t n_bytes, struct why *why) {
        if (n_bytes < PATH_MAX)
                return 0;
        return why_set(why, -ENAMETOOLONG, "a path has %llu bytes; %d are allowed", (unsigned long long)n_bytes,
                       PATH_MAX - 1);
}

/* Makes the path relative to the root. */
static int outside_find_inner(const struct outside_files *outside, const char *path, uint64_t n_bytes,
                              const char **ret_inner, struct why *why) {
        size_t n_root = strlen(outside->root);
        const char *inner = path;

        if (strlen(path) != n_bytes)
                return why_set(why, -EINVAL, "the path \"%s\" contains a NUL", path);
        if (strncmp(inner, outside->root, n_root) == 0 && inner[n_root] == '/')
                inner += n_root + 1;
        while (inner[0] == '.' && inner[1] == '/')
                inner += 2;
        if (inner[0] == '\0' || !index_is_inner_path(inner))
                return why_set(why, -EINVAL,
                               "the path \"%s\" is not within the dataset's folder; copy the files there, or save the "
                               "dataset again with their bytes inside",
                               path);
        *ret_inner = inner;
        return 0;
}

static int outside_add_file(const struct outside_files *outside, const char *path, const struct stat *status,
                            struct index_row *ret_row) {
        uint32_t flags = !status ? INDEX_FILE_UNREACHABLE : S_ISREG(status->st_mode) ? 0 : INDEX_FILE_NOT_REGULAR;
        struct index_row row = { .length = flags ? 0 : (uint64_t)status->st_size };
        int r = index_builder_add_path(outside->builder, path, flags, &row.file);

        if (r >= 0)
                *ret_row = row;
        return r;
}

int outside_find(struct outside_files *outside, const char *path, uint64_t n_bytes, struct index_row *ret_row,
                 struct why *why) {
        const char *inner = path;
        struct stat status;
        int r = outside_check_length(n_bytes, why);

        if (r == 0)
                r = outside_find_inner(outside, path, n_bytes, &inner, why);
        if (r < 0)
                return r;
        r = beneath_stat(outside->root_fd, inner, &status);
        r = outside_add_file(outside, inner, r < 0 ? NULL : &status, ret_row);
        return r < 0 ? why_set(why, r, "%s", index_builder_text(r)) : 0;
}
