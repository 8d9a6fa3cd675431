/* proto/fetching.h: in which parts what lies elsewhere is fetched, and how far ahead. The daemon's cache does so
 * (daemon/store/cache/cache.h), and dlctl plan counts by the same numbers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DLP_CHUNK_BYTES    (8u << 20) /* a smaller file is one chunk, and so is what is left of a larger one */
#define DLP_PIECE_BYTES    (DLP_CHUNK_BYTES / 4u) /* more of a chunk is not worth a request of its own */
#define DLP_LEFT_OUT_BYTES (32u << 10)            /* a piece of fewer bytes is rather asked for twice than around it */
#define DLP_QUEUED_MAX     1024u                  /* requests that wait their turn: no more is looked ahead for */
#define DLP_FLYING_BYTES   (128ull << 20)         /* asked for at once, at most; all else waits its turn */

#define DLP_AHEAD_S 30u /* seconds that are looked ahead unless the daemon is told otherwise (fetch_ahead) */
/* Or four times as long as 99.9 % of the answers take: what was late may be asked for again, and be late again. */
#define DLP_AHEAD_LATE 4u
/* Of a cache that cannot hold all, what is needed next has as much room as it takes, and an eighth at most: half a
 * minute of a fast job, where it has some tens of GiB. */
#define DLP_AHEAD_SHARE 8u

#define DLP_AHEAD_SAMPLES (1u << 20) /* of a rank, at most: half a minute at 35,000 a second */

/* To an origin, unless its dataset says otherwise: 2,000 small files a second from far away. Chunks never use them all.
 */
#define DLP_ORIGIN_CONNECTIONS 256u

#define DLP_MAKING_GUESS_NS 100000000ull /* that making a batch takes, until one has been made */

/* How far ahead is looked for a rank, in ns: as long as the origin may be silent (ahead_s) and nobody is to wait, or
 * long enough for answers that are as late as late_ns (99.9 % come earlier; 0: not known yet). */
uint64_t dlp_horizon_ns(uint64_t ahead_s, uint64_t late_ns);

/* ---- the rules ---------------------------------------------------------------------------------------------------
 *
 * By these the cache decides (daemon/store/cache/), and dlctl plan computes what it will do (client/dlctl/forecast/).
 * No state, no clock; any thread. */

/* Is a part of a chunk so small that it is worth a request of its own? */
bool dlp_is_piece(uint64_t n_bytes, uint64_t n_chunk);

/* Is so much of a chunk needed soon that all of it comes, whether it can stay or not? */
bool dlp_is_dense(uint64_t n_marked, uint64_t n_chunk);

/* Of a cache that cannot hold all: how much is kept free of what stays, if so much has passed through or was marked. */
uint64_t dlp_reserve(uint64_t limit, uint64_t n_bytes);

/* May more be marked there? */
bool dlp_may_mark(uint64_t limit, uint64_t n_marked);

#define DLP_USE_NEVER      UINT32_MAX    /* in tables of uses: not in this epoch */
#define DLP_USES_BYTES_MAX (64ull << 20) /* of a rank's tables of uses; larger ones are not made */

/* Where a rank is. */
struct dlp_uses_place {
        uint32_t k, n_samples; /* of this epoch: the next one that it will want, and all */
        uint64_t sample_ns;    /* that a sample takes */
        bool is_last_epoch;
};

/* In how many ns the rank needs a chunk that sample number `first` of this epoch needs first, and `next` of the next
 * one. UINT64_MAX: not any more, as far as is known. What was not found in the next epoch comes after what was: that is
 * looked at from its beginning. */
uint64_t dlp_next_use(const struct dlp_uses_place *place, uint32_t first, uint32_t next);

/* Of which chunks one makes room. */
struct dlp_victims {
        uint64_t n_chunks;
        bool (*may_go)(const void *userdata, uint64_t chunk);
        uint64_t (*next_use)(const void *userdata, uint64_t chunk); /* by any rank, in ns */
        const void *userdata;
};

/* The one that is needed last, and later than in soonest_ns, of some that are drawn (98 % of the gain of looking at
 * all). *dice is the caller's, any number at first. UINT64_MAX: there is none. */
uint64_t dlp_choose_victim(const struct dlp_victims *victims, uint64_t soonest_ns, uint64_t *dice);
