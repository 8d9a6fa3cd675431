/* decode/tiff/tiff_bands.c: the numbers of a TIFF as they are stored, without what they mean: pictures of satellites,
 * microscopes and depth cameras, with any number of bands.
 *
 * libtiff decodes a row or a tile at a time into memory of ours, from where its numbers go to their places: it reads
 * what it has written, and `out` may be memory that a client can change meanwhile. */
#include "daemon/decode/tiff/tiff_source.h"

#include <string.h>

/* A rectangle of the picture, with rows that are n_row bytes apart in `unit`, of all bands or of one. */
static void tiff_bands_place(const struct tiff_source *source, const uint8_t *unit, size_t n_row, const struct box *box,
                             unsigned plane, uint8_t *out, size_t stride) {
        size_t n_number = source->kind.bits / 8, n_pixel = n_number * source->kind.n_samples;

        for (uint32_t y = 0; y < box->height; y++) {
                const uint8_t *from = unit + y * n_row;
                uint8_t *to = out + (size_t)(box->y + y) * stride + box->x * n_pixel + plane * n_number;

                if (!source->is_separate) {
                        memcpy(to, from, box->width * n_pixel);
                        continue;
                }
                for (uint32_t x = 0; x < box->width; x++)
                        memcpy(to + x * n_pixel, from + x * n_number, n_number);
        }
}

static uint32_t tiff_bands_smaller(uint32_t a, uint32_t b) {
        return a < b ? a : b;
}

static int tiff_bands_read_tiles(struct tiff_source *source, unsigned plane, uint8_t *work, uint8_t *out, size_t stride,
                                 struct why *why) {
        struct box box = { .y = 0 };

        for (; box.y < source->height; box.y += box.height) {
                box.height = tiff_bands_smaller(source->tile_height, source->height - box.y);
                for (box.x = 0; box.x < source->width; box.x += box.width) {
                        box.width = tiff_bands_smaller(source->tile_width, source->width - box.x);
                        if (TIFFReadTile(source->tiff, work, box.x, box.y, 0, (uint16_t)plane) < 0)
                                return tiff_source_fail(source, why);
                        tiff_bands_place(source, work, source->n_unit / source->tile_height, &box, plane, out, stride);
                }
        }
        return 0;
}

static int tiff_bands_read_rows(struct tiff_source *source, unsigned plane, uint8_t *work, uint8_t *out, size_t stride,
                                struct why *why) {
        for (uint32_t y = 0; y < source->height; y++) {
                if (TIFFReadScanline(source->tiff, work, y, (uint16_t)plane) < 0)
                        return tiff_source_fail(source, why);
                tiff_bands_place(source, work, 0, &(struct box){ .y = y, .width = source->width, .height = 1 }, plane,
                                 out, stride);
        }
        return 0;
}

int tiff_bands_read(struct tiff_source *source, uint8_t *work, uint8_t *out, size_t stride, struct why *why) {
        unsigned n_planes = source->is_separate ? source->kind.n_samples : 1;
        int r = 0;

        for (unsigned plane = 0; plane < n_planes && r == 0; plane++)
                r = source->is_tiled ? tiff_bands_read_tiles(source, plane, work, out, stride, why)
                                     : tiff_bands_read_rows(source, plane, work, out, stride, why);
        return r;
}
