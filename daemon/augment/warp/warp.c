#include "daemon/augment/warp/warp.h"

#include <string.h>

#include "daemon/augment/operations/wide.h"
#include "daemon/augment/warp/warp_rows.h"

const char *const WARP_FILTER_NAMES[N_WARP_FILTERS] = {
        [WARP_NEAREST] = "nearest",
        [WARP_BILINEAR] = "bilinear",
        [WARP_BICUBIC] = "bicubic",
};

void warp_fill(const struct warp *warp, uint8_t *pixels, size_t n) {
        const uint8_t *fill = warp->fill;

        if (fill[0] == fill[1] && fill[0] == fill[2]) {
                memset(pixels, fill[0], n * PIXEL_BYTES);
                return;
        }
        for (size_t i = 0; i < n; i++)
                memcpy(pixels + i * PIXEL_BYTES, fill, PIXEL_BYTES);
}

/* ---- points of float64 ----------------------------------------------------------------------------------------- */

/* Along a row of the result, from pixel x on; the last pixel has a number below 2^31. */
static ALWAYS_INLINE void find_points_loop(const double *c, uint32_t x, uint32_t y, uint32_t n, double *restrict ret_x,
                                           double *restrict ret_y) {
        double middle_y = y + 0.5;

        for (uint32_t i = 0; i < n; i++) {
                double middle_x = (double)(int32_t)(x + i) + 0.5;

                ret_x[i] = c[0] * middle_x + c[1] * middle_y + c[2];
                ret_y[i] = c[3] * middle_x + c[4] * middle_y + c[5];
        }
}

WIDE(find_points, (const double *c, uint32_t x, uint32_t y, uint32_t n, double *ret_x, double *ret_y),
     (c, x, y, n, ret_x, ret_y))

static ALWAYS_INLINE void divide_points_loop(const double *c, uint32_t x, uint32_t y, uint32_t n,
                                             double *restrict ret_x, double *restrict ret_y) {
        double middle_y = y + 0.5;

        for (uint32_t i = 0; i < n; i++) {
                double distance = c[6] * ((double)(int32_t)(x + i) + 0.5) + c[7] * middle_y + 1;

                ret_x[i] /= distance;
                ret_y[i] /= distance;
        }
}

WIDE(divide_points, (const double *c, uint32_t x, uint32_t y, uint32_t n, double *ret_x, double *ret_y),
     (c, x, y, n, ret_x, ret_y))

static void warp_points(const struct warp *warp, uint32_t x, uint32_t y, uint32_t n, double *ret_x, double *ret_y) {
        find_points(warp->coefficients, x, y, n, ret_x, ret_y);
        if (warp->kind == WARP_PERSPECTIVE)
                divide_points(warp->coefficients, x, y, n, ret_x, ret_y);
}

/* Pixels in which the points lie. NaN lies nowhere. */
static void warp_choose(const struct warp *warp, const struct view *source, const double *x, const double *y,
                        uint32_t n, uint8_t *out) {
        for (uint32_t i = 0; i < n; i++, out += PIXEL_BYTES) {
                bool is_within = x[i] >= 0 && x[i] < source->width && y[i] >= 0 && y[i] < source->height;

                memcpy(out, is_within ? source_at(source, (uint32_t)x[i], (uint32_t)y[i]) : warp->fill, PIXEL_BYTES);
        }
}

static void run_points(const struct warp *warp, const struct view *source, const struct canvas *canvas) {
        bool is_grid = warp->kind == WARP_GRID_AFFINE || warp->kind == WARP_GRID_PERSPECTIVE;
        double points_x[WARP_AT_ONCE], points_y[WARP_AT_ONCE];

        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++)
                for (uint32_t x = 0; x < canvas->width; x += WARP_AT_ONCE) {
                        uint32_t n = canvas->width - x < WARP_AT_ONCE ? canvas->width - x : WARP_AT_ONCE;

                        if (is_grid)
                                warp_grid(warp, source, canvas, x, y, n, points_x, points_y);
                        else
                                warp_points(warp, x, y, n, points_x, points_y);
                        if (warp_is_mixing(warp))
                                warp_mix(warp, source, points_x, points_y, n, canvas_at(canvas, x, y));
                        else
                                warp_choose(warp, source, points_x, points_y, n, canvas_at(canvas, x, y));
                }
}

/* ---- all kinds -------------------------------------------------------------------------------------------------- */

static void run_affine(const struct warp *warp, const struct view *source, const struct canvas *canvas) {
        const double *c = warp->coefficients;

        if (warp_is_mixing(warp) || warp->is_exact)
                run_points(warp, source, canvas);
        else if (c[1] == 0 && c[3] == 0)
                warp_scaled(warp, source, canvas);
        else if (!warp_fixed(warp, source, canvas))
                warp_added(warp, source, canvas);
}

uint64_t warp_extra_bytes(const struct warp *warp, uint32_t width, uint32_t height) {
        (void)height;
        return warp->kind == WARP_DISPLACE ? displace_bytes(&warp->displacement, width) : 0;
}

void warp_run(const struct warp *warp, const struct view *source, const struct canvas *canvas, uint8_t *extra) {
        switch (warp->kind) {
        case WARP_AFFINE:
                run_affine(warp, source, canvas);
                return;
        case WARP_TURN_LEFT:
        case WARP_TURN_RIGHT:
        case WARP_TURN_OVER:
                warp_turn(warp, source, canvas);
                return;
        case WARP_DISPLACE:
                warp_displace(warp, source, canvas, extra);
                return;
        default:
                run_points(warp, source, canvas);
        }
}
