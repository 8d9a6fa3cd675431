/* unit/test_elastic.c: displacements of single points, which boxes and points take, beside sums of float64 in two
 * dimensions, and beside what pixels do. That pixels are torchvision's is shown by test_transforms.py. */
#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/motions.h"
#include "daemon/augment/noise.h"
#include "daemon/augment/operations/mirror.h"
#include "daemon/augment/warp/warp.h"
#include "tests/support/suite.h"

#define WIDTH  61u
#define HEIGHT 37u

static const struct displacement ELASTICS[] = {
        { .alpha = { 50, 50 }, .sigma = { 5, 5 }, .seeds = { 1, 2 } },
        { .alpha = { 200, 10 }, .sigma = { 0.7f, 3 }, .seeds = { 3, 4 } },
        { .alpha = { 1, 900 }, .sigma = { 9, 0.2f }, .seeds = { 1ull << 60, UINT64_MAX } },
        { .alpha = { 0, 0 }, .sigma = { 1, 1 }, .seeds = { 5, 6 } },
};
#define N_ELASTICS (sizeof(ELASTICS) / sizeof(ELASTICS[0]))

/* All numbers of one axis. */
static double *draw(uint64_t seed) {
        double *numbers = malloc(WIDTH * HEIGHT * sizeof(*numbers));
        struct dlp_philox philox;

        noise_begin(seed, &philox);
        for (size_t i = 0; i < WIDTH * HEIGHT; i++)
                numbers[i] = (double)dlp_philox_f32(&philox) * 2 - 1;
        return numbers;
}

/* In pixels. */
static double displacement(const struct displacement *elastic, unsigned along, const double *numbers, uint32_t x,
                           uint32_t y) {
        int reach = ((int)(8 * elastic->sigma[along] + 1) | 1) / 2;
        double sum = 0, weights = 0;

        for (int dy = -reach; dy <= reach; dy++)
                for (int dx = -reach; dx <= reach; dx++) {
                        double far_x = dx / (double)elastic->sigma[ALONG_X],
                               far_y = dy / (double)elastic->sigma[ALONG_Y];
                        double weight = exp(-(far_x * far_x + far_y * far_y) / 2);
                        size_t row = mirrored((int64_t)y + dy, HEIGHT), column = mirrored((int64_t)x + dx, WIDTH);

                        weights += weight;
                        sum += weight * numbers[row * WIDTH + column];
                }
        return sum / weights * (double)elastic->alpha[along] / 2; /* of a grid from -1 to 1 */
}

START_TEST(a_point_moves_against_the_displacement_of_its_pixel) {
        static const float points[][2] = { { 0, 0 }, { 60.4f, 36.9f }, { 30.99f, 12.01f }, { -7, 500 }, { 59, 1 } };
        const struct displacement *elastic = &ELASTICS[_i];
        double *numbers[] = { draw(elastic->seeds[ALONG_X]), draw(elastic->seeds[ALONG_Y]) };

        for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
                float x = points[i][0], y = points[i][1];
                uint32_t column = (uint32_t)fminf(fmaxf(x, 0), WIDTH - 1),
                         row = (uint32_t)fminf(fmaxf(y, 0), HEIGHT - 1);

                displace_point(elastic, WIDTH, HEIGHT, &x, &y);
                ck_assert_double_eq_tol(x, column - displacement(elastic, ALONG_X, numbers[0], column, row), 1e-3);
                ck_assert_double_eq_tol(y, row - displacement(elastic, ALONG_Y, numbers[1], column, row), 1e-3);
        }
        free(numbers[0]);
        free(numbers[1]);
}
END_TEST

/* A picture whose pixels are their own coordinates: the one that is shown is the one that is displaced there. */
START_TEST(pixels_come_from_where_points_go_on_the_other_side) {
        uint8_t source[HEIGHT][WIDTH][PIXEL_BYTES], out[HEIGHT][WIDTH][PIXEL_BYTES];
        struct view view = { .pixels = source[0][0], .stride = sizeof(source[0]), .width = WIDTH, .height = HEIGHT };
        struct canvas canvas = { .pixels = out[0][0], .stride = sizeof(out[0]), .width = WIDTH, .height = HEIGHT };
        struct warp warp = { .kind = WARP_DISPLACE, .filter = WARP_NEAREST, .fill = { 255, 255, 255 } };
        uint8_t *extra;

        warp.displacement = ELASTICS[_i];
        extra = malloc(warp_extra_bytes(&warp, WIDTH, HEIGHT));
        for (uint32_t y = 0; y < HEIGHT; y++)
                for (uint32_t x = 0; x < WIDTH; x++)
                        memcpy(source[y][x], (const uint8_t[]){ (uint8_t)x, (uint8_t)y, 0 }, PIXEL_BYTES);
        warp_run(&warp, &view, &canvas, extra);
        free(extra);
        for (uint32_t y = 0; y < HEIGHT; y++)
                for (uint32_t x = 0; x < WIDTH; x++) {
                        float to_x = (float)x, to_y = (float)y, from_x, from_y;

                        displace_point(&warp.displacement, WIDTH, HEIGHT, &to_x, &to_y);
                        from_x = 2 * (float)x - to_x;
                        from_y = 2 * (float)y - to_y;
                        if (out[y][x][2] == 255) {
                                ck_assert(from_x < -0.499f || from_y < -0.499f || from_x > WIDTH - 0.501f ||
                                          from_y > HEIGHT - 0.501f);
                                continue;
                        }
                        ck_assert(fabsf(from_x - (float)out[y][x][0]) < 0.501f);
                        ck_assert(fabsf(from_y - (float)out[y][x][1]) < 0.501f);
                }
}
END_TEST

/* The pixel to the right and below of a corner, where that is not whole; the box around all four; within the picture.
 */
START_TEST(a_box_holds_its_four_corners) {
        const float boxes[][4] = { { 3.2f, 4, 20, 30.7f }, { 0, 0, WIDTH, HEIGHT }, { 60, 36, 60, 36 } };

        for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
                float box[4], low_x = INFINITY, low_y = INFINITY, high_x = -INFINITY, high_y = -INFINITY;
                struct motions motions = { .n = 0 };

                for (unsigned corner = 0; corner < 4; corner++) {
                        float x = ceilf(boxes[i][corner % 2 * 2]), y = ceilf(boxes[i][corner / 2 * 2 + 1]);

                        displace_point(&ELASTICS[_i], WIDTH, HEIGHT, &x, &y);
                        low_x = fminf(low_x, x);
                        low_y = fminf(low_y, y);
                        high_x = fmaxf(high_x, x);
                        high_y = fmaxf(high_y, y);
                }
                memcpy(box, boxes[i], sizeof(box));
                motions_displace(&motions, &ELASTICS[_i], WIDTH, HEIGHT);
                motions_apply(&motions, (uint8_t *)box, 1, NULL);
                ck_assert_float_eq(box[0], fminf(fmaxf(low_x, 0), WIDTH));
                ck_assert_float_eq(box[1], fminf(fmaxf(low_y, 0), HEIGHT));
                ck_assert_float_eq(box[2], fminf(fmaxf(high_x, 0), WIDTH));
                ck_assert_float_eq(box[3], fminf(fmaxf(high_y, 0), HEIGHT));
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "points", a_point_moves_against_the_displacement_of_its_pixel, N_ELASTICS },
                { "points", pixels_come_from_where_points_go_on_the_other_side, N_ELASTICS },
                { "points", a_box_holds_its_four_corners, N_ELASTICS },
        };

        return suite_run("elastic", rows, sizeof(rows) / sizeof(rows[0]));
}
