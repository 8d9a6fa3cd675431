/* augment/warp/mix_avx2.c: mixes pixels around a point, three channels and the byte after them at once: the same
 * operations in the same sequence as mix.c, none of them fused. */
#include <string.h>

#include "daemon/augment/warp/rows.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define INLINE __attribute__((target("avx2"), always_inline)) static inline
#define AVX2   __attribute__((target("avx2"))) static

INLINE __m256d load(const uint8_t *pixel) {
        int32_t bytes;

        memcpy(&bytes, pixel, sizeof(bytes));
        return _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
}

/* Truncated, and then clipped to levels. */
INLINE void store(__m256d numbers, uint8_t *out) {
        __m128i whole = _mm256_cvttpd_epi32(numbers), narrow = _mm_packs_epi32(whole, whole);
        int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(narrow, narrow));

        memcpy(out, &bytes, PIXEL_BYTES);
}

INLINE __m256d between(__m256d from, __m256d to, __m256d share) {
        return _mm256_add_pd(from, _mm256_mul_pd(_mm256_sub_pd(to, from), share));
}

INLINE void mix_two(const struct view *source, struct warp_around x, struct warp_around y, uint8_t *out) {
        uint32_t left = warp_clipped(x.first, source->width) * PIXEL_BYTES,
                 right = warp_clipped(x.first + 1, source->width) * PIXEL_BYTES;
        const uint8_t *above = source_at(source, 0, warp_clipped(y.first, source->height)),
                      *below = source_at(source, 0, warp_clipped(y.first + 1, source->height));
        __m256d share = _mm256_set1_pd(x.share);

        store(between(between(load(above + left), load(above + right), share),
                      between(load(below + left), load(below + right), share), _mm256_set1_pd(y.share)),
              out);
}

INLINE __m256d curve(__m256d a, __m256d b, __m256d c, __m256d d, __m256d share) {
        __m256d slope = _mm256_sub_pd(c, a), a_b = _mm256_sub_pd(a, b);
        __m256d second = _mm256_sub_pd(_mm256_add_pd(_mm256_add_pd(a_b, a_b), c), d);
        __m256d third = _mm256_add_pd(_mm256_sub_pd(_mm256_sub_pd(b, a), c), d);
        __m256d sum = _mm256_add_pd(second, _mm256_mul_pd(share, third));

        sum = _mm256_add_pd(slope, _mm256_mul_pd(share, sum));
        return _mm256_add_pd(b, _mm256_mul_pd(share, sum));
}

INLINE void mix_four(const struct view *source, struct warp_around x, struct warp_around y, uint8_t *out) {
        __m256d share = _mm256_set1_pd(x.share), mixed[4];
        uint32_t at[4];

        for (int i = 0; i < 4; i++)
                at[i] = warp_clipped(x.first - 1 + i, source->width) * PIXEL_BYTES;
        for (int i = 0; i < 4; i++) {
                const uint8_t *row = source_at(source, 0, warp_clipped(y.first - 1 + i, source->height));

                mixed[i] = curve(load(row + at[0]), load(row + at[1]), load(row + at[2]), load(row + at[3]), share);
        }
        store(curve(mixed[0], mixed[1], mixed[2], mixed[3], _mm256_set1_pd(y.share)), out);
}

/* May the byte after each of the pixels be read? */
INLINE bool has_more(const struct view *source, struct warp_around x, struct warp_around y, int32_t reach) {
        return x.first + reach < (int32_t)source->width - 1 || y.first + reach < (int32_t)source->height - 1;
}

AVX2 uint32_t mix_row(const struct warp *warp, const struct view *source, const double *x, const double *y, uint32_t n,
                      uint8_t *out) {
        bool is_two = warp->filter == WARP_BILINEAR;

        for (uint32_t i = 0; i < n; i++, out += PIXEL_BYTES) {
                struct warp_around around_x, around_y;

                if (!warp_shows(source, x[i], y[i])) {
                        memcpy(out, warp->fill, PIXEL_BYTES);
                        continue;
                }
                around_x = warp_around(x[i]);
                around_y = warp_around(y[i]);
                if (!has_more(source, around_x, around_y, is_two ? 1 : 2))
                        return i;
                if (is_two)
                        mix_two(source, around_x, around_y, out);
                else
                        mix_four(source, around_x, around_y, out);
        }
        return n;
}

uint32_t warp_mix_avx2(const struct warp *warp, const struct view *source, const double *x, const double *y, uint32_t n,
                       uint8_t *out) {
        return __builtin_cpu_supports("avx2") ? mix_row(warp, source, x, y, n, out) : 0;
}

#else

uint32_t warp_mix_avx2(const struct warp *warp, const struct view *source, const double *x, const double *y, uint32_t n,
                       uint8_t *out) {
        return 0;
}

#endif
