#include "daemon/data/formats/listing/file_paths.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/keyed_hash.h"
#include "daemon/base/machine/beneath.h"
#include "daemon/data/looks_like.h"
#include "proto/base/cleanup.h"

#define FIRST_DIRS 64u /* a power of two */

/* A folder that is in the index. */
struct file_paths_dir {
        uint64_t path; /* offset into texts: of a path that begins with it */
        uint32_t n_path;
        uint32_t idx_dir; /* 0: this place is empty, since 0 is the root */
};

void file_paths_fini(struct file_paths *paths) {
        growing_fini(&paths->texts);
        growing_fini(&paths->dirs);
}

/* The path that file_paths_add() put there. */
static const char *file_paths_text(const struct file_paths *paths, uint64_t at) {
        return (const char *)paths->texts.bytes + at;
}

/* ---- a path ---------------------------------------------------------------------------------------------------- */

static int file_paths_refuse(const char *path, size_t n, const char *what, struct why *why) {
        return why_set(why, -EINVAL, "the path \"%.*s\" %s", n > 200 ? 200 : (int)n, path, what);
}

/* Appends one component to `into`. Returns false if it does not fit. */
static bool file_paths_append(char *into, size_t *n_into, const char *component, size_t n) {
        if (*n_into + 1 + n >= PATH_MAX)
                return false;
        if (*n_into > 0)
                into[(*n_into)++] = '/';
        memcpy(into + *n_into, component, n);
        *n_into += n;
        into[*n_into] = '\0';
        return true;
}

/* Joins folder and path without "." and empty components: "./a//b" -> "a/b". */
static int file_paths_join(const char *listing, const char *path, size_t n, char *into, struct why *why) {
        const char *slash = strrchr(listing, '/'), *at = path, *end = path + n;
        size_t n_into = 0;

        into[0] = '\0';
        if (slash && !file_paths_append(into, &n_into, listing, (size_t)(slash - listing)))
                return file_paths_refuse(path, n, "is too long", why);
        while (at < end) {
                const char *next = memchr(at, '/', (size_t)(end - at));
                size_t n_one = (size_t)((next ? next : end) - at);

                if (n_one == 2 && at[0] == '.' && at[1] == '.')
                        return file_paths_refuse(path, n, "has \"..\" in it; a path stays within the dataset's folder",
                                                 why);
                if (n_one > 0 && !(n_one == 1 && at[0] == '.') && !file_paths_append(into, &n_into, at, n_one))
                        return file_paths_refuse(path, n, "is too long", why);
                at += n_one + (next != NULL);
        }
        return 0;
}

int file_paths_add(struct file_paths *paths, const char *listing, const char *path, size_t n, uint64_t *ret_at,
                   struct why *why) {
        char joined[PATH_MAX];
        uint64_t at = paths->texts.n_bytes;
        enum field_coding coding;
        enum field_kind kind;
        int r;

        if (n == 0 || memchr(path, '\0', n))
                return file_paths_refuse(path, n, "names no file", why);
        if (path[0] == '/')
                return file_paths_refuse(path, n, "is absolute; write it relative to the folder of the listing", why);
        r = file_paths_join(listing, path, n, joined, why);
        if (r < 0)
                return r;
        if (path[n - 1] == '/' || joined[0] == '\0')
                return file_paths_refuse(path, n, "names no file", why);
        r = growing_append(&paths->texts, joined, strlen(joined) + 1);
        if (r < 0)
                return why_set(why, r, "no memory for a path");
        kind = kind_of_file(joined);
        paths->kind = !paths->has_any || paths->kind == kind ? kind : FIELD_BYTES;
        coding = coding_of_file(joined);
        paths->coding = !paths->has_any || paths->coding == coding ? coding : CODING_PLAIN;
        paths->has_any = true;
        *ret_at = at;
        return 0;
}

bool file_paths_exists(const struct file_paths *paths, uint64_t at, int root_fd) {
        struct stat status;

        return beneath_stat(root_fd, file_paths_text(paths, at), &status) == 0 && S_ISREG(status.st_mode);
}

