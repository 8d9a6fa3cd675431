/* base/box.h: parts of a picture, for all floors.
 *
 * Pictures are RGB, 8 bits a sample, 3 bytes a pixel, rows from top to bottom. decode and augment never include each
 * other; these two structs are what passes between them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PIXEL_BYTES 3u

/* A rectangle of whole pixels, seen from the top left corner of a picture. */
struct box {
        uint32_t x, y, width, height;
};

/* Pixels that somebody else owns: pixel (x, y) is at pixels + y * stride + x * PIXEL_BYTES. Nothing outside these
 * `height` rows of `width` pixels may be read, except the gaps between the rows. */
struct view {
        const uint8_t *pixels;
        size_t stride; /* bytes from one row to the next */
        uint32_t width, height;
};
