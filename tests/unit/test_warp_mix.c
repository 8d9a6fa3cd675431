/* unit/test_warp_mix.c: points that are mixed many at once beside Pillow's sums of float64, in pictures of all kinds, and
 * above all where a result lies on a whole number or beside one. */
#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/warp/warp_rows.h"
#include "proto/order/philox.h"
#include "tests/support/suite.h"

#define SIDE   23u
#define N_MAX  67u
#define N_EACH 30000u

/* A picture that ends where its memory ends, which the sanitizers then watch. */
static void draw_picture(struct dlp_philox *philox, struct view *ret_view) {
        uint32_t width = 1 + dlp_philox_below(philox, SIDE), height = 1 + dlp_philox_below(philox, SIDE);
        size_t stride = (size_t)width * PIXEL_BYTES + dlp_philox_below(philox, 5);
        size_t n_bytes = stride * (height - 1) + (size_t)width * PIXEL_BYTES;
        uint8_t *pixels = malloc(n_bytes);
        unsigned kind = dlp_philox_below(philox, 4); /* noise, black and white, two neighbours, rows of one colour */

        for (size_t i = 0; i < n_bytes; i++) {
                uint32_t word = dlp_philox_u32(philox);

                pixels[i] = kind == 0   ? (uint8_t)word
                            : kind == 1 ? (word & 1 ? 255 : 0)
                            : kind == 2 ? (uint8_t)(77 + (word & 1))
                                        : (uint8_t)(i / stride * 53);
        }
        *ret_view = (struct view){ .pixels = pixels, .stride = stride, .width = width, .height = height };
}

/* On a fine grid, on one of a few places between pixels, or anywhere; in and out of the picture; rarely not a number.
 */
static double draw_point(struct dlp_philox *philox, uint32_t length) {
        double point = dlp_philox_f64(philox) * (length + 4.0) - 2;

        switch (dlp_philox_below(philox, 20)) {
        case 0:
                return NAN;
        case 1:
                return dlp_philox_below(philox, 2) ? 1e300 : -1e300;
        case 2:
        case 3:
        case 4:
                return rint(point * 4) / 4;
        case 5:
        case 6:
                return rint(point * 255) / 255;
        case 7:
                return nextafter(rint(point * 2) / 2, dlp_philox_below(philox, 2) ? 9 : -9);
        default:
                return point;
        }
}

static double between(double from, double to, double share) {
        return from + (to - from) * share;
}

static void expect(const struct warp *warp, const struct view *source, double x, double y, uint8_t *ret_pixel) {
        struct warp_around across, down;
        uint32_t columns[2], rows[2];

        memcpy(ret_pixel, warp->fill, PIXEL_BYTES);
        if (!warp_shows(source, x, y))
                return;
        across = warp_around(x);
        down = warp_around(y);
        for (int32_t i = 0; i < 2; i++) {
                columns[i] = warp_clipped(across.first + i, source->width);
                rows[i] = warp_clipped(down.first + i, source->height);
        }
        for (uint32_t c = 0; c < PIXEL_BYTES; c++) {
                double upper = between(source_at(source, columns[0], rows[0])[c],
                                       source_at(source, columns[1], rows[0])[c], across.share);
                double lower = between(source_at(source, columns[0], rows[1])[c],
                                       source_at(source, columns[1], rows[1])[c], across.share);

                ret_pixel[c] = (uint8_t)(int)between(upper, lower, down.share);
        }
}

START_TEST(many_points_are_mixed_as_one_by_one) {
        const struct warp warp = { .kind = WARP_AFFINE, .filter = WARP_BILINEAR, .fill = { 9, 80, 200 } };
        double x[N_MAX], y[N_MAX];
        struct dlp_philox philox;

        dlp_philox_init(&philox, 17, 0, (uint64_t)_i, 0);
        for (uint32_t round = 0; round < N_EACH; round++) {
                uint32_t n = 1 + dlp_philox_below(&philox, N_MAX);
                uint8_t *out = malloc((size_t)n * PIXEL_BYTES), expected[PIXEL_BYTES];
                bool is_row = dlp_philox_below(&philox, 2);
                struct view source;

                draw_picture(&philox, &source);
                for (uint32_t i = 0; i < n; i++) {
                        x[i] = draw_point(&philox, source.width);
                        y[i] = is_row && i > 0 ? y[0] : draw_point(&philox, source.height);
                }
                warp_mix(&warp, &source, x, y, n, out);
                for (uint32_t i = 0; i < n; i++) {
                        const uint8_t *got = out + (size_t)i * PIXEL_BYTES;

                        expect(&warp, &source, x[i], y[i], expected);
                        if (memcmp(got, expected, PIXEL_BYTES) != 0)
                                ck_abort_msg(
                                        "round %u, point %u of %u, %.17g %.17g of %u x %u: %u %u %u, expected %u %u %u",
                                        round, i, n, x[i], y[i], source.width, source.height, got[0], got[1], got[2],
                                        expected[0], expected[1], expected[2]);
                }
                free((uint8_t *)source.pixels);
                free(out);
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = { { "bilinear", many_points_are_mixed_as_one_by_one, 4 } };

        return suite_run("warp_mix", rows, sizeof(rows) / sizeof(rows[0]));
}
