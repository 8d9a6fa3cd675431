/* Our own FLAC decoder beside libFLAC (through libsndfile), on files that libFLAC writes here: silence, tones, noise,
 * channels that resemble each other, bits that are always 0; and files that were damaged afterwards. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <sndfile.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/decode/flac/crc.h"
#include "daemon/decode/flac/flac.h"
#include "daemon/decode/flac/predict.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

#define FRAMES_MAX   70000u
#define CHANNELS_MAX 8u
#define FILE_MAX     (FRAMES_MAX * CHANNELS_MAX * 4u)

static int32_t source[FRAMES_MAX * CHANNELS_MAX]; /* interleaved, in the highest bits */
static float expected[FRAMES_MAX * CHANNELS_MAX], decoded[FRAMES_MAX * CHANNELS_MAX];

static struct memory_file {
        uint8_t bytes[FILE_MAX];
        sf_count_t n, at;
} file;

/* ---- a file in memory, as libsndfile wants it -------------------------------------------------------------------- */

static sf_count_t get_length(void *user) {
        return ((struct memory_file *)user)->n;
}

static sf_count_t seek_to(sf_count_t offset, int whence, void *user) {
        struct memory_file *to = user;

        to->at = offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? to->at : to->n);
        return to->at;
}

static sf_count_t read_bytes(void *into, sf_count_t n, void *user) {
        struct memory_file *from = user;

        n = n < from->n - from->at ? n : from->n - from->at;
        memcpy(into, from->bytes + from->at, (size_t)n);
        from->at += n;
        return n;
}

static sf_count_t write_bytes(const void *bytes, sf_count_t n, void *user) {
        struct memory_file *to = user;

        ck_assert(to->at + n <= (sf_count_t)FILE_MAX);
        memcpy(to->bytes + to->at, bytes, (size_t)n);
        to->at += n;
        to->n = to->n > to->at ? to->n : to->at;
        return n;
}

static sf_count_t get_place(void *user) {
        return ((struct memory_file *)user)->at;
}

static SF_VIRTUAL_IO io = { get_length, seek_to, read_bytes, write_bytes, get_place };

/* ---- files of all kinds ------------------------------------------------------------------------------------------ */

struct kind {
        int bits; /* 8, 16, 24 */
        uint32_t n_channels, n_frames;
        double level; /* libFLAC's 0 to 8, as libsndfile counts it: 0.0 to 1.0 */
        enum {
                SILENCE,
                TONES,
                NOISE,
                ALIKE,
                WASTED,
                JUMPS,
                N_SIGNALS
        } signal;
};

static double random_unit(void) {
        return (double)rand() / RAND_MAX * 2 - 1; // NOLINT: the same numbers each time are what is wanted
}

static double signal_at(const struct kind *kind, uint32_t frame, uint32_t channel) {
        double tone = 0.3 * sin(frame * 0.05 * (channel + 1)) + 0.2 * sin(frame * 0.011);

        switch (kind->signal) {
        case SILENCE:
                return 0.25;
        case TONES:
                return tone;
        case NOISE:
                return random_unit();
        case ALIKE:
                return 0.4 * sin(frame * 0.03) + 0.01 * random_unit();
        case JUMPS:
                return frame % 997 < 3 ? (frame & 1 ? 0.999 : -1) : 0.0001 * random_unit();
        default:
                return tone + 0.01 * random_unit();
        }
}

static void make_file(const struct kind *kind) {
        SF_INFO info = { .samplerate = 16000, .channels = (int)kind->n_channels };
        double level = kind->level;
        SNDFILE *to;

        info.format = SF_FORMAT_FLAC | (kind->bits == 8    ? SF_FORMAT_PCM_S8
                                        : kind->bits == 16 ? SF_FORMAT_PCM_16
                                                           : SF_FORMAT_PCM_24);
        for (uint32_t i = 0; i < kind->n_frames * kind->n_channels; i++) {
                double value = signal_at(kind, i / kind->n_channels, i % kind->n_channels);
                int32_t number = (int32_t)lrint(value * 2147483647.0);

                source[i] = kind->signal == WASTED ? number & ~((1 << (32 - kind->bits + 3)) - 1) : number;
        }
        file.n = file.at = 0;
        to = sf_open_virtual(&io, SFM_WRITE, &info, &file);
        ck_assert_msg(to != NULL, "%s", sf_strerror(NULL));
        sf_command(to, SFC_SET_COMPRESSION_LEVEL, &level, sizeof(level));
        ck_assert_int_eq(sf_writef_int(to, source, kind->n_frames), kind->n_frames);
        ck_assert_int_eq(sf_close(to), 0);
}

/* What libsndfile reads of the file. */
static void expect(uint32_t n_frames) {
        SF_INFO info = { 0 };
        SNDFILE *from;

        file.at = 0;
        from = sf_open_virtual(&io, SFM_READ, &info, &file);
        ck_assert(from != NULL);
        ck_assert_int_eq(sf_readf_float(from, expected, n_frames), n_frames);
        sf_close(from);
}

