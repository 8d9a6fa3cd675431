/* augment/warp/mix_avx2.c: mixes pixels around a point, three channels and the byte after them at once: the same
 * operations in the same sequence as warp_mix.c, none of them fused.
 *
 * Where two pixels are mixed along each axis, that is done for eight points at once in float32. Such a number is less
 * than DOUBT from that of float64: if no whole number is that near, both are truncated to the same level, and if one
 * is, which is rare, the pixel is made once more in float64. */
#include "daemon/augment/warp/warp_rows.h"

#if defined(__x86_64__)

#define TARGET "avx2"

#include "daemon/augment/warp/eight_avx2.h"

#define AVX2 __attribute__((target(TARGET))) static

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

/* ---- eight points ---------------------------------------------------------------------------------------------- */

#define AT_ONCE 8u

/* Levels are up to 255, where numbers of float32 are 2^-16 apart. Three roundings, each by half of that, make each of
 * the two rows, and four more the result: 7 * 2^-17 at most. */
#define DOUBT 0x1p-14f

/* Points along one axis: the pixels before and after them, within the source, and shares of the latter. */
struct axis {
        __m256i first, second;
        __m256 share;
};

/* Bits of those of four points that are within the axis. */
INLINE __m256d within(__m256d points, uint32_t length) {
        return _mm256_and_pd(_mm256_cmp_pd(points, _mm256_setzero_pd(), _CMP_GE_OQ),
                             _mm256_cmp_pd(points, _mm256_set1_pd(length), _CMP_LT_OQ));
}

/* Of eight points; those that are not shown lie at 1/2. */
INLINE struct axis axis_of(__m256d low, __m256d high, uint32_t length) {
        __m256d half = _mm256_set1_pd(0.5), before_low = _mm256_sub_pd(low, half),
                before_high = _mm256_sub_pd(high, half);
        __m256d floor_low = _mm256_floor_pd(before_low), floor_high = _mm256_floor_pd(before_high);
        __m256i first = _mm256_set_m128i(_mm256_cvttpd_epi32(floor_high), _mm256_cvttpd_epi32(floor_low));
        __m256i last = _mm256_set1_epi32((int32_t)length - 1);

        return (struct axis){
                .first = _mm256_max_epi32(first, _mm256_setzero_si256()),
                .second = _mm256_min_epi32(_mm256_add_epi32(first, _mm256_set1_epi32(1)), last),
                .share = _mm256_set_m128(_mm256_cvtpd_ps(_mm256_sub_pd(before_high, floor_high)),
                                         _mm256_cvtpd_ps(_mm256_sub_pd(before_low, floor_low))),
        };
}

/* The pixels around eight points, each with the byte after it. */
struct corners {
        __m256i above_left, above_right, below_left, below_right;
};

INLINE __m256i gather(const struct view *source, __m256i row, __m256i column) {
        return _mm256_i32gather_epi32((const int *)(const void *)source->pixels, _mm256_add_epi32(row, column), 1);
}

/* False if a byte after the source would be read. */
INLINE bool read_corners(const struct view *source, const struct axis *x, const struct axis *y,
                         struct corners *ret_corners) {
        const __m256i stride = _mm256_set1_epi32((int32_t)source->stride), bytes = _mm256_set1_epi32(PIXEL_BYTES);
        __m256i above = _mm256_mullo_epi32(y->first, stride), below = _mm256_mullo_epi32(y->second, stride);
        __m256i left = _mm256_mullo_epi32(x->first, bytes), right = _mm256_mullo_epi32(x->second, bytes);
        size_t last = source->stride * (source->height - 1) + (size_t)source->width * PIXEL_BYTES - sizeof(int32_t);
        __m256i is_after = _mm256_cmpgt_epi32(_mm256_add_epi32(below, right), _mm256_set1_epi32((int32_t)last));

        if (!_mm256_testz_si256(is_after, is_after))
                return false;
        *ret_corners = (struct corners){ gather(source, above, left), gather(source, above, right),
                                         gather(source, below, left), gather(source, below, right) };
        return true;
}

INLINE __m256 between_8(__m256 from, __m256 to, __m256 share) {
        return _mm256_add_ps(from, _mm256_mul_ps(_mm256_sub_ps(to, from), share));
}

/* Where all four pixels have the same level, that is the result in both. */
INLINE __m256 is_flat(const struct corners *corners, int channel) {
        __m256i bits = _mm256_or_si256(_mm256_xor_si256(corners->above_left, corners->above_right),
                                       _mm256_or_si256(_mm256_xor_si256(corners->above_left, corners->below_left),
                                                       _mm256_xor_si256(corners->above_left, corners->below_right)));

        bits = _mm256_and_si256(bits, _mm256_set1_epi32(255 << 8 * channel));
        return _mm256_castsi256_ps(_mm256_cmpeq_epi32(bits, _mm256_setzero_si256()));
}

