/* augment/steps/policies/timm_rand_augment.c: timm's RandAugment, whose text is rand-m9-mstd0.5-inc1 there. For each of
 * num_layers changes draws five words, whatever of them is needed:
 *
 *      below(15)  which change it is, in the sequence of the table below
 *      f32        at most p means that it happens
 *      one word   the magnitude: a normal number (noise.h) around the given one, times mstd; with mstd above 100 the
 *                 word's f32 times the given one
 *      f32        above 1/2 means the negative sign, for those that have one
 *      f32        with interpolation=random: below 1/2 bilinear, else bicubic, for those that warp
 *
 * Numbers are float64, as Python's. */
#include <errno.h>
#include <math.h>

#include "daemon/augment/noise.h"
#include "daemon/augment/steps/policies/policies.h"
#include "daemon/augment/steps/warps/warps.h"

enum {
        MAGNITUDE,
        N_LAYERS,
        PROBABILITY,
        MSTD,
        MMAX,
        INCREASING,
        INTERPOLATION,
        FILL
};

#define N_LAYERS_MAX 4   /* each may begin a stage, and a step begins at most four (STAGES_MAX) */
#define MSTD_UNIFORM 100 /* above */
#define LEVELS       10. /* a magnitude of 10 is the end of all scales */

/* The filters of warps, and a draw between the two that mix. */
static const char *const FILTER_NAMES[] = { "nearest", "bilinear", "bicubic", "random" };
#define FILTER_RANDOM N_WARP_FILTERS

enum change {
        AUTO_CONTRAST,
        EQUALIZE,
        INVERT,
        ROTATE,
        POSTERIZE,
        SOLARIZE,
        SOLARIZE_ADD,
        COLOR,
        CONTRAST,
        BRIGHTNESS,
        SHARPNESS,
        SHEAR_X,
        SHEAR_Y,
        TRANSLATE_X,
        TRANSLATE_Y,
        N_CHANGES
};

/* What a change is done with. */
struct strength {
        double level; /* 0 to 1, or beyond with mmax above 10 */
        double sign;
        bool is_increasing;
};

static int timm_rand_augment_operate(struct fold *fold, const struct operation_type *type, double amount) {
        fold_operate(fold, &(struct operation){ type, (float)amount });
        return 0;
}

/* 1 is the unchanged picture. */
static double timm_rand_augment_factor_of(const struct strength *strength) {
        if (!strength->is_increasing)
                return strength->level * 1.8 + 0.1;
        return fmax(0.1, 1.0 + strength->sign * (strength->level * .9));
}

/* Whole numbers are truncated. A picture that would keep less than no bits is black. */
static double timm_rand_augment_bits_of(const struct strength *strength) {
        double bits = trunc(strength->level * 4);

        if (strength->is_increasing)
                bits = 4 - bits;
        return bits < 0 ? 0 : bits > 8 ? 8 : bits;
}

static double threshold_of(const struct strength *strength) {
        double threshold = fmin(256, trunc(strength->level * 256));

        return strength->is_increasing ? 256 - threshold : threshold;
}

static int timm_rand_augment_move(struct fold *fold, double x_of_y, double x, double y_of_x, double y,
                                  const struct warp_look *look, struct why *why) {
        const double matrix[6] = { 1, x_of_y, x, y_of_x, 1, y };

        return fold_matrix(fold, matrix, look, why);
}

static int do_change(struct fold *fold, enum change change, const struct strength *strength,
                     const struct warp_look *look, struct why *why) {
        double signed_level = strength->sign * strength->level;
        double moved = strength->sign * (strength->level * 0.45), sheared = strength->sign * (strength->level * 0.3);
        struct warp_center middle = { 0 };

        switch (change) {
        case AUTO_CONTRAST:
                return timm_rand_augment_operate(fold, &operation_autocontrast, 0);
        case EQUALIZE:
                return timm_rand_augment_operate(fold, &operation_equalize, 0);
        case INVERT:
                return timm_rand_augment_operate(fold, &operation_invert, 0);
        case ROTATE:
                return fold_rotate(fold, signed_level * 30., false, &middle, look, why);
        case POSTERIZE:
                return timm_rand_augment_operate(fold, &operation_posterize, timm_rand_augment_bits_of(strength));
        case SOLARIZE:
                return timm_rand_augment_operate(fold, &operation_solarize, threshold_of(strength));
        case SOLARIZE_ADD:
                return timm_rand_augment_operate(fold, &operation_solarize_add,
                                                 fmin(128, trunc(strength->level * 110)));
        case COLOR:
                return timm_rand_augment_operate(fold, &operation_saturation, timm_rand_augment_factor_of(strength));
        case CONTRAST:
                return timm_rand_augment_operate(fold, &operation_contrast, timm_rand_augment_factor_of(strength));
        case BRIGHTNESS:
                return timm_rand_augment_operate(fold, &operation_brightness, timm_rand_augment_factor_of(strength));
        case SHARPNESS:
                return timm_rand_augment_operate(fold, &operation_sharpness, timm_rand_augment_factor_of(strength));
        case SHEAR_X:
                return timm_rand_augment_move(fold, sheared, 0, 0, 0, look, why);
        case SHEAR_Y:
                return timm_rand_augment_move(fold, 0, 0, sheared, 0, look, why);
        case TRANSLATE_X:
                return timm_rand_augment_move(fold, 0, moved * fold_width(fold), 0, 0, look, why);
        case TRANSLATE_Y:
                return timm_rand_augment_move(fold, 0, 0, 0, moved * fold_height(fold), look, why);
        default:
                return 0;
        }
}

