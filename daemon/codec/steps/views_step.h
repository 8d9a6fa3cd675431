/* codec/steps/views_step.h: the step views(N): several pictures of each sample, with draws of their own, as contrastive
 * training wants them.
 *
 *      image: random_resized_crop(224) hflip(0.5) views(2); label      delivers image, image_2, label
 *
 * It is the last word of a part, also after a collation. View v of a loader (from 0) has the draws of a loader whose
 * option draws is larger by v.
 *
 * Steps that make several pictures of each sample (five_crop, ten_crop) make views as well, which all have the draws of
 * the first one, as torchvision has them: `views(5)` need not be written, and is in the normal text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"
#include "proto/layout.h"
#include "proto/text/grammar.h"

#define VIEWS_MAX 16u /* half of the tensors that a batch may have */

struct views {
        uint32_t n;    /* 0: the text does not say it */
        size_t column; /* in the text, for messages */
        bool is_crops; /* of a step that makes them */
};

/* Looks for the steps. Returns 0 with the number of steps before views(N) (all of them if there is none); -EINVAL with
 * the column: its argument is wrong, or something follows it. */
int views_read(struct grammar *grammar, struct grammar_steps steps, struct views *ret_views, uint32_t *ret_n_before,
               struct why *why);

/* How a view (from 0) of a field is called: image, image_2, image_3. -ENAMETOOLONG: longer than a tensor's name may be.
 */
int views_name(const char *field, uint32_t view, char ret_name[DLP_TENSOR_NAME_MAX]);
