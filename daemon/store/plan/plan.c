#include "daemon/store/plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/plan/digest.h"
#include "daemon/store/plan/plan_private.h"
#include "daemon/store/record/url.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define DATE_MAX 63u
#define ETAG_MAX 255u /* bytes: as much as http_look() tells */

/* ---- building ------------------------------------------------------------------------------------------------ */

static int plan_check_file(const struct plan_file *file, struct why *why) {
        struct url address;
        struct why inner = { 0 };
        int r = plan_path_check(file->path, strlen(file->path), why);

        if (r < 0)
                return r;
        if (file->n_bytes >= PLAN_BYTES_MAX && file->n_bytes != PLAN_SIZE_UNKNOWN)
                return why_set(why, -EINVAL, "path \"%s\": a size of 8 PiB or more is not believed", file->path);
        if (file->n_urls == 0 || file->n_urls > PLAN_URLS_MAX)
                return why_set(why, -EINVAL, "path \"%s\" has %u URLs; 1 to %u are allowed", file->path, file->n_urls,
                               PLAN_URLS_MAX);
        if (file->etag && (file->etag[0] == '\0' || strlen(file->etag) > ETAG_MAX || !text_is_printable(file->etag)))
                return why_set(why, -EINVAL, "path \"%s\": its ETag is empty, above %u bytes or not text", file->path,
                               ETAG_MAX);
        if (file->modified && (strlen(file->modified) > DATE_MAX || !text_is_printable(file->modified)))
                return why_set(why, -EINVAL, "path \"%s\": its Last-Modified is above %u bytes or not text", file->path,
                               DATE_MAX);
        for (uint32_t i = 0; i < file->n_urls; i++) {
                r = url_parse(file->urls[i], &address, &inner);
                if (r < 0)
                        return why_set(why, r, "path \"%s\": %s", file->path, inner.text);
        }
        return 0;
}

static int plan_make_room(struct plan **begun) {
        struct plan *plan = *begun ? *begun : calloc(1, sizeof(*plan));
        struct plan_file *files;
        uint64_t n_room;

        if (!plan)
                return -ENOMEM;
        *begun = plan;
        if (plan->n_files < plan->n_room)
                return 0;
        n_room = plan->n_room ? plan->n_room + plan->n_room / 2 : 64;
        files = reallocarray(plan->files, n_room, sizeof(*files));
        if (!files)
                return -ENOMEM;
        plan->files = files;
        plan->n_room = n_room;
        return 0;
}

static int copy_file(struct plan_arena *arena, const struct plan_file *from, struct plan_file *ret_file) {
        const char **urls = plan_arena_take(arena, from->n_urls * sizeof(*urls));
        struct plan_file file = *from;
        bool is_whole = urls != NULL;

        file.path = plan_arena_text(arena, from->path, strlen(from->path));
        if (from->etag)
                file.etag = plan_arena_text(arena, from->etag, strlen(from->etag));
        if (from->modified)
                file.modified = plan_arena_text(arena, from->modified, strlen(from->modified));
        if (from->sha256)
                file.sha256 = (const uint8_t *)plan_arena_text(arena, (const char *)from->sha256, SHA256_BYTES);
        for (uint32_t i = 0; i < from->n_urls && is_whole; i++) {
                urls[i] = plan_arena_text(arena, from->urls[i], strlen(from->urls[i]));
                is_whole = urls[i] != NULL;
        }
        if (!is_whole || !file.path || (from->etag && !file.etag) || (from->modified && !file.modified) ||
            (from->sha256 && !file.sha256))
                return -ENOMEM;
        file.urls = urls;
        *ret_file = file;
        return 0;
}

int plan_add(struct plan **begun, const struct plan_file *file, struct why *why) {
        struct plan *plan;
        int r;

        if (*begun && (*begun)->n_files >= PLAN_FILES_MAX)
                return why_set(why, -E2BIG, "more than %llu files; pack them into archives", PLAN_FILES_MAX);
        r = plan_check_file(file, why);
        if (r == 0)
                r = plan_make_room(begun);
        if (r < 0)
                return r;
        plan = *begun;
        r = copy_file(&plan->arena, file, &plan->files[plan->n_files]);
        if (r == 0)
                plan->n_files++;
        return r;
}

/* ---- finishing ----------------------------------------------------------------------------------------------- */

static int by_path(const void *left, const void *right) {
        return strcmp(((const struct plan_file *)left)->path, ((const struct plan_file *)right)->path);
}

/* Frees the room for more files. */
static void plan_trim(struct plan *plan) {
        struct plan_file *files = reallocarray(plan->files, plan->n_files, sizeof(*files));

        if (files)
                plan->files = files;
}

