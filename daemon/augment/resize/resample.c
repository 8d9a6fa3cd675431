#include "daemon/augment/resize/resample.h"

#include "daemon/augment/resize/axis.h"
#include "daemon/augment/resize/resize_kernels.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where the rows come from that the vertical pass adds up. */
enum row_source {
        ROWS_IN_PLACE,  /* they are the source's own */
        ROWS_PICKED,    /* each pixel is one of the source's row */
        ROWS_RESAMPLED, /* the horizontal pass makes them */
};

/* Row y of the source, in the form that the vertical pass needs, is at index y & ring_mask of the ring. The ring has
 * the number of rows that an output row needs and a few more, so that they stay in the first-level cache. Rows that are
 * used in place are copied into it only if an output row needs rows of two portions. */
struct resizer {
        const struct resize_kernels *kernels;
        struct axis horizontal, vertical;
        uint8_t *ring; /* ring_mask + 1 rows of ring_stride bytes */
        size_t n_ring_bytes;
        size_t ring_stride;
        uint32_t ring_mask;
        uint8_t *padded; /* RESIZE_ROWS_AT_ONCE source rows with room after them: see resample_copy_row() */
        size_t n_padded_bytes;
        const uint8_t **rows; /* of one output row */
        size_t n_rows_max;

        /* The picture that is being fed. */
        uint32_t source_width, source_height;
        struct box given; /* part of the source; rows and columns are counted from its corner */
        struct resize_job job;
        enum row_source how;
        uint32_t n_fed;  /* rows that have come */
        uint32_t n_made; /* rows that have been put into the ring, or are not needed */
        uint32_t n_done; /* rows of the window that are written */
        uint8_t *out;
        size_t stride;
};

const char *const RESIZE_CODE_NAMES[N_RESIZE_CODES] = {
        [RESIZE_CODE_BEST] = "best",
        [RESIZE_CODE_SCALAR] = "scalar",
        [RESIZE_CODE_AVX2] = "avx2",
        [RESIZE_CODE_NEON] = "neon",
};

/* Best first. */
static const enum resize_code BEST[] = { RESIZE_CODE_AVX2, RESIZE_CODE_NEON, RESIZE_CODE_SCALAR };

/* NULL: this machine cannot run it. */
static const struct resize_kernels *kernels_of(enum resize_code code) {
        switch (code) {
        case RESIZE_CODE_AVX2:
                return resize_kernels_avx2();
        case RESIZE_CODE_NEON:
                return resize_kernels_neon();
        default:
                return &resize_kernels_scalar;
        }
}

int resizer_new(enum resize_code code, struct resizer **ret_resizer, struct why *why) {
        struct resizer *resizer;

        for (size_t i = 0; code == RESIZE_CODE_BEST; i++) /* ends with the scalar one */
                if (kernels_of(BEST[i]))
                        code = BEST[i];
        if (!kernels_of(code))
                return why_set(why, -ENOTSUP, "this CPU cannot run the %s form of resizing", RESIZE_CODE_NAMES[code]);

        resizer = calloc(1, sizeof(*resizer));
        if (!resizer)
                return why_set(why, -ENOMEM, "no memory for a resizer");
        resizer->kernels = kernels_of(code);
        *ret_resizer = resizer;
        return 0;
}

void resizer_trim(struct resizer *resizer) {
        if (!resizer)
                return;
        axis_fini(&resizer->horizontal);
        axis_fini(&resizer->vertical);
        free(resizer->ring);
        free(resizer->padded);
        free(resizer->rows);
        resizer->ring = resizer->padded = NULL;
        resizer->rows = NULL;
        resizer->n_ring_bytes = resizer->n_padded_bytes = resizer->n_rows_max = 0;
}

void resizer_free(struct resizer *resizer) {
        if (!resizer)
                return;
        resizer_trim(resizer);
        free(resizer);
}

size_t resizer_bytes(const struct resizer *resizer) {
        return axis_bytes(&resizer->horizontal) + axis_bytes(&resizer->vertical) + resizer->n_ring_bytes +
               resizer->n_padded_bytes + resizer->n_rows_max * sizeof(*resizer->rows);
}

