#include "daemon/augment/warp/warp_moves.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.141592653589793;

/* As Python's math.radians(). */
static double radians(double degrees) {
        return degrees * (PI / 180.0);
}

/* ---- affine ------------------------------------------------------------------------------------------------------ */

/* The matrix without its scale: turned and sheared. */
struct shape {
        double a, b, c, d;
};

static struct shape shape_of(const struct affine *affine) {
        double turn = radians(affine->angle), shear_x = radians(affine->shear_x), shear_y = radians(affine->shear_y);
        double cos_y = cos(shear_y), tan_x = tan(shear_x), rest = turn - shear_y;
        struct shape shape;

        shape.a = cos(rest) / cos_y;
        shape.b = -(shape.a * tan_x + sin(turn));
        shape.c = sin(rest) / cos_y;
        shape.d = cos(turn) - shape.c * tan_x;
        return shape;
}

void affine_inverse(const struct affine *affine, double center_x, double center_y, double *ret_matrix) {
        struct shape shape = shape_of(affine);
        double moved_x = center_x + affine->translate_x, moved_y = center_y + affine->translate_y;
        double *m = ret_matrix;

        m[0] = shape.d / affine->scale;
        m[1] = -shape.b / affine->scale;
        m[3] = -shape.c / affine->scale;
        m[4] = shape.a / affine->scale;
        m[2] = 0.0 + (center_x - m[0] * moved_x - m[1] * moved_y);
        m[5] = 0.0 + (center_y - m[3] * moved_x - m[4] * moved_y);
}

/* From points of the source to points of the result. */
static void forward_of(const struct affine *affine, double center_x, double center_y, float *ret_matrix) {
        struct shape shape = shape_of(affine);
        double moved_x = center_x + affine->translate_x, moved_y = center_y + affine->translate_y;
        double m[6] = { shape.a * affine->scale, shape.b * affine->scale, 0,
                        shape.c * affine->scale, shape.d * affine->scale, 0 };

        m[2] = 0.0 + (moved_x - m[0] * center_x - m[1] * center_y);
        m[5] = 0.0 + (moved_y - m[3] * center_x - m[4] * center_y);
        for (unsigned i = 0; i < 6; i++)
                ret_matrix[i] = (float)m[i];
}

/* Where boxes and points go. */
static void note_affine(const struct fold *fold, const struct affine *affine, bool expand, uint32_t new_width,
                        uint32_t new_height) {
        double width = fold_width(fold), height = fold_height(fold);
        double x = affine->center.is_given ? affine->center.x : width * 0.5,
               y = affine->center.is_given ? affine->center.y : height * 0.5;
        float matrix[6];

        forward_of(affine, x, y, matrix);
        motions_affine(fold->motions, matrix, expand, fold_width(fold), fold_height(fold), new_width, new_height);
}

/* The coefficients of a mask's grid, which counts from the picture's middle. */
static void warp_moves_grid_of(const struct fold *fold, const struct affine *affine, struct warp *warp) {
        double width = fold_width(fold), height = fold_height(fold);
        double x = affine->center.is_given ? affine->center.x - width * 0.5 : 0.0,
               y = affine->center.is_given ? affine->center.y - height * 0.5 : 0.0;

        warp->kind = WARP_GRID_AFFINE;
        affine_inverse(affine, x, y, warp->coefficients);
}

static struct warp warp_with(const struct warp_look *look, enum warp_kind kind) {
        struct warp warp = { .kind = kind, .filter = look->filter };

        memcpy(warp.fill, look->fill, PIXEL_BYTES);
        return warp;
}

/* Every pixel shows itself, whatever the filter. Colours that are multiplied with their alpha for one change all the
 * same. */
static bool is_identity(const struct fold *fold, const struct warp *warp) {
        const double *c = warp->coefficients;

        if (warp_is_mixing(warp) && pixel_format_has_alpha(&fold->geometry->conversion->format))
                return false;
        return warp->kind == WARP_AFFINE && c[0] == 1 && c[1] == 0 && c[2] == 0 && c[3] == 0 && c[4] == 1 && c[5] == 0;
}

int fold_affine(struct fold *fold, const struct affine *affine, const struct warp_look *look, struct why *why) {
        uint32_t width = fold_width(fold), height = fold_height(fold);
        struct warp warp = warp_with(look, WARP_AFFINE);

        if (fold->is_mask)
                warp_moves_grid_of(fold, affine, &warp);
        else if (affine->center.is_given)
                affine_inverse(affine, affine->center.x, affine->center.y, warp.coefficients);
        else
                affine_inverse(affine, width * 0.5, height * 0.5, warp.coefficients);
        note_affine(fold, affine, false, width, height);
        if (is_identity(fold, &warp))
                return 0;
        return fold_warp(fold, &warp, width, height, why);
}

