/* spectrogram: torchaudio.transforms.Spectrogram, and what all steps with a spectrum have in common. */

#include <errno.h>
#include <math.h>

#include "daemon/sound/sound_step.h"

static void set_if_none(struct value *value, double number) {
        if (value->is_word)
                *value = (struct value){ .is_set = true, .number = number };
}

/* Of an argument that is a number. */
static double number_of(struct sound_step *step, const char *name) {
        return sound_step_value(step, name)->number;
}

static int spectrogram_fill_in(struct sound_step *step, struct why *why) {
        double n_fft = number_of(step, "n_fft"), win_length;

        if (fft_largest_prime((uint32_t)n_fft) > FFT_PRIME_MAX)
                return why_set(why, -EINVAL,
                               "n_fft=%.0f has the prime factor %u, and %u is the largest one that is handled: take a "
                               "length of small factors",
                               n_fft, fft_largest_prime((uint32_t)n_fft), FFT_PRIME_MAX);
        set_if_none(sound_step_value(step, "win_length"), n_fft);
        win_length = number_of(step, "win_length");
        if (win_length > n_fft)
                return why_set(why, -EINVAL, "win_length=%.0f is longer than n_fft=%.0f", win_length, n_fft);
        set_if_none(sound_step_value(step, "hop_length"), floor(win_length / 2));
        if (number_of(step, "hop_length") < 1)
                return why_set(why, -EINVAL, "half of win_length=%.0f is not a hop_length: say one", win_length);
        return 0;
}

static int fill_in_bands(struct sound_step *step, const struct sound_state *state, const char *mel_norm,
                         struct filter_bank_terms *bank, struct why *why) {
        if (state->rate == 0)
                return why_set(why, -EINVAL, "mel bands need to know the rate of the sound: say audio(rate=...)");
        set_if_none(sound_step_value(step, "f_max"), state->rate / 2);
        *bank = (struct filter_bank_terms){
                .n_bins = (uint32_t)number_of(step, "n_fft") / 2 + 1,
                .n_mels = (uint32_t)number_of(step, "n_mels"),
                .rate = state->rate,
                .f_min = number_of(step, "f_min"),
                .f_max = number_of(step, "f_max"),
                .has_slaney_scale = sound_step_value(step, "mel_scale")->flag,
                .has_slaney_norm = sound_step_value(step, mel_norm)->flag,
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
                .n_fft = (uint32_t)number_of(step, "n_fft"),
                .win_length = (uint32_t)number_of(step, "win_length"),
                .hop_length = (uint32_t)number_of(step, "hop_length"),
                .window = (enum spectrum_window)sound_step_value(step, "window_fn")->choice,
                .norm = (enum spectrum_norm)sound_step_value(step, "normalized")->choice,
                .power = number_of(step, "power"),
                .centers = sound_step_value(step, "center")->flag,
        };
        r = spectrum_new(&terms, has_bands ? &bank : NULL, &step->spectrum, why);
        if (r < 0)
                return r;
        step->n_silent = (uint32_t)number_of(step, "pad");
        step->edge = (enum sound_edge)sound_step_value(step, "pad_mode")->choice;
        state->form = SOUND_POWERS;
        state->n_rows = spectrum_n_rows(step->spectrum);
        return 0;
}

static int settle(struct sound_step *step, struct sound_state *state, struct why *why) {
        return sound_settle_spectrum(step, state, false, NULL, why);
}

const struct sound_step_type sound_step_spectrogram = {
        .kind = { .name = "spectrogram",
                  .doc = "The powers of n_fft / 2 + 1 frequencies, of windows of `win_length` (n_fft) that are "
                         "`hop_length` (half of win_length) apart. `n_fft` is 1 to 16384; lengths whose largest prime "
                         "factor is 5 or less are fast, one above 1021 is refused. `power=1` gives magnitudes; "
                         "complex numbers are not delivered. `window_fn` is hann, hamming or blackman, periodic. "
                         "`normalized` is false, window or frame_length. `pad` zeroes are added to both ends, and "
                         "with `center=true` half of n_fft more, which mirror the sound (`pad_mode` is reflect, "
                         "constant or replicate). A sound that is too short to be mirrored is a damaged sample, as "
                         "torch refuses it.",
                  .like = "torchaudio.transforms.Spectrogram",
                  .example = "spectrogram(n_fft=512, hop_length=128)",
                  .needs = "the sound itself",
                  .gives = "a spectrogram",
                  .arguments = ARGUMENTS(SOUND_ARGUMENTS_OF_FRAMES, SOUND_ARGUMENT_PAD, SOUND_ARGUMENTS_OF_POWERS) },
        .forms = SOUND_IN(SOUND_WAVE),
        .settle = settle,
};
