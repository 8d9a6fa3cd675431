/* columns: exactly so many columns: later ones are cut off, missing ones have a value. */

#include "daemon/sound/sound_step.h"

enum {
        N,
        VALUE
};

static uint64_t n_columns(const struct sound_step *step) {
        return (uint64_t)step->values[N].number;
}

static void features(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        uint64_t n = n_columns(step);

        (void)philox;
        for (uint32_t row = 0; row < features->n_channels * features->n_rows; row++)
                for (uint64_t t = features->n_columns; t < n; t++)
                        sound_row(features, 0, row)[t] = (float)step->values[VALUE].number;
        features->n_columns = n;
}

const struct sound_step_type sound_step_columns = {
        .kind = { .name = "columns",
                  .doc = "Exactly `n` columns: later ones are cut off, missing ones have the value.",
                  .example = "columns(400)",
                  .needs = "features",
                  .arguments = ARGUMENTS([N] = { ARGUMENT_NUMBER, "n", NULL, 1, 1e9, .is_whole = true },
                                         [VALUE] = { ARGUMENT_NUMBER, "value", "0", -1e30, 1e30 }) },
        .forms = SOUND_IN(SOUND_POWERS) | SOUND_IN(SOUND_FEATURES),
        .features = features,
        .n_columns = n_columns,
};
