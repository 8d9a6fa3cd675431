/* stack: all samples of a batch have one shape, without gaps. Where a field's shape varies, the first sample of a batch
 * decides it. */

#include <errno.h>

#include "daemon/collate/collation_type.h"

static int apply(const struct collation *collation, struct field_form *form, struct why *why) {
        (void)collation;
        if (form->how == COLLATE_STACK)
                return 0;
        if (form->dtype == DLP_DTYPE_TEXT || form->dtype == DLP_DTYPE_TEXTS || form->dtype == DLP_DTYPE_BYTES)
                return why_set(why, -EINVAL, "is %s of any length, which cannot be stacked: leave stack out",
                               form->dtype == DLP_DTYPE_BYTES ? "bytes" : "text");
        form->how = COLLATE_STACK;
        if (form->max_bytes != UINT64_MAX && !form->takes_share)
                form->asked_bytes = form->max_bytes;
        return 0;
}

const struct collation_type collation_stack = {
        .kind = { .name = "stack",
                  .doc = "One array without gaps. If the size of a field varies, all samples of a batch must have the "
                         "same one; a difference ends the job with a message that names both.",
                  .example = "stack" },
        .apply = apply,
};
