/* augment/operations/jpeg/colors_avx2.c: colors.c with AVX2, 16 pixels at once. Factors that are not numbers of 16 bits
 * are sums of such: the products are the same. */
#include "daemon/augment/operations/jpeg/colors.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define INLINE  __attribute__((target("avx2"), always_inline)) static inline
#define AVX2    __attribute__((target("avx2")))
#define AT_ONCE 16u

INLINE __m256i load(const uint8_t *levels) {
        return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)levels));
}

/* Clipped to levels. */
INLINE void store(__m256i numbers, uint8_t *levels) {
        __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(numbers, numbers), 0x08);

        _mm_storeu_si128((__m128i *)(void *)levels, _mm256_castsi256_si128(bytes));
}

INLINE __m256i pair(int first, int second) {
        return _mm256_set1_epi32((int32_t)((uint32_t)(uint16_t)first | (uint32_t)(uint16_t)second << 16));
}

/* (a * by_a + b * by_b + c * by_c + d * by_d + added) / 2^16; factors are pairs. */
INLINE __m256i weighed(__m256i a, __m256i b, __m256i by_a_b, __m256i c, __m256i d, __m256i by_c_d, int added) {
        __m256i low = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), by_a_b),
                                       _mm256_madd_epi16(_mm256_unpacklo_epi16(c, d), by_c_d));
        __m256i high = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), by_a_b),
                                        _mm256_madd_epi16(_mm256_unpackhi_epi16(c, d), by_c_d));
        __m256i all = _mm256_set1_epi32(added);

        return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(low, all), 16),
                                  _mm256_srai_epi32(_mm256_add_epi32(high, all), 16));
}

AVX2 void luma_avx2(const struct planes *colors, uint8_t *ret_luma) {
        const __m256i by_r_g = pair(FACTOR(0.299), FACTOR(0.587) / 2), by_g_b = pair(FACTOR(0.587) / 2, FACTOR(0.114));

        for (unsigned i = 0; i < PLANES_AT_ONCE; i += AT_ONCE) {
                __m256i red = load(colors->first + i), green = load(colors->second + i);
                __m256i blue = load(colors->third + i);

                store(weighed(red, green, by_r_g, green, blue, by_g_b, HALF), ret_luma + i);
        }
}

INLINE void add_to(uint16_t *sums, __m256i numbers) {
        __m256i *at = (__m256i *)(void *)sums;

        _mm256_storeu_si256(at, _mm256_add_epi16(_mm256_loadu_si256(at), numbers));
}

AVX2 void add_chroma_avx2(const struct planes *colors, uint16_t *cb, uint16_t *cr) {
        const __m256i twice = pair(FACTOR(0.25), FACTOR(0.25)), to_cb = pair(-FACTOR(0.16874), -FACTOR(0.33126)),
                      to_cr = pair(-FACTOR(0.41869), -FACTOR(0.08131));

        for (unsigned i = 0; i < PLANES_AT_ONCE; i += AT_ONCE) {
                __m256i red = load(colors->first + i), green = load(colors->second + i);
                __m256i blue = load(colors->third + i);

                add_to(cb + i, weighed(red, green, to_cb, blue, blue, twice, ALL_CHROMA));
                add_to(cr + i, weighed(green, blue, to_cr, red, red, twice, ALL_CHROMA));
        }
}

/* a * factor / 2^16, rounded. */
INLINE __m256i times(__m256i a, int factor) {
        __m256i by = _mm256_set1_epi16((int16_t)factor);

        return _mm256_add_epi16(_mm256_mulhi_epi16(a, by), _mm256_srli_epi16(_mm256_mullo_epi16(a, by), 15));
}

AVX2 void colors_avx2(const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, struct planes *ret_colors) {
        const __m256i middle = _mm256_set1_epi16(128), none = _mm256_setzero_si256();
        const __m256i to_green = pair(-FACTOR(0.34414), 65536 - FACTOR(0.71414));

        for (unsigned i = 0; i < PLANES_AT_ONCE; i += AT_ONCE) {
                __m256i y = load(luma + i), b = _mm256_sub_epi16(load(cb + i), middle);
                __m256i r = _mm256_sub_epi16(load(cr + i), middle);
                __m256i red = _mm256_add_epi16(r, times(r, FACTOR(1.402) - 65536));
                __m256i green = _mm256_sub_epi16(weighed(b, r, to_green, none, none, none, HALF), r);
                __m256i blue = _mm256_add_epi16(_mm256_add_epi16(b, b), times(b, FACTOR(1.772) - 2 * 65536));

                store(_mm256_add_epi16(y, red), ret_colors->first + i);
                store(_mm256_add_epi16(y, green), ret_colors->second + i);
                store(_mm256_add_epi16(y, blue), ret_colors->third + i);
        }
}

#endif
