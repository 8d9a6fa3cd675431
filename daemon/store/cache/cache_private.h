/* store/cache/cache_private.h: what the parts of the cache share.
 *
 * A chunk that is on its way, or wanted, or pinned, has nothing of its own but two bytes in arrays of its origin; what
 * is on its way is a flight. */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <xxhash.h>

#include "daemon/fetch/fetch.h"
#include "daemon/fetch/fetch_http.h"
#include "daemon/store/cache/cache.h"
#include "daemon/store/cache/cache_journal.h"
#include "daemon/store/cache/peers/peers.h"
#include "daemon/store/plan/plan.h"

#define FLIGHT_BUCKETS   4096u
#define CACHE_DIR_MAX    3072u /* bytes of the path of cache_dir */
#define LAST_NEEDS       64u
#define CACHE_FOLDER_MAX 3200u /* bytes with NUL of the path of an origin's folder */

enum chunk_state {
        CHUNK_ABSENT,
        CHUNK_THERE,
        CHUNK_PASSING,  /* there, until it is not needed any more: it came when the cache was full */
        CHUNK_DOUBTFUL, /* noted before the machine was started: its digest decides */
};

/* A chunk, or a piece of one, that is fetched. A piece that has landed stays until its chunk is here, or whoever wanted
 * it has released it. */
enum flight_phase {
        FLIGHT_QUEUED,
        FLIGHT_FLYING,
        FLIGHT_LANDED,
};

struct flight_waiter {
        STAILQ_ENTRY(flight_waiter) entry;
        struct cache_want *want;
};

/* What is to be sent, in this sequence: what the origin is asked for, and, beside it, what other nodes are. Each has
 * its own room in flight: if nodes wait for each other, none of them may keep another from asking the origin. */
enum flight_queue {
        QUEUE_URGENT,
        QUEUE_ASKED, /* another node asked for it, and needs it sooner than this one needs what it looks ahead for */
        QUEUE_AHEAD,
        QUEUE_PEER_URGENT,
        QUEUE_PEER_AHEAD,
        N_FLIGHT_QUEUES
};

/* The last of what has come of a part, to be written at once. */
struct landing {
        uint8_t *part; /* NULL: nothing has come */
        uint32_t n_part;
};

struct flight {
        struct fetch_job job;
        struct fetch_piece piece; /* all of it */
        struct landing landing;
        struct fetch_piece *holes; /* of a chunk, without what its pieces bring or have brought; NULL: all of it */
        struct landing *landings;  /* of each */
        uint32_t n_holes;
        struct cached *cached;
        uint64_t chunk;
        bool is_chunk;    /* all of it */
        bool has_place;   /* its bytes count, if it is a chunk, and may be written */
        bool is_passing;  /* there was no room for it to stay */
        bool is_doubtful; /* not asked for: what lies there is compared */
        bool is_urgent;
        bool is_submitted;    /* a fetcher has its job */
        bool is_filling;      /* for no job: it comes if there is room for it to stay */
        bool is_asked;        /* by another node: it comes from the origin */
        uint32_t peer;        /* the node that is, or is to be, asked for it; 0: the origin */
        uint32_t n_asked;     /* nodes that were, in vain */
        uint32_t n_full;      /* times that the disk had no room for it */
        struct peer_ask *ask; /* while one is */
        bool is_waiting;      /* a chunk that lacks only pieces which are on their way; it is not in the air's counts */
        bool has_lost;        /* a piece that it has left out does not come */
        enum flight_phase phase;
        uint64_t id;             /* of a piece: how wants know it again */
        uint32_t n_users;        /* of a piece: wants that need it, and have not been released */
        bool is_ahead;           /* of a piece: it was begun for who comes later */
        uint64_t n_chunks_until; /* n_chunks_over when a chunk will be here, if they come in turn */

