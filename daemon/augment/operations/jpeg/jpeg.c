/* augment/operations/jpeg/jpeg.c: what a JPEG file of some quality leaves of a picture, with the bits of libjpeg-turbo and so
 * of Pillow's save() and open(): 4:2:0, its accurate transforms, smooth enlarging of the colours. Grey is one
 * component.
 *
 * Packing coefficients into a file and unpacking them changes nothing, so no file is made: a picture becomes planes,
 * whose blocks go through their transforms, and the planes become a picture. */
#include "daemon/augment/operation.h"
#include "daemon/augment/operations/jpeg/block.h"

/* Factors of 2^16. */
#define FACTOR(x) ((int32_t)((x)*65536 + 0.5))
#define HALF      (1 << 15)

enum {
        Y,
        CB,
        CR,
        N_PLANES
};

/* Whole blocks; what is beyond the picture repeats its last pixel. */
struct plane {
        uint8_t *samples;
        uint32_t width, height; /* of the picture's part of it */
        uint32_t stride, n_rows;
};

static uint32_t whole_blocks(uint32_t length) {
        return (length + BLOCK_SIDE - 1) / BLOCK_SIDE * BLOCK_SIDE;
}

static uint64_t plane_bytes(uint32_t width, uint32_t height) {
        return (uint64_t)whole_blocks(width) * whole_blocks(height);
}

static uint64_t extra_bytes(const struct operation *operation, uint32_t width, uint32_t height) {
        (void)operation;
        return plane_bytes(width, height) + 2 * plane_bytes((width + 1) / 2, (height + 1) / 2);
}

static struct plane plane_at(uint8_t *samples, uint32_t width, uint32_t height) {
        return (struct plane){ samples, width, height, whole_blocks(width), whole_blocks(height) };
}

static uint8_t *sample_at(const struct plane *plane, uint32_t x, uint32_t y) {
        return plane->samples + (size_t)y * plane->stride + x;
}

static uint32_t at_most(uint32_t place, uint32_t last) {
        return place < last ? place : last;
}

/* ---- from pixels to planes ----------------------------------------------------------------------------------- */

static int32_t luma_of(const uint8_t *pixel) {
        return (FACTOR(0.299) * pixel[0] + FACTOR(0.587) * pixel[1] + FACTOR(0.114) * pixel[2] + HALF) >> 16;
}

static int32_t cb_of(const uint8_t *pixel) {
        return (-FACTOR(0.16874) * pixel[0] - FACTOR(0.33126) * pixel[1] + FACTOR(0.5) * pixel[2] + (128 << 16) + HALF -
                1) >>
               16;
}

static int32_t cr_of(const uint8_t *pixel) {
        return (FACTOR(0.5) * pixel[0] - FACTOR(0.41869) * pixel[1] - FACTOR(0.08131) * pixel[2] + (128 << 16) + HALF -
                1) >>
               16;
}

static void fill_luma(const struct canvas *canvas, bool is_grey, const struct plane *plane) {
        for (uint32_t y = 0; y < plane->n_rows; y++)
                for (uint32_t x = 0; x < plane->stride; x++) {
                        const uint8_t *pixel = canvas_at(canvas, at_most(x, canvas->width - 1),
                                                         at_most(y, canvas->height - 1));

                        *sample_at(plane, x, y) = is_grey ? pixel[0] : (uint8_t)luma_of(pixel);
                }
}

/* A sample is the mean of four pixels; 1/4 and 1/2 are added in turn before it is truncated. */
static void fill_chroma(const struct canvas *canvas, const struct plane *cb, const struct plane *cr) {
        for (uint32_t y = 0; y < cb->n_rows; y++) {
                uint32_t row = at_most(y, cb->height - 1) * 2; /* beyond the last row of samples, that row */

                for (uint32_t x = 0; x < cb->stride; x++) {
                        int32_t sums[2] = { 1 + x % 2, 1 + x % 2 };

                        for (uint32_t i = 0; i < 4; i++) {
                                const uint8_t *pixel = canvas_at(canvas, at_most(2 * x + i % 2, canvas->width - 1),
                                                                 at_most(row + i / 2, canvas->height - 1));

                                sums[0] += cb_of(pixel);
                                sums[1] += cr_of(pixel);
                        }
                        *sample_at(cb, x, y) = (uint8_t)(sums[0] >> 2);
                        *sample_at(cr, x, y) = (uint8_t)(sums[1] >> 2);
                }
        }
}

