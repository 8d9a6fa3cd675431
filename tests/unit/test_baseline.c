/* unit/test_baseline.c: our own JPEG decoder gives libjpeg-turbo's bits, for the whole picture and for any box; what it
 * does not handle, and whatever libjpeg-turbo would have a word about, it hands over.
 *
 * The pictures are made here, by libjpeg-turbo's compressor, in memory that ends with the file's last byte, so that a
 * sanitizer sees whatever reads past it. */
#include "daemon/decode/jpeg/baseline.h"
#include "proto/base/cleanup.h"
#include "tests/support/jpegs.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PIXELS (4u << 20)

/* The sanitizers see every 3rd of the many pictures: what a picture does with memory depends on its layout far less
 * than its pixels do. Of the small ones every 7th height: with 70 widths, that is still each rest of 8 and of 16 beside
 * each other one. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define EVERY       3u
#define EVERY_SMALL 7u
#else
#define EVERY       1u
#define EVERY_SMALL 1u
#endif

/* ---- fixture --------------------------------------------------------------------------------------------------- */

/* Both forms of the code; one of them twice where the CPU has no AVX2. */
struct decoders {
        struct baseline *of[2];
};

static struct decoders decoders_new(void) {
        struct decoders decoders;

        ck_assert_int_eq(baseline_new(BASELINE_CODE_SCALAR, &decoders.of[0]), 0);
        ck_assert_int_eq(baseline_new(BASELINE_CODE_BEST, &decoders.of[1]), 0);
        return decoders;
}

static void decoders_free(struct decoders *decoders) {
        baseline_free(decoders->of[0]);
        baseline_free(decoders->of[1]);
}

/* A sink that packs the rows. */
struct collected {
        struct box box;
        uint8_t *rgb; /* box.width * box.height pixels */
        uint32_t n_rows;
        unsigned n_begun;
        int fails_with; /* at the first rows */
};

static int collect_begin(void *userdata, struct why *why) {
        struct collected *collected = userdata;

        (void)why;
        collected->n_begun++;
        collected->n_rows = 0;
        return 0;
}

static int begin_fails(void *userdata, struct why *why) {
        (void)userdata;
        (void)why;
        return -ENOMEM;
}

static int collect_take(void *userdata, const struct view *rows, struct why *why) {
        struct collected *collected = userdata;
        size_t n_row = (size_t)collected->box.width * 3;

        (void)why;
        if (collected->n_begun != 1 || rows->height == 0 || rows->width != collected->box.width ||
            collected->n_rows + rows->height > collected->box.height)
                ck_abort_msg("rows that were not asked for");
        if (collected->fails_with != 0)
                return collected->fails_with;
        for (uint32_t y = 0; y < rows->height; y++, collected->n_rows++)
                memcpy(collected->rgb + collected->n_rows * n_row, rows->pixels + y * rows->stride, n_row);
        return 0;
}

/* Reads the box of an open picture; the caller frees collected->rgb. */
static int read_box(struct baseline *baseline, struct box box, struct collected *collected) {
        struct row_sink sink = { collect_begin, collect_take, collected };
        int r;

        *collected = (struct collected){ .box = box, .rgb = malloc((size_t)box.width * box.height * 3) };
        r = baseline_read(baseline, &box, &sink, NULL);
        if (r == 0)
                ck_assert_uint_eq(collected->n_rows, box.height);
        return r;
}

static struct box random_box(uint64_t *random, uint32_t width, uint32_t height) {
        struct box box = { .x = jpegs_random(random, width), .y = jpegs_random(random, height) };

        box.width = 1 + jpegs_random(random, width - box.x);
        box.height = 1 + jpegs_random(random, height - box.y);
        return box;
}

/* The rows of the box that libjpeg gave are the same. */
static bool is_same(const struct collected *collected, const struct jpegs_verdict *verdict) {
        const struct box *box = &collected->box;

        for (uint32_t y = 0; y < box->height && box->y + y < verdict->n_rows; y++) {
                const uint8_t *ours = collected->rgb + (size_t)y * box->width * 3;
                const uint8_t *theirs = verdict->rgb + ((size_t)(box->y + y) * verdict->width + box->x) * 3;

                if (memcmp(ours, theirs, (size_t)box->width * 3) != 0)
                        return false;
        }
        return true;
}

