#include "daemon/augment/border.h"

#include <assert.h>
#include <string.h>

const char *const BORDER_MODE_NAMES[N_BORDER_MODES] = {
        [BORDER_CONSTANT] = "constant",
        [BORDER_EDGE] = "edge",
        [BORDER_REFLECT] = "reflect",
        [BORDER_SYMMETRIC] = "symmetric",
};

bool border_is_same_colour(const struct border *a, const struct border *b) {
        return a->mode == BORDER_CONSTANT && b->mode == BORDER_CONSTANT && memcmp(a->fill, b->fill, PIXEL_BYTES) == 0;
}

/* ---- a border of one colour ---------------------------------------------------------------------------------- */

static void border_fill(const struct border *border, uint8_t *pixels, uint32_t n) {
        const uint8_t *colour = border->fill;

        if (colour[0] == colour[1] && colour[0] == colour[2]) {
                memset(pixels, colour[0], (size_t)n * PIXEL_BYTES);
                return;
        }
        for (uint32_t i = 0; i < n; i++)
                memcpy(pixels + (size_t)i * PIXEL_BYTES, colour, PIXEL_BYTES);
}

static void draw_colour(const struct border *border, const struct box *picture, const struct canvas *canvas) {
        uint32_t end = picture->x + picture->width;

        for (uint32_t y = 0; y < canvas->height; y++) {
                if (y < picture->y || y >= picture->y + picture->height) {
                        border_fill(border, canvas_at(canvas, 0, y), canvas->width);
                        continue;
                }
                border_fill(border, canvas_at(canvas, 0, y), picture->x);
                border_fill(border, canvas_at(canvas, end, y), canvas->width - end);
        }
}

/* ---- a border of the picture's own pixels -------------------------------------------------------------------- */

/* Which of n pixels in a row is shown at distance `at` from the first one; at < 0 and at >= n are outside of the
 * row. */
static uint32_t pixel_for(enum border_mode mode, int64_t at, uint32_t n) {
        int64_t last = (int64_t)n - 1, period = mode == BORDER_REFLECT ? 2 * last : 2 * (int64_t)n;

        if (mode == BORDER_EDGE || last == 0)
                return at < 0 ? 0 : (uint32_t)last;
        at %= period;
        if (at < 0)
                at += period;
        if (at > last)
                at = mode == BORDER_REFLECT ? period - at : period - 1 - at;
        return (uint32_t)at;
}

static void draw_sides(const struct border *border, const struct box *picture, const struct canvas *canvas,
                       uint32_t begin, uint32_t end) {
        for (uint32_t x = begin; x < end; x++) {
                uint32_t from = picture->x + pixel_for(border->mode, (int64_t)x - picture->x, picture->width);

                for (uint32_t y = picture->y; y < picture->y + picture->height; y++)
                        memcpy(canvas_at(canvas, x, y), canvas_at(canvas, from, y), PIXEL_BYTES);
        }
}

/* Draws the rows above and below. They repeat rows of the picture together with their side borders. */
static void draw_rows(const struct border *border, const struct box *picture, const struct canvas *canvas,
                      uint32_t begin, uint32_t end) {
        for (uint32_t y = begin; y < end; y++) {
                uint32_t from = picture->y + pixel_for(border->mode, (int64_t)y - picture->y, picture->height);

                memcpy(canvas_at(canvas, 0, y), canvas_at(canvas, 0, from), (size_t)canvas->width * PIXEL_BYTES);
        }
}

void border_draw(const struct border *border, const struct box *picture, const struct canvas *canvas) {
        if (border->mode == BORDER_CONSTANT) {
                draw_colour(border, picture, canvas);
                return;
        }
        assert(picture->width > 0 && picture->height > 0);
        draw_sides(border, picture, canvas, 0, picture->x);
        draw_sides(border, picture, canvas, picture->x + picture->width, canvas->width);
        draw_rows(border, picture, canvas, 0, picture->y);
        draw_rows(border, picture, canvas, picture->y + picture->height, canvas->height);
}
