/* unit/test_groups.c: steps around other steps: their texts, the sizes that follow, what runs for a sample, and that
 * nobody's draws depend on it. */
#include "daemon/augment/recipe.h"
#include "proto/order/philox.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct recipe *parse(const char *text) {
        struct recipe *recipe = NULL;
        struct why why = {};

        ck_assert_msg(recipe_parse(text, &recipe, &why) == 0, "%s: %s", text, why.text);
        return recipe;
}

/* ---- texts ----------------------------------------------------------------------------------------------------- */

static const struct {
        const char *text, *normal;
} SPELLINGS[] = {
        { "random_apply([hflip])", "random_apply([hflip(0.5)], p=0.5)" },
        { "random_apply( [ hflip(1) ,vflip\n] , p=.3) invert",
          "random_apply([hflip(1), vflip(0.5)], p=0.3) invert(0.5)" },
        { "random_apply([hflip(1) vflip(1),], 1)", "random_apply([hflip(1), vflip(1)], p=1)" },
        { "random_choice([hflip(1), vflip(1)])", "random_choice([hflip(1), vflip(1)])" },
        { "random_choice(p=[0.3, 0.7], steps=[hflip(1), vflip(1)])", "random_choice([hflip(1), vflip(1)], p=0.3:0.7)" },
        { "random_order([invert posterize(4)])", "random_order([invert(0.5), posterize(4, p=0.5)])" },
        { "one_of([equalize(1), invert(1)], 3:1, 0.25)", "one_of([equalize(1), invert(1)], weights=3:1, p=0.25)" },
        { "OneOf(transforms=[hflip(1)], p=1)", "one_of([hflip(1)], p=1)" },
        { "T.RandomApply([T.ColorJitter(0.5, 0.5, 0.5, 0.25)], p=0.8), v2.RandomGrayscale(p=0.2), ToTensor()",
          "random_apply([color_jitter(0.5:1.5, contrast=0.5:1.5, saturation=0.5:1.5, hue=-0.25:0.25)], p=0.8) "
          "random_grayscale(0.2) to(float32) layout(nchw)" },
        { "transforms.RandomChoice([transforms.RandomOrder([RandomInvert(1), RandomEqualize(1)]), RandomCrop(8, "
          "padding=[1, 2])])",
          "random_choice([random_order([invert(1), equalize(1)]), random_crop(8, padding=1:2, pad_if_needed=false, "
          "fill=0, padding_mode=constant)])" },
        { "random_apply([random_apply([random_apply([random_apply([hflip])])])])",
          "random_apply([random_apply([random_apply([random_apply([hflip(0.5)], p=0.5)], p=0.5)], p=0.5)], p=0.5)" },
};

START_TEST(a_group_has_one_normal_spelling) {
        struct recipe *recipe = parse(SPELLINGS[_i].text), *again;

        ck_assert_str_eq(recipe_text(recipe), SPELLINGS[_i].normal);
        again = parse(SPELLINGS[_i].normal);
        ck_assert_str_eq(recipe_text(again), SPELLINGS[_i].normal);
        recipe_free(recipe);
        recipe_free(again);
}
END_TEST

