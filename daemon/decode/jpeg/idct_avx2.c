/* decode/jpeg/idct_avx2.c: two blocks of coefficients -> samples, with AVX2: the left block in the lower half of each
 * register, the right one in the upper.
 *
 * The transform multiplies its inputs in pairs, and an instruction multiplies and adds two neighbouring words. Along
 * the columns the pairs come from unpacking two rows. Along the rows they are already neighbours, because columns that
 * belong together are stored side by side (baseline_place): only one stage of the transposition between the two passes
 * is left, and the second pass unpacks nothing. */
#include "daemon/decode/jpeg/jpeg_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE AVX2 static inline __attribute__((always_inline))

#define ROUND_COLUMNS 11 /* bits that the passes shift out */
#define ROUND_ROWS    18

/* Each double word of v is two words; the first is multiplied by a, the second by b, and added. */
INLINE __m256i dot(__m256i v, int a, int b) {
        return _mm256_madd_epi16(v, _mm256_set1_epi32((int)((uint32_t)(a & 0xffff) | (uint32_t)b << 16)));
}

/* Eight 32-bit sums, four of each block: rows 0 to 7 of four columns, or columns 0 to 7 of four rows. */
struct eight {
        __m256i sum[8];
};

/* ---- the transform (kernels_scalar.c has it in plain words) -------------------------------------------------- */

/* Even and odd parts -> the eight sums, shifted. */
INLINE struct eight butterfly(const __m256i even[4], const __m256i odd[4], int shift) {
        struct eight out;

        for (int i = 0; i < 4; i++) {
                out.sum[i] = _mm256_srai_epi32(_mm256_add_epi32(even[i], odd[i]), shift);
                out.sum[7 - i] = _mm256_srai_epi32(_mm256_sub_epi32(even[i], odd[i]), shift);
        }
        return out;
}

/* sum and difference of inputs 0 and 4, times 2^13 and with a half for rounding; the other inputs in pairs. */
INLINE struct eight transform(__m256i sum, __m256i difference, __m256i in_26, __m256i in_71, __m256i in_35, int shift) {
        const __m256i slow = dot(in_26, 10703, 4433), fast = dot(in_26, 4433, -10704);
        const __m256i wrapped = _mm256_add_epi16(in_71, in_35); /* 7 + 3, 1 + 5 */
        const __m256i common_02 = dot(wrapped, -6436, 9633), common_13 = dot(wrapped, 9633, 6437);
        const __m256i even[4] = {
                _mm256_add_epi32(sum, slow),
                _mm256_add_epi32(difference, fast),
                _mm256_sub_epi32(difference, fast),
                _mm256_sub_epi32(sum, slow),
        };
        const __m256i odd[4] = {
                _mm256_add_epi32(dot(in_71, -7373, 4926), common_13),
                _mm256_add_epi32(dot(in_35, 4177, -20995), common_02),
                _mm256_add_epi32(dot(in_35, -20995, -4176), common_13),
                _mm256_add_epi32(dot(in_71, -4927, -7373), common_02),
        };

        return butterfly(even, odd, shift);
}

/* The same if inputs 4 to 7 are zero: fewer products, and no sum that could wrap. */
INLINE struct eight transform_sparse(__m256i in_02, __m256i in_13, int shift) {
        const __m256i sum = _mm256_add_epi32(dot(in_02, 8192, 0), _mm256_set1_epi32(1 << (shift - 1)));
        const __m256i slow = dot(in_02, 0, 10703), fast = dot(in_02, 0, 4433);
        const __m256i even[4] = {
                _mm256_add_epi32(sum, slow),
                _mm256_add_epi32(sum, fast),
                _mm256_sub_epi32(sum, fast),
                _mm256_sub_epi32(sum, slow),
        };
        const __m256i odd[4] = {
                dot(in_13, 11363, 9633),
                dot(in_13, 9633, -2259),
                dot(in_13, 6437, -11362),
                dot(in_13, 2260, -6436),
        };

        return butterfly(even, odd, shift);
}

