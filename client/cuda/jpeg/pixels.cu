/* client/cuda/jpeg/pixels.cu: coefficients -> samples -> RGB, to the bits of libjpeg-turbo.
 *
 * The arithmetic is that of its SIMD code, which keeps 16 bits of products and sums where the portable code keeps 32:
 * for files that an encoder wrote both are the same, and for all others the daemon's decoder follows the SIMD code. */
#include "client/cuda/jpeg/cuda_jpeg.h"
#include "client/cuda/kernels/kernel.h"

#define BLOCK 8u /* samples along a side */

/* ---- the inverse transform -------------------------------------------------------------------------------------- */

DLK_FUNCTION int wrap(int value) {
        return (int16_t)(uint16_t)value;
}

DLK_FUNCTION int clamp(int value, int low, int high) {
        return value < low ? low : value > high ? high : value;
}

/* One dimension, of 8 numbers that are `step` apart: libjpeg's accurate integer transform (Loeffler, Ligtenberg and
 * Moschytz, ICASSP 1989) with 13 bits of fraction. Sums of two inputs keep 16 bits, results are saturated to 16. */
DLK_FUNCTION void transform(int *at, uint32_t step, int shift) {
        int in0 = at[0], in1 = at[step], in2 = at[2 * step], in3 = at[3 * step];
        int in4 = at[4 * step], in5 = at[5 * step], in6 = at[6 * step], in7 = at[7 * step];
        int half = 1 << (shift - 1);
        int sum = wrap(in0 + in4) * 8192 + half, difference = wrap(in0 - in4) * 8192 + half;
        int slow = 10703 * in2 + 4433 * in6, fast = 4433 * in2 - 10704 * in6;
        int sum37 = wrap(in3 + in7), sum15 = wrap(in1 + in5);
        int common02 = -6436 * sum37 + 9633 * sum15, common13 = 9633 * sum37 + 6437 * sum15;
        int even[4] = { sum + slow, difference + fast, difference - fast, sum - slow };
        int odd[4] = { 4926 * in1 - 7373 * in7 + common13, 4177 * in3 - 20995 * in5 + common02,
                       -20995 * in3 - 4176 * in5 + common13, -7373 * in1 - 4927 * in7 + common02 };

        for (uint32_t i = 0; i < 4; i++) {
                at[i * step] = clamp((even[i] + odd[i]) >> shift, INT16_MIN, INT16_MAX);
                at[(7 - i) * step] = clamp((even[i] - odd[i]) >> shift, INT16_MIN, INT16_MAX);
        }
}

/* A column whose block has nothing below the first row: all its numbers are the first one, which wraps where
 * transform() would saturate. */
DLK_FUNCTION void repeat_down(int *at) {
        int value = wrap(at[0] * 4);

        for (uint32_t y = 0; y < BLOCK; y++)
                at[y * BLOCK] = value;
}

DLK_FUNCTION void make_block(const int16_t *coefficients, const uint16_t *steps, uint8_t *to, uint32_t stride) {
        int numbers[DLP_JPEG_COEFFICIENTS], below = 0;

        for (uint32_t k = 0; k < DLP_JPEG_COEFFICIENTS; k++) {
                numbers[k] = wrap(coefficients[k] * (int16_t)steps[k]);
                if (k >= BLOCK)
                        below |= coefficients[k];
        }
        for (uint32_t x = 0; x < BLOCK; x++)
                if (below)
                        transform(numbers + x, BLOCK, 11);
                else
                        repeat_down(numbers + x);
        for (uint32_t y = 0; y < BLOCK; y++) {
                transform(numbers + y * BLOCK, 1, 18);
                for (uint32_t x = 0; x < BLOCK; x++)
                        to[(uint64_t)y * stride + x] = (uint8_t)(clamp(numbers[y * BLOCK + x], -128, 127) + 128);
        }
}

DLK_FUNCTION uint32_t component_of(const struct dlk_jpeg_picture *picture, uint32_t block) {
        if (picture->jpeg.n_components == 1 || block < picture->firsts[1])
                return 0;
        return block < picture->firsts[2] ? 1 : 2;
}

DLK_KERNEL(dlk_jpeg_blocks, struct dlk_jpeg, struct dlk_unshared, DLK_JPEG_THREADS) {
        const struct dlk_jpeg_picture *picture = p->pictures + DLK_BLOCK_Y;

        DLK_PHASE for (uint32_t block = DLK_GRID_THREAD; block < picture->n_blocks; block += DLK_N_GRID_THREADS) {
                uint32_t c = component_of(picture, block), idx = block - picture->firsts[c];
                uint32_t n_across = picture->jpeg.components[c].n_blocks_x;
                uint8_t *plane = picture->samples + (uint64_t)picture->firsts[c] * DLP_JPEG_COEFFICIENTS;

                make_block(picture->coefficients + (uint64_t)block * DLP_JPEG_COEFFICIENTS,
                           picture->jpeg.components[c].steps,
                           plane + (uint64_t)(idx / n_across) * n_across * DLP_JPEG_COEFFICIENTS +
                                   idx % n_across * BLOCK,
                           n_across * BLOCK);
        }
}

