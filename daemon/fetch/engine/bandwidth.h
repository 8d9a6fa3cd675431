/* fetch/engine/bandwidth.h: a limit on bytes a second, over everything that a thread receives.
 *
 * A bucket of tokens that may be overdrawn, kept as the time at which it is level again. What arrives before that is
 * held: libcurl pauses the transfer and leaves its socket unread, so TCP slows down the sender. Held transfers go on
 * one after the other, urgent ones first, in the sequence in which they were held. The limits that libcurl itself has
 * are for one transfer each. */
#pragma once

#include <stdint.h>

#include "daemon/base/threads/queue.h"

TAILQ_HEAD(downloads, download);

struct bandwidth {
        uint64_t bytes_per_s; /* 0: no limit */
        uint64_t level_ns;    /* when what came so far has been paid for */
        struct downloads held;
};

void bandwidth_init(struct bandwidth *bandwidth, uint64_t bytes_per_s);

/* In how many ns more may be taken; 0: now. */
uint64_t bandwidth_wait_ns(const struct bandwidth *bandwidth, uint64_t now_ns);

void bandwidth_take(struct bandwidth *bandwidth, uint64_t n_bytes, uint64_t now_ns);
