/* amplitude_to_db: torchaudio.transforms.AmplitudeToDB. */

#include <math.h>

#include "daemon/sound/sound_step.h"

enum {
        STYPE,
        TOP_DB
};

static void features(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        (void)philox;
        sound_decibels(features, step->values[STYPE].choice == 0 ? 10 : 20,
                       step->values[TOP_DB].is_word ? NAN : step->values[TOP_DB].number);
}

const struct sound_step_type sound_step_amplitude_to_db = {
        .kind = { .name = "amplitude_to_db",
                  .doc = "Decibels of a spectrogram; of one with power=1 with `stype=magnitude`. `top_db` is how far "
                         "below the largest number of a sample any other may be.",
                  .like = "torchaudio.transforms.AmplitudeToDB",
                  .example = "amplitude_to_db(top_db=80)",
                  .needs = "a spectrogram",
                  .gives = "features",
                  .arguments = ARGUMENTS([STYPE] = { ARGUMENT_CHOICE, "stype", "power", CHOICES("power", "magnitude") },
                                         [TOP_DB] = { ARGUMENT_NUMBER, "top_db", "none", 0, 10000, .word = "none" }) },
        .forms = SOUND_IN(SOUND_POWERS),
        .settle = sound_settle_features,
        .features = features,
};
