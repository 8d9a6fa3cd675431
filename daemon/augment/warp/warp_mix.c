/* augment/warp/warp_mix.c: mixes the pixels around a point, in float64, in Pillow's sequence of operations. A point outside
 * of the source shows the fill; near an edge the outermost pixels stand for those that are missing. */
#include <string.h>

#include "daemon/augment/warp/warp_rows.h"

static double warp_mix_between(double from, double to, double share) {
        return from + (to - from) * share;
}

static void warp_mix_mix_two(const struct view *source, struct warp_around x, struct warp_around y, uint8_t *out) {
        uint32_t left = warp_clipped(x.first, source->width) * PIXEL_BYTES,
                 right = warp_clipped(x.first + 1, source->width) * PIXEL_BYTES;
        const uint8_t *above = source_at(source, 0, warp_clipped(y.first, source->height)),
                      *below = source_at(source, 0, warp_clipped(y.first + 1, source->height));

        for (unsigned c = 0; c < PIXEL_BYTES; c++) {
                double upper = warp_mix_between(above[left + c], above[right + c], x.share),
                       lower = warp_mix_between(below[left + c], below[right + c], x.share);

                out[c] = (uint8_t)(int)warp_mix_between(upper, lower, y.share);
        }
}

static double warp_mix_curve(double a, double b, double c, double d, double share) {
        double slope = -a + c, second = 2 * (a - b) + c - d, third = -a + b - c + d;

        return b + share * (slope + share * (second + share * third));
}

static uint8_t level(double number) {
        return number <= 0 ? 0 : number >= 255 ? 255 : (uint8_t)(int)number;
}

static void warp_mix_mix_four(const struct view *source, struct warp_around x, struct warp_around y, uint8_t *out) {
        const uint8_t *rows[4];
        uint32_t at[4];

        for (int i = 0; i < 4; i++) {
                rows[i] = source_at(source, 0, warp_clipped(y.first - 1 + i, source->height));
                at[i] = warp_clipped(x.first - 1 + i, source->width) * PIXEL_BYTES;
        }
        for (unsigned c = 0; c < PIXEL_BYTES; c++) {
                double mixed[4];

                for (unsigned i = 0; i < 4; i++)
                        mixed[i] = warp_mix_curve(rows[i][at[0] + c], rows[i][at[1] + c], rows[i][at[2] + c],
                                                  rows[i][at[3] + c], x.share);
                out[c] = level(warp_mix_curve(mixed[0], mixed[1], mixed[2], mixed[3], y.share));
        }
}

static void warp_mix_mix_one(const struct warp *warp, const struct view *source, struct warp_around x,
                             struct warp_around y, uint8_t *out) {
        if (warp->filter == WARP_BILINEAR)
                warp_mix_mix_two(source, x, y, out);
        else
                warp_mix_mix_four(source, x, y, out);
}

void warp_mix(const struct warp *warp, const struct view *source, const double *x, const double *y, uint32_t n,
              uint8_t *out) {
        for (uint32_t i = 0; i < n; i++) {
                i += warp_mix_avx2(warp, source, x + i, y + i, n - i, out + (size_t)i * PIXEL_BYTES);
                if (i == n)
                        return;
                if (warp_shows(source, x[i], y[i]))
                        warp_mix_mix_one(warp, source, warp_around(x[i]), warp_around(y[i]),
                                         out + (size_t)i * PIXEL_BYTES);
                else
                        memcpy(out + (size_t)i * PIXEL_BYTES, warp->fill, PIXEL_BYTES);
        }
}
