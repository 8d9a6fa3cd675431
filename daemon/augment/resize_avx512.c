/* augment/resize_avx512.c: the loops with AVX-512 (F and BW): two taps an instruction, four rows a register along x.
 *
 * resize_avx2.c with registers of twice the width: what is said there holds here. VNNI would bring nothing: it
 * multiplies bytes, a coefficient has three, and four taps would cost as many instructions as they do now. */
#include "daemon/augment/resize_kernels.h"

#include "daemon/base/box.h"

#include <stdbool.h>
#include <string.h>

#if defined(RESIZE_EMULATED) /* by a test that has brought the instructions with it */
#define AVX512
#define INLINE     static inline
#define HAS_AVX512 true
#elif defined(__x86_64__)
#include <immintrin.h>
#define AVX512     __attribute__((target("avx512f,avx512bw")))
#define INLINE     AVX512 static inline __attribute__((always_inline))
#define HAS_AVX512 (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
#endif

#if defined(AVX512)

/* Two parts of a coefficient, of two neighbouring taps, for every pixel of a register. */
INLINE __m512i load_pair(const int16_t *pair) {
        int32_t both;

        memcpy(&both, pair, 4);
        return _mm512_set1_epi32(both);
}

INLINE __m512i round_words(__m512i a, __m512i b) {
        return _mm512_mulhrs_epi16(_mm512_packs_epi32(a, b), _mm512_set1_epi16(RESIZE_ROUND));
}

INLINE __m512i join_sums(__m512i high, __m512i low) {
        return _mm512_add_epi32(high, _mm512_srai_epi32(low, RESIZE_SPLIT));
}

/* ---- along x ------------------------------------------------------------------------------------------------- */

INLINE __m128i load_16(const uint8_t *bytes) {
        return _mm_loadu_si128((const __m128i *)bytes);
}

/* 16 bytes of each of four rows, a row a lane. */
INLINE __m512i load_rows(const uint8_t *const rows[4], size_t from) {
        __m512i bytes = _mm512_castsi128_si512(load_16(rows[0] + from));

        bytes = _mm512_inserti32x4(bytes, load_16(rows[1] + from), 1);
        bytes = _mm512_inserti32x4(bytes, load_16(rows[2] + from), 2);
        return _mm512_inserti32x4(bytes, load_16(rows[3] + from), 3);
}

/* Pixels 0 and 1 of a lane, as words R0 R1 G0 G1 B0 B1 0 0. */
INLINE __m512i first_pair(__m512i bytes) {
        const __m128i spread = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);

        return _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(spread));
}

/* Pixels 2 and 3. */
INLINE __m512i second_pair(__m512i bytes) {
        const __m128i spread = _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);

        return _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(spread));
}

/* What a pixel adds up to, in four rows, in 1/128: dwords R G B 0. */
INLINE __m512i sum_pixel(const uint8_t *const rows[4], size_t from, const int16_t *split, uint32_t n_taps) {
        __m512i high = _mm512_setzero_si512(), low = high;

        for (uint32_t i = 0; i < n_taps; i += 4, from += 4 * PIXEL_BYTES, split += 8) {
                __m512i bytes = load_rows(rows, from), pixels = first_pair(bytes);

                high = _mm512_add_epi32(high, _mm512_madd_epi16(pixels, load_pair(split)));
                low = _mm512_add_epi32(low, _mm512_madd_epi16(pixels, load_pair(split + 2)));
                if (i + 2 >= n_taps)
                        break;
                pixels = second_pair(bytes);
                high = _mm512_add_epi32(high, _mm512_madd_epi16(pixels, load_pair(split + 4)));
                low = _mm512_add_epi32(low, _mm512_madd_epi16(pixels, load_pair(split + 6)));
        }
        return join_sums(high, low);
}

/* Four pixels of four rows, without the gaps behind each. Writes 16 bytes where 12 are meant. */
INLINE void store_rows(__m512i bytes, uint8_t *const rows[4], size_t to) {
        const __m128i close_up = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);

        bytes = _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(close_up));
        _mm_storeu_si128((__m128i *)(rows[0] + to), _mm512_castsi512_si128(bytes));
        _mm_storeu_si128((__m128i *)(rows[1] + to), _mm512_extracti32x4_epi32(bytes, 1));
        _mm_storeu_si128((__m128i *)(rows[2] + to), _mm512_extracti32x4_epi32(bytes, 2));
        _mm_storeu_si128((__m128i *)(rows[3] + to), _mm512_extracti32x4_epi32(bytes, 3));
}

