#include "daemon/augment/operations/jpeg/colors.h"

#include <stdbool.h>

static bool has_avx2(void) {
#ifdef __x86_64__
        return __builtin_cpu_supports("avx2");
#else
        return false;
#endif
}

#ifndef __x86_64__
#define luma_avx2(colors, luma)       ((void)0)
#define add_chroma_avx2(colors, b, r) ((void)0)
#define colors_avx2(luma, b, r, c)    ((void)0)
#endif

static uint8_t colors_level_of(int32_t value) {
        return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

void luma_of_planes(const struct planes *colors, uint8_t ret_luma[PLANES_AT_ONCE]) {
        if (has_avx2()) {
                luma_avx2(colors, ret_luma);
                return;
        }
        for (unsigned i = 0; i < PLANES_AT_ONCE; i++)
                ret_luma[i] = (uint8_t)((FACTOR(0.299) * colors->first[i] + FACTOR(0.587) * colors->second[i] +
                                         FACTOR(0.114) * colors->third[i] + HALF) >>
                                        16);
}

void add_chroma_of_planes(const struct planes *colors, uint16_t cb[PLANES_AT_ONCE], uint16_t cr[PLANES_AT_ONCE]) {
        if (has_avx2()) {
                add_chroma_avx2(colors, cb, cr);
                return;
        }
        for (unsigned i = 0; i < PLANES_AT_ONCE; i++) {
                int32_t red = colors->first[i], green = colors->second[i], blue = colors->third[i];

                cb[i] = (uint16_t)(cb[i] + ((-FACTOR(0.16874) * red - FACTOR(0.33126) * green + FACTOR(0.5) * blue +
                                             ALL_CHROMA) >>
                                            16));
                cr[i] = (uint16_t)(cr[i] + ((FACTOR(0.5) * red - FACTOR(0.41869) * green - FACTOR(0.08131) * blue +
                                             ALL_CHROMA) >>
                                            16));
        }
}

void colors_of_planes(const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, struct planes *ret_colors) {
        if (has_avx2()) {
                colors_avx2(luma, cb, cr, ret_colors);
                return;
        }
        for (unsigned i = 0; i < PLANES_AT_ONCE; i++) {
                int32_t b = cb[i] - 128, r = cr[i] - 128;

                ret_colors->first[i] = colors_level_of(luma[i] + ((FACTOR(1.402) * r + HALF) >> 16));
                ret_colors->second[i] = colors_level_of(luma[i] +
                                                        ((-FACTOR(0.34414) * b - FACTOR(0.71414) * r + HALF) >> 16));
                ret_colors->third[i] = colors_level_of(luma[i] + ((FACTOR(1.772) * b + HALF) >> 16));
        }
}
