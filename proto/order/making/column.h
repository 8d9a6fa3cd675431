/* order/making/column.h: numbers that an order is made from: weights, lengths, labels.
 *
 * A column has a value for each sample, or, with `ends`, any number of them (the labels of the objects in a picture).
 * It comes from the dataset, from the trainer (an array in shared memory that nobody can change any more) or, for
 * `dlctl order`, from a file. Values are never trusted: a step checks what it needs (column_...()) and says which
 * sample has a value that it cannot use. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"
#include "proto/layout.h"

struct dlp_column {
        const char *name;     /* as the sampler's text calls it */
        enum dlp_dtype dtype; /* any number or bool; not float16 and bfloat16 */
        const void *values;   /* native order of bytes, aligned to an element; constant while an order is made */
        uint64_t n_values;
        const uint64_t *ends; /* NULL: value i is that of sample i. Else sample i has the values from ends[i - 1] (0 for
                               * the first sample) to before ends[i] */
        uint64_t n_samples;
};

/* Can a column have elements of this dtype? */
bool dlp_column_takes(uint32_t dtype);

/* Are they whole numbers? */
bool dlp_column_is_whole(const struct dlp_column *column);

/* Value i < n_values. Whole numbers above 2^53 are rounded. */
double dlp_column_real(const struct dlp_column *column, uint64_t i);

/* Of a column of whole numbers; a uint64 above INT64_MAX is INT64_MAX. */
int64_t dlp_column_whole(const struct dlp_column *column, uint64_t i);

/* Reads values i .. i + n - 1 at once, for passes over all of them: a few times as fast. */
void dlp_column_reals(const struct dlp_column *column, uint64_t i, uint64_t n, double *ret_values);
void dlp_column_wholes(const struct dlp_column *column, uint64_t i, uint64_t n, int64_t *ret_values);
