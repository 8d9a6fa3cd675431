/* lib/orders/client_made.h: a rank's samples of an epoch whose order a sampler's steps make.
 *
 * It is made here as the daemon makes it: an order depends on nothing but the seed, the epoch, the sampler's text and
 * its columns. Those that the trainer gave are still here; the dataset's are asked for. */
#pragma once

#include <stdint.h>

struct dlc_loader;

struct dli_made {
        uint64_t epoch;
        int64_t *samples;  /* owned, n of them: of the rank */
        uint64_t n, n_all; /* n_all: of all ranks together */
};

/* Makes it anew. On success the caller frees ret_made->samples; it may be NULL if n is 0. Blocks for as long as that
 * takes, and asks the daemon as dli_restart_ask() does. -EINVAL: a column that the daemon cannot tell; -ENOMEM; the
 * text is in loader->reason. */
int dli_made_make(struct dlc_loader *loader, uint64_t epoch, struct dli_made *ret_made);
