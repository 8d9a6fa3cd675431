/* Steps for sound: equal to torchaudio's within the roundings of another transform (tests/vectors/sound). */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/codec_choose.h"
#include "daemon/codec/codec_tools.h"
#include "daemon/sound/code.h"
#include "daemon/sound/spectrum.h"
#include "proto/base/cleanup.h"
#include "proto/order/philox.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#define WAVE_MAX    (1u << 20) /* bytes of a WAV file */
#define RESULT_MAX  (1u << 20)
#define WAVE_HEADER 44u

/* Of the largest number of a result. For logarithms that is a hundredth of a thousandth of a hundred decibels. */
#define TOLERANCE 1e-5

static struct codec_tools *tools;
static uint8_t wav[WAVE_MAX];
static size_t n_wav;
static _Alignas(float) uint8_t served[RESULT_MAX];
static struct codec_opened opened;
static struct field_form form;
static struct why why;

static struct source source = {
        .schema = { .n_fields = 1, .fields = { { .name = "f", .kind = FIELD_SOUND, .is_stored = true } } },
};

static void begin(void) {
        ck_assert_int_eq(codec_tools_new(&DECODE_LIMITS_DEFAULT, DECODE_JPEG_AUTO, &tools, &why), 0);
}

static void end(void) {
        codec_tools_free(tools);
}

/* A WAV of float32. */
static void set_wave(const uint8_t *samples, size_t n_bytes, uint32_t rate, uint32_t n_channels) {
        uint8_t header[WAVE_HEADER] = "RIFF\0\0\0\0WAVEfmt \x10\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\x20\0data";
        uint32_t n_data = (uint32_t)n_bytes, n_riff = n_data + 36, n_second = rate * n_channels * 4;
        uint16_t n_frame = (uint16_t)(n_channels * 4);

        ck_assert_uint_le(n_bytes + sizeof(header), sizeof(wav));
        memcpy(header + 4, &n_riff, 4);
        memcpy(header + 22, &n_channels, 2);
        memcpy(header + 24, &rate, 4);
        memcpy(header + 28, &n_second, 4);
        memcpy(header + 32, &n_frame, 2);
        memcpy(header + 40, &n_data, 4);
        memcpy(wav, header, sizeof(header));
        if (n_bytes > 0)
                memcpy(wav + WAVE_HEADER, samples, n_bytes);
        n_wav = n_bytes + WAVE_HEADER;
}

/* A wave of n frames, the same for the same n. */
static void set_noise(uint32_t n, uint32_t n_channels) {
        _cleanup_(freep) float *samples = malloc((n * n_channels + 1) * sizeof(*samples));
        uint32_t state = 1;

        for (uint32_t i = 0; i < n * n_channels; i++) {
                state = state * 1664525u + 1013904223u;
                samples[i] = (float)(int32_t)state / 4294967296.0f;
        }
        set_wave((const uint8_t *)samples, n * n_channels * sizeof(*samples), 16000, n_channels);
}

/* With rows of `stride` floats; 0: without gaps. Returns the bytes, or the error. */
static int64_t serve_sample(const char *steps, uint64_t sample, uint64_t stride) {
        struct codec_input input = { .bytes = wav,
                                     .n_bytes = n_wav,
                                     .source = &source,
                                     .sample = sample,
                                     .seed = 7,
                                     .plane_stride = stride * sizeof(float) };
        struct codec_terms terms = { .source = &source, .batch_size = 1 };
        struct codec *codec = NULL;
        int r = codec_new(&source, 0, 0, steps, NULL, &codec, &why);

        if (r < 0)
                return r;
        r = codec_form(codec, &terms, &form, &why);
        if (r == 0)
                r = codec_open(codec, tools, &input, &opened, &why);
        if (r == 0 && stride == 0)
                ck_assert_uint_le(opened.n_bytes, sizeof(served));
        if (r == 0)
                r = codec_render(codec, tools, &input, served, &why);
        codec_close(tools);
        codec_free(codec);
        return r < 0 ? r : (int64_t)opened.n_bytes;
}

static int64_t serve(const char *steps) {
        return serve_sample(steps, 0, 0);
}

