#include "daemon/store/cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/threads/thread.h"
#include "daemon/store/cache/cache_folders.h"
#include "daemon/store/cache/cache_private.h"
#include "daemon/store/cache/peers/peer_asks.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define CANCEL_LOOK_NS 200000000ull
#define LAST_USE_NS    5000000000ull

int cache_new(const struct cache_options *options, struct cache **ret_cache) {
        struct cache *cache = calloc(1, sizeof(*cache));

        if (!cache)
                return -ENOMEM;
        cache->root = strdup(options->dir);
        if (!cache->root) {
                free(cache);
                return -ENOMEM;
        }
        cache->options = *options;
        cache->flying_max = DLP_FLYING_BYTES;
        cache->lock_fd = -1;
        pthread_mutex_init(&cache->opening, NULL);
        pthread_mutex_init(&cache->lock, NULL);
        pthread_cond_init(&cache->changed, NULL);
        for (size_t i = 0; i < N_FLIGHT_QUEUES; i++)
                TAILQ_INIT(&cache->queues[i]);
        TAILQ_INIT(&cache->landed);
        *ret_cache = cache;
        return 0;
}

/* Does something still look whether an origin answers? It has been cancelled, and ends soon. */
static bool cache_is_used(struct cache *cache) {
        struct cached *cached;
        bool is_used = false;

        pthread_mutex_lock(&cache->lock);
        LIST_FOREACH(cached, &cache->origins, entry)
                is_used = is_used || cached->refs > 0;
        pthread_mutex_unlock(&cache->lock);
        return is_used;
}

void cache_free(struct cache *cache) {
        struct cached *cached;

        if (!cache)
                return;
        for (uint64_t until_ns = clock_now_ns() + LAST_USE_NS; cache_is_used(cache) && clock_now_ns() < until_ns;)
                nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
        if (cache_is_used(cache))
                return; /* by what hangs in the kernel: the process ends with it */
        peer_asks_stop(cache);
        while ((cached = LIST_FIRST(&cache->origins)))
                cached_close(cached);
        keeper_stop(cache);
        if (cache->lock_fd >= 0)
                close(cache->lock_fd);
        pthread_cond_destroy(&cache->changed);
        pthread_mutex_destroy(&cache->lock);
        pthread_mutex_destroy(&cache->opening);
        free(cache->root);
        free(cache->dir);
        free(cache);
}

