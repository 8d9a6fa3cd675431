/* unit/test_grammar.c: a text is cut into steps and their arguments, which are read as typed values and printed in one
 * spelling; the first mistake is the one that is reported. */
#include <check.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/text/grammar.h"
#include "proto/text/kinds.h"
#include "proto/text/step_values.h"
#include "tests/support/suite.h"
#include "tests/support/temporary.h"

/* ---- a family with an argument of each type -------------------------------------------------------------------- */

static const struct kind ALL = {
        .name = "random_all",
        .other_names = "EveryThing Everything2",
        .example = "random_all(3)",
        .arguments = ARGUMENTS(
                { ARGUMENT_SIZE, "size" }, { ARGUMENT_SIZE_SHORT, "short", "7", .other_name = "min" },
                { ARGUMENT_NUMBER, "p", "0.5", .maximum = 1 },
                { ARGUMENT_WHOLE, "n", .minimum = 1, .maximum = 18446744073709551615.0, .is_optional = true },
                { ARGUMENT_FLAG, "even", "false" },
                { ARGUMENT_CHOICE, "how", "left", CHOICES("left", "right", "float32") },
                { ARGUMENT_RANGE, "scale", "0.08:1", .maximum = 10 },
                { ARGUMENT_SPAN, "gain", "-6:6", .minimum = -100, .maximum = 100 },
                { ARGUMENT_AROUND, "hue", "0.1", .minimum = 0, .maximum = 1000, .center = 1 },
                { ARGUMENT_LIST, "fill", "0", .maximum = 255, .counts = 1u << 1 | 1u << 3, .is_whole = true,
                  .form = "N or R:G:B", .word = "random" },
                { ARGUMENT_NUMBER, "top", "none", .maximum = 10, .word = "none" },
                { ARGUMENT_COLUMN, "column", .is_optional = true, .needs_key = true }),
};
static const struct kind SPLIT = {
        .name = "split",
        .example = "split(0.9, 0.1)",
        .arguments = ARGUMENTS({ ARGUMENT_NUMBERS, "lengths", .maximum = 1000 },
                               { ARGUMENT_WHOLE, "part", "0", .maximum = 9 }),
};
static const struct kind MIX = {
        .name = "mix",
        .example = "mix(a=1, b=2)",
        .arguments = ARGUMENTS({ ARGUMENT_WEIGHTS, "weights", .maximum = 1000, .is_optional = true },
                               { ARGUMENT_WHOLE, "n", .maximum = 10, .is_optional = true }),
};
static const struct kind GROUP = {
        .name = "group",
        .example = "group([bare])",
        .arguments = ARGUMENTS({ ARGUMENT_STEPS, "steps" }, { ARGUMENT_NUMBER, "p", "0.5", .maximum = 1 }),
};
static const struct kind ANY = {
        .name = "json",
        .example = "json(a)",
        .arguments = ARGUMENTS({ ARGUMENT_ANYTHING, "path" }),
};
static const struct kind BARE = { .name = "bare", .example = "bare" };
static const struct kind *const KINDS[] = { &ALL, &SPLIT, &MIX, &GROUP, &ANY, &BARE, NULL };
static const struct kind_word LEFT_OUT[] = { { "antialias", "it always is" }, { NULL, NULL } };
static const struct kind_family PLAIN = {
        .noun = "step", .kinds = KINDS, .keys = FAMILY_NOT_THE_FIRST, .writes_parentheses = true, .left_out = LEFT_OUT
};
static const struct kind_family FREE = {
        .noun = "sampler", .kinds = KINDS, .numbers = FAMILY_SHORTEST, .takes_any_sequence = true
};

#define VALUES_MAX 12u

/* All steps of a text, read and printed again, with the steps of groups in their brackets. */
struct printing {
        const struct kind_family *family;
        struct grammar *grammar;
        struct grammar_steps steps;
        struct why *why;
        int r;
};

static int print_all(struct printing *printing, char *text, size_t size);

static size_t print_inside(const void *userdata, char *text, size_t size) {
        struct printing *inner = (struct printing *)(uintptr_t)userdata;

        inner->r = print_all(inner, text, size);
        return inner->r < 0 ? 0 : strlen(text);
}