static void describe(const struct jpegs_spec *spec, char *text, size_t n) {
        snprintf(text, n, "%ux%u quality %d sampling %dx%d restart %u content %d codes %d seed %llu", spec->width,
                 spec->height, spec->quality, spec->h, spec->v, spec->restart, spec->content, spec->codes,
                 (unsigned long long)spec->seed);
}

static void check_box(struct baseline *baseline, const struct jpegs_spec *spec, const uint8_t *bytes, size_t n_bytes,
                      const struct jpegs_verdict *verdict, struct box box) {
        struct collected collected;
        uint32_t width, height;
        char text[200];

        describe(spec, text, sizeof(text));
        ck_assert_msg(baseline_open(baseline, bytes, n_bytes, &width, &height) == 0, "not opened: %s", text);
        ck_assert_uint_eq(width, spec->width);
        ck_assert_uint_eq(height, spec->height);
        ck_assert_msg(read_box(baseline, box, &collected) == 0, "not read: %s", text);
        ck_assert_msg(is_same(&collected, verdict), "differs in box %u,%u %ux%u: %s", box.x, box.y, box.width,
                      box.height, text);
        free(collected.rgb);
}

/* The whole picture and n_boxes, by both forms of the code. Returns how many boxes were compared. */
static unsigned check_picture(struct decoders *decoders, const struct jpegs_spec *spec, unsigned n_boxes) {
        uint64_t random = spec->seed + 88172645463325252u;
        size_t n_bytes;
        uint8_t *bytes = jpegs_make(spec, &n_bytes);
        struct jpegs_verdict verdict = jpegs_decode(bytes, n_bytes, MAX_PIXELS);

        ck_assert(!verdict.has_failed && verdict.n_warnings == 0);
        for (unsigned i = 0; i < 2; i++)
                check_box(decoders->of[i], spec, bytes, n_bytes, &verdict,
                          (struct box){ 0, 0, spec->width, spec->height });
        for (unsigned i = 0; i < n_boxes; i++)
                check_box(decoders->of[i % 2], spec, bytes, n_bytes, &verdict,
                          random_box(&random, spec->width, spec->height));
        free(verdict.rgb);
        free(bytes);
        return 2 + n_boxes;
}

/* ---- equality -------------------------------------------------------------------------------------------------- */

static const struct sampling { int h, v; } SAMPLINGS[] = { { 0, 0 }, { 1, 1 }, { 2, 1 }, { 2, 2 }, { 1, 2 } };

#define N_SAMPLINGS (int)ARRAY_SIZE(SAMPLINGS)

static struct jpegs_spec random_spec(uint64_t *random, const struct sampling *sampling) {
        return (struct jpegs_spec){
                .h = sampling->h,
                .v = sampling->v,
                .quality = 1 + (int)jpegs_random(random, 100),
                .restart = jpegs_random(random, 3) == 0 ? 1 + jpegs_random(random, 7) : 0,
                .content = (enum jpegs_content)jpegs_random(random, N_JPEGS_CONTENTS),
                .codes = (enum jpegs_codes)jpegs_random(random, 3),
                .seed = jpegs_random(random, 1u << 30),
        };
}

/* _i: sampling */
START_TEST(small_pictures_of_every_size_are_libjpegs_bits) {
        struct decoders decoders = decoders_new();
        uint64_t random = 17 + (uint64_t)_i;
        unsigned n_pictures = 0, n_boxes = 0;

        for (uint32_t width = SAMPLINGS[_i].h == 2 ? 5 : 1; width <= 70; width++)
                for (uint32_t height = 1 + width % EVERY_SMALL; height <= 70; height += EVERY_SMALL) {
                        struct jpegs_spec spec = random_spec(&random, &SAMPLINGS[_i]);

                        spec.width = width;
                        spec.height = height;
                        n_boxes += check_picture(&decoders, &spec, 2);
                        n_pictures++;
                }
        decoders_free(&decoders);
        printf("sampling %dx%d: %u small pictures, %u boxes the same\n", SAMPLINGS[_i].h, SAMPLINGS[_i].v, n_pictures,
               n_boxes);
}
END_TEST

