/* augment/operations/jpeg/block_avx2.c: jpeg_pixels_block.c for two blocks at once, one in each half of a register, in numbers of 16
 * bits: the same sums of the same products, whose pairs one instruction makes. Nothing overflows: samples are 8 bits,
 * so coefficients have at most 14 with their factor of 8, and on the way back the first pass makes at most 4,096 plus
 * 5,442 by what was rounded away. */
#include "daemon/augment/operations/jpeg/jpeg_pixels_block.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdbool.h>

#define INLINE __attribute__((target("avx2"), always_inline)) static inline
#define AVX2   __attribute__((target("avx2"))) static

#define DIGITS      13
#define KEPT_DIGITS 2

/* Rows of two blocks. */
struct two_blocks {
        __m256i rows[BLOCK_SIDE];
};

/* Sums of products, of 32 bits: those of columns 0 to 3, and 4 to 7. */
struct sums {
        __m256i low, high;
};

INLINE __m256i pair(int first, int second) {
        return _mm256_set1_epi32((int32_t)((uint32_t)(uint16_t)first | (uint32_t)(uint16_t)second << 16));
}

/* a * by_a + b * by_b */
INLINE struct sums products(__m256i a, __m256i b, int by_a, int by_b) {
        __m256i factors = pair(by_a, by_b);

        return (struct sums){ _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), factors),
                              _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), factors) };
}

INLINE struct sums add(struct sums a, struct sums b) {
        return (struct sums){ _mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high) };
}

INLINE struct sums subtract(struct sums a, struct sums b) {
        return (struct sums){ _mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high) };
}

INLINE __m256i rounded(struct sums sums, int digits) {
        __m256i half = _mm256_set1_epi32(1 << (digits - 1));

        return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(sums.low, half), digits),
                                  _mm256_srai_epi32(_mm256_add_epi32(sums.high, half), digits));
}

/* The four odd outputs of a transform, and of its inverse: jpeg_pixels_block.c's products, added up for each input. */
struct odd {
        struct sums d0, d1, d2, d3; /* those to which jpeg_pixels_block.c adds d0, d1, d2 and d3 once more */
};

INLINE struct odd odd_of(__m256i d0, __m256i d1, __m256i d2, __m256i d3) {
        return (struct odd){
                .d0 = add(products(d0, d1, -11363, 9633), products(d2, d3, -6436, 2260)),
                .d1 = add(products(d0, d1, 9633, 2261), products(d2, d3, -11362, 6437)),
                .d2 = add(products(d0, d1, -6436, -11362), products(d2, d3, -2259, 9633)),
                .d3 = add(products(d0, d1, 2260, 6437), products(d2, d3, 9633, 11363)),
        };
}

INLINE void transform_columns(struct two_blocks *blocks, bool is_second) {
        int digits = is_second ? DIGITS + KEPT_DIGITS : DIGITS - KEPT_DIGITS;
        __m256i *v = blocks->rows, half = _mm256_set1_epi16(1 << (KEPT_DIGITS - 1));
        __m256i s0 = _mm256_add_epi16(v[0], v[7]), s1 = _mm256_add_epi16(v[1], v[6]), s2 = _mm256_add_epi16(v[2], v[5]),
                s3 = _mm256_add_epi16(v[3], v[4]);
        struct odd odd = odd_of(_mm256_sub_epi16(v[3], v[4]), _mm256_sub_epi16(v[2], v[5]),
                                _mm256_sub_epi16(v[1], v[6]), _mm256_sub_epi16(v[0], v[7]));
        __m256i e0 = _mm256_add_epi16(s0, s3), e1 = _mm256_add_epi16(s1, s2), e2 = _mm256_sub_epi16(s1, s2),
                e3 = _mm256_sub_epi16(s0, s3);
        __m256i sum = _mm256_add_epi16(e0, e1), difference = _mm256_sub_epi16(e0, e1);

        v[0] = is_second ? _mm256_srai_epi16(_mm256_add_epi16(sum, half), KEPT_DIGITS)
                         : _mm256_slli_epi16(sum, KEPT_DIGITS);
        v[4] = is_second ? _mm256_srai_epi16(_mm256_add_epi16(difference, half), KEPT_DIGITS)
                         : _mm256_slli_epi16(difference, KEPT_DIGITS);
        v[2] = rounded(products(e2, e3, 4433, 10703), digits);
        v[6] = rounded(products(e2, e3, -10704, 4433), digits);
        v[7] = rounded(odd.d0, digits);
        v[5] = rounded(odd.d1, digits);
        v[3] = rounded(odd.d2, digits);
        v[1] = rounded(odd.d3, digits);
}

/* Times 2^13, of 32 bits. */
INLINE struct sums widened(__m256i a) {
        const __m256i zero = _mm256_setzero_si256();

        return (struct sums){ _mm256_srai_epi32(_mm256_unpacklo_epi16(zero, a), 16 - DIGITS),
                              _mm256_srai_epi32(_mm256_unpackhi_epi16(zero, a), 16 - DIGITS) };
}

