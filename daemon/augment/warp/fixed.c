/* augment/warp/fixed.c: nearest pixels of an affine warp. Pillow computes where the first pixel of the picture is and
 * adds a step for each pixel and each row: whole numbers in units of 1/65536 if all four corners are within 32768
 * pixels, else float64. */
#include <math.h>
#include <string.h>

#include "daemon/augment/warp/warp_rows.h"

/* ---- whole numbers -------------------------------------------------------------------------------------------- */

#define ONE WARP_ONE

/* What two's complement makes of a sum that does not fit: such a pixel lies outside. */
static int32_t sum(int32_t a, int32_t b) {
        return (int32_t)((uint32_t)a + (uint32_t)b);
}

/* Rounded. What does not fit becomes what x86 makes of it, as Pillow's conversion does there; it is the step to a pixel
 * that is not drawn. */
static int32_t fixed(double number) {
        double whole = floor(number * ONE + 0.5);

        return whole >= INT32_MIN && whole <= INT32_MAX ? (int32_t)whole : INT32_MIN;
}

static bool fixed_is_near(const double *c, double x, double y) {
        return fabs(x * c[0] + y * c[1] + c[2]) < 32768.0 && fabs(x * c[3] + y * c[4] + c[5]) < 32768.0;
}

/* Of n pixels those for which 0 <= at + i * step < limit: a range, as `at` moves in one direction. */
static void keep_within(int64_t at, int64_t step, int64_t limit, uint32_t *begin, uint32_t *end) {
        int64_t first, last; /* the last one is not included */

        if (step == 0) {
                if (at < 0 || at >= limit)
                        *end = *begin;
                return;
        }
        if (step < 0) { /* mirrored, so that it goes upwards */
                at = limit - 1 - at;
                step = -step;
        }
        first = at >= 0 ? 0 : (-at + step - 1) / step;
        last = at >= limit ? 0 : (limit - at + step - 1) / step;
        if (first > *begin)
                *begin = first < *end ? (uint32_t)first : *end;
        if (last < *end)
                *end = last > *begin ? (uint32_t)last : *begin;
}

/* Does at + n * step fit, so that nothing wraps on the way? */
static bool fixed_stays(int32_t at, int32_t step, uint32_t n) {
        int64_t end = at + (int64_t)step * n;

        return end >= INT32_MIN && end <= INT32_MAX;
}

static void copy_pixel(const struct view *source, int32_t x, int32_t y, uint8_t *out) {
        memcpy(out, source_at(source, (uint32_t)(x / ONE), (uint32_t)(y / ONE)), PIXEL_BYTES);
}

/* Pixels that all lie within the source. */
static void fixed_copy_row(const struct view *source, struct position at, struct position step, uint32_t n,
                           uint8_t *out) {
        uint32_t i;

        if (step.x == ONE && step.y == 0) {
                memcpy(out, source_at(source, (uint32_t)at.x / ONE, (uint32_t)at.y / ONE), (size_t)n * PIXEL_BYTES);
                return;
        }
        i = warp_fixed_avx2(source, at, step, n, out);
        at.x = (int32_t)(at.x + (int64_t)step.x * i);
        at.y = (int32_t)(at.y + (int64_t)step.y * i);
        for (out += (size_t)i * PIXEL_BYTES; i < n; i++, out += PIXEL_BYTES) {
                copy_pixel(source, at.x, at.y, out);
                at.x = sum(at.x, step.x);
                at.y = sum(at.y, step.y);
        }
}

/* Where a sum wraps, one by one. */
static void warp_wrapping_row(const struct warp *warp, const struct view *source, struct position at,
                              struct position step, uint32_t n, uint8_t *out) {
        for (uint32_t i = 0; i < n; i++, out += PIXEL_BYTES) {
                if (at.x >= 0 && at.x / ONE < (int64_t)source->width && at.y >= 0 &&
                    at.y / ONE < (int64_t)source->height)
                        copy_pixel(source, at.x, at.y, out);
                else
                        memcpy(out, warp->fill, PIXEL_BYTES);
                at.x = sum(at.x, step.x);
                at.y = sum(at.y, step.y);
        }
}

static void warp_row(const struct warp *warp, const struct view *source, struct position at, struct position step,
                     uint32_t n, uint8_t *out) {
        uint32_t begin = 0, end = n;

        if (!fixed_stays(at.x, step.x, n) || !fixed_stays(at.y, step.y, n)) {
                warp_wrapping_row(warp, source, at, step, n, out);
                return;
        }
        keep_within(at.x, step.x, (int64_t)source->width * ONE, &begin, &end);
        keep_within(at.y, step.y, (int64_t)source->height * ONE, &begin, &end);
        if (begin < end) {
                at.x = (int32_t)(at.x + (int64_t)step.x * begin);
                at.y = (int32_t)(at.y + (int64_t)step.y * begin);
                fixed_copy_row(source, at, step, end - begin, out + (size_t)begin * PIXEL_BYTES);
        }
        warp_fill(warp, out, begin);
        warp_fill(warp, out + (size_t)end * PIXEL_BYTES, n - end);
}

