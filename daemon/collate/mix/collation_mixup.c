/* mixup: each sample is mixed with the one before it in the batch, as torchvision's MixUp. */
#include <errno.h>

#include "daemon/collate/collation_type.h"

static int settle(struct value *values, struct collation *collation, struct why *why) {
        collation->mix = (struct mix_terms){
                .mixup = values[0].number, .p = 1, .n_classes = (uint32_t)values[1].whole, .partner = MIX_PREVIOUS
        };
        return values[0].number > 0 ? 0 : why_set(why, -EINVAL, "alpha is 0; expected more than 0");
}

const struct collation_type collation_mixup = {
        .kind = { .name = "mixup",
                  .doc = "torchvision's MixUp: samples are stacked, and each becomes lam times itself and 1-lam times the "
                         "sample before it in the batch; the first one is mixed with the last. lam is drawn once for "
                         "each batch, from Beta(alpha, alpha). Labels are named with the picture and are mixed alike: "
                         "a whole number becomes float32 [N], 1 at its class and 0 elsewhere, before it is mixed.",
                  .like = "torchvision.transforms.v2.MixUp",
                  .example = "mixup(num_classes=1000)",
                  .arguments = ARGUMENTS({ ARGUMENT_NUMBER, "alpha", "1", 0, INFINITY },
                                         { ARGUMENT_WHOLE, "num_classes", NULL, 1, COLLATION_WHOLE_MAX,
                                           .is_optional = true, .needs_key = true }) },
        .mixes = true,
        .settle = settle,
        .apply = collation_apply_mix,
};