/* ---- memory -------------------------------------------------------------------------------------------------- */

static int reserve_bytes(uint8_t **bytes, size_t *n_bytes, size_t n) {
        if (n <= *n_bytes)
                return 0;
        *n_bytes = 0;
        free(*bytes);
        *bytes = calloc(n, 1);
        if (!*bytes)
                return -ENOMEM;
        *n_bytes = n;
        return 0;
}

/* Rows of the ring for n_taps taps. */
static uint32_t ring_rows(uint32_t n_taps) {
        uint32_t n_needed = n_taps + RESIZE_ROWS_AT_ONCE, n_ring = RESIZE_ROWS_AT_ONCE;

        while (n_ring < n_needed)
                n_ring *= 2;
        return n_ring;
}

static size_t ring_stride_of(const struct resize_job *job) {
        return ((size_t)job->window.width * PIXEL_BYTES + RESIZE_OUT_SLACK + 63) / 64 * 64;
}

/* Makes room for the rows that an output row needs, and for those that are made together with the last of them. */
static int reserve_ring(struct resizer *resizer) {
        uint32_t n_ring = ring_rows(resizer->vertical.weights.n_taps);

        resizer->ring_mask = n_ring - 1;
        resizer->ring_stride = ring_stride_of(&resizer->job);
        return reserve_bytes(&resizer->ring, &resizer->n_ring_bytes, n_ring * resizer->ring_stride);
}

static int reserve_rows(struct resizer *resizer) {
        size_t n_rows = resizer->vertical.weights.n_taps;

        if (n_rows <= resizer->n_rows_max)
                return 0;
        resizer->n_rows_max = 0;
        free(resizer->rows);
        resizer->rows = calloc(n_rows, sizeof(*resizer->rows));
        if (!resizer->rows)
                return -ENOMEM;
        resizer->n_rows_max = n_rows;
        return 0;
}

/* ---- beginning a picture ------------------------------------------------------------------------------------- */

static enum row_source choose_row_source(uint32_t source_width, const struct resize_job *job) {
        if (job->width == source_width && !job->flip)
                return ROWS_IN_PLACE;
        return job->width == source_width || resize_chooses(job->filter) ? ROWS_PICKED : ROWS_RESAMPLED;
}

static struct axis_key horizontal_key(uint32_t source_width, const struct resize_job *job) {
        return (struct axis_key){
                .n_source = source_width,
                .n_outputs = job->width,
                .window_first = job->window.x,
                .window_n = job->window.width,
                .filter = job->filter,
                .flip = job->flip,
        };
}

static struct axis_key vertical_key(uint32_t source_height, const struct resize_job *job) {
        return (struct axis_key){
                .n_source = source_height,
                .n_outputs = job->height,
                .window_first = job->window.y,
                .window_n = job->window.height,
                .filter = job->filter,
        };
}

void resize_need(uint32_t source_width, uint32_t source_height, const struct resize_job *job, struct box *ret_box) {
        struct axis_key horizontal = horizontal_key(source_width, job), vertical = vertical_key(source_height, job);

        axis_need(&horizontal, &ret_box->x, &ret_box->width);
        axis_need(&vertical, &ret_box->y, &ret_box->height);
}

uint64_t resize_bytes_needed(uint32_t source_width, uint32_t source_height, const struct box *given,
                             const struct resize_job *job) {
        struct axis_key horizontal = horizontal_key(source_width, job), vertical = vertical_key(source_height, job);
        uint32_t given_width = given ? given->width : source_width, n_taps_x, n_taps_y;
        uint64_t n_bytes = axis_bytes_needed(&vertical, &n_taps_y);

        n_bytes += ring_rows(n_taps_y) * (uint64_t)ring_stride_of(job) + n_taps_y * sizeof(uint8_t *);
        if (choose_row_source(source_width, job) != ROWS_IN_PLACE) {
                n_bytes += axis_bytes_needed(&horizontal, &n_taps_x);
                n_bytes += RESIZE_ROWS_AT_ONCE *
                           (((uint64_t)given_width + n_taps_x + RESIZE_READ_TAPS) * PIXEL_BYTES + RESIZE_READ_SLACK);
        }
        return n_bytes;
}

