/* store/cache/uses_private.h: for room.c. Private to this folder; the cache's lock is held. */
#pragma once

#include <sys/queue.h>

#include "daemon/store/cache/uses.h"

struct cached_uses {
        struct cached *cached;
        LIST_ENTRY(cached_uses) entry;
        uint32_t *first; /* of each chunk: the first sample of the epoch that needs it */
        uint32_t k, n_samples;
        uint64_t sample_ns;
};

/* Removes a chunk that is needed later than the newcomer. False: none was found, or there is only one rank. */
bool uses_make_room(struct cached *cached, uint64_t newcomer);