        /* The fetcher's thread's, from flight_submit() until keeper_take(). */
        int fd;                 /* -1: nothing has come */
        int write_error;        /* negative errno; 0 */
        XXH3_state_t *digested; /* of a chunk that comes as a whole: the bytes so far; NULL of a piece */

        STAILQ_HEAD(, flight_waiter) waiters;
        TAILQ_ENTRY(flight) entry; /* of a queue of the cache */
        LIST_ENTRY(flight) in_bucket;
};

TAILQ_HEAD(flights, flight);

enum cached_text {
        CACHED_URL,
        CACHED_ENDPOINT,
        CACHED_REGION,
        CACHED_ADDRESSING,
        CACHED_CREDENTIALS,
        CACHED_CA_FILE,
        CACHED_MIRROR,
        N_CACHED_TEXTS
};

/* Where a reader of this file that goes on would go on. */
struct cached_need {
        uint64_t idx_file, end;
};

struct cached {
        struct cache *cache;
        uint32_t refs;                 /* cache->lock */
        LIST_ENTRY(cached) entry;      /* cache->lock */
        char *key;                     /* of its terms */
        char folder[CACHE_FOLDER_MAX]; /* of the origin in the cache's folder */
        char path[PATH_MAX];           /* cached_path() */
        char *texts[N_CACHED_TEXTS];   /* of the terms; `http` points into them */
        char notice[DLP_TEXT_MAX];
        int files_fd; /* the folder with its files */
        struct http *http;
        struct fetcher *fetcher; /* cache->lock; NULL: nothing is fetched any more */
        uint32_t n_connections;
        struct plan *plan;
        char data_digest[65]; /* cached_digest() */
        uint64_t *first;      /* chunk of each file, and after the last one the number of all */
        uint64_t n_chunks;
        uint8_t *states;   /* enum chunk_state; cache->lock */
        uint16_t *pins;    /* cache->lock */
        uint64_t *marked;  /* bytes that were looked ahead for, and that no want has asked for yet; cache->lock */
        uint32_t *due_s;   /* when the last of them is due, in seconds of the clock; cache->lock */
        uint64_t *digests; /* of what is there, or was; cache->lock */
        char name[33];     /* what other nodes call it, if they have the same listing of the same URL */
        uint64_t name_hash;
        uint64_t peers_until_ns[PEERS_MAX + 1]; /* of those that do not have it open: not asked before; cache->lock */
        uint8_t n_absent[PEERS_MAX + 1];        /* times in a row; cache->lock */
        struct cache_journal journal;           /* cache->lock, once it is open */
        uint64_t n_bytes;                       /* there; cache->lock */
        struct why lost;               /* why the last chunk that nobody waited for did not come; cache->lock */
        uint64_t used_ns;              /* when it was wanted last; cache->lock */
        LIST_HEAD(, cached_uses) uses; /* cache->lock */
        uint64_t choice;               /* of chunks, at random; cache->lock */
        uint64_t next_victim;          /* the chunk that is looked at next for room; cache->lock */
        struct {
                uint64_t seen_ns, first_byte_ns, late_ns, bytes_per_s;
        } speed;                                   /* as the fetcher said then; cache->lock */
        struct cached_need last_needs[LAST_NEEDS]; /* cached_read(), by file; cache->lock */
};

struct cache {
        struct cache_options options;
        char *root;              /* cache_dir, which several daemons may use */
        char *dir;               /* the folder in it that is ours, or itself */
        uint32_t idx_folder;     /* of that; 1: itself */
        int lock_fd;             /* -1: none is ours yet */
        uint64_t whole_limit;    /* of all folders */
        pthread_mutex_t opening; /* one origin is opened at a time */

