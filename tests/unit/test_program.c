/* The text of a pipeline, bound to the fields of a dataset. */

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/codec/codec_program.h"
#include "daemon/codec/steps/python_step.h"
#include "tests/support/suite.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Programs ask a source for nothing but its fields. */
static const struct source PICTURES = {
        .schema = { 2,
                    { { .name = "image", .kind = FIELD_PICTURE, .is_stored = true },
                      { .name = "label", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 } } },
};
static const struct source PAIRS = {
        .schema = { 5,
                    { { .name = "left", .kind = FIELD_PICTURE, .is_stored = true },
                      { .name = "right", .kind = FIELD_PICTURE, .is_stored = true },
                      { .name = "seg.png", .kind = FIELD_BYTES, .is_stored = true },
                      { .name = "label", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 },
                      { .name = "weight", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_FLOAT32 } } },
};
static const struct source BYTES = {
        .schema = { 2,
                    { { .name = "id", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 },
                      { .name = "blob", .kind = FIELD_BYTES, .is_stored = true } } },
};

static const struct source MASKS = {
        .schema = { 5,
                    { { .name = "seg.png", .kind = FIELD_PICTURE, .is_stored = true },
                      { .name = "jpg", .kind = FIELD_PICTURE, .is_stored = true },
                      { .name = "left.mask", .kind = FIELD_PICTURE, .is_stored = true },
                      { .name = "unmasked", .kind = FIELD_PICTURE, .is_stored = true },
                      { .name = "masks", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 } } },
};

static const struct source STEPS = {
        /* fields that are called like steps */
        .schema = { 3,
                    { { .name = "jpg", .kind = FIELD_PICTURE, .is_stored = true },
                      { .name = "raw", .kind = FIELD_BYTES, .is_stored = true },
                      { .name = "hflip", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 } } },
};
static const struct source ARRAYS = {
        .schema = { 2,
                    { { .name = "raw", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64, .is_stored = true },
                      { .name = "label", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64, .is_stored = true } } },
};

static const struct source BOXES = {
        .schema = { 4,
                    { { .name = "labels", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64, .n_dims = 1, .shape = { -1 } },
                      { .name = "boxes",
                        .kind = FIELD_VALUE,
                        .dtype = DLP_DTYPE_INT64,
                        .n_dims = 2,
                        .shape = { 2, 4 } },
                      { .name = "more",
                        .kind = FIELD_VALUE,
                        .dtype = DLP_DTYPE_FLOAT32,
                        .n_dims = 2,
                        .shape = { -1, 4 } },
                      { .name = "image", .kind = FIELD_PICTURE, .is_stored = true } } },
};

static const struct source PADDED = {
        .schema = { 4,
                    { { .name = "tokens", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64, .n_dims = 1, .shape = { -1 } },
                      { .name = "tokens_mask", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 },
                      { .name = "tokens_labels", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 },
                      { .name = "a_name_of_thirty_characters_xx",
                        .kind = FIELD_VALUE,
                        .dtype = DLP_DTYPE_INT64,
                        .n_dims = 1,
                        .shape = { -1 } } } },
};

/* Fields that are called like views of others. */
static const struct source VIEWED = {
        .schema = { 5,
                    { { .name = "x", .kind = FIELD_PICTURE, .is_stored = true },
                      { .name = "x_2", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 },
                      { .name = "x_3", .kind = FIELD_BYTES, .is_stored = true },
                      { .name = "x_2_mask", .kind = FIELD_BYTES, .is_stored = true },
                      { .name = "a_name_of_thirty_characters_xx", .kind = FIELD_BYTES, .is_stored = true } } },
};

/* Its fields as "name name", or why there is none. */
static const char *fields_of(const struct source *source, const char *text, char *ret_text, size_t size) {
        static char names[512];
        struct program *program = NULL;
        struct why why;
        size_t n = 0;

        if (program_parse(text, source, NULL, &program, &why) < 0) {
                snprintf(names, sizeof(names), "%.511s", why.text);
                return names;
        }
        names[0] = '\0';
        for (uint32_t i = 0; i < program_n_fields(program); i++)
                n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? " " : "",
                                      codec_name(program_codec(program, i)));
        snprintf(ret_text, size, "%s", program_text(program));
        program_free(program);
        return names;
}

START_TEST(a_text_without_names_is_for_the_one_picture_and_values_come_with_it) {
        char text[512];

        ck_assert_str_eq(fields_of(&PICTURES, "center_crop(8)", text, sizeof(text)), "image label");
        ck_assert_str_eq(text, "center_crop(8)");
        ck_assert_str_eq(fields_of(&PICTURES, "raw", text, sizeof(text)), "image label");
        ck_assert_str_eq(fields_of(&BYTES, "raw", text, sizeof(text)), "blob id");
}
END_TEST

START_TEST(only_fields_that_are_named_are_delivered_in_the_sequence_of_the_text) {
        char text[512];

        ck_assert_str_eq(fields_of(&PICTURES, "image: center_crop(8)", text, sizeof(text)), "image");
        ck_assert_str_eq(text, "image: center_crop(8)");
        ck_assert_str_eq(fields_of(&PICTURES, "label", text, sizeof(text)), "label");
        ck_assert_str_eq(fields_of(&PAIRS, " label ;left , right:hflip(0.5) ; seg.png", text, sizeof(text)),
                         "label left right seg.png");
        ck_assert_str_eq(text, "label; left, right: hflip(0.5); seg.png");
        ck_assert_str_eq(fields_of(&PAIRS, "weight, label", text, sizeof(text)), "weight label");
        ck_assert_str_eq(fields_of(&PICTURES, "image: random_resized_crop(8, scale=0.08:1); label", text, sizeof(text)),
                         "image label");
}
END_TEST

START_TEST(a_text_is_read_as_fingers_type_it) {
        char text[512];

        fields_of(&PICTURES, "image: Resize([8, 9]), ToTensor(); label: to(half)", text, sizeof(text));
        ck_assert_str_eq(text,
                         "image: resize(8:9, interpolation=bilinear) to(float32) layout(nchw); label: to(float16)");
        fields_of(&PADDED, "tokens: to(long) pad(value=0, to=[8,], side=\"Left\", truncate=True)", text, sizeof(text));
        ck_assert_str_eq(text, "tokens: to(int64) pad(value=0, multiple=1, to=8, side=left, truncate=true)");
        ck_assert_ptr_nonnull(strstr(fields_of(&PICTURES, "image; lable", text, sizeof(text)),
                                     "has no field \"lable\" (did you mean \"label\"?); its fields are image, label"));
        fields_of(&BOXES, "image, boxes: T.RandomHorizontalFlip(0.5)", text, sizeof(text));
        ck_assert_str_eq(text, "image, boxes: hflip(0.5)");
        ck_assert_ptr_nonnull(strstr(fields_of(&PADDED, "tokens: pad(valeu=1)", text, sizeof(text)),
                                     "no argument \"valeu\" (did you mean \"value\"?)"));
        ck_assert_ptr_nonnull(strstr(fields_of(&PADDED, "tokens: pad(side=leftt)", text, sizeof(text)),
                                     "\"leftt\" is not allowed (did you mean \"left\"?); expected right or left"));
}
END_TEST

