/* sound/code.h: what costs the time of a sound, for an instruction set.
 *
 * The same code (vector_code.h) is compiled for each; results are equal to the bit. */
#pragma once

#include <stdint.h>

#define LANES 8u /* numbers of a vector, whatever the registers hold */

#define NORMALS_AT_ONCE (4 * LANES) /* a word of a block each, of LANES blocks */

struct spectrum;

struct sound_code {
        /* The columns of these frames, of which the first n_lanes (at least one) are written; spectrum.h. */
        void (*columns)(const struct spectrum *spectrum, const float *const frames[LANES], uint32_t n_lanes,
                        float *scratch, float *out, uint64_t stride);

        /* The logarithm of each number plus `offset`, but of `least` if that is more; decimal and times `scale`, or
         * natural (scale 0). NaN stays NaN. */
        void (*logarithms)(float *numbers, uint64_t n, float offset, float least, float scale);

        /* The largest of n numbers; NaN if one is. */
        float (*largest)(const float *numbers, uint64_t n);

        /* No number is less than `least`; all are NaN if that is. */
        void (*raise)(float *numbers, uint64_t n, float least);

        /* The sum of the squares of n_frames numbers, `stride` apart, in eight sums of every eighth one. */
        double (*energy)(const float *numbers, uint64_t n_frames, uint64_t stride);

        /* Adds as many others, times `factor`. */
        void (*add)(float *numbers, const float *others, uint64_t n_frames, uint64_t stride, float factor);

        /* Numbers times `factor`; at least -limit, at most limit. NaN stays NaN. */
        void (*scale)(float *numbers, uint64_t n, float factor, float limit);

        /* Row k of n_out rows: the sum of n_in rows, each times weights[k * n_in + m]. Rows have n numbers. */
        void (*mix)(const float *in, uint64_t in_stride, uint32_t n_in, const float *weights, uint32_t n_out,
                    uint64_t n, float *out, uint64_t out_stride);

        /* NORMALS_AT_ONCE normal numbers of the blocks of Philox with this key from `block` on, n_times. */
        void (*normals)(const uint32_t key[2], uint32_t block, uint64_t n_times, float *out);
};

extern const struct sound_code SOUND_CODE_PLAIN;

/* NULL: the CPU, or the build, does not have it. */
const struct sound_code *sound_code_avx2(void);

/* The fastest one that this CPU has. */
const struct sound_code *sound_code_best(void);