INLINE void transform_columns_back(struct two_blocks *blocks, bool is_second) {
        int digits = is_second ? DIGITS + KEPT_DIGITS + 3 : DIGITS - KEPT_DIGITS;
        __m256i *v = blocks->rows;
        struct sums low = products(v[2], v[6], 4433, -10704), high = products(v[2], v[6], 10703, 4433);
        struct sums sum = widened(_mm256_add_epi16(v[0], v[4])), difference = widened(_mm256_sub_epi16(v[0], v[4]));
        struct sums e0 = add(sum, high), e1 = add(difference, low), e2 = subtract(difference, low),
                    e3 = subtract(sum, high);
        struct odd odd = odd_of(v[7], v[5], v[3], v[1]);

        v[0] = rounded(add(e0, odd.d3), digits);
        v[1] = rounded(add(e1, odd.d2), digits);
        v[2] = rounded(add(e2, odd.d1), digits);
        v[3] = rounded(add(e3, odd.d0), digits);
        v[4] = rounded(subtract(e3, odd.d0), digits);
        v[5] = rounded(subtract(e2, odd.d1), digits);
        v[6] = rounded(subtract(e1, odd.d2), digits);
        v[7] = rounded(subtract(e0, odd.d3), digits);
}

/* Each block by itself: pairs of numbers, of pairs, and of fours change places. */
INLINE void transpose(struct two_blocks *blocks) {
        __m256i *v = blocks->rows, a[BLOCK_SIDE], b[BLOCK_SIDE];

        for (unsigned i = 0; i < 4; i++) {
                a[2 * i] = _mm256_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
                a[2 * i + 1] = _mm256_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
        }
        for (unsigned i = 0; i < 2; i++)
                for (unsigned k = 0; k < 2; k++) {
                        b[4 * i + 2 * k] = _mm256_unpacklo_epi32(a[4 * i + k], a[4 * i + 2 + k]);
                        b[4 * i + 2 * k + 1] = _mm256_unpackhi_epi32(a[4 * i + k], a[4 * i + 2 + k]);
                }
        for (unsigned i = 0; i < 4; i++) {
                v[2 * i] = _mm256_unpacklo_epi64(b[i], b[4 + i]);
                v[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[4 + i]);
        }
}

INLINE __m256i both(const uint16_t *numbers) {
        return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)numbers));
}

/* The division is a multiplication and a shift by 16 digits and more. */
INLINE void through_file(const struct quantizer *quantizer, struct two_blocks *blocks) {
        for (unsigned y = 0; y < BLOCK_SIDE; y++) {
                __m256i divisor = both(quantizer->divisors + y * BLOCK_SIDE), value = blocks->rows[y], n;

                n = _mm256_add_epi16(_mm256_abs_epi16(value), _mm256_slli_epi16(divisor, 2));
                n = _mm256_mulhi_epu16(n, both(quantizer->reciprocals + y * BLOCK_SIDE));
                n = _mm256_mulhi_epu16(n, both(quantizer->shifts + y * BLOCK_SIDE));
                blocks->rows[y] = _mm256_sign_epi16(_mm256_mullo_epi16(n, divisor), value);
        }
}

AVX2 void two_through_jpeg(const struct quantizer *quantizer, uint8_t *samples, size_t stride) {
        const __m256i middle = _mm256_set1_epi16(128);
        struct two_blocks blocks;

        for (unsigned y = 0; y < BLOCK_SIDE; y++) {
                __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(samples + y * stride));

                blocks.rows[y] = _mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), middle);
        }
        transpose(&blocks);
        transform_columns(&blocks, false);
        transpose(&blocks);
        transform_columns(&blocks, true);
        through_file(quantizer, &blocks);
        transform_columns_back(&blocks, false);
        transpose(&blocks);
        transform_columns_back(&blocks, true);
        transpose(&blocks);
        for (unsigned y = 0; y < BLOCK_SIDE; y++) {
                __m256i levels = _mm256_add_epi16(blocks.rows[y], middle);
                __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(levels, levels), 0x08);

                _mm_storeu_si128((__m128i *)(void *)(samples + y * stride), _mm256_castsi256_si128(bytes));
        }
}

uint32_t blocks_through_jpeg_avx2(const struct quantizer *quantizer, uint8_t *samples, size_t stride, uint32_t n) {
        uint32_t i = 0;

        for (; __builtin_cpu_supports("avx2") && i + 2 <= n; i += 2)
                two_through_jpeg(quantizer, samples + (size_t)i * BLOCK_SIDE, stride);
        return i;
}

#else

uint32_t blocks_through_jpeg_avx2(const struct quantizer *quantizer, uint8_t *samples, size_t stride, uint32_t n) {
        return 0;
}

#endif
