/* freq_mask: rows next to each other get one value, as columns by time_mask. */
#include "daemon/sound/sound_step.h"

enum {
        LONGEST,
        IS_OWN,
        VALUE
};

static void features(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        const struct value *values = step->values;
        struct sound_mask mask = { false, values[IS_OWN].flag, (uint32_t)values[LONGEST].number, 1,
                                   (float)values[VALUE].number };

        sound_mask(features, &mask, philox);
}

const struct sound_step_type sound_step_freq_mask = {
        .kind = { .name = "freq_mask",
                  .doc = "Fewer than `freq_mask_param` rows next to each other get the value; how many and where is "
                         "drawn, with `iid_masks=true` for each channel.",
                  .like = "torchaudio.transforms.FrequencyMasking",
                  .example = "freq_mask(20)",
                  .needs = "features",
                  .arguments = ARGUMENTS([LONGEST] = { ARGUMENT_NUMBER, "freq_mask_param", NULL, 0, 1e9,
                                                       .is_whole = true, .attribute = "mask_param" },
                                         [IS_OWN] = { ARGUMENT_FLAG, "iid_masks", "false" },
                                         [VALUE] = { ARGUMENT_NUMBER, "mask_value", "0", -1e30, 1e30 }) },
        .forms = SOUND_IN(SOUND_POWERS) | SOUND_IN(SOUND_FEATURES),
        .features = features,
};
