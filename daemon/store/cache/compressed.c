#include "daemon/store/cache/compressed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/machine/beneath.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define DEPTH_MAX 4u
#define FILES_MAX 1000000u

size_t compressed_plain_length(const char *name) {
        static const char *const ENDINGS[] = { ".gz", ".zst", ".zstd", ".xz", ".bz2", ".lz4" };
        const char *slash = strrchr(name, '/');
        size_t n = strlen(name), n_folder = slash ? (size_t)(slash + 1 - name) : 0;

        for (size_t i = 0; i < ARRAY_SIZE(ENDINGS); i++)
                if (text_ends_with(name, ENDINGS[i]) && n - strlen(ENDINGS[i]) > n_folder)
                        return n - strlen(ENDINGS[i]);
        return 0;
}

void compressed_plain_path(const struct compressed_file *file, char ret_path[PATH_MAX]) {
        snprintf(ret_path, PATH_MAX, "%.*s", file->n_plain > 0 ? (int)file->n_plain : PATH_MAX - 1, file->path);
}

/* What of it must be the same. Times of files that are filled as they are read say nothing: its listing does. */
static uint64_t state_of(const struct unpacked_terms *terms, const struct file_stamp *stamp) {
        if (terms->cached)
                return XXH3_64bits_withSeed(cached_digest(terms->cached), 64, stamp->n_bytes);
        return XXH3_64bits(stamp, sizeof(*stamp));
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static int compressed_add(const struct unpacked_terms *terms, struct compressed *files, const char *path,
                          const struct stat *status) {
        struct compressed_file *more, *file;
        char plain[PATH_MAX];

        if (files->n == files->n_room) {
                size_t n_room = files->n_room > 0 ? 2 * files->n_room : 64;

                more = n_room <= FILES_MAX ? realloc(files->list, n_room * sizeof(*more)) : NULL;
                if (!more)
                        return n_room <= FILES_MAX ? -ENOMEM : -E2BIG;
                files->list = more;
                files->n_room = n_room;
        }
        file = &files->list[files->n];
        *file = (struct compressed_file){ .path = strdup(path),
                                          .n_plain = compressed_plain_length(path),
                                          .stamp = file_stamp_of(status) };
        if (!file->path)
                return -ENOMEM;
        files->n++;
        compressed_plain_path(file, plain);
        file->number = XXH3_64bits(plain, strlen(plain));
        file->state = state_of(terms, &file->stamp);
        files->n_bytes += file->stamp.n_bytes;
        return 0;
}

static int compressed_walk(const struct unpacked_terms *terms, struct compressed *files, const char *folder,
                           uint32_t depth) {
        int fd = beneath_open(terms->root_fd, folder[0] ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *entry;

        if (!dir) {
                r = -errno;
                closep(&fd);
                return r;
        }
        while (r == 0 && (entry = readdir(dir))) {
                char path[PATH_MAX];
                struct stat status;

                if (entry->d_name[0] == '.' ||
                    snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] ? "/" : "", entry->d_name) >=
                            (int)sizeof(path) ||
                    beneath_stat(terms->root_fd, path, &status) < 0)
                        continue;
                if (S_ISREG(status.st_mode))
                        r = compressed_add(terms, files, path, &status);
                else if (S_ISDIR(status.st_mode) && depth < DEPTH_MAX)
                        r = compressed_walk(terms, files, path, depth + 1);
        }
        closedir(dir);
        return r;
}

static int compressed_by_number(const void *a, const void *b) {
        const struct compressed_file *one = a, *other = b;

        return one->number < other->number ? -1 : one->number > other->number;
}

/* Large ones first would be best for threads, but they are found by their numbers later. */
static int compressed_sort(const struct unpacked_terms *terms, struct compressed *files, struct why *why) {
        size_t n_compressed = 0;

        for (size_t i = 0; i < files->n; i++)
                n_compressed += files->list[i].n_plain > 0;
        if (n_compressed == 0)
                return why_set(why, -ENOENT, "%s: nothing in it is compressed", terms->root);
        qsort(files->list, files->n, sizeof(*files->list), compressed_by_number);
        for (size_t i = 1; i < files->n; i++)
                if (files->list[i - 1].number == files->list[i].number)
                        return why_set(why, -EEXIST, "%s: %s and %s would both be the same file; remove one of them",
                                       terms->root, files->list[i - 1].path, files->list[i].path);
        return 0;
}

int compressed_find(const struct unpacked_terms *terms, struct compressed *ret_files, struct why *why) {
        struct compressed files = { 0 };
        int r = 0;

        for (size_t i = 0; i < terms->n_names && r == 0; i++) {
                struct stat status;

                r = beneath_stat(terms->root_fd, terms->names[i], &status) < 0 ? -errno : 0;
                if (r == 0)
                        r = S_ISREG(status.st_mode) ? compressed_add(terms, &files, terms->names[i], &status) : -EINVAL;
                if (r < 0)
                        why_errno(why, r, "%s/%s", terms->root, terms->names[i]);
        }
        if (terms->n_names == 0) {
                r = compressed_walk(terms, &files, "", 1);
                if (r < 0)
                        why_errno(why, r, "%s", terms->root);
        }
        if (r == 0)
                r = compressed_sort(terms, &files, why);
        if (r < 0)
                compressed_fini(&files);
        else
                *ret_files = files;
        return r;
}

void compressed_fini(struct compressed *files) {
        for (size_t i = 0; i < files->n; i++)
                free(files->list[i].path);
        free(files->list);
        *files = (struct compressed){ 0 };
}

/* ---- later ------------------------------------------------------------------------------------------------------- */

static struct compressed_file *compressed_with(const struct compressed *files, uint64_t number) {
        struct compressed_file key = { .number = number };

        return bsearch(&key, files->list, files->n, sizeof(*files->list), compressed_by_number);
}

void compressed_mark(struct compressed *files, uint64_t number, uint64_t state, uint64_t n_bytes, bool is_there) {
        struct compressed_file *file = compressed_with(files, number);

        if (!file)
                return;
        file->is_there = is_there && file->state == state;
        file->n_bytes = file->is_there ? n_bytes : 0;
}

void compressed_remove_others(const struct compressed *files, int fd) {
        struct compressed there = { 0 };

        compressed_walk(&(struct unpacked_terms){ .root_fd = fd }, &there, "", 1);
        for (size_t i = 0; i < there.n; i++)
                if (!compressed_with(files, XXH3_64bits(there.list[i].path, strlen(there.list[i].path))))
                        unlinkat(fd, there.list[i].path, 0);
        compressed_fini(&there);
}

bool compressed_is_current(const struct compressed *files, int root_fd) {
        for (size_t i = 0; i < files->n; i++) {
                struct file_stamp now;
                struct stat status;

                if (beneath_stat(root_fd, files->list[i].path, &status) < 0)
                        return errno != ENOENT;
                now = file_stamp_of(&status);
                if (file_stamp_compare(&files->list[i].stamp, &now) == FILE_HAS_CHANGED)
                        return false;
        }
        return true;
}
