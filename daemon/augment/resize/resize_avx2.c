/* augment/resize/resize_avx2.c: the loops with AVX2: two taps an instruction, two rows a register along x.
 *
 * All sums are exact, so the bits are those of the scalar form: resize_kernels.h says why. Chosen at run time; other
 * machines compile the last lines only. */
#include "daemon/augment/resize/resize_kernels.h"

#include "daemon/base/box.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE AVX2 static inline __attribute__((always_inline))

/* Two parts of a coefficient, of two neighbouring taps, for every pixel of a register. */
INLINE __m256i load_pair(const int16_t *pair) {
        int32_t both;

        memcpy(&both, pair, 4);
        return _mm256_set1_epi32(both);
}

/* ---- along x ------------------------------------------------------------------------------------------------- */

/* 16 bytes of each of two rows: lane 0 is of row a, lane 1 of row b. */
INLINE __m256i load_rows(const uint8_t *a, const uint8_t *b) {
        return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a)),
                                       _mm_loadu_si128((const __m128i *)b), 1);
}

/* Pixels 0 and 1 of a lane, as words R0 R1 G0 G1 B0 B1 0 0. */
INLINE __m256i first_pair(__m256i bytes) {
        return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1,
                                                                                    5, -1, -1, -1, -1, -1)));
}

/* Pixels 2 and 3. */
INLINE __m256i second_pair(__m256i bytes) {
        return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1,
                                                                                    11, -1, -1, -1, -1, -1)));
}

/* Sums for one pixel, in four rows, in units of 1/128: dwords R G B 0. */
struct sums {
        __m256i rows[2]; /* rows 0 and 1, rows 2 and 3 */
};

INLINE struct sums sum_pixel(const uint8_t *const source[4], size_t from, const int16_t *split, uint32_t n_taps) {
        __m256i high[2] = {}, low[2] = {};

        for (uint32_t i = 0; i < n_taps; i += 4, from += 4 * PIXEL_BYTES, split += 8) {
                for (int k = 0; k < 2; k++) {
                        __m256i bytes = load_rows(source[2 * k] + from, source[2 * k + 1] + from);
                        __m256i pixels = first_pair(bytes);

                        high[k] = _mm256_add_epi32(high[k], _mm256_madd_epi16(pixels, load_pair(split)));
                        low[k] = _mm256_add_epi32(low[k], _mm256_madd_epi16(pixels, load_pair(split + 2)));
                        if (i + 2 >= n_taps)
                                continue;
                        pixels = second_pair(bytes);
                        high[k] = _mm256_add_epi32(high[k], _mm256_madd_epi16(pixels, load_pair(split + 4)));
                        low[k] = _mm256_add_epi32(low[k], _mm256_madd_epi16(pixels, load_pair(split + 6)));
                }
        }
        return (struct sums){ {
                _mm256_add_epi32(high[0], _mm256_srai_epi32(low[0], RESIZE_SPLIT)),
                _mm256_add_epi32(high[1], _mm256_srai_epi32(low[1], RESIZE_SPLIT)),
        } };
}

INLINE __m256i round_words(__m256i a, __m256i b) {
        return _mm256_mulhrs_epi16(_mm256_packs_epi32(a, b), _mm256_set1_epi16(RESIZE_ROUND));
}

/* Writes four pixels of two rows, without the gap after each pixel. Writes 16 bytes of which 12 are used: the next
 * pixels overwrite the rest, or the rest is in the slack. */