/* Frames `first` to `end` - 1 by our decoder, in pieces of `n_piece`, to `decoded`. Returns 0 or the error. */
static int decode(uint64_t first, uint64_t end, uint64_t n_piece) {
        uint8_t *exact = malloc((size_t)file.n); /* so that ASan sees each byte too many */
        struct sound_info info = { 0 };
        struct flac *flac = NULL;
        float *out = decoded;
        int r;

        memcpy(exact, file.bytes, (size_t)file.n);
        r = flac_open(exact, (size_t)file.n, &flac, &info);
        if (r == 0)
                r = end <= info.n_frames ? flac_seek(flac, first, end) : -ERANGE;
        for (; r == 0 && first < end; first += n_piece, out += n_piece * info.n_channels)
                r = flac_read(flac, out, end - first < n_piece ? end - first : n_piece);
        flac_close(flac);
        free(exact);
        return r;
}

static void must_be_equal(const struct kind *kind, uint64_t first, uint64_t end) {
        for (uint64_t i = 0; i < (end - first) * kind->n_channels; i++)
                if (decoded[i] != expected[first * kind->n_channels + i])
                        ck_abort_msg("%d bits, %u channels, %u frames, level %g, signal %d: frame %llu is wrong",
                                     kind->bits, kind->n_channels, kind->n_frames, kind->level, (int)kind->signal,
                                     (unsigned long long)(first + i / kind->n_channels));
}

static void compare(const struct kind *kind) {
        uint64_t n = kind->n_frames;
        int r;

        make_file(kind);
        expect(kind->n_frames);
        for (int turn = 0; turn < 6; turn++) {
                uint64_t first = turn == 0 ? 0 : (uint64_t)rand() % n;                     // NOLINT
                uint64_t end = turn == 0 ? n : first + 1 + (uint64_t)rand() % (n - first); // NOLINT

                r = decode(first, end, turn % 2 ? 4096 : 1000);
                ck_assert_msg(r == 0, "%d bits, %u channels, %u frames, level %g, signal %d: frames %llu to %llu: %s",
                              kind->bits, kind->n_channels, kind->n_frames, kind->level, (int)kind->signal,
                              (unsigned long long)first, (unsigned long long)end, strerror(-r));
                must_be_equal(kind, first, end);
        }
}

/* ---- equality ---------------------------------------------------------------------------------------------------- */

START_TEST(all_signals_bits_and_levels) {
        static const int BITS[] = { 8, 16, 24 };
        static const double LEVELS[] = { 0, 0.25, 0.5, 0.625, 1 };

        srand(1);
        for (int signal = 0; signal < N_SIGNALS; signal++)
                for (size_t b = 0; b < ARRAY_SIZE(BITS); b++)
                        for (size_t l = 0; l < ARRAY_SIZE(LEVELS); l++)
                                compare(&(struct kind){ BITS[b], 1 + (uint32_t)l % 2, 20000, LEVELS[l], signal });
}
END_TEST

START_TEST(any_number_of_channels) {
        srand(2);
        for (uint32_t n_channels = 1; n_channels <= CHANNELS_MAX; n_channels++)
                compare(&(struct kind){ 16, n_channels, 30000, 0.625, WASTED });
}
END_TEST

/* A last block that is short, also of one frame; a file of one block. */
START_TEST(any_length) {
        static const uint32_t LENGTHS[] = { 16, 17, 100, 1151, 1152, 1153, 4095, 4096, 4097, 8192, 40961, 65536 };

        srand(3);
        for (size_t i = 0; i < ARRAY_SIZE(LENGTHS); i++)
                for (uint32_t signal = 0; signal < N_SIGNALS; signal++)
                        compare(&(struct kind){ 16, 1 + signal % 2, LENGTHS[i], signal % 2 ? 0.125 : 0.625, signal });
}
END_TEST

/* ---- damage ------------------------------------------------------------------------------------------------------ */

/* Nothing but the right samples is ever delivered as right. */
START_TEST(a_bit_that_changed_is_noticed_or_lies_elsewhere) {
        const struct kind kind = { 16, 2, 20000, 0.625, ALIKE };
        uint32_t n_refused = 0;

        srand(4);
        make_file(&kind);
        expect(kind.n_frames);
        for (int turn = 0; turn < 400; turn++) {
                size_t at = 42 + (size_t)rand() % ((size_t)file.n - 42); // NOLINT
                uint8_t bit = (uint8_t)(1 << (turn & 7));
                uint64_t first = (uint64_t)turn * 40;
                int r;

                file.bytes[at] ^= bit;
                r = decode(first, first + 4000, 4000);
                file.bytes[at] ^= bit;
                if (r == 0)
                        must_be_equal(&kind, first, first + 4000);
                n_refused += r < 0;
        }
        ck_assert_uint_gt(n_refused, 50);
        ck_assert_uint_lt(n_refused, 350);
}
END_TEST

