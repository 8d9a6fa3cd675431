/* log: the natural logarithm of each number plus a small one, as log_mels of torchaudio's MFCC has it. */

#include "daemon/sound/sound_step.h"

static int settle(struct sound_step *step, struct sound_state *state, struct why *why) {
        (void)step;
        (void)why;
        state->form = SOUND_FEATURES;
        return 0;
}

static void features(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        (void)philox;
        sound_logarithms(features, (float)step->values[0].from);
}

const struct sound_step_type sound_step_log = {
        .name = "log",
        .arguments = { { SOUND_ARGUMENT_NUMBER, "offset", "1e-6", 1e-30, 1e30 } },
        .forms = SOUND_IN(SOUND_POWERS),
        .settle = settle,
        .features = features,
};