static const struct {
        const char *text, *contains;
} MISTAKES[] = {
        { "random_apply", "column 1: random_apply needs its steps, as in random_apply([hflip(1), vflip(1)], p=0.3)" },
        { "random_apply(p=0.5)", "column 1: random_apply needs its steps" },
        { "random_apply(hflip)", "column 14: \"h\"; expected \"[\" and steps, as in random_apply([" },
        { "random_apply([])", "column 14: no step in the brackets of random_apply; expected" },
        { "random_apply([hflip", "column 20: the text ends; expected \",\" and the next step of the group, or \"]\"" },
        { "random_apply([hflip(1)vflip])",
          "column 23: \"v\"; expected \",\" and the next step of the group, or \"]\"" },
        { "random_apply([hflip,,vflip])", "column 21: \",\"; expected the name of a step" },
        { "random_apply([hfilp(1)])", "column 15: unknown step \"hfilp\" (did you mean \"hflip\"?)" },
        { "random_apply([hflip(2)])", "column 21: p: \"2\" is not allowed; expected a number from 0 to 1" },
        { "random_apply([hflip], p=1.5)", "column 25: p: \"1.5\" is not allowed; expected a number from 0 to 1" },
        { "random_apply([hflip], [vflip])", "column 23: p: \"[vflip]\" is not allowed" },
        { "random_apply([hflip], steps=[vflip])", "column 29: steps of random_apply is given twice" },
        { "random_apply([hflip], weights=1)", "column 23: random_apply has no argument \"weights\"; it has steps, p" },
        { "random_apply([hflip] p=1)", "column 22: \"p\"; expected \",\" or \")\"" },
        { "random_choice([hflip, vflip], p=1:2:3)",
          "column 1: p=... of random_choice has 3 numbers, and there are 2 steps in its brackets; expected one" },
        { "hflip random_choice([hflip, random_apply([vflip, invert])], p=1:2:3)",
          "column 7: p=... of random_choice has 3" },
        { "one_of([hflip, vflip], weights=0:0)", "column 1: all weights of one_of are 0, so none can be chosen" },
        { "one_of([hflip, vflip], weights=-1:2)",
          "column 32: weights: \"-1:2\" is not allowed; expected W:W, numbers" },
        { "one_of([hflip, vflip], 0.5)", "column 1: weights=... of one_of has 1 number, and there are 2" },
        { "random_order([hflip, to(float32)])",
          "column 22: \"to\" sets the form of all samples, so it cannot be in a group; write it after the group" },
        { "random_apply([ToTensor()])", "column 15: in place of \"ToTensor\": \"to\" sets the form of all samples" },
        { "random_apply([layout(nchw)])", "column 15: \"layout\" sets the form" },
        { "random_apply([normalize(0, 1)])", "column 15: \"normalize\" sets the form" },
        { "random_apply([hflip, grayscale])",
          "column 22: grayscale would change the number of channels of some samples from 3 to 1, so it cannot be in a" },
        { "grayscale random_apply([grayscale(3)])", "column 25: grayscale would change the number of channels of" },
        { "random_apply([decode])", "column 15: \"decode\" can only be the first step" },
        { "random_apply([raw])", "column 15: \"raw\" delivers the encoded bytes and cannot follow other steps" },
        { "to(float32) random_apply([hflip])", "column 13: \"random_apply\" after \"to\", which sets the form" },
        { "random_apply([Compose([hflip])])", "column 15: Compose is not needed" },
        { "random_apply([random_apply([random_apply([random_apply([random_apply([hflip])])])])])",
          "column 70: random_apply is within 4 other groups, which is the limit" },
        { "random_apply([[hflip]])", "column 15: \"[\"; expected the name of a step" },
        { "decode(mode=P) random_apply([invert])",
          "column 30: invert: is not for pictures that are decoded with mode=P" },
};

START_TEST(a_mistake_in_a_group_is_told_with_its_column) {
        struct recipe *recipe = (struct recipe *)&recipe; /* must stay as it is */
        struct why why = {};

        ck_assert_int_eq(recipe_parse(MISTAKES[_i].text, &recipe, &why), -EINVAL);
        ck_assert_msg(strstr(why.text, MISTAKES[_i].contains) != NULL, "\"%s\" says \"%s\", not \"%s\"",
                      MISTAKES[_i].text, why.text, MISTAKES[_i].contains);
        ck_assert_ptr_eq(recipe, &recipe);
}
END_TEST

/* A group and the steps inside of it all count. */
START_TEST(the_largest_group_fits_and_one_step_more_is_refused) {
        char text[DLP_PIPELINE_MAX] = "random_choice([hflip(0.12345678901234566)";
        struct recipe *recipe;
        struct why why = {};
        size_t n;

        for (unsigned i = 2; i < DLP_STEPS_MAX; i++)
                strcat(text, ", hflip(0.12345678901234566)");
        n = strlen(text);
        strcat(text, "], p=0.12345678901234566");
        for (unsigned i = 2; i < DLP_STEPS_MAX; i++)
                strcat(text, ":0.12345678901234566");
        strcat(text, ")");
        recipe = parse(text);
        ck_assert_str_eq(recipe_text(recipe), text);
        recipe_free(recipe);

        strcpy(text + n, ", vflip])");
        ck_assert_int_eq(recipe_parse(text, &recipe, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "more than 32 steps"));
}
END_TEST

/* ---- sizes ----------------------------------------------------------------------------------------------------- */

