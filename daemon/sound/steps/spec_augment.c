/* spec_augment: several masks of columns and of rows. It draws for one after the other, those of time first. */
#include "daemon/sound/sound_step.h"

enum {
        N_TIME,
        TIME,
        N_FREQ,
        FREQ,
        IS_OWN,
        PART,
        IS_ZERO
};

static float mean_of(const struct sound_features *features) {
        uint32_t n_rows = features->n_channels * features->n_rows;
        double sum = 0;

        for (uint32_t row = 0; row < n_rows; row++)
                for (uint64_t t = 0; t < features->n_columns; t++)
                        sum += (double)sound_row(features, 0, row)[t];
        return (float)(sum / ((double)n_rows * (double)features->n_columns));
}

static void features(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        const struct value *values = step->values;
        struct sound_mask mask = { true, values[IS_OWN].flag, (uint32_t)values[TIME].number, values[PART].number, 0 };

        if (!values[IS_ZERO].flag)
                mask.value = mean_of(features);
        for (double i = 0; i < values[N_TIME].number; i++)
                sound_mask(features, &mask, philox);
        mask.is_of_time = false;
        mask.longest = (uint32_t)values[FREQ].number;
        for (double i = 0; i < values[N_FREQ].number; i++)
                sound_mask(features, &mask, philox);
}

const struct sound_step_type sound_step_spec_augment = {
        .kind = { .name = "spec_augment",
                  .doc = "Several masks of columns and of rows, whose value is the mean of the features, or zero.",
                  .like = "torchaudio.transforms.SpecAugment",
                  .example = "spec_augment(2, 40, 2, 20)",
                  .needs = "features",
                  .arguments =
                          ARGUMENTS([N_TIME] = { ARGUMENT_NUMBER, "n_time_masks", NULL, 0, 100, .is_whole = true },
                                    [TIME] = { ARGUMENT_NUMBER, "time_mask_param", NULL, 0, 1e9, .is_whole = true },
                                    [N_FREQ] = { ARGUMENT_NUMBER, "n_freq_masks", NULL, 0, 100, .is_whole = true },
                                    [FREQ] = { ARGUMENT_NUMBER, "freq_mask_param", NULL, 0, 1e9, .is_whole = true },
                                    [IS_OWN] = { ARGUMENT_FLAG, "iid_masks", "true" },
                                    [PART] = { ARGUMENT_NUMBER, "p", "1", 0, 1 },
                                    [IS_ZERO] = { ARGUMENT_FLAG, "zero_masking", "false" }) },
        .forms = SOUND_IN(SOUND_POWERS) | SOUND_IN(SOUND_FEATURES),
        .features = features,
};
