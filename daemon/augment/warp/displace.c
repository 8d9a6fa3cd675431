#include "daemon/augment/warp/displace.h"

#include <math.h>
#include <string.h>

#include "daemon/augment/noise.h"
#include "daemon/augment/operations/blur/blur.h"
#include "daemon/augment/operations/mirror.h"
#include "daemon/augment/operations/wide.h"
#include "daemon/augment/warp/warp_rows.h"

#define AT_ONCE 16u /* sums that registers hold */

static uint32_t padded(uint32_t width) {
        return (width + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
}

/* torchvision's: an odd number, large enough for four sigmas on either side. */
static uint32_t kernel_of(const struct displacement *displacement, unsigned along) {
        return (uint32_t)(8 * displacement->sigma[along] + 1) | 1;
}

/* The numbers along one axis, which are blurred along both, with a kernel of this axis's size. */
struct field {
        struct blur_weights x, y;
        float alpha, length;
};

static void field_init(const struct displacement *displacement, unsigned along, uint32_t length,
                       struct field *ret_field) {
        uint32_t n = kernel_of(displacement, along);

        blur_weigh(n, displacement->sigma[ALONG_X], &ret_field->x);
        blur_weigh(n, displacement->sigma[ALONG_Y], &ret_field->y);
        ret_field->alpha = displacement->alpha[along];
        ret_field->length = (float)length;
}

/* torch.rand() * 2 - 1 */
static ALWAYS_INLINE float displace_number_of(uint32_t word) {
        return (float)(int32_t)(word >> 8) * 0x1p-24f * 2 - 1;
}

/* Torch's linspace() of pixels' middles, from the nearer end. */
static float middle_of(uint32_t at, uint32_t n) {
        float first = (float)((1.0 - n) / n), last = (float)((n - 1.0) / n);
        float step = n > 1 ? (last - first) / (float)(n - 1) : 0;

        return at < n / 2 || n == 1 ? fmaf(step, (float)at, first) : fmaf(-step, (float)(n - 1 - at), last);
}

/* ---- one point ------------------------------------------------------------------------------------------------- */

/* The numbers of a row from x - reach to x + reach. */
static void numbers_around(uint64_t seed, uint32_t width, uint32_t x, uint32_t y, uint32_t reach, float *ret_numbers) {
        uint64_t last_block = UINT64_MAX;
        struct dlp_philox philox;
        uint32_t words[4];

        noise_begin(seed, &philox);
        for (uint32_t i = 0; i <= 2 * reach; i++) {
                uint64_t at = (uint64_t)y * width + mirrored((int64_t)x + i - reach, width);

                if (at / 4 != last_block) {
                        uint32_t counter[4] = { philox.counter[0] + (uint32_t)(at / 4), philox.counter[1],
                                                philox.counter[2], philox.counter[3] };

                        dlp_philox_block(counter, philox.key, words);
                        last_block = at / 4;
                }
                ret_numbers[i] = displace_number_of(words[at % 4]);
        }
}

/* The same sums in the same sequence as those of whole rows, below. */
static float displacement_at(const struct displacement *displacement, unsigned along, uint32_t width, uint32_t height,
                             uint32_t x, uint32_t y) {
        float above[BLUR_KERNEL_MAX], below[BLUR_KERNEL_MAX], sums[BLUR_KERNEL_MAX] = { 0 }, sum = 0;
        uint64_t seed = displacement->seeds[along];
        struct field field;
        uint32_t reach;

        field_init(displacement, along, along == ALONG_X ? width : height, &field);
        reach = field.x.reach;
        for (uint32_t k = field.y.reach; k > 0; k--) {
                numbers_around(seed, width, x, mirrored((int64_t)y - k, height), reach, above);
                numbers_around(seed, width, x, mirrored((int64_t)y + k, height), reach, below);
                for (uint32_t i = 0; i <= 2 * reach; i++)
                        sums[i] += field.y.of[k] * (above[i] + below[i]);
        }
        numbers_around(seed, width, x, y, reach, above);
        for (uint32_t i = 0; i <= 2 * reach; i++)
                sums[i] += field.y.of[0] * above[i];
        for (uint32_t k = reach; k > 0; k--)
                sum += field.x.of[k] * (sums[reach - k] + sums[reach + k]);
        sum += field.x.of[0] * sums[reach];
        return sum * field.alpha / field.length;
}

/* Truncated to a pixel's number, within the picture. */
static uint32_t displace_pixel_of(float at, uint32_t length) {
        return at > 0 ? at < (float)length ? (uint32_t)at : length - 1 : 0;
}

void displace_point(const struct displacement *displacement, uint32_t width, uint32_t height, float *x, float *y) {
        uint32_t column = displace_pixel_of(*x, width), row = displace_pixel_of(*y, height);
        float left = middle_of(column, width) - displacement_at(displacement, ALONG_X, width, height, column, row);
        float up = middle_of(row, height) - displacement_at(displacement, ALONG_Y, width, height, column, row);

        *x = (left + 1.0f) * (0.5f * (float)width) - 0.5f;
        *y = (up + 1.0f) * (0.5f * (float)height) - 0.5f;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static ALWAYS_INLINE void to_numbers_loop(const uint32_t *words, size_t n, float *restrict numbers) {
        for (size_t i = 0; i < n; i++)
                numbers[i] = displace_number_of(words[i]);
}

WIDE(to_numbers, (const uint32_t *words, size_t n, float *numbers), (words, n, numbers))

/* Sums n columns of 2 * reach + 1 rows, n a multiple of AT_ONCE, in the sequence of blur.h. */
static ALWAYS_INLINE void sum_loop(const float *weights, uint32_t reach, const float *const *rows, size_t n,
                                   float *restrict sums) {
        for (size_t i = 0; i < n; i += AT_ONCE) {
                float sum[AT_ONCE] = { 0 };

                for (uint32_t k = reach; k > 0; k--)
                        for (uint32_t j = 0; j < AT_ONCE; j++)
                                sum[j] += weights[k] * (rows[reach - k][i + j] + rows[reach + k][i + j]);
                for (uint32_t j = 0; j < AT_ONCE; j++)
                        sums[i + j] = sum[j] + weights[0] * rows[reach][i + j];
        }
}

WIDE(sum, (const float *weights, uint32_t reach, const float *const *rows, size_t n, float *sums),
     (weights, reach, rows, n, sums))

static ALWAYS_INLINE void scale_loop(float alpha, float length, size_t n, float *numbers) {
        for (size_t i = 0; i < n; i++)
                numbers[i] = numbers[i] * alpha / length;
}

WIDE(scale, (float alpha, float length, size_t n, float *numbers), (alpha, length, n, numbers))

/* The displacements along one axis, row by row. */
struct rows {
        struct field field;
        struct dlp_philox philox;
        uint32_t width, height;
        float *kept;      /* 2 * reach + 1 rows of numbers */
        uint32_t n_kept;  /* rows that were made, since the first one */
        float *sums;      /* a row, with what is mirrored on either side */
        float *displaced; /* a row of the result */
};

static float *displace_kept_row(const struct rows *rows, uint32_t y) {
        return rows->kept + (size_t)(y % (2 * rows->field.y.reach + 1)) * padded(rows->width);
}

/* The rows up to y + reach. */
static void make_numbers(struct rows *rows, uint32_t y) {
        for (; rows->n_kept < rows->height && rows->n_kept <= y + rows->field.y.reach; rows->n_kept++) {
                float *numbers = displace_kept_row(rows, rows->n_kept);
                uint32_t words[WARP_AT_ONCE];

                for (uint32_t x = 0; x < rows->width; x += WARP_AT_ONCE) {
                        uint32_t n = rows->width - x < WARP_AT_ONCE ? rows->width - x : WARP_AT_ONCE;

                        noise_words(&rows->philox, words, n);
                        to_numbers(words, n, numbers + x);
                }
        }
}

static void displace_mirror_sums(float *sums, uint32_t width, uint32_t reach) {
        for (int64_t k = 1; k <= reach; k++) {
                sums[-k] = sums[mirrored(-k, width)];
                sums[width - 1 + k] = sums[mirrored(width - 1 + k, width)];
        }
}

static void displace_row(struct rows *rows, uint32_t y) {
        const struct field *field = &rows->field;
        const float *sources[BLUR_KERNEL_MAX];
        uint32_t n = padded(rows->width);

        make_numbers(rows, y);
        for (uint32_t i = 0; i <= 2 * field->y.reach; i++)
                sources[i] = displace_kept_row(rows, mirrored((int64_t)y + i - field->y.reach, rows->height));
        sum(field->y.of, field->y.reach, sources, n, rows->sums);
        displace_mirror_sums(rows->sums, rows->width, field->x.reach);
        for (uint32_t i = 0; i <= 2 * field->x.reach; i++)
                sources[i] = rows->sums + i - field->x.reach;
        sum(field->x.of, field->x.reach, sources, n, rows->displaced);
        scale(field->alpha, field->length, n, rows->displaced);
}

/* Floats of one axis: kept rows, a row of sums with both sides, and a row of displacements. */
static uint64_t displace_n_floats(uint32_t kernel, uint32_t width) {
        return (uint64_t)padded(width) * (kernel + 2ull) + kernel + AT_ONCE;
}

uint64_t displace_bytes(const struct displacement *displacement, uint32_t width) {
        return (displace_n_floats(kernel_of(displacement, ALONG_X), width) +
                displace_n_floats(kernel_of(displacement, ALONG_Y), width) + padded(width)) *
               sizeof(float);
}

static float *rows_init(const struct displacement *displacement, unsigned along, const struct canvas *canvas,
                        float *memory, struct rows *ret_rows) {
        uint32_t kernel = kernel_of(displacement, along), n = padded(canvas->width);
        uint64_t n_all = displace_n_floats(kernel, canvas->width);

        memset(memory, 0, n_all * sizeof(float)); /* sums are made of what lies after a row, too */
        *ret_rows = (struct rows){ .width = canvas->width, .height = canvas->height, .kept = memory };
        field_init(displacement, along, along == ALONG_X ? canvas->width : canvas->height, &ret_rows->field);
        noise_begin(displacement->seeds[along], &ret_rows->philox);
        ret_rows->displaced = memory + (size_t)n * kernel;
        ret_rows->sums = ret_rows->displaced + n + kernel / 2;
        return memory + n_all;
}

/* ---- pixels ---------------------------------------------------------------------------------------------------- */

/* Points of the source for a part of a row: the pixel to the left and above, and the shares of the next ones. */
struct points {
        float x[WARP_AT_ONCE], y[WARP_AT_ONCE];
        int32_t left[WARP_AT_ONCE], top[WARP_AT_ONCE];
        float right_share[WARP_AT_ONCE], lower_share[WARP_AT_ONCE];
};

/* Two pixels outside are as good as any place there, and fit into a whole number. */
static ALWAYS_INLINE float displace_limited(float at, float length) {
        at = at < -2.0f ? -2.0f : at;
        return at > length + 1.0f ? length + 1.0f : at;
}

static ALWAYS_INLINE int32_t whole_below(float at) {
        int32_t whole = (int32_t)at;

        return whole - ((float)whole > at);
}

static ALWAYS_INLINE void find_points_loop(const float *middles, const float *across, const float *down, float middle,
                                           const struct view *source, size_t n, struct points *restrict points) {
        float width = (float)source->width, height = (float)source->height;

        for (size_t i = 0; i < n; i++) {
                float x = displace_limited((middles[i] + across[i] + 1.0f) * (width / 2.0f) - 0.5f, width);
                float y = displace_limited((middle + down[i] + 1.0f) * (height / 2.0f) - 0.5f, height);

                points->x[i] = x;
                points->y[i] = y;
                points->left[i] = whole_below(x);
                points->top[i] = whole_below(y);
                points->right_share[i] = x - (float)points->left[i];
                points->lower_share[i] = y - (float)points->top[i];
        }
}

WIDE(find_points,
     (const float *middles, const float *across, const float *down, float middle, const struct view *source, size_t n,
      struct points *points),
     (middles, across, down, middle, source, n, points))

static bool displace_is_within(int32_t column, int32_t row, const struct view *source) {
        return column >= 0 && column < (int64_t)source->width && row >= 0 && row < (int64_t)source->height;
}

static void displace_choose(const struct warp *warp, const struct view *source, const struct points *points, uint32_t n,
                            uint8_t *out) {
        for (uint32_t i = 0; i < n; i++, out += PIXEL_BYTES) {
                int32_t column = (int32_t)rintf(points->x[i]), row = (int32_t)rintf(points->y[i]);

                memcpy(out,
                       displace_is_within(column, row, source) ? source_at(source, (uint32_t)column, (uint32_t)row)
                                                               : warp->fill,
                       PIXEL_BYTES);
        }
}

/* The four pixels around each point: left above, right above, left below, right below. One that is outside is black,
 * and the whole is the sum of the other weights. */
struct corners {
        uint8_t levels[4][PIXEL_BYTES][WARP_AT_ONCE];
        uint8_t is_shown[4][WARP_AT_ONCE];
};

static ALWAYS_INLINE void set_corner(struct corners *corners, unsigned which, uint32_t i, const uint8_t *pixel) {
        for (unsigned c = 0; c < PIXEL_BYTES; c++)
                corners->levels[which][c][i] = pixel[c];
}

static void set_edge(const struct view *source, int32_t left, int32_t top, uint32_t i, struct corners *corners) {
        static const uint8_t black[PIXEL_BYTES];

        for (int32_t which = 0; which < 4; which++) {
                int32_t column = left + which % 2, row = top + which / 2;
                bool is_shown = displace_is_within(column, row, source);

                corners->is_shown[which][i] = is_shown;
                set_corner(corners, (unsigned)which, i,
                           is_shown ? source_at(source, (uint32_t)column, (uint32_t)row) : black);
        }
}

static void take_corners(const struct view *source, const struct points *points, uint32_t n, struct corners *corners) {
        memset(corners->is_shown, 1, sizeof(corners->is_shown));
        for (uint32_t i = 0; i < n; i++) {
                int32_t left = points->left[i], top = points->top[i];
                const uint8_t *pixel;

                if (!displace_is_within(left, top, source) || !displace_is_within(left + 1, top + 1, source)) {
                        set_edge(source, left, top, i, corners);
                        continue;
                }
                pixel = source_at(source, (uint32_t)left, (uint32_t)top);
                set_corner(corners, 0, i, pixel);
                set_corner(corners, 1, i, pixel + PIXEL_BYTES);
                set_corner(corners, 2, i, pixel + source->stride);
                set_corner(corners, 3, i, pixel + source->stride + PIXEL_BYTES);
        }
}

static ALWAYS_INLINE uint8_t displace_rounded(float level) {
        return (uint8_t)(int32_t)((level + 0x1p23f) - 0x1p23f); /* half to even */
}

static ALWAYS_INLINE void mix_corners_loop(const struct points *points, const struct corners *corners, unsigned channel,
                                           float fill, uint8_t *restrict levels) {
        for (uint32_t i = 0; i < WARP_AT_ONCE; i++) {
                float right = points->right_share[i], lower = points->lower_share[i];
                float left = 1.0f - right, upper = 1.0f - lower;
                float w0 = left * upper, w1 = right * upper, w2 = left * lower, w3 = right * lower;
                float whole = w0 * corners->is_shown[0][i] + w1 * corners->is_shown[1][i] +
                              w2 * corners->is_shown[2][i] + w3 * corners->is_shown[3][i];
                float sum = (float)corners->levels[0][channel][i] * w0 + (float)corners->levels[1][channel][i] * w1 +
                            (float)corners->levels[2][channel][i] * w2 + (float)corners->levels[3][channel][i] * w3;

                levels[i] = displace_rounded((sum - fill) * whole + fill);
        }
}

WIDE(mix_corners,
     (const struct points *points, const struct corners *corners, unsigned channel, float fill, uint8_t *levels),
     (points, corners, channel, fill, levels))

static void displace_mix(const struct warp *warp, const struct view *source, const struct points *points, uint32_t n,
                         uint8_t *out) {
        uint8_t levels[PIXEL_BYTES][WARP_AT_ONCE];
        struct corners corners;

        take_corners(source, points, n, &corners);
        for (unsigned c = 0; c < PIXEL_BYTES; c++)
                mix_corners(points, &corners, c, warp->fill[c], levels[c]);
        for (uint32_t i = 0; i < n; i++)
                for (unsigned c = 0; c < PIXEL_BYTES; c++)
                        out[(size_t)i * PIXEL_BYTES + c] = levels[c][i];
}

void warp_displace(const struct warp *warp, const struct view *source, const struct canvas *canvas, uint8_t *extra) {
        float *middles = (float *)(void *)extra, *memory = middles + padded(canvas->width);
        struct rows across, down;
        struct points points = {}; /* zeroed: the last ones of a row may be few, but all are computed */

        memory = rows_init(&warp->displacement, ALONG_X, canvas, memory, &across);
        rows_init(&warp->displacement, ALONG_Y, canvas, memory, &down);
        for (uint32_t x = 0; x < canvas->width; x++)
                middles[x] = middle_of(x, canvas->width);
        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++) {
                displace_row(&across, y);
                displace_row(&down, y);
                for (uint32_t x = 0; x < canvas->width; x += WARP_AT_ONCE) {
                        uint32_t n = canvas->width - x < WARP_AT_ONCE ? canvas->width - x : WARP_AT_ONCE;

                        find_points(middles + x, across.displaced + x, down.displaced + x, middle_of(y, canvas->height),
                                    source, n, &points);
                        (warp->filter == WARP_NEAREST ? displace_choose : displace_mix)(warp, source, &points, n,
                                                                                        canvas_at(canvas, x, y));
                }
        }
}
