#include "daemon/base/half.h"

#include <stdbool.h>

#define FLOAT32_INFINITE 0x7f800000u

/* Drops the lowest n bits (1 to 31). */
static uint32_t drop_rounded(uint32_t value, uint32_t n) {
        uint32_t half = 1u << (n - 1), dropped = value & ((1u << n) - 1), kept = value >> n;
        bool is_up = dropped > half || (dropped == half && (kept & 1));

        return kept + is_up; /* carries into the exponent where it must */
}

uint16_t half_from_float32(uint32_t bits) {
        uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu, exponent = rest >> 23;

        if (rest > FLOAT32_INFINITE)
                return (uint16_t)(sign | 0x7e00u);
        if (exponent > 142) /* 2^16 and more; values that round up to it carry by themselves */
                return (uint16_t)(sign | 0x7c00u);
        if (exponent < 102) /* below half of the smallest value, 2^-24 */
                return (uint16_t)sign;
        if (exponent < 113) /* subnormal: the leading one becomes explicit */
                return (uint16_t)(sign | drop_rounded((rest & 0x7fffffu) | 0x800000u, 126 - exponent));
        return (uint16_t)(sign | drop_rounded(rest - (112u << 23), 13));
}

uint16_t bfloat16_from_float32(uint32_t bits) {
        if ((bits & 0x7fffffffu) > FLOAT32_INFINITE)
                return 0x7fc0u;
        return (uint16_t)drop_rounded(bits, 16);
}

/* A NaN comes out quiet, as the processor makes it. */
uint32_t float32_from_half(uint16_t bits) {
        uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 0x1fu, fraction = bits & 0x3ffu;
        unsigned shift;

        if (exponent == 31)
                return sign | FLOAT32_INFINITE | fraction << 13 | (fraction ? 0x400000u : 0);
        if (exponent > 0)
                return sign | (exponent + 112) << 23 | fraction << 13;
        if (fraction == 0)
                return sign;
        shift = (unsigned)__builtin_clz(fraction) - 21; /* until the leading one is the implicit one */
        return sign | (113 - shift) << 23 | (fraction << shift & 0x3ffu) << 13;
}
