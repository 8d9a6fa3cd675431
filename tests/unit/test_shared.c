/* unit/test_shared.c: pictures that are decoded together have the bits, and the damage, that each has alone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/codec_choose.h"
#include "daemon/codec/codec_tools.h"
#include "proto/base/cleanup.h"
#include "tests/support/layouts.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#define PARTS_MAX 10u
#define PART_MAX  (1u << 21) /* bytes of a part */

static const struct decode_limits LIMITS = { .max_pixels = 1 << 20, .max_scans = 100, .max_scratch_bytes = 1 << 28 };

static const struct source SOURCE = { .schema = { .n_fields = 1,
                                                  .fields = {
                                                          { .name = "f", .kind = FIELD_PICTURE, .is_stored = true },
                                                  } } };

/* Fields of one part of a pipeline after another, as a sample has them. */
struct parts {
        uint32_t n;
        struct codec *codecs[PARTS_MAX];
        struct codec_sharer sharers[PARTS_MAX];
};

static void add_parts(struct parts *parts, const char *steps, uint32_t n_views) {
        uint32_t group = parts->n > 0 ? codec_view(parts->codecs[parts->n - 1]) + 1 : 0;
        struct why why;

        for (uint32_t view = 0; view < n_views; view++, parts->n++) {
                struct codec **codec = &parts->codecs[parts->n];

                ck_assert_msg(codec_new(&SOURCE, 0, group, steps, NULL, codec, &why) == 0, "%s", why.text);
                parts->sharers[parts->n] = (struct codec_sharer){ *codec, 1000 + view };
        }
}

static void parts_fini(struct parts *parts) {
        for (uint32_t i = 0; i < parts->n; i++)
                codec_free(parts->codecs[i]);
        parts->n = 0;
}

/* What has become of a sample: the first part that failed, or all of their bytes. */
struct outcome {
        uint32_t n_served;
        int r;
        struct why why;
        uint64_t n_bytes[PARTS_MAX];
        uint8_t *out[PARTS_MAX];
        struct codec_counts counts;
};

static void outcome_fini(struct outcome *outcome) {
        for (uint32_t i = 0; i < PARTS_MAX; i++)
                free(outcome->out[i]);
}

enum way {
        ALONE,
        SHARED,
        GIVEN_UP, /* for lack of memory */
};

static int serve_part(struct codec_tools *tools, const struct parts *parts, uint32_t i, enum way way,
                      struct codec_input *input, struct outcome *outcome) {
        const struct codec *codec = parts->codecs[i];
        struct codec_opened opened;
        size_t held;
        int r;

        input->seed = parts->sharers[i].seed;
        if (way != ALONE) {
                input->sharers = &parts->sharers[i + 1];
                input->n_sharers = parts->n - i - 1;
        }
        r = codec_open(codec, tools, input, &opened, &outcome->why);
        if (r == 0 && opened.alone_bytes > 0 && way == GIVEN_UP)
                codec_decode_alone(tools);
        if (r == 0) {
                ck_assert_uint_le(opened.n_bytes, PART_MAX);
                outcome->n_bytes[i] = opened.n_bytes;
                outcome->out[i] = calloc(1, opened.n_bytes + 1);
                codec_tools_trim(tools);
                held = codec_tools_bytes(tools);
                r = codec_render(codec, tools, input, outcome->out[i], &outcome->why);
                /* Scratch grows in steps, and tables of a decoder that takes over are not in what is said. */
                ck_assert_uint_le(codec_tools_bytes(tools), held + opened.need_bytes + (1u << 20));
        }
        codec_close(tools);
        return r;
}

static void serve(const struct parts *parts, enum decode_jpeg jpeg, const uint8_t *bytes, size_t n_bytes, enum way way,
                  uint64_t sample, struct outcome *ret_outcome) {
        struct codec_input input = { .bytes = bytes, .n_bytes = n_bytes, .source = &SOURCE, .sample = sample };
        struct codec_tools *tools = NULL;

        *ret_outcome = (struct outcome){ .r = codec_tools_new(&LIMITS, jpeg, &tools, NULL) };
        codec_tools_begin_sample(tools);
        while (ret_outcome->r == 0 && ret_outcome->n_served < parts->n) {
                ret_outcome->r = serve_part(tools, parts, ret_outcome->n_served, way, &input, ret_outcome);
                ret_outcome->n_served += ret_outcome->r == 0;
        }
        ret_outcome->counts = codec_tools_take_counts(tools);
        codec_tools_free(tools);
}

