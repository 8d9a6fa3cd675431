/* unit/test_typed.c: names that people meant: the nearest one, and short names. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/typed.h"
#include "tests/support/suite.h"

/* ---- did you mean ---------------------------------------------------------------------------------------------- */

START_TEST(the_nearest_name_is_suggested_and_none_that_is_far) {
        static const char NAMES[] = "random_resized_crop, resize, center_crop, hflip | vflip to layout or 64k";
        static const struct {
                const char *word, *name;
        } rows[] = {
                { "resiez", "resize" },
                { "rezise", "resize" },
                { "Resize", "resize" },
                { "RESISE", "resize" },
                { "random-resized-crop", "random_resized_crop" },
                { "random_resize_crop", "random_resized_crop" },
                { "random", "random_resized_crop" }, /* its beginning */
                { "ran", "random_resized_crop" },
                { "centre_crop", "center_crop" },
                { "hfilp", "hflip" },
                { "flip", "hflip" }, /* the first of two */
                { "tp", "to" },
                { "ro", "to" }, /* "or" joins names, it is none */
                { "x", NULL },
                { "", NULL },
                { "ra", NULL },
                { "sharpen", NULL },
                { "rotate", NULL },
                { "o", NULL },
        };
        struct nearest nearest;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const char *hint = nearest_in(&nearest, rows[i].word, strlen(rows[i].word), NAMES);
                char expected[80] = "";

                if (rows[i].name)
                        snprintf(expected, sizeof(expected), " (did you mean \"%s\"?)", rows[i].name);
                ck_assert_msg(strcmp(hint, expected) == 0, "%s: %s", rows[i].word, hint);
        }
}
END_TEST

START_TEST(names_and_words_of_any_length_are_safe) {
        char *word = malloc(300), *name = malloc(300);
        struct nearest nearest;

        for (size_t n_word = 0; n_word < 300; n_word += 7)
                for (size_t n_name = 0; n_name < 300; n_name += 3) {
                        memset(word, 'a', n_word);
                        memset(name, 'a', n_name);
                        name[n_name] = '\0';
                        nearest_begin(&nearest, word, n_word);
                        nearest_offer(&nearest, name);
                        ck_assert_uint_lt(strlen(nearest_hint(&nearest)), sizeof(nearest.hint));
                }
        free(word);
        free(name);
}
END_TEST

/* ---- as typed -------------------------------------------------------------------------------------------------- */

START_TEST(a_value_means_a_name_in_whatever_way_it_is_typed) {
        static const struct {
                const char *value, *name;
                bool is_it;
        } rows[] = {
                { "float16", "float16", true },
                { "fp16", "float16", true },
                { "half", "float16", true },
                { "torch.half", "float16", true },
                { "'bf16'", "bfloat16", true },
                { "np.float32", "float32", true },
                { "NCHW", "nchw", true },
                { "\"Nchw\"", "nchw", true },
                { "InterpolationMode.BOX", "box", true },
                { "True", "true", true },
                { "double", "float64", true },
                { "long", "int64", true },
                { "float16", "bfloat16", false },
                { "half", "bfloat16", false },
                { "", "nchw", false },
                { "'", "nchw", false },
                { "''", "nchw", false },
                { "'nchw\"", "nchw", false },
                { "torch.", "nchw", false },
                { "1.nchw", "nchw", false },
                { "nchw ", "nchw", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                ck_assert_msg(typed_is(rows[i].value, strlen(rows[i].value), rows[i].name) == rows[i].is_it, "%s, %s",
                              rows[i].value, rows[i].name);
        ck_assert(typed_is_class("RandomResizedCrop", 17, "random_resized_crop"));
        ck_assert(typed_is_class("random_resized_crop", 19, "RandomResizedCrop"));
        ck_assert(!typed_is_class("RandomResizedCro", 16, "random_resized_crop"));
        ck_assert(!typed_is_class("RandomResizedCropp", 18, "random_resized_crop"));
        ck_assert(!typed_is_class("", 0, "crop"));
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "nearest", the_nearest_name_is_suggested_and_none_that_is_far, 0 },
                { "nearest", names_and_words_of_any_length_are_safe, 0 },
                { "typed", a_value_means_a_name_in_whatever_way_it_is_typed, 0 },
        };

        return suite_run("typed", rows, ARRAY_SIZE(rows));
}
