/* What is on its way: which chunks and pieces, and who waits for them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/cache/cache_private.h"
#include "daemon/store/cache/peers/peer_asks.h"
#include "proto/base/cleanup.h"

#define FLYING_MAX 512u

static uint32_t bucket_of(const struct cached *cached, uint64_t chunk) {
        uint64_t mixed = ((uintptr_t)cached >> 6 ^ chunk) * 0x9e3779b97f4a7c15ull;

        return (uint32_t)(mixed >> 40) % FLIGHT_BUCKETS;
}

static bool covers(const struct flight *flight, uint64_t offset, uint64_t n_bytes) {
        return flight->piece.offset <= offset && offset + n_bytes <= flight->piece.offset + flight->piece.n_bytes;
}

/* The one that will be here first: what has landed, else what is flying, else what is queued. */
struct flight *flight_find(struct cached *cached, uint64_t chunk, uint64_t offset, uint64_t n_bytes) {
        struct flight *flight, *best = NULL;

        LIST_FOREACH(flight, &cached->cache->buckets[bucket_of(cached, chunk)], in_bucket)
                if (flight->cached == cached && flight->chunk == chunk && covers(flight, offset, n_bytes) &&
                    (!best || flight->phase > best->phase || (flight->phase == best->phase && best->is_chunk)))
                        best = flight;
        return best;
}

struct flight *flight_known(struct cached *cached, uint64_t chunk, uint64_t id) {
        struct flight *flight;

        LIST_FOREACH(flight, &cached->cache->buckets[bucket_of(cached, chunk)], in_bucket)
                if (flight->id == id)
                        return flight->chunk == chunk ? flight : NULL;
        return NULL;
}

static struct flights *queue_of(const struct flight *flight) {
        enum flight_queue queue = flight->peer        ? flight->is_urgent ? QUEUE_PEER_URGENT : QUEUE_PEER_AHEAD
                                  : flight->is_urgent ? QUEUE_URGENT
                                  : flight->is_asked  ? QUEUE_ASKED
                                                      : QUEUE_AHEAD;

        return &flight->cached->cache->queues[queue];
}

struct flight *flight_begin(struct cached *cached, uint64_t chunk, uint64_t offset, uint32_t n_bytes, bool is_urgent) {
        struct cache *cache = cached->cache;
        struct chunk_place place = cached_place(cached, chunk);
        struct flight *flight = calloc(1, sizeof(*flight));

        if (!flight)
                return NULL;
        flight->is_chunk = offset == place.offset && n_bytes == place.n_bytes;
        if (flight->is_chunk && !(flight->digested = XXH3_createState())) {
                free(flight);
                return NULL;
        }
        flight->cached = cached;
        flight->chunk = chunk;
        flight->fd = -1;
        flight->is_urgent = is_urgent;
        flight->id = ++cache->last_id;
        flight->piece = (struct fetch_piece){
                .file = place.file, .offset = offset, .n_bytes = n_bytes, .take = landing_take, .userdata = flight
        };
        STAILQ_INIT(&flight->waiters);
        flight->peer = peer_asks_owner(cached, chunk);
        LIST_INSERT_HEAD(&cache->buckets[bucket_of(cached, chunk)], flight, in_bucket);
        TAILQ_INSERT_TAIL(queue_of(flight), flight, entry);
        cache->n_queued++;
        if (flight->is_chunk)
                flight->n_chunks_until = cache->n_chunks_begun += n_bytes;
        return flight;
}

void flight_unqueue(struct flight *flight) {
        struct cache *cache = flight->cached->cache;

        TAILQ_REMOVE(queue_of(flight), flight, entry);
        cache->n_queued--;
}

/* A queued one goes to the end of another queue. */
static void requeue(struct flight *flight, uint32_t peer, bool is_urgent, bool is_asked) {
        TAILQ_REMOVE(queue_of(flight), flight, entry);
        flight->peer = peer;
        flight->is_urgent = is_urgent;
        flight->is_asked = is_asked;
        TAILQ_INSERT_TAIL(queue_of(flight), flight, entry);
}

bool flight_turn_to_origin(struct flight *flight) {
        if (flight->phase == FLIGHT_QUEUED)
                requeue(flight, 0, flight->is_urgent, true);
        return flight->peer == 0;
}

int flight_join(struct flight *flight, struct cache_want *want) {
        struct flight_waiter *waiter = malloc(sizeof(*waiter));

        if (!waiter)
                return -ENOMEM;
        waiter->want = want;
        STAILQ_INSERT_TAIL(&flight->waiters, waiter, entry);
        want->n_missing++;
        return 0;
}

