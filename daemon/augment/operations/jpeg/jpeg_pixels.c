/* augment/operations/jpeg/jpeg_pixels.c: what a JPEG file of some quality leaves of a picture, with the bits of libjpeg-turbo and so
 * of Pillow's save() and open(): 4:2:0, its accurate transforms, smooth enlarging of the colours. Grey is one
 * component.
 *
 * Packing coefficients into a file and unpacking them changes nothing, so no file is made: a picture becomes planes,
 * whose blocks go through their transforms, and the planes become a picture. */
#include "daemon/augment/operation.h"
#include "daemon/augment/operations/jpeg/colors.h"
#include "daemon/augment/operations/jpeg/jpeg_pixels_block.h"
#include "daemon/augment/operations/wide.h"

#include <string.h>

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

static uint64_t jpeg_pixels_plane_bytes(uint32_t width, uint32_t height) {
        return (uint64_t)whole_blocks(width) * whole_blocks(height);
}

/* Two rows of sums, or a row of them and two of pixels, with a column more. */
static uint64_t sum_bytes(uint32_t width) {
        return 2 * ((uint64_t)width + 1) * sizeof(uint16_t);
}

static uint64_t extra_bytes(const struct operation *operation, uint32_t width, uint32_t height) {
        (void)operation;
        return sum_bytes(width) + jpeg_pixels_plane_bytes(width, height) +
               2 * jpeg_pixels_plane_bytes((width + 1) / 2, (height + 1) / 2);
}

static struct plane plane_at(uint8_t *samples, uint32_t width, uint32_t height) {
        return (struct plane){ samples, width, height, whole_blocks(width), whole_blocks(height) };
}

static uint8_t *jpeg_pixels_sample_at(const struct plane *plane, uint32_t x, uint32_t y) {
        return plane->samples + (size_t)y * plane->stride + x;
}

static uint32_t jpeg_pixels_at_most(uint32_t place, uint32_t last) {
        return place < last ? place : last;
}

/* ---- from pixels to planes ----------------------------------------------------------------------------------- */

/* As many pixels as there may be in planes, of n that follow. */
static uint32_t at_once(uint32_t n) {
        return n < PLANES_AT_ONCE ? n : PLANES_AT_ONCE;
}

static void luma_row(const uint8_t *pixels, uint32_t width, uint8_t *ret_luma) {
        struct planes colors = {}; /* zeroed: the last ones of a row may be few, but all are computed; below as well */
        uint8_t luma[PLANES_AT_ONCE];

        for (uint32_t x = 0; x < width; x += PLANES_AT_ONCE) {
                uint32_t n = at_once(width - x);

                planes_take(pixels + (size_t)x * PIXEL_BYTES, n, &colors);
                luma_of_planes(&colors, luma);
                memcpy(ret_luma + x, luma, n);
        }
}

/* Two rows' chroma, as sums of what is above and below each other. */
static void chroma_rows(const uint8_t *above, const uint8_t *below, uint32_t width, uint16_t *ret_cb,
                        uint16_t *ret_cr) {
        struct planes colors = {};

        for (uint32_t x = 0; x < width; x += PLANES_AT_ONCE) {
                uint16_t cb[PLANES_AT_ONCE] = { 0 }, cr[PLANES_AT_ONCE] = { 0 };
                uint32_t n = at_once(width - x);

                planes_take(above + (size_t)x * PIXEL_BYTES, n, &colors);
                add_chroma_of_planes(&colors, cb, cr);
                planes_take(below + (size_t)x * PIXEL_BYTES, n, &colors);
                add_chroma_of_planes(&colors, cb, cr);
                memcpy(ret_cb + x, cb, n * sizeof(*cb));
                memcpy(ret_cr + x, cr, n * sizeof(*cr));
        }
}

static void repeat_last(const struct plane *plane, uint32_t y) {
        memset(jpeg_pixels_sample_at(plane, plane->width, y), *jpeg_pixels_sample_at(plane, plane->width - 1, y),
               plane->stride - plane->width);
}

/* The rows below the picture's last one. */
static void repeat_last_row(const struct plane *plane) {
        for (uint32_t y = plane->height; y < plane->n_rows; y++)
                memcpy(jpeg_pixels_sample_at(plane, 0, y), jpeg_pixels_sample_at(plane, 0, plane->height - 1),
                       plane->stride);
}

