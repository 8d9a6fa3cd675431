/* augment/operations/jpeg/block.h: a block of 8 x 8 samples goes through a JPEG and back. Private to this floor. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BLOCK_SIDE 8u

/* The divisors of 64 coefficients, row by row. */
struct quantizer {
        uint16_t divisors[BLOCK_SIDE * BLOCK_SIDE];
};

/* Those of luma or chroma that the standard shows in its annex K, scaled as libjpeg does for a quality of 1 to 100. */
void quantizer_init(struct quantizer *quantizer, int quality, int is_chroma);

/* Transforms, divides, rounds, multiplies and transforms back, in place; rows are `stride` bytes apart. The bits are
 * those of libjpeg's accurate whole-number transforms (JDCT_ISLOW). */
void block_through_jpeg(const struct quantizer *quantizer, uint8_t *samples, size_t stride);