/* Who writes the text that he was shown gets the same. */
START_TEST(the_normal_text_means_itself) {
        const char *const texts[] = { "center_crop(8) hflip", "label; image: resize(9)", "image:raw;label", "image" };
        char text[512], again[512];

        for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
                char fields[512];

                snprintf(fields, sizeof(fields), "%s", fields_of(&PICTURES, texts[i], text, sizeof(text)));
                ck_assert_str_eq(fields_of(&PICTURES, text, again, sizeof(again)), fields);
                ck_assert_str_eq(again, text);
        }
}
END_TEST

START_TEST(what_is_wrong_is_named_with_its_column_in_the_whole_text) {
        static const struct {
                const struct source *source;
                const char *text, *words[3];
        } rows[] = {
                { &PICTURES, "", { "empty" } },
                { &PICTURES, "image: center_crop(8); caption", { "column 24", "\"caption\"", "image, label" } },
                { &PICTURES, "image: hflip(2)", { "column 14" } },
                { &PICTURES, "label; image: hflp(0.5)", { "column 15", "\"hflp\"" } },
                { &PICTURES, "image: center_crop(8); image: raw", { "image", "twice" } },
                { &PICTURES, "image, image: raw", { "image", "twice" } },
                { &PICTURES, "image: ; label", { "column 7", "expected steps" } },
                { &PICTURES, "; label", { "column 1", "name of a field" } },
                { &PICTURES, ": raw", { "column 1", "name of a field" } },
                { &PICTURES, "image label", { "column 7", "\"l\"" } },
                { &PICTURES, "image, : raw", { "column 8", "name of a field" } },
                { &PICTURES, "label: hflip(0.5)", { "label", "value of its own" } },
                { &PICTURES, "imago: raw", { "column 1", "\"imago\"", "image, label" } },
                { &PAIRS, "hflip(0.5)", { "several", "left, right, seg.png" } },
                { &PICTURES, "image: center_crop(8) raw", { "column 23" } },
                { &PICTURES, "sanitize", { "its part names none" } },
                { &BOXES, "labels: hflip(1)", { "labels is an array", "the steps are for pictures" } },
                { &BOXES, "image, labels: hflip(1)", { "labels is an array" } },
                { &BOXES, "image; boxes: hflip(1)", { "boxes moves with a picture", "names none" } },
                { &BOXES,
                  "image, boxes: decode(exif=transpose) hflip(1)",
                  { "would turn the picture alone", "leave exif out" } },
                { &BOXES, "image, labels: sanitize", { "its part names none" } },
                { &BOXES, "image, boxes, more: sanitize", { "several fields of them" } },
                { &BOXES, "labels: pad ragged", { "column 13", "\"ragged\" after pad" } },
                { &BOXES, "image: resize(8) stack hflip", { "column 24", "\"hflip\" after stack" } },
                { &BOXES, "image; labels: pad(to=x)", { "column 23", "longest" } },
                { &PADDED, "tokens: pad; tokens_mask", { "column 9", "tokens_mask would come with field tokens" } },
                { &PADDED, "tokens: pad(labels=same); tokens_labels", { "tokens_labels would come" } },
                { &PADDED, "a_name_of_thirty_characters_xx: pad", { "\"a_name_of_thirty_characters_xx_mask\"", "31" } },
        };
        char text[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                const char *said = fields_of(rows[i].source, rows[i].text, text, sizeof(text));

                for (size_t k = 0; k < ARRAY_LENGTH(rows[i].words) && rows[i].words[k]; k++)
                        ck_assert_msg(strstr(said, rows[i].words[k]) != NULL, "\"%s\": %s", rows[i].text, said);
        }
}
END_TEST

START_TEST(a_word_that_is_a_step_and_a_field_is_never_guessed) {
        static const struct {
                const struct source *source;
                const char *text, *fields;
        } rows[] = {
                { &STEPS, "raw()", "jpg hflip" },
                { &STEPS, "raw: raw", "raw" },
                { &STEPS, "raw;", "raw" },
                { &STEPS, "raw, jpg ; ", "raw jpg" },
                { &STEPS, "hflip;", "hflip" },
                { &STEPS, "raw, jpg", "raw jpg" },
                { &STEPS, "raw ; hflip", "raw hflip" },
                { &STEPS, "hflip(0.5)", "jpg hflip" },
                { &STEPS, "hflip center_crop(8)", "jpg hflip" },
                { &STEPS, "jpg", "jpg" },
                { &ARRAYS, "raw()", "raw label" },
                { &ARRAYS, "raw, label", "raw label" },
        };
        char text[512], again[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                ck_assert_str_eq(fields_of(rows[i].source, rows[i].text, text, sizeof(text)), rows[i].fields);
                ck_assert_str_eq(fields_of(rows[i].source, text, again, sizeof(again)), rows[i].fields);
                ck_assert_str_eq(again, text);
        }
        ck_assert_str_eq(fields_of(&STEPS, " raw ", text, sizeof(text)),
                         "pipeline, column 2: \"raw\" is a step and also a field of this dataset; write \"raw()\" for "
                         "the step, and \"raw;\" for the field");
        ck_assert_ptr_nonnull(strstr(fields_of(&STEPS, "hflip", text, sizeof(text)), "a step and also a field"));
        ck_assert_ptr_nonnull(strstr(fields_of(&ARRAYS, "raw", text, sizeof(text)), "a step and also a field"));
}
END_TEST

START_TEST(a_picture_is_served_before_its_boxes_and_boxes_before_what_leaves_with_them) {
        static const struct {
                const char *text;
                uint32_t serving[4];
        } rows[] = {
                { "labels, boxes, image: sanitize", { 2, 1, 0 } },
                { "labels, more, image, boxes: hflip(1)", { 0, 2, 1, 3 } },
                { "more; labels, boxes, image: hflip(1) sanitize", { 0, 3, 2, 1 } },
                { "image; labels; boxes", { 0, 1, 2 } },
        };

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                struct program *program = NULL;
                struct why why;

                ck_assert_int_eq(program_parse(rows[i].text, &BOXES, NULL, &program, &why), 0);
                for (uint32_t k = 0; k < program_n_fields(program); k++)
                        ck_assert_msg(program_serving(program, k) == rows[i].serving[k], "\"%s\": %u", rows[i].text, k);
                program_free(program);
        }
}
END_TEST

