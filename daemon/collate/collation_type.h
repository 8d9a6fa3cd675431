/* collate/collation_type.h: what a collation is made of. Private to this floor.
 *
 * A collation is a file collation_NAME.c with one struct collation_type, which the build finds (proto/text/kinds.h). So
 * is mlm, the step before pad that hides tokens: its labels are padded with them. */
#pragma once

#include <math.h>

#include "daemon/collate/collation.h"
#include "proto/text/kinds.h"
#include "proto/text/step_values.h"

#define COLLATION_ARGUMENTS_MAX 10u
#define COLLATION_WHOLE_MAX     2147483647.0 /* also of both numbers of a size: their product stays in 64 bits */

struct collation_type {
        struct kind kind; /* comes first */
        bool mixes;       /* collation_mixes() */
        bool is_of_batch; /* what a sample becomes depends on the others of its batch, without their values in it */

        /* Arguments of a step for pictures with the same name, NULL-terminated: if the text has one of them, or one
         * without a name, that step is meant. NULL: there is no such step. */
        const char *const *of_step;

        /* Writes down what the arguments say, and makes of each its one spelling. -EINVAL with a sentence: they exclude
         * each other. NULL: they say nothing.
         */
        int (*settle)(struct value *values, struct collation *collation, struct why *why);

        /* As collation_added(); NULL after the last one. NULL: adds nothing. */
        const char *(*added)(const struct collation *collation, unsigned idx);

        int (*apply)(const struct collation *collation, struct field_form *form, struct why *why);
};

/* ---- arguments of several collations ---------------------------------------------------------------------------- */

/* What is filled in; see collation_fill(). */
#define COLLATION_VALUE                                                                                                \
        { ARGUMENT_NUMBER, "value", .minimum = -INFINITY, .maximum = INFINITY, .is_optional = true, .needs_key = true }

/* In the sequence of enum padding_labels. */
#define COLLATION_LABELS                                                                                               \
        { ARGUMENT_CHOICE, "labels", CHOICES("none", "same", "shifted"), .is_optional = true, .needs_key = true }

/* Not a number: it is not given. */
static inline double collation_number(const struct value *value) {
        return value->is_set ? value->number + 0.0 : NAN; /* -0 is 0 */
}

/* What a field is filled with where a sample has nothing: the value of the text, else LABEL_IGNORED for a field that is
 * called labels, which losses leave out, and 0 for any other. -EINVAL: its dtype cannot hold it. */
int collation_fill(const struct field_form *form, double value, double *ret_fill, struct why *why);

/* Is it a dtype of whole numbers, and which can it hold? */
bool collation_is_whole(enum dlp_dtype dtype, double *ret_minimum, double *ret_maximum);

/* apply() of what mixes samples with one another. */
int collation_apply_mix(const struct collation *collation, struct field_form *form, struct why *why);

extern const struct collation_type collation_stack, collation_pad, collation_pack, collation_mlm;

/* All of them: each is the kind of a struct collation_type. */
extern const struct kind_family collation_kinds;
