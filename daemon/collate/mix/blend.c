#include "daemon/collate/mix/blend.h"

#include <string.h>

#include "daemon/base/half.h"

/* Adding it to a number below 2^22 leaves no bits for a fraction, so that the sum is rounded to a whole number. Unlike
 * rintf() a compiler makes vectors of it. */
#define ROUNDS 12582912.0f

static void blend_bytes(void *to, const void *with, size_t n, double lam) {
        float l = (float)lam, rest = (float)(1 - lam);
        const uint8_t *restrict b = with;
        uint8_t *restrict a = to;

        for (size_t i = 0; i < n; i++) {
                float sum = (float)a[i] * l + (float)b[i] * rest;

                a[i] = (uint8_t)(int32_t)(sum + ROUNDS - ROUNDS);
        }
}

static void blend_float(void *to, const void *with, size_t n, double lam) {
        float l = (float)lam, rest = (float)(1 - lam);
        const float *restrict b = with;
        float *restrict a = to;

        for (size_t i = 0; i < n; i++)
                a[i] = a[i] * l + b[i] * rest;
}

static void blend_double(void *to, const void *with, size_t n, double lam) {
        const double *restrict b = with;
        double *restrict a = to;
        double rest = 1 - lam;

        for (size_t i = 0; i < n; i++)
                a[i] = a[i] * lam + b[i] * rest;
}

static inline float blend_float_of(uint32_t bits) {
        float value;

        memcpy(&value, &bits, sizeof(value));
        return value;
}

static inline uint32_t blend_bits_of(float value) {
        uint32_t bits;

        memcpy(&bits, &value, sizeof(bits));
        return bits;
}

/* bfloat16_from_float32() without branches, of which a compiler makes vectors. */
static inline uint32_t to_bfloat16(float value) {
        uint32_t bits = blend_bits_of(value), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;

        return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded;
}

static inline float blend_from_bfloat16(uint32_t bits) {
        return blend_float_of(bits << 16);
}

static void blend_bfloat16(void *to, const void *with, size_t n, double lam) {
        float l = (float)lam, rest = (float)(1 - lam);
        const uint16_t *restrict b = with;
        uint16_t *restrict a = to;

        for (size_t i = 0; i < n; i++) {
                float own = blend_from_bfloat16(to_bfloat16(blend_from_bfloat16(a[i]) * l));
                float other = blend_from_bfloat16(to_bfloat16(blend_from_bfloat16(b[i]) * rest));

                a[i] = (uint16_t)to_bfloat16(own + other);
        }
}

static float as_half(float value) {
        return blend_float_of(float32_from_half(half_from_float32(blend_bits_of(value))));
}

void blend_half(void *to, const void *with, size_t n, double lam) {
        float l = (float)lam, rest = (float)(1 - lam);
        const uint16_t *restrict b = with;
        uint16_t *restrict a = to;

        for (size_t i = 0; i < n; i++) {
                float own = as_half(blend_float_of(float32_from_half(a[i])) * l);
                float other = as_half(blend_float_of(float32_from_half(b[i])) * rest);

                a[i] = half_from_float32(blend_bits_of(own + other));
        }
}

blend_function blend_of(enum dlp_dtype dtype) {
        switch (dtype) {
        case DLP_DTYPE_UINT8:
                return blend_bytes;
        case DLP_DTYPE_FLOAT16:
                return blend_half_f16c() ? blend_half_f16c() : blend_half;
        case DLP_DTYPE_BFLOAT16:
                return blend_bfloat16;
        case DLP_DTYPE_FLOAT32:
                return blend_float;
        case DLP_DTYPE_FLOAT64:
                return blend_double;
        default:
                return NULL;
        }
}
