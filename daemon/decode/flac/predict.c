#include "daemon/decode/flac/predict.h"

#include <stddef.h>

#define LANES_MIN 3u /* fewer are faster one after the other */

/* ---- one after the other ----------------------------------------------------------------------------------------- */

/* `order` is a constant wherever this is used, so the inner loop is unrolled. The newest sample comes last: only its
 * product waits for the sample before. */
static inline __attribute__((always_inline)) void add_sums_32(uint32_t order, const struct flac_prediction *prediction,
                                                              uint32_t from) {
        int32_t *samples = prediction->samples;

        for (uint32_t i = from; i < prediction->n; i++) {
                uint32_t sum = 0;

#pragma GCC unroll 12
                for (uint32_t k = order; k > 0; k--)
                        sum += (uint32_t)prediction->weights[k - 1] * (uint32_t)samples[i - k];
                samples[i] = (int32_t)((uint32_t)samples[i] + (uint32_t)((int32_t)sum >> prediction->shift));
        }
}

static void add_sums_64(const struct flac_prediction *prediction, uint32_t from) {
        int32_t *samples = prediction->samples;

        for (uint32_t i = from; i < prediction->n; i++) {
                int64_t sum = 0; /* 32 products of at most 2^14 times 2^31 */

                for (uint32_t k = prediction->order; k > 0; k--)
                        sum += (int64_t)prediction->weights[k - 1] * samples[i - k];
                samples[i] = (int32_t)((uint32_t)samples[i] + (uint32_t)(sum >> prediction->shift));
        }
}

/* The samples `from` (at least the order) to the last one. */
static void predict_predict(const struct flac_prediction *prediction, uint32_t from) {
        switch (prediction->fits_32 ? prediction->order : FLAC_ORDER_MAX) {
#define CASE(order)                                                                                                    \
        case order:                                                                                                    \
                add_sums_32(order, prediction, from);                                                                  \
                break;
                CASE(1)
                CASE(2)
                CASE(3)
                CASE(4)
                CASE(5)
                CASE(6)
                CASE(7)
                CASE(8)
                CASE(9)
                CASE(10)
                CASE(11)
                CASE(12)
#undef CASE
        default:
                add_sums_64(prediction, from);
        }
}

/* ---- in lanes ---------------------------------------------------------------------------------------------------- */

/* Only for as many samples as lanes need before them. */
static void predict_first(const struct flac_prediction *prediction) {
        struct flac_prediction first = *prediction;

        first.n = FLAC_LANE_FIRST;
        predict_predict(&first, first.order);
}

static void predict_in_lanes(flac_predict_lanes_fn *in_lanes, const struct flac_prediction *const *lanes,
                             uint32_t n_lanes) {
        uint32_t n_done;

        for (uint32_t i = 0; i < n_lanes; i++)
                predict_first(lanes[i]);
        n_done = in_lanes(lanes, n_lanes, lanes[0]->n);
        for (uint32_t i = 0; i < n_lanes; i++)
                predict_predict(lanes[i], n_done);
}

void flac_predict(const struct flac_prediction *predictions, uint32_t n_predictions) {
        flac_predict_lanes_fn *in_lanes = flac_predict_lanes_avx2();
        const struct flac_prediction *lanes[FLAC_LANES];
        uint32_t n_lanes = 0;

        for (uint32_t i = 0; i < n_predictions; i++) {
                const struct flac_prediction *prediction = &predictions[i];

                if (prediction->order == 0)
                        continue;
                if (!in_lanes || !prediction->fits_32 || prediction->order > FLAC_LANE_ORDER_MAX ||
                    prediction->n < FLAC_LANE_FIRST || n_lanes == FLAC_LANES ||
                    (n_lanes > 0 && prediction->n != lanes[0]->n))
                        predict_predict(prediction, prediction->order);
                else
                        lanes[n_lanes++] = prediction;
        }
        if (n_lanes >= LANES_MIN)
                predict_in_lanes(in_lanes, lanes, n_lanes);
        else
                for (uint32_t i = 0; i < n_lanes; i++)
                        predict_predict(lanes[i], lanes[i]->order);
}
