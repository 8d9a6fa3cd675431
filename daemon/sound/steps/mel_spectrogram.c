/* mel_spectrogram: torchaudio.transforms.MelSpectrogram; its sample_rate is that of audio(rate=...). */

#include "daemon/sound/sound_step.h"

const char *const SOUND_MEL_NORMS[2] = { "none", "slaney" };
const char *const SOUND_MEL_SCALES[2] = { "htk", "slaney" };

static int settle(struct sound_step *step, struct sound_state *state, struct why *why) {
        return sound_settle_spectrum(step, state, true, "norm", why);
}

const struct sound_step_type sound_step_mel_spectrogram = {
        .name = "mel_spectrogram",
        .arguments = { SOUND_ARGUMENT_N_FFT, SOUND_ARGUMENT_WIN_LENGTH, SOUND_ARGUMENT_HOP_LENGTH, SOUND_ARGUMENT_F_MIN,
                       SOUND_ARGUMENT_F_MAX, SOUND_ARGUMENT_PAD, SOUND_ARGUMENT_N_MELS, SOUND_ARGUMENT_WINDOW,
                       SOUND_ARGUMENT_POWER, SOUND_ARGUMENT_NORMALIZED, SOUND_ARGUMENT_CENTER, SOUND_ARGUMENT_PAD_MODE,
                       SOUND_ARGUMENT_MEL_NORM("norm"), SOUND_ARGUMENT_MEL_SCALE },
        .forms = SOUND_IN(SOUND_WAVE),
        .settle = settle,
};