/* ---- colours ---------------------------------------------------------------------------------------------------- */

/* A plane of samples of one component. */
struct plane {
        const uint8_t *samples;
        uint32_t stride, width, height; /* width and height without what fills up blocks */
};

DLK_FUNCTION struct plane plane_of(const struct dlk_jpeg_picture *picture, uint32_t c) {
        uint32_t h = c == 0 ? 1 : picture->jpeg.h, v = c == 0 ? 1 : picture->jpeg.v;
        struct plane plane;

        plane.samples = picture->samples + (uint64_t)picture->firsts[c] * DLP_JPEG_COEFFICIENTS;
        plane.stride = picture->jpeg.components[c].n_blocks_x * BLOCK;
        plane.width = (picture->jpeg.width + h - 1) / h;
        plane.height = (picture->jpeg.height + v - 1) / v;
        return plane;
}

/* The other of the two samples between which a pixel of half their distance lies. */
DLK_FUNCTION uint32_t far_of(uint32_t at, uint32_t n) {
        uint32_t near = at / 2;

        if (at % 2)
                return near + 1 < n ? near + 1 : near;
        return near > 0 ? near - 1 : 0;
}

DLK_FUNCTION int column_sum(const struct plane *plane, uint32_t x, uint32_t y) {
        const uint8_t *column = plane->samples + x;

        return 3 * column[(uint64_t)(y / 2) * plane->stride] +
               column[(uint64_t)far_of(y, plane->height) * plane->stride];
}

/* Chroma at a pixel: three parts of the near sample and one of the far one, along each axis on which it is coarser.
 * Halves are rounded alternately down and up. libjpeg-turbo does not smooth what has fewer than 3 columns. */
DLK_FUNCTION int chroma_at(const struct dlk_jpeg_picture *picture, uint32_t c, uint32_t x, uint32_t y) {
        uint32_t h = picture->jpeg.h, v = picture->jpeg.v;
        struct plane plane = plane_of(picture, c);
        const uint8_t *row = plane.samples + (uint64_t)(y / v) * plane.stride;

        if (h == 1 && v == 1)
                return row[x];
        if (h == 2 && plane.width < 3)
                return row[x / 2];
        if (v == 1)
                return (3 * row[x / 2] + row[far_of(x, plane.width)] + (x % 2 ? 2 : 1)) >> 2;
        if (h == 1)
                return (column_sum(&plane, x, y) + (y % 2 ? 2 : 1)) >> 2;
        return (3 * column_sum(&plane, x / 2, y) + column_sum(&plane, far_of(x, plane.width), y) + (x % 2 ? 7 : 8)) >>
               4;
}

/* JFIF's matrix with 16 bits of fraction: 1.402, -0.34414, -0.71414, 1.772. */
DLK_FUNCTION void put_pixel(int y, int cb, int cr, uint8_t *rgb) {
        rgb[0] = (uint8_t)clamp(y + ((91881 * cr + 32768) >> 16), 0, 255);
        rgb[1] = (uint8_t)clamp(y + ((-22554 * cb - 46802 * cr + 32768) >> 16), 0, 255);
        rgb[2] = (uint8_t)clamp(y + ((116130 * cb + 32768) >> 16), 0, 255);
}

DLK_FUNCTION void make_pixel(const struct dlk_jpeg_picture *picture, uint32_t x, uint32_t y, uint8_t *rgb) {
        struct plane luma = plane_of(picture, 0);
        int level = luma.samples[(uint64_t)y * luma.stride + x];

        if (picture->jpeg.n_components == 1)
                rgb[0] = rgb[1] = rgb[2] = (uint8_t)level;
        else
                put_pixel(level, chroma_at(picture, 1, x, y) - 128, chroma_at(picture, 2, x, y) - 128, rgb);
}

DLK_KERNEL(dlk_jpeg_colours, struct dlk_jpeg, struct dlk_unshared, DLK_JPEG_THREADS) {
        const struct dlk_jpeg_picture *picture = p->pictures + DLK_BLOCK_Y;
        uint64_t n_pixels = (uint64_t)picture->box_width * picture->box_height;

        DLK_PHASE for (uint64_t i = DLK_GRID_THREAD; i < n_pixels; i += DLK_N_GRID_THREADS)
                make_pixel(picture, picture->box_x + (uint32_t)(i % picture->box_width),
                           picture->box_y + (uint32_t)(i / picture->box_width), picture->pixels + i * 3);
}
