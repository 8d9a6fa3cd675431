/* proto/fetching.h: in which parts what lies elsewhere is fetched, and how far ahead. The daemon's cache does so
 * (daemon/store/cache/cache.h), and dlctl plan counts by the same numbers. */
#pragma once

#include <stdint.h>

#define DLP_CHUNK_BYTES  (8u << 20) /* a smaller file is one chunk, and so is what is left of a larger one */
#define DLP_PIECE_BYTES  (DLP_CHUNK_BYTES / 4u) /* more of a chunk is not worth a request of its own */
#define DLP_QUEUED_MAX   1024u                  /* requests that wait their turn: no more is looked ahead for */
#define DLP_FLYING_BYTES (128ull << 20)         /* asked for at once, at most; all else waits its turn */

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