static const struct {
        const char *text;
        uint32_t height, width;             /* 0: varies */
        uint32_t bound_height, bound_width; /* 0: there is none */
} SIZES[] = {
        { "center_crop(8) random_apply([hflip, invert])", 8, 8, 8, 8 },
        { "center_crop(8) random_apply([pad(2)])", 0, 0, 12, 12 },
        { "center_crop(8) random_apply([pad(2)], p=1)", 12, 12, 12, 12 },
        { "center_crop(8) random_apply([pad(2)], p=0)", 8, 8, 8, 8 },
        { "center_crop(8) random_apply([pad(2) center_crop(8)])", 8, 8, 8, 8 },
        { "random_apply([center_crop(8)])", 0, 0, 0, 0 },
        { "random_choice([center_crop(8), random_resized_crop(8)])", 8, 8, 8, 8 },
        { "random_choice([center_crop(8:9), random_resized_crop(9:8)])", 0, 0, 9, 9 },
        { "random_choice([center_crop(8:9), random_resized_crop(9:8)], p=0:1)", 9, 8, 9, 8 },
        { "random_choice([center_crop(8), hflip])", 0, 0, 0, 0 },
        { "resize(7, max=9) random_choice([center_crop(8), hflip])", 0, 0, 9, 9 },
        { "center_crop(4) one_of([center_crop(8), random_resized_crop(8)])", 0, 0, 8, 8 },
        { "center_crop(4) one_of([center_crop(8), random_resized_crop(8)], p=1)", 8, 8, 8, 8 },
        { "center_crop(4) one_of([center_crop(8), random_resized_crop(8)], p=0)", 4, 4, 4, 4 },
        { "center_crop(4) random_order([hflip, pad(1), invert])", 6, 6, 6, 6 },
        { "center_crop(4) random_order([pad(1), center_crop(7)])", 0, 0, 0, 0 },
        { "center_crop(4) random_order([random_apply([pad(1)], p=1), hflip])", 6, 6, 6, 6 },
        { "random_order([pad(1), center_crop(7)]) resize(5:6)", 5, 6, 5, 6 },
};

START_TEST(the_size_is_known_where_all_that_may_run_agree) {
        struct recipe *recipe = parse(SIZES[_i].text);
        uint32_t height = 0, width = 0;
        int r = recipe_output(recipe, &height, &width);

        ck_assert_int_eq(r, SIZES[_i].height > 0 ? 0 : RECIPE_VARIES);
        ck_assert_uint_eq(height, SIZES[_i].height);
        ck_assert_uint_eq(width, SIZES[_i].width);
        height = width = 0;
        ck_assert_int_eq(recipe_bound(recipe, &height, &width), SIZES[_i].bound_height > 0);
        ck_assert_uint_eq(height, SIZES[_i].bound_height);
        ck_assert_uint_eq(width, SIZES[_i].bound_width);
        recipe_free(recipe);
}
END_TEST

/* Whatever is drawn. */
START_TEST(each_sample_has_the_size_that_was_announced) {
        struct recipe *recipe = parse(SIZES[_i].text);
        struct geometry geometry;
        bool has_bound;
        uint32_t height, width;

        has_bound = recipe_bound(recipe, &height, &width);
        for (uint64_t sample = 0; sample < 200; sample++) {
                ck_assert_int_eq(recipe_plan(recipe, 40, 30, 1, 2, sample, &geometry, NULL), 0);
                if (SIZES[_i].height > 0) {
                        ck_assert_uint_eq(geometry.height, SIZES[_i].height);
                        ck_assert_uint_eq(geometry.width, SIZES[_i].width);
                }
                ck_assert(!has_bound || (geometry.height <= height && geometry.width <= width));
        }
        recipe_free(recipe);
}
END_TEST

/* ---- draws ----------------------------------------------------------------------------------------------------- */

/* What runs, as letters: padding of 1, 2, 3 and 4 on the left side tells which, and the sequence is seen in the offset
 * of a flip. */
static uint32_t paddings_of(const struct recipe *recipe, uint64_t sample) {
        struct geometry geometry;

        ck_assert_int_eq(recipe_plan(recipe, 5, 5, 7, 1, sample, &geometry, NULL), 0);
        return geometry.width - 5;
}

static float first_f32(uint64_t sample, uint16_t step) {
        struct dlp_philox philox;

        dlp_philox_init(&philox, 7, 1, sample, step);
        return dlp_philox_f32(&philox);
}

START_TEST(random_apply_runs_all_or_nothing_by_the_first_number_of_its_stream) {
        struct recipe *recipe = parse("hflip random_apply([pad(1:0:0:0), pad(2:0:0:0)], p=0.3)");
        unsigned n = 0;

        for (uint64_t sample = 0; sample < 1000; sample++) {
                bool happens = first_f32(sample, 2) < 0.3f;

                ck_assert_uint_eq(paddings_of(recipe, sample), happens ? 3 : 0);
                n += happens;
        }
        ck_assert(n > 250 && n < 350);
        recipe_free(recipe);
}
END_TEST

