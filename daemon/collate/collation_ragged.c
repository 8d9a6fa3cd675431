/* ragged: samples of any length. They lie where there was room for them when they came; joined, one after the other in
 * the sequence of the batch, without gaps: values and offsets, as torch's nested tensors and flash attention take
 * them. */

#include <errno.h>
#include <stddef.h>

#include "daemon/collate/collation_type.h"

static const char *const YES_NO[] = { "false", "true" };

static int apply(const struct collation *collation, struct field_form *form, struct why *why) {
        if (form->n_padded_dims > 1)
                return why_set(why, -EINVAL,
                               "is pictures, whose height and width vary: pad them, or give them one size");
        if (form->padded_dim > 0 && form->shape[form->padded_dim] < 0)
                return why_set(why, -EINVAL,
                               "varies in a dimension that is not its first: pad it, give it one length, or end the "
                               "steps with transpose");
        if (form->is_gathered)
                return why_set(why, -EINVAL, "is put together from several places and has one length: use stack");
        if (form->how == COLLATE_STACK) {
                form->how = COLLATE_RAGGED;
                form->fails_late = true; /* its codec may refuse a sample at any time */
                form->max_bytes = field_form_bytes(form, form->shape);
        }
        form->is_joined = collation->is_joined;
        return 0;
}

const struct collation_type COLLATION_RAGGED = {
        .name = "ragged",
        .arguments = { { "joined", COLLATION_CHOICE, offsetof(struct collation, is_joined), .choices = YES_NO,
                         .n_choices = 2 } },
        .apply = apply,
};