/* ---- between the passes -------------------------------------------------------------------------------------- */

/* Two pairs of columns in the eight rows; [0] is rows 0 to 3, [1] rows 4 to 7. */
struct columns {
        __m256i first[2], second[2];
};

INLINE __m256i pick(__m256i a, __m256i b, const int which) {
        __m256 floats_a = _mm256_castsi256_ps(a), floats_b = _mm256_castsi256_ps(b);

        return _mm256_castps_si256(which ? _mm256_shuffle_ps(floats_a, floats_b, _MM_SHUFFLE(3, 1, 3, 1))
                                         : _mm256_shuffle_ps(floats_a, floats_b, _MM_SHUFFLE(2, 0, 2, 0)));
}

/* Rows of four columns, i.e. of two pairs -> each pair by itself, row after row; to 16 bits with saturation. */
INLINE struct columns transpose(const struct eight *rows) {
        struct columns columns;

        for (int half = 0; half < 2; half++) {
                const __m256i *sum = rows->sum + 4 * half;
                __m256i rows_01 = _mm256_packs_epi32(sum[0], sum[1]), rows_23 = _mm256_packs_epi32(sum[2], sum[3]);

                columns.first[half] = pick(rows_01, rows_23, 0);
                columns.second[half] = pick(rows_01, rows_23, 1);
        }
        return columns;
}

/* ---- storing the samples ------------------------------------------------------------------------------------- */

/* Two rows of samples of either block. */
struct samples {
        __m256i rows_01, rows_23, rows_45, rows_67;
};

struct place {
        uint8_t *left, *right;
        size_t stride;
};

/* The lower and the upper eight bytes. */
INLINE void store_rows(uint8_t *out, size_t stride, __m128i rows) {
        _mm_storel_epi64((__m128i *)out, rows);
        _mm_storeh_pi((__m64 *)(out + stride), _mm_castsi128_ps(rows));
}

INLINE void store_apart(__m256i rows, const struct place *place, size_t y) {
        store_rows(place->left + y * place->stride, place->stride, _mm256_castsi256_si128(rows));
        store_rows(place->right + y * place->stride, place->stride, _mm256_extracti128_si256(rows, 1));
}

/* If the blocks are neighbours in the picture, as all pairs of luma are: half the stores. */
INLINE void store_beside(__m256i rows, const struct place *place, size_t y) {
        __m256i whole = _mm256_permute4x64_epi64(rows, _MM_SHUFFLE(3, 1, 2, 0));
        uint8_t *out = place->left + y * place->stride;

        _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(whole));
        _mm_storeu_si128((__m128i *)(out + place->stride), _mm256_extracti128_si256(whole, 1));
}

INLINE void store(const struct samples *samples, const struct place *place) {
        if (place->right == place->left + 8) {
                store_beside(samples->rows_01, place, 0);
                store_beside(samples->rows_23, place, 2);
                store_beside(samples->rows_45, place, 4);
                store_beside(samples->rows_67, place, 6);
        } else {
                store_apart(samples->rows_01, place, 0);
                store_apart(samples->rows_23, place, 2);
                store_apart(samples->rows_45, place, 4);
                store_apart(samples->rows_67, place, 6);
        }
}

/* Eight columns of four rows -> two rows and two rows. */
INLINE void to_samples(const struct eight *columns, __m256i *ret_01, __m256i *ret_23) {
        const __m256i centre = _mm256_set1_epi8(-128);
        const __m256i by_row = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5,
                                                9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        __m256i half[2]; /* columns 0 to 3 and 4 to 7: a row's four bytes together */

        for (int i = 0; i < 2; i++) {
                const __m256i *sum = columns->sum + 4 * i;
                __m256i words_01 = _mm256_packs_epi32(sum[0], sum[1]), words_23 = _mm256_packs_epi32(sum[2], sum[3]);
                __m256i bytes = _mm256_packs_epi16(words_01, words_23);

                half[i] = _mm256_shuffle_epi8(_mm256_xor_si256(bytes, centre), by_row);
        }
        *ret_01 = _mm256_unpacklo_epi32(half[0], half[1]);
        *ret_23 = _mm256_unpackhi_epi32(half[0], half[1]);
}

