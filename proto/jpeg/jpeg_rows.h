/* proto/jpeg/jpeg_rows.h: a JPEG that was transcoded into rows (row_index.h), read as far as to say where everything is.
 *
 * What comes out is all that a decoder of such files needs besides their bytes: sizes, steps of quantisation, codes as
 * tables, and each row's place. It is checked whole, so that whoever decodes by it stays within the picture and within
 * the file, whatever the file's bytes are. Other JPEGs are refused: any decoder reads those. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"
#include "proto/jpeg/codes.h"
#include "proto/jpeg/row_index.h"

#define DLP_JPEG_COMPONENTS   3u
#define DLP_JPEG_COEFFICIENTS 64u /* of a block of 8 x 8 */
#define DLP_JPEG_CODES        2u  /* tables of a kind */
#define DLP_JPEG_SIDE_MAX     65500u

struct dlp_jpeg_component {
        uint32_t n_blocks_x, n_blocks_y;       /* those that fill up the last MCUs included */
        uint32_t idx_dc, idx_ac;               /* below DLP_JPEG_CODES, and read */
        uint16_t steps[DLP_JPEG_COEFFICIENTS]; /* row by row, not in the file's zigzag */
};

struct dlp_jpeg {
        uint32_t width, height;    /* pixels; 1 to DLP_JPEG_SIDE_MAX */
        uint32_t n_components;     /* 1 grey, 3 YCbCr */
        uint32_t h, v;             /* samples of luma for one of chroma, along either axis: 1 or 2; grey: 1 */
        uint32_t n_mcus_x, n_rows; /* a row of MCUs has v blocks of luma from top to bottom */
        struct dlp_jpeg_component components[DLP_JPEG_COMPONENTS];
        struct dlp_jpeg_codes dc[DLP_JPEG_CODES], ac[DLP_JPEG_CODES];
        uint64_t scan_at;       /* in the file, the first byte of row 0 */
        const uint8_t *offsets; /* into the file's bytes: those of row_index.h */
};

/* The jpeg points into `bytes`. Allocates nothing. 0; -EBADMSG: it is not such a file, or a damaged one; `why`, which
 * may be NULL, says what is wrong. */
int dlp_jpeg_read(const uint8_t *bytes, size_t n_bytes, struct dlp_jpeg *ret_jpeg, struct why *why);

/* Offset from the scan on: a row's codes lie from offset `row` to 2 before offset `row + 1`; those 2 bytes are its
 * marker. row <= n_rows. */
static inline uint32_t dlp_jpeg_offset(const struct dlp_jpeg *jpeg, uint32_t row) {
        const uint8_t *at = jpeg->offsets + 4 * (size_t)row;

        return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