static uint64_t n_decoded(const struct outcome *outcome) {
        uint64_t n = 0;

        for (unsigned i = 0; i < N_DECODED_BY; i++)
                n += outcome->counts.n_decoded[i];
        return n;
}

/* Returns how many pictures were cut from one that was decoded for another as well. */
static uint64_t check(const struct parts *parts, enum decode_jpeg jpeg, const uint8_t *bytes, size_t n_bytes,
                      uint64_t sample, const char *name) {
        struct outcome alone, other;
        uint64_t n_shared = 0;

        serve(parts, jpeg, bytes, n_bytes, ALONE, sample, &alone);
        ck_assert_uint_eq(alone.counts.n_shared, 0);
        for (enum way way = SHARED; way <= GIVEN_UP; way++) {
                serve(parts, jpeg, bytes, n_bytes, way, sample, &other);
                ck_assert_msg(other.r == alone.r && other.n_served == alone.n_served,
                              "%s, way %u: %d at %u: %s; %d at %u: %s", name, way, other.r, other.n_served,
                              other.why.text, alone.r, alone.n_served, alone.why.text);
                if (alone.r < 0)
                        ck_assert_str_eq(other.why.text, alone.why.text);
                for (uint32_t i = 0; i < alone.n_served; i++)
                        ck_assert_msg(other.n_bytes[i] == alone.n_bytes[i] &&
                                              memcmp(other.out[i], alone.out[i], alone.n_bytes[i]) == 0,
                                      "%s: part %u, way %u", name, i, way);
                ck_assert_uint_eq(n_decoded(&other) + other.counts.n_shared, n_decoded(&alone));
                if (way == SHARED)
                        n_shared = other.counts.n_shared;
                else
                        ck_assert_uint_eq(other.counts.n_shared, 0);
                outcome_fini(&other);
        }
        outcome_fini(&alone);
        return n_shared;
}

/* DINO's crops, smaller; and what needs other parts of the picture than a crop. */
static const struct {
        struct {
                const char *steps;
                uint32_t n_views;
        } of[3];
} PARTS[] = {
        { { { "random_resized_crop(24, scale=0.4:1, interpolation=bicubic) hflip(0.5)", 2 },
            { "random_resized_crop(10, scale=0.05:0.4) hflip(0.5) to(float32) layout(nchw)", 8 } } },
        { { { "decode", 1 }, { "resize(9:11) vflip(1)", 1 }, { "center_crop(5) random_rotation(30)", 2 } } },
        { { { "decode(exif=transpose)", 1 },
            { "decode(exif=transpose) random_resized_crop(16)", 3 },
            { "random_resized_crop(16, scale=0.5:1)", 3 } } },
        { { { "decode(mode=L) random_resized_crop(16)", 4 } } },
        { { { "random_crop(7, pad_if_needed=true) color_jitter(0.4)", 3 } } },
        { { { "random_crop(30)", 3 } } }, /* which small pictures do not have */
};

static void parts_init(struct parts *parts, size_t idx) {
        parts->n = 0;
        for (size_t i = 0; i < ARRAY_SIZE(PARTS[idx].of) && PARTS[idx].of[i].steps; i++)
                add_parts(parts, PARTS[idx].of[i].steps, PARTS[idx].of[i].n_views);
}

START_TEST(crops_of_a_jpeg_of_any_layout_and_size_are_what_each_is_alone) {
        uint64_t n_shared = 0;

        for (size_t p = 0; p < ARRAY_SIZE(PARTS); p++) {
                struct parts parts = { 0 };

                parts_init(&parts, p);
                for (size_t l = 0; l < N_JPEG_LAYOUTS; l++)
                        for (uint32_t n = (uint32_t)(p + l) % suite_stride(); n < 6; n += suite_stride()) {
                                uint32_t width = n == 0   ? 1
                                                 : n == 1 ? 8
                                                          : 11 + 31 * n,
                                         height = n == 0 ? 3 : 7 + 23 * n;
                                size_t n_bytes;
                                uint8_t *bytes = jpeg_make(&JPEG_LAYOUTS[l], width, height, n, &n_bytes);

                                n_shared += check(&parts, (enum decode_jpeg)_i, bytes, n_bytes, n,
                                                  JPEG_LAYOUTS[l].name);
                                free(bytes);
                        }
                parts_fini(&parts);
        }
        ck_assert_uint_gt(n_shared, 1000 / suite_stride());
}
END_TEST