static const float *result(void) {
        return (const float *)(const void *)served;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void compare(const char *steps, const float *expected, size_t n) {
        double peak = 0;

        for (size_t i = 0; i < n; i++)
                if (fabs((double)expected[i]) > peak)
                        peak = fabs((double)expected[i]);
        for (size_t i = 0; i < n; i++) {
                double difference = fabs((double)result()[i] - (double)expected[i]);

                ck_assert_msg(isnan(expected[i]) ? isnan(result()[i]) : difference <= TOLERANCE * peak,
                              "%s: number %zu is %.9g, not %.9g (peak %g)", steps, i, (double)result()[i],
                              (double)expected[i], peak);
        }
}

static void load_wave(const struct vectors *vectors) {
        size_t n_bytes;
        _cleanup_(freep) uint8_t *samples = vector_base64(vector_string(vectors->line, "samples"), &n_bytes);

        set_wave(samples, n_bytes, (uint32_t)vector_int(vectors->line, "rate"),
                 (uint32_t)vector_int(vectors->line, "channels"));
}

START_TEST(features_are_those_of_torchaudio) {
        struct vectors vectors;
        char steps[512];
        bool is_mono = true;
        unsigned n_cases = 0;

        begin();
        vectors_open(&vectors, "sound/features.jsonl");
        while (vectors_next(&vectors)) {
                size_t n_bytes, n_dims;
                uint64_t sample = 0;

                if (vectors_kind(&vectors, "wave")) {
                        load_wave(&vectors);
                        is_mono = vector_int(vectors.line, "channels") == 1;
                        continue;
                }
                _cleanup_(freep) uint8_t *numbers = vector_base64(vector_string(vectors.line, "numbers"), &n_bytes);
                const cJSON *shape = vector_array(vectors.line, "shape", &n_dims);

                snprintf(steps, sizeof(steps), "audio(rate=16000, mono=%s) %s", is_mono ? "true" : "false",
                         vector_string(vectors.line, "steps"));
                if (vectors_kind(&vectors, "drawn"))
                        sample = (uint64_t)vector_int(vectors.line, "sample");
                ck_assert_msg(serve_sample(steps, sample, 0) == (int64_t)n_bytes, "%s: %lld bytes, not %zu: %s", steps,
                              (long long)opened.n_bytes, n_bytes, why.text);
                ck_assert_uint_eq(form.n_dims, n_dims);
                for (size_t i = 0; i < n_dims; i++)
                        ck_assert_int_eq(opened.shape[i], vector_item(shape, i));
                compare(steps, (const float *)(const void *)numbers, n_bytes / sizeof(float));
                n_cases++;
        }
        ck_assert_uint_gt(n_cases, 90);
        end();
}
END_TEST

START_TEST(every_instruction_set_gives_the_same_bits) {
        static const uint32_t LENGTHS[] = { 1, 2, 3, 5, 7, 8, 16, 30, 49, 121, 210, 400, 401, 1024 };
        static float sound[4096], scratch[1 << 16], plain[1 << 16], quick[1 << 16];
        const struct sound_code *code = sound_code_best();

        for (size_t i = 0; i < ARRAY_SIZE(sound); i++)
                sound[i] = sinf((float)i * 0.37f) + 0.1f * sinf((float)(i * i % 977));
        for (size_t k = 0; k < ARRAY_SIZE(LENGTHS); k++) {
                struct spectrum_terms terms = { .n_fft = LENGTHS[k],
                                                .win_length = LENGTHS[k],
                                                .hop_length = LENGTHS[k] / 2 + 1,
                                                .power = k % 2 ? 1 : 2 };
                struct spectrum *spectrum;
                size_t n_bytes;

                ck_assert_int_eq(spectrum_new(&terms, NULL, &spectrum, &why), 0);
                ck_assert_uint_le(spectrum_scratch_bytes(spectrum), sizeof(scratch));
                n_bytes = spectrum_n_rows(spectrum) * 20u * sizeof(float);
                ck_assert_uint_le(n_bytes, sizeof(plain));
                terms.hop_length = LENGTHS[k] > 200 ? 100 : terms.hop_length;
                spectrum_run(spectrum, &SOUND_CODE_PLAIN, sound, 5, scratch, plain, 20, NULL);
                spectrum_run(spectrum, code, sound, 5, scratch, quick, 20, NULL);
                for (uint32_t row = 0; row < spectrum_n_rows(spectrum); row++)
                        ck_assert_mem_eq(plain + row * 20, quick + row * 20, 5 * sizeof(float));
                spectrum_free(spectrum);
        }
        for (size_t n = 0; n < 40; n++) {
                memcpy(plain, sound, sizeof(sound));
                memcpy(quick, sound, sizeof(sound));
                SOUND_CODE_PLAIN.logarithms(plain, n, 1e-3f, 1e-10f, 10);
                code->logarithms(quick, n, 1e-3f, 1e-10f, 10);
                SOUND_CODE_PLAIN.raise(plain, n, -30);
                code->raise(quick, n, -30);
                SOUND_CODE_PLAIN.mix(sound, 50, 3, sound + 7, 2, n, plain + 100, 60);
                code->mix(sound, 50, 3, sound + 7, 2, n, quick + 100, 60);
                ck_assert_mem_eq(plain, quick, 300 * sizeof(float));
                ck_assert(SOUND_CODE_PLAIN.largest(sound, n) == code->largest(sound, n));
                SOUND_CODE_PLAIN.normals((uint32_t[]){ (uint32_t)n, 7 }, 1u << n % 32, 20, plain);
                code->normals((uint32_t[]){ (uint32_t)n, 7 }, 1u << n % 32, 20, quick);
                ck_assert_mem_eq(plain, quick, 20 * NORMALS_AT_ONCE * sizeof(float));
        }
}
END_TEST

START_TEST(logarithms_are_those_of_the_library) {
        float numbers[8] = { 0, -1, INFINITY, NAN, 1e-20f, 3e38f, 1, 1e-10f };

        sound_code_best()->logarithms(numbers, 8, 0, 1e-10f, 10);
        ck_assert(numbers[0] == -100 && numbers[1] == -100 && isinf(numbers[2]) && isnan(numbers[3]));
        ck_assert(numbers[4] == -100 && numbers[6] == 0 && numbers[7] == -100);
        for (float x = 1e-10f; x < 1e10f; x *= 1.0013f) {
                float decimal[LANES] = { x }, natural[LANES] = { x };

                sound_code_best()->logarithms(decimal, LANES, 0, -INFINITY, 1);
                sound_code_best()->logarithms(natural, LANES, 0, -INFINITY, 0);
                ck_assert_float_le(fabsf(decimal[0] - (float)log10((double)x)), 1e-7f + 1.2e-7f * fabsf(decimal[0]));
                ck_assert_float_le(fabsf(natural[0] - (float)log((double)x)), 1e-7f + 1.2e-7f * fabsf(natural[0]));
        }
}
END_TEST

/* Rows that are apart, as pad wants them. */
START_TEST(rows_may_be_apart) {
        static float together[1 << 16];
        const char *steps = "audio(rate=16000) mel_spectrogram(n_mels=20)";
        int64_t n_columns;

        begin();
        set_noise(1600, 1);
        ck_assert_int_gt(serve(steps), 0);
        memcpy(together, served, opened.n_bytes);
        n_columns = opened.shape[1];
        memset(served, 0xab, sizeof(served));
        ck_assert_int_gt(serve_sample(steps, 0, 32), 0);
        for (int64_t row = 0; row < 20; row++)
                ck_assert_mem_eq(result() + row * 32, together + row * n_columns, (size_t)n_columns * sizeof(float));
        ck_assert_int_eq(served[(size_t)n_columns * sizeof(float)], 0xab);
        end();
}
END_TEST

/* As add_noise() wants it: the ratio of energies is the one that is drawn. Its numbers are normal. */
START_TEST(noise_has_the_ratio_that_was_drawn) {
        enum {
                N = 200000
        };
        double sums[5] = { 0 }, signal = 0;
        _cleanup_(freep) float *wave = malloc(N * sizeof(*wave));
        struct dlp_philox philox;

        begin();
        set_noise(N, 1);
        memcpy(wave, wav + WAVE_HEADER, N * sizeof(*wave));
        ck_assert_msg(serve_sample("audio(rate=16000) noise(0:20)", 5, 0) == N * (int64_t)sizeof(float), "%s",
                      why.text);
        for (size_t i = 0; i < N; i++) {
                double noise = (double)result()[i] - (double)wave[i];

                signal += (double)wave[i] * (double)wave[i];
                for (unsigned k = 1; k <= 4; k++)
                        sums[k] += pow(noise, k);
        }
        dlp_philox_init(&philox, 7, 0, 5, 1);
        dlp_philox_u32(&philox);
        ck_assert_double_lt(fabs(10 * log10(signal / sums[2]) - 20 * dlp_philox_f64(&philox)), 1e-3);
        ck_assert_double_lt(fabs(sums[1] / N), 0.01 * sqrt(sums[2] / N));
        ck_assert_double_lt(fabs(sums[3] / N / pow(sums[2] / N, 1.5)), 0.03);
        ck_assert_double_lt(fabs(sums[4] / N / pow(sums[2] / N, 2) - 3), 0.1);
        end();
}
END_TEST

/* ---- forms ------------------------------------------------------------------------------------------------------- */

START_TEST(the_form_says_what_varies) {
        static const struct {
                const char *steps;
                enum collate_how how;
                uint32_t n_dims;
                int64_t shape[3];
        } rows[] = {
                { "audio(rate=16000) spectrogram(200)", COLLATE_STACK, 2, { 101, -1 } },
                { "audio(rate=16000) spectrogram(200) transpose", COLLATE_RAGGED, 2, { -1, 101 } },
                { "audio(rate=16000, seconds=1) spectrogram(200)", COLLATE_STACK, 2, { 101, 161 } },
                { "audio(rate=16000, seconds=1) mfcc transpose", COLLATE_STACK, 2, { 81, 40 } },
                { "audio(rate=16000) mel_spectrogram columns(7)", COLLATE_STACK, 2, { 128, 7 } },
                { "audio(rate=16000, mono=false) spectrogram(200)", COLLATE_STACK, 3, { 2, 101, -1 } },
                { "audio(rate=16000, mono=false) spectrogram(200) transpose", COLLATE_STACK, 3, { 2, -1, 101 } },
        };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                set_noise(1600, strstr(rows[i].steps, "mono=false") ? 2 : 1);
                ck_assert_msg(serve(rows[i].steps) > 0, "%s: %s", rows[i].steps, why.text);
                ck_assert_int_eq(form.how, rows[i].how);
                ck_assert_uint_eq(form.n_dims, rows[i].n_dims);
                for (uint32_t k = 0; k < form.n_dims; k++)
                        ck_assert_int_eq(form.shape[k], rows[i].shape[k]);
        }
        end();
}
END_TEST

