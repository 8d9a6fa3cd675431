/* mixup, cutmix and mix: samples of one shape, each mixed with another one of its batch (collate/mix/mix.h). The first
 * two are torchvision's MixUp and CutMix, the third is timm's Mixup. */

#include <errno.h>
#include <stddef.h>

#include "daemon/collate/collation_type.h"
#include "daemon/collate/mix/blend.h"

static const char *const TRUE_FALSE[] = { "true", "false" };
static const char *const MODES[] = { "batch", "pair", "elem" };
static const char *const PARTNERS[] = { "mirrored", "previous" };

/* ---- what the text says ---------------------------------------------------------------------------------------- */

static void init_mixup(struct collation *collation) {
        collation->mix = (struct mix_terms){ .mixup = 1, .p = 1, .partner = MIX_PREVIOUS };
}

static void init_cutmix(struct collation *collation) {
        collation->mix = (struct mix_terms){ .cutmix = 1, .p = 1, .partner = MIX_PREVIOUS };
}

/* timm's defaults. */
static void init_mix(struct collation *collation) {
        collation->mix = (struct mix_terms){ .mixup = 1, .p = 1, .switch_p = 0.5, .smoothing = 0.1 };
}

static bool collation_mix_is_share(double number) {
        return number >= 0 && number <= 1;
}

static int check_alpha(const struct collation *collation, struct why *why) {
        double alpha = collation->mix.mixup + collation->mix.cutmix; /* one of them is 0 */

        return alpha > 0 ? 0 : why_set(why, -EINVAL, "alpha is %g; expected more than 0", alpha);
}

static int check_mix(const struct collation *collation, struct why *why) {
        const struct mix_terms *mix = &collation->mix;

        if (mix->mixup < 0 || mix->cutmix < 0 || !mix_is_some(mix))
                return why_set(
                        why, -EINVAL,
                        "mixup_alpha is %g and cutmix_alpha %g; expected 0 (never) or more each, and more than 0 "
                        "for one of them",
                        mix->mixup, mix->cutmix);
        if (!collation_mix_is_share(mix->p) || !collation_mix_is_share(mix->switch_p) ||
            !collation_mix_is_share(mix->smoothing))
                return why_set(why, -EINVAL, "prob is %g, switch_prob %g and label_smoothing %g; expected 0 to 1 each",
                               mix->p, mix->switch_p, mix->smoothing);
        if (mix->mode == MIX_PAIR && mix->partner != MIX_MIRRORED)
                return why_set(why, -EINVAL,
                               "mode=pair mixes the first sample with the last, the second with the last but one, and "
                               "so on: leave partner=previous out");
        return 0;
}

/* ---- what can be mixed ----------------------------------------------------------------------------------------- */

static int apply(const struct collation *collation, struct field_form *form, struct why *why) {
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

#define CLASSES                                                                                                        \
        { "num_classes", COLLATION_COUNT, offsetof(struct collation, mix.n_classes), .is_optional = true }

const struct collation_type COLLATION_MIXUP = {
        .name = "mixup",
        .arguments = { { "alpha", COLLATION_NUMBER, offsetof(struct collation, mix.mixup) }, CLASSES },
        .first_needs_no_name = true,
        .mixes = true,
        .init = init_mixup,
        .check = check_alpha,
        .apply = apply,
};

const struct collation_type COLLATION_CUTMIX = {
        .name = "cutmix",
        .arguments = { { "alpha", COLLATION_NUMBER, offsetof(struct collation, mix.cutmix) }, CLASSES },
        .first_needs_no_name = true,
        .mixes = true,
        .init = init_cutmix,
        .check = check_alpha,
        .apply = apply,
};

const struct collation_type COLLATION_MIX = {
        .name = "mix",
        .arguments = { { "mixup_alpha", COLLATION_NUMBER, offsetof(struct collation, mix.mixup) },
                       { "cutmix_alpha", COLLATION_NUMBER, offsetof(struct collation, mix.cutmix) },
                       { "cutmix_minmax", COLLATION_SHARES, offsetof(struct collation, mix.minmax),
                         .is_optional = true },
                       { "prob", COLLATION_NUMBER, offsetof(struct collation, mix.p) },
                       { "switch_prob", COLLATION_NUMBER, offsetof(struct collation, mix.switch_p) },
                       { "mode", COLLATION_CHOICE, offsetof(struct collation, mix.mode), .choices = MODES,
                         .n_choices = 3 },
                       { "correct_lam", COLLATION_CHOICE, offsetof(struct collation, mix.keeps_lam),
                         .choices = TRUE_FALSE, .n_choices = 2 },
                       { "label_smoothing", COLLATION_NUMBER, offsetof(struct collation, mix.smoothing) },
                       CLASSES,
                       { "partner", COLLATION_CHOICE, offsetof(struct collation, mix.partner), .choices = PARTNERS,
                         .n_choices = 2 } },
        .mixes = true,
        .init = init_mix,
        .check = check_mix,
        .apply = apply,
};