/* Adds the levels of a channel to pixels, and where they are in doubt. */
INLINE void mix_channel(const struct corners *corners, int channel, __m256 share_x, __m256 share_y, __m256i *pixels,
                        __m256 *in_doubt) {
        const __m256 half = _mm256_set1_ps(0.5f), no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MAX));
        __m256 upper = between_8(channel_of(corners->above_left, channel), channel_of(corners->above_right, channel),
                                 share_x);
        __m256 lower = between_8(channel_of(corners->below_left, channel), channel_of(corners->below_right, channel),
                                 share_x);
        __m256 mixed = between_8(upper, lower, share_y);
        __m256i levels = _mm256_cvttps_epi32(mixed);
        __m256 from_half = _mm256_sub_ps(_mm256_sub_ps(mixed, _mm256_cvtepi32_ps(levels)), half);
        __m256 is_near = _mm256_cmp_ps(_mm256_and_ps(from_half, no_sign), _mm256_set1_ps(0.5f - DOUBT), _CMP_GE_OQ);

        *in_doubt = _mm256_or_ps(*in_doubt, _mm256_andnot_ps(is_flat(corners, channel), is_near));
        *pixels = _mm256_or_si256(*pixels, _mm256_slli_epi32(levels, 8 * channel));
}

INLINE __m256i mask_of(unsigned bits) {
        const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);

        return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int32_t)bits), each), each);
}

/* Writes eight pixels, of which those whose bits are returned have to be written once more. -1: none is written. */
INLINE int mix_eight(const struct warp *warp, const struct view *source, const double *x, const double *y,
                     uint8_t *out) {
        __m256d half = _mm256_set1_pd(0.5), x_low = _mm256_loadu_pd(x), x_high = _mm256_loadu_pd(x + 4),
                y_low = _mm256_loadu_pd(y), y_high = _mm256_loadu_pd(y + 4);
        __m256d low = _mm256_and_pd(within(x_low, source->width), within(y_low, source->height)),
                high = _mm256_and_pd(within(x_high, source->width), within(y_high, source->height));
        unsigned shown = (unsigned)_mm256_movemask_pd(low) | (unsigned)_mm256_movemask_pd(high) << 4;
        struct corners corners;
        __m256 in_doubt = _mm256_setzero_ps();
        __m256i pixels = _mm256_setzero_si256();
        struct axis across, down;

        if (shown == 0) {
                warp_fill(warp, out, AT_ONCE);
                return 0;
        }
        across = axis_of(_mm256_blendv_pd(half, x_low, low), _mm256_blendv_pd(half, x_high, high), source->width);
        down = axis_of(_mm256_blendv_pd(half, y_low, low), _mm256_blendv_pd(half, y_high, high), source->height);
        if (!read_corners(source, &across, &down, &corners))
                return -1;
        mix_channel(&corners, 0, across.share, down.share, &pixels, &in_doubt);
        mix_channel(&corners, 1, across.share, down.share, &pixels, &in_doubt);
        mix_channel(&corners, 2, across.share, down.share, &pixels, &in_doubt);
        if (shown != 255)
                pixels = _mm256_blendv_epi8(_mm256_set1_epi32(warp->fill[0] | warp->fill[1] << 8 | warp->fill[2] << 16),
                                            pixels, mask_of(shown));
        store_eight(pixels, out);
        return _mm256_movemask_ps(in_doubt) & (int)shown;
}

/* Of n points as many eights as there are, up to one that would read after the source. */
AVX2 uint32_t mix_eights(const struct warp *warp, const struct view *source, const double *x, const double *y,
                         uint32_t n, uint8_t *out) {
        uint32_t i = 0;

        for (; i + AT_ONCE <= n; i += AT_ONCE) {
                int in_doubt = mix_eight(warp, source, x + i, y + i, out + (size_t)i * PIXEL_BYTES);

                if (in_doubt < 0)
                        break;
                for (; in_doubt != 0; in_doubt &= in_doubt - 1) {
                        uint32_t at = i + (uint32_t)__builtin_ctz((unsigned)in_doubt);

                        mix_two(source, warp_around(x[at]), warp_around(y[at]), out + (size_t)at * PIXEL_BYTES);
                }
        }
        return i;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

AVX2 uint32_t mix_row(const struct warp *warp, const struct view *source, const double *x, const double *y, uint32_t n,
                      uint8_t *out) {
        bool is_two = warp->filter == WARP_BILINEAR;
        uint32_t i = 0;

        if (is_two && source->stride * source->height <= INT32_MAX)
                i = mix_eights(warp, source, x, y, n, out);
        for (out += (size_t)i * PIXEL_BYTES; i < n; i++, out += PIXEL_BYTES) {
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