static void flight_leave(struct flight *flight, struct cache_want *want) {
        struct flight_waiter *waiter, *next;

        for (waiter = STAILQ_FIRST(&flight->waiters); waiter; waiter = next) {
                next = STAILQ_NEXT(waiter, entry);
                if (waiter->want != want)
                        continue;
                STAILQ_REMOVE(&flight->waiters, waiter, flight_waiter, entry);
                want->n_missing--;
                free(waiter);
        }
}

void flights_leave(struct cached *cached, uint64_t chunk, struct cache_want *want) {
        struct flight *flight;

        LIST_FOREACH(flight, &cached->cache->buckets[bucket_of(cached, chunk)], in_bucket)
                if (flight->cached == cached && flight->chunk == chunk)
                        flight_leave(flight, want);
}

void flight_hurry(struct flight *flight) {
        struct fetcher *fetcher = flight->ask ? flight->cached->cache->peer_fetcher : flight->cached->fetcher;

        if (flight->is_urgent || flight->phase == FLIGHT_LANDED)
                return;
        if (flight->phase == FLIGHT_QUEUED) {
                requeue(flight, flight->peer, true, flight->is_asked);
                return;
        }
        flight->is_urgent = true;
        if (flight->is_submitted && fetcher)
                fetcher_hurry(fetcher, &flight->job);
}

void flight_answer(struct flight *flight, int result, const struct why *why, struct cache_wants *done) {
        struct flight_waiter *waiter;

        while ((waiter = STAILQ_FIRST(&flight->waiters))) {
                struct cache_want *want = waiter->want;

                STAILQ_REMOVE_HEAD(&flight->waiters, entry);
                free(waiter);
                if (result < 0 && want->result == 0) {
                        want->result = result;
                        want->why = *why;
                }
                if (--want->n_missing == 0)
                        STAILQ_INSERT_TAIL(done, want, entry);
        }
}

void flight_end(struct flight *flight) {
        LIST_REMOVE(flight, in_bucket);
        if (flight->is_chunk)
                flight->cached->cache->n_chunks_over += flight->piece.n_bytes;
        else if (flight->phase != FLIGHT_LANDED)
                flight_tell_chunk(flight, true);
        free(flight->holes);
        free(flight->landings);
        XXH3_freeState(flight->digested);
        free(flight);
}

void flights_forget_pieces(struct cached *cached, uint64_t chunk) {
        struct flight *flight, *next;

        for (flight = LIST_FIRST(&cached->cache->buckets[bucket_of(cached, chunk)]); flight; flight = next) {
                next = LIST_NEXT(flight, in_bucket);
                if (flight->cached == cached && flight->chunk == chunk && flight->phase == FLIGHT_LANDED)
                        flight_end(flight);
        }
}

/* The first one of the chunk that has, or writes, some of its bytes from `offset` to `end`. */
static const struct flight *first_between(struct cached *cached, uint64_t chunk, uint64_t offset, uint64_t end) {
        const struct flight *flight, *first = NULL;

        LIST_FOREACH(flight, &cached->cache->buckets[bucket_of(cached, chunk)], in_bucket)
                if (flight->cached == cached && flight->chunk == chunk && flight->phase != FLIGHT_QUEUED &&
                    flight->piece.offset < end && offset < flight->piece.offset + flight->piece.n_bytes &&
                    (!first || flight->piece.offset < first->piece.offset))
                        first = flight;
        return first;
}

/* Of a chunk that is not here: but for those that flights have. */
static void drop_bytes(struct cached *cached, uint64_t chunk, uint64_t at, uint64_t end) {
        const struct flight *other;

        for (; cached->states[chunk] == CHUNK_ABSENT && at < end;
             at = other ? other->piece.offset + other->piece.n_bytes : end) {
                other = first_between(cached, chunk, at, end);
                if (!other || other->piece.offset > at)
                        room_drop_piece(cached, chunk, at, (uint32_t)((other ? other->piece.offset : end) - at));
        }
}

void flight_remove(struct flight *flight) {
        struct cached *cached = flight->cached;
        uint64_t chunk = flight->chunk, at = flight->piece.offset, end = at + flight->piece.n_bytes;

        flight_end(flight);
        drop_bytes(cached, chunk, at, end);
}

void flights_drop(struct cached *cached, enum flight_phase phase) {
        struct cache *cache = cached->cache;

        for (uint32_t i = 0; i < FLIGHT_BUCKETS; i++) {
                struct flight *flight, *next;

                for (flight = LIST_FIRST(&cache->buckets[i]); flight; flight = next) {
                        next = LIST_NEXT(flight, in_bucket);
                        if (flight->cached != cached || flight->phase != phase)
                                continue;
                        if (phase == FLIGHT_QUEUED)
                                flight_unqueue(flight);
                        flight_remove(flight);
                }
        }
}

