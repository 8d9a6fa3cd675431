#include "daemon/augment/resize.h"

#include "daemon/augment/resize_axis.h"
#include "daemon/augment/resize_kernels.h"
#include "daemon/base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Replaces an array by one of n elements. The content is lost, also if there is no memory for the new one. */
static int replace(void *array, size_t n, size_t size) {
        void **pointer = array;

        free(*pointer);
        *pointer = calloc(n, size);
        return *pointer ? 0 : -ENOMEM;
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