START_TEST(a_picture_that_is_called_a_mask_is_one_beside_another_picture) {
        static const struct {
                const char *text, *masks; /* a letter a field: m is a mask */
        } rows[] = {
                { "jpg, seg.png: hflip", "-m" },        { "seg.png, left.mask, jpg: hflip", "mm-" },
                { "jpg: hflip; seg.png: hflip", "--" }, { "jpg, unmasked: hflip", "--" },
                { "seg.png, left.mask: hflip", "--" },  { "jpg; seg.png", "--" },
        };
        char text[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                struct program *program = NULL;
                struct why why;

                ck_assert_int_eq(program_parse(rows[i].text, &MASKS, NULL, &program, &why), 0);
                for (uint32_t k = 0; k < program_n_fields(program); k++)
                        ck_assert_msg(codec_is_mask(program_codec(program, k)) == (rows[i].masks[k] == 'm'),
                                      "\"%s\": %u", rows[i].text, k);
                program_free(program);
        }
        ck_assert_ptr_nonnull(
                strstr(fields_of(&MASKS, "jpg, unmasked, seg.png: hflip", text, sizeof(text)), "names several"));
}
END_TEST

START_TEST(a_collation_is_printed_with_its_part_and_changes_no_draws) {
        static const struct {
                const struct source *source;
                const char *text, *normal;
        } rows[] = {
                { &BOXES, "labels: stack; image: hflip", "labels: stack; image: hflip(0.5)" },
                { &BOXES, "image, boxes, labels: resize(short=8, max=9) pad(multiple=4)",
                  "image, boxes, labels: resize(8, interpolation=bilinear, max=9) pad(multiple=4, to=longest, "
                  "side=right, truncate=false)" },
                { &BOXES, "labels, more: pad; boxes",
                  "labels, more: pad(multiple=1, to=longest, side=right, truncate=false); boxes" },
                { &PICTURES, " hflip   stack ", "hflip(0.5) stack" },
                { &BYTES, "raw stack", "raw stack" },
                { &BYTES, "stack", "stack" },
                { &PADDED, "tokens: ragged; tokens_mask", "tokens: ragged(joined=false); tokens_mask" },
        };
        char text[512], again[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                const char *fields = fields_of(rows[i].source, rows[i].text, text, sizeof(text));

                ck_assert_msg(strchr(fields, ',') == NULL, "\"%s\": %s", rows[i].text, fields);
                ck_assert_str_eq(text, rows[i].normal);
                fields_of(rows[i].source, text, again, sizeof(again));
                ck_assert_str_eq(again, text);
        }
}
END_TEST

START_TEST(a_function_is_printed_with_its_part_and_says_the_form_of_its_field) {
        static const struct {
                const struct source *source;
                const char *text, *normal;
                enum dlp_dtype dtype;
                uint32_t n_dims;
                uint64_t input_bytes; /* 0: it changes the field in place */
        } rows[] = {
                { &PICTURES, "center_crop(8)  python( my ) ", "center_crop(8) python(my)", DLP_DTYPE_UINT8, 3, 0 },
                { &PICTURES, "image: center_crop(8) python(my, shape=[8, 8, 3]) stack; label",
                  "image: center_crop(8) python(my, shape=8:8:3) stack; label", DLP_DTYPE_UINT8, 3, 0 },
                { &PICTURES, "center_crop(8) python(my, dtype=torch.float) views(2)",
                  "center_crop(8) python(my, dtype=float32) views(2)", DLP_DTYPE_FLOAT32, 3, 192 },
                { &PICTURES, "center_crop(8) python(my, shape=5, dtype=int64)",
                  "center_crop(8) python(my, dtype=int64, shape=5)", DLP_DTYPE_INT64, 1, 192 },
                { &PICTURES, "label: python(my); image: center_crop(8)", "label: python(my); image: center_crop(8)",
                  DLP_DTYPE_INT64, 0, 0 },
                { &PICTURES, "decode(max_pixels=100) python(my, shape=4)", "decode(max_pixels=100) python(my, shape=4)",
                  DLP_DTYPE_UINT8, 1, 300 },
        };
        char text[512], again[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                const struct codec_terms terms = { .source = rows[i].source, .batch_size = 2, .max_pixels = 1000 };
                struct program *program;
                struct field_form form;
                struct why why;

                fields_of(rows[i].source, rows[i].text, text, sizeof(text));
                ck_assert_str_eq(text, rows[i].normal);
                fields_of(rows[i].source, text, again, sizeof(again));
                ck_assert_str_eq(again, text);
                ck_assert_int_eq(program_parse(text, rows[i].source, NULL, &program, &why), 0);
                ck_assert_int_eq(program_form(program, 0, &terms, &form, &why), 0);
                ck_assert_int_eq(form.dtype, rows[i].dtype);
                ck_assert_uint_eq(form.n_dims, rows[i].n_dims);
                ck_assert_uint_eq(form.input.n_bytes, rows[i].input_bytes);
                ck_assert_int_eq(form.how, COLLATE_STACK);
                program_free(program);
        }
}
END_TEST

START_TEST(steps_after_a_function_make_the_field_of_what_it_delivers) {
        static const struct {
                const char *text, *normal;
                enum dlp_dtype dtype;
                int64_t shape[3];
                uint64_t input_bytes, result_bytes;
        } rows[] = {
                { "center_crop(8) python(f)  to(torch.float) ",
                  "center_crop(8) python(f) to(float32)",
                  DLP_DTYPE_FLOAT32,
                  { 8, 8, 3 },
                  0,
                  192 },
                { "image: center_crop(8) python(f, shape=6:4:3) layout(nchw); label",
                  "image: center_crop(8) python(f, shape=6:4:3) layout(nchw); label",
                  DLP_DTYPE_UINT8,
                  { 3, 6, 4 },
                  192,
                  72 },
                { "image, label: center_crop(8) python(f) center_crop(4:2) mixup(alpha=1.0, num_classes=9)",
                  NULL,
                  DLP_DTYPE_UINT8,
                  { 4, 2, 3 },
                  0,
                  192 },
                { "decode(mode=L) center_crop(8) python(f) hflip views(2)",
                  "decode(mode=L) center_crop(8) python(f) hflip(0.5) views(2)",
                  DLP_DTYPE_UINT8,
                  { 8, 8, 1 },
                  0,
                  64 },
                { "center_crop(8) python(f) stack",
                  "center_crop(8) python(f) stack",
                  DLP_DTYPE_UINT8,
                  { 8, 8, 3 },
                  0,
                  0 },
        };
        const struct codec_terms terms = { .source = &PICTURES, .batch_size = 2, .max_pixels = 1000 };
        char text[512], again[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                struct program *program;
                struct field_form form;
                struct why why;

                fields_of(&PICTURES, rows[i].text, text, sizeof(text));
                if (rows[i].normal)
                        ck_assert_str_eq(text, rows[i].normal);
                fields_of(&PICTURES, text, again, sizeof(again));
                ck_assert_str_eq(again, text);
                ck_assert_int_eq(program_parse(text, &PICTURES, NULL, &program, &why), 0);
                ck_assert_int_eq(program_form(program, 0, &terms, &form, &why), 0);
                ck_assert_int_eq(form.dtype, rows[i].dtype);
                ck_assert_uint_eq(form.n_dims, 3);
                ck_assert_mem_eq(form.shape, rows[i].shape, sizeof(rows[i].shape));
                ck_assert_uint_eq(form.input.n_bytes, rows[i].input_bytes);
                ck_assert_uint_eq(form.result.n_bytes, rows[i].result_bytes);
                program_free(program);
        }
}
END_TEST