bool flights_are_flying(const struct cached *cached) {
        struct flight *flight;

        for (uint32_t i = 0; i < FLIGHT_BUCKETS; i++)
                LIST_FOREACH(flight, &cached->cache->buckets[i], in_bucket)
                        if (flight->cached == cached && flight->phase == FLIGHT_FLYING)
                                return true;
        return false;
}

/* ---- a chunk and its pieces -------------------------------------------------------------------------------------- */

static bool is_piece_of(const struct flight *flight, const struct flight *chunk) {
        return !flight->is_chunk && flight->cached == chunk->cached && flight->chunk == chunk->chunk;
}

/* The first piece of the chunk that brings, or has brought, some of its bytes from `offset` to `end`, and `n_least` at
 * least. */
static const struct flight *next_piece(const struct flight *chunk, uint64_t offset, uint64_t end, uint32_t n_least) {
        const struct flight *other, *first = NULL;

        LIST_FOREACH(other, &chunk->cached->cache->buckets[bucket_of(chunk->cached, chunk->chunk)], in_bucket)
                if (is_piece_of(other, chunk) && other->piece.n_bytes >= n_least && other->piece.offset < end &&
                    offset < other->piece.offset + other->piece.n_bytes &&
                    (!first || other->piece.offset < first->piece.offset))
                        first = other;
        return first;
}

/* Returns their number, and that of all pieces; `holes` NULL: only that. */
static uint32_t find_holes(const struct flight *chunk, uint32_t n_least, struct fetch_piece *holes,
                           uint32_t *ret_n_pieces) {
        uint64_t at = chunk->piece.offset, end = at + chunk->piece.n_bytes;
        uint32_t n = 0, n_pieces = 0;

        while (at < end) {
                const struct flight *next = next_piece(chunk, at, end, n_least);
                uint64_t until = next ? next->piece.offset : end;

                if (until > at && holes) {
                        holes[n] = chunk->piece;
                        holes[n].offset = at;
                        holes[n].n_bytes = (uint32_t)(until - at);
                }
                n += until > at;
                n_pieces += next != NULL;
                at = next ? next->piece.offset + next->piece.n_bytes : end;
        }
        *ret_n_pieces = n_pieces;
        return n;
}

/* What its pieces bring, or have brought, is not asked for again; pieces that nobody waits for, and that have not been
 * sent, are left to the chunk. Of what another node sends nothing may be written over what somebody may be reading, so
 * not even small pieces are. False: there is no memory. */
static bool leave_out_pieces(struct flight *chunk) {
        uint32_t n_least = chunk->peer ? 1 : DLP_LEFT_OUT_BYTES, n_pieces;
        struct flight *other, *next;

        free(TAKE_PTR(chunk->holes));
        free(TAKE_PTR(chunk->landings));
        for (other = LIST_FIRST(&chunk->cached->cache->buckets[bucket_of(chunk->cached, chunk->chunk)]); other;
             other = next) {
                next = LIST_NEXT(other, in_bucket);
                if (!is_piece_of(other, chunk) || other->phase != FLIGHT_QUEUED || !STAILQ_EMPTY(&other->waiters))
                        continue;
                flight_unqueue(other);
                flight_end(other);
        }
        chunk->has_lost = false;
        chunk->n_holes = find_holes(chunk, n_least, NULL, &n_pieces);
        if (n_pieces == 0) {
                chunk->n_holes = 0;
                return true;
        }
        chunk->holes = calloc(chunk->n_holes + 1, sizeof(*chunk->holes));
        chunk->landings = calloc(chunk->n_holes + 1, sizeof(*chunk->landings));
        if (chunk->holes && chunk->landings) {
                find_holes(chunk, n_least, chunk->holes, &n_pieces);
                return true;
        }
        chunk->n_holes = 0;
        free(TAKE_PTR(chunk->holes));
        return false;
}

/* Of the chunk, in one of these phases. */
static struct flight *chunk_of(const struct flight *flight, enum flight_phase first, enum flight_phase last) {
        struct flight *chunk;

        LIST_FOREACH(chunk, &flight->cached->cache->buckets[bucket_of(flight->cached, flight->chunk)], in_bucket)
                if (chunk->is_chunk && chunk->cached == flight->cached && chunk->chunk == flight->chunk &&
                    chunk->phase >= first && chunk->phase <= last)
                        return chunk;
        return NULL;
}