static double timm_rand_augment_level_of(const struct value *values, uint32_t word) {
        double magnitude = values[MAGNITUDE].number, most = values[MMAX].number, deviation = values[MSTD].number;

        if (deviation > MSTD_UNIFORM)
                magnitude *= (word >> 8) * 0x1p-24;
        else if (deviation > 0)
                magnitude += deviation * (double)noise_of_word(word);
        return fmax(0, fmin(magnitude, most)) / LEVELS;
}

static int plan_layer(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        enum change change = (enum change)dlp_philox_below(philox, N_CHANGES);
        bool happens = (double)dlp_philox_f32(philox) <= values[PROBABILITY].number;
        struct strength strength = { .level = timm_rand_augment_level_of(values, dlp_philox_u32(philox)),
                                     .sign = dlp_philox_f32(philox) > 0.5f ? -1 : 1,
                                     .is_increasing = values[INCREASING].choice == 1 };
        struct value filter = values[INTERPOLATION];
        bool is_bilinear = dlp_philox_f32(philox) < 0.5f;
        struct warp_look look;

        if (filter.choice == FILTER_RANDOM)
                filter.choice = is_bilinear ? WARP_BILINEAR : WARP_BICUBIC;
        look = warp_look_of(&filter, &values[FILL]);
        return happens ? do_change(fold, change, &strength, &look, why) : 0;
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        int r = policy_begin(fold, "timm_rand_augment", why);

        for (uint32_t i = 0; i < (uint32_t)values[N_LAYERS].list[0] && r == 0; i++)
                r = plan_layer(values, philox, fold, why);
        return r;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return policy_check(&values[FILL], conversion, why);
}

const struct step_type step_timm_rand_augment = {
        .kind = { .name = "timm_rand_augment",
                  .doc = "timm's RandAugment, whose text is rand-m9-mstd0.5-inc1 for `magnitude=9, mstd=0.5, "
                         "increasing=true`. Each of `num_layers` (0 to 4) changes happens with the probability `p`. "
                         "`mstd` is the deviation of magnitudes around `magnitude` (0 to 1000); above 100 they are "
                         "anything from 0 to it. They are at most `mmax` (1 to 1000), where 10 is the end of each "
                         "scale. `increasing=true` has the scales on which a larger magnitude is always a larger "
                         "change. `interpolation` is nearest, bilinear, bicubic, or random, which is one of the last "
                         "two. timm fills with the mean of the normalization, as levels: `fill=124:116:104` for that "
                         "of ImageNet. The pixels are timm's, on Pillow's pictures; the sets of changes that timm "
                         "selects with t are not there.",
                  .like = "timm.data.auto_augment.rand_augment_transform",
                  .example = "timm_rand_augment(9, mstd=0.5, increasing=true)",
                  .arguments = ARGUMENTS([MAGNITUDE] = { ARGUMENT_NUMBER, "magnitude", "10", 0, 1000 },
                                         [N_LAYERS] = ARGUMENT_COUNT("num_layers", "2", 0, N_LAYERS_MAX),
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 },
                                         [MSTD] = { ARGUMENT_NUMBER, "mstd", "0", 0, 1000 },
                                         [MMAX] = { ARGUMENT_NUMBER, "mmax", "10", 1, 1000 },
                                         [INCREASING] = { ARGUMENT_FLAG, "increasing", "false" },
                                         [INTERPOLATION] = { ARGUMENT_CHOICE, "interpolation", "random",
                                                             .choices = FILTER_NAMES, .n_choices = N_WARP_FILTERS + 1 },
                                         [FILL] = { ARGUMENT_LIST, "fill", "128", 0, 255, .counts = 1u << 1 | 1u << 3,
                                                    .is_whole = true, .form = "N or R:G:B" }) },
        .stage = STAGE_TIMM_RAND_AUGMENT,
        .plan = plan,
        .convert = convert,
};