START_TEST(a_function_gets_all_fields_of_its_part_in_one_call) {
        static const struct {
                const struct source *source;
                const char *text, *fields, *normal, *parameters, *forms;
        } rows[] = {
                { &PICTURES, "image, label: center_crop(8) python(f)", "image label",
                  "image, label: center_crop(8) python(f)", "image+label", "uint8:8:8:3 int64" },
                { &PICTURES, "label, image: center_crop(8) python(f, label = torch.float32, image=[3, 8, 8])",
                  "label image", "label, image: center_crop(8) python(f, label=float32, image=[3:8:8])", "label+image",
                  "float32 uint8:3:8:8" },
                { &PICTURES, "image, y=label: center_crop(8) python(f, image=float32[3:8:8], y=int32[ 2, 5 ]) views(2)",
                  "image y image_2 y_2",
                  "image, y=label: center_crop(8) python(f, image=float32[3:8:8], y=int32[2:5]) views(2)",
                  "image+y image+y", "float32:3:8:8 int32:2:5 float32:3:8:8 int32:2:5" },
                { &PICTURES, "a=label, b=label: python(f, a=uint8[4], b=int64[])", "a b",
                  "a=label, b=label: python(f, a=uint8[4], b=int64[])", "a+b", "uint8:4 int64" },
                { &PICTURES, "image: center_crop(8) python(f, image=float64[])", "image",
                  "image: center_crop(8) python(f, image=float64[])", "image", "float64" },
                { &PICTURES, "image: center_crop(8) python(f, image=float64[5])", "image",
                  "image: center_crop(8) python(f, dtype=float64, shape=5)", "image", "float64:5" },
        };
        char text[512], again[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                const struct codec_terms terms = { .source = rows[i].source, .batch_size = 2, .max_pixels = 1000 };
                char parameters[256] = "", forms[256] = "";
                struct program *program;
                struct why why;
                size_t n_parameters = 0, n_forms = 0;

                ck_assert_str_eq(fields_of(rows[i].source, rows[i].text, text, sizeof(text)), rows[i].fields);
                ck_assert_str_eq(text, rows[i].normal);
                ck_assert_str_eq(fields_of(rows[i].source, text, again, sizeof(again)), rows[i].fields);
                ck_assert_str_eq(again, text);
                ck_assert_int_eq(program_parse(text, rows[i].source, NULL, &program, &why), 0);
                for (uint32_t k = 0; k < program_n_fields(program); k++) {
                        const struct python_step *python = program_python(program, k);
                        struct field_form form;

                        ck_assert_str_eq(python->function, "f");
                        n_parameters += (size_t)snprintf(parameters + n_parameters, sizeof(parameters) - n_parameters,
                                                         "%s%s",
                                                         python->goes_on ? "+"
                                                         : k > 0         ? " "
                                                                         : "",
                                                         python->parameter);
                        ck_assert_int_eq(program_form(program, k, &terms, &form, &why), 0);
                        n_forms += (size_t)snprintf(forms + n_forms, sizeof(forms) - n_forms, "%s%s", k > 0 ? " " : "",
                                                    dlp_dtype_name(form.dtype));
                        for (uint32_t d = 0; d < form.n_dims; d++)
                                n_forms += (size_t)snprintf(forms + n_forms, sizeof(forms) - n_forms, ":%lld",
                                                            (long long)form.shape[d]);
                }
                ck_assert_str_eq(parameters, rows[i].parameters);
                ck_assert_str_eq(forms, rows[i].forms);
                program_free(program);
        }
}
END_TEST

START_TEST(what_a_function_delivers_may_vary_up_to_a_maximum_and_is_collated_then) {
        static const struct {
                const char *text, *normal;
                enum collate_how how;
                uint32_t idx;
                int64_t shape[3];
                uint64_t result_bytes;
                uint32_t padded_dim, n_padded_dims;
        } rows[] = {
                { "label: python(f, dtype=int32, shape=..512)",
                  "label: python(f, dtype=int32, shape=..512)",
                  COLLATE_RAGGED,
                  0,
                  { -1 },
                  2048,
                  0,
                  1 },
                { "label: python(f, dtype=int32, shape=(-1, 4), max=100) pad(value=7)",
                  "label: python(f, dtype=int32, shape=..100:4) pad(value=7, multiple=1, to=longest, side=right, "
                  "truncate=false)",
                  COLLATE_PADDED,
                  0,
                  { -1, 4 },
                  1600,
                  0,
                  1 },
                { "image, label: center_crop(8) python(f, max=5, label=float32[-1, 2]) ragged(joined=true)",
                  "image, label: center_crop(8) python(f, label=float32[..5:2]) ragged(joined=true)",
                  COLLATE_RAGGED,
                  1,
                  { -1, 2 },
                  40,
                  0,
                  1 },
                { "image, label: center_crop(8) python(f, label=text[..9])",
                  "image, label: center_crop(8) python(f, label=text[..9])",
                  COLLATE_RAGGED,
                  1,
                  { -1 },
                  9,
                  0,
                  1 },
                { "image: center_crop(8) python(f, shape=..6:..7:3) pad",
                  "image: center_crop(8) python(f, shape=..6:..7:3) pad(multiple=1, to=longest, side=right, "
                  "truncate=false)",
                  COLLATE_PADDED,
                  0,
                  { -1, -1, 3 },
                  126,
                  0,
                  2 },
                { "center_crop(8) python(f, shape=3:..6)",
                  "center_crop(8) python(f, shape=3:..6)",
                  COLLATE_STACK,
                  0,
                  { 3, -1 },
                  18,
                  1,
                  1 },
        };
        const struct codec_terms terms = { .source = &PICTURES, .batch_size = 2, .max_pixels = 1000 };
        char text[512], again[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                struct program *program;
                struct field_form form;
                struct why why;

                fields_of(&PICTURES, rows[i].text, text, sizeof(text));
                ck_assert_str_eq(text, rows[i].normal);
                fields_of(&PICTURES, text, again, sizeof(again));
                ck_assert_str_eq(again, text);
                ck_assert_int_eq(program_parse(text, &PICTURES, NULL, &program, &why), 0);
                ck_assert_int_eq(program_form(program, rows[i].idx, &terms, &form, &why), 0);
                ck_assert_int_eq(form.how, rows[i].how);
                ck_assert_mem_eq(form.shape, rows[i].shape, form.n_dims * sizeof(*form.shape));
                ck_assert_uint_gt(form.input.n_bytes, 0);
                ck_assert_uint_eq(form.result.n_bytes, rows[i].result_bytes);
                ck_assert_uint_eq(form.max_bytes, rows[i].result_bytes);
                ck_assert_uint_eq(form.padded_dim, rows[i].padded_dim);
                ck_assert_uint_eq(form.n_padded_dims, rows[i].n_padded_dims);
                program_free(program);
        }
}
END_TEST

