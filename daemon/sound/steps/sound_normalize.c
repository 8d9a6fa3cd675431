/* normalize: (number - mean) / std, as models of sound want their features. */

#include "daemon/sound/sound_step.h"

enum {
        MEAN,
        STD
};

static void features(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        float mean = (float)step->values[MEAN].number, deviation = (float)step->values[STD].number;

        (void)philox;
        for (uint32_t row = 0; row < features->n_channels * features->n_rows; row++) {
                float *at = sound_row(features, 0, row);

                for (uint64_t t = 0; t < features->n_columns; t++)
                        at[t] = (at[t] - mean) / deviation;
        }
}

const struct sound_step_type sound_step_normalize = {
        .kind = { .name = "normalize",
                  .doc = "(number - mean) / std.",
                  .example = "normalize(-4.27, 4.57)",
                  .needs = "features",
                  .arguments =
                          ARGUMENTS([MEAN] = { ARGUMENT_NUMBER, "mean", NULL, -1e6, 1e6 }, [STD] = { ARGUMENT_NUMBER,
                                                                                                     "std", NULL, 1e-6,
                                                                                                     1e6 }) },
        .forms = SOUND_IN(SOUND_POWERS) | SOUND_IN(SOUND_FEATURES),
        .settle = sound_settle_features,
        .features = features,
};
