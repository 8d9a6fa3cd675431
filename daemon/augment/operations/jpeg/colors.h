/* augment/operations/jpeg/colors.h: between red, green, blue and luma, chroma, as libjpeg computes them. Private to this
 * folder. */
#pragma once

#include "daemon/augment/operations/pixel_planes.h"

/* Factors of 2^16. */
#define FACTOR(x) ((int32_t)((x)*65536 + 0.5))
#define HALF      (1 << 15)

#define ALL_CHROMA ((128 << 16) + HALF - 1) /* is added before the 16 digits are dropped */

/* Of all pixels of the planes. */
void luma_of_planes(const struct planes *colors, uint8_t ret_luma[PLANES_AT_ONCE]);
void add_chroma_of_planes(const struct planes *colors, uint16_t cb[PLANES_AT_ONCE], uint16_t cr[PLANES_AT_ONCE]);

/* From luma and chroma of as many pixels. */
void colors_of_planes(const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, struct planes *ret_colors);

/* The same with AVX2. */
#ifdef __x86_64__
void luma_avx2(const struct planes *colors, uint8_t *ret_luma);
void add_chroma_avx2(const struct planes *colors, uint16_t *cb, uint16_t *cr);
void colors_avx2(const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, struct planes *ret_colors);
#endif