bool warp_fixed(const struct warp *warp, const struct view *source, const struct canvas *canvas) {
        const double *c = warp->coefficients;
        struct position at, step = { fixed(c[0]), fixed(c[3]) }, step_down = { fixed(c[1]), fixed(c[4]) };

        if (!fixed_is_near(c, 0, 0) || !fixed_is_near(c, canvas->width, canvas->height) ||
            !fixed_is_near(c, 0, canvas->height) || !fixed_is_near(c, canvas->width, 0))
                return false;
        at.x = fixed(c[2] + c[0] * 0.5 + c[1] * 0.5);
        at.y = fixed(c[5] + c[3] * 0.5 + c[4] * 0.5);
        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++) {
                warp_row(warp, source, at, step, canvas->width, canvas_at(canvas, 0, y));
                at.x = sum(at.x, step_down.x);
                at.y = sum(at.y, step_down.y);
        }
        return true;
}

/* ---- float64 ---------------------------------------------------------------------------------------------------- */

void warp_added(const struct warp *warp, const struct view *source, const struct canvas *canvas) {
        const double *c = warp->coefficients;
        double row_x = c[2] + c[1] * 0.5 + c[0] * 0.5, row_y = c[5] + c[4] * 0.5 + c[3] * 0.5;

        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++) {
                double at_x = row_x, at_y = row_y;
                uint8_t *out = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x < canvas->width; x++, out += PIXEL_BYTES) {
                        bool is_within = at_x >= 0 && at_x < source->width && at_y >= 0 && at_y < source->height;

                        memcpy(out, is_within ? source_at(source, (uint32_t)at_x, (uint32_t)at_y) : warp->fill,
                               PIXEL_BYTES);
                        at_x += c[0];
                        at_y += c[3];
                }
                row_x += c[1];
                row_y += c[4];
        }
}

/* Columns of the source that n columns show, -1 for none. */
struct columns {
        int32_t of[WARP_AT_ONCE];
        uint32_t n, begin, end; /* those that show one are in a row: begin to end */
        bool is_run;            /* they are neighbours */
};

static void find_columns(double *at_x, double step, uint32_t source_width, uint32_t n, struct columns *columns) {
        columns->n = columns->begin = n;
        columns->end = 0;
        columns->is_run = true;
        for (uint32_t i = 0; i < n; i++, *at_x += step) {
                columns->of[i] = -1;
                if (!(*at_x >= 0 && *at_x < source_width))
                        continue;
                columns->of[i] = (int32_t)*at_x;
                columns->begin = columns->end == 0 ? i : columns->begin;
                columns->end = i + 1;
                columns->is_run = columns->is_run &&
                                  columns->of[i] == columns->of[columns->begin] + (int32_t)(i - columns->begin);
        }
}

static void fixed_copy_columns(const struct warp *warp, const uint8_t *row, const struct columns *columns,
                               uint8_t *out) {
        uint32_t begin = columns->begin, end = columns->end;

        if (end == 0) {
                warp_fill(warp, out, columns->n);
                return;
        }
        warp_fill(warp, out, begin);
        warp_fill(warp, out + (size_t)end * PIXEL_BYTES, columns->n - end);
        if (columns->is_run)
                memcpy(out + (size_t)begin * PIXEL_BYTES, row + (size_t)columns->of[begin] * PIXEL_BYTES,
                       (size_t)(end - begin) * PIXEL_BYTES);
        for (uint32_t i = begin; i < end && !columns->is_run; i++)
                memcpy(out + (size_t)i * PIXEL_BYTES, row + (size_t)columns->of[i] * PIXEL_BYTES, PIXEL_BYTES);
}

void warp_scaled(const struct warp *warp, const struct view *source, const struct canvas *canvas) {
        const double *c = warp->coefficients;
        double at_x = c[2] + c[0] * 0.5;
        struct columns columns;

        for (uint32_t x = 0; x < canvas->width; x += WARP_AT_ONCE) {
                uint32_t n = canvas->width - x < WARP_AT_ONCE ? canvas->width - x : WARP_AT_ONCE;
                double at_y = c[5] + c[4] * 0.5;

                find_columns(&at_x, c[0], source->width, n, &columns);
                for (uint32_t y = 0; y < canvas->height; y++, at_y += c[4]) {
                        if (at_y < 0 || !(at_y < source->height))
                                warp_fill(warp, canvas_at(canvas, x, y), n);
                        else
                                fixed_copy_columns(warp, source_at(source, 0, (uint32_t)at_y), &columns,
                                                   canvas_at(canvas, x, y));
                }
        }
}