START_TEST(what_is_said_of_a_function_s_fields_is_of_those_that_its_part_names) {
        static const struct {
                const char *text, *words[3];
        } rows[] = {
                { "image, label: python(f, dtype=int64)",
                  { "column 15: python(f): dtype= and shape= are for a part that names one field",
                    "as in python(my, boxes=float32[100:4])" } },
                { "image, label: python(f, imgae=int64)",
                  { "column 25: python(f): \"imgae\" is not the name of a field of its part",
                    "did you mean \"image\"" } },
                { "image, y=label: python(f, label=int64)", { "\"label\" is not the name of a field" } },
                { "image: python(f, image=int64, dtype=int32)", { "dtype= and shape= are for" } },
                { "image, label: python(f, image=int64, image=int32)",
                  { "column 44", "image of python is given twice" } },
                { "image, label: python(f, image=int64,)", { "expected another argument after \",\"" } },
                { "image, label: python(f, image=int65[3])",
                  { "column 31", "image: \"int65[3]\"", "expected a dtype" } },
                { "image, label: python(f, image=int64[3)",
                  { "column 31", "a dtype, a shape or both, as in float32[3:224:224]" } },
                { "image, label: python(f, image=int64[3:])", { "\"int64[3:]\" is not allowed" } },
                { "image, label: python(f, image=int64[-3])", { "\"int64[-3]\" is not allowed" } },
                { "image, label: python(f, image=int64[1:1:1:1:1:1:1:1])", { "up to 7 dimensions" } },
                { "image, label: python(f, image=int64[99999999999])", { "1 to 2147483647 elements" } },
                { "image, label: python(f, image=int64[3:0])", { "1 to 2147483647 elements" } },
                { "label: python(f, dtype=int64, shape=-1)",
                  { "column 8", "elements it has at most, as in shape=..512" } },
                { "label: python(f, dtype=int64, shape=4, max=5)", { "max= is for a dimension of -1" } },
                { "label: python(f, shape=-1, max=5, max=6)", { "column 39", "max of python is given twice" } },
                { "label: python(f, shape=..0)", { "column 24", "1 to 2147483647 elements" } },
                { "label: python(f, shape=..)", { "..512 is one that varies" } },
                { "label: python(f, shape=..4:5) pack(8)", { "pack fills rows before a sample is read" } },
                { "label: python(f, shape=4) pad", { "column 27", "has one shape and is stacked: leave pad out" } },
                { "image, label: python(f, =int64)", { "column 25", "expected KEY=VALUE" } },
                { "image, label: python(f, image)", { "column 25", "expected KEY=VALUE" } },
                { "image, label: python(f, a_name_that_is_much_too_long_for_a_field=int64)",
                  { "\"a_name_that_is_much_too_long_for\" is not the name of a field of its part" } },
        };
        char text[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                const char *error = fields_of(&PICTURES, rows[i].text, text, sizeof(text));

                for (size_t k = 0; k < ARRAY_LENGTH(rows[i].words) && rows[i].words[k]; k++)
                        ck_assert_msg(strstr(error, rows[i].words[k]), "\"%s\": %s", rows[i].text, error);
        }
}
END_TEST

START_TEST(a_function_may_get_whole_batches_and_then_only_mixing_follows) {
        static const struct {
                const char *text, *normal;
                bool is_whole;
                uint64_t input_bytes; /* of the first field */
        } rows[] = {
                { "center_crop(8) python(f, batch=True)", "center_crop(8) python(f, batch=true)", true, 0 },
                { "center_crop(8) python(f, batch='true', dtype=float32)",
                  "center_crop(8) python(f, dtype=float32, batch=true)", true, 192 },
                { "center_crop(8) python(f, batch = false )", "center_crop(8) python(f)", false, 0 },
                { "image, label: center_crop(8) python(f, batch=true, label=[2]) views(2)",
                  "image, label: center_crop(8) python(f, label=[2], batch=true) views(2)", true, 0 },
                { "image, label: center_crop(8) python(f, batch=true) mixup(alpha=1.0, num_classes=9)",
                  "image, label: center_crop(8) python(f, batch=true) mixup(alpha=1, num_classes=9)", true, 0 },
                { "batch=label: python(f, batch=float32[2], batch=true)",
                  "batch=label: python(f, dtype=float32, shape=2, batch=true)", true, 8 },
                { "batch=label, image: python(f, batch=[2])", "batch=label, image: python(f, batch=[2])", false, 8 },
                { "decode(max_pixels=100) python(f, shape=4, batch=true) stack",
                  "decode(max_pixels=100) python(f, shape=4, batch=true) stack", true, 300 },
        };
        static const struct {
                const char *text, *words[2];
        } wrong[] = {
                { "center_crop(8) python(f, batch=yes)",
                  { "column 32", "batch: \"yes\" is not allowed; expected true or false" } },
                { "center_crop(8) python(f, batch=)", { "column 32", "true or false" } },
                { "center_crop(8) python(f, batch)", { "expected KEY=VALUE" } },
                { "center_crop(8) python(f, batch=true, batch=true)",
                  { "column 44", "batch of python is given twice" } },
                { "center_crop(8) python(f, batch=true) hflip", { "column 38", "only what mixes the batch" } },
                { "center_crop(8) python(f, batch=true) pad", { "its part is stacked: leave pad out", "as a list" } },
                { "image: python(f, batch=true, shape=4) ragged", { "its part is stacked: leave ragged out" } },
                { "python(f, batch=true)", { "has samples of several shapes", "label=int64[]" } },
                { "center_crop(8) python(f, dtype=int32, shape=..9, batch=true)", { "varies from sample to sample" } },
        };
        const struct codec_terms terms = { .source = &PICTURES, .batch_size = 2, .max_pixels = 1000 };
        struct program *program;
        char text[512];
        struct why why;

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                struct field_form form;

                fields_of(&PICTURES, rows[i].text, text, sizeof(text));
                ck_assert_str_eq(text, rows[i].normal);
                ck_assert_int_eq(program_parse(text, &PICTURES, NULL, &program, &why), 0);
                ck_assert_str_eq(program_text(program), text);
                ck_assert_int_eq(program_python(program, 0)->is_whole, rows[i].is_whole);
                ck_assert_int_eq(program_form(program, 0, &terms, &form, &why), 0);
                ck_assert_int_eq(form.is_whole, rows[i].is_whole);
                ck_assert_uint_eq(form.input.n_bytes, rows[i].input_bytes);
                program_free(program);
        }
        for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
                struct field_form form;
                int r = program_parse(wrong[i].text, &PICTURES, NULL, &program, &why);

                if (r == 0) {
                        r = program_form(program, 0, &terms, &form, &why);
                        program_free(program);
                }
                ck_assert_msg(r == -EINVAL, "\"%s\" is taken", wrong[i].text);
                for (size_t k = 0; k < ARRAY_LENGTH(wrong[i].words) && wrong[i].words[k]; k++)
                        ck_assert_msg(strstr(why.text, wrong[i].words[k]), "\"%s\": %s", wrong[i].text, why.text);
        }
}
END_TEST