int fold_matrix(struct fold *fold, const double matrix[6], const struct warp_look *look, struct why *why) {
        struct warp warp = warp_with(look, WARP_AFFINE);

        assert(!fold->is_mask && !fold->motions);
        memcpy(warp.coefficients, matrix, 6 * sizeof(*matrix));
        if (is_identity(fold, &warp))
                return 0;
        return fold_warp(fold, &warp, fold_width(fold), fold_height(fold), why);
}

/* ---- rotation ---------------------------------------------------------------------------------------------------- */

/* As Python's angle % 360. */
static double within_a_turn(double angle) {
        double rest = fmod(angle, 360.0);

        if (rest == 0)
                return 0;
        return rest < 0 ? rest + 360.0 : rest;
}

/* As Python's round(number, 15): the nearest decimal number, as the digits say. */
static double round_15(double number) {
        char digits[40];

        snprintf(digits, sizeof(digits), "%.15f", number);
        return strtod(digits, NULL);
}

static double at_x(const double *m, double x, double y) {
        return m[0] * x + m[1] * y + m[2];
}

static double at_y(const double *m, double x, double y) {
        return m[3] * x + m[4] * y + m[5];
}

/* The canvas on which all corners of a turned picture are, and the matrix with its top left corner. */
static void expand_canvas(double *m, uint32_t *width, uint32_t *height) {
        double w = *width, h = *height, new_width, new_height, x, y;
        double xs[] = { at_x(m, 0, 0), at_x(m, w, 0), at_x(m, w, h), at_x(m, 0, h) };
        double ys[] = { at_y(m, 0, 0), at_y(m, w, 0), at_y(m, w, h), at_y(m, 0, h) };

        new_width = ceil(fmax(fmax(xs[0], xs[1]), fmax(xs[2], xs[3]))) -
                    floor(fmin(fmin(xs[0], xs[1]), fmin(xs[2], xs[3])));
        new_height = ceil(fmax(fmax(ys[0], ys[1]), fmax(ys[2], ys[3]))) -
                     floor(fmin(fmin(ys[0], ys[1]), fmin(ys[2], ys[3])));
        x = at_x(m, -(new_width - w) / 2.0, -(new_height - h) / 2.0);
        y = at_y(m, -(new_width - w) / 2.0, -(new_height - h) / 2.0);
        m[2] = x;
        m[5] = y;
        *width = (uint32_t)new_width;
        *height = (uint32_t)new_height;
}

/* Pillow's matrix, and the canvas. The angle is within a turn. */
static void rotation_of(double angle, bool expand, const struct warp_center *center, uint32_t *width, uint32_t *height,
                        double *ret_matrix) {
        double turn = -radians(angle), x = center->is_given ? center->x : *width / 2.0,
               y = center->is_given ? center->y : *height / 2.0;
        double m[6] = { round_15(cos(turn)), round_15(sin(turn)), 0, round_15(-sin(turn)), round_15(cos(turn)), 0 };
        double middle_x = at_x(m, -x, -y), middle_y = at_y(m, -x, -y);

        m[2] = middle_x + x;
        m[5] = middle_y + y;
        if (expand)
                expand_canvas(m, width, height);
        memcpy(ret_matrix, m, sizeof(m));
}

/* Turns by quarters move pixels only, if the picture fits. */
static enum warp_kind quarter_of(double angle, bool fits) {
        if (angle == 180)
                return WARP_TURN_OVER;
        if (fits && angle == 90)
                return WARP_TURN_LEFT;
        return fits && angle == 270 ? WARP_TURN_RIGHT : WARP_NONE;
}

int fold_rotate(struct fold *fold, double angle, bool expand, const struct warp_center *center,
                const struct warp_look *look, struct why *why) {
        struct affine backwards = { .angle = -angle, .scale = 1, .center = *center };
        uint32_t width = fold_width(fold), height = fold_height(fold);
        double within = within_a_turn(angle);
        bool fits = expand || width == height;
        struct warp warp = warp_with(look, center->is_given ? WARP_NONE : quarter_of(within, fits));

        if (within == 0 && !center->is_given) { /* boxes and points keep their bits, too */
                note_affine(fold, &backwards, expand, width, height);
                return 0;
        }
        if (warp.kind == WARP_TURN_LEFT || warp.kind == WARP_TURN_RIGHT) {
                width = fold_height(fold);
                height = fold_width(fold);
        } else if (warp.kind == WARP_NONE) {
                warp.kind = WARP_AFFINE;
                rotation_of(within, expand, center, &width, &height, warp.coefficients);
        }
        if (fold->is_mask && warp.kind == WARP_AFFINE) {
                backwards.angle = -within;
                warp_moves_grid_of(fold, &backwards, &warp);
                backwards.angle = -angle;
        }
        note_affine(fold, &backwards, expand, width, height);
        return fold_warp(fold, &warp, width, height, why);
}