INLINE void rows_of(const struct resize_axis *axis, const uint8_t *const source[4], uint8_t *const out[4],
                    uint32_t n_taps) {
        /* Copies, or each store of pixels would have them loaded anew. */
        const uint8_t *const from[4] = { source[0], source[1], source[2], source[3] };
        uint8_t *const to[4] = { out[0], out[1], out[2], out[3] };
        const uint32_t *first = axis->first, *end = first + axis->n_outputs;
        const size_t n_split = (size_t)n_taps * 2;
        const int16_t *split = axis->split;

        for (size_t x = 0; first < end; first += 4, split += 4 * n_split, x += 4 * PIXEL_BYTES) {
                __m512i words[2];

                for (uint32_t i = 0; i < 2; i++) {
                        const uint32_t *two = first + 2 * i;
                        const int16_t *weights = split + 2 * i * n_split;

                        words[i] = round_words(
                                sum_pixel(from, (size_t)two[0] * PIXEL_BYTES, weights, n_taps),
                                sum_pixel(from, (size_t)two[1] * PIXEL_BYTES, weights + n_split, n_taps));
                }
                store_rows(_mm512_packus_epi16(words[0], words[1]), to, x);
        }
}

AVX512 static void avx512_rows(const struct resize_axis *axis, const uint8_t *const source[RESIZE_ROWS_AT_ONCE],
                               uint8_t *const out[RESIZE_ROWS_AT_ONCE]) {
        if (axis->n_taps == 2)
                rows_of(axis, source, out, 2);
        else if (axis->n_taps == 4)
                rows_of(axis, source, out, 4);
        else if (axis->n_taps == 6)
                rows_of(axis, source, out, 6);
        else
                rows_of(axis, source, out, axis->n_taps);
}

/* ---- along y ------------------------------------------------------------------------------------------------- */

#define BLOCK 64u /* columns at once */

/* Two rows at a time: their bytes interleaved, widened to words, each pair multiplied by its pair of weights. */
INLINE void column_block(const int16_t *split, uint32_t count, const uint8_t *const *rows, size_t x, uint8_t *out) {
        const __m512i zero = _mm512_setzero_si512();
        __m512i high[4] = { zero, zero, zero, zero }, low[4] = { zero, zero, zero, zero };

        for (uint32_t i = 0; i < count; i += 2, split += 4) {
                const uint8_t *row_b = rows[i + 1 < count ? i + 1 : i]; /* the padding tap weighs nothing */
                __m512i a = _mm512_loadu_si512(rows[i] + x), b = _mm512_loadu_si512(row_b + x);
                __m512i first = _mm512_unpacklo_epi8(a, b), second = _mm512_unpackhi_epi8(a, b);
                __m512i pairs[4] = {
                        _mm512_unpacklo_epi8(first, zero),
                        _mm512_unpackhi_epi8(first, zero),
                        _mm512_unpacklo_epi8(second, zero),
                        _mm512_unpackhi_epi8(second, zero),
                };

                for (int k = 0; k < 4; k++) {
                        high[k] = _mm512_add_epi32(high[k], _mm512_madd_epi16(pairs[k], load_pair(split)));
                        low[k] = _mm512_add_epi32(low[k], _mm512_madd_epi16(pairs[k], load_pair(split + 2)));
                }
        }

        __m512i words_0 = round_words(join_sums(high[0], low[0]), join_sums(high[1], low[1]));
        __m512i words_1 = round_words(join_sums(high[2], low[2]), join_sums(high[3], low[3]));
        _mm512_storeu_si512(out + x, _mm512_packus_epi16(words_0, words_1));
}

INLINE void column_of(const int16_t *split, uint32_t count, const uint8_t *const *rows, uint8_t *out, size_t n_bytes) {
        for (size_t x = 0; x + BLOCK <= n_bytes; x += BLOCK)
                column_block(split, count, rows, x, out);
        if (n_bytes % BLOCK) /* once more over the end: the same values, and nothing past the row */
                column_block(split, count, rows, n_bytes - BLOCK, out);
}

AVX512 static void avx512_column(const struct resize_axis *axis, uint32_t idx_output, const uint8_t *const *rows,
                                 uint8_t *out, size_t n_bytes) {
        const int16_t *split = axis->split + (size_t)idx_output * axis->n_taps * 2;
        uint32_t count = axis->count[idx_output];

        if (n_bytes < BLOCK)
                resize_column_scalar(axis, idx_output, rows, out, n_bytes);
        else if (count == 2)
                column_of(split, 2, rows, out, n_bytes);
        else if (count == 3)
                column_of(split, 3, rows, out, n_bytes);
        else if (count == 4)
                column_of(split, 4, rows, out, n_bytes);
        else
                column_of(split, count, rows, out, n_bytes);
}

static const struct resize_kernels KERNELS = { .rows = avx512_rows, .column = avx512_column };

const struct resize_kernels *resize_kernels_avx512(void) {
        return HAS_AVX512 ? &KERNELS : NULL;
}

#else

const struct resize_kernels *resize_kernels_avx512(void) {
        return NULL;
}

#endif