START_TEST(views_are_fields_of_their_own_after_the_first_of_their_part) {
        static const struct {
                const struct source *source;
                const char *text, *fields, *normal;
        } rows[] = {
                { &PICTURES, "hflip views(2)", "image image_2 label", "hflip(0.5) views(2)" },
                { &PICTURES, "hflip views( n = 3 ) ", "image image_2 image_3 label", "hflip(0.5) views(3)" },
                { &PICTURES, "hflip pad views(2)", "image image_2 label",
                  "hflip(0.5) pad(multiple=1, to=longest, side=right, truncate=false) views(2)" },
                { &PICTURES, "label; image: hflip views(2)", "label image image_2",
                  "label; image: hflip(0.5) views(2)" },
                { &PAIRS, "left, right: hflip views(2); weight", "left right left_2 right_2 weight",
                  "left, right: hflip(0.5) views(2); weight" },
                { &PAIRS, "left: hflip views(2); right: hflip views(3)", "left left_2 right right_2 right_3",
                  "left: hflip(0.5) views(2); right: hflip(0.5) views(3)" },
                { &BOXES, "image, boxes, labels: hflip views(2)", "image boxes labels image_2 boxes_2 labels_2",
                  "image, boxes, labels: hflip(0.5) views(2)" },
        };
        char text[512], again[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                ck_assert_str_eq(fields_of(rows[i].source, rows[i].text, text, sizeof(text)), rows[i].fields);
                ck_assert_str_eq(text, rows[i].normal);
                ck_assert_str_eq(fields_of(rows[i].source, text, again, sizeof(again)), rows[i].fields);
                ck_assert_str_eq(again, text);
        }
}
END_TEST

/* What moves with a picture moves with that of its view. */
START_TEST(each_view_has_masks_and_boxes_that_follow_its_own_picture) {
        struct program *program = NULL;
        struct why why;

        ck_assert_int_eq(program_parse("boxes, image: hflip views(3)", &BOXES, NULL, &program, &why), 0);
        ck_assert_uint_eq(program_n_fields(program), 6);
        for (uint32_t i = 0; i < 6; i++) {
                const struct codec *codec = program_codec(program, i);

                ck_assert_uint_eq(codec_view(codec), i / 2);
                ck_assert_uint_eq(codec_lead(codec), i % 2 ? CODEC_NONE : i + 1);
                ck_assert_uint_eq(codec_field(codec), i % 2 ? 3 : 1);
        }
        for (uint32_t k = 0; k < 6; k++)
                ck_assert_uint_eq(program_serving(program, k), k < 3 ? 2 * k + 1 : 2 * (k - 3));
        program_free(program);
        ck_assert_int_eq(program_parse("jpg, seg.png: hflip views(2)", &MASKS, NULL, &program, &why), 0);
        for (uint32_t i = 0; i < 4; i++)
                ck_assert_int_eq(codec_is_mask(program_codec(program, i)), i % 2);
        program_free(program);
}
END_TEST

START_TEST(views_that_cannot_be_are_refused_with_their_column) {
        static const struct {
                const struct source *source;
                const char *text, *words[3];
        } rows[] = {
                { &PICTURES,
                  "hflip views(0)",
                  { "column 13", "\"0\" is not allowed; expected a whole number from 2 to 16", "leave the step out" } },
                { &PICTURES, "hflip views(1)", { "column 13", "\"1\" is not allowed", "leave the step out" } },
                { &PICTURES, "hflip views(17)", { "column 13", "\"17\" is not allowed", "from 2 to 16" } },
                { &PICTURES, "hflip views(99999999999999999999)", { "column 13", "from 2 to 16" } },
                { &PICTURES, "hflip views(n=)", { "column 15", "from 2 to 16" } },
                { &PICTURES, "hflip views(m=2)", { "column 13", "no argument \"m\"" } },
                { &PICTURES, "hflip views", { "column 7", "needs its n, as in views(2)" } },
                { &PICTURES, "hflip views(2", { "column 14", "text ends" } },
                { &PICTURES, "hflip views(2)x", { "column 15", "\"x\"; expected a blank and the next step" } },
                { &PICTURES, "hflip views(2) !", { "column 16", "\"!\"", "last one of its part" } },
                { &PICTURES, "image: views(2) hflip; label", { "column 17", "\"hflip\" after views", "last step" } },
                { &PICTURES, "label; image: views(2)", { "column 15", "decodes none" } },
                { &PICTURES, "raw views(2)", { "column 5", "decodes none" } },
                { &PICTURES, "image; label: to(int32) views(2)", { "column 25", "field label decodes none" } },
                { &PICTURES, "image: hflip views(2); image", { "image is named twice" } },
                { &BOXES, "image, boxes: hflip sanitize views(2)", { "column 30", "sanitize", "draws=1" } },
                { &VIEWED, "hflip views(2)", { "view 2 of field x would be called x_2", "field x_2 of the dataset" } },
                { &VIEWED, "x: hflip views(3); x_3", { "column 10", "called x_3", "field x_3" } },
                { &VIEWED, "x_3: hflip; x: hflip views(3)", { "called x_3" } },
                { &VIEWED, "x: hflip pad views(2); x_2_mask", { "x_2_mask would come with field x_2" } },
                { &VIEWED,
                  "a_name_of_thirty_characters_xx: hflip views(2)",
                  { "characters_xx_2\"", "31", "column 39" } },
                { &PAIRS, "left, right: hflip views(16); label", { "32 fields", "each view is one" } },
        };
        char text[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                const char *said = fields_of(rows[i].source, rows[i].text, text, sizeof(text));

                for (size_t k = 0; k < ARRAY_LENGTH(rows[i].words) && rows[i].words[k]; k++)
                        ck_assert_msg(strstr(said, rows[i].words[k]) != NULL, "\"%s\": %s", rows[i].text, said);
        }
        ck_assert_str_eq(fields_of(&VIEWED, "x: hflip views(2); x_3", text, sizeof(text)), "x x_2 x_3");
}
END_TEST

/* What each picture leaves to the client, as "image:float16x3 first"; "": no picture leaves anything. */
static const char *left_by(const struct source *source, const char *text) {
        static char left[512];
        char before[512];
        struct program *program = NULL;
        struct picture_form form;
        struct why why;
        size_t n = 0;

        ck_assert_msg(program_parse(text, source, NULL, &program, &why) == 0, "%s: %s", text, why.text);
        snprintf(before, sizeof(before), "%s", program_text(program));
        left[0] = '\0';
        for (uint32_t i = 0; i < program_n_fields(program); i++) {
                const struct codec_terms terms = { .source = source, .batch_size = 4, .max_pixels = 1 << 20 };
                const struct codec *codec = program_codec(program, i);
                struct field_form field = { 0 };

                ck_assert(!codec_left_form(codec, &form));
                if (!program_can_leave_form(program, i))
                        continue;
                program_leave_form(program, i);
                ck_assert(!program_can_leave_form(program, i));
                ck_assert(codec_left_form(codec, &form));
                ck_assert_uint_eq(form.table_bytes, form.n_channels * 256 * dlp_dtype_bytes(form.dtype));
                ck_assert_int_eq(program_form(program, i, &terms, &field, &why), 0);
                ck_assert_uint_eq(field.dtype, DLP_DTYPE_UINT8);
                ck_assert_int_eq(field.shape[2], form.n_channels);
                n += (size_t)snprintf(left + n, sizeof(left) - n, "%s%s:%sx%u%s", n ? ", " : "", codec_name(codec),
                                      dlp_dtype_name(form.dtype), form.n_channels, form.channels_first ? " first" : "");
        }
        ck_assert_str_eq(program_text(program), before);
        program_free(program);
        return left;
}

