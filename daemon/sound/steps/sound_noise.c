/* noise: white noise at a ratio of signal to noise, scaled and added as torchaudio.functional.add_noise() does it, for
 * each channel.
 *
 * Draws one word: whether it happens; two: the ratio; two: the key of a Philox generator. Of each eight of its blocks,
 * counted from 0, the first words and the second ones are eight pairs of normal numbers (sound/vector_code.h), the
 * first numbers of all pairs before the second ones; then the same with their third and fourth words. They are added
 * frame by frame. */

#include <math.h>

#include "daemon/sound/sound_step.h"

enum {
        SNR,
        P
};

static void wave(const struct sound_step *step, struct dlp_philox *philox, struct sound_wave *wave) {
        const struct sound_code *code = sound_code_best();
        bool happens = sound_happens(philox, step->values[P].number);
        double snr = sound_draw(philox, &step->values[SNR].range);
        uint32_t key[2] = { dlp_philox_u32(philox), dlp_philox_u32(philox) };

        if (!happens || wave->n_frames == 0)
                return;
        code->normals(key, 0, (wave->n_frames * wave->n_channels + NORMALS_AT_ONCE - 1) / NORMALS_AT_ONCE, wave->spare);
        for (uint32_t c = 0; c < wave->n_channels; c++) {
                double signal = code->energy(wave->at + c, wave->n_frames, wave->n_channels);
                double noise = code->energy(wave->spare + c, wave->n_frames, wave->n_channels);

                code->add(wave->at + c, wave->spare + c, wave->n_frames, wave->n_channels,
                          (float)sqrt(signal / noise * pow(10, -snr / 10)));
        }
}

const struct sound_step_type sound_step_noise = {
        .kind = { .name = "noise",
                  .doc = "Adds white noise, normal numbers, at a ratio of signal to noise of `snr` decibels, or of "
                         "what is drawn from `LOW:HIGH`, for each channel.",
                  .like = "torchaudio.functional.add_noise",
                  .example = "noise(10:20, p=0.5)",
                  .needs = "the sound itself",
                  .arguments = ARGUMENTS([SNR] = { ARGUMENT_SPAN, "snr", NULL, -200, 200 }, [P] = { ARGUMENT_NUMBER,
                                                                                                    "p", "1", 0, 1 }) },
        .forms = SOUND_IN(SOUND_WAVE),
        .wave = wave,
        .needs_spare = true,
};
