/* augment/operations/blur/blur_avx2.c: the loops with AVX2, 16 columns at a time. */
#include "daemon/augment/operations/blur/blur.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE AVX2 static inline __attribute__((always_inline))

#define AT_ONCE 16u

INLINE __m256i words_of(const uint8_t *levels) {
        return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)levels));
}

struct floats {
        __m256 first, second; /* eight columns each */
};

INLINE struct floats floats_of(__m256i words) {
        return (struct floats){ _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(words))),
                                _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1))) };
}

INLINE struct floats add_weighted(struct floats sum, float weight, struct floats values) {
        __m256 factor = _mm256_set1_ps(weight);

        return (struct floats){ _mm256_add_ps(sum.first, _mm256_mul_ps(factor, values.first)),
                                _mm256_add_ps(sum.second, _mm256_mul_ps(factor, values.second)) };
}

AVX2 static void down(const float *weights, uint32_t reach, const uint8_t *const *rows, size_t n, float *sums) {
        size_t i = 0;

        for (; i + AT_ONCE <= n; i += AT_ONCE) {
                struct floats sum = { _mm256_setzero_ps(), _mm256_setzero_ps() };

                for (uint32_t k = reach; k > 0; k--) {
                        __m256i two = _mm256_add_epi16(words_of(rows[reach - k] + i), words_of(rows[reach + k] + i));

                        sum = add_weighted(sum, weights[k], floats_of(two));
                }
                sum = add_weighted(sum, weights[0], floats_of(words_of(rows[reach] + i)));
                _mm256_storeu_ps(sums + i, sum.first);
                _mm256_storeu_ps(sums + i + 8, sum.second);
        }
        for (; i < n; i++) {
                float sum = 0;

                for (uint32_t k = reach; k > 0; k--)
                        sum += weights[k] * (float)(rows[reach - k][i] + rows[reach + k][i]);
                sums[i] = sum + weights[0] * (float)rows[reach][i];
        }
}

INLINE struct floats load(const float *values) {
        return (struct floats){ _mm256_loadu_ps(values), _mm256_loadu_ps(values + 8) };
}

INLINE struct floats add(struct floats a, struct floats b) {
        return (struct floats){ _mm256_add_ps(a.first, b.first), _mm256_add_ps(a.second, b.second) };
}

/* Rounded to the nearest, half to even, as the CPU is set. */
INLINE void store_levels(struct floats sum, uint8_t *levels) {
        __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(sum.first), _mm256_cvtps_epi32(sum.second));

        words = _mm256_permute4x64_epi64(words, 0xd8); /* packs works within halves */
        _mm_storeu_si128((__m128i *)levels,
                         _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

AVX2 static void across(const float *weights, uint32_t reach, const float *sums, size_t step, size_t n,
                        uint8_t *levels) {
        size_t i = 0;

        for (; i + AT_ONCE <= n; i += AT_ONCE) {
                struct floats sum = { _mm256_setzero_ps(), _mm256_setzero_ps() };

                for (uint32_t k = reach; k > 0; k--)
                        sum = add_weighted(sum, weights[k], add(load(sums + i - k * step), load(sums + i + k * step)));
                store_levels(add_weighted(sum, weights[0], load(sums + i)), levels + i);
        }
        if (i < n)
                blur_loops_scalar.across(weights, reach, sums + i, step, n - i, levels + i);
}

static const struct blur_loops LOOPS = { .down = down, .across = across };

const struct blur_loops *blur_loops_avx2(void) {
        return __builtin_cpu_supports("avx2") ? &LOOPS : NULL;
}

#else

const struct blur_loops *blur_loops_avx2(void) {
        return NULL;
}

#endif
