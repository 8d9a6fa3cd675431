/* augment/warp/rows.h: the loops of warp.c, a file each. */
#pragma once

#include "daemon/augment/warp/warp.h"

#define WARP_AT_ONCE 256u /* pixels of a row: their places stay in the first cache */

static inline const uint8_t *source_at(const struct view *source, uint32_t x, uint32_t y) {
        return source->pixels + y * source->stride + (size_t)x * PIXEL_BYTES;
}

/* n pixels of the fill. */
void warp_fill(const struct warp *warp, uint8_t *pixels, size_t n);

/* Nearest pixels of an affine warp, as Pillow finds them without float64. False: it would not, and nothing is done. */
bool warp_fixed(const struct warp *warp, const struct view *source, const struct canvas *canvas);

/* The same if the picture is only moved and scaled along its sides. */
void warp_scaled(const struct warp *warp, const struct view *source, const struct canvas *canvas);

/* Nearest pixels of an affine warp which starts in float64 and adds. */
void warp_added(const struct warp *warp, const struct view *source, const struct canvas *canvas);

/* Points of the source for n pixels of row y, from x on. */
void warp_points(const struct warp *warp, uint32_t x, uint32_t y, uint32_t n, double *ret_x, double *ret_y);

/* The same of a grid: of pixels, which are the numbers rounded to whole ones. */
void warp_grid(const struct warp *warp, const struct view *source, const struct canvas *canvas, uint32_t x, uint32_t y,
               uint32_t n, double *ret_x, double *ret_y);

/* Mixes n pixels, whose points are given. */
void warp_mix(const struct warp *warp, const struct view *source, const double *x, const double *y, uint32_t n,
              uint8_t *out);

/* Turns by a quarter or a half. */
void warp_turn(const struct warp *warp, const struct view *source, const struct canvas *canvas);
