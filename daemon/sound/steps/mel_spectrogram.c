/* mel_spectrogram: torchaudio.transforms.MelSpectrogram; its sample_rate is that of audio(rate=...). */

#include "daemon/sound/sound_step.h"

static int settle(struct sound_step *step, struct sound_state *state, struct why *why) {
        return sound_settle_spectrum(step, state, true, "norm", why);
}

const struct sound_step_type sound_step_mel_spectrogram = {
        .kind = { .name = "mel_spectrogram",
                  .doc = "The spectrogram in `n_mels` bands from `f_min` to `f_max` (half of the rate). It needs "
                         "`audio(rate=...)`, which is torchaudio's sample_rate. `norm` is none or slaney, `mel_scale` "
                         "htk or slaney.",
                  .like = "torchaudio.transforms.MelSpectrogram",
                  .example = "mel_spectrogram(n_fft=400, hop_length=160, n_mels=80)",
                  .needs = "the sound itself",
                  .gives = "a spectrogram",
                  .arguments = ARGUMENTS(SOUND_ARGUMENTS_OF_MELS("norm")) },
        .forms = SOUND_IN(SOUND_WAVE),
        .settle = settle,
};
