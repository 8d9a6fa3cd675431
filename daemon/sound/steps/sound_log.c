/* log: the natural logarithm of each number plus a small one, as log_mels of torchaudio's MFCC has it. */

#include "daemon/sound/sound_step.h"

static void features(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        (void)philox;
        sound_logarithms(features, (float)step->values[0].number);
}

const struct sound_step_type sound_step_log = {
        .kind = { .name = "log",
                  .doc = "The natural logarithm of each number of a spectrogram plus `offset`.",
                  .example = "log(1e-6)",
                  .needs = "a spectrogram",
                  .gives = "features",
                  .arguments = ARGUMENTS({ ARGUMENT_NUMBER, "offset", "1e-6", 1e-30, 1e30 }) },
        .forms = SOUND_IN(SOUND_POWERS),
        .settle = sound_settle_features,
        .features = features,
};