static int print_all(struct printing *printing, char *text, size_t size) {
        _Alignas(8) uint8_t memory[VALUE_STORE_BYTES(1000, 8)];
        size_t n = 0;

        text[0] = '\0';
        for (uint32_t i = 0; i < printing->steps.n; i++) {
                const struct grammar_step *step = &printing->steps.at[i];
                const struct kind *kind = kind_find(printing->family, step->name);
                struct value_store store = { memory, sizeof(memory) };
                struct values_reader reader = { printing->family, printing->grammar, &store, printing->why };
                struct value values[VALUES_MAX];
                struct printing inner = *printing;
                int r;

                if (!kind)
                        return kind_refuse(printing->family, printing->grammar, step->name, printing->why);
                r = values_read(&reader, kind, step, values);
                if (r < 0)
                        return r;
                if (kind == &GROUP)
                        inner.steps = values[0].inside;
                inner.r = 0;
                n += (size_t)snprintf(text + n, size - n, "%s", i > 0 ? " " : "");
                n += values_print(printing->family, kind, values, print_inside, &inner, text + n, size - n);
                if (inner.r < 0)
                        return inner.r;
        }
        return 0;
}

static int normal(const struct kind_family *family, const char *text, char ret_normal[1000], struct why *why) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct printing printing = { .family = family, .why = why };

        ck_assert_int_eq(grammar_new("text", text, &grammar, why), 0);
        printing.grammar = grammar;
        ck_assert_int_eq(grammar_steps(grammar, grammar_all(grammar), &printing.steps), 0);
        return print_all(&printing, ret_normal, 1000);
}

/* ---------------------------------------------------------------------------------------------------------------- */

#define REST ", hue=0.9:1.1, fill=0, top=none)"

