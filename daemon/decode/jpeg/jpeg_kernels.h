/* decode/jpeg/jpeg_kernels.h: the arithmetic of our own JPEG decoder, in several forms. Private to this floor.
 *
 * The kernels do two things with the output of the entropy decoder: blocks of coefficients become blocks of samples
 * (two at a time: a register of 256 bits holds a row of both), and rows of samples become rows of RGB, with the coarser
 * chroma smoothed at the same time. All forms give the same bits, which are those of libjpeg-turbo's SIMD code with
 * default settings (accurate integer DCT, smooth upsampling), even for coefficients that no encoder writes.
 *
 * The functions keep no state, never fail, and take any content: for any input, they read and write no more than is
 * said here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- blocks -------------------------------------------------------------------------------------------------- */

#define BASELINE_PAIR_COEFFICIENTS 128u /* two blocks of 64 */
#define BASELINE_PAIR_ALIGNMENT    32u  /* bytes */
#define BASELINE_RIGHT_BLOCK       8u   /* distance in a pair from the left block's coefficient to the right block's */

/* Where in a pair the left block's k-th coefficient lies, k counted as the file does (zigzag). Coefficient 0, the mean,
 * lies at 0.
 *
 * Rows follow each other, [8 rows][left, right][8]; the columns of a row stand as the arithmetic meets them: those that
 * are multiplied and added with each other (0 and 4, 2 and 6, 7 and 1, 3 and 5) are neighbours. */
extern const uint8_t baseline_place[64];

/* ---- rows ---------------------------------------------------------------------------------------------------- */

/* How coarse chroma is. */
enum baseline_sampling {
        BASELINE_GREY, /* no chroma */
        BASELINE_444,
        BASELINE_422, /* half as wide */
        BASELINE_420, /* half as wide, half as high */
        BASELINE_440, /* half as high */
        N_BASELINE_SAMPLINGS,
};

/* Chroma of half the width is smoothed only if it is at least this wide; narrower pictures are left to
 * libjpeg-turbo. */
#define BASELINE_CHROMA_WIDTH_MIN 3u

#define BASELINE_READ_SLACK 32u /* samples after a row's last one that may be read */
#define BASELINE_RGB_SLACK  96u /* bytes after an output row that may be overwritten */

/* The samples that one row of pixels is made of. Each pointer is column 0 of the picture, whatever part of it is
 * wanted. Samples that the wanted pixels do not depend on may have any value, but must be readable from column 0 to
 * BASELINE_READ_SLACK after the last column.
 *
 * If chroma is half as high, the near chroma row of row y is y / 2. The far one is the row above it (y even) or below
 * it (y odd), or the near one again if the picture has no such row. Otherwise only the near one is read. */
struct baseline_row {
        const uint8_t *luma;
        const uint8_t *near[2]; /* Cb, Cr; NULL for grey */
        const uint8_t *far[2];
        uint32_t chroma_width; /* of the picture, padding left out: half of its width, rounded up, where it is halved.
                                * The last column is smoothed as if it were repeated. */
        bool far_is_below;     /* y is odd; halves are rounded down in even rows and up in odd ones (4:4:0) */
};

/* ---- forms --------------------------------------------------------------------------------------------------- */

struct baseline_kernels {
        const char *name;

        /* Two blocks: coefficients times their steps of quantisation -> 8 rows of 8 samples each, at `left` and
         * `right`, both `stride` bytes a row. Exactly these 64 bytes each are written.
         *
         * `pair` and `steps` are laid out as baseline_place says, BASELINE_PAIR_COEFFICIENTS each, aligned to
         * BASELINE_PAIR_ALIGNMENT. Steps are the file's 16 bits, taken as they are: products keep their low 16 bits.
         * `last` is the largest k, in either block, whose coefficient is not zero (0 if there is none); more is
         * allowed, but slower: fewer coefficients take less time. At most 63. The coefficients are zero afterwards. */
        void (*idct_pair)(int16_t *pair, const int16_t *steps, int last, uint8_t *left, uint8_t *right, size_t stride);

        /* Pixels x0 to x1 - 1 of a row, to rgb: pixel x0 first. x0 is even (what begins with an odd pixel takes the one
         * before it as well and does not look at it), x0 < x1 <= the picture's width. Up to BASELINE_RGB_SLACK bytes
         * after pixel x1 - 1 may be overwritten with rubbish, nothing before rgb. */
        void (*row[N_BASELINE_SAMPLINGS])(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb);
};

/* The reference form: the other forms are tested against it. Several times slower than libjpeg-turbo with the machine's
 * SIMD, so not for decoding if there is a choice. */
extern const struct baseline_kernels baseline_kernels_scalar;

/* NULL if this machine has no AVX2. */
const struct baseline_kernels *baseline_kernels_avx2(void);

/* idct_pair() of either form. Other forms use the scalar one for the rare pair that they do not handle. */
void baseline_idct_pair_scalar(int16_t *pair, const int16_t *steps, int last, uint8_t *left, uint8_t *right,
                               size_t stride);
void baseline_idct_pair_avx2(int16_t *pair, const int16_t *steps, int last, uint8_t *left, uint8_t *right,
                             size_t stride);
