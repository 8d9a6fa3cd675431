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
        bool happens = sound_happens(philox, step->values[P].number);
        float ratio = (float)pow(10, sound_draw(philox, &step->values[GAIN_DB].range) / 20);

        if (happens)
                sound_code_best()->scale(wave->at, wave->n_frames * wave->n_channels, ratio,
                                         step->values[CLAMP].flag ? 1 : INFINITY);
}

const struct sound_step_type sound_step_gain = {
        .kind = { .name = "gain",
                  .doc = "Louder or softer by `gain_db` decibels, or by what is drawn from `LOW:HIGH`, with the "
                         "probability `p`. `clamp=true` limits it to -1 to 1 afterwards, as Vol does.",
                  .like = "torchaudio.functional.gain",
                  .example = "gain(-6:6)",
                  .needs = "the sound itself",
                  .arguments = ARGUMENTS([GAIN_DB] = { ARGUMENT_SPAN, "gain_db", NULL, -200, 200 },
                                         [P] = { ARGUMENT_NUMBER, "p", "1", 0, 1 },
                                         [CLAMP] = { ARGUMENT_FLAG, "clamp", "false" }) },
        .forms = SOUND_IN(SOUND_WAVE),
        .wave = wave,
};
