/* augment/warp/grid_mix.c: mixes the four pixels around a point as torch's grid_sample() does on CPUs with vectors, and
 * torchvision around it: in float32, with the multiplications and additions fused that are fused there, and rounded to
 * the nearest level, halves to the even one.
 *
 * What is outside of the picture is 0. A fill is mixed in afterwards, by the share of the picture, which therefore
 * counts twice at the edges: no fill and one of 0 give different pixels there. */
#include <math.h>
#include <string.h>

#include "daemon/augment/operations/wide.h"
#include "daemon/augment/warp/warp_rows.h"

/* What a row of the grid is computed from. */
struct grid {
        float along_x, along_y, start; /* of the matrix, by half a side of the source */
        float half;
};

/* Positions from the middle of the first pixel, whose number is 0. `distance` is the row's from the canvas's middle.
 * The product with `half` and the subtraction are fused in torch; both are exact in float64. */
static ALWAYS_INLINE void find_positions_loop(const struct grid *grid, float from, int32_t x, float distance,
                                              uint32_t n, float *restrict ret_positions) {
        float constant = distance * grid->along_y;

        for (uint32_t i = 0; i < n; i++) {
                float at = from + (float)(x + (int32_t)i);
                float shown = at * grid->along_x + constant + grid->start;

                ret_positions[i] = (float)((double)(shown + 1.0f) * (double)grid->half - 0.5);
        }
}

WIDE(find_positions, (const struct grid *grid, float from, int32_t x, float distance, uint32_t n, float *ret_positions),
     (grid, from, x, distance, n, ret_positions))

static struct grid grid_mix_grid_of(const double *coefficients, uint32_t length) {
        float half_side = 0.5f * (float)length;

        return (struct grid){
                .along_x = (float)coefficients[0] / half_side,
                .along_y = (float)coefficients[1] / half_side,
                .start = (float)coefficients[2] / half_side,
                .half = (float)length / 2.0f,
        };
}

/* ---- one pixel ------------------------------------------------------------------------------------------------- */

static const uint8_t NONE[PIXEL_BYTES];

static bool grid_mix_is_within(const struct view *source, int32_t x, int32_t y) {
        return x >= 0 && x < (int32_t)source->width && y >= 0 && y < (int32_t)source->height;
}

static float grid_mix_sum_of_four(const float values[4], const float shares[4]) {
        float sum = values[0] * shares[0];

        for (unsigned i = 1; i < 4; i++)
                sum = fmaf(values[i], shares[i], sum);
        return sum;
}

static void grid_mix_mix_one(const struct warp *warp, bool is_filled, const struct view *source, float x, float y,
                             uint8_t *out) {
        float left = floorf(x), above = floorf(y), east = x - left, west = 1.0f - east, south = y - above,
              north = 1.0f - south;
        const float shares[4] = { north * west, north * east, south * west, south * east };
        const uint8_t *pixels[4];
        float shown[4], share;

        for (int i = 0; i < 4; i++) {
                int32_t column = (int32_t)left + i % 2, row = (int32_t)above + i / 2;
                bool is_shown = grid_mix_is_within(source, column, row);

                pixels[i] = is_shown ? source_at(source, (uint32_t)column, (uint32_t)row) : NONE;
                shown[i] = is_shown ? 1 : 0;
        }
        share = grid_mix_sum_of_four(shown, shares);
        for (unsigned c = 0; c < PIXEL_BYTES; c++) {
                const float levels[4] = { pixels[0][c], pixels[1][c], pixels[2][c], pixels[3][c] };
                float mixed = grid_mix_sum_of_four(levels, shares), fill = warp->fill[c];

                if (is_filled)
                        mixed = (mixed - fill) * share + fill;
                out[c] = (uint8_t)lrintf(mixed);
        }
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

static void grid_mix_mix_row(const struct warp *warp, bool is_filled, const struct view *source, const float *x,
                             const float *y, uint32_t n, uint8_t *out) {
        for (uint32_t i = 0; i < n; i++) {
                i += warp_grid_mix_avx2(warp, is_filled, source, x + i, y + i, n - i, out + (size_t)i * PIXEL_BYTES);
                for (uint32_t end = i + WARP_EIGHT < n ? i + WARP_EIGHT : n; i < end; i++)
                        grid_mix_mix_one(warp, is_filled, source, x[i], y[i], out + (size_t)i * PIXEL_BYTES);
                i--;
        }
}

void warp_grid_mix(const struct warp *warp, bool is_filled, const struct view *source, const struct canvas *canvas) {
        struct grid across = grid_mix_grid_of(warp->coefficients, source->width),
                    down = grid_mix_grid_of(warp->coefficients + 3, source->height);
        float from_x = (1.0f - (float)canvas->width) * 0.5f, from_y = (1.0f - (float)canvas->height) * 0.5f;
        float xs[WARP_AT_ONCE], ys[WARP_AT_ONCE];

        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++)
                for (uint32_t x = 0; x < canvas->width; x += WARP_AT_ONCE) {
                        uint32_t n = canvas->width - x < WARP_AT_ONCE ? canvas->width - x : WARP_AT_ONCE;
                        float distance = from_y + (float)y;

                        find_positions(&across, from_x, (int32_t)x, distance, n, xs);
                        find_positions(&down, from_x, (int32_t)x, distance, n, ys);
                        grid_mix_mix_row(warp, is_filled, source, xs, ys, n, canvas_at(canvas, x, y));
                }
}
