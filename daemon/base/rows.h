/* base/rows.h: pixels from a decoder to their consumer, row by row.
 *
 * A decoder knows when a few rows are complete; a resizer can use them at once, while they are in the first-level
 * cache. The decoder calls the sink; neither knows the other. */
#pragma once

#include "daemon/base/box.h"
#include "proto/base/why.h"

struct row_sink {
        /* Rows begin at the top: rows that were taken before are void. Called once before the first band, and again if
         * a decoder gives up half-way and another one takes over. 0, or a negative errno that ends the decoding. */
        int (*begin)(void *userdata, struct why *why);

        /* The next rows, at least one, as wide as the box. The view belongs to the decoder and is valid until the call
         * returns. 0, or a negative errno that ends the decoding. */
        int (*take)(void *userdata, const struct view *rows, struct why *why);

        void *userdata;
};