/* _i: sampling */
START_TEST(large_pictures_of_every_quality_are_libjpegs_bits) {
        static const struct {
                uint32_t width, height;
        } sizes[] = { { 500, 375 }, { 333, 501 }, { 1030, 19 }, { 19, 1030 }, { 256, 256 } };
        struct decoders decoders = decoders_new();
        uint64_t random = 170 + (uint64_t)_i;
        unsigned n_boxes = 0;

        for (int quality = 1; quality <= 100; quality += quality < 90 ? 3 : 1) {
                struct jpegs_spec spec = random_spec(&random, &SAMPLINGS[_i]);
                uint32_t idx = jpegs_random(&random, ARRAY_SIZE(sizes));

                spec.width = sizes[idx].width;
                spec.height = sizes[idx].height;
                spec.quality = quality;
                n_boxes += check_picture(&decoders, &spec, 20 / EVERY);
        }
        decoders_free(&decoders);
        printf("sampling %dx%d: %u boxes of large pictures the same\n", SAMPLINGS[_i].h, SAMPLINGS[_i].v, n_boxes);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------------------------- */

struct counts {
        unsigned n_files, n_whole, n_boxes, n_warned, n_refused;
};

/* Strikes a few bytes, more often in the headers than chance would; sometimes cuts, or swaps parts. */
static void damage(uint64_t *random, uint8_t *bytes, size_t *n_bytes) {
        size_t n = *n_bytes;
        uint32_t n_hits = jpegs_random(random, 4);

        if (jpegs_random(random, 6) == 0)
                *n_bytes = n = 2 + jpegs_random(random, (uint32_t)n - 2);
        if (jpegs_random(random, 12) == 0) {
                uint32_t from = jpegs_random(random, (uint32_t)n), to = jpegs_random(random, (uint32_t)n);
                size_t most = n - (from > to ? from : to);

                memmove(bytes + to, bytes + from, 1 + jpegs_random(random, (uint32_t)most));
        }
        for (uint32_t i = 0; i < n_hits; i++) {
                uint32_t reach = jpegs_random(random, 2) && n > 700 ? 700 : (uint32_t)n;
                uint32_t at = jpegs_random(random, reach);

                if (jpegs_random(random, 3) == 0)
                        bytes[at] ^= (uint8_t)(1u << jpegs_random(random, 8));
                else
                        bytes[at] = (uint8_t)(jpegs_random(random, 8) ? jpegs_random(random, 256) : 0xff);
        }
}

/* What was read without handing over is what libjpeg reads; of a whole picture also without a warning. */
static void check_damaged(struct baseline *baseline, uint64_t *random, const uint8_t *bytes, size_t n_bytes,
                          struct counts *counts) {
        struct jpegs_verdict verdict;
        struct collected collected;
        uint32_t width, height;
        struct box box;

        counts->n_files++;
        if (baseline_open(baseline, bytes, n_bytes, &width, &height) != 0 || (uint64_t)width * height > MAX_PIXELS) {
                counts->n_refused++;
                return;
        }
        verdict = jpegs_decode(bytes, n_bytes, MAX_PIXELS);
        counts->n_warned += verdict.has_failed || verdict.n_warnings > 0;
        if (read_box(baseline, (struct box){ 0, 0, width, height }, &collected) == 0) {
                ck_assert_msg(!verdict.has_failed, "file %u: libjpeg refuses it", counts->n_files);
                ck_assert_msg(verdict.n_warnings == 0, "file %u: libjpeg warns", counts->n_files);
                ck_assert_msg(is_same(&collected, &verdict), "file %u differs", counts->n_files);
                counts->n_whole++;
        }
        free(collected.rgb);

        box = random_box(random, width, height);
        ck_assert_int_eq(baseline_open(baseline, bytes, n_bytes, &width, &height), 0);
        if (read_box(baseline, box, &collected) == 0) {
                ck_assert_msg(verdict.width == width && verdict.height == height, "file %u: libjpeg reads no row",
                              counts->n_files);
                ck_assert_msg(is_same(&collected, &verdict), "file %u: the box differs", counts->n_files);
                counts->n_boxes++;
        }
        free(collected.rgb);
        free(verdict.rgb);
}

static void check_damages_of(struct decoders *decoders, uint64_t *random, const struct jpegs_spec *spec, unsigned n,
                             struct counts *counts) {
        size_t n_bytes;
        uint8_t *bytes = jpegs_make(spec, &n_bytes);

        for (unsigned i = 0; i < n; i++) {
                uint8_t *damaged = malloc(n_bytes), *exact;
                size_t n_damaged = n_bytes;

                memcpy(damaged, bytes, n_bytes);
                damage(random, damaged, &n_damaged);
                exact = malloc(n_damaged);
                memcpy(exact, damaged, n_damaged);
                check_damaged(decoders->of[i % 2], random, exact, n_damaged, counts);
                free(exact);
                free(damaged);
        }
        free(bytes);
}

/* _i: sampling */
START_TEST(damage_is_handed_over_or_makes_no_difference) {
        struct decoders decoders = decoders_new();
        uint64_t random = 4711 + (uint64_t)_i;
        struct counts counts = { 0 };

        for (unsigned i = 0; i < 60 / EVERY; i++) {
                struct jpegs_spec spec = random_spec(&random, &SAMPLINGS[_i]);

                spec.width = 5 + jpegs_random(&random, 90);
                spec.height = 1 + jpegs_random(&random, 90);
                check_damages_of(&decoders, &random, &spec, 100, &counts);
        }
        decoders_free(&decoders);
        ck_assert_uint_gt(counts.n_whole, counts.n_files / 20);
        ck_assert_uint_gt(counts.n_warned, counts.n_files / 20);
        printf("sampling %dx%d: %u damaged files: %u not opened, %u that libjpeg warns of or refuses, %u whole and %u "
               "boxes read, all the same\n",
               SAMPLINGS[_i].h, SAMPLINGS[_i].v, counts.n_files, counts.n_refused, counts.n_warned, counts.n_whole,
               counts.n_boxes);
}
END_TEST

/* ---- what is not ours ------------------------------------------------------------------------------------------ */

static const struct jpegs_spec PLAIN = {
        .width = 60,
        .height = 50,
        .quality = 90,
        .h = 2,
        .v = 2,
        .content = JPEGS_PHOTO,
        .seed = 1,
};

static int open_bytes(struct baseline *baseline, const uint8_t *bytes, size_t n_bytes) {
        uint32_t width, height;

        return baseline_open(baseline, bytes, n_bytes, &width, &height);
}

/* _i: enum jpegs_kind */
START_TEST(other_kinds_of_jpeg_are_handed_over) {
        struct decoders decoders = decoders_new();
        struct jpegs_spec spec = PLAIN;
        size_t n_bytes;
        uint8_t *bytes;

        spec.h = spec.v = 1;
        bytes = jpegs_make_other(&spec, (enum jpegs_kind)_i, &n_bytes);
        ck_assert_int_eq(open_bytes(decoders.of[1], bytes, n_bytes), BASELINE_HANDS_OVER);
        free(bytes);
        decoders_free(&decoders);
}
END_TEST

START_TEST(a_narrow_picture_whose_chroma_is_halved_is_handed_over) {
        struct decoders decoders = decoders_new();
        struct jpegs_spec spec = PLAIN;

        for (spec.width = 1; spec.width < 8; spec.width++) {
                size_t n_bytes;
                uint8_t *bytes = jpegs_make(&spec, &n_bytes);

                ck_assert_int_eq(open_bytes(decoders.of[1], bytes, n_bytes), spec.width < 5 ? BASELINE_HANDS_OVER : 0);
                free(bytes);
        }
        decoders_free(&decoders);
}
END_TEST

/* Wherever a file is cut: what is left has no end marker. */
START_TEST(a_file_that_was_cut_is_handed_over) {
        struct decoders decoders = decoders_new();
        size_t n_bytes;
        uint8_t *bytes = jpegs_make(&PLAIN, &n_bytes);

        ck_assert_int_eq(open_bytes(decoders.of[1], bytes, n_bytes), 0);
        for (size_t n = 0; n < n_bytes; n++) {
                uint8_t *cut = malloc(n > 0 ? n : 1);

                memcpy(cut, bytes, n);
                ck_assert_msg(open_bytes(decoders.of[1], cut, n) == BASELINE_HANDS_OVER, "opened %zu of %zu bytes", n,
                              n_bytes);
                free(cut);
        }
        free(bytes);
        decoders_free(&decoders);
}
END_TEST

START_TEST(bytes_behind_the_end_marker_do_not_matter) {
        struct decoders decoders = decoders_new();
        struct jpegs_verdict verdict;
        size_t n_bytes;
        uint8_t *bytes = jpegs_make(&PLAIN, &n_bytes);

        verdict = jpegs_decode(bytes, n_bytes, MAX_PIXELS);
        bytes = realloc(bytes, n_bytes + 300);
        memset(bytes + n_bytes, 0xd9, 300);
        check_box(decoders.of[1], &PLAIN, bytes, n_bytes + 300, &verdict, (struct box){ 0, 0, 60, 50 });
        free(verdict.rgb);
        free(bytes);
        decoders_free(&decoders);
}
END_TEST

/* Looks for the start of the scan's bytes. */
static size_t scan_at(const uint8_t *bytes, size_t n_bytes) {
        for (size_t i = 0; i + 4 < n_bytes; i++)
                if (bytes[i] == 0xff && bytes[i + 1] == 0xda)
                        return i + 2 + (size_t)(bytes[i + 2] << 8 | bytes[i + 3]);
        ck_abort_msg("no scan");
}

static int read_rows_of(struct baseline *baseline, const uint8_t *bytes, size_t n_bytes, struct box box) {
        struct collected collected;
        int r = open_bytes(baseline, bytes, n_bytes);

        if (r != 0)
                return r;
        r = read_box(baseline, box, &collected);
        free(collected.rgb);
        return r;
}

START_TEST(damage_behind_the_box_is_not_seen_and_before_it_is) {
        struct decoders decoders = decoders_new();
        struct jpegs_spec spec = PLAIN;
        struct box top = { 0, 0, 60, 10 }, bottom = { 0, 190, 60, 10 };
        size_t n_bytes, scan;
        uint8_t *bytes;

        spec.height = 200;
        bytes = jpegs_make(&spec, &n_bytes);
        scan = scan_at(bytes, n_bytes);
        memcpy(bytes + scan + (n_bytes - scan) / 2, "\xff\xd5", 2);
        for (unsigned i = 0; i < 2; i++) {
                ck_assert_int_eq(read_rows_of(decoders.of[i], bytes, n_bytes, top), 0);
                ck_assert_int_eq(read_rows_of(decoders.of[i], bytes, n_bytes, bottom), BASELINE_HANDS_OVER);
        }
        free(bytes);
        decoders_free(&decoders);
}
END_TEST

static void set_size(uint8_t *bytes, size_t n_bytes, uint32_t width, uint32_t height) {
        for (size_t i = 0; i + 9 < n_bytes; i++)
                if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) {
                        bytes[i + 5] = (uint8_t)(height >> 8);
                        bytes[i + 6] = (uint8_t)height;
                        bytes[i + 7] = (uint8_t)(width >> 8);
                        bytes[i + 8] = (uint8_t)width;
                        return;
                }
        ck_abort_msg("no frame");
}

