/* proto/fetching.h: in which parts what lies elsewhere is fetched, and how far ahead. The daemon's cache does so
 * (daemon/store/cache/cache.h), and dlctl plan counts by the same numbers. */
#pragma once

#define DLP_CHUNK_BYTES  (8u << 20) /* a smaller file is one chunk, and so is what is left of a larger one */
#define DLP_PIECE_BYTES  (DLP_CHUNK_BYTES / 4u) /* more of a chunk is not worth a request of its own */
#define DLP_QUEUED_MAX   1024u                  /* requests that wait their turn: no more is looked ahead for */
#define DLP_FLYING_BYTES (128ull << 20)         /* asked for at once, at most; all else waits its turn */

#define DLP_AHEAD_NS 30000000000ull /* as long as an origin may be silent and nobody waits */
/* Of a cache that cannot hold all, what is needed next has as much room as it takes, and an eighth at most: half a
 * minute of a fast job, where it has some tens of GiB. */
#define DLP_AHEAD_SHARE 8u

#define DLP_AHEAD_SAMPLES 32768u /* of a rank, at most: half a minute at a thousand a second */

/* To an origin, unless its dataset says otherwise: 2,000 small files a second from far away. Chunks never use them all.
 */
#define DLP_ORIGIN_CONNECTIONS 256u

#define DLP_MAKING_GUESS_NS 100000000ull /* that making a batch takes, until one has been made */
