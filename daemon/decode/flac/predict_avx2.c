#include "daemon/decode/flac/predict.h"

#include <stddef.h>

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline)) AVX2

#define N_STEPS 8u /* samples of a lane that are computed between two turns */

/* Rows become columns: eight samples of each of eight lanes are eight vectors with a sample of each lane, and back. */
INLINE void turn(__m256i v[N_STEPS]) {
        __m256i pair[8], four[8];

        for (int i = 0; i < 4; i++) {
                pair[2 * i] = _mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
                pair[2 * i + 1] = _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
        }
        for (int i = 0; i < 2; i++) {
                four[4 * i] = _mm256_unpacklo_epi64(pair[4 * i], pair[4 * i + 2]);
                four[4 * i + 1] = _mm256_unpackhi_epi64(pair[4 * i], pair[4 * i + 2]);
                four[4 * i + 2] = _mm256_unpacklo_epi64(pair[4 * i + 1], pair[4 * i + 3]);
                four[4 * i + 3] = _mm256_unpackhi_epi64(pair[4 * i + 1], pair[4 * i + 3]);
        }
        for (int i = 0; i < 4; i++) {
                v[i] = _mm256_permute2x128_si256(four[i], four[i + 4], 0x20);
                v[i + 4] = _mm256_permute2x128_si256(four[i], four[i + 4], 0x31);
        }
}

INLINE void load(int32_t *const *samples, uint32_t at, __m256i v[N_STEPS]) {
        for (unsigned lane = 0; lane < FLAC_LANES; lane++)
                v[lane] = _mm256_loadu_si256((const __m256i *)(const void *)(samples[lane] + at));
        turn(v);
}

/* `order` is a constant wherever this is used. */
INLINE uint32_t predict(uint32_t order, int32_t *const *samples, uint32_t n_lanes, const __m256i *weights,
                        __m256i shift, uint32_t n) {
        __m256i v[FLAC_LANE_FIRST + N_STEPS]; /* a sample of each lane; the newest last */
        uint32_t at = FLAC_LANE_FIRST;

        load(samples, 0, v);
        load(samples, 8, v + 8);
        for (; at + N_STEPS <= n; at += N_STEPS) {
                __m256i *now = v + FLAC_LANE_FIRST, out[N_STEPS];

                load(samples, at, now);
#pragma GCC unroll 8
                for (int i = 0; i < (int)N_STEPS; i++) {
                        __m256i sum = _mm256_setzero_si256();

#pragma GCC unroll 12
                        for (int k = (int)order; k > 0; k--)
                                sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(weights[k - 1], now[i - k]));
                        now[i] = _mm256_add_epi32(now[i], _mm256_srav_epi32(sum, shift));
                        out[i] = now[i];
                }
                turn(out);
                for (unsigned lane = 0; lane < n_lanes; lane++)
                        _mm256_storeu_si256((__m256i *)(void *)(samples[lane] + at), out[lane]);
#pragma GCC unroll 16
                for (unsigned i = 0; i < FLAC_LANE_FIRST; i++)
                        v[i] = v[i + N_STEPS];
        }
        return at;
}

AVX2 static uint32_t predict_lanes(const struct flac_prediction *const *lanes, uint32_t n_lanes, uint32_t n) {
        int32_t weights[FLAC_LANE_ORDER_MAX][FLAC_LANES] = { { 0 } }, shifts[FLAC_LANES] = { 0 }, *samples[FLAC_LANES];
        __m256i weight[FLAC_LANE_ORDER_MAX], shift;
        uint32_t order = 0;

        for (uint32_t lane = 0; lane < FLAC_LANES; lane++) {
                const struct flac_prediction *from =
                        lanes[lane < n_lanes ? lane : 0]; /* what is too much is not stored */

                samples[lane] = from->samples;
                shifts[lane] = (int32_t)from->shift;
                for (uint32_t k = 0; k < from->order; k++)
                        weights[k][lane] = from->weights[k];
                order = from->order > order ? from->order : order;
        }
        for (uint32_t k = 0; k < FLAC_LANE_ORDER_MAX; k++)
                weight[k] = _mm256_loadu_si256((const __m256i *)(const void *)weights[k]);
        shift = _mm256_loadu_si256((const __m256i *)(const void *)shifts);
        if (order <= 4)
                return predict(4, samples, n_lanes, weight, shift, n);
        if (order <= 8)
                return predict(8, samples, n_lanes, weight, shift, n);
        return predict(FLAC_LANE_ORDER_MAX, samples, n_lanes, weight, shift, n);
}

flac_predict_lanes_fn *flac_predict_lanes_avx2(void) {
        return __builtin_cpu_supports("avx2") ? predict_lanes : NULL;
}

#else

flac_predict_lanes_fn *flac_predict_lanes_avx2(void) {
        return NULL;
}

#endif
