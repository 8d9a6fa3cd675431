/* augment/warp/eight_avx2.h: eight pixels at once, each with the byte after it. Private to this folder; whoever includes
 * it defines TARGET, the instructions of its functions. */
#pragma once

#include <immintrin.h>
#include <string.h>

#include "daemon/augment/warp/warp_rows.h"

#define INLINE __attribute__((target(TARGET), always_inline)) static inline

INLINE __m256 channel_of(__m256i pixels, int channel) {
        return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(pixels, 8 * channel), _mm256_set1_epi32(255)));
}

/* Eight pixels of four bytes become 24 bytes. */
INLINE void store_eight(__m256i pixels, uint8_t *out) {
        const __m256i colours = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5,
                                                 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
        __m256i packed = _mm256_shuffle_epi8(pixels, colours);
        __m128i second = _mm256_extracti128_si256(packed, 1);
        int32_t last = _mm_extract_epi32(second, 2);

        _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(packed));
        _mm_storel_epi64((__m128i *)(void *)(out + 12), second);
        memcpy(out + 20, &last, sizeof(last));
}