/* Bits one after the other, with a zero stuffed after 0xff. */
struct writer {
        uint8_t *bytes;
        size_t n;
        uint32_t bits, n_bits;
};

static void write_bits(struct writer *writer, uint32_t bits, uint32_t n_bits) {
        writer->bits = writer->bits << n_bits | bits;
        writer->n_bits += n_bits;
        while (writer->n_bits >= 8) {
                uint8_t byte = (uint8_t)(writer->bits >> (writer->n_bits -= 8));

                writer->bytes[writer->n++] = byte;
                if (byte == 0xff)
                        writer->bytes[writer->n++] = 0;
        }
}

/* Grey, 65,496 pixels wide, each mean 2047 above the one before: libjpeg gives up where 32 bits are full. */
static uint8_t *make_running_off(uint32_t n_rows, size_t *ret_n_bytes) {
        static const char head[] = "\xff\xd8"
                                   "\xff\xc0\x00\x0b\x08\x00\x00\xff\xd8\x01\x01\x11\x00"
                                   "\xff\xc4\x00\x14\x00\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0b"
                                   "\xff\xc4\x00\x14\x10\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x00"
                                   "\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00";
        size_t n_head = sizeof(head) - 1, n_table = 69, n_blocks = (size_t)n_rows * 8187;
        struct writer writer = { .bytes = malloc(n_head + n_table + n_blocks * 4 + 10) };

        memcpy(writer.bytes, head, 2);
        memcpy(writer.bytes + 2, "\xff\xdb\x00\x43\x00", 5);
        memset(writer.bytes + 7, 1, 64);
        memcpy(writer.bytes + 2 + n_table, head + 2, n_head - 2);
        writer.n = n_head + n_table;
        set_size(writer.bytes, writer.n, 65496, n_rows * 8);
        for (size_t i = 0; i < n_blocks; i++)
                write_bits(&writer, 0xffe, 13); /* code 0, eleven ones, code 0 */
        write_bits(&writer, 0x7f, 7);
        writer.bytes[writer.n++] = 0xff;
        writer.bytes[writer.n++] = 0xd9;
        *ret_n_bytes = writer.n;
        return writer.bytes;
}

