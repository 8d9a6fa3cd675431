/* augment/operations/jpeg/jpeg_pixels_block.c: the transforms of Loeffler, Ligtenberg and Moschytz ("Practical fast 1-D DCT algorithms
 * with 11 multiplications", 1989), in whole numbers of 13 binary digits, with two digits kept between the passes, as
 * libjpeg does them. */
#include "daemon/augment/operations/jpeg/jpeg_pixels_block.h"
#include "daemon/augment/operations/wide.h"

#include <stdbool.h>

#define DIGITS      13
#define KEPT_DIGITS 2

#define DIVIDED_MAX (8192u + 4 * 255) /* a coefficient, and half of what it is divided by */

/* Factors of 2^13. */
enum {
        F_0_298 = 2446,
        F_0_390 = 3196,
        F_0_541 = 4433,
        F_0_765 = 6270,
        F_0_899 = 7373,
        F_1_175 = 9633,
        F_1_501 = 12299,
        F_1_847 = 15137,
        F_1_961 = 16069,
        F_2_053 = 16819,
        F_2_562 = 20995,
        F_3_072 = 25172,
};

static const uint8_t LUMA[] = {
        16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
        69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
        81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99,
};

static const uint8_t CHROMA[] = {
        17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
        99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
};

/* With m = 2^(16 + s) / d, rounded up, n * m / 2^(16 + s) exceeds n / d by less than n / 2^(16 + s). If that is at most
 * 1 / d, no whole number lies between the two: n * d is at most 2^(16 + s). Such an s is 1 to 9, and m is below 2^15.
 */
static void set_reciprocal(struct quantizer *quantizer, unsigned i) {
        uint32_t d = 8u * quantizer->divisors[i], s = 1;

        while ((uint64_t)DIVIDED_MAX * d > 1ull << (16 + s))
                s++;
        quantizer->reciprocals[i] = (uint16_t)(((1ull << (16 + s)) + d - 1) / d);
        quantizer->shifts[i] = (uint16_t)(1u << (16 - s));
}

void quantizer_init(struct quantizer *quantizer, int quality, int is_chroma) {
        int percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;

        for (int i = 0; i < 64; i++) {
                int divisor = ((is_chroma ? CHROMA : LUMA)[i] * percent + 50) / 100;

                quantizer->divisors[i] = (uint16_t)(divisor < 1 ? 1 : divisor > 255 ? 255 : divisor);
                set_reciprocal(quantizer, (unsigned)i);
        }
}

static ALWAYS_INLINE int32_t jpeg_pixels_block_rounded(int32_t value, int digits) {
        return (value + (1 << (digits - 1))) >> digits;
}

/* Both transforms work on columns, eight of them alike, and so in vector registers; rows are transposed before and
 * after that. The first pass keeps two digits, the second drops them. */
static ALWAYS_INLINE void jpeg_pixels_block_transform_columns(int32_t *v, bool is_second) {
        int digits = is_second ? DIGITS + KEPT_DIGITS : DIGITS - KEPT_DIGITS;

        for (unsigned x = 0; x < BLOCK_SIDE; x++) {
                int32_t *at = v + x;
                int32_t s0 = at[0] + at[56], s1 = at[8] + at[48], s2 = at[16] + at[40], s3 = at[24] + at[32];
                int32_t d3 = at[0] - at[56], d2 = at[8] - at[48], d1 = at[16] - at[40], d0 = at[24] - at[32];
                int32_t e0 = s0 + s3, e1 = s1 + s2, e2 = s1 - s2, e3 = s0 - s3, z = (e2 + e3) * F_0_541;
                int32_t z4 = (d0 + d1 + d2 + d3) * F_1_175;
                int32_t z0 = (d0 + d3) * -F_0_899, z1 = (d1 + d2) * -F_2_562;
                int32_t z2 = (d0 + d2) * -F_1_961 + z4, z3 = (d1 + d3) * -F_0_390 + z4;

                at[0] = is_second ? jpeg_pixels_block_rounded(e0 + e1, KEPT_DIGITS) : (e0 + e1) * (1 << KEPT_DIGITS);
                at[32] = is_second ? jpeg_pixels_block_rounded(e0 - e1, KEPT_DIGITS) : (e0 - e1) * (1 << KEPT_DIGITS);
                at[16] = jpeg_pixels_block_rounded(z + e3 * F_0_765, digits);
                at[48] = jpeg_pixels_block_rounded(z - e2 * F_1_847, digits);
                at[56] = jpeg_pixels_block_rounded(d0 * F_0_298 + z0 + z2, digits);
                at[40] = jpeg_pixels_block_rounded(d1 * F_2_053 + z1 + z3, digits);
                at[24] = jpeg_pixels_block_rounded(d2 * F_3_072 + z1 + z2, digits);
                at[8] = jpeg_pixels_block_rounded(d3 * F_1_501 + z0 + z3, digits);
        }
}

/* Back; the second pass drops the kept digits and the factor of 8 that both passes of
 * jpeg_pixels_block_transform_columns() make. */
