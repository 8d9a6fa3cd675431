/* decode/flac/predict.h: adds what was predicted to what was stored. Private to this folder.
 *
 * Each sample waits for the one before it, and a channel takes 8 or 12 multiplications a sample, one after the other.
 * But the blocks of a file do not depend on each other: eight of them are computed at once, one in each lane of a
 * vector. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FLAC_ORDER_MAX 32u
#define FLAC_LANES     8u

/* A channel of a block that was read: samples[0 .. order - 1], and of the others what the prediction leaves. */
struct flac_prediction {
        int32_t *samples;
        uint32_t n;
        uint32_t order;                  /* 0: nothing is predicted */
        uint32_t shift;                  /* the weighted sum of the last samples is divided by 2^shift */
        bool fits_32;                    /* so is every sum, if the samples are as large as the file says */
        int32_t weights[FLAC_ORDER_MAX]; /* of the last sample, the one before it ... */
};

/* Completes them. Any content gives some result without a fault: sums wrap. */
void flac_predict(const struct flac_prediction *predictions, uint32_t n_predictions);

/* ---- private to predict*.c ----------------------------------------------------------------------------------------
 */

#define FLAC_LANE_ORDER_MAX 12u
#define FLAC_LANE_FIRST     16u /* samples that are there before lanes begin; a multiple of 8, and not below the order */

/* Computes the samples from FLAC_LANE_FIRST on, of 1 to 8 predictions of order 1 to 12 that fit 32 bits and have n
 * samples, and returns the number of the first sample that was not computed: a multiple of 8. */
typedef uint32_t flac_predict_lanes_fn(const struct flac_prediction *const *lanes, uint32_t n_lanes, uint32_t n);

/* NULL where the CPU or the compiler does not have it. */
flac_predict_lanes_fn *flac_predict_lanes_avx2(void);
