/* amplitude_to_db: torchaudio.transforms.AmplitudeToDB. */

#include <math.h>

#include "daemon/sound/sound_step.h"

enum {
        STYPE,
        TOP_DB
};

static const char *const STYPES[] = { "power", "magnitude" };

static int settle(struct sound_step *step, struct sound_state *state, struct why *why) {
        (void)step;
        (void)why;
        state->form = SOUND_FEATURES;
        return 0;
}

static void features(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        (void)philox;
        sound_decibels(features, step->values[STYPE].from == 0 ? 10 : 20, step->values[TOP_DB].from);
}

const struct sound_step_type sound_step_amplitude_to_db = {
        .name = "amplitude_to_db",
        .arguments = { [STYPE] = { SOUND_ARGUMENT_CHOICE, "stype", "power", .choices = STYPES, .n_choices = 2 },
                       [TOP_DB] = { SOUND_ARGUMENT_NUMBER, "top_db", SOUND_NONE_TEXT, 0, 10000 } },
        .forms = SOUND_IN(SOUND_POWERS),
        .settle = settle,
        .features = features,
};