START_TEST(a_mean_that_runs_off_is_handed_over) {
        struct decoders decoders = decoders_new();
        size_t n_bytes;
        uint8_t *bytes = make_running_off(140, &n_bytes);

        for (unsigned i = 0; i < 2; i++) {
                ck_assert_int_eq(read_rows_of(decoders.of[i], bytes, n_bytes, (struct box){ 9, 300, 10, 10 }), 0);
                ck_assert_int_eq(read_rows_of(decoders.of[i], bytes, n_bytes, (struct box){ 9, 1100, 10, 10 }),
                                 BASELINE_HANDS_OVER);
        }
        free(bytes);
        decoders_free(&decoders);
}
END_TEST

/* ---- memory, sinks --------------------------------------------------------------------------------------------- */

START_TEST(a_giant_of_few_bytes_costs_nothing) {
        struct decoders decoders = decoders_new();
        size_t n_bytes;
        uint8_t *bytes = jpegs_make(&PLAIN, &n_bytes);

        set_size(bytes, n_bytes, 65500, 65500);
        ck_assert_int_eq(open_bytes(decoders.of[1], bytes, n_bytes), 0);
        ck_assert_uint_lt(baseline_bytes(decoders.of[1]), 100000);
        ck_assert_int_eq(read_rows_of(decoders.of[1], bytes, n_bytes, (struct box){ 65000, 65000, 500, 500 }),
                         BASELINE_HANDS_OVER);
        ck_assert_uint_lt(baseline_bytes(decoders.of[1]), 5000000);
        set_size(bytes, n_bytes, 65501, 10);
        ck_assert_int_eq(open_bytes(decoders.of[1], bytes, n_bytes), BASELINE_HANDS_OVER);
        free(bytes);
        decoders_free(&decoders);
}
END_TEST