START_TEST(what_is_read_is_printed_in_one_spelling_and_that_is_read_as_the_same) {
        static const struct {
                const struct kind_family *family;
                const char *text, *normal;
        } rows[] = {
                { &PLAIN, "", "" },
                { &PLAIN, " bare\tbare()  bare( ) ", "bare() bare() bare()" },
                { &PLAIN, "random_all(3)",
                  "random_all(3, short=7, p=0.5, even=false, how=left, scale=0.08:1, gain=-6:6" REST },
                { &PLAIN, "random_all(3:4, min=5:6, p=1, n=18446744073709551615, even=True, how=torch.float)",
                  "random_all(3:4, short=5:6, p=1, n=18446744073709551615, even=true, how=float32, scale=0.08:1, "
                  "gain=-6:6" REST },
                { &PLAIN, "T.RandomAll((3, 4), gain = 2, hue=[0.5, 3], fill=(1,2,3,), top = 2 , column=a/b-c.d)",
                  "random_all(3:4, short=7, p=0.5, even=false, how=left, scale=0.08:1, gain=2, hue=0.5:3, fill=1:2:3, "
                  "top=2, column=a/b-c.d)" },
                { &PLAIN, "transforms.v2.Everything2(3, fill=random), bare",
                  "random_all(3, short=7, p=0.5, even=false, how=left, scale=0.08:1, gain=-6:6, hue=0.9:1.1, "
                  "fill=random, top=none) bare()" },
                { &PLAIN, "split(0.9, 0.1) split(1000, part=3)", "split(0.9, 0.1, part=0) split(1000, part=3)" },
                { &FREE, "split(part=3, 100, 90,)", "split(1e+02, 9e+01, part=3)" },
                { &FREE, "mix(a/b=1, n=3, c=-0.0) mix", "mix(a/b=1, c=0, n=3) mix" },
                { &PLAIN, "group([bare random_all(3), bare,], 1)",
                  "group([bare() random_all(3, short=7, p=0.5, even=false, how=left, scale=0.08:1, gain=-6:6" REST
                  " bare()], p=1)" },
                { &PLAIN, "group([group([bare,bare])])", "group([group([bare() bare()], p=0.5)], p=0.5)" },
                { &PLAIN, "json(a[\"b)\"].c) json([0]) json", "json(a[\"b)\"].c) json([0]) json()" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char once[1000], twice[1000];
                struct why why = { "" };
                int r = normal(rows[i].family, rows[i].text, once, &why);

                ck_assert_msg(r == 0, "%s: %s", rows[i].text, why.text);
                ck_assert_str_eq(once, rows[i].normal);
                r = normal(rows[i].family, once, twice, &why);
                ck_assert_msg(r == 0, "%s: %s", once, why.text);
                ck_assert_str_eq(twice, once);
        }
}
END_TEST

START_TEST(the_first_mistake_is_reported_with_its_column_and_what_was_expected) {
        static const struct {
                const char *text, *message;
        } rows[] = {
                /* names */
                { "foo(3)", "column 1: unknown step \"foo\"; the steps are random_all, split, mix, group, json, bare" },
                { "bare barre", "column 6: unknown step \"barre\" (did you mean \"bare\"?)" },
                { "random-all", "column 1: unknown step \"random-all\" (did you mean \"random_all\"?)" },
                { "bare (3)", "column 7: \"3\"; expected \")\": it has no arguments" },
                { "bare \x01", "column 6: byte 0x01; expected the name of a step" },
                { "bare;bare", "column 5: \";\"; expected a blank and the next step, or the end" },
                { "bare()bare", "column 7: \"b\"; expected a blank" },
                { "bare, bare", "column 5: \",\"; expected a blank" },
                /* what comes first is said first */
                { "foo(bare bare", "column 1: unknown step \"foo\"" },
                { "random_all(0, 1 2)", "column 12: size: \"0\" is not allowed" },
                { "random_all(1, 2 2, foo=3)", "column 17: \"2\"; expected \",\" or \")\"" },
                /* parentheses */
                { "random_all(", "column 12: the text ends where size should be; expected a size in pixels" },
                { "random_all(3", "column 13: the text ends; expected \",\" or \")\"" },
                { "random_all(3,", "column 14: the text ends where short should be" },
                { "random_all(3,)", "column 14: \")\"; expected another argument after \",\"" },
                { "random_all(,3)", "column 12: size: \",\" is not allowed" },
                { "random_all(3, p=)", "column 17: p: \")\" is not allowed" },
                { "bare(3)", "column 6: \"3\"; expected \")\": it has no arguments" },
                /* which argument */
                { "random_all(size=3, size=4)", "column 25: size of random_all is given twice" },
                { "random_all(3, size=4)", "column 20: size of random_all is given twice" },
                { "random_all(3, shrot=4)", "column 15: random_all has no argument \"shrot\" (did you mean \"short\"?);"
                                            " it has size, short, p" },
                { "random_all(3, antialias=True)",
                  "column 15: random_all has no argument \"antialias\"; leave it out: it always is" },
                { "random_all(size=3, 4)", "column 20: \"4\"; expected key=value, as after another key=value; a list" },
                { "random_all(size=3, x)", "column 20: \"x\"; expected key=value" },
                { "mix(3, 4)", "column 8: \"4\"; expected \")\": the step has no more arguments" },
                { "mix(a=1, a=2)", "column 12: a of mix is given twice" },
                { "bare random_all", "column 6: random_all needs its size, as in random_all(3)" },
                { "split(part=0)", "column 1: split needs its lengths" },
                /* values */
                { "random_all(16385)", "column 12: size: \"16385\" is not allowed; expected a size in pixels, 1 to" },
                { "random_all([3, 4, 5])", "column 12: size: \"3:4:5\"" },
                { "random_all([3,, 5])", "column 12: size: \"[3,, 5]\"" },
                { "random_all([3)", "column 12: size: \"[3\"" },
                { "random_all(3, p=1.5)", "column 17: p: \"1.5\" is not allowed; expected a number from 0 to 1" },
                { "random_all(3, p=nan)", "column 17: p: \"nan\"" },
                { "random_all(3, p=0x1)", "column 17: p: \"0x1\"" },
                { "random_all(3, n=0)", "column 17: n: \"0\" is not allowed; expected a whole number from 1 to" },
                { "random_all(3, n=18446744073709551616)", "column 17: n: \"18446744073709551616\"" },
                { "random_all(3, even=yes)", "column 20: even: \"yes\" is not allowed; expected true or false" },
                { "random_all(3, how=rihgt)", "column 19: how: \"rihgt\" is not allowed (did you mean \"right\"?); "
                                              "expected left, right or float32" },
                { "random_all(3, scale=1:0.5)", "column 21: scale: \"1:0.5\" is not allowed; expected FROM:TO with" },
                { "random_all(3, scale=0:0)", "column 21: scale: \"0:0\"" },
                { "random_all(3, scale=1)", "column 21: scale: \"1\"" },
                { "random_all(3, gain=6:-6)", "column 20: gain: \"6:-6\" is not allowed; expected a number, or two" },
                { "random_all(3, hue=-1)", "column 19: hue: \"-1\" is not allowed; expected a number from 0 to 999" },
                { "random_all(3, fill=1:2)", "column 20: fill: \"1:2\" is not allowed; expected N or R:G:B, whole "
                                             "numbers from 0 to 255, or the word random" },
                { "random_all(3, top=some)", "column 19: top: \"some\" is not allowed; expected a number from 0 to 10, "
                                             "or none" },
                { "group(bare)", "column 7: \"b\"; expected \"[\" and steps, as in group([bare])" },
                { "group([bare foo])", "column 13: unknown step \"foo\"" },
                { "group([bare;bare])", "column 12: \";\"; expected \",\" and the next step of the group, or \"]\"" },
                { "group([bare", "column 12: the text ends; expected" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char text[1000];
                struct why why = { "" };

                ck_assert_msg(normal(&PLAIN, rows[i].text, text, &why) == -EINVAL, "%s: %s", rows[i].text, text);
                ck_assert_msg(strncmp(why.text, "text, ", 6) == 0 &&
                                      strncmp(why.text + 6, rows[i].message, strlen(rows[i].message)) == 0,
                              "%s: %s", rows[i].text, why.text);
        }
}
END_TEST

START_TEST(a_list_in_brackets_is_one_with_colons_and_all_else_stays_as_it_is) {
        static const struct {
                const char *text, *value;
        } rows[] = {
                { "a([256, 256])", "256:256" },
                { "a((256,))", "256" },
                { "a( ( .08 , 1.0 ) )", ".08:1.0" },
                { "a(k=[-1,2e3,])", "-1:2e3" },
                { "a([..512, 3])", "..512:3" },
                { "a([])", "[]" },
                { "a([ ])", "[ ]" },
                { "a([,1])", "[,1]" },
                { "a([1,,2])", "[1,,2]" },
                { "a([1 2])", "[1 2]" },
                { "a([1, 2)", "[1" },
                { "a([1, [2]])", "[1, [2]]" },
                { "a([1] 2)", "[1]" },
                { "a(b[1, 2])", "b[1, 2]" },
                { "a([x, y])", "[x, y]" },
                { "a([1", "[1" },
                { "a(\"b, c)\")", "\"b, c)\"" },
                { "a(b(1, 2), 3)", "b(1, 2)" },
                { "a([b(\"]\")])", "[b(\"]\")]" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(grammar_freep) struct grammar *grammar = NULL;
                struct grammar_steps steps;
                struct grammar_word value;

                ck_assert_int_eq(grammar_new("text", rows[i].text, &grammar, NULL), 0);
                for (unsigned pass = 0; pass < 2; pass++) { /* also when it is read again */
                        ck_assert_int_eq(grammar_steps(grammar, grammar_all(grammar), &steps), 0);
                        value = steps.at[0].arguments[0].value;
                        ck_assert_msg(grammar_is(value, rows[i].value), "%s: %.*s", rows[i].text, (int)value.n,
                                      value.at);
                }
        }
}
END_TEST

START_TEST(parts_are_fields_and_steps_for_them_up_to_a_semicolon) {
        /* fields, "!" and what is there instead of one, ":" if there is one, steps */
        static const struct {
                const char *text, *parts;
        } rows[] = {
                { "image", "image" },
                { "image: a b(1); label;", "image: a b | label" },
                { " y = a/b-c.d ,image\n:a", "y=a/b-c.d image: a" },
                { "a;;b; ", "a | !; | b" },
                { "a: json(b[\";:\"]) c(d(;)); e", "a: json c | e" },
                { "a(;b: c", "a !(" },
                { "a: b(; c", "a: b" },
                { "a b, c: d", "a !b: d" },
                { "a, : b", "a !:: b" },
                { "a=: b", "!:: b" },
                { "", "!" },
                { ";", "!;" },
                { ":", "!::" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(grammar_freep) struct grammar *grammar = NULL;
                const char *next;
                char said[200] = "";
                size_t n = 0;

                ck_assert_int_eq(grammar_new("text", rows[i].text, &grammar, NULL), 0);
                next = grammar_all(grammar).at;
                while (next) {
                        struct grammar_part part;

                        n += (size_t)snprintf(said + n, sizeof(said) - n, "%s", n > 0 ? " | " : "");
                        ck_assert_int_eq(grammar_next_part(grammar, &next, &part), 0);
                        for (uint32_t k = 0; k < part.n_fields; k++) {
                                const struct grammar_argument *field = &part.fields[k];

                                n += (size_t)snprintf(said + n, sizeof(said) - n, "%s%.*s%s%.*s", k > 0 ? " " : "",
                                                      (int)field->key.n, field->key.at, field->key.n > 0 ? "=" : "",
                                                      (int)field->value.n, field->value.at);
                        }
                        if (part.stop)
                                n += (size_t)snprintf(said + n, sizeof(said) - n, "%s!%.1s",
                                                      part.n_fields > 0 ? " " : "", part.stop);
                        n += (size_t)snprintf(said + n, sizeof(said) - n, "%s", part.colon ? ":" : "");
                        for (uint32_t k = 0; k < part.steps.n; k++)
                                n += (size_t)snprintf(said + n, sizeof(said) - n, " %.*s", (int)part.steps.at[k].name.n,
                                                      part.steps.at[k].name.at);
                }
                ck_assert_str_eq(said, rows[i].parts);
        }
}
END_TEST

/* A text that has more of something than there is room for, or no end of it. */
START_TEST(texts_of_any_depth_and_length_are_safe) {
        static const char *const PIECES[] = {
                "(", "[", "a(", "a([", "\"", "a(1,", "a=", "a ", "a(b=[a(", ")", "]", ","
        };

        for (size_t i = 0; i < ARRAY_SIZE(PIECES); i++)
                for (unsigned n = 1; n <= 900; n = 3 * n + 1) {
                        char *text = calloc(1, n * strlen(PIECES[i]) + 1), out[1000];
                        struct why why = { "" };

                        for (unsigned k = 0; k < n; k++)
                                strcat(text, PIECES[i]);
                        if (normal(&FREE, text, out, &why) < 0)
                                ck_assert_msg(why.text[0], "%s", text);
                        free(text);
                }
}
END_TEST

START_TEST(a_store_that_is_full_is_an_error_and_nothing_else) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct grammar_steps steps;
        struct why why;

        ck_assert_int_eq(grammar_new("text", "mix(a=1, b=2, n=3)", &grammar, &why), 0);
        ck_assert_int_eq(grammar_steps(grammar, grammar_all(grammar), &steps), 0);
        for (size_t n = 0; n <= 80; n += 8) {
                uint8_t *memory = malloc(n > 0 ? n : 1);
                struct value_store store = { memory, n };
                struct values_reader reader = { &FREE, grammar, &store, &why };
                struct value values[VALUES_MAX];

                ck_assert_int_eq(values_read(&reader, &MIX, &steps.at[0], values), n < 64 ? -ENOMEM : 0);
                free(memory);
        }
}
END_TEST

/* The program's own locale, as a trainer's may be: made here, because a system has none but C at first. */
START_TEST(a_locale_whose_numbers_have_commas_changes_nothing) {
        char folder[TEMPORARY_MAX], command[200], text[1000];
        double number;
        struct why why;

        temporary_folder(folder, sizeof(folder));
        snprintf(command, sizeof(command), "localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 && chmod -R u+w %s", folder,
                 folder);
        ck_assert_int_eq(system(command), 0);
        setenv("LOCPATH", folder, 1);
        ck_assert_ptr_nonnull(setlocale(LC_ALL, "de_DE.UTF-8"));
        ck_assert_int_eq(sscanf("0,5", "%lf", &number), 1);
        ck_assert_double_eq(number, 0.5);

        ck_assert_int_eq(normal(&FREE, "mix(a=0.7, b=0.25)", text, &why), 0);
        ck_assert_str_eq(text, "mix(a=0.7, b=0.25)");
        ck_assert_int_eq(sscanf("0,5", "%lf", &number), 1);
        ck_assert_double_eq(number, 0.5); /* and it is still the program's */

        setlocale(LC_ALL, "C");
        snprintf(command, sizeof(command), "rm -r %s", folder);
        ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "values", what_is_read_is_printed_in_one_spelling_and_that_is_read_as_the_same, 0 },
                { "values", the_first_mistake_is_reported_with_its_column_and_what_was_expected, 0 },
                { "values", a_store_that_is_full_is_an_error_and_nothing_else, 0 },
                { "values", a_locale_whose_numbers_have_commas_changes_nothing, 0 },
                { "grammar", parts_are_fields_and_steps_for_them_up_to_a_semicolon, 0 },
                { "grammar", a_list_in_brackets_is_one_with_colons_and_all_else_stays_as_it_is, 0 },
                { "grammar", texts_of_any_depth_and_length_are_safe, 0 },
        };

        return suite_run("grammar", rows, ARRAY_SIZE(rows));
}
