/* Masks of instances move as torchvision moves them: tests/vectors/masks, made by torchvision. */
#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/codec.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

static struct codec_tools *tools;

static void begin(void) {
        const struct decode_limits limits = { .max_pixels = 1 << 20, .max_scans = 100 };
        struct why why;

        ck_assert_msg(codec_tools_new(&limits, DECODE_JPEG_AUTO, &tools, &why) == 0, "%s", why.text);
}

static void end(void) {
        codec_tools_free(tools);
}

/* ---- stacks of planes ------------------------------------------------------------------------------------------ */

/* Serves `input` as the only field of a source. Returns its bytes, which the caller frees; NULL with `why`. */
static uint8_t *serve(const struct schema_field *field, const char *steps, struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        static struct source source;
        struct codec *codec = NULL;
        uint8_t *out = NULL;
        int r;

        source.schema = (struct schema){ .n_fields = 1, .fields = { *field } };
        input->source = &source;
        r = codec_new(&source, 0, 0, steps, &codec, why);
        if (r == 0)
                r = codec_open(codec, tools, input, ret_opened, why);
        if (r == 0) {
                out = malloc(ret_opened->n_bytes + 1);
                r = codec_render(codec, tools, input, out, why);
                codec_close(codec, tools);
        }
        codec_free(codec);
        if (r < 0) {
                free(out);
                return NULL;
        }
        return out;
}

static const struct schema_field PLANES = {
        .name = "masks",
        .kind = FIELD_VALUE,
        .is_stored = true,
        .dtype = DLP_DTYPE_UINT8,
        .n_dims = 3,
};

START_TEST(planes_have_the_bytes_of_torchvisions_masks) {
        static uint8_t bytes[8 * 80 * 80];
        unsigned n_stacks = 0;
        struct vectors vectors;

        begin();
        vectors_open(&vectors, "masks/planes.jsonl");
        while (vectors_next(&vectors)) {
                struct schema_field field = PLANES;
                struct codec_kept kept = { 0 };
                struct codec_opened opened;
                struct codec_input input = { .bytes = bytes, .kept = &kept };
                const cJSON *shape;
                struct why why = { 0 };
                uint8_t *out;
                size_t n;

                if (!vectors_kind(&vectors, "planes"))
                        continue;
                input.lead_height = (uint32_t)vector_int(vectors.line, "height");
                input.lead_width = (uint32_t)vector_int(vectors.line, "width");
                n = (size_t)vector_int(vectors.line, "n");
                input.n_bytes = n * input.lead_height * input.lead_width;
                for (uint64_t i = 0; i < input.n_bytes; i++)
                        bytes[i] = (uint8_t)((i * 2654435761u + n) >> 16);
                field.shape[0] = -1;
                field.shape[1] = input.lead_height;
                field.shape[2] = input.lead_width;
                out = serve(&field, vector_string(vectors.line, "steps"), &input, &opened, &why);
                ck_assert_msg(out, "line %u: %s", vectors.number, why.text);
                shape = vector_array(vectors.line, "shape", NULL);
                for (int i = 0; i < 3; i++)
                        ck_assert_int_eq(opened.shape[i], vector_item(shape, (size_t)i));
                ck_assert_msg(fnv1a(out, opened.n_bytes) == vector_hex(vector_string(vectors.line, "hash")),
                              "line %u: %s", vectors.number, vector_string(vectors.line, "steps"));
                free(out);
                n_stacks++;
        }
        ck_assert_uint_ge(n_stacks, 150);
        end();
}
END_TEST

START_TEST(planes_leave_with_their_boxes) {
        struct schema_field field = PLANES;
        struct codec_kept kept = { .is_known = true, .n_boxes = 5, .n_kept = 2, .bits = { 0x12 } };
        uint8_t bytes[5] = { 10, 11, 12, 13, 14 };
        struct codec_input input = { .bytes = bytes, .n_bytes = 5, .kept = &kept, .lead_width = 1, .lead_height = 1 };
        struct codec_opened opened;
        struct why why = { 0 };
        uint8_t *out;

        begin();
        field.shape[0] = -1;
        field.shape[1] = field.shape[2] = 1;
        out = serve(&field, "hflip(1) sanitize", &input, &opened, &why);
        ck_assert_msg(out, "%s", why.text);
        ck_assert_int_eq(opened.shape[0], 2);
        ck_assert_uint_eq(opened.n_bytes, 2);
        ck_assert_int_eq(out[0], 11);
        ck_assert_int_eq(out[1], 14);
        free(out);
        kept.n_boxes = 6;
        ck_assert_ptr_null(serve(&field, "hflip(1) sanitize", &input, &opened, &why));
        ck_assert_msg(strstr(why.text, "5 masks for 6 boxes"), "%s", why.text);
        kept.is_known = false; /* the sample has no boxes */
        out = serve(&field, "hflip(1) sanitize", &input, &opened, &why);
        ck_assert_int_eq(opened.shape[0], 5);
        free(out);
        end();
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "planes", planes_have_the_bytes_of_torchvisions_masks, 0 },
                { "planes", planes_leave_with_their_boxes, 0 },
        };

        return suite_run("masks", rows, sizeof(rows) / sizeof(rows[0]));
}