/* Makes the folder and those above it. */
static int make_folders(const char *path) {
        _cleanup_(freep) char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *end = strchr(copy + 1, '/'); end; end = strchr(end + 1, '/')) {
                *end = '\0';
                if (mkdir(copy, 0700) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
                        return -errno;
                *end = '/';
        }
        return mkdir(copy, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Files that are open are known by their paths, and the kernel says those without links. */
static int cache_resolve_folder(struct cache *cache, struct why *why) {
        char *resolved = realpath(cache->root, NULL);

        if (!resolved)
                return why_errno(why, -errno, "cache_dir: %s", cache->root);
        if (strlen(resolved) > CACHE_DIR_MAX) {
                free(resolved);
                return why_errno(why, -ENAMETOOLONG, "cache_dir: %s", cache->root);
        }
        free(cache->root);
        cache->root = resolved;
        return 0;
}

static int cache_take_folder(struct cache *cache, struct why *why) {
        int r = make_folders(cache->root);

        if (r < 0)
                return why_errno(why, r, "cache_dir: %s", cache->root);
        r = cache_resolve_folder(cache, why);
        if (r == 0)
                r = cache_folders_take(cache, why);
        if (r < 0)
                return r;
        r = room_measure(cache, why);
        if (r == 0)
                r = keeper_start(cache, why);
        if (r < 0) {
                closep(&cache->lock_fd);
                cache->lock_fd = -1;
                return r;
        }
        if (cache->idx_folder > 1)
                log_info("cache", "another daemon uses %s; this one has %s, and both share cache_limit", cache->root,
                         cache->dir);
        pthread_mutex_lock(&cache->lock);
        cache->is_begun = true;
        pthread_mutex_unlock(&cache->lock);
        return 0;
}

int cache_begin(struct cache *cache, struct why *why) {
        int r = 0;

        pthread_mutex_lock(&cache->opening);
        if (!cache->is_begun)
                r = cache_take_folder(cache, why);
        pthread_mutex_unlock(&cache->opening);
        return r;
}

/* ---- folders that are open --------------------------------------------------------------------------------------- */

static bool cache_is_busy(struct cache *cache, const char *folder) {
        struct cache_opened *opened;

        LIST_FOREACH(opened, &cache->opened, entry)
                if (opened->is_busy && strcmp(opened->folder, folder) == 0)
                        return true;
        return false;
}

int cache_opened_begin(struct cache *cache, struct cache_opened *opened, const atomic_bool *cancel, struct why *why) {
        for (opened->is_busy = false; !opened->is_busy && !(cancel && atomic_load(cancel));) {
                pthread_mutex_lock(&cache->opening); /* nothing is removed meanwhile */
                pthread_mutex_lock(&cache->lock);
                opened->is_busy = !cache_is_busy(cache, opened->folder);
                if (opened->is_busy)
                        LIST_INSERT_HEAD(&cache->opened, opened, entry);
                pthread_mutex_unlock(&cache->opening);
                if (!opened->is_busy)
                        thread_wait_until(&cache->changed, &cache->lock, clock_now_ns() + CANCEL_LOOK_NS);
                pthread_mutex_unlock(&cache->lock);
        }
        return opened->is_busy ? 0 : why_set(why, -ECANCELED, "%s: cancelled", opened->folder);
}

void cache_opened_ready(struct cache *cache, struct cache_opened *opened) {
        pthread_mutex_lock(&cache->lock);
        opened->is_busy = false;
        pthread_cond_broadcast(&cache->changed);
        pthread_mutex_unlock(&cache->lock);
}

void cache_opened_end(struct cache *cache, struct cache_opened *opened) {
        pthread_mutex_lock(&cache->lock);
        LIST_REMOVE(opened, entry);
        cache->has_no_closed = false;
        pthread_mutex_unlock(&cache->lock);
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

/* What waits in the queues has no memory yet and no request: it is answered here. */
static void cancel_queue(struct flights *queue, struct cache_wants *done) {
        const struct why why = { "canceled" };
        struct flight *flight;

        while ((flight = TAILQ_FIRST(queue))) {
                flight_unqueue(flight);
                flight_answer(flight, -ECANCELED, &why, done);
                flight_end(flight);
        }
}

void cache_cancel(struct cache *cache) {
        struct cache_wants done = STAILQ_HEAD_INITIALIZER(done);
        struct cached *cached;
        struct cache_want *want;

        pthread_mutex_lock(&cache->lock);
        cache->is_cancelled = true;
        atomic_store(&cache->is_over, true);
        for (size_t i = 0; i < N_FLIGHT_QUEUES; i++)
                cancel_queue(&cache->queues[i], &done);
        pthread_mutex_unlock(&cache->lock);
        while ((want = STAILQ_FIRST(&done))) {
                STAILQ_REMOVE_HEAD(&done, entry);
                want->done(want); /* its pins are nobody's any more */
        }
        peer_asks_stop(cache);
        pthread_mutex_lock(&cache->opening);
        LIST_FOREACH(cached, &cache->origins, entry)
                cached_stop(cached);
        pthread_mutex_unlock(&cache->opening);
}

static void cache_add_fetched(struct cached *cached, struct cache_counts *counts) {
        struct fetcher_counts fetched;
        uint64_t horizon_ns;

        if (!cached->fetcher)
                return;
        fetcher_counts(cached->fetcher, &fetched);
        counts->n_fetched += fetched.n_bytes;
        counts->n_requests += fetched.n_requests;
        counts->n_retries += fetched.n_retries;
        counts->n_paused += fetched.n_paused;
        horizon_ns = dlp_horizon_ns(cached->cache->options.ahead_s, fetched.latency.first_byte_p999_ns);
        if (horizon_ns > counts->horizon_ns)
                counts->horizon_ns = horizon_ns;
        if (fetched.latency.first_byte_median_ns > counts->first_byte_ns)
                counts->first_byte_ns = fetched.latency.first_byte_median_ns;
}

void cache_keep_counts(struct cached *cached) {
        pthread_mutex_lock(&cached->cache->lock);
        cache_add_fetched(cached, &cached->cache->counts);
        cached->cache->counts.first_byte_ns = cached->cache->counts.horizon_ns = 0;
        pthread_mutex_unlock(&cached->cache->lock);
}

bool cache_counts(struct cache *cache, struct cache_counts *ret_counts) {
        struct cached *cached;
        bool is_begun;

        pthread_mutex_lock(&cache->lock);
        is_begun = cache->is_begun; /* what is set before that is read after it */
        if (is_begun) {
                *ret_counts = cache->counts;
                ret_counts->dir = cache->dir;
                ret_counts->n_others = cache->n_others;
                ret_counts->n_bytes = cache->n_bytes;
                ret_counts->limit = cache->limit;
                LIST_FOREACH(cached, &cache->origins, entry)
                        cache_add_fetched(cached, ret_counts);
                peer_asks_count(cache, ret_counts);
        }
        pthread_mutex_unlock(&cache->lock);
        return is_begun;
}