INLINE void store_rows(__m256i words_01, __m256i words_23, uint8_t *a, uint8_t *b) {
        const __m256i close_up = _mm256_broadcastsi128_si256(
                _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
        __m256i bytes = _mm256_shuffle_epi8(_mm256_packus_epi16(words_01, words_23), close_up);

        _mm_storeu_si128((__m128i *)a, _mm256_castsi256_si128(bytes));
        _mm_storeu_si128((__m128i *)b, _mm256_extracti128_si256(bytes, 1));
}

INLINE void rows_of(const struct resize_axis *axis, const uint8_t *const source[4], uint8_t *const out[4],
                    uint32_t n_taps) {
        /* Copies, because otherwise the compiler would load them again after each store of pixels. */
        const uint8_t *const from[4] = { source[0], source[1], source[2], source[3] };
        uint8_t *const to[4] = { out[0], out[1], out[2], out[3] };
        const uint32_t *first = axis->first, *end = first + axis->n_outputs;
        const size_t n_split = (size_t)n_taps * 2;
        const int16_t *split = axis->split;

        for (size_t x = 0; first < end; first += 4, split += 4 * n_split, x += 4 * PIXEL_BYTES) {
                __m256i words[2][2];

                for (uint32_t i = 0; i < 2; i++) {
                        struct sums a = sum_pixel(from, (size_t)first[2 * i] * PIXEL_BYTES, split + 2 * i * n_split,
                                                  n_taps);
                        struct sums b = sum_pixel(from, (size_t)first[2 * i + 1] * PIXEL_BYTES,
                                                  split + (2 * i + 1) * n_split, n_taps);

                        words[0][i] = round_words(a.rows[0], b.rows[0]);
                        words[1][i] = round_words(a.rows[1], b.rows[1]);
                }
                store_rows(words[0][0], words[0][1], to[0] + x, to[1] + x);
                store_rows(words[1][0], words[1][1], to[2] + x, to[3] + x);
        }
}

/* The usual numbers of taps are unrolled. With the bilinear filter: 2 for enlarging, 4 up to a scale of 2, 6 up to
 * 3. */
AVX2 static void avx2_rows(const struct resize_axis *axis, const uint8_t *const source[RESIZE_ROWS_AT_ONCE],
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

#define BLOCK 32u /* columns at once */

INLINE __m256i column_sum(__m256i high, __m256i low) {
        return _mm256_add_epi32(high, _mm256_srai_epi32(low, RESIZE_SPLIT));
}

/* Two rows at a time: their bytes interleaved, widened to words, each pair multiplied by its pair of weights. */
INLINE void column_block(const int16_t *split, uint32_t count, const uint8_t *const *rows, size_t x, uint8_t *out) {
        const __m256i zero = _mm256_setzero_si256();
        __m256i high[4] = {}, low[4] = {};

        for (uint32_t i = 0; i < count; i += 2, split += 4) {
                const uint8_t *row_b = rows[i + 1 < count ? i + 1 : i]; /* the padding tap has weight 0 */
                __m256i a = _mm256_loadu_si256((const __m256i *)(rows[i] + x));
                __m256i b = _mm256_loadu_si256((const __m256i *)(row_b + x));
                __m256i first = _mm256_unpacklo_epi8(a, b), second = _mm256_unpackhi_epi8(a, b);
                __m256i pairs[4] = {
                        _mm256_unpacklo_epi8(first, zero),
                        _mm256_unpackhi_epi8(first, zero),
                        _mm256_unpacklo_epi8(second, zero),
                        _mm256_unpackhi_epi8(second, zero),
                };

                for (int k = 0; k < 4; k++) {
                        high[k] = _mm256_add_epi32(high[k], _mm256_madd_epi16(pairs[k], load_pair(split)));
                        low[k] = _mm256_add_epi32(low[k], _mm256_madd_epi16(pairs[k], load_pair(split + 2)));
                }
        }

        __m256i words_0 = round_words(column_sum(high[0], low[0]), column_sum(high[1], low[1]));
        __m256i words_1 = round_words(column_sum(high[2], low[2]), column_sum(high[3], low[3]));
        _mm256_storeu_si256((__m256i *)(out + x), _mm256_packus_epi16(words_0, words_1));
}

INLINE void column_of(const int16_t *split, uint32_t count, const uint8_t *const *rows, uint8_t *out, size_t n_bytes) {
        for (size_t x = 0; x + BLOCK <= n_bytes; x += BLOCK)
                column_block(split, count, rows, x, out);
        if (n_bytes % BLOCK) /* again for the last block, overlapping: the same values, and no byte past the row */
                column_block(split, count, rows, n_bytes - BLOCK, out);
}

/* Unrolled as along x. */
AVX2 static void avx2_column(const struct resize_axis *axis, uint32_t idx_output, const uint8_t *const *rows,
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

static const struct resize_kernels KERNELS = { .rows = avx2_rows, .column = avx2_column };

const struct resize_kernels *resize_kernels_avx2(void) {
        return __builtin_cpu_supports("avx2") ? &KERNELS : NULL;
}

#else

const struct resize_kernels *resize_kernels_avx2(void) {
        return NULL;
}

#endif
