/* spectrogram: torchaudio.transforms.Spectrogram, and what all steps with a spectrum have in common. */

#include <errno.h>
#include <math.h>

#include "daemon/sound/sound_step.h"

const char *const SOUND_WINDOWS[N_WINDOWS] = { "hann", "hamming", "blackman" };
const char *const SOUND_NORMS[N_SPECTRUM_NORMS] = { "false", "window", "frame_length" };
const char *const SOUND_EDGES[N_SOUND_EDGES] = { "reflect", "constant", "replicate" };

static void set_if_none(struct sound_value *value, double number) {
        if (isnan(value->from))
                value->from = value->to = number;
}

static int spectrogram_fill_in(struct sound_step *step, struct why *why) {
        double n_fft = sound_step_number(step, "n_fft"), win_length;

        if (fft_largest_prime((uint32_t)n_fft) > FFT_PRIME_MAX)
                return why_set(why, -EINVAL,
                               "n_fft=%.0f has the prime factor %u, and %u is the largest one that is handled: take a "
                               "length of small factors",
                               n_fft, fft_largest_prime((uint32_t)n_fft), FFT_PRIME_MAX);
        set_if_none(sound_step_value(step, "win_length"), n_fft);
        win_length = sound_step_number(step, "win_length");
        if (win_length > n_fft)
                return why_set(why, -EINVAL, "win_length=%.0f is longer than n_fft=%.0f", win_length, n_fft);
        set_if_none(sound_step_value(step, "hop_length"), floor(win_length / 2));
        if (sound_step_number(step, "hop_length") < 1)
                return why_set(why, -EINVAL, "half of win_length=%.0f is not a hop_length: say one", win_length);
        return 0;
}

static int fill_in_bands(struct sound_step *step, const struct sound_state *state, const char *mel_norm,
                         struct filter_bank_terms *bank, struct why *why) {
        if (state->rate == 0)
                return why_set(why, -EINVAL, "mel bands need to know the rate of the sound: say audio(rate=...)");
        set_if_none(sound_step_value(step, "f_max"), state->rate / 2);
        *bank = (struct filter_bank_terms){
                .n_bins = (uint32_t)sound_step_number(step, "n_fft") / 2 + 1,
                .n_mels = (uint32_t)sound_step_number(step, "n_mels"),
                .rate = state->rate,
                .f_min = sound_step_number(step, "f_min"),
                .f_max = sound_step_number(step, "f_max"),
                .has_slaney_scale = sound_step_is(step, "mel_scale"),
                .has_slaney_norm = sound_step_is(step, mel_norm),
        };
        if (!(bank->f_min < bank->f_max))
                return why_set(why, -EINVAL, "f_min=%.15g is not below f_max=%.15g", bank->f_min, bank->f_max);
        return 0;
}

int sound_settle_spectrum(struct sound_step *step, struct sound_state *state, bool has_bands, const char *mel_norm,
                          struct why *why) {
        struct filter_bank_terms bank;
        struct spectrum_terms terms;
        int r = spectrogram_fill_in(step, why);

        if (r == 0 && has_bands)
                r = fill_in_bands(step, state, mel_norm, &bank, why);
        if (r < 0)
                return r;
        terms = (struct spectrum_terms){
                .n_fft = (uint32_t)sound_step_number(step, "n_fft"),
                .win_length = (uint32_t)sound_step_number(step, "win_length"),
                .hop_length = (uint32_t)sound_step_number(step, "hop_length"),
                .window = (enum spectrum_window)sound_step_number(step, "window_fn"),
                .norm = (enum spectrum_norm)sound_step_number(step, "normalized"),
                .power = sound_step_number(step, "power"),
                .centers = sound_step_is(step, "center"),
        };
        r = spectrum_new(&terms, has_bands ? &bank : NULL, &step->spectrum, why);
        if (r < 0)
                return r;
        step->n_silent = (uint32_t)sound_step_number(step, "pad");
        step->edge = (enum sound_edge)sound_step_number(step, "pad_mode");
        state->form = SOUND_POWERS;
        state->n_rows = spectrum_n_rows(step->spectrum);
        return 0;
}

static int settle(struct sound_step *step, struct sound_state *state, struct why *why) {
        return sound_settle_spectrum(step, state, false, NULL, why);
}

const struct sound_step_type sound_step_spectrogram = {
        .name = "spectrogram",
        .arguments = { SOUND_ARGUMENT_N_FFT, SOUND_ARGUMENT_WIN_LENGTH, SOUND_ARGUMENT_HOP_LENGTH, SOUND_ARGUMENT_PAD,
                       SOUND_ARGUMENT_WINDOW, SOUND_ARGUMENT_POWER, SOUND_ARGUMENT_NORMALIZED, SOUND_ARGUMENT_CENTER,
                       SOUND_ARGUMENT_PAD_MODE },
        .forms = SOUND_IN(SOUND_WAVE),
        .settle = settle,
};