START_TEST(random_choice_runs_one_by_its_weight) {
        struct recipe *recipe = parse(
                "random_choice([pad(1:0:0:0), random_apply([pad(2:0:0:0), pad(4:0:0:0)], p=1), pad(8:0:0:0)], "
                "p=1:0:3)");
        struct recipe *equal = parse("random_choice([pad(1:0:0:0), pad(2:0:0:0), pad(3:0:0:0)])");
        unsigned n = 0;

        for (uint64_t sample = 0; sample < 1000; sample++) {
                float u = first_f32(sample, 1);

                ck_assert_uint_eq(paddings_of(recipe, sample), u * 4 < 1 ? 1 : 8);
                ck_assert_uint_eq(paddings_of(equal, sample), (uint32_t)((double)u * 3) + 1);
                n += u * 4 < 1;
        }
        ck_assert(n > 200 && n < 300);
        recipe_free(recipe);
        recipe_free(equal);
}
END_TEST

START_TEST(one_of_draws_first_whether_and_then_which) {
        struct recipe *recipe = parse("one_of([pad(1:0:0:0), pad(2:0:0:0)], weights=1:3, p=0.6)");

        for (uint64_t sample = 0; sample < 1000; sample++) {
                struct dlp_philox philox;
                bool happens;
                float which;

                dlp_philox_init(&philox, 7, 1, sample, 1);
                happens = dlp_philox_f32(&philox) < 0.6f;
                which = dlp_philox_f32(&philox);
                ck_assert_uint_eq(paddings_of(recipe, sample), !happens ? 0 : which * 4 < 1 ? 1 : 2);
        }
        recipe_free(recipe);
}
END_TEST

/* Padding after a flip is on the other side of the picture's pixels. */
START_TEST(random_order_runs_all_in_each_sequence) {
        struct recipe *recipe = parse("random_order([pad(1:0:0:0), hflip(1), pad(0:0:3:0, fill=9)])");
        unsigned n_first = 0;

        for (uint64_t sample = 0; sample < 600; sample++) {
                struct geometry geometry;
                struct dlp_philox philox;
                uint32_t sequence[] = { 0, 1, 2 };

                dlp_philox_init(&philox, 7, 1, sample, 1);
                for (uint32_t i = 0; i < 2; i++) {
                        uint32_t other = i + dlp_philox_below(&philox, 3 - i), kept = sequence[i];

                        sequence[i] = sequence[other];
                        sequence[other] = kept;
                }
                ck_assert_int_eq(recipe_plan(recipe, 5, 5, 7, 1, sample, &geometry, NULL), 0);
                ck_assert_uint_eq(geometry.width, 9);
                ck_assert_uint_eq(geometry.n_stages, 2); /* two colours of border */
                ck_assert_uint_eq(geometry.stages[0].canvas_width, sequence[0] == 0                       ? 6
                                                                   : sequence[0] == 2 || sequence[1] == 2 ? 8
                                                                                                          : 6);
                ck_assert(geometry.stages[0].flip == (sequence[2] != 1) || sequence[1] == 1);
                n_first += sequence[0] == 1;
        }
        ck_assert(n_first > 150 && n_first < 250);
        recipe_free(recipe);
}
END_TEST

/* What a step draws follows from its place in the text, with all groups opened. */
START_TEST(no_draw_depends_on_what_runs_before_it) {
        static const char *const texts[] = {
                "random_crop(3) hflip(0) vflip(0) random_crop(2) hflip(0.5)",
                "random_crop(3) random_apply([vflip(0)], p=0.5) random_crop(2) hflip(0.5)",
                "random_crop(3) random_apply([vflip(1)], p=0) random_crop(2) hflip(0.5)",
                "random_crop(3) random_choice([invert(1)]) random_crop(2) hflip(0.5)",
                "random_apply([random_crop(3), vflip(0)], p=1) random_crop(2) hflip(0.5)",
                "random_apply([random_crop(3), vflip(0), random_crop(2), hflip(0.5)], p=1)",
        };
        static const bool is_shifted[] = { false, false, false, false, true, true };

        for (uint64_t sample = 0; sample < 200; sample++) {
                struct geometry geometries[2][3];
                unsigned n[2] = { 0, 0 };

                for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                        struct recipe *recipe = parse(texts[i]);
                        bool which = is_shifted[i];
                        struct geometry *geometry = &geometries[which][n[which] > 0];

                        ck_assert_int_eq(recipe_plan(recipe, 9, 9, 7, 1, sample, geometry, NULL), 0);
                        ck_assert_mem_eq(&geometries[which][0].source, &geometry->source, sizeof(geometry->source));
                        ck_assert_int_eq(geometries[which][0].stages[0].flip, geometry->stages[0].flip);
                        n[which]++;
                        recipe_free(recipe);
                }
        }
}
END_TEST

/* ---- others that plan ------------------------------------------------------------------------------------------ */

