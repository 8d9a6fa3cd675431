/* mfcc: torchaudio.transforms.MFCC; what that takes in melkwargs are arguments of their own here (norm of the mel bands
 * is mel_norm, because MFCC has a norm, too). */

#include <errno.h>

#include "daemon/sound/sound_step.h"

static int settle(struct sound_step *step, struct sound_state *state, struct why *why) {
        uint32_t n_mels = (uint32_t)sound_step_value(step, "n_mels")->number;
        int r;

        step->n_mfcc = (uint32_t)sound_step_value(step, "n_mfcc")->number;
        step->takes_log = sound_step_value(step, "log_mels")->flag;
        if (step->n_mfcc > n_mels)
                return why_set(why, -EINVAL, "n_mfcc=%u is more than n_mels=%u", step->n_mfcc, n_mels);
        r = sound_settle_spectrum(step, state, true, "mel_norm", why);
        if (r < 0)
                return r;
        step->cosines = cosines_new(step->n_mfcc, n_mels, sound_step_value(step, "norm")->flag);
        if (!step->cosines)
                return why_errno(why, -ENOMEM, "the plan of mfcc");
        state->form = SOUND_FEATURES;
        state->n_rows = step->n_mfcc;
        return 0;
}

const struct sound_step_type sound_step_mfcc = {
        .kind = { .name = "mfcc",
                  .doc = "The cosine transform of a mel spectrogram in decibels, at most 80 below its largest number, "
                         "or of its logarithms. The other arguments, torchaudio's melkwargs, are those of "
                         "`mel_spectrogram`; its `norm` is called `mel_norm` here.",
                  .like = "torchaudio.transforms.MFCC",
                  .example = "mfcc(n_mfcc=13, n_mels=40)",
                  .needs = "the sound itself",
                  .gives = "features",
                  .arguments = ARGUMENTS({ ARGUMENT_NUMBER, "n_mfcc", "40", 1, 4096, .is_whole = true },
                                         { ARGUMENT_CHOICE, "norm", "ortho", CHOICES("none", "ortho") },
                                         { ARGUMENT_FLAG, "log_mels", "false" }, SOUND_ARGUMENTS_OF_MELS("mel_norm")) },
        .forms = SOUND_IN(SOUND_WAVE),
        .settle = settle,
};