START_TEST(memory_goes_with_the_width_alone) {
        struct decoders decoders = decoders_new();
        struct jpegs_spec spec = PLAIN;
        size_t n_held[2];

        for (unsigned i = 0; i < 2; i++) {
                spec.height = i == 0 ? 50 : 5000;
                check_picture(&decoders, &spec, 1);
                n_held[i] = baseline_bytes(decoders.of[1]);
        }
        ck_assert_uint_eq(n_held[0], n_held[1]);
        decoders_free(&decoders);
}
END_TEST

START_TEST(what_the_sink_returns_ends_the_reading) {
        struct decoders decoders = decoders_new();
        struct collected collected = { .box = { 3, 5, 20, 30 }, .fails_with = -ENOSPC };
        struct row_sink sink = { collect_begin, collect_take, &collected };
        size_t n_bytes;
        uint8_t *bytes = jpegs_make(&PLAIN, &n_bytes);

        ck_assert_int_eq(open_bytes(decoders.of[1], bytes, n_bytes), 0);
        ck_assert_int_eq(baseline_read(decoders.of[1], &collected.box, &sink, NULL), -ENOSPC);
        ck_assert_int_eq(read_rows_of(decoders.of[1], bytes, n_bytes, collected.box), 0);
        free(bytes);
        decoders_free(&decoders);
}
END_TEST

