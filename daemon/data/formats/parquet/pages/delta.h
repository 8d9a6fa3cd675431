/* data/formats/parquet/pages/delta.h: whole numbers as differences: DELTA_BINARY_PACKED.
 *
 *      header   values of a block, parts of a block, number of values, first value
 *      block    smallest difference, the bits of each part, the parts: differences minus the smallest one, packed
 *
 * Of the last block, parts without a value are left out. The input comes from a file: too few bytes end it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct parquet_delta {
        const uint8_t *at, *end;
        uint64_t n_left; /* values */
        uint64_t value;  /* the next one */
        uint32_t n_part, n_parts;
        uint64_t least;        /* of the block */
        const uint8_t *widths; /* of its parts */
        uint32_t idx_part;     /* that is read; n_parts: the next block begins */
        uint32_t idx_in_part;  /* its next difference */
        bool is_first;         /* no difference was taken yet */
};

/* Begins to read. Returns false if the header is wrong. */
bool parquet_delta_begin(struct parquet_delta *delta, const uint8_t *bytes, uint64_t n_bytes);

/* The next value. False if there is none, or if the bytes are too few. */
bool parquet_delta_next(struct parquet_delta *delta, int64_t *ret_value);

/* After the last value: where the bytes that follow begin. NULL if values are left. */
const uint8_t *parquet_delta_end(const struct parquet_delta *delta);
