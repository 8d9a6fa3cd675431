#include "daemon/io/kept_files.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "proto/base/clock.h"

#define UNUSED_NS (5ull * 1000000000) /* a file that was not read for this long may make room for another */

static struct kept_file **kept_files_bucket_of(const struct kept_files *files, const void *owner, uint32_t idx_file,
                                               bool past_cache) {
        uint64_t key = ((uint64_t)(uintptr_t)owner + idx_file) * 2 + past_cache;

        key *= 0x9e3779b97f4a7c15ull;
        return &files->buckets[key >> 32 & (files->n_buckets - 1)];
}

static struct kept_file **own_bucket(const struct kept_files *files, const struct kept_file *file) {
        return kept_files_bucket_of(files, file->owner, file->idx_file, file->past_cache);
}

/* ---- making and freeing -------------------------------------------------------------------------------------- */

/* A quarter of the descriptors: the others are for clients and their rings. */
static uint32_t n_files_allowed(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 4 > KEPT_FILES_MAX)
                return KEPT_FILES_MAX;
        return limit.rlim_cur < 8 ? 1 : (uint32_t)(limit.rlim_cur / 4);
}

int kept_files_init(struct kept_files *files) {
        *files = (struct kept_files){ .n_max = n_files_allowed(), .n_buckets = 1 };
        TAILQ_INIT(&files->by_use);
        TAILQ_INIT(&files->free);
        TAILQ_INIT(&files->unwanted);
        while (files->n_buckets < files->n_max)
                files->n_buckets *= 2;
        files->files = calloc(files->n_max, sizeof(*files->files));
        files->buckets = calloc(files->n_buckets, sizeof(*files->buckets));
        if (!files->files || !files->buckets) {
                free(files->files);
                free(files->buckets);
                files->buckets = NULL;
                return -ENOMEM;
        }
        pthread_mutex_init(&files->lock, NULL);
        for (uint32_t i = 0; i < files->n_max; i++)
                TAILQ_INSERT_TAIL(&files->free, &files->files[i], entry);
        return 0;
}

void kept_files_fini(struct kept_files *files) {
        struct kept_file *file;

        if (!files->buckets)
                return;
        kept_files_close(files);
        TAILQ_FOREACH(file, &files->by_use, entry) {
                assert(file->n_users == 0);
                close(file->fd);
        }
        pthread_mutex_destroy(&files->lock);
        free(files->buckets);
        free(files->files);
        files->buckets = NULL;
}

/* ---- called with the lock held ------------------------------------------------------------------------------- */

static struct kept_file *find_locked(struct kept_files *files, const struct read_request *request) {
        struct kept_file *file = *kept_files_bucket_of(files, request->owner, request->idx_file, request->past_cache);

        while (file && (file->owner != request->owner || file->idx_file != request->idx_file ||
                        file->past_cache != request->past_cache))
                file = file->next;
        if (!file)
                return NULL;
        file->n_users++;
        file->used_ns = clock_now_ns();
        TAILQ_REMOVE(&files->by_use, file, entry);
        TAILQ_INSERT_TAIL(&files->by_use, file, entry);
        return file;
}

/* Removes it from the table. Returns true if the caller must have it closed, because no thread uses it. */
static bool drop_locked(struct kept_files *files, struct kept_file *file) {
        struct kept_file **place = own_bucket(files, file);

        while (*place != file)
                place = &(*place)->next;
        *place = file->next;
        TAILQ_REMOVE(&files->by_use, file, entry);
        file->is_forgotten = true;
        if (file->n_users > 0)
                return false;
        TAILQ_INSERT_TAIL(&files->unwanted, file, entry);
        return true;
}

/* The file that may be closed to make room, or NULL. */
static struct kept_file *unused_locked(const struct kept_files *files) {
        struct kept_file *file = TAILQ_FIRST(&files->by_use);

        return file && file->n_users == 0 && clock_now_ns() - file->used_ns >= UNUSED_NS ? file : NULL;
}

