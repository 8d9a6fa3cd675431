#include "daemon/decode/flac/subframe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/decode/flac/rests.h"

/* Do all sums of such samples fit into 32 bits? Then both ways to predict give the same, and one is faster. */
static bool fit_32(uint32_t n_bits, uint32_t order, const int32_t *weights) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < order; i++)
                sum += (uint64_t)abs(weights[i]);
        return sum << (n_bits - 1) <= INT32_MAX;
}

/* Numbers from 1 to 25 bits. */
static int subframe_read_first(struct flac_bits *bits, uint32_t n_bits, uint32_t n,
                               const struct flac_prediction *prediction) {
        if (n > prediction->n)
                return -EBADMSG;
        for (uint32_t i = 0; i < n; i++)
                prediction->samples[i] = bits_get_signed(bits, n_bits);
        return 0;
}

static int read_constant(struct flac_bits *bits, uint32_t n_bits, const struct flac_prediction *prediction) {
        int32_t sample = bits_get_signed(bits, n_bits);

        for (uint32_t i = 0; i < prediction->n; i++)
                prediction->samples[i] = sample;
        return 0;
}

/* Predicted by a polynomial through the last samples, by their number. */
static int read_polynomial(struct flac_bits *bits, uint32_t n_bits, uint32_t order,
                           struct flac_prediction *prediction) {
        static const int32_t WEIGHTS[5][4] = { { 0 }, { 1 }, { 2, -1 }, { 3, -3, 1 }, { 4, -6, 4, -1 } };

        if (order > 4 || subframe_read_first(bits, n_bits, order, prediction) < 0)
                return -EBADMSG;
        prediction->order = order;
        prediction->fits_32 = true; /* 25 bits and 15 times that; more wraps, and is damage */
        memcpy(prediction->weights, WEIGHTS[order], sizeof(WEIGHTS[order]));
        return flac_rests_read(bits, order, prediction->n, prediction->samples);
}

/* Predicted by weights that are stored. */
static int read_weighted(struct flac_bits *bits, uint32_t n_bits, uint32_t order, struct flac_prediction *prediction) {
        uint32_t n_weight_bits;
        int32_t shift;

        if (subframe_read_first(bits, n_bits, order, prediction) < 0)
                return -EBADMSG;
        n_weight_bits = bits_get(bits, 4) + 1;
        shift = bits_get_signed(bits, 5);
        if (n_weight_bits == 16 || shift < 0)
                return -EBADMSG;
        for (uint32_t i = 0; i < order; i++)
                prediction->weights[i] = bits_get_signed(bits, n_weight_bits);
        prediction->order = order;
        prediction->shift = (uint32_t)shift;
        prediction->fits_32 = fit_32(n_bits, order, prediction->weights);
        return flac_rests_read(bits, order, prediction->n, prediction->samples);
}

int flac_subframe_read(struct flac_bits *bits, uint32_t n_bits, uint32_t n_frames, int32_t *samples,
                       struct flac_subframe *ret_subframe) {
        uint32_t head = bits_get(bits, 8), type = head >> 1; /* a 0, six bits, and: are there bits that are always 0? */
        struct flac_prediction *prediction = &ret_subframe->prediction;

        prediction->samples = samples;
        prediction->n = n_frames;
        prediction->order = 0;
        prediction->shift = 0;
        ret_subframe->n_wasted = 0;
        if (head & 1) {
                int64_t n_wasted = bits_get_unary(bits, n_bits) + 1;

                if (n_wasted < 1 || n_wasted >= n_bits)
                        return -EBADMSG;
                ret_subframe->n_wasted = (uint32_t)n_wasted;
                n_bits -= (uint32_t)n_wasted;
        }
        if (type == 0)
                return read_constant(bits, n_bits, prediction);
        if (type == 1)
                return subframe_read_first(bits, n_bits, n_frames, prediction);
        if (type >= 8 && type < 16)
                return read_polynomial(bits, n_bits, type - 8, prediction);
        if (type >= 32 && type < 64)
                return read_weighted(bits, n_bits, type - 31, prediction);
        return -EBADMSG;
}

void flac_subframe_finish(const struct flac_subframe *subframe) {
        const struct flac_prediction *prediction = &subframe->prediction;

        for (uint32_t i = 0; subframe->n_wasted > 0 && i < prediction->n; i++)
                prediction->samples[i] = (int32_t)((uint32_t)prediction->samples[i] << subframe->n_wasted);
}
