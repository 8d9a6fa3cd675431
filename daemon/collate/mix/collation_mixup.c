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
                  .doc = "Samples are stacked, and each becomes `lam` times itself and "
                         "1-`lam` times the sample before it in the batch; the first one is mixed with the last. "
                         "`lam` is drawn once for each batch, from Beta(alpha, alpha). Labels are named with the "
                         "picture (`image, label: ...`) and are mixed alike: a whole number becomes float32 [N], 1 "
                         "at its class and 0 elsewhere, before it is mixed. A sample whose number is not one of a "
                         "class is damaged. Without names in the pipeline the label is the only whole number that "
                         "is delivered.\n\n"
                         "What is mixed has one size and is uint8 (pictures only), float16, bfloat16, float32 or "
                         "float64: pictures in either layout, arrays, sound of one length, labels that are soft "
                         "already. Boxes, points and masks are refused, and so is what is padded or ragged. The "
                         "results have the bits of torch on a CPU. Pictures of uint8, which torch's MixUp refuses, "
                         "are computed in float32 and rounded to the nearest, ties to even, as timm's "
                         "FastCollateMixup does.\n\n"
                         "Partners are those of the batch that is delivered: a sample that is skipped is nobody's "
                         "partner, a substitute is one like any other. A batch of one sample is mixed with itself. "
                         "What is drawn depends on seed, epoch and the position in the epoch of the batch's first "
                         "sample, so a run that is resumed at the same place with the same batch size and world "
                         "size sees the same batches. The mixing is done by the daemon, and so are the steps before "
                         "it: a client with a GPU gets such pictures finished.",
                  .like = "torchvision.transforms.v2.MixUp",
                  .example = "mixup(num_classes=1000)",
                  .arguments = ARGUMENTS({ ARGUMENT_NUMBER, "alpha", "1", 0, INFINITY },
                                         { ARGUMENT_WHOLE, "num_classes", NULL, 1, COLLATION_WHOLE_MAX,
                                           .is_optional = true, .needs_key = true }) },
        .mixes = true,
        .settle = settle,
        .apply = collation_apply_mix,
};