static struct kept_file *add_locked(struct kept_files *files, const struct read_request *request, int fd,
                                    bool is_direct) {
        struct kept_file **bucket = kept_files_bucket_of(files, request->owner, request->idx_file, request->past_cache);
        struct kept_file *file = TAILQ_FIRST(&files->free);

        TAILQ_REMOVE(&files->free, file, entry);
        file->fd = fd;
        atomic_store_explicit(&file->is_direct, is_direct, memory_order_relaxed); /* seen through the lock */
        atomic_store_explicit(&file->looked_ns, clock_now_ns(), memory_order_relaxed);
        file->owner = request->owner;
        file->idx_file = request->idx_file;
        file->past_cache = request->past_cache;
        file->is_forgotten = false;
        file->n_users = 1;
        file->used_ns = clock_now_ns();
        file->next = *bucket;
        *bucket = file;
        TAILQ_INSERT_TAIL(&files->by_use, file, entry);
        return file;
}

/* ---- public functions ---------------------------------------------------------------------------------------- */

struct kept_file *kept_files_find(struct kept_files *files, const struct read_request *request) {
        struct kept_file *file;

        pthread_mutex_lock(&files->lock);
        file = find_locked(files, request);
        pthread_mutex_unlock(&files->lock);
        return file;
}

bool kept_files_have_room(struct kept_files *files) {
        bool have_room;

        pthread_mutex_lock(&files->lock);
        have_room = !TAILQ_EMPTY(&files->free) || unused_locked(files);
        pthread_mutex_unlock(&files->lock);
        return have_room;
}

/* The request's file: added with `fd` if there is room, unless another thread has added it in the meantime. */
static struct kept_file *find_or_add(struct kept_files *files, const struct read_request *request, int fd,
                                     bool is_direct, bool *ret_is_added) {
        struct kept_file *file;

        pthread_mutex_lock(&files->lock);
        file = find_locked(files, request);
        *ret_is_added = !file && !TAILQ_EMPTY(&files->free);
        if (*ret_is_added)
                file = add_locked(files, request, fd, is_direct);
        pthread_mutex_unlock(&files->lock);
        return file;
}

/* Makes room by dropping a file that was not read for a while. Returns false if there is none. */
static bool kept_files_make_room(struct kept_files *files) {
        struct kept_file *file;

        pthread_mutex_lock(&files->lock);
        file = unused_locked(files);
        if (file)
                drop_locked(files, file);
        pthread_mutex_unlock(&files->lock);
        if (file)
                kept_files_close(files);
        return file != NULL;
}

struct kept_file *kept_files_add(struct kept_files *files, const struct read_request *request, int fd, bool is_direct) {
        bool is_added;
        struct kept_file *file = find_or_add(files, request, fd, is_direct, &is_added);

        if (!file && kept_files_make_room(files))
                file = find_or_add(files, request, fd, is_direct, &is_added);
        if (file && !is_added)
                close(fd);
        return file;
}

bool kept_files_put(struct kept_files *files, struct kept_file *file) {
        bool is_unwanted;

        pthread_mutex_lock(&files->lock);
        assert(file->n_users > 0);
        is_unwanted = --file->n_users == 0 && file->is_forgotten;
        if (is_unwanted)
                TAILQ_INSERT_TAIL(&files->unwanted, file, entry);
        pthread_mutex_unlock(&files->lock);
        return is_unwanted;
}

bool kept_files_forget(struct kept_files *files, const void *owner) {
        struct kept_file *file, *next;
        bool is_any = false;

        pthread_mutex_lock(&files->lock);
        TAILQ_FOREACH_SAFE(file, &files->by_use, entry, next)
                if (file->owner == owner)
                        is_any |= drop_locked(files, file);
        pthread_mutex_unlock(&files->lock);
        return is_any;
}

/* Closes one file for each call, so that the lock is not held while descriptors are closed. Its place becomes free only
 * after the close: so files that cannot be closed never hold more descriptors than there are places. */
static bool close_one(struct kept_files *files) {
        struct kept_file *file;

        pthread_mutex_lock(&files->lock);
        file = TAILQ_FIRST(&files->unwanted);
        if (file)
                TAILQ_REMOVE(&files->unwanted, file, entry);
        pthread_mutex_unlock(&files->lock);
        if (!file)
                return false;
        close(file->fd);
        pthread_mutex_lock(&files->lock);
        TAILQ_INSERT_HEAD(&files->free, file, entry);
        pthread_mutex_unlock(&files->lock);
        return true;
}

void kept_files_close(struct kept_files *files) {
        while (close_one(files))
                continue;
}