/* ---- the transform of any block ------------------------------------------------------------------------------ */

/* Words -> double words, times 2^13. `low` is the word below each of them, shifted by the same amount. */
INLINE __m256i scale_lower(__m256i words, __m256i low) {
        return _mm256_srai_epi32(_mm256_unpacklo_epi16(low, words), 3);
}

INLINE __m256i scale_upper(__m256i words, __m256i low) {
        return _mm256_srai_epi32(_mm256_unpackhi_epi16(low, words), 3);
}

/* Along the columns: of each row columns 0, 4, 2, 6, then 7, 1, 3, 5. */
INLINE void dense_columns(const __m256i row[8], struct columns *ret_0426, struct columns *ret_7135) {
        const __m256i half = _mm256_set1_epi16(1 << (ROUND_COLUMNS - 1 + 3));
        const __m256i sum = _mm256_add_epi16(row[0], row[4]), difference = _mm256_sub_epi16(row[0], row[4]);
        struct eight rows;

        rows = transform(scale_lower(sum, half), scale_lower(difference, half), _mm256_unpacklo_epi16(row[2], row[6]),
                         _mm256_unpacklo_epi16(row[7], row[1]), _mm256_unpacklo_epi16(row[3], row[5]), ROUND_COLUMNS);
        *ret_0426 = transpose(&rows);
        rows = transform(scale_upper(sum, half), scale_upper(difference, half), _mm256_unpackhi_epi16(row[2], row[6]),
                         _mm256_unpackhi_epi16(row[7], row[1]), _mm256_unpackhi_epi16(row[3], row[5]), ROUND_COLUMNS);
        *ret_7135 = transpose(&rows);
}

/* Along four rows. Inputs 0 and 4 are words of one double word here; their sum keeps 16 bits, so it is made in the
 * upper half of 32. */
INLINE struct eight dense_rows(__m256i in_04, __m256i in_26, __m256i in_71, __m256i in_35) {
        const __m256i half = _mm256_set1_epi32(1 << (ROUND_ROWS - 1));
        const __m256i in_0 = _mm256_slli_epi32(in_04, 16);
        const __m256i in_4 = _mm256_blend_epi16(in_04, _mm256_setzero_si256(), 0x55);
        const __m256i sum = _mm256_srai_epi32(_mm256_add_epi32(in_0, in_4), 3);
        const __m256i difference = _mm256_srai_epi32(_mm256_sub_epi32(in_0, in_4), 3);

        return transform(_mm256_add_epi32(sum, half), _mm256_add_epi32(difference, half), in_26, in_71, in_35,
                         ROUND_ROWS);
}

INLINE struct samples idct_dense(const __m256i row[8]) {
        struct columns in_0426, in_7135;
        struct samples samples;
        struct eight sums;

        dense_columns(row, &in_0426, &in_7135);
        sums = dense_rows(in_0426.first[0], in_0426.second[0], in_7135.first[0], in_7135.second[0]);
        to_samples(&sums, &samples.rows_01, &samples.rows_23);
        sums = dense_rows(in_0426.first[1], in_0426.second[1], in_7135.first[1], in_7135.second[1]);
        to_samples(&sums, &samples.rows_45, &samples.rows_67);
        return samples;
}

/* ---- only the first four by four coefficients ---------------------------------------------------------------- */

#define LAST_OF_CORNER 9 /* in zigzag order nothing up to here lies outside */

