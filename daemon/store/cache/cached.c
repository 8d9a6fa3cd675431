/* Bytes of an origin that is open: who wants them, and what is there. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/machine/disk.h"
#include "daemon/base/threads/thread.h"
#include "daemon/store/cache/cache_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define PIECE_MOST_BYTES  (CACHE_CHUNK_BYTES / 4) /* more is not worth a request of its own */
#define PIECE_LEAST_BYTES (64u << 10)             /* of an index: what follows is looked at next, as often as not */
#define QUEUED_MAX        1024u                   /* flights that wait for memory and connections */
#define NEED_AHEAD        4u                      /* chunks that are fetched ahead of who reads a file to its end */
#define LOOKS             4u                      /* files of which one must be there, if the origin answers */
#define SOON_NS           3000000000ull           /* what is due before that cannot wait for the chunks before it */

struct chunk_place cached_place(const struct cached *cached, uint64_t chunk) {
        uint64_t low = 0, high = plan_n_files(cached->plan), offset, n_left;
        const struct plan_file *file;

        while (high - low > 1) { /* the last file that begins at or before it */
                uint64_t middle = low + (high - low) / 2;

                if (cached->first[middle] <= chunk)
                        low = middle;
                else
                        high = middle;
        }
        file = plan_file(cached->plan, low);
        offset = (chunk - cached->first[low]) * CACHE_CHUNK_BYTES;
        n_left = file->n_bytes - offset;
        return (struct chunk_place){ .file = file,
                                     .idx_file = low,
                                     .offset = offset,
                                     .n_bytes = n_left < CACHE_CHUNK_BYTES ? (uint32_t)n_left : CACHE_CHUNK_BYTES };
}

int64_t cached_find(const struct cached *cached, const char *folder, const char *path) {
        size_t n_root = strlen(cached->folder) + strlen("/files");
        const char *below = strlen(folder) > n_root ? folder + n_root + 1 : "";
        char whole[PATH_MAX];

        if (!below[0])
                return plan_find(cached->plan, path);
        if ((size_t)snprintf(whole, sizeof(whole), "%s/%s", below, path) >= sizeof(whole))
                return -1;
        return plan_find(cached->plan, whole);
}

/* The chunks [*ret_begin, *ret_end) that have bytes of this part. */
static void chunks_of(const struct cached *cached, uint64_t idx_file, uint64_t offset, uint64_t n_bytes,
                      uint64_t *ret_begin, uint64_t *ret_end) {
        uint64_t n_file = plan_file(cached->plan, idx_file)->n_bytes, end = offset + n_bytes;

        if (end > n_file)
                end = n_file;
        *ret_begin = *ret_end = cached->first[idx_file];
        if (offset >= end)
                return;
        *ret_begin += offset / CACHE_CHUNK_BYTES;
        *ret_end += (end - 1) / CACHE_CHUNK_BYTES + 1;
}

/* What of the part lies in this chunk. */
static void part_in(const struct cached *cached, const struct cache_want *want, uint64_t chunk, uint64_t *ret_offset,
                    uint32_t *ret_n_bytes) {
        struct chunk_place place = cached_place(cached, chunk);
        uint64_t begin = want->offset > place.offset ? want->offset : place.offset;
        uint64_t end = want->offset + want->n_bytes, chunk_end = place.offset + place.n_bytes;

        if (end > chunk_end)
                end = chunk_end;
        *ret_offset = begin;
        *ret_n_bytes = (uint32_t)(end - begin);
}

/* ---- wants ------------------------------------------------------------------------------------------------------- */

static struct flight *begin_chunk(struct cached *cached, uint64_t chunk, bool is_urgent) {
        struct chunk_place place = cached_place(cached, chunk);

        return flight_begin(cached, chunk, place.offset, place.n_bytes, is_urgent);
}

/* What brings this part of an absent chunk the soonest: what is on its way; or, of a chunk that has not been begun, a
 * piece of its own, if that is small. */
static struct flight *flight_for(struct cached *cached, const struct cache_want *want, uint64_t chunk) {
        struct chunk_place place = cached_place(cached, chunk);
        struct flight *flight;
        uint64_t offset;
        uint32_t n_bytes;
        bool is_small;

        part_in(cached, want, chunk, &offset, &n_bytes);
        is_small = n_bytes <= PIECE_MOST_BYTES && n_bytes <= place.n_bytes / 4 && cached->states[chunk] == CHUNK_ABSENT;
        flight = flight_find(cached, chunk, offset, n_bytes);
        if (flight && flight->phase == FLIGHT_QUEUED && flight->is_chunk && is_small && !flight->is_urgent)
                flight = NULL; /* it stays in the queue */
        if (flight) {
                flight_hurry(flight);
                return flight;
        }
        if (!is_small)
                return begin_chunk(cached, chunk, true);
        return flight_begin(cached, chunk, offset, n_bytes, true);
}

