#include "daemon/augment/resize.h"

#include "daemon/augment/resize_kernels.h"
#include "daemon/base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- filters ------------------------------------------------------------------------------------------------- */

/* Operations and their sequence are Pillow's, the odd float constants of the Hamming window included: another sequence
 * would give other last bits. This file must not be compiled with contraction to fused operations. */

static const double PI = 3.14159265358979323846;

static double box_filter(double x) {
        return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double bilinear_filter(double x) {
        x = fabs(x);
        return x < 1.0 ? 1.0 - x : 0.0;
}

static double hamming_filter(double x) {
        x = fabs(x);
        if (x == 0)
                return 1.0;
        if (x >= 1.0)
                return 0.0;
        x = x * PI;
        return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x));
}

static double bicubic_filter(double x) {
        const double a = -0.5;

        x = fabs(x);
        if (x < 1.0)
                return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
        if (x < 2.0)
                return (((x - 5) * x + 8) * x - 4) * a;
        return 0.0;
}

static double sinc(double x) {
        if (x == 0)
                return 1.0;
        x = x * PI;
        return sin(x) / x;
}

static double lanczos_filter(double x) {
        return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

static const struct {
        double (*weight)(double x);
        double support; /* half the filter's width, in output pixels or source pixels, whichever are larger */
} FILTERS[N_RESIZE_FILTERS] = {
        [RESIZE_BOX] = { box_filter, 0.5 },         [RESIZE_BILINEAR] = { bilinear_filter, 1.0 },
        [RESIZE_HAMMING] = { hamming_filter, 1.0 }, [RESIZE_BICUBIC] = { bicubic_filter, 2.0 },
        [RESIZE_LANCZOS] = { lanczos_filter, 3.0 },
};

const char *const RESIZE_FILTER_NAMES[N_RESIZE_FILTERS] = {
        [RESIZE_BOX] = "box",         [RESIZE_BILINEAR] = "bilinear", [RESIZE_HAMMING] = "hamming",
        [RESIZE_BICUBIC] = "bicubic", [RESIZE_LANCZOS] = "lanczos",
};

/* ---- weights of an axis -------------------------------------------------------------------------------------- */

/* What an axis was made for. Two equal ones share their weights: pictures of one size come in rows. */
struct axis_key {
        uint32_t n_source, n_outputs;    /* whole lengths */
        uint32_t window_first, window_n; /* the outputs wanted */
        enum resize_filter filter;
        bool flip;
};

struct axis {
        struct axis_key key;
        struct resize_axis weights;
        double *unscaled; /* [n_taps] of one output, before they are made to add up to 1 */
        size_t n_outputs_max, n_weights_max, n_taps_max; /* what the arrays have room for */
};

static void axis_fini(struct axis *axis) {
        free(axis->weights.first);
        free(axis->weights.count);
        free(axis->weights.whole);
        free(axis->weights.split);
        free(axis->unscaled);
        *axis = (struct axis){};
}

static size_t axis_bytes(const struct axis *axis) {
        return axis->n_outputs_max * 2 * sizeof(uint32_t) +
               axis->n_weights_max * (sizeof(int32_t) + 2 * sizeof(int16_t)) + axis->n_taps_max * sizeof(double);
}

/* Replaces an array by one of n elements. The content is lost, also if there is no memory for the new one. */
static int replace(void *array, size_t n, size_t size) {
        void **pointer = array;

        free(*pointer);
        *pointer = calloc(n, size);
        return *pointer ? 0 : -ENOMEM;
}

static int axis_reserve(struct axis *axis, size_t n_outputs, size_t n_taps) {
        struct resize_axis *weights = &axis->weights;

        if (n_outputs > axis->n_outputs_max) {
                axis->n_outputs_max = 0;
                if (replace(&weights->first, n_outputs, sizeof(*weights->first)) < 0 ||
                    replace(&weights->count, n_outputs, sizeof(*weights->count)) < 0)
                        return -ENOMEM;
                axis->n_outputs_max = n_outputs;
        }
        if (n_outputs * n_taps > axis->n_weights_max) {
                size_t n = n_outputs * n_taps +
                           n_outputs * n_taps / 4; /* some more, or random crops would allocate often */

                axis->n_weights_max = 0;
                if (replace(&weights->whole, n, sizeof(*weights->whole)) < 0 ||
                    replace(&weights->split, n, 2 * sizeof(*weights->split)) < 0)
                        return -ENOMEM;
                axis->n_weights_max = n;
        }
        if (n_taps > axis->n_taps_max) {
                axis->n_taps_max = 0;
                if (replace(&axis->unscaled, n_taps, sizeof(*axis->unscaled)) < 0)
                        return -ENOMEM;
                axis->n_taps_max = n_taps;
        }
        return 0;
}

/* Stores one output's weights as integers, padded with zeros to n_taps. */
static void store_weights(struct axis *axis, uint32_t idx_output, uint32_t count, double sum) {
        uint32_t n_taps = axis->weights.n_taps;
        int32_t *whole = axis->weights.whole + (size_t)idx_output * n_taps;
        int16_t *split = axis->weights.split + (size_t)idx_output * n_taps * 2;

        for (uint32_t i = 0; i < count; i++) {
                double weight = sum != 0.0 ? axis->unscaled[i] / sum : axis->unscaled[i];

                whole[i] = (int32_t)((weight < 0 ? -0.5 : 0.5) + weight * (1 << RESIZE_PRECISION));
        }
        for (uint32_t i = count; i < n_taps; i++)
                whole[i] = 0;
        for (uint32_t i = 0; i < n_taps; i++) {
                int16_t *high = split + (size_t)(i & ~3u) * 2 + (i & 3u);

                high[0] = (int16_t)(whole[i] >> RESIZE_SPLIT);
                high[4] = (int16_t)(whole[i] & ((1 << RESIZE_SPLIT) - 1));
        }
}

static void compute_weights(struct axis *axis) {
        const struct axis_key *key = &axis->key;
        struct resize_axis *weights = &axis->weights;
        double scale = (double)(float)key->n_source / key->n_outputs; /* Pillow's boxes are float32 */
        double filter_scale = scale < 1.0 ? 1.0 : scale;
        double support = FILTERS[key->filter].support * filter_scale;
        double inverse = 1.0 / filter_scale;

        weights->n_read_bytes = 0;
        for (uint32_t x = 0; x < key->window_n; x++) {
                uint32_t idx_output = key->flip ? key->window_n - 1 - x : x;
                double center = (key->window_first + x + 0.5) * scale, sum = 0;
                double begin = center - support + 0.5, end = center + support + 0.5;
                uint32_t from = begin > 0 ? (uint32_t)begin : 0;
                uint32_t to = end < key->n_source ? (uint32_t)end : key->n_source;
                size_t n_read;

                assert(to - from <= weights->n_taps);
                for (uint32_t i = 0; i < to - from; i++) {
                        double distance = i + (double)from - center + 0.5;

                        axis->unscaled[i] = FILTERS[key->filter].weight(distance * inverse);
                        sum += axis->unscaled[i];
                }
                store_weights(axis, idx_output, to - from, sum);
                weights->first[idx_output] = from;
                weights->count[idx_output] = to - from;

                n_read = ((size_t)from + weights->n_taps) * PIXEL_BYTES + RESIZE_READ_SLACK;
                if (n_read > weights->n_read_bytes)
                        weights->n_read_bytes = n_read;
        }
}

static bool same_key(const struct axis_key *a, const struct axis_key *b) {
        return a->n_source == b->n_source && a->n_outputs == b->n_outputs && a->window_first == b->window_first &&
               a->window_n == b->window_n && a->filter == b->filter && a->flip == b->flip;
}

static int axis_prepare(struct axis *axis, const struct axis_key *key) {
        double scale = (double)(float)key->n_source / key->n_outputs;
        double support = FILTERS[key->filter].support * (scale < 1.0 ? 1.0 : scale);
        size_t n_taps = ((size_t)ceil(support) * 2 + 1 + RESIZE_TAPS - 1) / RESIZE_TAPS * RESIZE_TAPS;
        int r;

        if (same_key(&axis->key, key))
                return 0;

        axis->key = (struct axis_key){}; /* nothing is valid until the end */
        r = axis_reserve(axis, key->window_n, n_taps);
        if (r < 0)
                return r;
        axis->key = *key;
        axis->weights.n_outputs = key->window_n;
        axis->weights.n_taps = (uint32_t)n_taps;
        compute_weights(axis);
        return 0;
}

/* ---- the resizer --------------------------------------------------------------------------------------------- */

/* Between the passes only as many rows are kept as an output row needs, so that they stay in the first cache: row y of
 * the source is in place y & ring_mask. */
struct resizer {
        const struct resize_kernels *kernels;
        struct axis horizontal, vertical;
        uint8_t *ring; /* ring_mask + 1 rows of ring_stride bytes */
        size_t n_ring_bytes;
        size_t ring_stride;
        uint32_t ring_mask;
        uint8_t *padded; /* RESIZE_ROWS_AT_ONCE source rows with room behind them: see readable_row() */
        size_t n_padded_bytes;
        const uint8_t **rows; /* of one output row */
        size_t n_rows_max;
};

int resizer_new(enum resize_code code, struct resizer **ret_resizer, struct why *why) {
        const struct resize_kernels *kernels = code == RESIZE_CODE_SCALAR ? NULL : resize_kernels_avx2();
        struct resizer *resizer;

        if (!kernels && code == RESIZE_CODE_AVX2)
                return why_set(why, -ENOTSUP, "this CPU has no AVX2");

        resizer = calloc(1, sizeof(*resizer));
        if (!resizer)
                return why_set(why, -ENOMEM, "no memory for a resizer");
        resizer->kernels = kernels ? kernels : &resize_kernels_scalar;
        *ret_resizer = resizer;
        return 0;
}

void resizer_free(struct resizer *resizer) {
        if (!resizer)
                return;
        axis_fini(&resizer->horizontal);
        axis_fini(&resizer->vertical);
        free(resizer->ring);
        free(resizer->padded);
        free(resizer->rows);
        free(resizer);
}

void resizer_freep(struct resizer **resizer) {
        resizer_free(*resizer);
}

size_t resizer_bytes(const struct resizer *resizer) {
        return axis_bytes(&resizer->horizontal) + axis_bytes(&resizer->vertical) + resizer->n_ring_bytes +
               resizer->n_padded_bytes + resizer->n_rows_max * sizeof(*resizer->rows);
}

const char *resizer_code_name(const struct resizer *resizer) {
        return resizer->kernels->name;
}

static int reserve_bytes(uint8_t **bytes, size_t *n_bytes, size_t n) {
        if (n <= *n_bytes)
                return 0;
        *n_bytes = 0;
        if (replace(bytes, n, 1) < 0)
                return -ENOMEM;
        *n_bytes = n;
        return 0;
}

static int reserve_ring(struct resizer *resizer, uint32_t n_rows, uint32_t width) {
        uint32_t n_ring = RESIZE_ROWS_AT_ONCE;

        while (n_ring < n_rows + RESIZE_ROWS_AT_ONCE)
                n_ring *= 2;
        resizer->ring_mask = n_ring - 1;
        resizer->ring_stride = ((size_t)width * PIXEL_BYTES + RESIZE_OUT_SLACK + 63) / 64 * 64;
        return reserve_bytes(&resizer->ring, &resizer->n_ring_bytes, n_ring * resizer->ring_stride);
}

static int reserve_rows(struct resizer *resizer, size_t n_rows) {
        if (n_rows <= resizer->n_rows_max)
                return 0;
        resizer->n_rows_max = 0;
        if (replace(&resizer->rows, n_rows, sizeof(*resizer->rows)) < 0)
                return -ENOMEM;
        resizer->n_rows_max = n_rows;
        return 0;
}

static uint8_t *ring_row(const struct resizer *resizer, uint32_t y) {
        return resizer->ring + (size_t)(y & resizer->ring_mask) * resizer->ring_stride;
}

static const uint8_t *view_row(const struct view *view, uint32_t y) {
        return view->pixels + y * view->stride;
}

static void flip_row(const uint8_t *source, uint8_t *out, uint32_t width) {
        for (uint32_t x = 0; x < width; x++)
                memcpy(out + (size_t)x * PIXEL_BYTES, source + (size_t)(width - 1 - x) * PIXEL_BYTES, PIXEL_BYTES);
}

/* A source row of which n_read_bytes may be read: the row itself where that ends before the view's last byte, so for
 * all but the last few rows; a copy of it where it does not. */
static const uint8_t *readable_row(struct resizer *resizer, const struct view *source, uint32_t y, uint32_t idx_copy) {
        size_t n_read = resizer->horizontal.weights.n_read_bytes, n_row = (size_t)source->width * PIXEL_BYTES;
        size_t n_left = (source->height - 1 - y) * source->stride + n_row;
        uint8_t *copy = resizer->padded + idx_copy * n_read;

        if (n_read <= n_left)
                return view_row(source, y);
        if (n_row > n_read)
                n_row = n_read;
        memcpy(copy, view_row(source, y), n_row);
        memset(copy + n_row, 0, n_read - n_row);
        return copy;
}

/* Resamples the rows from y on into the ring, RESIZE_ROWS_AT_ONCE of them; the last row stands in for those below it.
 */
static void resample_rows(struct resizer *resizer, const struct view *source, uint32_t y) {
        const uint8_t *from[RESIZE_ROWS_AT_ONCE];
        uint8_t *to[RESIZE_ROWS_AT_ONCE];

        for (uint32_t i = 0; i < RESIZE_ROWS_AT_ONCE; i++) {
                uint32_t row = y + i < source->height ? y + i : source->height - 1;

                from[i] = readable_row(resizer, source, row, i);
                to[i] = ring_row(resizer, y + i);
        }
        resizer->kernels->rows(&resizer->horizontal.weights, from, to);
}

/* ---- the passes ---------------------------------------------------------------------------------------------- */

/* How the rows that the vertical pass adds up come about. */
enum row_source {
        ROWS_IN_PLACE,
        ROWS_FLIPPED,
        ROWS_RESAMPLED
};

static enum row_source choose_row_source(const struct view *source, const struct resize_job *job) {
        if (job->width != source->width)
                return ROWS_RESAMPLED;
        return job->flip ? ROWS_FLIPPED : ROWS_IN_PLACE;
}

/* Makes the rows [*done, end) of the ring, and perhaps some more. */
static void make_rows(struct resizer *resizer, const struct view *source, const struct resize_job *job,
                      enum row_source how, uint32_t *done, uint32_t end) {
        while (*done < end) {
                if (how == ROWS_RESAMPLED) {
                        resample_rows(resizer, source, *done);
                        *done += RESIZE_ROWS_AT_ONCE;
                } else {
                        flip_row(view_row(source, *done) + (size_t)job->window.x * PIXEL_BYTES,
                                 ring_row(resizer, *done), job->window.width);
                        *done += 1;
                }
        }
}

static int prepare_horizontal(struct resizer *resizer, const struct view *source, const struct resize_job *job) {
        struct axis_key key = {
                .n_source = source->width,
                .n_outputs = job->width,
                .window_first = job->window.x,
                .window_n = job->window.width,
                .filter = job->filter,
                .flip = job->flip,
        };
        int r = axis_prepare(&resizer->horizontal, &key);

        if (r < 0)
                return r;
        return reserve_bytes(&resizer->padded, &resizer->n_padded_bytes,
                             resizer->horizontal.weights.n_read_bytes * RESIZE_ROWS_AT_ONCE);
}

static int prepare_vertical(struct resizer *resizer, const struct view *source, const struct resize_job *job) {
        struct axis_key key = {
                .n_source = source->height,
                .n_outputs = job->height,
                .window_first = job->window.y,
                .window_n = job->window.height,
                .filter = job->filter,
        };
        int r = axis_prepare(&resizer->vertical, &key);

        if (r < 0)
                return r;
        return reserve_rows(resizer, resizer->vertical.weights.n_taps);
}

static void run_both(struct resizer *resizer, const struct view *source, const struct resize_job *job,
                     enum row_source how, uint8_t *out, size_t stride) {
        const struct resize_axis *weights = &resizer->vertical.weights;
        uint32_t done = weights->first[0];

        for (uint32_t y = 0; y < job->window.height; y++) {
                uint32_t first = weights->first[y], count = weights->count[y];

                if (how != ROWS_IN_PLACE)
                        make_rows(resizer, source, job, how, &done, first + count);
                for (uint32_t i = 0; i < count; i++)
                        resizer->rows[i] = how == ROWS_IN_PLACE
                                                   ? view_row(source, first + i) + (size_t)job->window.x * PIXEL_BYTES
                                                   : ring_row(resizer, first + i);
                resizer->kernels->column(weights, y, resizer->rows, out + y * stride,
                                         (size_t)job->window.width * PIXEL_BYTES);
        }
}

/* The height stays: the rows themselves are the result. */
static void run_rows(struct resizer *resizer, const struct view *source, const struct resize_job *job,
                     enum row_source how, uint8_t *out, size_t stride) {
        uint32_t done = job->window.y;

        for (uint32_t y = 0; y < job->window.height; y++, out += stride) {
                uint32_t row = job->window.y + y;
                const uint8_t *from = view_row(source, row) + (size_t)job->window.x * PIXEL_BYTES;

                if (how == ROWS_RESAMPLED) {
                        make_rows(resizer, source, job, how, &done, row + 1);
                        memcpy(out, ring_row(resizer, row), (size_t)job->window.width * PIXEL_BYTES);
                } else if (how == ROWS_FLIPPED) {
                        flip_row(from, out, job->window.width);
                } else {
                        memcpy(out, from, (size_t)job->window.width * PIXEL_BYTES);
                }
        }
}

int resizer_run(struct resizer *resizer, const struct view *source, const struct resize_job *job, uint8_t *out,
                size_t stride, struct why *why) {
        enum row_source how = choose_row_source(source, job);
        bool vertical = job->height != source->height;
        int r = 0;

        assert(source->width > 0 && source->height > 0);
        assert(job->window.width > 0 && job->window.width <= job->width);
        assert(job->window.height > 0 && job->window.height <= job->height);
        assert(job->window.x <= job->width - job->window.width && job->window.y <= job->height - job->window.height);

        if (how == ROWS_RESAMPLED)
                r = prepare_horizontal(resizer, source, job);
        if (r == 0 && vertical)
                r = prepare_vertical(resizer, source, job);
        if (r == 0 && how != ROWS_IN_PLACE)
                r = reserve_ring(resizer, vertical ? resizer->vertical.weights.n_taps : 1, job->window.width);
        if (r < 0)
                return why_set(why, r, "no memory to resize %u x %u pixels to %u x %u", source->width, source->height,
                               job->width, job->height);

        if (vertical)
                run_both(resizer, source, job, how, out, stride);
        else
                run_rows(resizer, source, job, how, out, stride);
        return 0;
}