START_TEST(a_mask_and_coordinates_go_along) {
        struct recipe *recipe = parse("random_order([random_crop(20), random_apply([hflip(1), random_grayscale(0)]), "
                                      "one_of([vflip(1), pad(3)])])");
        static struct geometry geometry, mask, moved;
        static struct motions motions;

        for (uint64_t sample = 0; sample < 300; sample++) {
                const struct stage *stage, *mask_stage;
                struct dlp_philox apply, one_of;

                ck_assert_int_eq(recipe_plan(recipe, 40, 30, 3, 1, sample, &geometry, NULL), 0);
                ck_assert_int_eq(recipe_plan_mask(recipe, 40, 30, false, 3, 1, sample, &mask, NULL), 0);
                ck_assert_int_eq(recipe_plan_motions(recipe, 40, 30, 3, 1, sample, &moved, &motions, NULL), 0);
                ck_assert_uint_eq(geometry.width, mask.width);
                ck_assert_uint_eq(geometry.height, mask.height);
                ck_assert_mem_eq(&geometry.source, &mask.source, sizeof(mask.source));
                ck_assert_uint_eq(mask.n_operations, 0);
                stage = &geometry.stages[geometry.n_stages - 1];
                mask_stage = &mask.stages[mask.n_stages - 1];
                ck_assert_int_eq(stage->vflip, mask_stage->vflip);
                ck_assert_int_eq(stage->flip, mask_stage->flip);
                dlp_philox_init(&apply, 3, 1, sample, 3);
                dlp_philox_init(&one_of, 3, 1, sample, 6);
                ck_assert_uint_eq(motions.n, 1u + (dlp_philox_f32(&apply) < 0.5f) + (dlp_philox_f32(&one_of) < 0.5f));
        }
        recipe_free(recipe);
}
END_TEST

START_TEST(a_group_is_done_by_the_daemon_and_what_follows_may_be_left) {
        static const struct {
                const char *text;
                bool can_be_left;
        } rows[] = {
                { "center_crop(8) random_apply([hflip(1)])", false },
                { "center_crop(8) random_choice([hflip(1), invert(1)]) to(float16)", false },
                { "center_crop(8) random_apply([hflip(1)]) hflip", true },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct recipe *recipe = parse(rows[i].text);

                ck_assert_msg(recipe_can_leave_operations(recipe) == rows[i].can_be_left, "%s", rows[i].text);
                recipe_free(recipe);
        }
}
END_TEST

START_TEST(boxes_are_dropped_if_any_step_of_a_group_may_drop_them) {
        struct recipe *with = parse("random_apply([hflip, random_order([sanitize])])"),
                      *without = parse("random_apply([hflip])");

        ck_assert(recipe_drops_boxes(with));
        ck_assert(!recipe_drops_boxes(without));
        recipe_free(with);
        recipe_free(without);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("groups");
        TCase *texts = tcase_create("texts"), *sizes = tcase_create("sizes"), *draws = tcase_create("draws");
        SRunner *runner;
        int n_failed;

        tcase_add_loop_test(texts, a_group_has_one_normal_spelling, 0, sizeof(SPELLINGS) / sizeof(SPELLINGS[0]));
        tcase_add_loop_test(texts, a_mistake_in_a_group_is_told_with_its_column, 0,
                            sizeof(MISTAKES) / sizeof(MISTAKES[0]));
        tcase_add_test(texts, the_largest_group_fits_and_one_step_more_is_refused);
        tcase_add_loop_test(sizes, the_size_is_known_where_all_that_may_run_agree, 0, sizeof(SIZES) / sizeof(SIZES[0]));
        tcase_add_loop_test(sizes, each_sample_has_the_size_that_was_announced, 0, sizeof(SIZES) / sizeof(SIZES[0]));
        tcase_add_test(draws, random_apply_runs_all_or_nothing_by_the_first_number_of_its_stream);
        tcase_add_test(draws, random_choice_runs_one_by_its_weight);
        tcase_add_test(draws, one_of_draws_first_whether_and_then_which);
        tcase_add_test(draws, random_order_runs_all_in_each_sequence);
        tcase_add_test(draws, no_draw_depends_on_what_runs_before_it);
        tcase_add_test(draws, a_mask_and_coordinates_go_along);
        tcase_add_test(draws, a_group_is_done_by_the_daemon_and_what_follows_may_be_left);
        tcase_add_test(draws, boxes_are_dropped_if_any_step_of_a_group_may_drop_them);
        suite_add_tcase(suite, texts);
        suite_add_tcase(suite, sizes);
        suite_add_tcase(suite, draws);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? 0 : 1;
}
