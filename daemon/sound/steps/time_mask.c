/* time_mask: columns next to each other get one value. What the mask draws is written at struct sound_mask
 * (sound_step.h). */
#include "daemon/sound/sound_step.h"

enum {
        LONGEST,
        IS_OWN,
        PART,
        VALUE
};

static void features(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        const struct value *values = step->values;
        struct sound_mask mask = { true, values[IS_OWN].flag, (uint32_t)values[LONGEST].number, values[PART].number,
                                   (float)values[VALUE].number };

        sound_mask(features, &mask, philox);
}

const struct sound_step_type sound_step_time_mask = {
        .kind = { .name = "time_mask",
                  .doc = "Fewer than `time_mask_param` columns next to each other get the value, at most the part `p` "
                         "of all; how many and where is drawn, with `iid_masks=true` for each channel.",
                  .like = "torchaudio.transforms.TimeMasking",
                  .example = "time_mask(40)",
                  .needs = "features",
                  .arguments = ARGUMENTS([LONGEST] = { ARGUMENT_NUMBER, "time_mask_param", NULL, 0, 1e9,
                                                       .is_whole = true, .attribute = "mask_param" },
                                         [IS_OWN] = { ARGUMENT_FLAG, "iid_masks", "false" },
                                         [PART] = { ARGUMENT_NUMBER, "p", "1", 0, 1 },
                                         [VALUE] = { ARGUMENT_NUMBER, "mask_value", "0", -1e30, 1e30 }) },
        .forms = SOUND_IN(SOUND_POWERS) | SOUND_IN(SOUND_FEATURES),
        .features = features,
};
