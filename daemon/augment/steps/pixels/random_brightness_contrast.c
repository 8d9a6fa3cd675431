/* augment/steps/pixels/random_brightness_contrast.c: Albumentations' RandomBrightnessContrast, with its brightness_by_max.
 *
 * Draws three f32: below p means yes; then u for the brightness and u for the contrast, each from + (to - from) * u in
 * float64. A level is multiplied by 1 + contrast, and 255 * brightness is added. */
#include "daemon/augment/operations/pixel_tables.h"
#include "daemon/augment/step.h"

#include <string.h>

enum {
        BRIGHTNESS,
        CONTRAST,
        PROBABILITY
};

/* Albumentations' multiply_add() of uint8: in float32, clipped and truncated. The same for all channels. */
static void run(const struct operation *operation, const struct canvas *canvas) {
        struct pixel_tables tables;

        for (int i = 0; i < N_LEVELS; i++) {
                float level = (float)i * operation->amount + operation->others[0];

                tables.of[0][i] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
        }
        for (unsigned channel = 1; channel < PIXEL_BYTES; channel++)
                memcpy(tables.of[channel], tables.of[0], N_LEVELS);
        tables_look_up(&tables, canvas);
}

static const struct operation_type change = {
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run,
};

static double draw_between(const struct range *range, struct dlp_philox *philox) {
        return range->from + (range->to - range->from) * (double)dlp_philox_f32(philox);
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        bool happens = step_happens(&values[PROBABILITY], philox);
        double brightness = draw_between(&values[BRIGHTNESS].range, philox);
        double contrast = draw_between(&values[CONTRAST].range, philox);

        (void)why;
        if (happens)
                fold_operate(fold, &(struct operation){ .type = &change,
                                                        .amount = (float)(1.0 + contrast),
                                                        .others = { (float)(brightness * 255) } });
        return 0;
}

const struct step_type step_random_brightness_contrast = {
        .kind = { .name = "random_brightness_contrast",
                  .doc = "Multiplies levels by 1 + contrast (-1 to 10) and adds 255 times brightness (-1 to 1). One "
                         "number is the distance to both sides of 0. The bits are those of Albumentations.",
                  .like = "albumentations.RandomBrightnessContrast",
                  .example = "random_brightness_contrast(0.2, contrast_limit=0.2)",
                  .arguments = ARGUMENTS([BRIGHTNESS] = { ARGUMENT_AROUND, "brightness_limit", "0.2", -1, 1,
                                                          .center = 0 },
                                         [CONTRAST] = { ARGUMENT_AROUND, "contrast_limit", "0.2", -1, 10, .center = 0 },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_RANDOM_BRIGHTNESS_CONTRAST,
        .plan = plan,
        .convert = levels_check,
};
