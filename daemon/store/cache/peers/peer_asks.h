/* store/cache/peers/peer_asks.h: chunks that other nodes own, and pieces of them, are asked of them.
 *
 * What a node does not give comes from the next one, or from the origin, as if there were no other nodes: one that does
 * not have the origin open (404) is not asked for it for a while, one that waits for somebody itself (409) is asked for
 * the next chunk, and any other failure is the node's (peers_end()). An answer begins at once, also if its bytes are
 * still to come from the origin, so one that does not begin is a node that hangs.
 *
 * What comes of a chunk is written into its place, as from an origin, and is there once its digest is right: nobody
 * reads there before, since what its pieces have is left out. Pieces may overlap, and wrong bytes must not come over
 * what somebody may be reading: they are held in memory until then.
 *
 * cache->lock is held unless a function says otherwise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cache;
struct cache_counts;
struct cached;
struct flight;

#define PEER_FLYING_MAX  128u        /* requests to other nodes at once */
#define PEER_BUFFERS_MAX (32u << 20) /* bytes of pieces */

/* The node that is to be asked for this chunk; 0: the origin. */
uint32_t peer_asks_owner(struct cached *cached, uint64_t chunk);

/* Asks flight->peer; what comes of it, if only from the origin, goes to the keeper. False: it cannot be asked now. */
bool peer_asks_send(struct flight *flight);

/* What is under way ends with -ECANCELED. Takes the lock. */
void peer_asks_stop(struct cache *cache);

void peer_asks_count(struct cache *cache, struct cache_counts *counts);
