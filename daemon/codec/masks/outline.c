#include "daemon/codec/masks/outline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FINE   5 /* of the grid: places for each pixel */
#define MIDDLE 2 /* which of them is the middle */
#define SWITCH 2 /* in a byte of the plane: from here on downwards, the other side */

void outline_begin(struct outline *outline, uint8_t *plane) {
        outline->plane = plane;
        outline->n_corners = 0;
        outline->has_point = false;
        outline->left = outline->width;
        outline->right = 0;
        outline->top = outline->height;
        outline->below = 0;
}

/* ---- the walk -------------------------------------------------------------------------------------------------- */

/* Below the last row is above the first row of the next column; beyond the last column is nothing. */
static void switch_sides(struct outline *outline, uint32_t x, uint32_t y) {
        if (y == outline->height) {
                x++;
                y = 0;
        }
        if (x >= outline->width)
                return;
        outline->plane[(size_t)y * outline->width + x] ^= SWITCH;
        outline->columns[x] ^= 1;
        outline->left = x < outline->left ? x : outline->left;
        outline->right = x >= outline->right ? x + 1 : outline->right;
        outline->top = y < outline->top ? y : outline->top;
        outline->below = y >= outline->below ? y + 1 : outline->below;
}

/* The walk has come to this point. */
static void outline_visit(struct outline *outline, int32_t u, int32_t v) {
        int32_t from = u < outline->u ? u : u - 1, upper = v < outline->v ? v : outline->v;
        bool crosses = outline->has_point && u != outline->u && from >= MIDDLE && (from - MIDDLE) % FINE == 0;
        uint32_t x, y;

        outline->has_point = true;
        outline->u = u;
        outline->v = v;
        if (!crosses)
                return;
        x = (uint32_t)(from - MIDDLE) / FINE;
        y = upper <= MIDDLE ? 0 : (uint32_t)(upper - MIDDLE + FINE - 1) / FINE;
        if (x < outline->width)
                switch_sides(outline, x, y < outline->height ? y : outline->height);
}

/* Walks an edge along its longer side, always towards larger numbers, as rounding depends on it; the points are visited
 * in the direction of the polygon. */
static int outline_walk(struct outline *outline, int32_t x, int32_t y, struct why *why) {
        int32_t x0 = outline->x, y0 = outline->y, x1 = x, y1 = y;
        int32_t width = abs(x1 - x0), height = abs(y1 - y0);
        bool is_flat = width >= height, is_backward = is_flat ? x0 > x1 : y0 > y1;
        int32_t n = is_flat ? width : height;
        double slope;

        outline->n_steps += (uint64_t)n + 1;
        if (outline->n_steps > OUTLINE_STEPS_MAX)
                return why_set(why, -E2BIG, "its polygons are longer than %u pixels", OUTLINE_STEPS_MAX / FINE);
        if (n == 0) {
                outline_visit(outline, x, y);
                return 0;
        }
        if (is_backward) {
                x0 = x;
                y0 = y;
                x1 = outline->x;
                y1 = outline->y;
        }
        slope = is_flat ? (double)(y1 - y0) / width : (double)(x1 - x0) / height;
        for (int32_t i = 0; i <= n; i++) {
                int32_t at = is_backward ? n - i : i;

                if (is_flat)
                        outline_visit(outline, x0 + at, (int32_t)(y0 + slope * at + 0.5));
                else
                        outline_visit(outline, (int32_t)(x0 + slope * at + 0.5), y0 + at);
        }
        return 0;
}

int outline_add(struct outline *outline, double x, double y, struct why *why) {
        int32_t fine_x, fine_y;
        int r = 0;

        if (!(fabs(x) <= OUTLINE_COORDINATE_MAX && fabs(y) <= OUTLINE_COORDINATE_MAX))
                return why_set(why, -EBADMSG, "a polygon has a corner at %g, %g, which cannot be", x, y);
        fine_x = (int32_t)(FINE * x + 0.5);
        fine_y = (int32_t)(FINE * y + 0.5);
        if (outline->n_corners++ == 0) {
                outline->first_x = fine_x;
                outline->first_y = fine_y;
        } else {
                r = outline_walk(outline, fine_x, fine_y, why);
        }
        outline->x = fine_x;
        outline->y = fine_y;
        return r;
}

/* ---- the pixels ------------------------------------------------------------------------------------------------ */

/* On which side each column begins, since the last row of a column is followed by the first one of the next. Returns
 * whether one begins inside; *ret_end is the column from which on nothing is inside. */
static bool begin_columns(struct outline *outline, uint32_t *ret_end) {
        uint8_t side = 0;
        bool is_any = false;

        for (uint32_t x = outline->left; x < outline->right; x++) {
                uint8_t changes = outline->columns[x];

                outline->columns[x] = side;
                is_any |= side;
                side ^= changes;
        }
        *ret_end = side ? outline->width : outline->right;
        memset(outline->columns + outline->right, side, *ret_end - outline->right);
        return is_any || side;
}

static void outline_fill(struct outline *outline) {
        uint32_t end, top = outline->top, below = outline->below;

        if (begin_columns(outline, &end)) {
                top = 0;
                below = outline->height;
        }
        for (uint32_t y = top; y < below; y++) {
                uint8_t *row = outline->plane + (size_t)y * outline->width;

                for (uint32_t x = outline->left; x < end; x++) {
                        uint8_t side = outline->columns[x] ^ row[x] / SWITCH;

                        row[x] = (row[x] & 1) | side;
                        outline->columns[x] = side;
                }
        }
        memset(outline->columns + outline->left, 0, end - outline->left);
}

int outline_end(struct outline *outline, struct why *why) {
        int r = outline->n_corners > 0 ? outline_walk(outline, outline->first_x, outline->first_y, why) : 0;

        if (r == 0 && outline->left < outline->right)
                outline_fill(outline);
        return r;
}