static void fill_luma(const struct canvas *canvas, bool is_grey, const struct plane *plane) {
        for (uint32_t y = 0; y < canvas->height; y++) {
                const uint8_t *pixel = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x < canvas->width && is_grey; x++)
                        *jpeg_pixels_sample_at(plane, x, y) = pixel[x * PIXEL_BYTES];
                if (!is_grey)
                        luma_row(pixel, canvas->width, jpeg_pixels_sample_at(plane, 0, y));
                repeat_last(plane, y);
        }
        repeat_last_row(plane);
}

static ALWAYS_INLINE void mean_of_sums_loop(const uint16_t *sums, size_t n, uint8_t *restrict samples) {
        for (size_t x = 0; x < n; x++)
                samples[x] = (uint8_t)((sums[2 * x] + sums[2 * x + 1] + 1 + (int)(x % 2)) >> 2);
}

WIDE(mean_of_sums, (const uint16_t *sums, size_t n, uint8_t *restrict samples), (sums, n, samples))

/* A sample is the mean of four pixels; 1/4 and 1/2 are added in turn before it is truncated. The picture's last column
 * and row are repeated if their number is odd. `sums` has a column more than the picture. */
static void mean_row(const struct plane *plane, uint32_t width, uint16_t *sums, uint32_t y) {
        sums[width] = sums[width - 1];
        mean_of_sums(sums, plane->width, jpeg_pixels_sample_at(plane, 0, y));
        for (uint32_t x = plane->width; x < plane->stride; x++)
                *jpeg_pixels_sample_at(plane, x, y) = (uint8_t)((sums[width] + sums[width] + 1 + x % 2) >> 2);
}

static void fill_chroma(const struct canvas *canvas, const struct plane *cb, const struct plane *cr, uint16_t *sums) {
        uint16_t *sums_cr = sums + canvas->width + 1;

        for (uint32_t y = 0; y < cb->height; y++) {
                const uint8_t *above = canvas_at(canvas, 0, 2 * y);
                const uint8_t *below = canvas_at(canvas, 0, jpeg_pixels_at_most(2 * y + 1, canvas->height - 1));

                chroma_rows(above, below, canvas->width, sums, sums_cr);
                mean_row(cb, canvas->width, sums, y);
                mean_row(cr, canvas->width, sums_cr, y);
        }
        repeat_last_row(cb);
        repeat_last_row(cr);
}

static void plane_through_jpeg(const struct plane *plane, int quality, bool is_chroma) {
        struct quantizer quantizer;

        quantizer_init(&quantizer, quality, is_chroma);
        for (uint32_t y = 0; y < plane->n_rows; y += BLOCK_SIDE)
                blocks_through_jpeg(&quantizer, jpeg_pixels_sample_at(plane, 0, y), plane->stride,
                                    plane->stride / BLOCK_SIDE);
}

/* ---- from planes to pixels ----------------------------------------------------------------------------------- */

static ALWAYS_INLINE void sum_rows_loop(const uint8_t *near, const uint8_t *far, size_t n, uint16_t *restrict sums) {
        for (size_t x = 0; x < n; x++)
                sums[x] = (uint16_t)(near[x] * 3 + far[x]);
}

WIDE(sum_rows, (const uint8_t *near, const uint8_t *far, size_t n, uint16_t *restrict sums), (near, far, n, sums))

/* Two pixels for each of n sums that have one on either side. */
static ALWAYS_INLINE void spread_loop(const uint16_t *sums, size_t n, uint8_t *restrict row) {
        for (size_t x = 0; x < n; x++) {
                row[2 * x] = (uint8_t)((sums[x] * 3 + sums[(ptrdiff_t)x - 1] + 8) >> 4);
                row[2 * x + 1] = (uint8_t)((sums[x] * 3 + sums[x + 1] + 7) >> 4);
        }
}

WIDE(spread, (const uint16_t *sums, size_t n, uint8_t *restrict row), (sums, n, row))

/* The chroma of a row of pixels: its sample counts three times and the one beside it once, in both directions; at the
 * edges there is none beside it. Planes of two columns or fewer are not smoothed. `sums` has room for a row of samples.
 */
