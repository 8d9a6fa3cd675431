/* order/grouping/lengths.h: the lengths of an order's samples, out of a column, checked. */
#pragma once

#include "proto/order/making/making.h"

#define DLP_LENGTHS_CHUNK 4096u /* lengths that a pass takes at a time, on its stack */

struct dlp_lengths {
        const struct dlp_column *column;
        const char *step; /* for messages */
};

/* The column of that name. -EINVAL with `why`: there is none, or it has another number of values. */
int dlp_lengths_open(struct dlp_making *making, const char *step, const char *name, struct dlp_lengths *ret_lengths);

/* Takes the lengths of the samples at n positions from `first`. -EINVAL: one is negative, not whole, or above
 * UINT32_MAX. */
int dlp_lengths_take(const struct dlp_making *making, const struct dlp_lengths *lengths, const struct dlp_order *order,
                     uint64_t first, uint64_t n, uint32_t *ret_lengths);

/* The column of a step's terms, for what is computed before there is an order; NULL: it is not there, or of no use. */
const struct dlp_column *dlp_lengths_of_terms(const struct dlp_making_terms *terms, const char *name);

/* Calls `each` with the lengths of all samples of the dataset, n at a time; what is not a length is 0. */
void dlp_lengths_visit(const struct dlp_column *column,
                       void (*each)(void *userdata, const uint32_t *lengths, uint64_t n), void *userdata);