        pthread_mutex_t lock;   /* of all that follows, and of what says so above */
        pthread_cond_t changed; /* something has landed, or the cache ends */
        pthread_t keeper;       /* notes what has landed, and removes folders */
        bool has_keeper;
        bool has_no_closed; /* there is no folder whose origin is not open */
        bool is_begun;      /* all above is set */
        bool is_cancelled, is_ending;
        atomic_bool is_over; /* as is_cancelled, for who waits for an answer */
        LIST_HEAD(, cache_opened) opened;
        LIST_HEAD(, cached) origins; /* changed under `opening`, too */
        LIST_HEAD(, flight) buckets[FLIGHT_BUCKETS];
        struct flights queues[N_FLIGHT_QUEUES];       /* FLIGHT_QUEUED */
        struct flights landed;                        /* the keeper's next */
        _Atomic uint32_t n_queued;                    /* flights in all queues; read without the lock, too */
        uint64_t n_ahead_bytes;                       /* that are marked, of all chunks */
        uint64_t n_flying_bytes, n_flying_peer_bytes; /* of all, and of those that other nodes are asked for */
        uint64_t flying_max; /* of either; lower while the disk has no room for what is on its way */
        uint32_t n_flying, n_flying_peer;
        uint64_t n_peer_buffer_bytes;
        struct peers *peers;          /* NULL: there are none */
        struct fetcher *peer_fetcher; /* NULL: none of them is asked any more */
        struct http *peer_http;
        uint64_t n_chunks_begun, n_chunks_over; /* bytes of chunks that were queued, and that have come or failed */
        uint64_t last_id;                       /* of a flight */
        struct cached *kept_of;                 /* whose flight the keeper has; NULL: none */
        uint64_t n_origin_bytes;                /* of all files of the origins that are open */
        uint64_t n_bytes;                       /* of all origins, also those that are not open */
        uint64_t n_reserved_bytes;              /* that nothing stays in, where room is short */
        uint64_t n_passing_bytes;               /* of them, what is to go once it was read */
        uint64_t n_coming_bytes;                /* of them, of chunks that are not here yet */
        uint64_t limit;                         /* of n_bytes: our part of the whole one, */
        uint64_t disk_limit;                    /* and at most this, while the disk has no room */
        uint64_t full_bytes;                    /* n_bytes and one more, when it last had none; 0: it has */
        uint32_t n_others;                      /* daemons that use the same cache_dir */
        uint64_t equal_part;                    /* of what they may hold together */
        uint32_t n_asking;                      /* who waits for an equal part (cache_folders_ask()) */
        struct cache_counts counts;
};

/* ---- cache.c ---- */

/* A folder is ours, and its limit known, from the first origin on. */
int cache_begin(struct cache *cache, struct why *why);

/* What was fetched for it stays counted when it is closed. */
void cache_keep_counts(struct cached *cached);

/* A folder of the cache that something has open, other than an origin: it is not removed. */
struct cache_opened {
        LIST_ENTRY(cache_opened) entry;
        char folder[CACHE_FOLDER_MAX];
        bool is_busy; /* its files are being made */
};

/* One at a time makes the files of a folder: waits for another one. -ECANCELED with `why` once *cancel is true. */
int cache_opened_begin(struct cache *cache, struct cache_opened *opened, const atomic_bool *cancel, struct why *why);
void cache_opened_ready(struct cache *cache, struct cache_opened *opened);
void cache_opened_end(struct cache *cache, struct cache_opened *opened);

/* ---- cached_open.c ---- */

/* Ends its fetches: what was on its way comes to the keeper as canceled. cache->opening is held. */
void cached_stop(struct cached *cached);

/* Nobody uses it any more; cache->opening is held, or there are no other threads. */
void cached_close(struct cached *cached);

/* ---- cached.c ---- */

/* The file that has the chunk, and the chunk's place in it. */
struct chunk_place {
        const struct plan_file *file;
        uint64_t idx_file, offset;
        uint32_t n_bytes;
};

struct chunk_place cached_place(const struct cached *cached, uint64_t chunk);