START_TEST(a_sink_that_cannot_begin_gets_no_rows) {
        struct decoders decoders = decoders_new();
        struct collected collected = { .box = { 0, 0, 60, 50 } };
        struct row_sink sink = { begin_fails, collect_take, &collected };
        size_t n_bytes;
        uint8_t *bytes = jpegs_make(&PLAIN, &n_bytes);

        ck_assert_int_eq(open_bytes(decoders.of[1], bytes, n_bytes), 0);
        ck_assert_int_eq(baseline_read(decoders.of[1], &collected.box, &sink, NULL), -ENOMEM);
        ck_assert_uint_eq(collected.n_rows, 0);
        free(bytes);
        decoders_free(&decoders);
}
END_TEST

START_TEST(code_is_chosen_by_name) {
        struct baseline *baseline = NULL;
        bool has_avx2 = false;

#if defined(__x86_64__)
        has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#endif
        ck_assert_int_eq(baseline_new(BASELINE_CODE_AVX2, &baseline), has_avx2 ? 0 : -ENOTSUP);
        ck_assert_int_eq(baseline != NULL, has_avx2);
        baseline_free(baseline);
        baseline_free(NULL);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------------------------- */

#define N_THREADS  6
#define N_PICTURES 48 /* with more tables of their own than the pool keeps */

static struct {
        uint8_t *bytes;
        size_t n_bytes;
        struct jpegs_spec spec;
        struct jpegs_verdict verdict;
} pictures[N_PICTURES];

static void *decode_pictures(void *opaque) {
        uint64_t random = (uint64_t)(uintptr_t)opaque;
        struct baseline *baseline = NULL;

        ck_assert_int_eq(baseline_new(BASELINE_CODE_BEST, &baseline), 0);
        for (unsigned i = 0; i < 400; i++) {
                uint32_t idx = jpegs_random(&random, jpegs_random(&random, 2) ? 4 : N_PICTURES);

                check_box(baseline, &pictures[idx].spec, pictures[idx].bytes, pictures[idx].n_bytes,
                          &pictures[idx].verdict,
                          random_box(&random, pictures[idx].spec.width, pictures[idx].spec.height));
        }
        baseline_free(baseline);
        return NULL;
}

START_TEST(decoders_in_threads_share_tables) {
        pthread_t threads[N_THREADS];
        uint64_t random = 99;

        for (size_t i = 0; i < N_PICTURES; i++) {
                pictures[i].spec = random_spec(&random, &SAMPLINGS[i % ARRAY_SIZE(SAMPLINGS)]);
                pictures[i].spec.width = pictures[i].spec.height = 40;
                pictures[i].spec.codes = (enum jpegs_codes)(i % 3);
                pictures[i].bytes = jpegs_make(&pictures[i].spec, &pictures[i].n_bytes);
                pictures[i].verdict = jpegs_decode(pictures[i].bytes, pictures[i].n_bytes, MAX_PIXELS);
        }
        for (uintptr_t i = 0; i < N_THREADS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, decode_pictures, (void *)(i + 1)), 0);
        for (size_t i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
        for (size_t i = 0; i < N_PICTURES; i++) {
                free(pictures[i].bytes);
                free(pictures[i].verdict.rgb);
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "sizes", small_pictures_of_every_size_are_libjpegs_bits, N_SAMPLINGS },
                { "qualities", large_pictures_of_every_quality_are_libjpegs_bits, N_SAMPLINGS },
                { "damage", damage_is_handed_over_or_makes_no_difference, N_SAMPLINGS },
                { "damage", damage_behind_the_box_is_not_seen_and_before_it_is, 0 },
                { "damage", a_mean_that_runs_off_is_handed_over, 0 },
                { "not ours", other_kinds_of_jpeg_are_handed_over, N_JPEGS_KINDS },
                { "not ours", a_narrow_picture_whose_chroma_is_halved_is_handed_over, 0 },
                { "not ours", a_file_that_was_cut_is_handed_over, 0 },
                { "not ours", bytes_behind_the_end_marker_do_not_matter, 0 },
                { "memory", a_giant_of_few_bytes_costs_nothing, 0 },
                { "memory", memory_goes_with_the_width_alone, 0 },
                { "memory", what_the_sink_returns_ends_the_reading, 0 },
                { "memory", a_sink_that_cannot_begin_gets_no_rows, 0 },
                { "memory", code_is_chosen_by_name, 0 },
                { "threads", decoders_in_threads_share_tables, 0 },
        };

        return suite_run("baseline", rows, sizeof(rows) / sizeof(rows[0]));
}
