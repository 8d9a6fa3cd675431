/* Sound: decoded as python-soundfile does (tests/vectors/sound), cropped, padded, mixed and resampled. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <ogg/ogg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/codec_choose.h"
#include "daemon/codec/codec_tools.h"
#include "daemon/decode/sound.h"
#include "daemon/decode/vorbis_codebooks.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

#define FILE_MAX 65536u

static struct codec_tools *tools;
static uint8_t stored[FILE_MAX];
static size_t n_stored;
static _Alignas(float) uint8_t served[1 << 20], expected[FILE_MAX];
static struct codec_opened opened;
static struct why why;

static void begin(void) {
        ck_assert_int_eq(codec_tools_new(&DECODE_LIMITS_DEFAULT, DECODE_JPEG_AUTO, &tools, &why), 0);
}

static void end(void) {
        codec_tools_free(tools);
}

static size_t load(const char *name, const char *suffix, uint8_t *into) {
        char path[256];
        FILE *file;
        size_t n;

        snprintf(path, sizeof(path), "tests/vectors/sound/%s%s", name, suffix);
        file = fopen(path, "rb");
        ck_assert_msg(file != NULL, "%s", path);
        n = fread(into, 1, FILE_MAX, file);
        fclose(file);
        return n;
}

/* Serves `stored` with these steps, of this sample. Returns the bytes in `served`, or the error. */
static int64_t serve_sample(const char *steps, uint64_t sample) {
        static struct source source = {
                .schema = { .n_fields = 1, .fields = { { .name = "f", .kind = FIELD_SOUND, .is_stored = true } } },
        };
        struct codec_input input = {
                .bytes = stored, .n_bytes = n_stored, .source = &source, .sample = sample, .seed = 7
        };
        struct codec *codec = NULL;
        int r = codec_new(&source, 0, 0, steps, NULL, &codec, &why);

        if (r < 0)
                return r;
        r = codec_open(codec, tools, &input, &opened, &why);
        if (r == 0)
                ck_assert_uint_le(opened.n_bytes, sizeof(served));
        if (r == 0)
                r = codec_render(codec, tools, &input, served, &why);
        codec_close(tools);
        codec_free(codec);
        return r < 0 ? r : (int64_t)opened.n_bytes;
}

static int64_t serve(const char *name, const char *steps) {
        n_stored = load(name, "", stored);
        return serve_sample(steps, 0);
}

static float served_float(uint64_t i) {
        float value;

        memcpy(&value, served + i * sizeof(value), sizeof(value));
        return value;
}

static float expected_float(uint64_t i) {
        float value;

        memcpy(&value, expected + i * sizeof(value), sizeof(value));
        return value;
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

/* Lossy codecs compute with floats, whose last bits depend on the library that was built. */
START_TEST(samples_are_those_of_soundfile) {
        static const struct {
                const char *name, *steps;
                float within;
        } rows[] = {
                { "s16.wav", "audio", 0 },        { "s24.wav", "audio(mono=false)", 0 },
                { "u8.wav", "audio()", 0 },       { "float.wav", "audio", 0 },
                { "s16.flac", "audio", 0 },       { "s24.flac", "audio(mono=false)", 0 },
                { "vorbis.ogg", "audio", 1e-4f }, { "opus.opus", "audio", 1e-3f },
                { "layer3.mp3", "audio", 1e-4f },
        };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                size_t n_expected = load(rows[i].name, ".f32", expected);
                int64_t n = serve(rows[i].name, rows[i].steps);

                ck_assert_msg(n == (int64_t)n_expected, "%s: %lld bytes, not %zu: %s", rows[i].name, (long long)n,
                              n_expected, why.text);
                for (size_t k = 0; k < n_expected / sizeof(float); k++)
                        ck_assert_msg(fabsf(served_float(k) - expected_float(k)) <= rows[i].within,
                                      "%s: sample %zu is %g, not %g", rows[i].name, k, (double)served_float(k),
                                      (double)expected_float(k));
        }
        end();
}
END_TEST

START_TEST(mono_is_the_mean_of_the_channels) {
        begin();
        load("s24.flac", ".f32", expected);
        ck_assert_int_eq(serve("s24.flac", "audio"), 1600 * 4);
        for (size_t i = 0; i < 1600; i++)
                ck_assert(served_float(i) == (expected_float(2 * i) + expected_float(2 * i + 1)) / 2);
        end();
}
END_TEST

