/* augment/warp/fixed_avx2.c: nearest pixels of a row, eight at a time. A pixel is read with four bytes, so rows of the
 * result that show the source's last row, after which nothing may be read, are left to others. */
#include "daemon/augment/warp/warp_rows.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2    __attribute__((target("avx2")))
#define AT_ONCE 8u
#define N_AFTER 2u /* pixels after them that the last store may overwrite */

AVX2 static __m256i eight_from(int32_t at, int32_t step) {
        __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);

        return _mm256_add_epi32(_mm256_set1_epi32(at), _mm256_mullo_epi32(places, _mm256_set1_epi32(step)));
}

/* Does a row show the last row, or are the offsets too large for the instruction? */
static bool fixed_avx2_is_beyond(const struct view *source, struct position at, struct position step, uint32_t n) {
        int64_t first = at.y / WARP_ONE, last = (at.y + (int64_t)step.y * (n - 1)) / WARP_ONE;

        return (first > last ? first : last) + 1 >= (int64_t)source->height ||
               source->stride * source->height > INT32_MAX;
}

AVX2 static uint32_t copy_eights(const struct view *source, struct position at, struct position step, uint32_t n,
                                 uint8_t *out) {
        const __m256i colours = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5,
                                                 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
        const __m256i stride = _mm256_set1_epi32((int32_t)source->stride), bytes = _mm256_set1_epi32(PIXEL_BYTES);
        const __m256i step_x = _mm256_slli_epi32(_mm256_set1_epi32(step.x), 3),
                      step_y = _mm256_slli_epi32(_mm256_set1_epi32(step.y), 3);
        __m256i x = eight_from(at.x, step.x), y = eight_from(at.y, step.y);
        uint32_t i = 0;

        for (; i + AT_ONCE + N_AFTER <= n; i += AT_ONCE, out += AT_ONCE * PIXEL_BYTES) {
                __m256i rows = _mm256_mullo_epi32(_mm256_srli_epi32(y, 16), stride),
                        columns = _mm256_mullo_epi32(_mm256_srli_epi32(x, 16), bytes);
                __m256i pixels = _mm256_i32gather_epi32((const int *)(const void *)source->pixels,
                                                        _mm256_add_epi32(rows, columns), 1);

                pixels = _mm256_shuffle_epi8(pixels, colours);
                _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(pixels));
                _mm_storeu_si128((__m128i *)(void *)(out + AT_ONCE / 2 * PIXEL_BYTES),
                                 _mm256_extracti128_si256(pixels, 1));
                x = _mm256_add_epi32(x, step_x);
                y = _mm256_add_epi32(y, step_y);
        }
        return i;
}

uint32_t warp_fixed_avx2(const struct view *source, struct position at, struct position step, uint32_t n,
                         uint8_t *out) {
        if (!__builtin_cpu_supports("avx2") || fixed_avx2_is_beyond(source, at, step, n))
                return 0;
        return copy_eights(source, at, step, n, out);
}

#else

uint32_t warp_fixed_avx2(const struct view *source, struct position at, struct position step, uint32_t n,
                         uint8_t *out) {
        return 0;
}

#endif