static ALWAYS_INLINE void jpeg_pixels_block_transform_columns_back(int32_t *v, bool is_second) {
        int digits = is_second ? DIGITS + KEPT_DIGITS + 3 : DIGITS - KEPT_DIGITS;

        for (unsigned x = 0; x < BLOCK_SIDE; x++) {
                int32_t *at = v + x;
                int32_t z = (at[16] + at[48]) * F_0_541, low = z - at[48] * F_1_847, high = z + at[16] * F_0_765;
                int32_t sum = (at[0] + at[32]) * (1 << DIGITS), difference = (at[0] - at[32]) * (1 << DIGITS);
                int32_t e0 = sum + high, e1 = difference + low, e2 = difference - low, e3 = sum - high;
                int32_t d0 = at[56], d1 = at[40], d2 = at[24], d3 = at[8], z4 = (d0 + d1 + d2 + d3) * F_1_175;
                int32_t z0 = (d0 + d3) * -F_0_899, z1 = (d1 + d2) * -F_2_562;
                int32_t z2 = (d0 + d2) * -F_1_961 + z4, z3 = (d1 + d3) * -F_0_390 + z4;
                int32_t o3 = d0 * F_0_298 + z0 + z2, o2 = d1 * F_2_053 + z1 + z3;
                int32_t o1 = d2 * F_3_072 + z1 + z2, o0 = d3 * F_1_501 + z0 + z3;

                at[0] = jpeg_pixels_block_rounded(e0 + o0, digits);
                at[8] = jpeg_pixels_block_rounded(e1 + o1, digits);
                at[16] = jpeg_pixels_block_rounded(e2 + o2, digits);
                at[24] = jpeg_pixels_block_rounded(e3 + o3, digits);
                at[32] = jpeg_pixels_block_rounded(e3 - o3, digits);
                at[40] = jpeg_pixels_block_rounded(e2 - o2, digits);
                at[48] = jpeg_pixels_block_rounded(e1 - o1, digits);
                at[56] = jpeg_pixels_block_rounded(e0 - o0, digits);
        }
}

static ALWAYS_INLINE void jpeg_pixels_block_transpose(const int32_t *restrict v, int32_t *restrict ret_transposed) {
        for (unsigned y = 0; y < BLOCK_SIDE; y++)
                for (unsigned x = 0; x < BLOCK_SIDE; x++)
                        ret_transposed[x * BLOCK_SIDE + y] = v[y * BLOCK_SIDE + x];
}

/* Through the file: divided and rounded, half away from zero; the coefficients have a factor of 8. A coefficient has
 * less than 16 binary digits and a divisor 11, so that a quotient of float32 is never rounded up to a whole number. */
static ALWAYS_INLINE void jpeg_pixels_block_through_file(const struct quantizer *quantizer, int32_t *v) {
        for (unsigned i = 0; i < BLOCK_SIDE * BLOCK_SIDE; i++) {
                int32_t divisor = quantizer->divisors[i], size = v[i] < 0 ? -v[i] : v[i];
                int32_t n = (int32_t)((float)(size + divisor * 4) / (float)(divisor * 8)) * divisor;

                v[i] = v[i] < 0 ? -n : n;
        }
}

static ALWAYS_INLINE void block_loop(const struct quantizer *quantizer, uint8_t *samples, size_t stride) {
        int32_t v[BLOCK_SIDE * BLOCK_SIDE], turned[BLOCK_SIDE * BLOCK_SIDE];

        for (unsigned y = 0; y < BLOCK_SIDE; y++)
                for (unsigned x = 0; x < BLOCK_SIDE; x++)
                        v[y * BLOCK_SIDE + x] = samples[y * stride + x] - 128;
        jpeg_pixels_block_transpose(v, turned);
        jpeg_pixels_block_transform_columns(turned, false);
        jpeg_pixels_block_transpose(turned, v);
        jpeg_pixels_block_transform_columns(v, true);
        jpeg_pixels_block_through_file(quantizer, v);
        jpeg_pixels_block_transform_columns_back(v, false);
        jpeg_pixels_block_transpose(v, turned);
        jpeg_pixels_block_transform_columns_back(turned, true);
        jpeg_pixels_block_transpose(turned, v);
        for (unsigned y = 0; y < BLOCK_SIDE; y++)
                for (unsigned x = 0; x < BLOCK_SIDE; x++) {
                        int32_t level = v[y * BLOCK_SIDE + x] + 128;

                        samples[y * stride + x] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
                }
}

WIDE(block, (const struct quantizer *quantizer, uint8_t *samples, size_t stride), (quantizer, samples, stride))

void blocks_through_jpeg(const struct quantizer *quantizer, uint8_t *samples, size_t stride, uint32_t n) {
        for (uint32_t i = blocks_through_jpeg_avx2(quantizer, samples, stride, n); i < n; i++)
                block(quantizer, samples + (size_t)i * BLOCK_SIDE, stride);
}
