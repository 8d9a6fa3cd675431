/* decode/row_band.h: RGB rows on their way to a sink, a few at a time. Private to this floor.
 *
 * A format that makes one row after the other writes it to row_band_next() and then calls row_band_push(). */
#pragma once

#include "daemon/base/rows.h"

#include <stdint.h>

#define ROW_BAND_ROWS 8u /* rows passed on at once: few enough to fit the first-level cache */

struct row_band {
        const struct row_sink *sink;
        struct why *why;
        uint8_t *pixels; /* ROW_BAND_ROWS rows of `width` pixels; the caller's */
        uint32_t width;  /* pixels */
        uint32_t n_rows; /* rows that wait here */
};

/* Bytes that `pixels` needs. */
uint64_t row_band_bytes(uint32_t width);

/* Tells the sink that rows follow. Returns what the sink returns. */
int row_band_begin(struct row_band *band, const struct row_sink *sink, uint8_t *pixels, uint32_t width,
                   struct why *why);

/* Where the next row has to be written. */
uint8_t *row_band_next(const struct row_band *band);

/* The row at row_band_next() is written. Returns 0, or what the sink returns if it got a full band. */
int row_band_push(struct row_band *band);

/* Passes on the rows that still wait. */
int row_band_end(struct row_band *band);