static int want_chunk(struct cached *cached, struct cache_want *want, uint64_t chunk) {
        struct flight *flight;

        if (chunk_is_there(cached->states[chunk]))
                return 0;
        flight = flight_for(cached, want, chunk);
        if (!flight)
                return -ENOMEM;
        if (!flight->is_chunk) {
                want->pieces[want->pieces[0] != 0] = flight->id; /* of its first and its last chunk */
                flight->n_users++;
                flight->is_ahead |= want->keeps_pieces;
        }
        return flight->phase == FLIGHT_LANDED ? 0 : flight_join(flight, want);
}

/* The pieces of this chunk that it needed go, unless others need them. */
static void drop_pieces(struct cached *cached, const struct cache_want *want, uint64_t chunk) {
        for (size_t i = 0; i < ARRAY_SIZE(want->pieces); i++) {
                struct flight *flight = want->pieces[i] ? flight_known(cached, chunk, want->pieces[i]) : NULL;

                if (flight && --flight->n_users == 0 && flight->phase == FLIGHT_LANDED)
                        flight_remove(flight);
        }
}

static void unpin(struct cached *cached, const struct cache_want *want) {
        uint64_t chunk, end;

        chunks_of(cached, want->idx_file, want->offset, want->n_bytes, &chunk, &end);
        for (; chunk < end; chunk++) {
                cached->pins[chunk]--;
                if (cached->states[chunk] == CHUNK_ABSENT && !want->keeps_pieces)
                        drop_pieces(cached, want, chunk);
                room_pass(cached, chunk);
        }
}

static void leave_flights(struct cached *cached, struct cache_want *want) {
        uint64_t chunk, end, offset;
        struct flight *flight;
        uint32_t n_bytes;

        chunks_of(cached, want->idx_file, want->offset, want->n_bytes, &chunk, &end);
        for (; chunk < end && want->n_missing > 0; chunk++) {
                part_in(cached, want, chunk, &offset, &n_bytes);
                flight = flight_find(cached, chunk, offset, n_bytes);
                if (flight)
                        flight_leave(flight, want);
        }
}

static int want_file(struct cached *cached, struct cache_want *want) {
        struct cache *cache = cached->cache;
        uint64_t begin, end, offset;
        uint32_t n_bytes;
        int r = cache->is_cancelled ? -ECANCELED : 0;

        want->n_missing = 0;
        want->result = 0;
        memset(want->pieces, 0, sizeof(want->pieces));
        chunks_of(cached, want->idx_file, want->offset, want->n_bytes, &begin, &end);
        cached->used_ns = clock_now_ns();
        for (uint64_t chunk = begin; chunk < end; chunk++) {
                cached->pins[chunk]++;
                part_in(cached, want, chunk, &offset, &n_bytes);
                room_unmark(cached, chunk, n_bytes);
        }
        for (uint64_t chunk = begin; chunk < end && r == 0; chunk++)
                r = want_chunk(cached, want, chunk);
        if (r < 0) {
                leave_flights(cached, want);
                unpin(cached, want);
                return why_errno(&want->why, r, "%s", plan_file(cached->plan, want->idx_file)->path);
        }
        if (want->n_missing == 0)
                cache->counts.n_hits++;
        else
                cache->counts.n_misses++;
        flights_send(cache);
        return want->n_missing == 0;
}

int cached_want(struct cached *cached, struct cache_want *want, const char *folder, const char *path) {
        int64_t found = cached_find(cached, folder, path);
        int r;

        if (found < 0)
                return why_set(&want->why, -ENOENT, "%s is not among the files of %s", path, cached->folder);
        want->idx_file = (uint64_t)found;
        pthread_mutex_lock(&cached->cache->lock);
        r = want_file(cached, want);
        pthread_mutex_unlock(&cached->cache->lock);
        return r;
}

void cached_release(struct cached *cached, struct cache_want *want) {
        pthread_mutex_lock(&cached->cache->lock);
        unpin(cached, want);
        pthread_mutex_unlock(&cached->cache->lock);
}

bool cached_forget(struct cached *cached, struct cache_want *want) {
        bool was_waiting;

        pthread_mutex_lock(&cached->cache->lock);
        was_waiting = want->n_missing > 0;
        leave_flights(cached, want);
        was_waiting = was_waiting && want->n_missing == 0;
        if (was_waiting)
                unpin(cached, want);
        pthread_mutex_unlock(&cached->cache->lock);
        return was_waiting;
}

/* ---- ahead ------------------------------------------------------------------------------------------------------- */