/* ---- perspective ------------------------------------------------------------------------------------------------- */

/* Products of four sides: below 2^110, if the picture is within the limits of a worker's memory. */
__extension__ typedef __int128 wide;

/* The coefficients are quotients of whole numbers. The four corners are what a perspective makes of the unit square's
 * (Heckbert, Fundamentals of texture mapping, 1989), and the inverse of its matrix, times that of the square's size, is
 * wanted; all numbers are multiplied by one that cancels. torchvision solves eight equations in float64 and rounds the
 * solution to float32, which is this number in all tries, or at most 1e-15 where this is 0. */
static bool solve(const struct corner corners[4], uint32_t width, uint32_t height, double *ret_coefficients) {
        int64_t x0 = corners[0].x, x1 = corners[1].x, x2 = corners[2].x, x3 = corners[3].x;
        int64_t y0 = corners[0].y, y1 = corners[1].y, y2 = corners[2].y, y3 = corners[3].y;
        int64_t right_x = x1 - x2, lower_x = x3 - x2, sum_x = x0 - x1 + x2 - x3;
        int64_t right_y = y1 - y2, lower_y = y3 - y2, sum_y = y0 - y1 + y2 - y3;
        wide i = right_x * lower_y - lower_x * right_y;
        wide g = sum_x * lower_y - lower_x * sum_y, h = right_x * sum_y - sum_x * right_y;
        wide a = i * (x1 - x0) + g * x1, b = i * (x3 - x0) + h * x3, c = i * x0;
        wide d = i * (y1 - y0) + g * y1, e = i * (y3 - y0) + h * y3, f = i * y0;
        wide divisor = a * e - b * d;
        wide dividends[WARP_COEFFICIENTS] = { e * i - f * h, c * h - b * i, b * f - c * e, f * g - d * i,
                                              a * i - c * g, c * d - a * f, d * h - e * g, b * g - a * h };
        double *k = ret_coefficients;

        if (divisor == 0 || width == 1 || height == 1)
                return false;
        for (unsigned n = 0; n < WARP_COEFFICIENTS; n++) {
                wide side = n < 3 ? width - 1 : n < 6 ? height - 1 : 1;

                k[n] = (double)(float)((double)(dividends[n] * side) / (double)divisor);
        }
        return k[0] * k[4] - k[1] * k[3] != 0;
}

/* Where boxes and points go: the inverse, which torchvision computes of the coefficients in float32. */
static void note_perspective(const struct fold *fold, const double *k) {
        double divisor = k[0] * k[4] - k[1] * k[3];
        float matrix[WARP_COEFFICIENTS] = {
                (float)((k[4] - k[5] * k[7]) / divisor),         (float)((-k[1] + k[2] * k[7]) / divisor),
                (float)((k[1] * k[5] - k[2] * k[4]) / divisor),  (float)((-k[3] + k[5] * k[6]) / divisor),
                (float)((k[0] - k[2] * k[6]) / divisor),         (float)((-k[0] * k[5] + k[2] * k[3]) / divisor),
                (float)((-k[4] * k[6] + k[3] * k[7]) / divisor), (float)((-k[0] * k[7] + k[1] * k[6]) / divisor),
        };

        motions_perspective(fold->motions, matrix, fold_width(fold), fold_height(fold));
}

int fold_perspective(struct fold *fold, const struct corner corners[4], const struct warp_look *look, struct why *why) {
        uint32_t width = fold_width(fold), height = fold_height(fold);
        struct warp warp = warp_with(look, fold->is_mask ? WARP_GRID_PERSPECTIVE : WARP_PERSPECTIVE);
        int r = fold_check(fold, why);

        if (r < 0)
                return r;
        if (!solve(corners, width, height, warp.coefficients))
                return 0;
        note_perspective(fold, warp.coefficients);
        return fold_warp(fold, &warp, width, height, why);
}

/* ---- displacement ------------------------------------------------------------------------------------------------ */

int fold_displace(struct fold *fold, const struct displacement *displacement, const struct warp_look *look,
                  struct why *why) {
        uint32_t width = fold_width(fold), height = fold_height(fold);
        struct warp warp = warp_with(look, WARP_DISPLACE);

        warp.displacement = *displacement;
        if (fold->is_mask)
                warp.filter = WARP_NEAREST;
        motions_displace(fold->motions, displacement, width, height);
        return fold_warp(fold, &warp, width, height, why);
}