/* Two rows -> pairs of them, column after column: 0, 2, 1, 3. */
INLINE __m256i corner_pairs(__m256i a, __m256i b) {
        const __m256i first = _mm256_setr_epi8(0, 1, -1, -1, 4, 5, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1, 0, 1, -1, -1,
                                               4, 5, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1);
        const __m256i second = _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 4, 5, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1, 0,
                                                1, -1, -1, 4, 5, -1, -1, 10, 11, -1, -1, 12, 13);

        return _mm256_or_si256(_mm256_shuffle_epi8(a, first), _mm256_shuffle_epi8(b, second));
}

INLINE struct samples idct_corner(const __m256i row[4]) {
        struct eight sums = transform_sparse(corner_pairs(row[0], row[2]), corner_pairs(row[1], row[3]), ROUND_COLUMNS);
        struct columns in = transpose(&sums);
        struct samples samples;

        sums = transform_sparse(in.first[0], in.second[0], ROUND_ROWS);
        to_samples(&sums, &samples.rows_01, &samples.rows_23);
        sums = transform_sparse(in.first[1], in.second[1], ROUND_ROWS);
        to_samples(&sums, &samples.rows_45, &samples.rows_67);
        return samples;
}

/* ---- only the mean ------------------------------------------------------------------------------------------- */

/* Same result as the general path: times 4 in 16 bits, then (x * 2^13 + 2^17) >> 18. */
INLINE __m128i idct_mean(int mean, int step) {
        int16_t scaled = (int16_t)(uint16_t)(mean * step * 4);
        __m128i words = _mm_set1_epi16((short)((scaled + 16) >> 5));

        return _mm_xor_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(-128));
}

INLINE struct samples idct_means(const int16_t *pair, const int16_t *steps) {
        __m128i left = idct_mean(pair[0], steps[0]);
        __m128i right = idct_mean(pair[BASELINE_RIGHT_BLOCK], steps[BASELINE_RIGHT_BLOCK]);
        __m256i both = _mm256_set_m128i(right, left);

        return (struct samples){ both, both, both, both };
}

/* ---- choosing a transform ------------------------------------------------------------------------------------ */

/* Coefficients times steps; the coefficients are zero afterwards. */
INLINE void take_rows(int16_t *pair, const int16_t *steps, int n_rows, __m256i *ret_row) {
        __m256i *from = (__m256i *)pair;
        const __m256i *factor = (const __m256i *)steps;

        for (int i = 0; i < n_rows; i++) {
                ret_row[i] = _mm256_mullo_epi16(_mm256_load_si256(from + i), _mm256_load_si256(factor + i));
                _mm256_store_si256(from + i, _mm256_setzero_si256());
        }
}

/* Is a number of the first row beyond 13 bits? Only then does it matter whether a block has other rows. */
INLINE bool first_row_is_wild(const int16_t *pair, const int16_t *steps) {
        __m256i row = _mm256_mullo_epi16(_mm256_load_si256((const __m256i *)pair),
                                         _mm256_load_si256((const __m256i *)steps));

        return !_mm256_testz_si256(_mm256_add_epi16(row, _mm256_set1_epi16(1 << 13)),
                                   _mm256_set1_epi16((short)(3u << 14)));
}

AVX2 void baseline_idct_pair_avx2(int16_t *pair, const int16_t *steps, int last, uint8_t *left, uint8_t *right,
                                  size_t stride) {
        const struct place place = { left, right, stride };
        struct samples samples;
        __m256i row[8];

        if (last == 0) {
                samples = idct_means(pair, steps);
                pair[0] = pair[BASELINE_RIGHT_BLOCK] = 0;
        } else if (__builtin_expect(first_row_is_wild(pair, steps), 0)) {
                baseline_idct_pair_scalar(pair, steps, last, left, right, stride);
                return;
        } else if (last <= LAST_OF_CORNER) {
                take_rows(pair, steps, 4, row);
                samples = idct_corner(row);
        } else {
                take_rows(pair, steps, 8, row);
                samples = idct_dense(row);
        }
        store(&samples, &place);
}

#endif