/* A chunk; or, if that cannot be here in time, or could not stay for whoever needs another piece of it, this piece. */
static bool fetch_ahead(struct cached *cached, const struct cache_want *want, uint64_t chunk, uint64_t due_ns) {
        struct cache *cache = cached->cache;
        uint32_t due_s = (uint32_t)((clock_now_ns() + due_ns) / 1000000000ull) + 1;
        struct chunk_place place;
        struct flight *flight;
        uint64_t offset;
        uint32_t n_bytes;
        bool is_soon, is_small;

        part_in(cached, want, chunk, &offset, &n_bytes);
        room_mark(cached, chunk, n_bytes, due_s);
        if (chunk_is_there(cached->states[chunk]) || flight_find(cached, chunk, offset, n_bytes))
                return false;
        place = cached_place(cached, chunk);
        is_soon = due_ns < SOON_NS && cache->n_flying > 0;
        is_small = n_bytes <= PIECE_MOST_BYTES && n_bytes <= place.n_bytes / 4 && cached->states[chunk] == CHUNK_ABSENT;
        if (is_small && (is_soon || room_is_full(cache, place.n_bytes)))
                flight = flight_begin(cached, chunk, offset, n_bytes, is_soon);
        else
                flight = begin_chunk(cached, chunk, false);
        if (flight)
                flight->is_ahead = true;
        return flight != NULL;
}

void cached_ahead(struct cached *cached, const char *folder, const char *path, uint64_t offset, uint64_t n_bytes,
                  uint64_t due_ns) {
        struct cache_want want = { .offset = offset, .n_bytes = n_bytes };
        int64_t found = cached_find(cached, folder, path);
        uint64_t chunk, end;
        bool has_begun = false;

        if (found < 0)
                return;
        want.idx_file = (uint64_t)found;
        chunks_of(cached, want.idx_file, offset, n_bytes, &chunk, &end);
        pthread_mutex_lock(&cached->cache->lock);
        for (; chunk < end && !cached->cache->is_cancelled; chunk++)
                has_begun |= fetch_ahead(cached, &want, chunk, due_ns);
        if (has_begun)
                flights_send(cached->cache);
        pthread_mutex_unlock(&cached->cache->lock);
}

bool cached_has_use_ahead(const struct cached *cached) {
        struct cache *cache = cached->cache;
        bool has_room;

        if (atomic_load_explicit(&cache->n_queued, memory_order_relaxed) >= QUEUED_MAX)
                return false;
        pthread_mutex_lock(&cache->lock);
        has_room = room_reserve(cache) == 0 || cache->n_ahead_bytes + CACHE_CHUNK_BYTES <= room_reserve(cache) ||
                   cache->n_ahead_bytes == 0;
        pthread_mutex_unlock(&cache->lock);
        return has_room;
}

/* ---- whoever makes an index -------------------------------------------------------------------------------------- */

/* Which of the origin's files it is: by its path, as the kernel knows it. */
static int64_t file_of(const struct cached *cached, int fd) {
        char link[64], path[PATH_MAX];
        size_t n_root = strlen(cached->folder) + strlen("/files/");
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n <= (ssize_t)n_root)
                return -1;
        path[n] = '\0';
        if (strncmp(path, cached->folder, strlen(cached->folder)) != 0)
                return -1;
        return plan_find(cached->plan, path + n_root);
}

struct need {
        struct cache_want want;
        struct cache *cache;
        bool is_done; /* cache->lock */
};

static void on_need(struct cache_want *want) {
        struct need *need = want->userdata;

        pthread_mutex_lock(&need->cache->lock);
        need->is_done = true;
        pthread_cond_broadcast(&need->cache->changed);
        pthread_mutex_unlock(&need->cache->lock);
}

/* Who goes on where the last read ended reads the file to its end. */
static bool goes_on(struct cached *cached, uint64_t idx_file, uint64_t offset, uint64_t n_bytes) {
        bool goes = cached->last_need.idx_file == idx_file && offset > 0 && offset >= cached->last_need.end / 2 &&
                    offset <= cached->last_need.end + PIECE_LEAST_BYTES;

        cached->last_need.idx_file = idx_file;
        cached->last_need.end = offset + n_bytes;
        return goes;
}

/* They are marked, so that they stay until what comes after them is read: not all of their bytes may be. */
static void fetch_on(struct cached *cached, uint64_t idx_file, uint64_t offset) {
        uint32_t due_s = (uint32_t)(clock_now_ns() / 1000000000ull);
        uint64_t chunk, end;

        chunks_of(cached, idx_file, offset, (uint64_t)NEED_AHEAD * CACHE_CHUNK_BYTES, &chunk, &end);
        if (chunk > cached->first[idx_file]) {
                room_unmark(cached, chunk - 1, UINT32_MAX);
                room_pass(cached, chunk - 1);
        }
        for (; chunk < end; chunk++) {
                struct chunk_place place = cached_place(cached, chunk);

                if (chunk_is_there(cached->states[chunk]) || flight_find(cached, chunk, place.offset, place.n_bytes) ||
                    !begin_chunk(cached, chunk, true))
                        continue;
                room_mark(cached, chunk, place.n_bytes, due_s);
        }
}