/* Damaged files as well: an error comes from the same part, with the same text. */
START_TEST(crops_of_a_file_of_any_format_are_what_each_is_alone) {
        struct vectors vectors;
        uint64_t n_shared = 0;

        for (size_t p = 0; p < ARRAY_SIZE(PARTS); p++) {
                struct parts parts = { 0 };

                parts_init(&parts, p);
                vectors_open(&vectors, "pictures/expected.jsonl");
                for (uint64_t n = 0; vectors_next(&vectors); n++) {
                        const char *name = vector_string(vectors.line, "file");
                        char path[256];
                        size_t n_bytes;
                        uint8_t *bytes;

                        if ((n + p) % suite_stride() != 0)
                                continue;
                        snprintf(path, sizeof(path), "tests/vectors/pictures/%s", name);
                        bytes = read_whole_file(path, &n_bytes);
                        n_shared += check(&parts, DECODE_JPEG_AUTO, bytes, n_bytes, n, name);
                        free(bytes);
                }
                parts_fini(&parts);
        }
        ck_assert_uint_gt(n_shared, 500 / suite_stride());
}
END_TEST

/* A byte is changed: whichever way decodes it, the same parts fail. */
START_TEST(damage_is_seen_by_the_parts_that_see_it_alone) {
        static const char *const names[] = { "sampling_2.jpg",  "progressive.jpg", "rgb_8.png",
                                             "strips_of_5.tif", "lossy.webp",      "plain.gif" };
        uint64_t n_shared = 0;
        struct parts parts = { 0 };

        parts_init(&parts, 0);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char path[256];
                size_t n_bytes;
                uint8_t *bytes;

                snprintf(path, sizeof(path), "tests/vectors/pictures/%s", names[i]);
                bytes = read_whole_file(path, &n_bytes);
                for (size_t k = i % suite_stride(); k < 60; k += suite_stride()) {
                        size_t at = n_bytes / 4 + (n_bytes - n_bytes / 4) * k / 60;
                        uint8_t kept = bytes[at];

                        bytes[at] = (uint8_t)(kept ^ (k % 2 ? 0xff : 0x10));
                        n_shared += check(&parts, DECODE_JPEG_AUTO, bytes, n_bytes, k, names[i]);
                        bytes[at] = kept;
                }
                free(bytes);
        }
        parts_fini(&parts);
        ck_assert_uint_gt(n_shared, 100 / suite_stride());
}
END_TEST

/* A picture of the next sample may have the same bytes' address. */
START_TEST(a_shared_picture_ends_with_its_sample) {
        struct codec_tools *tools = NULL;
        struct parts parts = { 0 };
        struct codec_opened opened;
        struct outcome outcome = { 0 };
        struct codec_input input = { .source = &SOURCE };
        size_t n_bytes, n_held;
        uint8_t *bytes = jpeg_make(&JPEG_LAYOUTS[2], 90, 70, 1, &n_bytes);

        input.bytes = bytes;
        input.n_bytes = n_bytes;
        add_parts(&parts, "resize(20:20)", 2);
        ck_assert_int_eq(codec_tools_new(&LIMITS, DECODE_JPEG_AUTO, &tools, NULL), 0);
        ck_assert_int_eq(serve_part(tools, &parts, 0, SHARED, &input, &outcome), 0);
        memset(bytes, 0, n_bytes);
        input.sharers = NULL;
        input.n_sharers = 0;
        ck_assert_int_eq(codec_open(parts.codecs[1], tools, &input, &opened, NULL),
                         0); /* out of memory, not of bytes */
        codec_tools_begin_sample(tools);
        ck_assert_int_eq(codec_open(parts.codecs[1], tools, &input, &opened, NULL), -ENOTSUP);
        n_held = codec_tools_bytes(tools);
        ck_assert_uint_gt(n_held, 90 * 70 * 3);
        codec_tools_trim(tools);
        ck_assert_uint_lt(codec_tools_bytes(tools), n_held);
        codec_tools_free(tools);
        parts_fini(&parts);
        outcome_fini(&outcome);
        free(bytes);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "shared", crops_of_a_jpeg_of_any_layout_and_size_are_what_each_is_alone, 2 },
                { "shared", crops_of_a_file_of_any_format_are_what_each_is_alone, 0 },
                { "shared", damage_is_seen_by_the_parts_that_see_it_alone, 0 },
                { "shared", a_shared_picture_ends_with_its_sample, 0 },
        };

        return suite_run("shared", rows, ARRAY_SIZE(rows));
}