static void plane_through_jpeg(const struct plane *plane, int quality, bool is_chroma) {
        struct quantizer quantizer;

        quantizer_init(&quantizer, quality, is_chroma);
        for (uint32_t y = 0; y < plane->n_rows; y += BLOCK_SIDE)
                for (uint32_t x = 0; x < plane->stride; x += BLOCK_SIDE)
                        block_through_jpeg(&quantizer, sample_at(plane, x, y), plane->stride);
}

/* ---- from planes to pixels ----------------------------------------------------------------------------------- */

/* The chroma of a pixel: its sample counts three times and the one beside it once, in both directions; at the edges
 * there is none beside it. Planes of two columns or fewer are not smoothed. */
static int32_t chroma_at(const struct plane *plane, uint32_t x, uint32_t y) {
        uint32_t column = x / 2, row = y / 2, other_column = column, other_row = row;
        int32_t near, far;

        if (plane->width <= 2)
                return *sample_at(plane, column, row);
        if (y % 2 == 0)
                other_row = row > 0 ? row - 1 : 0;
        else
                other_row = at_most(row + 1, plane->height - 1);
        if (x % 2 == 0)
                other_column = column > 0 ? column - 1 : 0;
        else
                other_column = at_most(column + 1, plane->width - 1);
        near = *sample_at(plane, column, row) * 3 + *sample_at(plane, column, other_row);
        far = *sample_at(plane, other_column, row) * 3 + *sample_at(plane, other_column, other_row);
        return (near * 3 + far + (x % 2 == 0 ? 8 : 7)) >> 4;
}

static uint8_t level_of(int32_t value) {
        return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void write_pixel(int32_t luma, int32_t cb, int32_t cr, uint8_t *pixel) {
        cb -= 128;
        cr -= 128;
        pixel[0] = level_of(luma + ((FACTOR(1.402) * cr + HALF) >> 16));
        pixel[1] = level_of(luma + ((-FACTOR(0.34414) * cb - FACTOR(0.71414) * cr + HALF) >> 16));
        pixel[2] = level_of(luma + ((FACTOR(1.772) * cb + HALF) >> 16));
}

static void write_pixels(const struct plane *planes, bool is_grey, const struct canvas *canvas) {
        for (uint32_t y = 0; y < canvas->height; y++)
                for (uint32_t x = 0; x < canvas->width; x++) {
                        uint8_t *pixel = canvas_at(canvas, x, y);
                        uint8_t luma = *sample_at(&planes[Y], x, y);

                        if (is_grey)
                                pixel[0] = pixel[1] = pixel[2] = luma;
                        else
                                write_pixel(luma, chroma_at(&planes[CB], x, y), chroma_at(&planes[CR], x, y), pixel);
                }
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        uint32_t half_width = (canvas->width + 1) / 2, half_height = (canvas->height + 1) / 2;
        struct plane planes[N_PLANES];

        planes[Y] = plane_at(operation->rows, canvas->width, canvas->height);
        planes[CB] = plane_at(operation->rows + plane_bytes(canvas->width, canvas->height), half_width, half_height);
        planes[CR] = plane_at(planes[CB].samples + plane_bytes(half_width, half_height), half_width, half_height);
        fill_luma(canvas, operation->is_grey, &planes[Y]);
        if (!operation->is_grey)
                fill_chroma(canvas, &planes[CB], &planes[CR]);
        for (int i = 0; i < (operation->is_grey ? 1 : N_PLANES); i++)
                plane_through_jpeg(&planes[i], (int)operation->amount, i != Y);
        write_pixels(planes, operation->is_grey, canvas);
}

const struct operation_type operation_jpeg = {
        .name = "jpeg",
        .moves_with_flip = false, /* blocks begin at the left and at the top */
        .moves_with_crop = false,
        .extra_bytes = extra_bytes,
        .run = run,
};
