/* decode/jpeg/kernels_avx2.c: rows of samples -> RGB with AVX2, 32 pixels at a time: smoothing and colour in one go, in
 * words, the pixels of even and of odd columns in registers of their own. idct_avx2.c has the blocks. Chosen at run
 * time; other machines compile the last lines only. */
#include "daemon/decode/jpeg/jpeg_kernels.h"

#if defined(__x86_64__)
#include <assert.h>
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE AVX2 static inline __attribute__((always_inline))

#define AT_ONCE 32u /* pixels */

INLINE __m256i load(const uint8_t *samples) {
        return _mm256_loadu_si256((const __m256i *)samples);
}

/* ---- RGB ----------------------------------------------------------------------------------------------------- */

/* Three registers whose halves are bytes 0 to 15, 16 to 31 and 32 to 47 of the lower and of the upper 16 pixels. */
INLINE void store_pixels(__m256i first, __m256i second, __m256i third, uint8_t *rgb) {
        __m256i *out = (__m256i *)rgb;

        _mm256_storeu_si256(out, _mm256_permute2x128_si256(first, second, 0x20));
        _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(third, first, 0x30));
        _mm256_storeu_si256(out + 2, _mm256_permute2x128_si256(second, third, 0x31));
}

/* The bytes at 0, 3, 6, ... of a, b and c, those at 1, 4, 7, ... and those at 2, 5, 8, ..., by position within 16. */
INLINE __m256i every_third(__m256i a, __m256i b, __m256i c) {
        const __m256i of_b = _mm256_broadcastsi128_si256(
                _mm_setr_epi8(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0));
        const __m256i of_c = _mm256_broadcastsi128_si256(
                _mm_setr_epi8(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0));

        return _mm256_blendv_epi8(_mm256_blendv_epi8(a, b, of_b), c, of_c);
}

/* Channels, in each half 16 pixels, those of even columns in front. Place j of 16 belongs to another channel in each of
 * the three registers that are to be filled, since 16 = 1 (mod 3). So each channel comes to each place once, and one
 * shuffle a channel serves all three: place j of red has pixel (16 n + j) / 3, n the register where j is red's. */
INLINE void interleave(__m256i r, __m256i g, __m256i b, uint8_t *rgb) {
        const __m256i red = _mm256_broadcastsi128_si256(
                _mm_setr_epi8(0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15, 5, 10));
        const __m256i green = _mm256_broadcastsi128_si256(
                _mm_setr_epi8(10, 0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15, 5));
        const __m256i blue = _mm256_broadcastsi128_si256(
                _mm_setr_epi8(5, 10, 0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15));

        r = _mm256_shuffle_epi8(r, red);
        g = _mm256_shuffle_epi8(g, green);
        b = _mm256_shuffle_epi8(b, blue);
        store_pixels(every_third(r, g, b), every_third(g, b, r), every_third(b, r, g), rgb);
}

/* Words of 32 pixels: those of columns 0, 2, 4, ... and those of columns 1, 3, 5, ... */
struct words {
        __m256i even, odd;
};

/* The three products are those of kernels_scalar.c for every chroma: (2 c * k + 2^14) >> 15 is 1.402 c and 1.772 c with
 * the same rounding, and green's two factors are even, so that half of them fits 16 bits and loses nothing. */
INLINE __m256i red(__m256i y, __m256i cr) {
        return _mm256_add_epi16(y, _mm256_mulhrs_epi16(_mm256_add_epi16(cr, cr), _mm256_set1_epi16(22971)));
}

INLINE __m256i blue(__m256i y, __m256i cb) {
        return _mm256_add_epi16(y, _mm256_mulhrs_epi16(_mm256_add_epi16(cb, cb), _mm256_set1_epi16(29033)));
}

INLINE __m256i green_part(__m256i cb_and_cr) {
        const __m256i factors = _mm256_set1_epi32((int)(-23401u << 16 | (-11277u & 0xffff)));
        __m256i sum = _mm256_add_epi32(_mm256_madd_epi16(cb_and_cr, factors), _mm256_set1_epi32(1 << 14));

        return _mm256_srai_epi32(sum, 15);
}

INLINE __m256i green(__m256i y, __m256i cb, __m256i cr) {
        __m256i parts = _mm256_packs_epi32(green_part(_mm256_unpacklo_epi16(cb, cr)),
                                           green_part(_mm256_unpackhi_epi16(cb, cr)));

        return _mm256_add_epi16(y, parts);
}

