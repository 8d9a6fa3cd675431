/* codec/steps/own_step.h: the step python(NAME): a function of the trainer's makes the field's elements of what the
 * steps before it deliver.
 *
 *      image: random_resized_crop(224) python(my); label       my changes the picture in place
 *      image: raw python(read, dtype=float32, shape=3:64:64)   read makes an array of the stored bytes
 *
 * It is the last step of a part that names one field; only views(N) and stack may follow. The function runs in
 * processes that the trainer starts (pipeline/desk/desk.h); here is what the text says of it, and where its input lies.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/collate/layout.h"
#include "proto/base/why.h"

struct own_step {
        char function[DLP_FUNCTION_MAX]; /* "": the text does not have the step */
        size_t column;                   /* in the text, for messages */
        bool has_dtype, has_shape;       /* else as its input */
        enum dlp_dtype dtype;
        uint32_t n_dims;
        int64_t shape[FIELD_DIMS_MAX]; /* none is negative */
};

/* Looks for the step in text[begin] to text[end - 1]. Returns 0 with where the steps before it end (`end` if there is
 * none); -EINVAL with the column: its arguments are wrong, or something follows it. */
int own_step_take(const char *text, size_t begin, size_t end, struct own_step *ret_step, size_t *ret_steps_end,
                  struct why *why);

/* In its one normal spelling. */
void own_step_print(const struct own_step *step, FILE *stream);

/* Changes the form of a field accordingly: to what the function delivers. Where its input has another type or shape, or
 * varies, the form says that it lies in a place of its own. -EINVAL: no function can be applied to it, or what it
 * delivers must be said. */
int own_step_apply(const struct own_step *step, struct field_form *form, struct why *why);
