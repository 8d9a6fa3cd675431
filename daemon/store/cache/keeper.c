/* The thread that writes what has landed into its place, notes it in the journal, and tells who waits. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/disk.h"
#include "daemon/base/threads/thread.h"
#include "daemon/store/cache/cache_folders.h"
#include "daemon/store/cache/cache_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define LOOK_NS 500000000ull /* so often, what other daemons in the same cache_dir say */

void keeper_take(struct fetch_job *job) {
        struct flight *flight = job->userdata;
        struct cache *cache = flight->cached->cache;

        pthread_mutex_lock(&cache->lock);
        flight->is_submitted = false;
        TAILQ_INSERT_TAIL(&cache->landed, flight, entry);
        pthread_cond_broadcast(&cache->changed);
        pthread_mutex_unlock(&cache->lock);
}

/* Is what lies there since before this boot what was noted? */
static bool has_digest(struct flight *flight) {
        struct cached *cached = flight->cached;
        _cleanup_(closep) int fd = openat(cached->files_fd, flight->piece.file->path,
                                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        return fd >= 0 && disk_read_at(fd, flight->piece.into, flight->piece.n_bytes, flight->piece.offset) == 0 &&
               XXH3_64bits(flight->piece.into, flight->piece.n_bytes) == cached->digests[flight->chunk];
}

static int note(struct flight *flight, enum journal_kind kind) {
        struct journal_record record = { .chunk = flight->chunk, .n_bytes = flight->piece.n_bytes, .kind = kind };

        struct cache *cache = flight->cached->cache;
        int r;

        record.digest = XXH3_64bits(flight->piece.into, flight->piece.n_bytes);
        pthread_mutex_lock(&cache->lock); /* who releases a chunk that passes through notes that it has gone */
        r = cache_journal_add(&flight->cached->journal, &record);
        pthread_mutex_unlock(&cache->lock);
        return r;
}

static int write_down(struct flight *flight, struct why *why) {
        struct cached *cached = flight->cached;
        _cleanup_(closep) int fd = openat(cached->files_fd, flight->piece.file->path,
                                          O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        int r = fd < 0 ? -errno : disk_write_at(fd, flight->piece.into, flight->piece.n_bytes, flight->piece.offset);

        if (r == 0 && flight->is_chunk)
                r = note(flight, JOURNAL_THERE);
        if (r == -ENOSPC || r == -EDQUOT)
                return why_set(why, r, "%s: no space left on its disk; make room there, or lower cache_limit",
                               cached->cache->dir);
        return r < 0 ? why_errno(why, r, "%s/%s", cached->folder, flight->piece.file->path) : 0;
}

/* Before it is written, which needs no lock: nobody removes what lies there. The bytes of a chunk count from now on. */
static void keeper_make_place(struct flight *flight) {
        struct cached *cached = flight->cached;

        if (flight->is_chunk)
                room_clear(cached->cache, flight->piece.n_bytes);
        pthread_mutex_lock(&cached->cache->lock);
        cached->pins[flight->chunk]++;
        if (flight->is_chunk) {
                flight->is_passing = !room_make(cached, flight->chunk, flight->piece.n_bytes);
                cached->n_bytes += flight->piece.n_bytes;
                cached->cache->n_bytes += flight->piece.n_bytes;
        }
        pthread_mutex_unlock(&cached->cache->lock);
}

/* After it was written, or could not be. */
static void keeper_take_place(struct flight *flight, int result) {
        struct cached *cached = flight->cached;

        cached->pins[flight->chunk]--;
        if (!flight->is_chunk)
                return;
        if (result == 0) {
                cached->states[flight->chunk] = flight->is_passing ? CHUNK_PASSING : CHUNK_THERE;
                cached->cache->n_passing_bytes += flight->is_passing ? flight->piece.n_bytes : 0;
        } else { /* it was not noted */
                cached->n_bytes -= flight->piece.n_bytes;
                cached->cache->n_bytes -= flight->piece.n_bytes;
        }
}

/* After it was written, or could not be had. */
static void settle(struct flight *flight, int result, const struct why *why, struct cache_wants *done) {
        struct cached *cached = flight->cached;
        struct cache *cache = cached->cache;
        uint64_t chunk = flight->chunk;
        bool is_chunk = flight->is_chunk;

        cache->n_flying--;
        cache->n_flying_bytes -= flight->piece.n_bytes;
        flight_answer(flight, result, why, done);
        if (result == 0 && !is_chunk && !chunk_is_there(cached->states[chunk]) &&
            (flight->n_users > 0 || flight->is_ahead)) {
                flight->phase = FLIGHT_LANDED;
                free(TAKE_PTR(flight->piece.into));
                if (flight->n_charged > 0)
                        budget_release(cache->options.budget, flight->n_charged);
                flight->n_charged = 0;
                return;
        }
        flight_remove(flight);
        if (result == 0 && is_chunk)
                flights_forget_pieces(cached, chunk);
}

/* One that was noted before this boot: it is there, or must be fetched. */
static void keep_doubtful(struct flight *flight, struct cache_wants *done) {
        struct cached *cached = flight->cached;
        struct cache *cache = cached->cache;
        bool is_right = cached->states[flight->chunk] == CHUNK_DOUBTFUL && has_digest(flight); /* it may have gone */

        if (is_right)
                note(flight, JOURNAL_SEEN); /* if it cannot be noted, it is compared again next time */
        pthread_mutex_lock(&cache->lock);
        if (is_right) {
                cached->states[flight->chunk] = CHUNK_THERE;
                settle(flight, 0, NULL, done);
        } else if (!cached->fetcher) { /* it is closed, or the cache ends */
                settle(flight, -ECANCELED, &(struct why){ "canceled" }, done);
        } else {
                if (cached->states[flight->chunk] == CHUNK_DOUBTFUL)
                        room_drop(cached, flight->chunk);
                flight->is_doubtful = false;
                flight_submit(flight);
        }
        pthread_mutex_unlock(&cache->lock);
}

/* Others write to the disk as well: what is full before the limit is reached has a lower limit. */
static int write_within(struct flight *flight, struct why *why) {
        struct cached *cached = flight->cached;
        int r = write_down(flight, why);
        bool has_room;

        if (r != -ENOSPC && r != -EDQUOT)
                return r;
        pthread_mutex_lock(&cached->cache->lock);
        has_room = room_shrink(cached, flight->is_chunk ? flight->piece.n_bytes : 0);
        pthread_mutex_unlock(&cached->cache->lock);
        if (!has_room)
                return r;
        log_warning("cache", "%s; until the daemon is started again, less is kept", why->text);
        return write_down(flight, why);
}

static void keeper_keep(struct flight *flight) {
        struct cached *cached = flight->cached;
        struct cache *cache = cached->cache;
        struct cache_wants done = STAILQ_HEAD_INITIALIZER(done);
        struct cache_want *want;
        uint64_t chunk = flight->chunk;
        int result = flight->job.result;
        struct why why = flight->job.why;

        if (flight->is_doubtful) {
                keep_doubtful(flight, &done);
        } else {
                if (result == 0) {
                        keeper_make_place(flight);
                        result = write_within(flight, &why);
                }
                pthread_mutex_lock(&cache->lock);
                if (flight->job.result == 0)
                        keeper_take_place(flight, result);
                settle(flight, result, &why, &done);
                room_pass(cached, chunk);
                flights_send(cache);
                pthread_mutex_unlock(&cache->lock);
        }
        while ((want = STAILQ_FIRST(&done))) {
                STAILQ_REMOVE_HEAD(&done, entry);
                if (want->result < 0)
                        cached_release(cached, want);
                want->done(want);
        }
}

/* cache->lock is held, and given up meanwhile. */
static void keeper_look(struct cache *cache) {
        pthread_mutex_unlock(&cache->lock);
        cache_folders_look(cache);
        room_fit(cache);
        pthread_mutex_lock(&cache->lock);
}

static void *keeper_main(void *userdata) {
        struct cache *cache = userdata;
        uint64_t look_ns = clock_now_ns() + LOOK_NS;
        struct flight *flight;

        pthread_mutex_lock(&cache->lock);
        while (!cache->is_ending || cache->n_flying > 0) {
                if (clock_now_ns() >= look_ns) {
                        keeper_look(cache);
                        look_ns = clock_now_ns() + LOOK_NS;
                        continue;
                }
                flight = TAILQ_FIRST(&cache->landed);
                if (!flight) {
                        thread_wait_until(&cache->changed, &cache->lock, look_ns);
                        continue;
                }
                TAILQ_REMOVE(&cache->landed, flight, entry);
                cache->kept_of = flight->cached;
                pthread_mutex_unlock(&cache->lock);
                keeper_keep(flight);
                pthread_mutex_lock(&cache->lock);
                cache->kept_of = NULL;
                pthread_cond_broadcast(&cache->changed);
        }
        pthread_mutex_unlock(&cache->lock);
        return NULL;
}

int keeper_start(struct cache *cache, struct why *why) {
        int r = thread_start(&cache->keeper, "cache", keeper_main, cache);

        cache->has_keeper = r == 0;
        return r < 0 ? why_errno(why, r, "cache_dir: cannot start a thread") : 0;
}

void keeper_stop(struct cache *cache) {
        pthread_mutex_lock(&cache->lock);
        cache->is_ending = true;
        pthread_cond_broadcast(&cache->changed);
        pthread_mutex_unlock(&cache->lock);
        if (cache->has_keeper)
                thread_join(cache->keeper);
        cache->has_keeper = false;
}