static int prepare_horizontal(struct resizer *resizer) {
        struct axis_key key = horizontal_key(resizer->source_width, &resizer->job);
        int r;

        key.given_first = resizer->given.x;

        if (resizer->how == ROWS_IN_PLACE)
                return 0;
        r = axis_prepare(&resizer->horizontal, &key);
        if (r < 0)
                return r;
        return reserve_bytes(&resizer->padded, &resizer->n_padded_bytes,
                             resizer->horizontal.weights.n_read_bytes * RESIZE_ROWS_AT_ONCE);
}

static int prepare_vertical(struct resizer *resizer) {
        struct axis_key key = vertical_key(resizer->source_height, &resizer->job);

        key.given_first = resizer->given.y;
        return axis_prepare(&resizer->vertical, &key);
}

int resizer_begin(struct resizer *resizer, uint32_t source_width, uint32_t source_height, const struct box *given,
                  const struct resize_job *job, uint8_t *out, size_t stride, struct why *why) {
        const struct box all = { .width = source_width, .height = source_height };

        assert(source_width > 0 && source_height > 0);
        assert(job->window.width > 0 && job->window.width <= job->width);
        assert(job->window.height > 0 && job->window.height <= job->height);
        assert(job->window.x <= job->width - job->window.width && job->window.y <= job->height - job->window.height);

        resizer->source_width = source_width;
        resizer->source_height = source_height;
        resizer->given = given ? *given : all;
        resizer->job = *job;
        resizer->how = choose_row_source(source_width, job);
        resizer->n_fed = resizer->n_made = resizer->n_done = 0;
        resizer->out = out;
        resizer->stride = stride;
        if (prepare_horizontal(resizer) < 0 || prepare_vertical(resizer) < 0 || reserve_ring(resizer) < 0 ||
            reserve_rows(resizer) < 0) {
                resizer->n_done = job->window.height; /* feeding it now does nothing */
                return why_set(why, -ENOMEM, "no memory to resize %u x %u pixels to %u x %u", source_width,
                               source_height, job->width, job->height);
        }
        return 0;
}

/* ---- rows of the ring ---------------------------------------------------------------------------------------- */

static uint8_t *ring_row(const struct resizer *resizer, uint32_t y) {
        return resizer->ring + (size_t)(y & resizer->ring_mask) * resizer->ring_stride;
}

static const uint8_t *resample_view_row(const struct view *view, uint32_t y) {
        return view->pixels + y * view->stride;
}

static size_t bytes_from(const struct view *view, uint32_t y) {
        return (view->height - 1 - y) * view->stride + (size_t)view->width * PIXEL_BYTES;
}

/* A copy of a row of the view, of which n_read_bytes may be read. */
static const uint8_t *resample_copy_row(struct resizer *resizer, const struct view *view, uint32_t y,
                                        uint32_t idx_copy) {
        size_t n_read = resizer->horizontal.weights.n_read_bytes, n_row = (size_t)view->width * PIXEL_BYTES;
        uint8_t *copy = resizer->padded + idx_copy * n_read;

        if (n_row > n_read)
                n_row = n_read;
        memcpy(copy, resample_view_row(view, y), n_row);
        memset(copy + n_row, 0, n_read - n_row);
        return copy;
}

/* Resamples the next rows of the view into the ring: RESIZE_ROWS_AT_ONCE, or as many as are left. The last row then
 * takes the place of missing ones, and its result is written again to the same place. The loops may read past the end
 * of a row; near the view's last byte they get a copy of the row instead. Returns how many rows were made. */