START_TEST(int16_is_the_stored_number_of_16_bits) {
        int16_t value;

        begin();
        load("s16.flac", ".f32", expected);
        ck_assert_int_eq(serve("s16.flac", "audio(dtype=int16)"), 1600 * 2);
        for (size_t i = 0; i < 1600; i++) {
                memcpy(&value, served + i * 2, sizeof(value));
                ck_assert_int_eq(value, (int)(expected_float(i) * 32768.0f));
        }
        end();
}
END_TEST

/* ---- cropping ---------------------------------------------------------------------------------------------------- */

START_TEST(a_crop_is_a_part_of_the_whole_in_every_format) {
        static const struct {
                const char *name, *steps;
                size_t n, n_whole;
        } rows[] = {
                { "s16.wav", "audio(rate=16000, seconds=0.05, crop=start)", 800, 1600 },
                { "s16.wav", "audio(rate=16000, seconds=0.05, crop=center)", 800, 1600 },
                { "s16.flac", "audio(rate=16000, seconds=0.05, crop=center)", 800, 1600 },
                { "vorbis.ogg", "audio(rate=16000, seconds=0.1, crop=center)", 1600, 3200 },
                { "layer3.mp3", "audio(rate=16000, seconds=0.1, crop=center)", 1600, 3200 },
        };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                size_t first = strstr(rows[i].steps, "start") ? 0 : (rows[i].n_whole - rows[i].n) / 2;

                load(rows[i].name, ".f32", expected);
                ck_assert_int_eq(serve(rows[i].name, rows[i].steps), (int64_t)rows[i].n * 4);
                for (size_t k = 0; k < rows[i].n; k++)
                        ck_assert_msg(fabsf(served_float(k) - expected_float(first + k)) <= 1e-4f, "%s: %zu",
                                      rows[i].name, k);
        }
        end();
}
END_TEST

/* Of eight frames of 4,096: each place is found, though the file has no table of them. */
START_TEST(a_crop_of_a_long_flac_is_right_wherever_it_begins) {
        static float whole[30000], part[500];
        struct sound_info info;
        struct sound *sound;

        n_stored = load("long.flac", "", stored);
        ck_assert_int_eq(sound_open(stored, n_stored, &sound, &info, &why), 0);
        ck_assert_uint_eq(info.n_frames, ARRAY_SIZE(whole));
        ck_assert_int_eq(sound_read(sound, 0, ARRAY_SIZE(whole), 1, whole, &why), 0);
        sound_close(sound);
        for (size_t first = 0; first + ARRAY_SIZE(part) <= ARRAY_SIZE(whole); first += 89) {
                ck_assert_int_eq(sound_open(stored, n_stored, &sound, &info, &why), 0);
                ck_assert_int_eq(sound_read(sound, first, ARRAY_SIZE(part), 1, part, &why), 0);
                ck_assert_msg(memcmp(part, whole + first, sizeof(part)) == 0, "from %zu", first);
                sound_close(sound);
        }
}
END_TEST

START_TEST(a_random_crop_belongs_to_its_sample) {
        static const char STEPS[] = "audio(rate=16000, seconds=0.01)";
        uint8_t first[160 * 4];
        unsigned n_same = 0;

        begin();
        load("s16.flac", ".f32", expected);
        ck_assert_int_eq(serve("s16.flac", STEPS), sizeof(first));
        memcpy(first, served, sizeof(first));
        for (uint64_t sample = 1; sample < 20; sample++) {
                ck_assert_int_eq(serve_sample(STEPS, sample), sizeof(first));
                ck_assert(memmem(expected, 1600 * 4, served, sizeof(first)) != NULL);
                n_same += memcmp(first, served, sizeof(first)) == 0;
        }
        ck_assert_uint_lt(n_same, 3);
        ck_assert_int_eq(serve_sample(STEPS, 0), sizeof(first));
        ck_assert_mem_eq(first, served, sizeof(first));
        end();
}
END_TEST

START_TEST(a_short_sound_is_padded_with_zeroes) {
        begin();
        load("s16.wav", ".f32", expected);
        ck_assert_int_eq(serve("s16.wav", "audio(rate=16000, seconds=0.25)"), 4000 * 4);
        ck_assert_mem_eq(served, expected, 1600 * 4);
        for (size_t i = 1600; i < 4000; i++)
                ck_assert(served_float(i) == 0);
        end();
}
END_TEST

/* ---- another rate ------------------------------------------------------------------------------------------------ */