/* At least so much of the file that reads of a few bytes, one after the other, are not a request each. */
static void widen(const struct cached *cached, struct cache_want *want) {
        uint64_t n_file = plan_file(cached->plan, want->idx_file)->n_bytes;

        if (want->n_bytes < PIECE_LEAST_BYTES)
                want->n_bytes = PIECE_LEAST_BYTES;
        if (want->offset < n_file && n_file - want->offset < PIECE_LEAST_BYTES) /* a footer: what is before it, too */
                want->offset = n_file > PIECE_LEAST_BYTES ? n_file - PIECE_LEAST_BYTES : 0;
        if (want->offset < n_file && want->n_bytes > n_file - want->offset)
                want->n_bytes = n_file - want->offset;
}

static int wait_for(struct cached *cached, struct need *need, const atomic_bool *cancel, struct why *why) {
        struct cache *cache = cached->cache;
        bool is_cancelled = false;

        pthread_mutex_lock(&cache->lock);
        while (!need->is_done && !is_cancelled) {
                is_cancelled = cancel && atomic_load_explicit(cancel, memory_order_relaxed);
                if (!is_cancelled)
                        thread_wait_until(&cache->changed, &cache->lock, clock_now_ns() + 200000000ull);
        }
        pthread_mutex_unlock(&cache->lock);
        if (is_cancelled && cached_forget(cached, &need->want))
                return -ECANCELED;
        pthread_mutex_lock(&cache->lock);
        while (!need->is_done)
                pthread_cond_wait(&cache->changed, &cache->lock);
        pthread_mutex_unlock(&cache->lock);
        return need->want.result < 0 ? why_set(why, need->want.result, "%s", need->want.why.text) : 0;
}

int cached_read(struct cached *cached, int fd, void *into, size_t n_bytes, uint64_t offset, const atomic_bool *cancel,
                struct why *why) {
        struct need need = { .want = { .offset = offset,
                                       .n_bytes = n_bytes,
                                       .keeps_pieces = true,
                                       .done = on_need,
                                       .userdata = &need },
                             .cache = cached->cache };
        int64_t found = file_of(cached, fd);
        int r;

        if (found < 0 || n_bytes == 0)
                return disk_read_at(fd, into, n_bytes, offset);
        need.want.idx_file = (uint64_t)found;
        pthread_mutex_lock(&cached->cache->lock);
        if (goes_on(cached, (uint64_t)found, offset, n_bytes))
                fetch_on(cached, (uint64_t)found, offset);
        else
                widen(cached, &need.want);
        r = want_file(cached, &need.want);
        pthread_mutex_unlock(&cached->cache->lock);
        if (r == 0)
                r = wait_for(cached, &need, cancel, why);
        else if (r < 0)
                why_set(why, r, "%s", need.want.why.text);
        if (r < 0)
                return r;
        r = disk_read_at(fd, into, n_bytes, offset);
        cached_release(cached, &need.want);
        return r;
}

bool cached_mark(struct cached *cached, int fd, uint64_t *ret_mark) {
        int64_t found = file_of(cached, fd);
        const struct plan_file *file = found < 0 ? NULL : plan_file(cached->plan, (uint64_t)found);
        char text[512];
        int n;

        if (!file)
                return false;
        n = snprintf(text, sizeof(text), "%" PRIu64 " %s", file->n_bytes, file->etag ? file->etag : "");
        if (n >= (int)sizeof(text))
                n = (int)sizeof(text) - 1;
        if (file->sha256)
                memcpy(text, file->sha256, 32);
        *ret_mark = XXH3_64bits(text, n < 32 && file->sha256 ? 32 : (size_t)n);
        return true;
}

int cached_look(struct cached *cached, struct why *why) {
        uint64_t n = plan_n_files(cached->plan), n_looks = n < LOOKS ? n : LOOKS;
        struct http_facts facts;
        int r = 0;

        for (uint64_t i = 0; i < n_looks; i++) {
                const struct plan_file *file = plan_file(cached->plan, i * n / n_looks);

                r = http_look(cached->http, file->urls[0], &cached->cache->is_over, &facts, why);
                if (r != -ENOENT && r != -EACCES)
                        break; /* it answers, or does not; else this one alone may have gone */
        }
        return r;
}