START_TEST(a_cut_is_noticed_wherever_it_is) {
        const struct kind kind = { 16, 1, 9000, 0.625, TONES };
        sf_count_t n;

        make_file(&kind);
        n = file.n;
        for (file.n = 0; file.n < n; file.n += 1 + file.n / 50)
                ck_assert_int_lt(decode(0, kind.n_frames, 4096), 0);
        file.n = n - 1;
        ck_assert_int_eq(decode(8500, kind.n_frames, 4096), -EBADMSG);
        ck_assert_int_eq(decode(0, 8192, 4096), 0);
}
END_TEST

/* A block that is not there is looked for once, in a file that is full of what looks like the beginning of one. */
START_TEST(a_file_of_beginnings_takes_as_long_as_reading_it) {
        const struct kind kind = { 16, 1, 60000, 0.625, TONES };

        make_file(&kind);
        for (sf_count_t i = 8000; i < file.n - 1; i += 2)
                memcpy(file.bytes + i, "\xff\xf8", 2);
        ck_assert_int_eq(decode(59000, 60000, 1000), -EBADMSG);
}
END_TEST

/* ---- parts ------------------------------------------------------------------------------------------------------- */

START_TEST(lanes_compute_what_one_after_the_other_computes) {
        enum {
                N = 1000
        };
        static int32_t together[FLAC_LANES][N], alone[FLAC_LANES][N];
        struct flac_prediction predictions[FLAC_LANES];

        srand(5);
        for (int turn = 0; turn < 200; turn++) {
                uint32_t n_lanes = 3 + (uint32_t)turn % 6, n = 16 + (uint32_t)rand() % (N - 16); // NOLINT

                for (uint32_t i = 0; i < n_lanes; i++) {
                        struct flac_prediction *p = &predictions[i];

                        *p = (struct flac_prediction){ together[i],           n,    1 + (uint32_t)rand() % 12, // NOLINT
                                                       (uint32_t)rand() % 15, true, { 0 } };                   // NOLINT
                        for (uint32_t k = 0; k < p->order; k++)
                                p->weights[k] = rand() % 32768 - 16384; // NOLINT
                        for (uint32_t k = 0; k < n; k++)
                                together[i][k] = alone[i][k] = (int32_t)(random_unit() * (turn % 2 ? 1e3 : 2e9));
                }
                flac_predict(predictions, n_lanes);
                for (uint32_t i = 0; i < n_lanes; i++) {
                        predictions[i].samples = alone[i];
                        flac_predict(&predictions[i], 1);
                        ck_assert(memcmp(alone[i], together[i], n * sizeof(int32_t)) == 0);
                }
        }
}
END_TEST

START_TEST(checksums_are_those_of_the_specification) {
        ck_assert_uint_eq(flac_crc8((const uint8_t *)"123456789", 9), 0xf4);
        ck_assert_uint_eq(flac_crc16((const uint8_t *)"123456789", 9), 0xfee8);
        ck_assert_uint_eq(flac_crc16(NULL, 0), 0);
}
END_TEST

/* What is left to libsndfile. */
START_TEST(other_files_are_not_for_this_decoder) {
        const struct kind kind = { 16, 1, 9000, 0.625, TONES };
        static const struct {
                size_t at;
                uint8_t is;
        } changes[] = {
                { 0, 'F' },  { 4, 1 },
                { 7, 33 },   { 8, 1 },     /* not FLAC; other metadata first; blocks of two sizes */
                { 20, 1 },   { 21, 0xf1 }, /* 32 bits; 2^32 frames more */
                { 5, 0xff },               /* metadata beyond the file's end */
        };

        make_file(&kind);
        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                uint8_t was = file.bytes[changes[i].at];

                file.bytes[changes[i].at] = changes[i].is;
                ck_assert_msg(decode(0, 1, 1) == -ENOTSUP, "byte %zu", changes[i].at);
                file.bytes[changes[i].at] = was;
        }
        ck_assert_int_eq(decode(0, 1, 1), 0);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "equal", all_signals_bits_and_levels, 0 },
                { "equal", any_number_of_channels, 0 },
                { "equal", any_length, 0 },
                { "damage", a_bit_that_changed_is_noticed_or_lies_elsewhere, 0 },
                { "damage", a_cut_is_noticed_wherever_it_is, 0 },
                { "damage", a_file_of_beginnings_takes_as_long_as_reading_it, 0 },
                { "parts", lanes_compute_what_one_after_the_other_computes, 0 },
                { "parts", checksums_are_those_of_the_specification, 0 },
                { "parts", other_files_are_not_for_this_decoder, 0 },
        };

        return suite_run("flac", rows, ARRAY_SIZE(rows));
}
