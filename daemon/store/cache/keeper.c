/* The thread that notes in the journal what has landed, and tells who waits. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/disk.h"
#include "daemon/base/threads/thread.h"
#include "daemon/store/cache/cache_folders.h"
#include "daemon/store/cache/cache_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define LOOK_NS 500000000ull /* so often, what other daemons in the same cache_dir say */

#define FULL_TRIES   16u /* of one flight, on a full disk */
#define FULL_WAIT_NS 250000000ull

#define COMPARED_BYTES (256u << 10) /* read at once: what stays in the processor's cache */

void keeper_land(struct flight *flight) {
        struct cache *cache = flight->cached->cache;

        flight->is_submitted = false;
        TAILQ_INSERT_TAIL(&cache->landed, flight, entry);
        pthread_cond_broadcast(&cache->changed);
}

void keeper_take(struct fetch_job *job) {
        struct flight *flight = job->userdata;
        struct cache *cache = flight->cached->cache;

        landing_end(flight);
        pthread_mutex_lock(&cache->lock);
        keeper_land(flight);
        pthread_mutex_unlock(&cache->lock);
}

/* Of what lies there. False: it cannot be read. */
static bool digest_file(const struct flight *flight) {
        const struct fetch_piece *piece = &flight->piece;
        _cleanup_(closep) int fd = openat(flight->cached->files_fd, piece->file->path,
                                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        _cleanup_(freep) uint8_t *part = malloc(COMPARED_BYTES);
        uint32_t n;

        if (fd < 0 || !part)
                return false;
        XXH3_64bits_reset(flight->digested);
        for (uint32_t at = 0; at < piece->n_bytes; at += n) {
                n = piece->n_bytes - at < COMPARED_BYTES ? piece->n_bytes - at : COMPARED_BYTES;
                if (disk_read_at(fd, part, n, piece->offset + at) < 0)
                        return false;
                XXH3_64bits_update(flight->digested, part, n);
        }
        return true;
}

static int note(struct flight *flight, enum journal_kind kind) {
        struct cache *cache = flight->cached->cache;
        struct journal_record record = { .chunk = flight->chunk,
                                         .n_bytes = flight->piece.n_bytes,
                                         .kind = kind,
                                         .digest = XXH3_64bits_digest(flight->digested) };
        int r;

        pthread_mutex_lock(&cache->lock); /* who releases a chunk that passes through notes that it has gone */
        flight->cached->digests[flight->chunk] = record.digest;
        r = cache_journal_add(&flight->cached->journal, &record);
        pthread_mutex_unlock(&cache->lock);
        return r;
}

/* It is here, or could not be had. */
static void settle(struct flight *flight, int result, const struct why *why, struct cache_wants *done) {
        struct cached *cached = flight->cached;
        uint64_t chunk = flight->chunk;
        bool is_chunk = flight->is_chunk;

        flight_leave_air(flight);
        flight_answer(flight, result, why, done);
        if (result == 0 && !is_chunk && !chunk_is_there(cached->states[chunk]) &&
            (flight->n_users > 0 || flight->is_ahead || flight_stays(flight))) {
                flight->phase = FLIGHT_LANDED;
                flight_tell_chunk(flight, false);
                return;
        }
        flight_remove(flight);
        if (result == 0 && is_chunk)
                flights_forget_pieces(cached, chunk);
        else if (is_chunk)
                flights_drop_unused(cached, chunk);
}

/* It goes to the fetcher, now that there is room for it, unless its origin is closed, or the cache ends. */
static void keeper_submit(struct flight *flight, struct cache_wants *done) {
        if (flight->cached->fetcher)
                flight_submit(flight);
        else
                settle(flight, -ECANCELED, &(struct why){ "canceled" }, done);
}

/* One that was noted before this boot: it is there, or must be fetched. */
static void keep_doubtful(struct flight *flight, struct cache_wants *done) {
        struct cached *cached = flight->cached;
        bool is_right = digest_file(flight) && XXH3_64bits_digest(flight->digested) == cached->digests[flight->chunk];

        if (is_right)
                note(flight, JOURNAL_SEEN); /* if it cannot be noted, it is compared again next time */
        pthread_mutex_lock(&cached->cache->lock);
        if (is_right) {
                cached->states[flight->chunk] = CHUNK_THERE;
                settle(flight, 0, NULL, done);
        } else {
                room_drop(cached, flight->chunk);
                flight->is_doubtful = false;
                keeper_submit(flight, done);
        }
        pthread_mutex_unlock(&cached->cache->lock);
}

static void keeper_make_room(struct flight *flight, struct cache_wants *done) {
        struct cache *cache = flight->cached->cache;

        room_clear(cache, flight->piece.n_bytes);
        pthread_mutex_lock(&cache->lock);
        keeper_submit(flight, done);
        pthread_mutex_unlock(&cache->lock);
}

/* The disk is full of what is pinned: read at this moment, or on its way as this one is. So from now on less is on its
 * way at once; who waits for this one has it sent again, and what nobody waits for is fetched when it is wanted. */
static bool keep_for_later(struct flight *flight) {
        struct cache *cache = flight->cached->cache;

        if (cache->flying_max > cache->n_flying_bytes / 2)
                cache->flying_max = cache->n_flying_bytes / 2;
        if (STAILQ_EMPTY(&flight->waiters) || !flight->cached->fetcher || ++flight->n_full > FULL_TRIES)
                return false;
        flight_put_back(flight);
        if (cache->n_flying == 0) /* those who read have to come to their end */
                thread_wait_until(&cache->changed, &cache->lock, clock_now_ns() + FULL_WAIT_NS);
        return true;
}

/* Pieces that it has left out are on their way, so it waits for them; or one does not come, so it is sent again. */
static bool lacks_pieces(struct flight *flight) {
        struct cache *cache = flight->cached->cache;
        bool lacks;

        pthread_mutex_lock(&cache->lock);
        lacks = flight_waits(flight);
        if (!lacks && flight->has_lost && flight->cached->fetcher) {
                lacks = true;
                flight_submit(flight);
        }
        pthread_mutex_unlock(&cache->lock);
        return lacks;
}

/* Is its digest known? What came around pieces is read once more for that. */
static bool has_digest(const struct flight *flight) {
        return flight->job.pieces == &flight->piece || digest_file(flight);
}

/* It has been written, or cannot be had. A chunk counts as there once it is noted. */
static void keep_landed(struct flight *flight, struct cache_wants *done) {
        struct cached *cached = flight->cached;
        struct cache *cache = cached->cache;
        uint64_t chunk = flight->chunk;
        struct why why = flight->job.why;
        int result = flight->job.result;

        if (flight->write_error < 0)
                result = landing_error(flight, flight->write_error, &why);
        if (result == 0 && flight->is_chunk) {
                if (lacks_pieces(flight))
                        return;
                result = flight->has_lost ? -ECANCELED : !has_digest(flight) ? -EIO : note(flight, JOURNAL_THERE);
                if (landing_makes_room(flight, result))
                        result = note(flight, JOURNAL_THERE);
                if (result < 0)
                        landing_error(flight, result, &why);
        }
        pthread_mutex_lock(&cache->lock);
        flight_leave_place(flight, result);
        if (!landing_is_full(result) || !keep_for_later(flight)) {
                if (result < 0 && STAILQ_EMPTY(&flight->waiters))
                        cached->lost = why; /* else they tell it */
                settle(flight, result, &why, done);
                room_pass(cached, chunk);
        }
        pthread_mutex_unlock(&cache->lock);
}

static void keeper_keep(struct flight *flight) {
        struct cached *cached = flight->cached;
        struct cache_wants done = STAILQ_HEAD_INITIALIZER(done);
        struct cache_want *want;

        if (flight->is_doubtful)
                keep_doubtful(flight, &done);
        else if (!flight->has_place)
                keeper_make_room(flight, &done);
        else
                keep_landed(flight, &done);
        while ((want = STAILQ_FIRST(&done))) {
                STAILQ_REMOVE_HEAD(&done, entry);
                if (want->result < 0)
                        cached_release(cached, want);
                want->done(want);
        }
}

/* cache->lock is held, and given up meanwhile. */
static void keeper_look(struct cache *cache) {
        bool is_over;

        pthread_mutex_unlock(&cache->lock);
        is_over = room_look_at_disk(cache);
        cache_folders_look(cache);
        room_fit(cache);
        if (is_over)
                log_info("cache", "%s: its disk has room again; cache_limit counts again", cache->dir);
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
                flights_send(cache);
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
