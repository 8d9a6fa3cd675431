/* augment/warp/grid.c: where torch's grid_sample() finds the nearest pixel. float32 throughout: each operation of these
 * rounds, in torch's sequence. The middle of a pixel is counted from the picture's middle (affine) or from its corner
 * (perspective); the grid goes from -1 to 1. */
#include <math.h>

#include "daemon/augment/warp/warp_rows.h"

/* A position of the grid, as the number of a pixel of `length`; halves go to the even one. torch's code for CPUs with
 * vectors fuses the product and the subtraction, both of which are exact in float64. */
static double grid_pixel_of(float position, uint32_t length) {
        return (double)rintf((float)((double)(position + 1.0f) * ((double)length / 2.0) - 0.5));
}

static float grid_weighed(const float *by, float x, float y) {
        return x * by[0] + y * by[1] + by[2];
}

void warp_grid(const struct warp *warp, const struct view *source, const struct canvas *canvas, uint32_t x, uint32_t y,
               uint32_t n, double *ret_x, double *ret_y) {
        bool is_affine = warp->kind == WARP_GRID_AFFINE;
        float half[2] = { 0.5f * (float)source->width, 0.5f * (float)source->height }, by[2][3], distance[3];
        float from_x = is_affine ? (1.0f - (float)canvas->width) * 0.5f : 0.5f,
              from_y = is_affine ? (1.0f - (float)canvas->height) * 0.5f : 0.5f;

        for (unsigned i = 0; i < 6; i++)
                by[i / 3][i % 3] = (float)warp->coefficients[i] / half[i / 3];
        distance[0] = (float)warp->coefficients[6];
        distance[1] = (float)warp->coefficients[7];
        distance[2] = 1;
        for (uint32_t i = 0; i < n; i++) {
                float at_x = from_x + (float)(x + i), at_y = from_y + (float)y;
                float shown_x = grid_weighed(by[0], at_x, at_y), shown_y = grid_weighed(by[1], at_x, at_y);

                if (!is_affine) {
                        float by_distance = grid_weighed(distance, at_x, at_y);

                        shown_x = shown_x / by_distance - 1.0f;
                        shown_y = shown_y / by_distance - 1.0f;
                }
                ret_x[i] = grid_pixel_of(shown_x, source->width);
                ret_y[i] = grid_pixel_of(shown_y, source->height);
        }
}
