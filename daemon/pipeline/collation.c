#include "daemon/pipeline/collation.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/pipeline/job.h"
#include "proto/layout.h"

/* Of memory_limit, what a ring of pictures of varying size gets unless the pipeline says how large they are; where that
 * is little, more of it. */
#define VARYING_SHARE     16u
#define VARYING_BYTES_MIN (64ull << 20)
#define VARYING_SHARE_MIN 4u

static uint64_t align_tensor(uint64_t offset) {
        return (offset + DLP_TENSOR_ALIGN - 1) / DLP_TENSOR_ALIGN * DLP_TENSOR_ALIGN;
}

/* ---- the longest files --------------------------------------------------------------------------------------- */

/* A heap with the smallest of the n longest on top: `lengths` has n of them, the one on top is to be replaced. */
static void heap_replace_first(uint64_t *lengths, uint64_t n, uint64_t length) {
        uint64_t at = 0;

        for (;;) {
                uint64_t child = 2 * at + 1;

                if (child + 1 < n && lengths[child + 1] < lengths[child])
                        child++;
                if (child >= n || lengths[child] >= length)
                        break;
                lengths[at] = lengths[child];
                at = child;
        }
        lengths[at] = length;
}

/* Room for the `n` longest samples together. A batch has no sample twice, unless it is a substitute for another one. */
static int longest_together(const struct index *index, uint32_t n, uint64_t *ret_bytes) {
        _cleanup_(freep) uint64_t *lengths = calloc(n, sizeof(*lengths)); /* all zero: a heap */
        uint64_t n_bytes = 0;

        if (!lengths)
                return -ENOMEM;
        for (uint64_t sample = 0; sample < index_n_samples(index); sample++) {
                uint64_t length = index_length(index, sample);

                if (length > lengths[0])
                        heap_replace_first(lengths, n, length);
        }
        for (uint32_t i = 0; i < n; i++)
                n_bytes += align_tensor(lengths[i]);
        *ret_bytes = n_bytes;
        return 0;
}

static int plan_raw(struct collation *collation, const struct job_terms *terms, const struct index *index,
                    uint64_t *ret_bytes, struct why *why) {
        collation->sample_bytes = align_tensor(index_max_length(index));
        *ret_bytes = collation->sample_bytes * terms->batch_size;
        if (terms->on_error == ON_ERROR_SUBSTITUTE) /* the same one may stand in for all others */
                return 0;
        if (longest_together(index, terms->batch_size, ret_bytes) < 0)
                return why_errno(why, -ENOMEM, "stream");
        return 0;
}

/* ---- pictures of varying size -------------------------------------------------------------------------------- */

static uint64_t varying_ring_bytes(uint64_t memory_limit) {
        uint64_t share = memory_limit / VARYING_SHARE, most = memory_limit / VARYING_SHARE_MIN;

        if (share < VARYING_BYTES_MIN)
                share = most < VARYING_BYTES_MIN ? most : VARYING_BYTES_MIN;
        return share;
}

static int plan_varying(struct collation *collation, uint64_t asked_pixels, uint32_t batch_size,
                        const struct collation_limits *limits, struct why *why) {
        uint64_t pixel_bytes = pixel_format_bytes(&collation->format);
        uint64_t share = varying_ring_bytes(limits->memory_limit) / limits->n_slots / batch_size / pixel_bytes;
        uint64_t n_pixels = asked_pixels ? asked_pixels : share;

        if (n_pixels == 0)
                return why_set(why, -EOVERFLOW,
                               "batch_size: %u slots of %u pictures of any size have no room for a pixel each; ask for "
                               "a smaller batch or fewer slots, let the pipeline crop to one size, begin it with "
                               "decode(max_pixels=N), or raise memory_limit",
                               limits->n_slots, batch_size);
        collation->sample_bytes = (n_pixels < limits->max_pixels ? n_pixels : limits->max_pixels) * pixel_bytes;
        return 0;
}

/* ---- all of them --------------------------------------------------------------------------------------------- */

/* Labels first: their size is known whatever the pictures turn out to be. */
int collation_plan(struct collation *collation, const struct recipe *recipe, const struct job_terms *terms,
                   const struct index *index, const struct collation_limits *limits, struct why *why) {
        uint32_t batch_size = terms->batch_size;
        uint64_t images_bytes = 0;
        int r = 0;

        *collation = (struct collation){
                .ragged = recipe_kind(recipe) == RECIPE_RAW,
                .format = *recipe_format(recipe),
                .images_offset = align_tensor((uint64_t)batch_size * sizeof(int64_t)),
        };
        if (collation->ragged) {
                r = plan_raw(collation, terms, index, &images_bytes, why);
        } else if (recipe_output(recipe, &collation->height, &collation->width) == RECIPE_VARIES) {
                collation->varies = true;
                r = plan_varying(collation, recipe_max_pixels(recipe), batch_size, limits, why);
        } else {
                collation->sample_bytes = (uint64_t)collation->height * collation->width *
                                          pixel_format_bytes(&collation->format);
        }
        if (r < 0)
                return r;
        if (collation->sample_bytes > DLP_PAYLOAD_MAX / batch_size)
                return why_set(why, -EOVERFLOW,
                               "batch_size: %u samples of up to %llu bytes pass the limit of %llu bytes a ring; "
                               "ask for a smaller batch, or let the pipeline crop to one size",
                               batch_size, (unsigned long long)collation->sample_bytes, DLP_PAYLOAD_MAX);
        if (!collation->ragged)
                images_bytes = collation->sample_bytes * batch_size;
        collation->slot_bytes = collation->images_offset + align_tensor(images_bytes);
        return 0;
}
