/* decode/jpeg/kernels_scalar.c: the reference form of the arithmetic. The other forms are tested against this one, and
 * call it for input that no encoder writes. */
#include "daemon/decode/jpeg/jpeg_kernels.h"

#include <string.h>

#define CLAMP(value, low, high) ((value) < (low) ? (low) : (value) > (high) ? (high) : (value))

/* ---- where coefficients lie ---------------------------------------------------------------------------------- */

/* Position of column c in its row, and beginning of row r: a row of a pair is 16 numbers. */
static const uint8_t PLACE_OF_COLUMN[8] = { 0, 5, 2, 6, 1, 7, 3, 4 };

#define AT(row, place) ((row)*16 + (place))

const uint8_t baseline_place[64] = {
        AT(0, 0), AT(0, 5), AT(1, 0), AT(2, 0), AT(1, 5), AT(0, 2), AT(0, 6), AT(1, 2), /* */
        AT(2, 5), AT(3, 0), AT(4, 0), AT(3, 5), AT(2, 2), AT(1, 6), AT(0, 1), AT(0, 7), /* */
        AT(1, 1), AT(2, 6), AT(3, 2), AT(4, 5), AT(5, 0), AT(6, 0), AT(5, 5), AT(4, 2), /* */
        AT(3, 6), AT(2, 1), AT(1, 7), AT(0, 3), AT(0, 4), AT(1, 3), AT(2, 7), AT(3, 1), /* */
        AT(4, 6), AT(5, 2), AT(6, 5), AT(7, 0), AT(7, 5), AT(6, 2), AT(5, 6), AT(4, 1), /* */
        AT(3, 7), AT(2, 3), AT(1, 4), AT(2, 4), AT(3, 3), AT(4, 7), AT(5, 1), AT(6, 6), /* */
        AT(7, 2), AT(7, 6), AT(6, 1), AT(5, 7), AT(4, 3), AT(3, 4), AT(4, 4), AT(5, 3), /* */
        AT(6, 7), AT(7, 1), AT(7, 7), AT(6, 3), AT(5, 4), AT(6, 4), AT(7, 3), AT(7, 4), /* */
};

/* ---- the inverse DCT ----------------------------------------------------------------------------------------- */

static inline int16_t kernels_scalar_wrap(int32_t value) {
        return (int16_t)(uint16_t)value;
}

static inline int16_t saturate(int32_t value) {
        return (int16_t)CLAMP(value, INT16_MIN, INT16_MAX);
}

/* One dimension: libjpeg's accurate integer transform (after Loeffler, Ligtenberg and Moschytz, ICASSP 1989; 13 bits of
 * fraction), in the way of libjpeg-turbo's SIMD code: sums of two inputs keep 16 bits, results are saturated to 16
 * bits. With all inputs at their extremes the sums still fit 32 bits. */
static inline void kernels_scalar_transform(const int16_t in[8], int shift, int16_t out[8]) {
        const int32_t half = 1 << (shift - 1);
        const int32_t sum = kernels_scalar_wrap(in[0] + in[4]) * 8192 + half,
                      difference = kernels_scalar_wrap(in[0] - in[4]) * 8192 + half;
        const int32_t slow = 10703 * in[2] + 4433 * in[6], fast = 4433 * in[2] - 10704 * in[6];
        const int32_t sum_37 = kernels_scalar_wrap(in[3] + in[7]), sum_15 = kernels_scalar_wrap(in[1] + in[5]);
        const int32_t common_02 = -6436 * sum_37 + 9633 * sum_15, common_13 = 9633 * sum_37 + 6437 * sum_15;
        const int32_t even[4] = { sum + slow, difference + fast, difference - fast, sum - slow };
        const int32_t odd[4] = {
                4926 * in[1] - 7373 * in[7] + common_13,
                4177 * in[3] - 20995 * in[5] + common_02,
                -20995 * in[3] - 4176 * in[5] + common_13,
                -7373 * in[1] - 4927 * in[7] + common_02,
        };

        for (int i = 0; i < 4; i++) {
                out[i] = saturate((even[i] + odd[i]) >> shift);
                out[7 - i] = saturate((even[i] - odd[i]) >> shift);
        }
}

static inline uint8_t sample(int16_t value) {
        return (uint8_t)(CLAMP(value, -128, 127) + 128);
}

/* Along the columns: coefficients times steps -> numbers with 2 bits of fraction. */
static void kernels_scalar_transform_columns(const int16_t *block, const int16_t *steps, int16_t out[8][8]) {
        for (int column = 0; column < 8; column++) {
                int16_t in[8], sums[8];

                for (int row = 0; row < 8; row++) {
                        int at = AT(row, PLACE_OF_COLUMN[column]);

                        in[row] = kernels_scalar_wrap(block[at] * steps[at]);
                }
                kernels_scalar_transform(in, 11, sums);
                for (int row = 0; row < 8; row++)
                        out[row][column] = sums[row];
        }
}

static bool only_first_row(const int16_t *block) {
        for (int row = 1; row < 8; row++)
                for (int place = 0; place < 8; place++)
                        if (block[AT(row, place)])
                                return false;
        return true;
}

/* If all other rows are zero, the columns are constant. The general path would give the same, except for values beyond
 * 13 bits: these wrap here and are saturated there. */
static void repeat_first_row(const int16_t *block, const int16_t *steps, int16_t out[8][8]) {
        for (int column = 0; column < 8; column++)
                for (int row = 0; row < 8; row++) {
                        int at = PLACE_OF_COLUMN[column];

                        out[row][column] = kernels_scalar_wrap(kernels_scalar_wrap(block[at] * steps[at]) * 4);
                }
}

