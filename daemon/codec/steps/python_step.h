/* codec/steps/python_step.h: the step python(NAME): a function of the trainer's makes the field's elements of what the
 * steps before it deliver.
 *
 *      image: random_resized_crop(224) python(my); label       my changes the picture in place
 *      image: raw python(read, dtype=float32, shape=3:64:64)   read makes an array of the stored bytes
 *      image, boxes: hflip(0.5) python(my, boxes=float32[100:4])   my gets both, and delivers boxes in another form
 *      text: python(tokens, dtype=int32, shape=..512) pad      samples of up to 512 elements, which are then
 *                                                                  collated as other fields whose samples vary
 *      image: center_crop(224) python(my, batch=true)  my gets the pictures of a whole batch
 *
 * Steps for pictures may follow it (codec/steps/steps_after.h), mixing, and views(N). If the part names several
 * fields, one call gets them all. After one that gets whole batches only mixing may follow, which is of whole batches,
 * too. The function runs in processes that the trainer starts (pipeline/desk/desk.h); here is what the text says of it,
 * and where its input lies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/collate/collate_layout.h"
#include "proto/base/why.h"
#include "proto/text/kinds.h"

/* What the text says of what a function delivers for a field; what it does not say is as the function is given it. */
struct python_form {
        bool has_dtype, has_shape;
        enum dlp_dtype dtype;
        uint32_t n_dims;
        int64_t shape[FIELD_DIMS_MAX]; /* -1: varies from sample to sample, */
        int64_t most[FIELD_DIMS_MAX];  /* and this is the most that it has; else 0 */
};

/* The step, for one of the fields of its part. */
struct python_step {
        char function[DLP_FUNCTION_MAX]; /* "": the text does not have the step */
        size_t column;                   /* in the text, for messages */
        struct python_form form;
        bool goes_on;  /* the call of the function that the field before it belongs to has this one, too */
        bool is_whole; /* it gets all samples of a batch at once */
        char parameter[DLP_TENSOR_NAME_MAX]; /* as which the function gets it: the field's name, without that of a view
                                              */
};

/* The step as the text has it. */
struct python_call {
        char function[DLP_FUNCTION_MAX]; /* "": the text does not have the step */
        size_t column;
        struct grammar_steps after; /* steps after it */
        struct python_form form;    /* dtype= and shape= */
        bool is_whole;              /* batch= */
        uint32_t n_named;
        struct python_named {                        /* FIELD= */
                char field[DLP_TENSOR_NAME_MAX + 1]; /* of one that is longer than any field's name, the beginning */
                size_t column;
                struct python_form form;
        } named[KIND_LIST_MAX];
};

/* Looks for the step. Returns 0 with the number of steps before it (all of them if there is none); -EINVAL with the
 * column: its arguments are wrong, or another one follows it. */
int python_step_read(struct grammar *grammar, struct grammar_steps steps, struct python_call *ret_call,
                     uint32_t *ret_n_before, struct why *why);

/* The fields of a part with these names become those of the call, if there is one. -EINVAL: it says something of
 * another field, or does not say of which. */
int python_step_bind(const struct python_call *call, const char *const *fields, uint32_t n_fields,
                     struct python_step *ret_steps, struct why *why);

/* The call of these fields in its one normal spelling. */
void python_step_print(const struct python_step *const *steps, uint32_t n_steps, FILE *stream);

/* Does the size of what the function delivers vary from sample to sample? */
bool python_step_varies(const struct python_step *step);

/* Changes the form of a field accordingly: to what the function delivers. Where its input has another type or shape, or
 * varies, the form says that it lies in a place of its own; and where what it delivers varies, so does that (`result`).
 * -EINVAL: no function can be applied to it, or what it delivers must be said. */
int python_step_apply(const struct python_step *step, struct field_form *form, struct why *why);