static const struct source MAYBE = {
        .schema = { 1, { { .name = "image", .kind = FIELD_PICTURE, .is_stored = true, .may_be_absent = true } } },
};

START_TEST(pictures_leave_to_the_client_what_their_last_steps_ask_for) {
        static const struct {
                const struct source *source;
                const char *text, *left;
        } ROWS[] = {
                { &PICTURES, "center_crop(8) to(float16) layout(nchw)", "image:float16x3 first" },
                { &PICTURES, "center_crop(8) normalize(mean=0.5, std=0.5)", "image:float32x3" },
                { &PICTURES, "center_crop(8) layout(nchw)", "image:uint8x3 first" },
                { &PICTURES, "decode(mode=L) center_crop(8) to(bfloat16)", "image:bfloat16x1" },
                { &PICTURES, "center_crop(8) hflip(0.5)", "" },
                { &PICTURES, "center_crop(8) grayscale(1) to(float16)", "image:float16x1" },
                { &PICTURES, "center_crop(8) to(uint8)", "" },
                { &PICTURES, "raw", "" },
                { &PICTURES, "decode(mode=RGBA) center_crop(8) to(float32)", "" },
                { &PICTURES, "decode(mode=I;16) center_crop(8) to(float32)", "" },
                { &PICTURES, "center_crop(8) to(float32) stack", "image:float32x3" },
                { &PICTURES, "image, label: center_crop(8) to(float32) mixup(num_classes=9)", "" },
                { &PICTURES, "resize(short=8) to(float32) pad(value=0)", "" },
                { &PICTURES, "resize(short=8) to(float32) ragged", "" },
                { &PICTURES, "center_crop(8) to(float32) views(2)", "image:float32x3, image_2:float32x3" },
                { &PAIRS, "left: center_crop(8) to(float32); right: center_crop(8)", "left:float32x3" },
                { &MASKS, "jpg, left.mask: center_crop(8) to(float16)", "jpg:float16x3" },
                { &MAYBE, "center_crop(8) to(float32)", "" },
        };

        for (size_t i = 0; i < ARRAY_LENGTH(ROWS); i++)
                ck_assert_msg(strcmp(left_by(ROWS[i].source, ROWS[i].text), ROWS[i].left) == 0,
                              "%s: \"%s\", not \"%s\"", ROWS[i].text, left_by(ROWS[i].source, ROWS[i].text),
                              ROWS[i].left);
}
END_TEST

/* Whether each picture leaves flips and colours, and how many of them for a sample: "image 2"; "": no picture does. */
static const char *operations_left_by(const struct source *source, const char *text) {
        static char left[512];
        struct program *program = NULL;
        struct picture_form form;
        struct why why;
        size_t n = 0;

        ck_assert_msg(program_parse(text, source, NULL, &program, &why) == 0, "%s: %s", text, why.text);
        left[0] = '\0';
        for (uint32_t i = 0; i < program_n_fields(program); i++) {
                const struct codec_terms terms = { .source = source, .batch_size = 4, .max_pixels = 1 << 20 };
                const struct codec *codec = program_codec(program, i);
                struct field_form field = { 0 };
                uint64_t pixel_bytes;

                if (!program_can_leave_operations(program, i))
                        continue;
                program_leave_operations(program, i);
                ck_assert(!program_can_leave_operations(program, i) && !program_can_leave_form(program, i));
                ck_assert(codec_left_form(codec, &form));
                ck_assert_int_eq(program_form(program, i, &terms, &field, &why), 0);
                ck_assert_uint_eq(field.dtype, DLP_DTYPE_UINT8);
                pixel_bytes = field_form_bytes(&field, field.shape);
                ck_assert(form.operations_at >= pixel_bytes && form.operations_at < pixel_bytes + DLP_LEFT_ALIGN);
                ck_assert_uint_eq((pixel_bytes + field.tail_bytes) % DLP_LEFT_ALIGN, 0);
                ck_assert_uint_ge(pixel_bytes + field.tail_bytes,
                                  form.operations_at + sizeof(struct dlp_left_operations));
                n += (size_t)snprintf(left + n, sizeof(left) - n, "%s%s", n ? ", " : "", codec_name(codec));
        }
        program_free(program);
        return left;
}

START_TEST(pictures_leave_to_the_client_the_flips_and_colours_at_their_end) {
        static const struct {
                const struct source *source;
                const char *text, *left;
        } ROWS[] = {
                { &PICTURES, "center_crop(8) hflip(0.5)", "image" },
                { &PICTURES, "center_crop(8) vflip(0.5) to(float16) layout(nchw)", "image" },
                { &PICTURES, "center_crop(8) color_jitter(0.4, 0.4, 0.4, 0.1)", "image" },
                { &PICTURES, "center_crop(8) random_grayscale normalize(mean=0.5, std=0.5)", "image" },
                { &PICTURES, "center_crop(8) grayscale(3) to(float16)", "image" },
                { &PICTURES, "decode(mode=L) center_crop(8) color_jitter(0.4)", "image" },
                { &PICTURES, "center_crop(8) hflip(0.5) views(2)", "image, image_2" },
                { &PICTURES, "hflip(0.5) center_crop(8) to(float16)", "" },
                { &PICTURES, "center_crop(8) grayscale(1) to(float16)", "" },
                { &PICTURES, "center_crop(8) grayscale(1) hflip(0.5)", "image" },
                { &PICTURES, "center_crop(8) to(float16)", "" },
                { &PICTURES, "hflip(0.5)", "" }, /* of any size */
                { &PICTURES, "resize(short=8) hflip(0.5)", "" },
                { &PICTURES, "center_crop(4096) hflip(0.5)", "image" },
                { &PICTURES, "center_crop(4096:4097) hflip(0.5)", "" },
                { &PICTURES, "raw", "" },
                { &PICTURES, "decode(mode=RGBA) center_crop(8) hflip(0.5)", "" },
                { &PICTURES, "decode(mode=I;16) center_crop(8) hflip(0.5)", "" },
                { &PICTURES, "center_crop(8) hflip(0.5) pad(value=0)", "" },
                { &PICTURES, "center_crop(8) hflip(0.5) ragged", "" },
                { &PICTURES, "image, label: center_crop(8) hflip(0.5) cutmix(num_classes=9)", "" },
                { &PAIRS, "left: center_crop(8) hflip(0.5); right: center_crop(8)", "left" },
                { &MASKS, "jpg, left.mask: center_crop(8) hflip(0.5)", "jpg" },
                { &MAYBE, "center_crop(8) hflip(0.5)", "" },
        };

        for (size_t i = 0; i < ARRAY_LENGTH(ROWS); i++)
                ck_assert_msg(strcmp(operations_left_by(ROWS[i].source, ROWS[i].text), ROWS[i].left) == 0,
                              "%s: \"%s\", not \"%s\"", ROWS[i].text, operations_left_by(ROWS[i].source, ROWS[i].text),
                              ROWS[i].left);
}
END_TEST