static uint32_t resample_rows(struct resizer *resizer, const struct view *view) {
        uint32_t y = resizer->n_made - resizer->n_fed, n = view->height - y;
        size_t n_read = resizer->horizontal.weights.n_read_bytes;
        const uint8_t *from[RESIZE_ROWS_AT_ONCE];
        uint8_t *to[RESIZE_ROWS_AT_ONCE];

        if (n > RESIZE_ROWS_AT_ONCE)
                n = RESIZE_ROWS_AT_ONCE;
        for (uint32_t i = 0; i < RESIZE_ROWS_AT_ONCE; i++) {
                uint32_t row = i < n ? i : n - 1;

                from[i] = resample_view_row(view, y + row);
                to[i] = ring_row(resizer, resizer->n_made + row);
        }
        if (n_read > bytes_from(view, y + n - 1))
                for (uint32_t i = 0; i < RESIZE_ROWS_AT_ONCE; i++) {
                        uint32_t row = i < n ? i : n - 1;

                        if (n_read > bytes_from(view, y + row))
                                from[i] = resample_copy_row(resizer, view, y + row, row);
                }
        resizer->kernels->rows(&resizer->horizontal.weights, from, to);
        return n;
}

static void pick_row(const struct resize_axis *axis, const uint8_t *source, uint8_t *out) {
        for (uint32_t x = 0; x < axis->n_outputs; x++)
                memcpy(out + (size_t)x * PIXEL_BYTES, source + (size_t)axis->first[x] * PIXEL_BYTES, PIXEL_BYTES);
}

/* Makes the view's rows below `end`, and possibly a few more. */
static void resample_make_rows(struct resizer *resizer, const struct view *view, uint32_t end) {
        while (resizer->n_made < end) {
                uint8_t *to = ring_row(resizer, resizer->n_made);
                const uint8_t *from = resample_view_row(view, resizer->n_made - resizer->n_fed);

                switch (resizer->how) {
                case ROWS_RESAMPLED:
                        resizer->n_made += resample_rows(resizer, view);
                        break;
                case ROWS_PICKED:
                        pick_row(&resizer->horizontal.weights, from, to);
                        resizer->n_made++;
                        break;
                case ROWS_IN_PLACE:
                        memcpy(to, from + (size_t)(resizer->job.window.x - resizer->given.x) * PIXEL_BYTES,
                               (size_t)resizer->job.window.width * PIXEL_BYTES);
                        resizer->n_made++;
                        break;
                }
        }
}

/* ---- rows of the output -------------------------------------------------------------------------------------- */

static const uint8_t *made_row(const struct resizer *resizer, const struct view *view, uint32_t y) {
        if (resizer->how == ROWS_IN_PLACE && y >= resizer->n_fed)
                return resample_view_row(view, y - resizer->n_fed) +
                       (size_t)(resizer->job.window.x - resizer->given.x) * PIXEL_BYTES;
        return ring_row(resizer, y);
}

static void resample_write_row(struct resizer *resizer, const struct view *view) {
        const struct resize_axis *weights = &resizer->vertical.weights;
        uint32_t y = resizer->n_done, first = weights->first[y], count = weights->count[y];
        size_t n_bytes = (size_t)resizer->job.window.width * PIXEL_BYTES;
        uint8_t *out = resizer->out + y * resizer->stride;

        if (count == 1 && weights->whole[(size_t)y * weights->n_taps] == RESIZE_ONE) {
                memcpy(out, made_row(resizer, view, first), n_bytes);
        } else {
                for (uint32_t i = 0; i < count; i++)
                        resizer->rows[i] = made_row(resizer, view, first + i);
                resizer->kernels->column(weights, y, resizer->rows, out, n_bytes);
        }
        resizer->n_done++;
}

/* Rows are made only when an output needs them, but before the view ends. */
void resizer_feed(struct resizer *resizer, const struct view *rows) {
        const struct resize_axis *weights = &resizer->vertical.weights;
        uint32_t end = resizer->n_fed + rows->height;

        assert(rows->width == resizer->given.width && rows->height <= resizer->given.height - resizer->n_fed);

        while (resizer->n_done < resizer->job.window.height) {
                uint32_t first = weights->first[resizer->n_done], needed = first + weights->count[resizer->n_done];

                if (resizer->n_made < first)
                        resizer->n_made = first;
                if (needed > end) {
                        resample_make_rows(resizer, rows, end);
                        break;
                }
                if (resizer->how != ROWS_IN_PLACE)
                        resample_make_rows(resizer, rows, needed);
                resample_write_row(resizer, rows);
        }
        resizer->n_fed = end;
}
