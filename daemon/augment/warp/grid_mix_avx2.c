/* augment/warp/grid_mix_avx2.c: grid_mix.c for eight points at once, with AVX2 and FMA: the same operations in the same
 * sequence. */
#include "daemon/augment/warp/warp_rows.h"

#if defined(__x86_64__)

#define TARGET "avx2,fma"

#include "daemon/augment/warp/eight_avx2.h"

#define AVX2 __attribute__((target(TARGET))) static

/* The pixels before and after eight points along an axis, which of them are there (all bits set), and their shares. */
struct axis {
        __m256i first, second, has_first, has_second;
        __m256 share_first, share_second;
};

INLINE __m256i within(__m256i at, uint32_t length) {
        return _mm256_and_si256(_mm256_cmpgt_epi32(at, _mm256_set1_epi32(-1)),
                                _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)length), at));
}

INLINE struct axis axis_of(const float *points, uint32_t length) {
        __m256 at = _mm256_loadu_ps(points), before = _mm256_floor_ps(at);
        struct axis axis = { .first = _mm256_cvttps_epi32(before), .share_second = _mm256_sub_ps(at, before) };

        axis.second = _mm256_add_epi32(axis.first, _mm256_set1_epi32(1));
        axis.share_first = _mm256_sub_ps(_mm256_set1_ps(1), axis.share_second);
        axis.has_first = within(axis.first, length);
        axis.has_second = within(axis.second, length);
        return axis;
}

/* A corner of eight points: its pixels, 0 where there are none, and its shares of the results. */
struct corner_of_eight {
        __m256i has, pixels;
        __m256 shares;
};

/* Sets *ret_is_after if the byte after one of the pixels is not the source's; then it reads nothing. */
INLINE struct corner_of_eight read_corner(const struct view *source, __m256i column, __m256i row, __m256i has,
                                          bool *ret_is_after) {
        size_t end = source->stride * (source->height - 1) + (size_t)source->width * PIXEL_BYTES;
        __m256i at = _mm256_add_epi32(_mm256_mullo_epi32(row, _mm256_set1_epi32((int32_t)source->stride)),
                                      _mm256_mullo_epi32(column, _mm256_set1_epi32(PIXEL_BYTES)));
        __m256i is_after = _mm256_and_si256(_mm256_cmpgt_epi32(at, _mm256_set1_epi32((int32_t)end - 4)), has);
        struct corner_of_eight corner = { .has = has, .pixels = _mm256_setzero_si256() };

        *ret_is_after = *ret_is_after || !_mm256_testz_si256(is_after, is_after);
        if (!*ret_is_after)
                corner.pixels = _mm256_mask_i32gather_epi32(corner.pixels, (const int *)(const void *)source->pixels,
                                                            at, has, 1);
        return corner;
}

INLINE __m256 sum_of_four(const struct corner_of_eight *corners, const __m256 *values) {
        __m256 sum = _mm256_mul_ps(values[0], corners[0].shares);

        for (int i = 1; i < 4; i++)
                sum = _mm256_fmadd_ps(values[i], corners[i].shares, sum);
        return sum;
}

/* The results of one channel, as whole numbers. */
INLINE __m256i mix_channel(const struct corner_of_eight *corners, int channel, bool is_filled, float level,
                           __m256 share) {
        __m256 values[4], fill = _mm256_set1_ps(level), mixed;

        for (int i = 0; i < 4; i++)
                values[i] = channel_of(corners[i].pixels, channel);
        mixed = sum_of_four(corners, values);
        if (is_filled)
                mixed = _mm256_add_ps(_mm256_mul_ps(_mm256_sub_ps(mixed, fill), share), fill);
        return _mm256_slli_epi32(_mm256_cvtps_epi32(mixed), 8 * channel);
}

INLINE __m256 share_of_picture(const struct corner_of_eight *corners) {
        __m256 shown[4];

        for (int i = 0; i < 4; i++)
                shown[i] = _mm256_and_ps(_mm256_castsi256_ps(corners[i].has), _mm256_set1_ps(1));
        return sum_of_four(corners, shown);
}

/* False: nothing was written. */
INLINE bool mix_eight(const struct warp *warp, bool is_filled, const struct view *source, const float *x,
                      const float *y, uint8_t *out) {
        struct axis across = axis_of(x, source->width), down = axis_of(y, source->height);
        struct corner_of_eight corners[4];
        bool is_after = false;
        __m256i pixels;
        __m256 share;

        for (int i = 0; i < 4; i++) {
                bool right = i % 2, below = i / 2;
                __m256i has = _mm256_and_si256(right ? across.has_second : across.has_first,
                                               below ? down.has_second : down.has_first);

                corners[i] = read_corner(source, right ? across.second : across.first, below ? down.second : down.first,
                                         has, &is_after);
                corners[i].shares = _mm256_mul_ps(below ? down.share_second : down.share_first,
                                                  right ? across.share_second : across.share_first);
        }
        if (is_after)
                return false;
        share = share_of_picture(corners);
        pixels = mix_channel(corners, 0, is_filled, warp->fill[0], share);
        pixels = _mm256_or_si256(pixels, mix_channel(corners, 1, is_filled, warp->fill[1], share));
        pixels = _mm256_or_si256(pixels, mix_channel(corners, 2, is_filled, warp->fill[2], share));
        store_eight(pixels, out);
        return true;
}

AVX2 uint32_t mix_eights(const struct warp *warp, bool is_filled, const struct view *source, const float *x,
                         const float *y, uint32_t n, uint8_t *out) {
        uint32_t i = 0;

        while (i + WARP_EIGHT <= n && mix_eight(warp, is_filled, source, x + i, y + i, out + (size_t)i * PIXEL_BYTES))
                i += WARP_EIGHT;
        return i;
}

uint32_t warp_grid_mix_avx2(const struct warp *warp, bool is_filled, const struct view *source, const float *x,
                            const float *y, uint32_t n, uint8_t *out) {
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
            source->stride * source->height > INT32_MAX)
                return 0;
        return mix_eights(warp, is_filled, source, x, y, n, out);
}

#else

uint32_t warp_grid_mix_avx2(const struct warp *warp, bool is_filled, const struct view *source, const float *x,
                            const float *y, uint32_t n, uint8_t *out) {
        return 0;
}

#endif