static void enlarge_row(const struct plane *plane, uint32_t y, uint16_t *sums, uint8_t *ret_row) {
        uint32_t last = plane->width - 1, row = y / 2;
        const uint8_t *near = jpeg_pixels_sample_at(plane, 0, row);
        const uint8_t *far = jpeg_pixels_sample_at(plane, 0,
                                                   y % 2 == 1 ? jpeg_pixels_at_most(row + 1, plane->height - 1)
                                                   : row > 0  ? row - 1
                                                              : 0);

        if (plane->width <= 2) {
                for (uint32_t x = 0; x <= last; x++)
                        ret_row[2 * x] = ret_row[2 * x + 1] = near[x];
                return;
        }
        sum_rows(near, far, plane->width, sums);
        ret_row[0] = (uint8_t)((sums[0] * 4 + 8) >> 4);
        ret_row[1] = (uint8_t)((sums[0] * 3 + sums[1] + 7) >> 4);
        spread(sums + 1, plane->width - 2, ret_row + 2);
        ret_row[2 * last] = (uint8_t)((sums[last] * 3 + sums[last - 1] + 8) >> 4);
        ret_row[2 * last + 1] = (uint8_t)((sums[last] * 4 + 7) >> 4);
}

static void jpeg_pixels_write_row(const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, uint32_t width,
                                  uint8_t *pixels) {
        uint8_t last[N_PLANES][PLANES_AT_ONCE] = { 0 };
        struct planes colors;

        for (uint32_t x = 0; x < width; x += PLANES_AT_ONCE) {
                uint32_t n = at_once(width - x);
                const uint8_t *rows[N_PLANES] = { luma + x, cb + x, cr + x };

                for (unsigned i = 0; i < N_PLANES && n < PLANES_AT_ONCE; i++)
                        rows[i] = memcpy(last[i], rows[i], n);
                colors_of_planes(rows[Y], rows[CB], rows[CR], &colors);
                planes_put(&colors, n, pixels + (size_t)x * PIXEL_BYTES);
        }
}

static void write_grey(const struct plane *plane, const struct canvas *canvas) {
        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++) {
                uint8_t *pixel = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x < canvas->width; x++, pixel += PIXEL_BYTES)
                        pixel[0] = pixel[1] = pixel[2] = *jpeg_pixels_sample_at(plane, x, y);
        }
}

/* `sums` has room for two rows of pixels and one of samples. */
static void write_colors(const struct plane *planes, const struct canvas *canvas, uint16_t *sums) {
        uint8_t *cb = (uint8_t *)(sums + planes[CB].width), *cr = cb + 2 * (size_t)planes[CB].width;

        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++) {
                enlarge_row(&planes[CB], y, sums, cb);
                enlarge_row(&planes[CR], y, sums, cr);
                jpeg_pixels_write_row(jpeg_pixels_sample_at(&planes[Y], 0, y), cb, cr, canvas->width,
                                      canvas_at(canvas, 0, y));
        }
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        uint32_t half_width = (canvas->width + 1) / 2, half_height = (canvas->height + 1) / 2;
        uint16_t *sums = (uint16_t *)operation->rows;
        struct plane planes[N_PLANES];

        planes[Y] = plane_at(operation->rows + sum_bytes(canvas->width), canvas->width, canvas->height);
        planes[CB] = plane_at(planes[Y].samples + jpeg_pixels_plane_bytes(canvas->width, canvas->height), half_width,
                              half_height);
        planes[CR] = plane_at(planes[CB].samples + jpeg_pixels_plane_bytes(half_width, half_height), half_width,
                              half_height);
        fill_luma(canvas, operation->is_grey, &planes[Y]);
        if (!operation->is_grey)
                fill_chroma(canvas, &planes[CB], &planes[CR], sums);
        for (int i = 0; i < (operation->is_grey ? 1 : N_PLANES); i++)
                plane_through_jpeg(&planes[i], (int)operation->amount, i != Y);
        if (operation->is_grey)
                write_grey(&planes[Y], canvas);
        else
                write_colors(planes, canvas, sums);
}

const struct operation_type operation_jpeg = {
        .moves_with_flip = false, /* blocks begin at the left and at the top */
        .moves_with_crop = false,
        .extra_bytes = extra_bytes,
        .run = run,
};
