/* augment/resize_avx2.c: the loops with AVX2: two taps an instruction, four rows for each load of the weights.
 *
 * sum(pixel * k) = (sum(pixel * high) << 12) + sum(pixel * low), and each of these sums is exact in 32 bits, so the
 * bits are those of the scalar form. Chosen at run time; other machines compile the last lines only. */
#include "daemon/augment/resize_kernels.h"

#include "daemon/base/box.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))

/* ---- along x ------------------------------------------------------------------------------------------------- */

/* The weights of four taps: high and low parts, laid out so that each lane of four words multiplies one pair of taps.
 */
struct weights {
        __m256i high, low;
};

AVX2 static inline struct weights load_weights(const int16_t *split) {
        const __m256i pick_high = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
        const __m256i pick_low = _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3);
        __m256 eight = _mm256_castsi256_ps(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)split)));

        return (struct weights){
                _mm256_castps_si256(_mm256_permutevar_ps(eight, pick_high)),
                _mm256_castps_si256(_mm256_permutevar_ps(eight, pick_low)),
        };
}

/* Four pixels as words: lane 0 has R0 R1 G0 G1 B0 B1 0 0, lane 1 the same of pixels 2 and 3. Reads 16 bytes. */
AVX2 static inline __m256i load_pixels(const uint8_t *pixels) {
        const __m256i spread = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1,
                                                7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);

        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)pixels)), spread);
}

/* The pixels of two rows, row a in lane 0: the halves of each sum added, rounded, shifted. */
AVX2 static inline __m256i finish_pair(__m256i a, __m256i b) {
        __m256i sum = _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));

        return _mm256_srai_epi32(sum, RESIZE_PRECISION);
}

AVX2 static inline void store_pixel(uint8_t *out, int pixel) {
        memcpy(out, &pixel, 4); /* the fourth byte is overwritten by the next pixel, or lies in the slack */
}

AVX2 static inline __attribute__((always_inline)) void
rows_of(const struct resize_axis *axis, const uint8_t *const source[4], uint8_t *const out[4], uint32_t n_taps) {
        const __m256i half = _mm256_setr_epi32(RESIZE_HALF, RESIZE_HALF, RESIZE_HALF, 0, 0, 0, 0, 0);
        const int16_t *split = axis->split;

        for (uint32_t x = 0; x < axis->n_outputs; x++) {
                size_t from = (size_t)axis->first[x] * PIXEL_BYTES, to = (size_t)x * PIXEL_BYTES;
                __m256i high[4] = {}, low[4] = { half, half, half, half };

                for (uint32_t i = 0; i < n_taps; i += 4, from += 4 * PIXEL_BYTES, split += 8) {
                        struct weights weights = load_weights(split);

                        for (int row = 0; row < 4; row++) {
                                __m256i pixels = load_pixels(source[row] + from);

                                high[row] = _mm256_add_epi32(high[row], _mm256_madd_epi16(pixels, weights.high));
                                low[row] = _mm256_add_epi32(low[row], _mm256_madd_epi16(pixels, weights.low));
                        }
                }

                for (int row = 0; row < 4; row++)
                        low[row] = _mm256_add_epi32(low[row], _mm256_slli_epi32(high[row], RESIZE_SPLIT));
                __m256i words = _mm256_packs_epi32(finish_pair(low[0], low[1]), finish_pair(low[2], low[3]));
                __m256i bytes = _mm256_packus_epi16(words, words);
                __m128i even = _mm256_castsi256_si128(bytes), odd = _mm256_extracti128_si256(bytes, 1);

                store_pixel(out[0] + to, _mm_cvtsi128_si32(even));
                store_pixel(out[1] + to, _mm_cvtsi128_si32(odd));
                store_pixel(out[2] + to, _mm_extract_epi32(even, 1));
                store_pixel(out[3] + to, _mm_extract_epi32(odd, 1));
        }
}

