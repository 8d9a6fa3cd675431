/* tests/support/pixels.h: the product's pixel code for a picture that is there as a whole. The daemon feeds it row by
 * row, as a decoder makes them. */
#pragma once

#include "daemon/augment/recipe.h"
#include "daemon/augment/resize/resample.h"
#include "daemon/decode/decode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a box as they come; see decoder_read(). */
struct box_rows {
        uint8_t *pixels;
        uint32_t width, height, n_rows;
};

static inline int box_rows_begin(void *userdata, struct why *why) {
        struct box_rows *rows = userdata;

        (void)why;
        rows->n_rows = 0;
        return 0;
}

static inline int box_rows_take(void *userdata, const struct view *view, struct why *why) {
        struct box_rows *rows = userdata;

        (void)why;
        assert(view->width == rows->width && view->height <= rows->height - rows->n_rows);
        for (uint32_t y = 0; y < view->height; y++)
                memcpy(rows->pixels + (size_t)rows->n_rows++ * rows->width * PIXEL_BYTES,
                       view->pixels + y * view->stride, (size_t)rows->width * PIXEL_BYTES);
        return 0;
}

/* decoder_read_rows() of a box, kept: the view is the box, and is there until the next call. One thread. */
static inline int decoder_read(struct decoder *decoder, const struct box *box, struct view *ret_view, struct why *why) {
        static struct box_rows rows;
        struct row_sink sink = { .begin = box_rows_begin, .take = box_rows_take, .userdata = &rows };
        int r;

        free(rows.pixels);
        rows = (struct box_rows){ .pixels = malloc((size_t)box->width * box->height * PIXEL_BYTES),
                                  .width = box->width,
                                  .height = box->height };
        assert(rows.pixels);
        r = decoder_read_rows(decoder, box, &sink, why);
        if (r < 0)
                return r;
        assert(rows.n_rows == box->height);
        *ret_view = (struct view){ .pixels = rows.pixels,
                                   .stride = (size_t)box->width * PIXEL_BYTES,
                                   .width = box->width,
                                   .height = box->height };
        return 0;
}

/* resizer_begin() and resizer_feed() of all rows. Writes the window to `out`. -ENOMEM; else 0. */
static inline int resizer_run(struct resizer *resizer, const struct view *source, const struct resize_job *job,
                              uint8_t *out, size_t stride, struct why *why) {
        int r = resizer_begin(resizer, source->width, source->height, NULL, job, out, stride, why);

        if (r < 0)
                return r;
        resizer_feed(resizer, source);
        return 0;
}

/* recipe_begin(), recipe_feed() of all rows, recipe_end(). `source` shows the pixels of geometry->source. -ENOMEM; else
 * 0. */
static inline int recipe_apply(struct workspace *workspace, const struct geometry *geometry, const struct view *source,
                               uint8_t *out, size_t stride, struct why *why) {
        int r = recipe_begin(workspace, geometry, out, stride, why);

        assert(source->width == geometry->source.width && source->height == geometry->source.height);
        if (r < 0)
                return r;
        recipe_feed(workspace, source);
        return recipe_end(workspace, why);
}

/* For _cleanup_(). */
static inline void resizer_freep(struct resizer **resizer) {
        resizer_free(*resizer);
}

static inline void decoder_freep(struct decoder **decoder) {
        decoder_free(*decoder);
}
