/* gain: louder or softer by decibels, as torchaudio.functional.gain(); with clamp=true as torchaudio.transforms.Vol.
 *
 * Draws one word: whether it happens; then two: how much. */

#include <math.h>

#include "daemon/sound/sound_step.h"

enum {
        GAIN_DB,
        P,
        CLAMP
};

static void wave(const struct sound_step *step, struct dlp_philox *philox, struct sound_wave *wave) {
        bool happens = sound_happens(philox, step->values[P].from);
        float ratio = (float)pow(10, sound_draw(philox, &step->values[GAIN_DB]) / 20);

        if (happens)
                sound_code_best()->scale(wave->at, wave->n_frames * wave->n_channels, ratio,
                                         step->values[CLAMP].from != 0 ? 1 : INFINITY);
}

const struct sound_step_type sound_step_gain = {
        .name = "gain",
        .arguments = { [GAIN_DB] = { SOUND_ARGUMENT_RANGE, "gain_db", NULL, -200, 200 },
                       [P] = { SOUND_ARGUMENT_NUMBER, "p", "1", 0, 1 },
                       [CLAMP] = SOUND_ARGUMENT_BOOL("clamp", "false") },
        .forms = SOUND_IN(SOUND_WAVE),
        .wave = wave,
};
