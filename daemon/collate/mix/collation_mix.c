/* mix: samples of one shape, each mixed with another one of its batch (collate/mix/mix.h), as timm's Mixup; and what
 * mixup and cutmix have in common with it. */
#include <errno.h>

#include "daemon/collate/collation_type.h"
#include "daemon/collate/mix/blend.h"

enum {
        MIXUP,
        CUTMIX,
        MINMAX,
        PROB,
        SWITCH_PROB,
        MODE,
        CORRECT_LAM,
        SMOOTHING,
        CLASSES,
        PARTNER
};

static int settle(struct value *values, struct collation *collation, struct why *why) {
        struct mix_terms *mix = &collation->mix;

        *mix = (struct mix_terms){ .mixup = values[MIXUP].number,
                                   .cutmix = values[CUTMIX].number,
                                   .minmax = { values[MINMAX].range.from, values[MINMAX].range.to },
                                   .p = values[PROB].number,
                                   .switch_p = values[SWITCH_PROB].number,
                                   .mode = values[MODE].choice,
                                   .keeps_lam = !values[CORRECT_LAM].flag,
                                   .smoothing = values[SMOOTHING].number,
                                   .n_classes = (uint32_t)values[CLASSES].whole,
                                   .partner = values[PARTNER].choice };
        if (!mix_is_some(mix))
                return why_set(why, -EINVAL,
                               "mixup_alpha is 0 and cutmix_alpha 0; expected more than 0 for one of them");
        if (mix->mode == MIX_PAIR && mix->partner != MIX_MIRRORED)
                return why_set(why, -EINVAL,
                               "mode=pair mixes the first sample with the last, the second with the last but one, and "
                               "so on: leave partner=previous out");
        return 0;
}

int collation_apply_mix(const struct collation *collation, struct field_form *form, struct why *why) {
        bool is_picture = form->n_padded_dims > 1;

        if (form->dtype == DLP_DTYPE_TEXT || form->dtype == DLP_DTYPE_TEXTS || form->dtype == DLP_DTYPE_BYTES)
                return why_set(why, -EINVAL, "is %s, which cannot be mixed%s",
                               form->dtype == DLP_DTYPE_BYTES ? "bytes" : "text",
                               form->dtype == DLP_DTYPE_BYTES ? ": let steps make a picture of it, or name it in a "
                                                                "part of its own"
                                                              : ": name it in a part of its own");
        if (form->how != COLLATE_STACK)
                return why_set(why, -EINVAL,
                               "has samples of different sizes, or some samples lack it; only what all samples have "
                               "in one size can be mixed: name it in a part of its own");
        if (!blend_of(form->dtype) || (form->dtype == DLP_DTYPE_UINT8 && !is_picture))
                return why_set(why, -EINVAL,
                               "is %s; pictures of uint8 can be mixed, float16, bfloat16, float32 and float64, and "
                               "labels that are one whole number a sample: %s",
                               dlp_dtype_name(form->dtype),
                               is_picture ? "use to(float32)" : "name it in a part of its own");
        form->mix = collation->mix;
        return 0;
}

const struct collation_type collation_mix = {
        .kind = { .name = "mix",
                  .doc = "timm's Mixup (1.0.31), with its arguments. If both alphas are more than 0, it is cutmix "
                         "with the probability `switch_prob`, else mixup. With `cutmix_minmax`, `cutmix_alpha` is "
                         "1, as in timm. The first sample of a batch is mixed with the last, the second with the "
                         "last but one, and so on; the middle one of an odd batch with itself. With `mode=elem` "
                         "each sample has a `lam` and a box of its own, with `mode=pair` the two of a pair share "
                         "theirs, and the middle one stays as it is. `partner=previous` is torchvision's partner, "
                         "and its box, which loses the last row or column of a side of odd length: "
                         "`mix(cutmix_alpha=1, label_smoothing=0, num_classes=N, partner=previous)` is "
                         "RandomChoice([CutMix(), MixUp()]). All arguments have names.",
                  .like = "timm.data.Mixup",
                  .example = "mix(mixup_alpha=0.2, num_classes=1000)",
                  .arguments =
                          ARGUMENTS([MIXUP] = { ARGUMENT_NUMBER, "mixup_alpha", "1", 0, INFINITY, .needs_key = true },
                                    [CUTMIX] = { ARGUMENT_NUMBER, "cutmix_alpha", "0", 0, INFINITY, .needs_key = true },
                                    [MINMAX] = { ARGUMENT_RANGE, "cutmix_minmax", NULL, 0, 1, .is_optional = true,
                                                 .needs_key = true },
                                    [PROB] = { ARGUMENT_NUMBER, "prob", "1", 0, 1, .needs_key = true,
                                               .attribute = "mix_prob" },
                                    [SWITCH_PROB] = { ARGUMENT_NUMBER, "switch_prob", "0.5", 0, 1, .needs_key = true },
                                    [MODE] = { ARGUMENT_CHOICE, "mode", "batch", CHOICES("batch", "pair", "elem"),
                                               .needs_key = true },
                                    [CORRECT_LAM] = { ARGUMENT_FLAG, "correct_lam", "true", .needs_key = true },
                                    [SMOOTHING] = { ARGUMENT_NUMBER, "label_smoothing", "0.1", 0, 1,
                                                    .needs_key = true },
                                    [CLASSES] = { ARGUMENT_WHOLE, "num_classes", NULL, 1, COLLATION_WHOLE_MAX,
                                                  .is_optional = true, .needs_key = true },
                                    [PARTNER] = { ARGUMENT_CHOICE, "partner", "mirrored",
                                                  CHOICES("mirrored", "previous"), .needs_key = true }) },
        .mixes = true,
        .settle = settle,
        .apply = collation_apply_mix,
};
