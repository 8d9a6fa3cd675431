/* Coverage-guided (libFuzzer): any text as steps of a family that has an argument of each type. What is accepted must
 * be accepted again as it is printed, and mean the same; what is refused must be refused with a sentence. Each word
 * must lie in the text, and each value within what its argument allows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/text/grammar.h"
#include "proto/text/kinds.h"
#include "proto/text/step_values.h"

#define TEXT_MAX   4096u
#define VALUES_MAX 12u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static const struct kind ALL = {
        .name = "random_all",
        .other_names = "RandomEverything",
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
                               { ARGUMENT_LIST, "edges", "1", .minimum = -1e300, .maximum = 1e300 }),
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

/* The text while it is read and printed, in one way of writing. */
struct rewriting {
        struct kind_family family;
        struct grammar *grammar;
        struct grammar_steps steps;
        struct why why;
        int r;
};

static void check_word(const struct grammar *grammar, struct grammar_word word) {
        size_t n = strlen(grammar_all(grammar).at), column;

        if (!word.at)
                abort();
        column = grammar_column(grammar, word.at);
        if (grammar_all(grammar).n > TEXT_MAX || n > grammar_all(grammar).n || column < 1 ||
            column - 1 + word.n > grammar_all(grammar).n)
                abort();
}

static void check_value(const struct argument *argument, const struct value *value) {
        bool is_number = argument->type == ARGUMENT_NUMBER && !value->is_word;

        if (value->is_given && !value->is_set)
                abort();
        if ((is_number && (value->number < argument->minimum || value->number > argument->maximum)) ||
            value->range.from > value->range.to || value->height > KIND_SIDE_MAX || value->width > KIND_SIDE_MAX ||
            value->n_list > KIND_LIST_MAX || (argument->type == ARGUMENT_CHOICE && value->choice >= 3))
                abort();
        for (uint32_t i = 0; i < value->n_list; i++)
                if (value->list[i] < argument->minimum || value->list[i] > argument->maximum)
                        abort();
}

static size_t rewrite(struct rewriting *rewriting, char *text, size_t size);

static size_t rewrite_inside(const void *userdata, char *text, size_t size) {
        return rewrite((struct rewriting *)(uintptr_t)userdata, text, size);
}

static size_t rewrite(struct rewriting *rewriting, char *text, size_t size) {
        static _Thread_local unsigned depth;
        uint8_t *memory = calloc(1, VALUE_STORE_BYTES(TEXT_MAX, 1));
        struct grammar *grammar = rewriting->grammar;
        size_t n = 0;

        if (size > 0)
                text[0] = '\0';
        if (depth == 8)
                rewriting->r = -EINVAL;
        for (uint32_t i = 0; i < rewriting->steps.n && rewriting->r == 0; i++) {
                const struct grammar_step *step = &rewriting->steps.at[i];
                const struct kind *kind = kind_find(&rewriting->family, step->name);
                struct value_store store = { memory, VALUE_STORE_BYTES(TEXT_MAX, 1) };
                struct values_reader reader = { &rewriting->family, grammar, &store, &rewriting->why };
                struct rewriting inner = *rewriting;
                struct value values[VALUES_MAX];
                char mine[1];

                check_word(grammar, step->name);
                check_word(grammar, step->inside);
                for (uint32_t k = 0; k < step->n_arguments; k++) {
                        check_word(grammar, step->arguments[k].key);
                        check_word(grammar, step->arguments[k].value);
                }
                rewriting->r = kind ? values_read(&reader, kind, step, values)
                                    : kind_refuse(&rewriting->family, grammar, step->name, &rewriting->why);
                if (rewriting->r == -ENOMEM)
                        abort(); /* the store is large enough for any text */
                if (rewriting->r < 0)
                        break;
                if (kind == &GROUP)
                        inner.steps = values[0].inside;
                for (uint32_t k = 0; k < kind_n_arguments(kind); k++)
                        check_value(&kind->arguments[k], &values[k]);
                n += (size_t)snprintf(n < size ? text + n : mine, n < size ? size - n : 0, "%s", i > 0 ? " " : "");
                depth++;
                n += values_print(&rewriting->family, kind, values, rewrite_inside, &inner, n < size ? text + n : NULL,
                                  n < size ? size - n : 0);
                depth--;
                rewriting->r = inner.r;
                rewriting->why = inner.r < 0 ? inner.why : rewriting->why;
        }
        free(memory);
        return n;
}

/* Returns false if it is refused; the length that its normal text has. */
static bool read_text(const struct kind_family *family, const char *text, char *ret_text, size_t *ret_n) {
        struct rewriting rewriting = { .family = *family };

        if (grammar_new("text", text, &rewriting.grammar, &rewriting.why) < 0 ||
            grammar_steps(rewriting.grammar, grammar_all(rewriting.grammar), &rewriting.steps) < 0)
                abort();
        *ret_n = rewrite(&rewriting, ret_text, TEXT_MAX);
        if (rewriting.r < 0 && rewriting.r != -EINVAL)
                abort();
        grammar_free(rewriting.grammar);
        return rewriting.r == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        struct kind_family family = { .noun = "step", .kinds = KINDS };
        char text[TEXT_MAX], once[TEXT_MAX], twice[TEXT_MAX];
        size_t n;

        if (n_bytes < 1 || n_bytes > sizeof(text))
                return 0;
        family.keys = (enum family_keys)(data[0] % 3);
        family.numbers = data[0] / 3 % 2 ? FAMILY_PLAIN : FAMILY_SHORTEST;
        family.takes_any_sequence = data[0] / 6 % 2 == 0;
        family.writes_parentheses = data[0] / 12 % 2;
        memcpy(text, data + 1, n_bytes - 1);
        text[n_bytes - 1] = '\0';
        if (!read_text(&family, text, once, &n) || n >= sizeof(once))
                return 0;
        if (!read_text(&family, once, twice, &n) || strcmp(once, twice) != 0)
                abort();
        return 0;
}