START_TEST(the_normal_text_means_the_same) {
        static const char *const texts[][2] = {
                { "audio(rate=16000) MelSpectrogram()",
                  "audio(rate=16000, mono=true, max_seconds=30, dtype=float32) mel_spectrogram(n_fft=400, "
                  "win_length=400, hop_length=200, f_min=0, f_max=8000, pad=0, n_mels=128, window_fn=hann, power=2, "
                  "normalized=false, center=true, pad_mode=reflect, norm=none, mel_scale=htk)" },
                { "audio gain(-6:6) Noise(snr=10)",
                  "audio(mono=true, max_seconds=30, dtype=float32) gain(-6:6, p=1, clamp=false) noise(10, p=1)" },
                { "audio spectrogram(200) columns(5, -1) transpose",
                  "audio(mono=true, max_seconds=30, dtype=float32) spectrogram(n_fft=200, win_length=200, "
                  "hop_length=100, pad=0, window_fn=hann, power=2, normalized=false, center=true, pad_mode=reflect) "
                  "columns(5, value=-1) transpose" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                for (unsigned k = 0; k < 2; k++) {
                        struct codec *codec;

                        ck_assert_msg(codec_new(&source, 0, 0, texts[i][k], NULL, &codec, &why) == 0, "%s", why.text);
                        ck_assert_str_eq(codec_text(codec), texts[i][1]);
                        codec_free(codec);
                }
}
END_TEST

/* ---- bad input --------------------------------------------------------------------------------------------------- */

START_TEST(a_sound_that_is_too_short_is_a_damaged_sample) {
        static const struct {
                uint32_t n;
                const char *steps, *said; /* NULL: it is served */
        } rows[] = {
                { 200, "audio(rate=16000) mel_spectrogram",
                  "has 200 frames, and mel_spectrogram(n_fft=400) mirrors 200 "
                  "at each end, for which it needs 201 at least" },
                { 201, "audio(rate=16000) mel_spectrogram", NULL },
                { 0, "audio(rate=16000) mfcc", "has 0 frames" },
                { 0, "audio(rate=16000) spectrogram(pad_mode=replicate)", "has 0 frames" },
                { 0, "audio(rate=16000) spectrogram(pad_mode=constant)", NULL },
                { 1, "audio(rate=16000) spectrogram(1, hop_length=1)", NULL },
                { 1, "audio(rate=16000) spectrogram(2)", "needs 2" },
                { 99, "audio(rate=16000) spectrogram(100, center=false)", "makes no column of" },
                { 100, "audio(rate=16000) spectrogram(100, center=false)", NULL },
                { 1, "audio(rate=16000) spectrogram(100, pad=50)", NULL },
                { 1, "audio(rate=16000, seconds=1) mfcc", NULL },
        };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                int64_t r;

                set_noise(rows[i].n, 1);
                r = serve(rows[i].steps);
                ck_assert_msg(rows[i].said ? r == -EBADMSG : r > 0, "row %zu: %lld: %s", i, (long long)r, why.text);
                if (rows[i].said)
                        ck_assert_msg(strstr(why.text, rows[i].said) != NULL, "row %zu: %s", i, why.text);
        }
        end();
}
END_TEST

START_TEST(a_step_that_makes_no_sense_is_refused) {
        static const struct {
                const char *steps, *said;
        } rows[] = {
                { "audio mel_spectrogram", "column 7: mel_spectrogram: mel bands need to know the rate" },
                { "audio mel_spektrogram", "column 7: unknown sound step \"mel_spektrogram\" (did you mean "
                                           "\"mel_spectrogram\"?); the sound steps are amplitude_to_db, columns, " },
                { "audio hflip(0.5)", "column 7: unknown sound step \"hflip\"" },
                { "audio spectrogram(0)", "column 19: n_fft: \"0\" is not allowed; expected a whole number from 1 to "
                                          "16384" },
                { "audio spectrogram(n_fft=10, n_fft=9)", "column 35: n_fft of spectrogram is given twice" },
                { "audio spectrogram(nfft=10)", "column 19: spectrogram has no argument \"nfft\" (did you mean "
                                                "\"n_fft\"?)" },
                { "audio spectrogram(10, win_length=11)", "win_length=11 is longer than n_fft=10" },
                { "audio spectrogram(2062)", "n_fft=2062 has the prime factor 1031, and 1021 is the largest" },
                { "audio spectrogram(1)", "half of win_length=1 is not a hop_length" },
                { "audio spectrogram(10", "expected \",\" or \")\"" },
                { "audio spectrogram(power=abc)", "column 25: power: \"abc\" is not allowed" },
                { "audio spectrogram(center=maybe)", "expected true or false" },
                { "audio spectrogram(window_fn=han)", "did you mean \"hann\"" },
                { "audio(rate=16000) spectrogram(10,)", "column 34: \")\"; expected another argument after \",\"" },
                { "audio(rate=16000) mel_spectrogram(sample_rate=16000)", "no argument \"sample_rate\"; leave it out" },
                { "audio(rate=16000) mel_spectrogram(f_min=8000)", "f_min=8000 is not below f_max=8000" },
                { "audio(rate=16000) mfcc(129)", "n_mfcc=129 is more than n_mels=128" },
                { "audio amplitude_to_db", "column 7: amplitude_to_db: it needs a spectrogram" },
                { "audio spectrogram log log", "column 23: log: it needs a spectrogram" },
                { "audio spectrogram spectrogram", "column 19: spectrogram: it needs the sound itself" },
                { "audio spectrogram transpose log", "column 29: log: transpose is the last step" },
                { "audio spectrogram columns", "column 19: columns needs its n, as in columns(400)" },
                { "audio spectrogram transpose(3)", "expected \")\"" },
                { "audio gain", "column 7: gain needs its gain_db, as in gain(-6:6)" },
                { "audio gain(6:-6)", "column 12: gain_db: \"6:-6\" is not allowed; expected a number, or two as in "
                                      "LOW:HIGH, from -200 to 200" },
                { "audio gain(3, p=1.5)", "column 17" },
                { "audio noise(snr=)", "snr: \")\" is not allowed" },
                { "audio spectrogram gain(3)",
                  "column 19: gain: it needs the sound itself, and comes before the step" },
                { "audio time_mask(3)", "time_mask: it needs a spectrogram" },
                { "audio spectrogram time_mask", "needs its time_mask_param" },
                { "audio spectrogram time_mask(3, p=2)", "p: \"2\" is not allowed" },
                { "audio spectrogram freq_mask(3, p=1)", "freq_mask has no argument \"p\"" },
                { "audio spectrogram spec_augment(1, 2, 3)", "needs its freq_mask_param" },
                { "audio(dtype=int16) spectrogram", "leave dtype=int16 out" },
                { "audio(rate=16000, seconds=0.01) mfcc", "field f: each sample has 160 frames, and mfcc(n_fft=400)" },
        };

        begin();
        set_noise(100, 1);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                ck_assert_msg(serve(rows[i].steps) == -EINVAL, "row %zu", i);
                ck_assert_msg(strstr(why.text, rows[i].said) != NULL, "row %zu: %s", i, why.text);
        }
        end();
}
END_TEST