/* Chroma is centred: -128 to 127. */
INLINE void put_pixels(const uint8_t *luma, struct words cb, struct words cr, uint8_t *rgb) {
        const __m256i y = load(luma);
        const __m256i even = _mm256_and_si256(y, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(y, 8);

        interleave(_mm256_packus_epi16(red(even, cr.even), red(odd, cr.odd)),
                   _mm256_packus_epi16(green(even, cb.even, cr.even), green(odd, cb.odd, cr.odd)),
                   _mm256_packus_epi16(blue(even, cb.even), blue(odd, cb.odd)), rgb);
}

/* ---- chroma in the width of luma ----------------------------------------------------------------------------- */

AVX2 static void kernels_avx2_row_grey(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb) {
        const __m256i first = _mm256_broadcastsi128_si256(
                _mm_setr_epi8(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5));
        const __m256i second = _mm256_broadcastsi128_si256(
                _mm_setr_epi8(5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10));
        const __m256i third = _mm256_broadcastsi128_si256(
                _mm_setr_epi8(10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15));

        for (uint32_t x = x0; x < x1; x += AT_ONCE, rgb += (size_t)AT_ONCE * 3) {
                __m256i y = load(row->luma + x);

                store_pixels(_mm256_shuffle_epi8(y, first), _mm256_shuffle_epi8(y, second),
                             _mm256_shuffle_epi8(y, third), rgb);
        }
}

INLINE struct words chroma_444(const struct baseline_row *row, int c, uint32_t x) {
        __m256i centred = _mm256_xor_si256(load(row->near[c] + x), _mm256_set1_epi8(-128));

        return (struct words){ _mm256_srai_epi16(_mm256_slli_epi16(centred, 8), 8), _mm256_srai_epi16(centred, 8) };
}

/* Words whose lower byte is `near` and whose upper byte is `far`: three parts of the one and one of the other. */
INLINE __m256i three_to_one(__m256i near_and_far) {
        return _mm256_maddubs_epi16(near_and_far, _mm256_set1_epi16(0x0103));
}

INLINE struct words chroma_440(const struct baseline_row *row, int c, uint32_t x, __m256i half) {
        const __m256i lower = _mm256_set1_epi16(255);
        __m256i near = load(row->near[c] + x), far = load(row->far[c] + x);
        __m256i even = _mm256_blendv_epi8(_mm256_slli_epi16(far, 8), near, lower);
        __m256i odd = _mm256_blendv_epi8(far, _mm256_srli_epi16(near, 8), lower);

        return (struct words){
                _mm256_srai_epi16(_mm256_add_epi16(three_to_one(even), half), 2),
                _mm256_srai_epi16(_mm256_add_epi16(three_to_one(odd), half), 2),
        };
}

AVX2 static void kernels_avx2_row_444(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb) {
        for (uint32_t x = x0; x < x1; x += AT_ONCE, rgb += (size_t)AT_ONCE * 3)
                put_pixels(row->luma + x, chroma_444(row, 0, x), chroma_444(row, 1, x), rgb);
}

/* What is added before a sum is shifted, so that it is rounded and centred. */
#define HALF(rounding, shift) ((rounding) - (128 << (shift)))

AVX2 static void kernels_avx2_row_440(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb) {
        const __m256i half = _mm256_set1_epi16(row->far_is_below ? HALF(2, 2) : HALF(1, 2));

        for (uint32_t x = x0; x < x1; x += AT_ONCE, rgb += (size_t)AT_ONCE * 3)
                put_pixels(row->luma + x, chroma_440(row, 0, x, half), chroma_440(row, 1, x, half), rgb);
}

/* ---- chroma of half the width -------------------------------------------------------------------------------- */

/* First all columns of a stretch, each the sum of its near and far sample (4:2:0) or the sample itself (4:2:2), one
 * more at either end; then, out of the first cache, each with the column before and after it. */
#define STRETCH 512u /* pixels */
#define FRONT   16u  /* words before the first column, for alignment; the last of them is the column before */

struct columns {
        _Alignas(32) int16_t words[FRONT + STRETCH / 2 + AT_ONCE];
};

INLINE void fill_columns(const struct baseline_row *row, int c, uint32_t first, uint32_t n, bool two_rows,
                         struct columns *columns) {
        const uint8_t *near = row->near[c] + first, *far = two_rows ? row->far[c] + first : NULL;
        int16_t *words = columns->words + FRONT;

        for (uint32_t i = 0; i <= n; i += 32) {
                /* lower and upper quarters change places, for what unpacking does */
                __m256i a = _mm256_permute4x64_epi64(load(near + i), _MM_SHUFFLE(3, 1, 2, 0));
                __m256i b = two_rows ? _mm256_permute4x64_epi64(load(far + i), _MM_SHUFFLE(3, 1, 2, 0))
                                     : _mm256_setzero_si256();
                __m256i lower = _mm256_unpacklo_epi8(a, b), upper = _mm256_unpackhi_epi8(a, b);

                _mm256_store_si256((__m256i *)(words + i), two_rows ? three_to_one(lower) : lower);
                _mm256_store_si256((__m256i *)(words + i + 16), two_rows ? three_to_one(upper) : upper);
        }

        if (first == 0)
                words[-1] = words[0];
        else
                words[-1] = (int16_t)(two_rows ? 3 * near[-1] + far[-1] : near[-1]);
        if (first + n == row->chroma_width)
                words[n] = words[n - 1];
}

INLINE struct words smooth(const int16_t *words, int even_half, int odd_half, int shift) {
        __m256i near = _mm256_load_si256((const __m256i *)words);
        __m256i before = _mm256_loadu_si256((const __m256i *)(words - 1));
        __m256i behind = _mm256_loadu_si256((const __m256i *)(words + 1));
        __m256i three = _mm256_add_epi16(_mm256_add_epi16(near, near), near);
        __m256i even = _mm256_add_epi16(_mm256_add_epi16(three, before), _mm256_set1_epi16((short)even_half));
        __m256i odd = _mm256_add_epi16(_mm256_add_epi16(three, behind), _mm256_set1_epi16((short)odd_half));

        return (struct words){ _mm256_srai_epi16(even, shift), _mm256_srai_epi16(odd, shift) };
}

INLINE void row_halved(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb, bool two_rows) {
        const int shift = two_rows ? 4 : 2;
        const int even_half = two_rows ? HALF(8, 4) : HALF(1, 2), odd_half = two_rows ? HALF(7, 4) : HALF(2, 2);
        struct columns columns[2];
        const int16_t *cb = columns[0].words + FRONT, *cr = columns[1].words + FRONT;

        assert(x0 % 2 == 0);
        for (uint32_t from = x0; from < x1; from += STRETCH) {
                const uint32_t n = ((x1 - from < STRETCH ? x1 - from : STRETCH) + 1) / 2; /* columns */
                const uint8_t *luma = row->luma + from;

                fill_columns(row, 0, from / 2, n, two_rows, &columns[0]);
                fill_columns(row, 1, from / 2, n, two_rows, &columns[1]);
                for (uint32_t i = 0; i < n; i += AT_ONCE / 2, rgb += (size_t)AT_ONCE * 3)
                        put_pixels(luma + 2 * i, smooth(cb + i, even_half, odd_half, shift),
                                   smooth(cr + i, even_half, odd_half, shift), rgb);
        }
}

AVX2 static void kernels_avx2_row_422(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb) {
        row_halved(row, x0, x1, rgb, false);
}

AVX2 static void kernels_avx2_row_420(const struct baseline_row *row, uint32_t x0, uint32_t x1, uint8_t *rgb) {
        row_halved(row, x0, x1, rgb, true);
}

static const struct baseline_kernels KERNELS = {
        .name = "avx2",
        .idct_pair = baseline_idct_pair_avx2,
        .row = {
                [BASELINE_GREY] = kernels_avx2_row_grey,
                [BASELINE_444] = kernels_avx2_row_444,
                [BASELINE_422] = kernels_avx2_row_422,
                [BASELINE_420] = kernels_avx2_row_420,
                [BASELINE_440] = kernels_avx2_row_440,
        },
};

const struct baseline_kernels *baseline_kernels_avx2(void) {
        return __builtin_cpu_supports("avx2") ? &KERNELS : NULL;
}

#else

const struct baseline_kernels *baseline_kernels_avx2(void) {
        return NULL;
}

#endif
