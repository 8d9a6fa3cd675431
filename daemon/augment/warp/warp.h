/* augment/warp/warp.h: pictures that are turned, sheared, scaled or seen in perspective. Private to this floor.
 *
 * For each pixel of the result a warp says which point of the source is shown there. The results are those of Pillow's
 * Image.transform(), to the bit (src/libImaging/Geometry.c is the reference for them): nearest pixels of an affine warp
 * are found by adding whole numbers with 16 binary digits, everything else is float64, and mixed levels are truncated.
 * Masks are warped as torch does it instead, which has no Pillow for them: by a grid of float32 numbers from -1 to 1.
 */
#pragma once

#include "daemon/augment/canvas.h"
#include "daemon/augment/warp/displace.h"

#include <stdbool.h>

enum warp_kind {
        WARP_NONE,
        WARP_AFFINE,           /* six coefficients */
        WARP_PERSPECTIVE,      /* eight */
        WARP_GRID_AFFINE,      /* torch's; six, which are float32 */
        WARP_GRID_PERSPECTIVE, /* torch's; eight */
        WARP_TURN_LEFT,        /* by a quarter; no coefficients, here as well: */
        WARP_TURN_RIGHT,
        WARP_TURN_OVER, /* by a half */
        WARP_DISPLACE,  /* torch's grid as well, with a displacement for each pixel: displace.h */
};

enum warp_filter {
        WARP_NEAREST,
        WARP_BILINEAR,
        WARP_BICUBIC,
        N_WARP_FILTERS
};

/* Names as in Pillow, in small letters: index = enum warp_filter. */
extern const char *const WARP_FILTER_NAMES[N_WARP_FILTERS];

#define WARP_COEFFICIENTS 8u

/* Point (x, y) of the result, from its top left corner, shows the source's point
 *
 *      (c0 x + c1 y + c2) / (c6 x + c7 y + 1),  (c3 x + c4 y + c5) / (c6 x + c7 y + 1)
 *
 * and an affine warp the dividends alone. A pixel's own point is its middle. */
struct warp {
        enum warp_kind kind;
        enum warp_filter filter; /* of WARP_AFFINE and WARP_PERSPECTIVE; the others choose the nearest pixel */
        bool is_exact;           /* an affine warp finds nearest pixels in float64, as Pillow in pictures of 16 bits */
        uint8_t fill[PIXEL_BYTES]; /* where the source has no such point */
        double coefficients[WARP_COEFFICIENTS];
        struct displacement displacement; /* of WARP_DISPLACE, which has no coefficients */
};

/* Does it mix pixels? */
static inline bool warp_is_mixing(const struct warp *warp) {
        return (warp->kind == WARP_AFFINE || warp->kind == WARP_PERSPECTIVE) && warp->filter != WARP_NEAREST;
}

/* Bytes that a warp needs beside its source and a canvas of this size. */
uint64_t warp_extra_bytes(const struct warp *warp, uint32_t width, uint32_t height);

/* Writes each pixel of the canvas once, and reads none of it. The two do not overlap. `extra` has that many bytes,
 * aligned as malloc() aligns. */
void warp_run(const struct warp *warp, const struct view *source, const struct canvas *canvas, uint8_t *extra);

/* The same of a warp of the kind WARP_GRID_AFFINE as torchvision does it to a uint8 tensor with the filter bilinear:
 * four pixels are mixed for each point. Points are within 2^30 pixels. Without a fill there is black around the
 * picture. */
void warp_grid_mix(const struct warp *warp, bool is_filled, const struct view *source, const struct canvas *canvas);
