/* mfcc: torchaudio.transforms.MFCC; what that takes in melkwargs are arguments of their own here (norm of the mel bands
 * is mel_norm, because MFCC has a norm, too). */

#include <errno.h>

#include "daemon/sound/sound_step.h"

static const char *const NORMS[] = { "none", "ortho" };

static int settle(struct sound_step *step, struct sound_state *state, struct why *why) {
        uint32_t n_mels = (uint32_t)sound_step_number(step, "n_mels");
        int r;

        step->n_mfcc = (uint32_t)sound_step_number(step, "n_mfcc");
        step->takes_log = sound_step_is(step, "log_mels");
        if (step->n_mfcc > n_mels)
                return why_set(why, -EINVAL, "n_mfcc=%u is more than n_mels=%u", step->n_mfcc, n_mels);
        r = sound_settle_spectrum(step, state, true, "mel_norm", why);
        if (r < 0)
                return r;
        step->cosines = cosines_new(step->n_mfcc, n_mels, sound_step_is(step, "norm"));
        if (!step->cosines)
                return why_errno(why, -ENOMEM, "the plan of mfcc");
        state->form = SOUND_FEATURES;
        state->n_rows = step->n_mfcc;
        return 0;
}

const struct sound_step_type sound_step_mfcc = {
        .name = "mfcc",
        .arguments = { { SOUND_ARGUMENT_WHOLE, "n_mfcc", "40", 1, 4096 },
                       { SOUND_ARGUMENT_CHOICE, "norm", "ortho", .choices = NORMS, .n_choices = 2 },
                       SOUND_ARGUMENT_BOOL("log_mels", "false"),
                       SOUND_ARGUMENT_N_FFT,
                       SOUND_ARGUMENT_WIN_LENGTH,
                       SOUND_ARGUMENT_HOP_LENGTH,
                       SOUND_ARGUMENT_F_MIN,
                       SOUND_ARGUMENT_F_MAX,
                       SOUND_ARGUMENT_PAD,
                       SOUND_ARGUMENT_N_MELS,
                       SOUND_ARGUMENT_WINDOW,
                       SOUND_ARGUMENT_POWER,
                       SOUND_ARGUMENT_NORMALIZED,
                       SOUND_ARGUMENT_CENTER,
                       SOUND_ARGUMENT_PAD_MODE,
                       SOUND_ARGUMENT_MEL_NORM("mel_norm"),
                       SOUND_ARGUMENT_MEL_SCALE },
        .forms = SOUND_IN(SOUND_WAVE),
        .settle = settle,
};
