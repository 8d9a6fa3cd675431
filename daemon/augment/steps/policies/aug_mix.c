/* augment/steps/policies/aug_mix.c: torchvision's AugMix. Draws two words, a seed; what is drawn from that is in
 * operations/aug_mix/aug_mix_draws.h. */
#include "daemon/augment/noise.h"
#include "daemon/augment/operations/aug_mix/aug_mix_draws.h"
#include "daemon/augment/steps/policies/policies.h"
#include "daemon/augment/steps/warps/warps.h"

enum {
        SEVERITY,
        WIDTH,
        DEPTH,
        ALPHA,
        ALL_OPS,
        INTERPOLATION,
        FILL
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        const struct value *fill = &values[FILL];
        double depth = values[DEPTH].list[0];
        struct operation operation = {
                .type = &operation_aug_mix,
                .amount = (float)values[SEVERITY].list[0],
                .others = { (float)values[ALPHA].number },
                .box = { .x = (uint32_t)values[WIDTH].list[0],
                         .y = depth > 0 ? (uint32_t)depth : 0,
                         .width = values[INTERPOLATION].choice,
                         .height = fill->n_list > 0 ? 1 : 0 },
                .flag = values[ALL_OPS].choice == 1,
                .seed = noise_seed(philox),
        };
        int r = policy_begin(fold, "aug_mix", why);

        if (r < 0)
                return r;
        for (uint32_t i = 0; i < PIXEL_BYTES && fill->n_list > 0; i++)
                operation.color[i] = (uint8_t)fill->list[fill->n_list == 1 ? 0 : i];
        fold_operate(fold, &operation);
        return 0;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return policy_check(&values[FILL], conversion, why);
}

/* Without a fill, which is not the same as a fill of 0: warp/grid_mix.c. Tensors are not mixed by cubic curves. */
const struct step_type step_aug_mix = {
        .kind = { .name = "aug_mix",
                  .doc = "`mixture_width` (1 to 16) chains of changes are made of the picture and mixed with it. A "
                         "chain has `chain_depth` (up to 16) changes, or, if that is 0 or -1, one to three, which is "
                         "drawn. `severity` (1 to 10) is how far the changes may go; `all_ops=false` leaves out "
                         "brightness, color, contrast and sharpness. The weights are drawn from Dirichlet "
                         "distributions of `alpha` (0.001 to 1000). `interpolation` is nearest or bilinear. Without "
                         "`fill` there is black around what is moved; with one, also with `fill=0`, the edges "
                         "themselves differ, as in torchvision.\n\n"
                         "The pixels are those of torchvision.transforms.v2, which makes a tensor of Pillow's picture "
                         "for it; it is for pictures of RGB and L. It needs memory for `mixture_width` + 1 more "
                         "pictures, so write it after the crop.",
                  .like = "torchvision.transforms.v2.AugMix",
                  .example = "aug_mix(3, mixture_width=3)",
                  .arguments = ARGUMENTS([SEVERITY] = ARGUMENT_COUNT("severity", "3", 1, AUG_MIX_BINS),
                                         [WIDTH] = ARGUMENT_COUNT("mixture_width", "3", 1, AUG_MIX_WIDTH_MAX),
                                         [DEPTH] = ARGUMENT_COUNT("chain_depth", "-1", -1, AUG_MIX_DEPTH_MAX),
                                         [ALPHA] = { ARGUMENT_NUMBER, "alpha", "1", 0.001, 1000 },
                                         [ALL_OPS] = { ARGUMENT_FLAG, "all_ops", "true" },
                                         [INTERPOLATION] = { ARGUMENT_CHOICE, "interpolation", "bilinear",
                                                             .choices = WARP_FILTER_NAMES,
                                                             .n_choices = WARP_BILINEAR + 1 },
                                         [FILL] = { ARGUMENT_LIST, "fill", NULL, 0, 255, .counts = 1u << 1 | 1u << 3,
                                                    .is_whole = true, .form = "N or R:G:B", .is_optional = true }) },
        .stage = STAGE_AUG_MIX,
        .plan = plan,
        .convert = convert,
};