/* Memory is known before it is taken: what the tools hold afterwards is not more than was said. */
START_TEST(memory_is_what_was_announced) {
        static const char *const texts[] = {
                "audio(rate=16000) mel_spectrogram",
                "audio(rate=16000) mfcc transpose",
                "audio(rate=16000, mono=false) mfcc columns(3)",
                "audio(rate=16000, mono=false) spectrogram(999)",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                size_t n_before;

                begin();
                n_before = codec_tools_bytes(tools);
                set_noise(8000, strstr(texts[i], "mono=false") ? 2 : 1);
                ck_assert_msg(serve(texts[i]) > 0, "%s", why.text);
                ck_assert_uint_gt(codec_tools_bytes(tools), n_before);
                ck_assert_uint_le(codec_tools_bytes(tools) - n_before, opened.need_bytes);
                codec_tools_trim(tools);
                ck_assert_uint_le(codec_tools_bytes(tools), n_before);
                end();
        }
}
END_TEST

static bool is_interested(const void *userdata) {
        unsigned *n_left = (unsigned *)(uintptr_t)userdata;

        return *n_left > 0 && (*n_left)-- > 0;
}

/* While it is decoded, resampled, transformed and mixed: wherever it is given up, that is said, and the next one is
 * made.
 */
START_TEST(what_nobody_wants_any_more_is_given_up_while_it_is_made) {
        static const char STEPS[] = "audio(rate=8000) mfcc(n_mfcc=13, n_fft=512, hop_length=8, n_mels=23)";
        unsigned n_left = 1000, n_looks;

        begin();
        set_noise(200000, 1);
        codec_tools_set_wanted(tools, is_interested, &n_left);
        ck_assert_msg(serve(STEPS) > 0, "%s", why.text);
        n_looks = 1000 - n_left;
        ck_assert_uint_ge(n_looks, 100); /* 1 of reading, 25 of the rate, 96 of transforms, 49 of mixing */
        for (unsigned n = 0; n < n_looks; n += 7) {
                n_left = n;
                codec_tools_begin_sample(tools);
                ck_assert_int_eq(serve(STEPS), -ECANCELED);
                ck_assert_str_eq(why.text, "nobody wants the sample any more");
                ck_assert_uint_eq(n_left, 0);
        }
        n_left = n_looks;
        codec_tools_begin_sample(tools);
        ck_assert_int_gt(serve(STEPS), 0);
        codec_tools_set_wanted(tools, NULL, NULL);
        end();
}
END_TEST