/* Most listings are sorted already. */
static void plan_sort(struct plan *plan) {
        for (uint64_t i = 1; i < plan->n_files; i++)
                if (by_path(&plan->files[i - 1], &plan->files[i]) > 0) {
                        qsort(plan->files, plan->n_files, sizeof(*plan->files), by_path);
                        return;
                }
}

static int plan_add_up(struct plan *plan, struct why *why) {
        for (uint64_t i = 0; i < plan->n_files; i++) {
                const struct plan_file *file = &plan->files[i];

                if (file->n_bytes == PLAN_SIZE_UNKNOWN)
                        return why_set(why, -EINVAL, "path \"%s\" has no size", file->path);
                if (plan->n_bytes > INT64_MAX - file->n_bytes)
                        return why_set(why, -E2BIG, "the files are more than 8 EiB together");
                plan->n_bytes += file->n_bytes;
        }
        return 0;
}

/* Of each file: path NUL, size as text NUL, 's' and 32 bytes or 'e' and the ETag NUL or '-', then 'u' or '-': every
 * part says where it ends, so no two plans are hashed as the same bytes. */
static void plan_hash_file(struct sha256 *sha, const struct plan_file *file) {
        char size[24];
        int n = snprintf(size, sizeof(size), "%llu", (unsigned long long)file->n_bytes);

        sha256_add(sha, file->path, strlen(file->path) + 1);
        sha256_add(sha, size, (size_t)n + 1);
        if (file->sha256) {
                sha256_add(sha, "s", 1);
                sha256_add(sha, file->sha256, SHA256_BYTES);
        } else if (file->etag) {
                sha256_add(sha, "e", 1);
                sha256_add(sha, file->etag, strlen(file->etag) + 1);
        } else {
                sha256_add(sha, "-", 1);
        }
        sha256_add(sha, file->unpack ? "u" : "-", 1);
}

/* Of the digest, and of number and date of each file that has one. */
static void hash_state(struct plan *plan, struct sha256 *sha) {
        uint8_t digest[SHA256_BYTES];
        uint64_t n_dated = 0;

        sha256_restart(sha);
        sha256_add(sha, plan->digest, sizeof(plan->digest));
        for (uint64_t i = 0; i < plan->n_files; i++)
                if (plan->files[i].modified) {
                        sha256_add(sha, &i, sizeof(i));
                        sha256_add(sha, plan->files[i].modified, strlen(plan->files[i].modified) + 1);
                        n_dated++;
                }
        sha256_end(sha, digest);
        if (n_dated > 0)
                sha256_text(digest, plan->state);
        else
                memcpy(plan->state, plan->digest, sizeof(plan->state));
}

static int hash(struct plan *plan) {
        uint8_t digest[SHA256_BYTES];
        struct sha256 sha;
        int r = sha256_init(&sha);

        if (r < 0)
                return r;
        for (uint64_t i = 0; i < plan->n_files; i++)
                plan_hash_file(&sha, &plan->files[i]);
        sha256_end(&sha, digest);
        sha256_text(digest, plan->digest);
        hash_state(plan, &sha);
        sha256_fini(&sha);
        return 0;
}

int plan_finish(struct plan **begun, struct plan **ret_plan, struct why *why) {
        _cleanup_(plan_freep) struct plan *plan = TAKE_PTR(*begun);
        int r;

        if (!plan || plan->n_files == 0)
                return why_set(why, -EINVAL, "it has no files");
        plan_trim(plan);
        plan_sort(plan);
        r = plan_add_up(plan, why);
        if (r == 0)
                r = plan_check_clashes(plan, why);
        if (r == 0)
                r = hash(plan);
        if (r < 0)
                return r;
        *ret_plan = TAKE_PTR(plan);
        return 0;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

void plan_free(struct plan *plan) {
        if (!plan)
                return;
        plan_arena_free(&plan->arena);
        free(plan->files);
        free(plan);
}

void plan_freep(struct plan **plan) {
        plan_free(*plan);
}

uint64_t plan_n_files(const struct plan *plan) {
        return plan->n_files;
}

uint64_t plan_n_bytes(const struct plan *plan) {
        return plan->n_bytes;
}

const char *plan_digest(const struct plan *plan) {
        return plan->digest;
}

const char *plan_state(const struct plan *plan) {
        return plan->state;
}

const struct plan_file *plan_file(const struct plan *plan, uint64_t idx) {
        return &plan->files[idx];
}

bool plan_has_archives(const struct plan *plan) {
        for (uint64_t i = 0; i < plan->n_files; i++)
                if (plan->files[i].unpack)
                        return true;
        return false;
}

int64_t plan_find(const struct plan *plan, const char *path) {
        uint64_t low = 0, high = plan->n_files;

        while (low < high) {
                uint64_t middle = low + (high - low) / 2;
                int order = strcmp(plan->files[middle].path, path);

                if (order == 0)
                        return (int64_t)middle;
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return -1;
}