/* The usual numbers of taps are unrolled: 4 up to a scale of 1.5, 8 up to 3.5 (bilinear). */
AVX2 static void avx2_rows(const struct resize_axis *axis, const uint8_t *const source[RESIZE_ROWS_AT_ONCE],
                           uint8_t *const out[RESIZE_ROWS_AT_ONCE]) {
        if (axis->n_taps == 4)
                rows_of(axis, source, out, 4);
        else if (axis->n_taps == 8)
                rows_of(axis, source, out, 8);
        else
                rows_of(axis, source, out, axis->n_taps);
}

/* ---- along y ------------------------------------------------------------------------------------------------- */

#define BLOCK 32u /* columns at once */

AVX2 static inline __m256i finish_column(__m256i high, __m256i low) {
        return _mm256_srai_epi32(_mm256_add_epi32(low, _mm256_slli_epi32(high, RESIZE_SPLIT)), RESIZE_PRECISION);
}

/* Two rows at a time: their bytes interleaved, widened to words, each pair multiplied by its pair of weights. */
AVX2 static inline void column_block(const int16_t *split, uint32_t count, const uint8_t *const *rows, size_t x,
                                     uint8_t *out) {
        const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(RESIZE_HALF);
        __m256i high[4] = {}, low[4] = { half, half, half, half };

        for (uint32_t i = 0; i < count; i += 2) {
                const uint8_t *row_b = rows[i + 1 < count ? i + 1 : i]; /* the padding tap weighs nothing */
                __m256i a = _mm256_loadu_si256((const __m256i *)(rows[i] + x));
                __m256i b = _mm256_loadu_si256((const __m256i *)(row_b + x));
                __m256i first = _mm256_unpacklo_epi8(a, b), second = _mm256_unpackhi_epi8(a, b);
                __m256i pairs[4] = {
                        _mm256_unpacklo_epi8(first, zero),
                        _mm256_unpackhi_epi8(first, zero),
                        _mm256_unpacklo_epi8(second, zero),
                        _mm256_unpackhi_epi8(second, zero),
                };
                const int16_t *weights = split + (size_t)(i & ~3u) * 2 + (i & 3u);
                int32_t pair_high, pair_low;

                memcpy(&pair_high, weights, 4);
                memcpy(&pair_low, weights + 4, 4);
                for (int k = 0; k < 4; k++) {
                        high[k] = _mm256_add_epi32(high[k], _mm256_madd_epi16(pairs[k], _mm256_set1_epi32(pair_high)));
                        low[k] = _mm256_add_epi32(low[k], _mm256_madd_epi16(pairs[k], _mm256_set1_epi32(pair_low)));
                }
        }

        __m256i words_0 = _mm256_packs_epi32(finish_column(high[0], low[0]), finish_column(high[1], low[1]));
        __m256i words_1 = _mm256_packs_epi32(finish_column(high[2], low[2]), finish_column(high[3], low[3]));
        _mm256_storeu_si256((__m256i *)(out + x), _mm256_packus_epi16(words_0, words_1));
}

AVX2 static void avx2_column(const struct resize_axis *axis, uint32_t idx_output, const uint8_t *const *rows,
                             uint8_t *out, size_t n_bytes) {
        const int16_t *split = axis->split + (size_t)idx_output * axis->n_taps * 2;
        uint32_t count = axis->count[idx_output];

        if (n_bytes < BLOCK) {
                resize_column_scalar(axis, idx_output, rows, out, n_bytes);
                return;
        }
        for (size_t x = 0; x + BLOCK <= n_bytes; x += BLOCK)
                column_block(split, count, rows, x, out);
        if (n_bytes % BLOCK) /* once more over the end: the same values, and nothing past the row */
                column_block(split, count, rows, n_bytes - BLOCK, out);
}

static const struct resize_kernels KERNELS = { .name = "avx2", .rows = avx2_rows, .column = avx2_column };

const struct resize_kernels *resize_kernels_avx2(void) {
        return __builtin_cpu_supports("avx2") ? &KERNELS : NULL;
}

#else

const struct resize_kernels *resize_kernels_avx2(void) {
        return NULL;
}

#endif
