/* tests/support/pixels.h: the product's pixel code for a picture that is there as a whole. The daemon feeds it row by
 * row, as a decoder makes them. */
#pragma once

#include "daemon/augment/recipe.h"
#include "daemon/augment/resize/resize.h"
#include "daemon/decode/decode.h"

#include <assert.h>

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