/* A sine of 440 Hz stays one: the same samples as of the sine itself, but near the ends. */
START_TEST(a_tone_stays_the_tone_at_another_rate) {
        static const uint32_t n = 4000;
        uint8_t header[44] = "RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data";
        uint32_t n_data = n * 2, n_riff = n_data + 36;

        begin();
        memcpy(header + 4, &n_riff, 4);
        memcpy(header + 40, &n_data, 4);
        memcpy(stored, header, sizeof(header));
        for (uint32_t i = 0; i < n; i++) {
                int16_t value = (int16_t)lrint(16000 * sin(2 * M_PI * 440 * i / 8000));

                memcpy(stored + 44 + i * 2, &value, sizeof(value));
        }
        n_stored = 44 + n_data;
        ck_assert_msg(serve_sample("audio(rate=16000)", 0) == 8000 * 4, "%s", why.text);
        for (uint32_t i = 500; i < 7500; i++)
                ck_assert(fabs(served_float(i) - 16000.0 / 32768 * sin(2 * M_PI * 440 * i / 16000)) < 1e-3);
        ck_assert_int_eq(serve_sample("audio(rate=6000, seconds=0.5, dtype=int16)", 0), 3000 * 2);
        end();
}
END_TEST

/* ---- bad input --------------------------------------------------------------------------------------------------- */

START_TEST(a_damaged_sound_is_a_damaged_sample) {
        static const char *const names[] = {
                "s16.wav", "s16.flac", "s24.flac", "vorbis.ogg", "opus.opus", "layer3.mp3"
        };

        begin();
        ck_assert_int_eq(serve("README.md", "audio"), -ENOTSUP);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                size_t n = load(names[i], "", stored);

                for (n_stored = 0; n_stored < n; n_stored += 37) { /* cut: a sound or a reason, never a crash */
                        why.text[0] = '\0';
                        ck_assert(serve_sample("audio", 0) >= 0 || why.text[0]);
                }
        }
        end();
}
END_TEST

START_TEST(a_sound_that_is_cut_is_never_a_shorter_one) {
        static const struct {
                const char *name;
                unsigned percent;
                const char *said;
        } rows[] = {
                { "s16.flac", 50, "cut short" },
                { "s16.wav", 50, "cut short: 1578 of the 3200 bytes" },
                { "float.wav", 99, "cut short" },
                { "vorbis.ogg", 99, "does not say how long it is" },
                { "vorbis.ogg", 50, "cut short within its headers" },
        };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                n_stored = load(rows[i].name, "", stored) * rows[i].percent / 100;
                ck_assert_int_lt(serve_sample("audio", 0), 0);
                ck_assert_msg(strstr(why.text, rows[i].said) != NULL, "%s: %s", rows[i].name, why.text);
        }
        end();
}
END_TEST

/* As programs do that write a WAV to a pipe. */
START_TEST(a_wav_of_unknown_length_ends_with_its_file) {
        static const uint32_t UNKNOWN[] = { UINT32_MAX, UINT32_MAX - 36, 0x7ffff000 };

        begin();
        load("s16.wav", ".f32", expected);
        for (size_t i = 0; i < ARRAY_SIZE(UNKNOWN); i++) {
                n_stored = load("s16.wav", "", stored);
                memcpy(stored + 4, &UNKNOWN[i], 4);
                memcpy(stored + 40, &UNKNOWN[i], 4);
                ck_assert_msg(serve_sample("audio", 0) == 1600 * 4, "%zu: %s", i, why.text);
                ck_assert_mem_eq(served, expected, 1600 * 4);
        }
        end();
}
END_TEST

/* The claim is known before any of it is decoded, so that it can be refused. */
START_TEST(a_flac_that_claims_a_day_is_refused_for_its_room) {
        struct source source = {
                .schema = { .n_fields = 1, .fields = { { .name = "f", .kind = FIELD_SOUND, .is_stored = true } } },
        };
        struct codec_input input = { .bytes = stored, .source = &source };
        struct codec_terms terms = { .source = &source, .batch_size = 1 };
        struct field_layout field = { 0 };
        struct codec *codec;

        begin();
        input.n_bytes = load("s16.flac", "", stored);
        memcpy(stored + 22, "\x52\x65\xc0\x00", 4); /* the low 32 bits of the number of samples: 24 hours */
        ck_assert_int_eq(codec_new(&source, 0, 0, "audio", NULL, &codec, &why), 0);
        ck_assert_int_eq(codec_form(codec, &terms, &field.form, &why), 0);
        ck_assert_uint_eq(field.form.max_bytes, 30 * 48000 * 4);
        ck_assert_int_eq(codec_open(codec, tools, &input, &opened, &why), 0);
        ck_assert_uint_gt(opened.n_bytes, field.form.max_bytes);
        ck_assert_int_eq(codec_refuse_room(codec, &opened, field.form.max_bytes, &why), -EFBIG);
        ck_assert_str_eq(why.text, "has 1382400000 frames, there is room for 1440000; raise audio(max_seconds=30), or "
                                   "use seconds=... to take a part");
        codec_close(tools);
        codec_free(codec);
        end();
}
END_TEST

