/* tests/support/maker.h: what makes orders in tests: columns and parts of one's own, memory that is counted, and a look
 * at every position that is published. */
#pragma once

#include "proto/order/making/order_text.h"

#define MAKER_COLUMNS_MAX 4u
#define MAKER_PARTS_MAX   16u

struct maker {
        struct dlp_making_terms terms;
        struct dlp_making making;
        struct why why;
        struct dlp_column columns[MAKER_COLUMNS_MAX];
        struct dlp_part parts[MAKER_PARTS_MAX];

        struct dlp_order_text text;
        struct dlp_order order;
        uint64_t n_bytes, n_bytes_peak; /* taken now, and at most so far */
        uint64_t n_bytes_max;           /* an allocation that would take more fails */
        uint64_t n_allocations_left;    /* then they fail */
        uint64_t n_looks_left;          /* then nobody wants the order any more */
        uint64_t n_published;
        uint64_t published_hash; /* of the samples as they were published */
};

/* n samples, seed and epoch 0, shuffled as torch does, no columns and parts. */
void maker_init(struct maker *maker, uint64_t n_samples);

/* Adds a column whose memory stays the caller's; of one value a sample, or `ends` says how many. */
void maker_column(struct maker *maker, const char *name, enum dlp_dtype dtype, const void *values, uint64_t n_values);
void maker_lists(struct maker *maker, const char *name, const int64_t *values, const uint64_t *ends);

/* Adds a part of n samples after those that there are. */
void maker_part(struct maker *maker, const char *name, uint64_t n_samples);

/* Reads the text and makes the order, freeing the one before. Returns what went wrong, with maker->why; the order is
 * empty then. Aborts for what must never be: samples outside the dataset, more positions or memory than was promised,
 * starts that do not increase, published positions that change, memory that is not given back. */
int maker_order(struct maker *maker, const char *text);

/* Frees the order. */
void maker_fini(struct maker *maker);

/* How often each of n samples comes; the caller frees it. */
uint32_t *maker_counts(const struct maker *maker);