static bool has_pieces_to_come(const struct flight *chunk) {
        const struct flight *other;

        LIST_FOREACH(other, &chunk->cached->cache->buckets[bucket_of(chunk->cached, chunk->chunk)], in_bucket)
                if (is_piece_of(other, chunk) && other->phase != FLIGHT_LANDED)
                        return true;
        return false;
}

/* What waits for others must not be in their way. */
static void set_waiting(struct flight *chunk, bool is_waiting) {
        struct cache *cache = chunk->cached->cache;

        chunk->is_waiting = is_waiting;
        if (is_waiting) {
                cache->n_flying--;
                cache->n_flying_bytes -= chunk->piece.n_bytes;
        } else {
                cache->n_flying++;
                cache->n_flying_bytes += chunk->piece.n_bytes;
        }
}

bool flight_waits(struct flight *flight) {
        if (!has_pieces_to_come(flight))
                return false;
        set_waiting(flight, true);
        return true;
}

void flight_tell_chunk(struct flight *flight, bool is_lost) {
        struct flight *chunk = chunk_of(flight, FLIGHT_FLYING, FLIGHT_FLYING);

        if (!chunk)
                return;
        chunk->has_lost |= is_lost;
        if (!chunk->is_waiting || has_pieces_to_come(chunk))
                return;
        set_waiting(chunk, false);
        keeper_land(chunk);
}

bool flight_stays(const struct flight *flight) {
        return chunk_of(flight, FLIGHT_FLYING, FLIGHT_FLYING) ||
               (!room_is_short(flight->cached->cache) && chunk_of(flight, FLIGHT_QUEUED, FLIGHT_QUEUED));
}

void flights_drop_unused(struct cached *cached, uint64_t chunk) {
        struct flight *flight, *next;

        for (flight = LIST_FIRST(&cached->cache->buckets[bucket_of(cached, chunk)]); flight; flight = next) {
                next = LIST_NEXT(flight, in_bucket);
                if (flight->cached == cached && flight->chunk == chunk && flight->phase == FLIGHT_LANDED &&
                    flight->n_users == 0 && !flight->is_ahead)
                        flight_remove(flight);
        }
}

/* ---- sending --------------------------------------------------------------------------------------------------- */

/* May it be asked for now? What other nodes are asked for is in the way of nothing else. */
static bool may_fly(const struct flight *flight) {
        const struct cache *cache = flight->cached->cache;
        uint64_t n_bytes = flight->peer ? cache->n_flying_peer_bytes
                                        : cache->n_flying_bytes - cache->n_flying_peer_bytes;
        uint32_t n = flight->peer ? cache->n_flying_peer : cache->n_flying - cache->n_flying_peer;

        if (flight->peer && !flight->is_chunk && cache->n_peer_buffer_bytes > PEER_BUFFERS_MAX)
                return false;
        return n == 0 || (n < (flight->peer ? PEER_FLYING_MAX : FLYING_MAX) &&
                          n_bytes + flight->piece.n_bytes <= cache->flying_max);
}

/* Whoever was to need the chunk has had his piece of it, or has left, and it could not stay. */
static bool is_vain(const struct flight *flight) {
        return !flight->is_urgent && !flight->is_filling && flight->is_chunk && STAILQ_EMPTY(&flight->waiters) &&
               flight->cached->marked[flight->chunk] == 0 && room_is_short(flight->cached->cache);
}

/* Before a byte of it is written, so that the cache has no more than it may. */
static void flight_take_place(struct flight *flight) {
        struct cached *cached = flight->cached;
        struct cache *cache = cached->cache;
        uint64_t n_bytes = flight->piece.n_bytes;

        flight->has_place = true;
        if (!flight->is_chunk) {
                room_reserve_more(cached);
                return;
        }
        flight->is_passing = !room_make(cached, n_bytes);
        cached->n_bytes += n_bytes;
        cache->n_bytes += n_bytes;
        cache->n_coming_bytes += n_bytes;
        cache->n_passing_bytes += flight->is_passing ? n_bytes : 0;
        if (flight->is_passing)
                room_reserve_more(cached);
}

void flight_leave_place(struct flight *flight, int result) {
        struct cached *cached = flight->cached;
        struct cache *cache = cached->cache;
        uint64_t n_bytes = flight->piece.n_bytes;

        flight->has_place = false;
        if (!flight->is_chunk)
                return;
        cache->n_coming_bytes -= n_bytes;
        if (result == 0) {
                cached->states[flight->chunk] = flight->is_passing ? CHUNK_PASSING : CHUNK_THERE;
                return;
        }
        cached->n_bytes -= n_bytes;
        cache->n_bytes -= n_bytes;
        cache->n_passing_bytes -= flight->is_passing ? n_bytes : 0;
}