/* The chunks [*ret_begin, *ret_end) that have bytes of this part. */
void cached_chunks_of(const struct cached *cached, uint64_t idx_file, uint64_t offset, uint64_t n_bytes,
                      uint64_t *ret_begin, uint64_t *ret_end);

/* As cached_want(), for another node that asks for want->offset, n_bytes of a chunk. If that is no small part of it,
 * the whole chunk is wanted. What has to be fetched comes from the origin, and of a part the chunk follows. cache->lock
 * is held. -EDEADLK: this node has asked another one for it. */
int cached_want_asked(struct cached *cached, struct cache_want *want, uint64_t chunk, bool is_urgent);

/* The file below `folder`, or -1. */
int64_t cached_find(const struct cached *cached, const char *folder, const char *path);

/* ---- flights.c; cache->lock is held ---- */

/* The piece of the chunk with this id; NULL: it was forgotten. */
struct flight *flight_known(struct cached *cached, uint64_t chunk, uint64_t id);

/* A flight that brings, or has brought, these bytes of the chunk; NULL. */
struct flight *flight_find(struct cached *cached, uint64_t chunk, uint64_t offset, uint64_t n_bytes);

/* A new one, queued. NULL: there is no memory. */
struct flight *flight_begin(struct cached *cached, uint64_t chunk, uint64_t offset, uint32_t n_bytes, bool is_urgent);

/* Makes room for it, and sends its job to a fetcher. It has the chunk pinned. */
void flight_submit(struct flight *flight);

/* It is here, or cannot be had (result < 0): its chunk is as it is without it, but for its bytes. */
void flight_leave_place(struct flight *flight, int result);

/* A chunk of which all has come but pieces that it has left out: true if some are still on their way. The keeper has it
 * again when none is. */
bool flight_waits(struct flight *flight);

/* A piece has landed: the chunk that has left it out may wait for it. */
void flight_tell_chunk(struct flight *flight, bool is_lost);

/* Is its chunk to come, so that a piece that has landed is worth its room? */
bool flight_stays(const struct flight *flight);

/* The chunk does not come: pieces that stayed only for it go. */
void flights_drop_unused(struct cached *cached, uint64_t chunk);

/* A flying one is no other node's any more. */
void flight_leave_peer(struct flight *flight);

/* Another node waits for it, so the origin is asked. False: this node has asked another one, and waits itself. */
bool flight_turn_to_origin(struct flight *flight);

/* It is not on its way any more. */
void flight_leave_air(struct flight *flight);

/* The same, and it is queued again, with those who wait for it; its bytes go. */
void flight_put_back(struct flight *flight);

/* It leaves the queue. */
void flight_unqueue(struct flight *flight);

/* `want` waits for it. -ENOMEM. */
int flight_join(struct flight *flight, struct cache_want *want);

/* A queued one becomes urgent. */
void flight_hurry(struct flight *flight);

/* Sends what may be sent. */
void flights_send(struct cache *cache);

/* All pieces of the chunk that have landed are forgotten: the chunk is here. */
void flights_forget_pieces(struct cached *cached, uint64_t chunk);

/* Takes it out of its bucket, and frees it. */
void flight_end(struct flight *flight);

/* The same, and its bytes go, if its chunk is not here, but for those that other flights have. */
void flight_remove(struct flight *flight);

/* Its waiters: those that wait for nothing else go to `done`, with the result. */
STAILQ_HEAD(cache_wants, cache_want);
void flight_answer(struct flight *flight, int result, const struct why *why, struct cache_wants *done);

/* Those of the origin in this phase are given up: nobody waits for them. */
void flights_drop(struct cached *cached, enum flight_phase phase);
bool flights_are_flying(const struct cached *cached);

/* `want` waits for no flight of the chunk any more: neither for what it joined first, nor for what was begun later. */
void flights_leave(struct cached *cached, uint64_t chunk, struct cache_want *want);

/* ---- keeper.c ---- */

int keeper_start(struct cache *cache, struct why *why);
void keeper_stop(struct cache *cache);

