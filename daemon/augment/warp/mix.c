/* augment/warp/mix.c: mixes the pixels around a point, in float64, in Pillow's sequence of operations. A point outside
 * of the source shows the fill; near an edge the outermost pixels stand for those that are missing. */
#include <math.h>

#include "daemon/augment/warp/rows.h"

/* The pixels around a point along one axis: `first` is the one before it, at most half a pixel outside. */
struct around {
        int32_t first;
        double share; /* of the next one */
};

static struct around around(double point) {
        double first = floor(point - 0.5);

        return (struct around){ .first = (int32_t)first, .share = point - 0.5 - first };
}

static uint32_t clipped(int32_t at, uint32_t length) {
        return at < 0 ? 0 : at < (int32_t)length ? (uint32_t)at : length - 1;
}

static bool is_within(const struct view *source, double x, double y) {
        return x >= 0 && x < source->width && y >= 0 && y < source->height;
}

static double between(double from, double to, double share) {
        return from + (to - from) * share;
}

static void mix_two(const struct view *source, double point_x, double point_y, uint8_t *out) {
        struct around x = around(point_x), y = around(point_y);
        uint32_t left = clipped(x.first, source->width) * PIXEL_BYTES,
                 right = clipped(x.first + 1, source->width) * PIXEL_BYTES;
        const uint8_t *above = source_at(source, 0, clipped(y.first, source->height)),
                      *below = source_at(source, 0, clipped(y.first + 1, source->height));

        for (unsigned c = 0; c < PIXEL_BYTES; c++) {
                double upper = between(above[left + c], above[right + c], x.share),
                       lower = between(below[left + c], below[right + c], x.share);

                out[c] = (uint8_t)(int)between(upper, lower, y.share);
        }
}

static double curve(double a, double b, double c, double d, double share) {
        double slope = -a + c, second = 2 * (a - b) + c - d, third = -a + b - c + d;

        return b + share * (slope + share * (second + share * third));
}

static uint8_t level(double number) {
        return number <= 0 ? 0 : number >= 255 ? 255 : (uint8_t)(int)number;
}

static void mix_four(const struct view *source, double point_x, double point_y, uint8_t *out) {
        struct around x = around(point_x), y = around(point_y);
        const uint8_t *rows[4];
        uint32_t at[4];

        for (int i = 0; i < 4; i++) {
                rows[i] = source_at(source, 0, clipped(y.first - 1 + i, source->height));
                at[i] = clipped(x.first - 1 + i, source->width) * PIXEL_BYTES;
        }
        for (unsigned c = 0; c < PIXEL_BYTES; c++) {
                double mixed[4];

                for (unsigned i = 0; i < 4; i++)
                        mixed[i] = curve(rows[i][at[0] + c], rows[i][at[1] + c], rows[i][at[2] + c], rows[i][at[3] + c],
                                         x.share);
                out[c] = level(curve(mixed[0], mixed[1], mixed[2], mixed[3], y.share));
        }
}

void warp_mix(const struct warp *warp, const struct view *source, const double *x, const double *y, uint32_t n,
              uint8_t *out) {
        for (uint32_t i = 0; i < n; i++, out += PIXEL_BYTES) {
                if (!is_within(source, x[i], y[i]))
                        warp_fill(warp, out, 1);
                else if (warp->filter == WARP_BILINEAR)
                        mix_two(source, x[i], y[i], out);
                else
                        mix_four(source, x[i], y[i], out);
        }
}
