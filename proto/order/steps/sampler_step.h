/* order/steps/sampler_step.h: a step of a sampler's text, such as weighted(column=w, n=1000000).
 *
 * There are three roles, and a text has at most one chooser, first, and at most one grouper, last:
 *
 *   chooser    says which samples an epoch has, and in which sequence
 *   arranger   changes the sequence
 *   grouper    says which positions belong together, as a batch or as a row of a batch
 *
 * An arranger or grouper without chooser works on the base order, which `order`, `shuffle` and seed define. A step is a
 * file steps/NAME.c with one struct dlp_step_type, which the build finds (proto/text/kinds.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/order/making/making.h"
#include "proto/text/kinds.h"
#include "proto/text/step_values.h"

#define DLP_ARGUMENTS_MAX 10u

enum dlp_step_role {
        DLP_CHOOSER,
        DLP_ARRANGER,
        DLP_GROUPER,
};

struct dlp_step_type;

/* A step of a text. What it refers to belongs to the text (order/making/order_text.h). */
struct dlp_step {
        const struct dlp_step_type *type;
        struct value values[DLP_ARGUMENTS_MAX]; /* in the sequence of type->arguments */
        bool follows_chooser;                   /* else each sample of the dataset comes to it once */
};

struct dlp_step_type {
        struct kind kind; /* comes first */
        enum dlp_step_role role;

        /* What the arguments must be beside their own bounds: -EINVAL with `why`. Asks for nothing but the values.
         * NULL: they may be anything. */
        int (*check)(const struct dlp_step *step, struct why *why);

        /* How many positions leave the step at most, if n come in (a chooser: the dataset's samples). NULL: n. */
        uint64_t (*n_positions_max)(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n);

        /* A grouper: the most positions of a unit. For a slot's room, so it should not be far from the truth. */
        uint64_t (*n_unit_max)(const struct dlp_step *step, const struct dlp_making_terms *terms);

        /* A chooser: may a sample come several times? Then what is drawn for it, as crops, differs each time. */
        bool repeats;

        /* A grouper: the most elements of a unit whose samples are padded to its longest one, in the column's measure:
         * a slot needs no more, even where n_unit_max() is large because some samples are short. 0, or no function: not
         * known. */
        uint64_t (*n_elements_max)(const struct dlp_step *step, const struct dlp_making_terms *terms);

        /* A grouper: is a unit a whole batch? Else it is a row of one. */
        bool is_batch;

        /* Bytes that it takes while it works, beside the orders before and after it: for each sample of the dataset,
         * and for each of n positions that come in. */
        uint32_t sample_bytes, position_bytes;

        /* The same where it depends on the arguments, in addition. NULL: nothing. Saturates. */
        uint64_t (*scratch_bytes)(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n);

        /* Makes its part. A chooser fills `order`, which is empty; the others change it, or replace it (and give the
         * old one back). Checks the columns' values. On error the caller frees `order`. -EINVAL with `why`, -ENOMEM,
         * -ECANCELED. */
        int (*make)(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order);
};

/* All of them: each is the kind of a struct dlp_step_type. */
extern const struct kind_family dlp_samplers;