/* On the fetcher's thread: passes it to the keeper. The second one with cache->lock held. */
void keeper_take(struct fetch_job *job);
void keeper_land(struct flight *flight);

/* ---- landing.c: on the fetcher's thread, without the lock ---- */

/* Writes what has come of a flight, or of a hole of it, into its place (struct fetch_piece). What comes of a chunk that
 * another node sends as a whole is written into its holes. */
int landing_take(struct fetch_piece *piece, uint32_t at, const uint8_t *bytes, size_t n_bytes);

/* No more of it comes. */
void landing_end(struct flight *flight);

/* It could not be written, or noted: `error`, with `why`. Any thread. */
int landing_error(const struct flight *flight, int error, struct why *why);
bool landing_is_full(int error);

/* Has the disk room now, if `error` says that it had none? Any thread. */
bool landing_makes_room(struct flight *flight, int error);

/* ---- room.c; cache->lock is held ---- */

/* Somebody will want n_bytes of the chunk at due_s; somebody wants them now. */
void room_mark(struct cached *cached, uint64_t chunk, uint32_t n_bytes, uint32_t due_s);
void room_unmark(struct cached *cached, uint64_t chunk, uint32_t n_bytes);
void room_forget_marks(struct cached *cached);

/* Nobody has it pinned any more: one that passes through goes, unless it is marked, or needed sooner than another one
 * that is here. */
void room_pass(struct cached *cached, uint64_t chunk);

/* Not all of the origins that are open can stay. */
bool room_is_short(const struct cache *cache);

/* What passes through, or is marked, takes more than ever before: from now on so much less stays, and what is needed
 * last makes room for it. */
void room_reserve_more(struct cached *cached);

/* Can n_bytes more stay, without anything being removed? */
bool room_is_full(const struct cache *cache, uint64_t n_bytes);

/* Makes room for a chunk of n_bytes of this origin. False: there is none, what is here stays. */
bool room_make(struct cached *cached, uint64_t n_bytes);

/* The disk is full: until it has room again the cache holds at most what it has now, without what is coming, and an
 * eighth of it goes. False: nothing may go. */
bool room_shrink(struct cached *cached);

/* Could folders of origins that are not open make room for n_bytes? Then room_clear() comes first. */
bool room_may_clear(const struct cache *cache, uint64_t n_bytes);

/* Removes folders of origins that are not open, the oldest first, until there is room for n_bytes. Without the lock: it
 * takes as long as removing does. The keeper's. */
void room_clear(struct cache *cache, uint64_t n_bytes);

/* Has the disk room again, after it was full? Once it could hold an eighth and a chunk more than the cache had then,
 * others have made room: what the cache gave up since does not count as that. Without the lock. */
bool room_look_at_disk(struct cache *cache);

/* The limit may have become lower: removes what is beyond it, as far as it may go. As room_clear(). */
void room_fit(struct cache *cache);

/* In this folder of cache_dir: removes the one that was written to the longest ago and is not open, as a whole, and
 * returns its bytes (0: there is none that can go); adds up what all of them have. Without the lock. */
uint64_t room_remove_oldest(struct cache *cache, const char *dir);
uint64_t room_bytes_in(const char *dir);

/* Removes a chunk that is there. Nobody has it pinned. */
void room_drop(struct cached *cached, uint64_t chunk);

/* The blocks of these bytes of a file, begin < end, are given back, and it keeps its length. No lock is needed. */
void room_punch(struct cached *cached, const struct plan_file *file, uint64_t begin, uint64_t end);

/* Removes bytes of a chunk that is not there. */
void room_drop_piece(struct cached *cached, uint64_t chunk, uint64_t offset, uint32_t n_bytes);

/* Adds up what earlier daemons left in the folder, and sets the limit. Before there are threads. */
int room_measure(struct cache *cache, struct why *why);

bool chunk_is_there(uint8_t state);
