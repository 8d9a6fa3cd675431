/* augment/operations/jpeg/block.c: the transforms of Loeffler, Ligtenberg and Moschytz ("Practical fast 1-D DCT algorithms
 * with 11 multiplications", 1989), in whole numbers of 13 binary digits, with two digits kept between the passes, as
 * libjpeg does them. */
#include "daemon/augment/operations/jpeg/block.h"

#include <stdlib.h>

#define DIGITS      13
#define KEPT_DIGITS 2

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

void quantizer_init(struct quantizer *quantizer, int quality, int is_chroma) {
        int percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;

        for (int i = 0; i < 64; i++) {
                int divisor = ((is_chroma ? CHROMA : LUMA)[i] * percent + 50) / 100;

                quantizer->divisors[i] = (uint16_t)(divisor < 1 ? 1 : divisor > 255 ? 255 : divisor);
        }
}

static int32_t rounded(int32_t value, int digits) {
        return (value + (1 << (digits - 1))) >> digits;
}

/* One dimension, of eight values that are `step` apart. The first pass keeps two digits, the second drops them. */
static void transform(int32_t *v, size_t step, int is_second) {
        int32_t sum[4], difference[4], even[4], z[5];
        int digits = is_second ? DIGITS + KEPT_DIGITS : DIGITS - KEPT_DIGITS;

        for (size_t i = 0; i < 4; i++) {
                sum[i] = v[i * step] + v[(7 - i) * step];
                difference[3 - i] = v[i * step] - v[(7 - i) * step];
        }
        even[0] = sum[0] + sum[3];
        even[1] = sum[1] + sum[2];
        even[2] = sum[1] - sum[2];
        even[3] = sum[0] - sum[3];
        if (is_second) {
                v[0] = rounded(even[0] + even[1], KEPT_DIGITS);
                v[4 * step] = rounded(even[0] - even[1], KEPT_DIGITS);
        } else {
                v[0] = (even[0] + even[1]) * (1 << KEPT_DIGITS);
                v[4 * step] = (even[0] - even[1]) * (1 << KEPT_DIGITS);
        }
        z[0] = (even[2] + even[3]) * F_0_541;
        v[2 * step] = rounded(z[0] + even[3] * F_0_765, digits);
        v[6 * step] = rounded(z[0] - even[2] * F_1_847, digits);

        z[4] = (difference[0] + difference[2] + difference[1] + difference[3]) * F_1_175;
        z[0] = (difference[0] + difference[3]) * -F_0_899;
        z[1] = (difference[1] + difference[2]) * -F_2_562;
        z[2] = (difference[0] + difference[2]) * -F_1_961 + z[4];
        z[3] = (difference[1] + difference[3]) * -F_0_390 + z[4];
        v[7 * step] = rounded(difference[0] * F_0_298 + z[0] + z[2], digits);
        v[5 * step] = rounded(difference[1] * F_2_053 + z[1] + z[3], digits);
        v[3 * step] = rounded(difference[2] * F_3_072 + z[1] + z[2], digits);
        v[1 * step] = rounded(difference[3] * F_1_501 + z[0] + z[3], digits);
}

/* Back; the second pass drops the kept digits and the factor of 8 that both passes of transform() make. */
static void transform_back(int32_t *v, size_t step, int is_second) {
        int digits = is_second ? DIGITS + KEPT_DIGITS + 3 : DIGITS - KEPT_DIGITS;
        int32_t even[4], odd[4], z[5], in[4];

        z[0] = (v[2 * step] + v[6 * step]) * F_0_541;
        z[1] = z[0] - v[6 * step] * F_1_847;
        z[2] = z[0] + v[2 * step] * F_0_765;
        z[3] = (v[0] + v[4 * step]) * (1 << DIGITS);
        z[4] = (v[0] - v[4 * step]) * (1 << DIGITS);
        even[0] = z[3] + z[2];
        even[1] = z[4] + z[1];
        even[2] = z[4] - z[1];
        even[3] = z[3] - z[2];

        for (size_t i = 0; i < 4; i++)
                in[i] = v[(7 - 2 * i) * step];
        z[4] = (in[0] + in[1] + in[2] + in[3]) * F_1_175;
        z[0] = (in[0] + in[3]) * -F_0_899;
        z[1] = (in[1] + in[2]) * -F_2_562;
        z[2] = (in[0] + in[2]) * -F_1_961 + z[4];
        z[3] = (in[1] + in[3]) * -F_0_390 + z[4];
        odd[3] = in[0] * F_0_298 + z[0] + z[2];
        odd[2] = in[1] * F_2_053 + z[1] + z[3];
        odd[1] = in[2] * F_3_072 + z[1] + z[2];
        odd[0] = in[3] * F_1_501 + z[0] + z[3];
        for (size_t i = 0; i < 4; i++) {
                v[i * step] = rounded(even[i] + odd[i], digits);
                v[(7 - i) * step] = rounded(even[i] - odd[i], digits);
        }
}

/* Through the file: divided and rounded, half away from zero; the coefficients have a factor of 8. */
static int32_t through_file(int32_t coefficient, int32_t divisor) {
        int32_t n = (abs(coefficient) + divisor * 4) / (divisor * 8) * divisor;

        return coefficient < 0 ? -n : n;
}

void block_through_jpeg(const struct quantizer *quantizer, uint8_t *samples, size_t stride) {
        int32_t v[BLOCK_SIDE * BLOCK_SIDE];

        for (size_t y = 0; y < BLOCK_SIDE; y++)
                for (size_t x = 0; x < BLOCK_SIDE; x++)
                        v[y * BLOCK_SIDE + x] = samples[y * stride + x] - 128;
        for (size_t y = 0; y < BLOCK_SIDE; y++)
                transform(v + y * BLOCK_SIDE, 1, 0);
        for (size_t x = 0; x < BLOCK_SIDE; x++)
                transform(v + x, BLOCK_SIDE, 1);
        for (size_t i = 0; i < BLOCK_SIDE * BLOCK_SIDE; i++)
                v[i] = through_file(v[i], quantizer->divisors[i]);
        for (size_t x = 0; x < BLOCK_SIDE; x++)
                transform_back(v + x, BLOCK_SIDE, 0);
        for (size_t y = 0; y < BLOCK_SIDE; y++)
                transform_back(v + y * BLOCK_SIDE, 1, 1);
        for (size_t y = 0; y < BLOCK_SIDE; y++)
                for (size_t x = 0; x < BLOCK_SIDE; x++) {
                        int32_t level = v[y * BLOCK_SIDE + x] + 128;

                        samples[y * stride + x] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
                }
}