/* Which name, which field of the source, is it read for it? */
START_TEST(a_field_is_delivered_twice_by_two_names_with_draws_of_their_own) {
        static const char TEXT[] = "big = image : hflip views(2); small=image: hflip views(2) ;l=label; label; image";
        static const char *const names[] = { "big", "big_2", "small", "small_2", "l", "label", "image" };
        static const bool is_again[] = { false, true, true, true, false, true, true };
        struct codec_input input = { .seed = 5 };
        struct program *program = NULL;
        struct why why;

        ck_assert_msg(program_parse(TEXT, &PICTURES, NULL, &program, &why) == 0, "%s", why.text);
        ck_assert_uint_eq(program_n_fields(program), ARRAY_LENGTH(names));
        for (uint32_t i = 0; i < ARRAY_LENGTH(names); i++) {
                ck_assert_str_eq(codec_name(program_codec(program, i)), names[i]);
                ck_assert_int_eq(codec_is_again(program_codec(program, i)), is_again[i]);
        }
        ck_assert_uint_eq(codec_seed(program_codec(program, 0), &input), 5);
        ck_assert_uint_ne(codec_seed(program_codec(program, 2), &input), 5);
        ck_assert_str_eq(program_text(program),
                         "big=image: hflip(0.5) views(2); small=image: hflip(0.5) views(2); l=label; label; image");
        program_free(program);
}
END_TEST

START_TEST(names_that_cannot_be_are_refused_with_their_column) {
        static const struct {
                const struct source *source;
                const char *text, *words[3];
        } rows[] = {
                { &PICTURES, "image: hflip; image: vflip", { "image is named twice", "as in \"small=image: resize(" } },
                { &PICTURES, "a=image: hflip; a=image: vflip", { "a is named twice, with one name" } },
                { &PICTURES, "a=image: hflip; a=label", { "column 1:", "field image would be called a, and another" } },
                { &PICTURES, "label; label=image: hflip", { "column 8:", "would be called label" } },
                { &PICTURES, "label=image: hflip; label", { "column 1:", "would be called label" } },
                { &PICTURES, "image: hflip views(2); image_2=label", { "column 14:", "would be called image_2" } },
                { &PICTURES, "a=nothing: hflip", { "column 3: the dataset has no field \"nothing\"" } },
                { &PICTURES, "a=: hflip", { "column 3:", "expected the name of a field" } },
                { &PICTURES, "a=", { "column 3:", "expected the name of a field" } },
                { &PICTURES, "=image: hflip", { "column 1:", "expected the name of a field" } },
                { &PICTURES, "a=b=image: hflip", { "column 3:", "no field \"b\"" } },
                { &PICTURES, "a_name_of_thirty_two_characters_=image: hflip", { "column 1:", "longer than the 31" } },
                { &PICTURES, "a_name_of_thirty_characters_xx=image: hflip views(2)", { "characters_xx_2", "31" } },
        };
        char text[512];

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                const char *said = fields_of(rows[i].source, rows[i].text, text, sizeof(text));

                for (size_t k = 0; k < ARRAY_LENGTH(rows[i].words) && rows[i].words[k]; k++)
                        ck_assert_msg(strstr(said, rows[i].words[k]) != NULL, "\"%s\": %s", rows[i].text, said);
        }
        ck_assert_str_eq(fields_of(&PICTURES, "only=label", text, sizeof(text)), "only");
        ck_assert_str_eq(text, "only=label");
}
END_TEST

START_TEST(more_fields_than_a_batch_has_are_refused) {
        static struct source many;
        char text[512] = "", normal[512];

        many.schema.n_fields = DLP_TENSORS_MAX + 1;
        for (uint32_t i = 0; i < many.schema.n_fields; i++) {
                many.schema.fields[i] = (struct schema_field){ .kind = FIELD_BYTES, .is_stored = true };
                snprintf(many.schema.fields[i].name, sizeof(many.schema.fields[i].name), "f%u", i);
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sf%u", i ? "; " : "", i);
        }
        ck_assert_ptr_nonnull(strstr(fields_of(&many, text, normal, sizeof(normal)), "more than 32 fields"));
        *strrchr(text, ';') = '\0';
        ck_assert_int_eq(strncmp(fields_of(&many, text, normal, sizeof(normal)), "f0 f1 f2 ", 9), 0);
        ck_assert_ptr_nonnull(strstr(normal, " f31"));
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "programs", a_text_without_names_is_for_the_one_picture_and_values_come_with_it, 0 },
                { "programs", only_fields_that_are_named_are_delivered_in_the_sequence_of_the_text, 0 },
                { "programs", a_text_is_read_as_fingers_type_it, 0 },
                { "programs", the_normal_text_means_itself, 0 },
                { "programs", a_collation_is_printed_with_its_part_and_changes_no_draws, 0 },
                { "programs", a_function_is_printed_with_its_part_and_says_the_form_of_its_field, 0 },
                { "programs", steps_after_a_function_make_the_field_of_what_it_delivers, 0 },
                { "programs", a_function_gets_all_fields_of_its_part_in_one_call, 0 },
                { "programs", what_a_function_delivers_may_vary_up_to_a_maximum_and_is_collated_then, 0 },
                { "programs", what_is_said_of_a_function_s_fields_is_of_those_that_its_part_names, 0 },
                { "programs", a_function_may_get_whole_batches_and_then_only_mixing_follows, 0 },
                { "programs", what_is_wrong_is_named_with_its_column_in_the_whole_text, 0 },
                { "views", views_are_fields_of_their_own_after_the_first_of_their_part, 0 },
                { "views", each_view_has_masks_and_boxes_that_follow_its_own_picture, 0 },
                { "views", views_that_cannot_be_are_refused_with_their_column, 0 },
                { "names", a_field_is_delivered_twice_by_two_names_with_draws_of_their_own, 0 },
                { "names", names_that_cannot_be_are_refused_with_their_column, 0 },
                { "programs", a_word_that_is_a_step_and_a_field_is_never_guessed, 0 },
                { "programs", a_picture_is_served_before_its_boxes_and_boxes_before_what_leaves_with_them, 0 },
                { "programs", a_picture_that_is_called_a_mask_is_one_beside_another_picture, 0 },
                { "programs", pictures_leave_to_the_client_what_their_last_steps_ask_for, 0 },
                { "programs", pictures_leave_to_the_client_the_flips_and_colours_at_their_end, 0 },
                { "programs", more_fields_than_a_batch_has_are_refused, 0 },
        };

        return suite_run("program", rows, ARRAY_LENGTH(rows));
}
