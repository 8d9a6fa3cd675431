/* store/cache/uses_private.h: for room.c. Private to this folder; the cache's lock is held. */
#pragma once

#include <sys/queue.h>

#include "daemon/store/cache/uses.h"

struct cached_uses {
        struct cached *cached;
        LIST_ENTRY(cached_uses) entry;
        uint32_t *first[2]; /* of each chunk: the first sample of this epoch, and of the next one, that needs it */
        struct dlp_uses_place place;
};

/* In how many nanoseconds any rank needs the chunk. UINT64_MAX: none does, as far as is known. */
uint64_t uses_next(const struct cached *cached, uint64_t chunk);

/* Removes a chunk that is needed later than in so many nanoseconds. False: none was found, or there is only one rank.
 */
bool uses_make_room(struct cached *cached, uint64_t soonest_ns);