void flight_leave_air(struct flight *flight) {
        struct cached *cached = flight->cached;
        struct cache *cache = cached->cache;

        flight_leave_peer(flight);
        cache->n_flying--;
        cache->n_flying_bytes -= flight->piece.n_bytes;
        cached->pins[flight->chunk]--;
        closep(&flight->fd);
        flight->fd = -1;
}

void flight_put_back(struct flight *flight) {
        flight_leave_air(flight);
        flight->phase = FLIGHT_QUEUED;
        flight->write_error = 0;
        TAILQ_INSERT_TAIL(queue_of(flight), flight, entry);
        flight->cached->cache->n_queued++;
        drop_bytes(flight->cached, flight->chunk, flight->piece.offset, flight->piece.offset + flight->piece.n_bytes);
}

void flight_leave_peer(struct flight *flight) {
        struct cache *cache = flight->cached->cache;

        cache->n_flying_peer -= flight->peer > 0;
        cache->n_flying_peer_bytes -= flight->peer > 0 ? flight->piece.n_bytes : 0;
        flight->peer = 0;
}

void flight_submit(struct flight *flight) {
        bool is_peers = flight->peer > 0;

        if (!flight->has_place)
                flight_take_place(flight);
        flight->is_submitted = true;
        flight->write_error = 0;
        flight->job.pieces = &flight->piece;
        flight->job.n_pieces = 1;
        if ((!flight->is_chunk || leave_out_pieces(flight)) && flight->peer && peer_asks_send(flight))
                return;
        flight_leave_peer(flight);
        if (is_peers && flight->is_chunk)
                leave_out_pieces(flight); /* without memory all of it comes, which is what lies there */
        if (flight->holes) {
                flight->job.pieces = flight->holes;
                flight->job.n_pieces = flight->n_holes;
        }
        fetcher_submit(flight->cached->fetcher, &flight->job);
}

/* Returns false if it has to wait. The keeper has it first if it is doubtful, which means here, or if there is more to
 * remove than a chunk: it submits it. It is pinned from now on: nothing of it is removed while it is written. */
static bool send_one(struct cache *cache, struct flight *flight) {
        if (is_vain(flight)) {
                flight_unqueue(flight);
                flights_drop_unused(flight->cached, flight->chunk);
                flight_end(flight);
                return true;
        }
        if (!may_fly(flight))
                return false;
        flight_unqueue(flight);
        flight->phase = FLIGHT_FLYING;
        cache->n_flying++;
        cache->n_flying_bytes += flight->piece.n_bytes;
        flight->cached->pins[flight->chunk]++;
        cache->n_flying_peer += flight->peer > 0;
        cache->n_flying_peer_bytes += flight->peer > 0 ? flight->piece.n_bytes : 0;
        flight->job = (struct fetch_job){ .idx_mirror = flight->cached->texts[CACHED_MIRROR] ? 1 : 0,
                                          .is_urgent = flight->is_urgent,
                                          .userdata = flight };
        flight->is_doubtful = flight->is_chunk && flight->cached->states[flight->chunk] == CHUNK_DOUBTFUL;
        if (flight->is_doubtful || (flight->is_chunk && room_may_clear(cache, flight->piece.n_bytes))) {
                TAILQ_INSERT_TAIL(&cache->landed, flight, entry);
                pthread_cond_broadcast(&cache->changed);
        } else {
                flight_submit(flight);
        }
        return true;
}

/* Of these queues, the first one that waits. */
static struct flight *first_waiting(const struct cache *cache, enum flight_queue queue, enum flight_queue last) {
        for (; queue < last && TAILQ_EMPTY(&cache->queues[queue]); queue++)
                ;
        return TAILQ_FIRST(&cache->queues[queue]);
}

void flights_send(struct cache *cache) {
        struct flight *flight;

        if (cache->is_cancelled)
                return;
        while ((flight = first_waiting(cache, QUEUE_PEER_URGENT, QUEUE_PEER_AHEAD)))
                if (!peers_is_open(cache->peers, flight->peer)) /* it was, when it was chosen */
                        requeue(flight, peer_asks_owner(flight->cached, flight->chunk), flight->is_urgent, false);
                else if (!send_one(cache, flight))
                        break;
        while ((flight = first_waiting(cache, QUEUE_URGENT, QUEUE_AHEAD)) && send_one(cache, flight))
                ;
}
