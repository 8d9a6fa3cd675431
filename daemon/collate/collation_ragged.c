/* ragged: samples of any length. They lie where there was room for them when they came; joined, one after the other in
 * the sequence of the batch, without gaps: values and offsets, as torch's nested tensors and flash attention take
 * them. */

#include <errno.h>

#include "daemon/collate/collation_type.h"

static int settle(struct value *values, struct collation *collation, struct why *why) {
        (void)why;
        collation->is_joined = values[0].flag;
        return 0;
}

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

const struct collation_type collation_ragged = {
        .kind = { .name = "ragged",
                  .doc = "A list of arrays. With `joined=true` the samples of a batch lie one after the other without "
                         "gaps, in its sequence: values and offsets, as torch's nested tensors and the cu_seqlens of "
                         "flash attention want them; they are moved together when the batch is whole.",
                  .example = "ragged(joined=true)",
                  .arguments = ARGUMENTS({ ARGUMENT_FLAG, "joined", "false", .needs_key = true }) },
        .settle = settle,
        .apply = apply,
};