static void idct_block(const int16_t *block, const int16_t *steps, uint8_t *out, size_t stride) {
        int16_t columns[8][8], row[8];

        if (only_first_row(block))
                repeat_first_row(block, steps, columns);
        else
                kernels_scalar_transform_columns(block, steps, columns);
        for (int y = 0; y < 8; y++, out += stride) {
                kernels_scalar_transform(columns[y], 18, row);
                for (int x = 0; x < 8; x++)
                        out[x] = sample(row[x]);
        }
}

/* A block with only its mean: 64 equal samples. */
static void kernels_scalar_idct_mean(int16_t mean, int16_t step, uint8_t *out, size_t stride) {
        int16_t value = (int16_t)((kernels_scalar_wrap(kernels_scalar_wrap(mean * step) * 4) + 16) >> 5);

        for (int y = 0; y < 8; y++, out += stride)
                memset(out, sample(value), 8);
}

void baseline_idct_pair_scalar(int16_t *pair, const int16_t *steps, int last, uint8_t *left, uint8_t *right,
                               size_t stride) {
        if (last == 0) {
                kernels_scalar_idct_mean(pair[0], steps[0], left, stride);
                kernels_scalar_idct_mean(pair[BASELINE_RIGHT_BLOCK], steps[BASELINE_RIGHT_BLOCK], right, stride);
        } else {
                idct_block(pair, steps, left, stride);
                idct_block(pair + BASELINE_RIGHT_BLOCK, steps + BASELINE_RIGHT_BLOCK, right, stride);
        }
        memset(pair, 0, BASELINE_PAIR_COEFFICIENTS * sizeof(*pair));
}

/* ---- chroma in the resolution of luma ------------------------------------------------------------------------ */

/* The sample of Cb (c 0) or Cr (c 1) at pixel x: unchanged, or from the nearest samples, three parts of the near one
 * and one part of the far one on each axis. Halves are rounded alternately down and up, so that no plane drifts. */
typedef int32_t chroma_fn(const struct baseline_row *row, int c, uint32_t x);

/* The far column: pixel x lies between it and the near one. */
static inline uint32_t far_column(const struct baseline_row *row, uint32_t x) {
        uint32_t near = x / 2;

        if (x % 2)
                return near + 1 < row->chroma_width ? near + 1 : near;
        return near > 0 ? near - 1 : 0;
}

static inline int32_t kernels_scalar_chroma_444(const struct baseline_row *row, int c, uint32_t x) {
        return row->near[c][x];
}

static inline int32_t chroma_422(const struct baseline_row *row, int c, uint32_t x) {
        return (3 * row->near[c][x / 2] + row->near[c][far_column(row, x)] + (x % 2 ? 2 : 1)) >> 2;
}

static inline int32_t kernels_scalar_column_sum(const struct baseline_row *row, int c, uint32_t column) {
        return 3 * row->near[c][column] + row->far[c][column];
}

static inline int32_t chroma_420(const struct baseline_row *row, int c, uint32_t x) {
        return (3 * kernels_scalar_column_sum(row, c, x / 2) + kernels_scalar_column_sum(row, c, far_column(row, x)) +
                (x % 2 ? 7 : 8)) >>
               4;
}

static inline int32_t kernels_scalar_chroma_440(const struct baseline_row *row, int c, uint32_t x) {
        return (kernels_scalar_column_sum(row, c, x) + (row->far_is_below ? 2 : 1)) >> 2;
}

/* ---- colour -------------------------------------------------------------------------------------------------- */

static inline uint8_t kernels_scalar_clip(int32_t value) {
        return (uint8_t)CLAMP(value, 0, 255);
}

/* JFIF's matrix with 16 bits of fraction: 1.402, -0.34414, -0.71414, 1.772. */
static inline void kernels_scalar_put_pixel(int32_t y, int32_t cb, int32_t cr, uint8_t *rgb) {
        rgb[0] = kernels_scalar_clip(y + ((91881 * cr + 32768) >> 16));
        rgb[1] = kernels_scalar_clip(y + ((-22554 * cb - 46802 * cr + 32768) >> 16));
        rgb[2] = kernels_scalar_clip(y + ((116130 * cb + 32768) >> 16));
}

static inline void colour_row(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb,
                              chroma_fn *chroma) {
        for (uint32_t x = x0; x < x1; x++, rgb += 3)
                kernels_scalar_put_pixel(row->luma[x], chroma(row, 0, x) - 128, chroma(row, 1, x) - 128, rgb);
}

static void kernels_scalar_row_grey(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb) {
        for (uint32_t x = x0; x < x1; x++, rgb += 3)
                memset(rgb, row->luma[x], 3);
}

static void kernels_scalar_row_444(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb) {
        colour_row(row, x0, x1, rgb, kernels_scalar_chroma_444);
}

static void kernels_scalar_row_422(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb) {
        colour_row(row, x0, x1, rgb, chroma_422);
}

static void kernels_scalar_row_420(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb) {
        colour_row(row, x0, x1, rgb, chroma_420);
}

static void kernels_scalar_row_440(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb) {
        colour_row(row, x0, x1, rgb, kernels_scalar_chroma_440);
}

const struct baseline_kernels baseline_kernels_scalar = {
        .name = "scalar",
        .idct_pair = baseline_idct_pair_scalar,
        .row = {
                [BASELINE_GREY] = kernels_scalar_row_grey,
                [BASELINE_444] = kernels_scalar_row_444,
                [BASELINE_422] = kernels_scalar_row_422,
                [BASELINE_420] = kernels_scalar_row_420,
                [BASELINE_440] = kernels_scalar_row_440,
        },
};
