/* augment/warp/warp_rows.h: the loops of warp.c, a file each. */
#pragma once

#include "daemon/augment/warp/warp.h"

#define WARP_AT_ONCE 256u /* pixels of a row: their places stay in the first cache */

static inline const uint8_t *source_at(const struct view *source, uint32_t x, uint32_t y) {
        return source->pixels + y * source->stride + (size_t)x * PIXEL_BYTES;
}

/* A place in the source, or a step to the next one, in units of 1/65536 pixels. */
#define WARP_ONE 65536

struct position {
        int32_t x, y;
};

/* Writes pixels that all lie within the source, from `at` on: as many of n as there are instructions for. Returns how
 * many; 0 without AVX2. The others must still be written: bytes of the next one may be overwritten. */
uint32_t warp_fixed_avx2(const struct view *source, struct position at, struct position step, uint32_t n, uint8_t *out);

/* n pixels of the fill. */
void warp_fill(const struct warp *warp, uint8_t *pixels, size_t n);

/* Nearest pixels of an affine warp, as Pillow finds them without float64. False: it would not, and nothing is done. */
bool warp_fixed(const struct warp *warp, const struct view *source, const struct canvas *canvas);

/* The same if the picture is only moved and scaled along its sides. */
void warp_scaled(const struct warp *warp, const struct view *source, const struct canvas *canvas);

/* Nearest pixels of an affine warp which starts in float64 and adds. */
void warp_added(const struct warp *warp, const struct view *source, const struct canvas *canvas);

/* Pixels of the source for n pixels of row y, from x on, that a grid shows: numbers rounded to whole ones. */
void warp_grid(const struct warp *warp, const struct view *source, const struct canvas *canvas, uint32_t x, uint32_t y,
               uint32_t n, double *ret_x, double *ret_y);

/* Mixes n pixels, whose points are given. */
void warp_mix(const struct warp *warp, const struct view *source, const double *x, const double *y, uint32_t n,
              uint8_t *out);

/* The pixels around a point along one axis: `first` is the one before it, at most half a pixel outside. */
struct warp_around {
        int32_t first;
        double share; /* of the next one */
};

static inline struct warp_around warp_around(double point) {
        double before = point - 0.5;
        int32_t first = (int32_t)before;

        first -= (double)first > before;
        return (struct warp_around){ .first = first, .share = before - first };
}

static inline uint32_t warp_clipped(int32_t at, uint32_t length) {
        return at < 0 ? 0 : at < (int32_t)length ? (uint32_t)at : length - 1;
}

static inline bool warp_shows(const struct view *source, double x, double y) {
        return x >= 0 && x < source->width && y >= 0 && y < source->height;
}

/* Mixes the first of n pixels, three channels at once, up to one for which it would read after the source. Returns how
 * many; 0 without AVX2. */
uint32_t warp_mix_avx2(const struct warp *warp, const struct view *source, const double *x, const double *y, uint32_t n,
                       uint8_t *out);

#define WARP_EIGHT 8u

/* As many of the first pixels of warp_grid_mix() as there are instructions for, by eights, up to eight for which it
 * would read after the source. Returns how many; 0 without AVX2 and FMA. */
uint32_t warp_grid_mix_avx2(const struct warp *warp, bool is_filled, const struct view *source, const float *x,
                            const float *y, uint32_t n, uint8_t *out);

/* Turns by a quarter or a half. */
void warp_turn(const struct warp *warp, const struct view *source, const struct canvas *canvas);

/* Moves each pixel by its own displacement. */
void warp_displace(const struct warp *warp, const struct view *source, const struct canvas *canvas, uint8_t *extra);
