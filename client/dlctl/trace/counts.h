/* dlctl/trace/counts.h: how many there are of something, as it changes: reads under way, samples that wait for a worker,
 * batches that are ready for a rank. It follows from the events. */
#pragma once

#include "client/dlctl/trace/tracks.h"

struct count {
        char name[64];
        const char *what; /* what is counted */
        uint32_t pid;
        uint64_t at_ns;
        int64_t value;
};

/* Tells each change, one counter after the other. -ENOMEM. */
int counts_tell(struct tracks *tracks, void (*tell)(void *userdata, const struct count *count), void *userdata,
                struct why *why);
