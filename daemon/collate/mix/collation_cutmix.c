/* cutmix: each sample gets a box of the one before it in the batch, as torchvision's CutMix. */
#include <errno.h>

#include "daemon/collate/collation_type.h"

static int settle(struct value *values, struct collation *collation, struct why *why) {
        collation->mix = (struct mix_terms){
                .cutmix = values[0].number, .p = 1, .n_classes = (uint32_t)values[1].whole, .partner = MIX_PREVIOUS
        };
        return values[0].number > 0 ? 0 : why_set(why, -EINVAL, "alpha is 0; expected more than 0");
}

const struct collation_type collation_cutmix = {
        .kind = { .name = "cutmix",
                  .doc = "The same as `mixup` with a box that is taken from the other sample. `lam` is the share of "
                         "the picture that stays; it decides the labels. The part has one picture.",
                  .like = "torchvision.transforms.v2.CutMix",
                  .example = "cutmix(num_classes=1000)",
                  .arguments = ARGUMENTS({ ARGUMENT_NUMBER, "alpha", "1", 0, INFINITY },
                                         { ARGUMENT_WHOLE, "num_classes", NULL, 1, COLLATION_WHOLE_MAX,
                                           .is_optional = true, .needs_key = true }) },
        .mixes = true,
        .settle = settle,
        .apply = collation_apply_mix,
};
