/* augment/operations/jpeg/jpeg_pixels_block.h: a block of 8 x 8 samples goes through a JPEG and back. Private to this floor. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BLOCK_SIDE 8u

/* The divisors of 64 coefficients, row by row. What is divided are numbers below 2^14, by eight times as much: n times
 * the reciprocal times the shift, each time without the lower 16 digits, is n / (8 * divisor) without its fraction. */
struct quantizer {
        uint16_t divisors[BLOCK_SIDE * BLOCK_SIDE];
        uint16_t reciprocals[BLOCK_SIDE * BLOCK_SIDE], shifts[BLOCK_SIDE * BLOCK_SIDE];
};

/* Those of luma or chroma that the standard shows in its annex K, scaled as libjpeg does for a quality of 1 to 100. */
void quantizer_init(struct quantizer *quantizer, int quality, int is_chroma);

/* Transforms, divides, rounds, multiplies and transforms back n blocks beside each other, in place; rows are `stride`
 * bytes apart. The bits are those of libjpeg's accurate whole-number transforms (JDCT_ISLOW). */
void blocks_through_jpeg(const struct quantizer *quantizer, uint8_t *samples, size_t stride, uint32_t n);

/* As many of the first blocks as there are instructions for. Returns how many; 0 without AVX2. */
uint32_t blocks_through_jpeg_avx2(const struct quantizer *quantizer, uint8_t *samples, size_t stride, uint32_t n);