/* ---- the index ------------------------------------------------------------------------------------------------- */

/* The place of this folder in the table, or the empty one where it belongs. */
static struct file_paths_dir *file_paths_place_of(const struct file_paths *paths, const char *dir, size_t n) {
        struct file_paths_dir *table = (void *)paths->dirs.bytes;
        size_t mask = paths->dirs.n_bytes / sizeof(*table) - 1, at = keyed_hash(dir, n) & mask;

        while (table[at].idx_dir != 0 &&
               (table[at].n_path != n || memcmp(file_paths_text(paths, table[at].path), dir, n) != 0))
                at = (at + 1) & mask;
        return &table[at];
}

static int grow_table(struct file_paths *paths) {
        size_t n_places = paths->dirs.n_bytes / sizeof(struct file_paths_dir);
        struct growing before = paths->dirs;
        const struct file_paths_dir *old = (void *)before.bytes;
        int r;

        if (2 * (paths->n_dirs + 1) < n_places)
                return 0;
        paths->dirs = (struct growing){ 0 };
        r = growing_append(&paths->dirs, NULL, (n_places > 0 ? 2 * n_places : FIRST_DIRS) * sizeof(*old));
        if (r < 0) {
                paths->dirs = before;
                return r;
        }
        for (size_t i = 0; i < n_places; i++)
                if (old[i].idx_dir != 0)
                        *file_paths_place_of(paths, file_paths_text(paths, old[i].path), old[i].n_path) = old[i];
        growing_fini(&before);
        return 0;
}

/* The folder of a path, with its status: the index notices when files come or go there. */
static int file_paths_give_dir(struct file_paths *paths, uint64_t at, size_t n, int root_fd,
                               struct index_builder *builder, uint32_t *ret_dir) {
        char dir[PATH_MAX];
        struct file_paths_dir *place;
        struct stat status;
        int r = grow_table(paths);

        if (r < 0)
                return r;
        memcpy(dir, file_paths_text(paths, at), n);
        dir[n] = '\0';
        place = file_paths_place_of(paths, dir, n);
        if (place->idx_dir == 0) {
                bool is_there = beneath_stat(root_fd, dir, &status) == 0 && S_ISDIR(status.st_mode);

                r = index_builder_add_dir(builder, dir, is_there ? &status : NULL, &place->idx_dir);
                if (r < 0)
                        return r;
                place->path = at;
                place->n_path = (uint32_t)n;
                paths->n_dirs++;
        }
        *ret_dir = place->idx_dir;
        return 0;
}

int file_paths_miss(struct file_paths *paths, uint64_t at, int root_fd, struct index_builder *builder,
                    bool *ret_is_missing) {
        const char *path = file_paths_text(paths, at), *slash = strrchr(path, '/');
        struct stat status;
        uint32_t idx_dir;

        *ret_is_missing = beneath_stat(root_fd, path, &status) < 0 && (errno == ENOENT || errno == ENOTDIR);
        return *ret_is_missing && slash
                       ? file_paths_give_dir(paths, at, (size_t)(slash - path), root_fd, builder, &idx_dir)
                       : 0;
}

int file_paths_give(struct file_paths *paths, uint64_t at, int root_fd, struct index_builder *builder,
                    struct index_row *ret_row) {
        const char *path = file_paths_text(paths, at), *slash = strrchr(path, '/');
        struct index_row row = { .offset = 0 };
        struct stat status;
        uint32_t idx_dir = 0, flags = 0;
        int r = slash ? file_paths_give_dir(paths, at, (size_t)(slash - path), root_fd, builder, &idx_dir) : 0;

        if (r < 0)
                return r;
        if (beneath_stat(root_fd, path, &status) < 0)
                flags = INDEX_FILE_UNREACHABLE;
        else if (!S_ISREG(status.st_mode))
                flags = INDEX_FILE_NOT_REGULAR;
        else
                row.length = (uint64_t)status.st_size;
        r = index_builder_add_file(builder, idx_dir, slash ? slash + 1 : path, flags, &row.file);
        if (r == 0)
                *ret_row = row;
        return r;
}