/* Only the bins near a band are looked at; all bands together have what the bins between the first and the last corner
 * have. */
START_TEST(bands_are_planned_from_the_bins_near_them) {
        struct filter_bank_terms terms = { .n_bins = 8193, .n_mels = 4096, .rate = 16000, .f_min = 0, .f_max = 8000 };
        struct filter_bank bank;
        uint64_t n = 0;

        for (unsigned i = 0; i < 20; i++) {
                ck_assert_int_eq(filter_bank_init(&bank, &terms, &why), 0);
                for (uint32_t m = 0; m < bank.n_filters; m++)
                        n += bank.filters[m].n;
                filter_bank_fini(&bank);
        }
        ck_assert_uint_gt(n, 20 * 12000);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "results", features_are_those_of_torchaudio, 0 },
                { "results", every_instruction_set_gives_the_same_bits, 0 },
                { "results", logarithms_are_those_of_the_library, 0 },
                { "results", rows_may_be_apart, 0 },
                { "results", noise_has_the_ratio_that_was_drawn, 0 },
                { "long", what_nobody_wants_any_more_is_given_up_while_it_is_made, 0 },
                { "long", bands_are_planned_from_the_bins_near_them, 0 },
                { "forms", the_form_says_what_varies, 0 },
                { "forms", the_normal_text_means_the_same, 0 },
                { "bad", a_sound_that_is_too_short_is_a_damaged_sample, 0 },
                { "bad", a_step_that_makes_no_sense_is_refused, 0 },
                { "bad", memory_is_what_was_announced, 0 },
        };

        return suite_run("sound_features", rows, ARRAY_SIZE(rows));
}
