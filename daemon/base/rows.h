/* base/rows.h: pixels on their way from a decoder to whoever makes something of them, row by row.
 *
 * A decoder knows when a few rows are complete; a resizer can use them at once, while they lie in the first cache. The
 * decoder calls, the sink takes: neither knows the other. */
#pragma once

#include "daemon/base/box.h"
#include "proto/base/why.h"

struct row_sink {
        /* Rows come from the top anew: what was taken before is void. Called once before the first band, and again if a
         * decoder gives up half-way and another one takes over. 0, or a negative errno that ends the decoding. */
        int (*begin)(void *userdata, struct why *why);

        /* The next rows, at least one, as wide as what was asked for. The view is the decoder's, valid until the call
         * returns. 0, or a negative errno that ends the decoding. */
        int (*take)(void *userdata, const struct view *rows, struct why *why);

        void *userdata;
};