/* 256 books of some bytes each. */
static size_t make_books(uint8_t *packet, uint32_t n_entries, int n_length_bits) {
        oggpack_buffer bits;
        size_t n;

        oggpack_writeinit(&bits);
        oggpack_write(&bits, 255, 8);
        for (unsigned i = 0; i < 256; i++) {
                oggpack_write(&bits, 0x564342, 24);
                oggpack_write(&bits, 1, 16); /* dimension */
                oggpack_write(&bits, n_entries, 24);
                oggpack_write(&bits, 1, 1); /* ordered: all code words are of one length */
                oggpack_write(&bits, (unsigned long)n_length_bits - 1, 5);
                oggpack_write(&bits, n_entries, n_length_bits + 1);
                oggpack_write(&bits, 0, 4); /* no vectors */
        }
        n = (size_t)oggpack_bytes(&bits);
        memcpy(packet, "\x05vorbis", 7);
        memcpy(packet + 7, oggpack_get_buffer(&bits), n);
        oggpack_writeclear(&bits);
        return n + 7;
}

START_TEST(codebooks_cannot_ask_for_gigabytes) {
        uint8_t packet[8192];
        size_t n = make_books(packet, 1u << 22, 22);

        ck_assert_uint_lt(n, sizeof(packet));
        ck_assert(!vorbis_codebooks_fit(packet, n));
        n = make_books(packet, 1u << 8, 8);
        ck_assert(vorbis_codebooks_fit(packet, n));
        for (size_t n_cut = 0; n_cut < n; n_cut++)
                ck_assert(!vorbis_codebooks_fit(packet, n_cut));
}
END_TEST

START_TEST(a_step_that_makes_no_sense_is_refused) {
        static const struct {
                const char *steps, *said;
        } rows[] = {
                { "audio(seconds=3)", "needs rate" },
                { "audio(rate=0)",
                  "column 12: rate: \"0\" is not allowed; expected N, whole numbers from 1000 to 192000" },
                { "audio(rate=16000, rate=8000)", "column 24: rate of audio is given twice" },
                { "audio(crop=center)", "needs seconds" },
                { "audio(rate=16000, seconds=1, crop=end)", "random, center or start" },
                { "audio(dtype=float64)", "float32 or int16" },
                { "audio(rate=16000,)", "column 18: \")\"; expected another argument after \",\"" },
                { "audio(mono", "column 7" },
                { "audio(rate=16000", "expected \",\" or \")\"" },
                { "audio raw", "unknown sound step \"raw\"" },
                { "hflip(0.5)", "is sound: the first step is audio(...), or raw" },
                { "text", "is sound: the first step is audio(...), or raw" },
        };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                ck_assert_int_eq(serve("u8.wav", rows[i].steps), -EINVAL);
                ck_assert_msg(strstr(why.text, rows[i].said) != NULL, "row %zu: %s", i, why.text);
        }
        ck_assert_int_eq(serve("u8.wav", "audio(mono=false)"), -ENOTSUP);
        ck_assert_int_eq(serve("u8.wav", "raw"), (int64_t)n_stored);
        end();
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "decoding", samples_are_those_of_soundfile, 0 },
                { "decoding", mono_is_the_mean_of_the_channels, 0 },
                { "decoding", int16_is_the_stored_number_of_16_bits, 0 },
                { "crops", a_crop_is_a_part_of_the_whole_in_every_format, 0 },
                { "crops", a_crop_of_a_long_flac_is_right_wherever_it_begins, 0 },
                { "crops", a_random_crop_belongs_to_its_sample, 0 },
                { "crops", a_short_sound_is_padded_with_zeroes, 0 },
                { "rate", a_tone_stays_the_tone_at_another_rate, 0 },
                { "bad", a_damaged_sound_is_a_damaged_sample, 0 },
                { "bad", a_sound_that_is_cut_is_never_a_shorter_one, 0 },
                { "bad", a_wav_of_unknown_length_ends_with_its_file, 0 },
                { "bad", a_flac_that_claims_a_day_is_refused_for_its_room, 0 },
                { "bad", codebooks_cannot_ask_for_gigabytes, 0 },
                { "bad", a_step_that_makes_no_sense_is_refused, 0 },
        };

        return suite_run("sound", rows, ARRAY_SIZE(rows));
}
