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

#define PIECE_LEAST_BYTES (64u << 10)             /* of an index: what follows is looked at next, as often as not */
#define NEED_AHEAD_BYTES  (4 * CACHE_CHUNK_BYTES) /* fetched ahead of who reads a file to its end, */
#define NEED_CHUNKS       64u                     /* and at most so many chunks */
#define ALIKE_FILES       32u                     /* of those that follow, the same place is fetched ahead */
#define LOOKS             4u                      /* files of which one must be there, if the origin answers */
#define SOON_NS           3000000000ull           /* what is due before that is urgent */
#define SPEED_GUESS       (1000u << 20) /* bytes a second, until so many came: what is wanted waits for nobody */
#define SPEED_BYTES       (256u << 20)
#define SPEED_NS          100000000ull /* looked at so often */

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

void cached_chunks_of(const struct cached *cached, uint64_t idx_file, uint64_t offset, uint64_t n_bytes,
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

/* Is so much of it worth a request of its own? */
static bool is_small(const struct cached *cached, uint64_t chunk, uint32_t n_bytes) {
        return dlp_is_piece(n_bytes, cached_place(cached, chunk).n_bytes) && cached->states[chunk] == CHUNK_ABSENT;
}

/* Does this bring a part of so many bytes later than a piece of its own would? */
static bool comes_too_late(const struct flight *flight, uint32_t n_bytes) {
        return flight->phase == FLIGHT_QUEUED && flight->is_chunk && !flight->is_urgent &&
               is_small(flight->cached, flight->chunk, n_bytes);
}

/* What brings this part of an absent chunk the soonest: what is on its way; or, of a chunk that has not been begun, a
 * piece of its own, if that is small. */
static struct flight *flight_for(struct cached *cached, const struct cache_want *want, uint64_t chunk) {
        struct flight *flight;
        uint64_t offset;
        uint32_t n_bytes;

        part_in(cached, want, chunk, &offset, &n_bytes);
        flight = flight_find(cached, chunk, offset, n_bytes);
        if (flight && !comes_too_late(flight, n_bytes)) {
                flight_hurry(flight);
                return flight;
        }
        if (!is_small(cached, chunk, n_bytes))
                return begin_chunk(cached, chunk, true);
        return flight_begin(cached, chunk, offset, n_bytes, true); /* a chunk stays in the queue */
}

/* Waits for it, if it has not landed; a piece stays until the release. */
static int use_flight(struct flight *flight, struct cache_want *want) {
        int r = flight->phase == FLIGHT_LANDED ? 0 : flight_join(flight, want);

        if (r == 0 && !flight->is_chunk) {
                want->pieces[want->pieces[0] != 0] = flight->id; /* of its first and its last chunk */
                flight->n_users++;
                flight->is_ahead |= want->keeps_pieces;
        }
        return r;
}

static int want_chunk(struct cached *cached, struct cache_want *want, uint64_t chunk) {
        struct flight *flight;

        if (chunk_is_there(cached->states[chunk]))
                return 0;
        flight = flight_for(cached, want, chunk);
        return flight ? use_flight(flight, want) : -ENOMEM;
}

/* The pieces of this chunk that it needed go, unless others need them. */
static void drop_pieces(struct cached *cached, const struct cache_want *want, uint64_t chunk) {
        for (size_t i = 0; i < ARRAY_SIZE(want->pieces); i++) {
                struct flight *flight = want->pieces[i] ? flight_known(cached, chunk, want->pieces[i]) : NULL;

                if (flight && --flight->n_users == 0 && flight->phase == FLIGHT_LANDED && !flight_stays(flight))
                        flight_remove(flight);
        }
}

static void unpin(struct cached *cached, const struct cache_want *want) {
        uint64_t chunk, end;

        cached_chunks_of(cached, want->idx_file, want->offset, want->n_bytes, &chunk, &end);
        for (; chunk < end; chunk++) {
                cached->pins[chunk]--;
                if (cached->states[chunk] == CHUNK_ABSENT && !want->keeps_pieces)
                        drop_pieces(cached, want, chunk);
                room_pass(cached, chunk);
        }
}

static void leave_flights(struct cached *cached, struct cache_want *want) {
        uint64_t chunk, end;

        cached_chunks_of(cached, want->idx_file, want->offset, want->n_bytes, &chunk, &end);
        for (; chunk < end && want->n_missing > 0; chunk++)
                flights_leave(cached, chunk, want);
}

static int want_file(struct cached *cached, struct cache_want *want) {
        struct cache *cache = cached->cache;
        uint64_t begin, end, offset;
        uint32_t n_bytes;
        int r = cache->is_cancelled ? -ECANCELED : 0;

        want->n_missing = 0;
        want->result = 0;
        memset(want->pieces, 0, sizeof(want->pieces));
        cached_chunks_of(cached, want->idx_file, want->offset, want->n_bytes, &begin, &end);
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

/* The chunk, or a piece and, so that its bytes have not come in vain, the chunk after it. NULL: no memory. */
static struct flight *flight_asked(struct cached *cached, const struct cache_want *want, uint64_t chunk,
                                   bool is_urgent) {
        struct flight *flight = flight_find(cached, chunk, want->offset, want->n_bytes), *whole;
        struct chunk_place place = cached_place(cached, chunk);

        if (want->n_bytes == place.n_bytes)
                return flight ? flight : begin_chunk(cached, chunk, false);
        if (flight && !comes_too_late(flight, (uint32_t)want->n_bytes))
                return flight;
        whole = flight ? flight : room_is_full(cached->cache, place.n_bytes) ? NULL : begin_chunk(cached, chunk, false);
        if (whole)
                flight_turn_to_origin(whole);
        return flight_begin(cached, chunk, want->offset, (uint32_t)want->n_bytes, is_urgent);
}

int cached_want_asked(struct cached *cached, struct cache_want *want, uint64_t chunk, bool is_urgent) {
        struct chunk_place place = cached_place(cached, chunk);
        struct flight *flight;

        want->idx_file = place.idx_file;
        if (want->n_bytes > place.n_bytes || !is_small(cached, chunk, (uint32_t)want->n_bytes)) {
                want->offset = place.offset;
                want->n_bytes = place.n_bytes;
        }
        if (cached->cache->is_cancelled || !cached->fetcher)
                return -ECANCELED;
        if (!chunk_is_there(cached->states[chunk])) {
                flight = flight_asked(cached, want, chunk, is_urgent);
                if (!flight)
                        return -ENOMEM;
                if (!flight_turn_to_origin(flight))
                        return -EDEADLK;
                if (is_urgent)
                        flight_hurry(flight);
                if (use_flight(flight, want) < 0)
                        return -ENOMEM;
        }
        cached->pins[chunk]++;
        cached->used_ns = clock_now_ns();
        flights_send(cached->cache);
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
        was_waiting = want->n_missing > 0; /* else it is another one's by now */
        if (was_waiting)
                leave_flights(cached, want);
        if (was_waiting)
                unpin(cached, want);
        pthread_mutex_unlock(&cached->cache->lock);
        return was_waiting;
}

/* ---- ahead ------------------------------------------------------------------------------------------------------- */

/* As the fetchers know it. */
static void look_at_speed(struct cached *cached, uint64_t now_ns) {
        struct fetcher_counts counts, of_peers = { 0 };

        if (now_ns - cached->speed.seen_ns <= SPEED_NS || !cached->fetcher)
                return;
        fetcher_counts(cached->fetcher, &counts);
        if (cached->cache->peer_fetcher)
                fetcher_counts(cached->cache->peer_fetcher, &of_peers);
        cached->speed.seen_ns = now_ns;
        cached->speed.first_byte_ns = counts.latency.first_byte_median_ns;
        cached->speed.late_ns = counts.latency.first_byte_p999_ns;
        cached->speed.bytes_per_s = counts.n_bytes + of_peers.n_bytes > SPEED_BYTES
                                            ? counts.latency.bytes_per_s + of_peers.latency.bytes_per_s
                                            : 0;
}

/* Once they have seen enough. */
static uint64_t bytes_per_s(struct cached *cached, uint64_t now_ns) {
        look_at_speed(cached, now_ns);
        return cached->speed.bytes_per_s > 0 ? cached->speed.bytes_per_s : SPEED_GUESS;
}

/* In how long a chunk that is queued will be here: after all chunks that were asked for before. */
static uint64_t chunk_takes_ns(struct cached *cached, const struct flight *flight, uint64_t now_ns) {
        uint64_t n_bytes = flight->n_chunks_until - cached->cache->n_chunks_over;

        return n_bytes * 1000 / bytes_per_s(cached, now_ns) * 1000000 + 2 * cached->speed.first_byte_ns;
}

/* The chunk, after those that are needed before it; and if that cannot be here in time, the piece; this one alone if
 * the chunk could not stay for whoever needs another piece of it. */
static bool fetch_ahead(struct cached *cached, const struct cache_want *want, uint64_t chunk, uint64_t due_ns) {
        struct cache *cache = cached->cache;
        uint64_t now_ns = clock_now_ns(), offset;
        uint32_t due_s = (uint32_t)((now_ns + due_ns) / 1000000000ull) + 1, n_bytes;
        struct chunk_place place = cached_place(cached, chunk);
        struct flight *flight, *piece = NULL;
        bool has_begun = false, is_piece, is_full;

        part_in(cached, want, chunk, &offset, &n_bytes);
        room_mark(cached, chunk, n_bytes, due_s);
        if (chunk_is_there(cached->states[chunk]))
                return false;
        flight = flight_find(cached, chunk, offset, n_bytes);
        if (flight && (!flight->is_chunk || flight->phase != FLIGHT_QUEUED))
                return false;
        is_piece = is_small(cached, chunk, n_bytes);
        is_full = is_piece && !dlp_is_dense(cached->marked[chunk], place.n_bytes) && room_is_full(cache, place.n_bytes);
        if (!flight && !is_full) {
                flight = begin_chunk(cached, chunk, false);
                has_begun = flight != NULL;
        }
        if (flight)
                flight->is_ahead = true;
        if (flight ? is_piece && cache->n_flying > 0 && due_ns < chunk_takes_ns(cached, flight, now_ns) : is_full)
                piece = flight_begin(cached, chunk, offset, n_bytes, due_ns < SOON_NS);
        if (piece)
                piece->is_ahead = true;
        return has_begun || piece;
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
        cached_chunks_of(cached, want.idx_file, offset, n_bytes, &chunk, &end);
        pthread_mutex_lock(&cached->cache->lock);
        for (; chunk < end && !cached->cache->is_cancelled; chunk++)
                has_begun |= fetch_ahead(cached, &want, chunk, due_ns);
        if (has_begun)
                flights_send(cached->cache);
        pthread_mutex_unlock(&cached->cache->lock);
}

uint64_t cached_horizon_ns(struct cached *cached) {
        uint64_t late_ns;

        pthread_mutex_lock(&cached->cache->lock);
        look_at_speed(cached, clock_now_ns());
        late_ns = cached->speed.late_ns;
        pthread_mutex_unlock(&cached->cache->lock);
        return dlp_horizon_ns(cached->cache->options.ahead_s, late_ns);
}

bool cached_has_use_ahead(const struct cached *cached) {
        struct cache *cache = cached->cache;
        bool has_room;

        if (atomic_load_explicit(&cache->n_queued, memory_order_relaxed) >= DLP_QUEUED_MAX)
                return false;
        pthread_mutex_lock(&cache->lock);
        has_room = !room_is_short(cache) || dlp_may_mark(cache->limit, cache->n_ahead_bytes);
        pthread_mutex_unlock(&cache->lock);
        return has_room;
}

#define FILL_QUEUED (DLP_QUEUED_MAX / 2) /* jobs have the rest */
#define FILL_BYTES  (512ull << 20)       /* that are on their way or wait; half a second of a fast line */
#define FILL_LOOKS  65536u               /* chunks of one call: the lock is held */

/* Is it neither here nor on its way? */
static bool is_lacking(struct cached *cached, uint64_t chunk, const struct chunk_place *place) {
        return !chunk_is_there(cached->states[chunk]) && !flight_find(cached, chunk, place->offset, place->n_bytes);
}

/* As room_is_full(), where all that waits comes before. */
static bool will_be_full(const struct cache *cache, uint64_t n_bytes) {
        uint64_t n_begun = cache->n_chunks_begun - cache->n_chunks_over;

        return room_is_full(cache, n_bytes + (n_begun > cache->n_coming_bytes ? n_begun - cache->n_coming_bytes : 0));
}

uint64_t cached_fill(struct cached *cached, uint64_t first, uint64_t *ret_n_chunks, bool *ret_is_full) {
        struct cache *cache = cached->cache;
        uint64_t chunk = first, end = cached->n_chunks;
        struct flight *flight;
        bool is_tight;

        *ret_n_chunks = cached->n_chunks;
        *ret_is_full = false;
        if (first < end && end - first > FILL_LOOKS)
                end = first + FILL_LOOKS;
        pthread_mutex_lock(&cache->lock);
        for (; chunk < end && !cache->is_cancelled && cached->fetcher; chunk++) {
                struct chunk_place place = cached_place(cached, chunk);

                if (!is_lacking(cached, chunk, &place))
                        continue;
                if (atomic_load_explicit(&cache->n_queued, memory_order_relaxed) >= FILL_QUEUED ||
                    cache->n_chunks_begun - cache->n_chunks_over >= FILL_BYTES)
                        break;
                is_tight = will_be_full(cache, place.n_bytes);
                *ret_is_full = is_tight && cache->has_no_closed;
                if (*ret_is_full || (is_tight && cache->n_chunks_begun > cache->n_chunks_over))
                        break; /* else one alone: the keeper clears old folders away for it */
                flight = begin_chunk(cached, chunk, false);
                if (!flight)
                        break;
                flight->is_filling = true;
        }
        cached->used_ns = clock_now_ns();
        flights_send(cache);
        pthread_mutex_unlock(&cache->lock);
        return chunk;
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

/* Who goes on where the last read ended reads the file to its end. Several files are read side by side. */
static bool goes_on(struct cached *cached, uint64_t idx_file, uint64_t offset, uint64_t n_bytes) {
        struct cached_need *last = &cached->last_needs[idx_file % LAST_NEEDS];
        bool goes = last->idx_file == idx_file && offset > 0 && offset >= last->end / 2 &&
                    offset <= last->end + PIECE_LEAST_BYTES;

        last->idx_file = idx_file;
        last->end = offset + n_bytes;
        return goes;
}

/* The chunks from there on, also of the files that follow if there is room: who reads one to its end reads the next.
 * They are marked, so that they stay until what comes after them is read: not all of their bytes may be. */
static void fetch_on(struct cached *cached, uint64_t idx_file, uint64_t offset, bool is_alone) {
        uint32_t due_s = (uint32_t)(clock_now_ns() / 1000000000ull);
        uint64_t chunk, end, n_bytes = 0;

        cached_chunks_of(cached, idx_file, offset, 1, &chunk, &end);
        if (chunk == end)
                return;
        if (chunk > cached->first[idx_file]) {
                room_unmark(cached, chunk - 1, UINT32_MAX);
                room_pass(cached, chunk - 1);
        }
        end = is_alone || room_is_short(cached->cache) ? cached->first[idx_file + 1] : cached->n_chunks;
        for (uint32_t i = 0; i < NEED_CHUNKS && chunk < end && n_bytes < NEED_AHEAD_BYTES; i++, chunk++) {
                struct chunk_place place = cached_place(cached, chunk);

                n_bytes += place.n_bytes;
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

/* Whoever reads the head of a file, or its footer, reads those of the files that follow. */
static void fetch_alike(struct cached *cached, const struct cache_want *want) {
        uint64_t n_file = plan_file(cached->plan, want->idx_file)->n_bytes, n_files = plan_n_files(cached->plan);
        bool is_end = want->offset + want->n_bytes == n_file;

        if (want->offset > 0 && !is_end)
                return;
        for (uint64_t i = want->idx_file + 1; i < n_files && i <= want->idx_file + ALIKE_FILES; i++) {
                struct cache_want like = { .idx_file = i, .n_bytes = PIECE_LEAST_BYTES };
                struct flight *flight;
                uint64_t chunk, end, offset;
                uint32_t n_bytes;

                n_file = plan_file(cached->plan, i)->n_bytes;
                if (want->offset > 0 && n_file > PIECE_LEAST_BYTES)
                        like.offset = n_file - PIECE_LEAST_BYTES;
                cached_chunks_of(cached, i, like.offset, like.n_bytes, &chunk, &end);
                for (; chunk < end; chunk++) {
                        part_in(cached, &like, chunk, &offset, &n_bytes);
                        if (cached->states[chunk] != CHUNK_ABSENT || flight_find(cached, chunk, offset, n_bytes))
                                continue;
                        flight = flight_begin(cached, chunk, offset, n_bytes, true);
                        if (flight)
                                flight->is_ahead = true;
                }
        }
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

int cached_read(struct cached *cached, int fd, void *into, size_t n_bytes, uint64_t offset, bool is_alone,
                const atomic_bool *cancel, struct why *why) {
        struct need need = { .want = { .offset = offset,
                                       .n_bytes = n_bytes,
                                       .keeps_pieces = true,
                                       .done = on_need,
                                       .userdata = &need },
                             .cache = cached->cache };
        int64_t found = file_of(cached, fd);
        bool is_on;
        int r;

        if (found < 0 || n_bytes == 0)
                return disk_read_at(fd, into, n_bytes, offset);
        need.want.idx_file = (uint64_t)found;
        pthread_mutex_lock(&cached->cache->lock);
        is_on = goes_on(cached, (uint64_t)found, offset, n_bytes);
        if (is_on)
                fetch_on(cached, (uint64_t)found, offset, is_alone);
        else
                widen(cached, &need.want);
        r = want_file(cached, &need.want);
        if (r == 0 && !is_on) {
                fetch_alike(cached, &need.want);
                flights_send(cached->cache);
        }
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

int cached_look(struct cached *cached, const atomic_bool *cancel, struct why *why) {
        uint64_t n = plan_n_files(cached->plan), n_looks = n < LOOKS ? n : LOOKS;
        struct http_facts facts;
        int r = 0;

        for (uint64_t i = 0; i < n_looks; i++) {
                const struct plan_file *file = plan_file(cached->plan, i * n / n_looks);

                r = http_look(cached->http, file->urls[0], cancel ? cancel : &cached->cache->is_over, &facts, why);
                if (r != -ENOENT && r != -EACCES)
                        break; /* it answers, or does not; else this one alone may have gone */
        }
        return r;
}
