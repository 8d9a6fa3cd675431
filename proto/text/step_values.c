#include "proto/text/step_values.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/plain_locale.h"
#include "proto/base/typed.h"

#define NUMBER_TEXT_MAX 64u /* characters of one number; the longest useful one has 24 */
#define EXPECTED_MAX    320u
#define BLANKS          " \t\r\n"

/* ---- texts that grow ------------------------------------------------------------------------------------------- */

struct printer {
        char *text;
        size_t size, n; /* n may pass size: it is what the text would need */
};

__attribute__((format(printf, 2, 3))) static void print(struct printer *printer, const char *format, ...) {
        bool has_room = printer->n < printer->size;
        va_list arguments;

        va_start(arguments, format);
        printer->n += (size_t)vsnprintf(has_room ? printer->text + printer->n : NULL,
                                        has_room ? printer->size - printer->n : 0, format, arguments);
        va_end(arguments);
}

/* ---- what is allowed ------------------------------------------------------------------------------------------- */

static bool is_list(const struct argument *argument) {
        return argument->type == ARGUMENT_LIST || argument->type == ARGUMENT_NUMBERS ||
               argument->type == ARGUMENT_WEIGHTS;
}

static void describe_list(struct printer *printer, const struct argument *argument) {
        const char *what = argument->is_odd ? "odd numbers" : argument->is_whole ? "whole numbers" : "numbers";

        if (argument->type == ARGUMENT_LIST && argument->form)
                print(printer, "%s, %s", argument->form, what);
        else
                print(printer, "%s", argument->is_whole ? "a whole number" : "a number");
        if (!isinf(argument->minimum) || !isinf(argument->maximum))
                print(printer, " from %g to %g", argument->minimum, argument->maximum);
        if (argument->type == ARGUMENT_LIST && !argument->form && argument->counts != 1u << 1)
                print(printer, ", or several with \":\" between them");
}

static void values_describe_choices(struct printer *printer, const struct argument *argument) {
        for (uint32_t i = 0; i < argument->n_choices; i++)
                print(printer, "%s%s",
                      i == 0                         ? ""
                      : i + 1 == argument->n_choices ? " or "
                                                     : ", ",
                      argument->choices[i]);
}

void values_describe(const struct kind *kind, const struct argument *argument, char *ret_text, size_t size) {
        struct printer printer = { ret_text, size, 0 };
        double minimum = argument->minimum, maximum = argument->maximum, reach = maximum - argument->center;

        ret_text[0] = '\0';
        switch (argument->type) {
        case ARGUMENT_WHOLE:
                print(&printer, "a whole number from %.17g to %.17g", minimum, maximum);
                break;
        case ARGUMENT_NUMBER:
                if (isinf(maximum))
                        print(&printer, isinf(minimum) ? "a finite number" : "a finite number, %.15g or more", minimum);
                else
                        print(&printer, "a %snumber from %.15g to %.15g", argument->is_whole ? "whole " : "", minimum,
                              maximum);
                break;
        case ARGUMENT_FLAG:
                print(&printer, "true or false");
                break;
        case ARGUMENT_CHOICE:
                values_describe_choices(&printer, argument);
                break;
        case ARGUMENT_SIZE:
        case ARGUMENT_SIZE_SHORT:
                print(&printer, "a size in pixels, 1 to %u, or HEIGHT:WIDTH", KIND_SIDE_MAX);
                break;
        case ARGUMENT_RANGE:
                print(&printer, "FROM:TO with %g <= FROM <= TO <= %g", minimum, maximum);
                if (argument->by_default)
                        print(&printer, ", such as %s", argument->by_default);
                break;
        case ARGUMENT_SPAN:
                print(&printer, "a number, or two as in LOW:HIGH, from %.15g to %.15g", minimum, maximum);
                break;
        case ARGUMENT_AROUND:
                print(&printer, "a number from 0 to %g, or FROM:TO with %g <= FROM <= TO <= %g", reach, minimum,
                      maximum);
                break;
        case ARGUMENT_LIST:
        case ARGUMENT_NUMBERS:
        case ARGUMENT_WEIGHTS:
                describe_list(&printer, argument);
                break;
        case ARGUMENT_COLUMN:
        case ARGUMENT_LENGTHS:
                print(&printer, "the name of a column");
                break;
        case ARGUMENT_STEPS:
                print(&printer, "\"[\" and steps, as in %s", kind->example);
                break;
        case ARGUMENT_FORM:
        case ARGUMENT_FORMS:
                print(&printer, "%s, as in %s: up to %d dimensions of %g to %.15g elements, ..512 is one that varies",
                      argument->n_choices > 0 ? "a dtype, a shape or both" : "a shape", argument->form,
                      31 - __builtin_clz(argument->counts), minimum, maximum);
                break;
        case ARGUMENT_NAME:
        case ARGUMENT_ANYTHING:
        case ARGUMENT_END:
                print(&printer, "%s", argument->form ? argument->form : "a name");
                break;
        }
        if (argument->word)
                print(&printer, is_list(argument) ? ", or the word %s" : ", or %s", argument->word);
}

/* ---- reading a value ------------------------------------------------------------------------------------------- */

static void *take(struct value_store *store, size_t n_bytes) {
        void *memory = store->at;

        n_bytes = (n_bytes + 7) / 8 * 8;
        if (n_bytes > store->n_left)
                return NULL;
        store->at += n_bytes;
        store->n_left -= n_bytes;
        return memory;
}

static const char *keep(struct value_store *store, struct grammar_word word) {
        char *kept = take(store, word.n + 1);

        if (!kept)
                return NULL;
        memcpy(kept, word.at, word.n);
        kept[word.n] = '\0';
        return kept;
}

/* A plain decimal number: no hexadecimal, no "inf", no "nan". */
static bool read_number(const char *at, size_t n, double *ret_number) {
        char copy[NUMBER_TEXT_MAX], *end;

        if (n == 0 || n >= sizeof(copy) || strspn(at, "0123456789.eE+-") < n)
                return false;
        memcpy(copy, at, n);
        copy[n] = '\0';
        *ret_number = strtod(copy, &end);
        return *end == '\0' && isfinite(*ret_number);
}

static bool read_within(const struct argument *argument, const char *at, size_t n, double *ret_number) {
        return read_number(at, n, ret_number) && *ret_number >= argument->minimum && *ret_number <= argument->maximum;
}

static bool read_whole(const char *at, size_t n, uint64_t *ret_whole) {
        uint64_t whole = 0;

        for (size_t i = 0; i < n; i++) {
                unsigned digit = (unsigned)(at[i] - '0');

                if (digit > 9 || __builtin_mul_overflow(whole, 10, &whole) ||
                    __builtin_add_overflow(whole, digit, &whole))
                        return false;
        }
        *ret_whole = whole;
        return n > 0;
}

static bool read_side(const char *at, size_t n, uint32_t *ret_side) {
        uint64_t side;

        if (!read_whole(at, n, &side) || side < 1 || side > KIND_SIDE_MAX)
                return false;
        *ret_side = (uint32_t)side;
        return true;
}

/* Of a word: up to its first ":", or all of it. */
static size_t first_length(struct grammar_word word) {
        const char *colon = memchr(word.at, ':', word.n);

        return colon ? (size_t)(colon - word.at) : word.n;
}

static bool read_size(const struct argument *argument, struct grammar_word word, struct value *value) {
        size_t n = first_length(word);

        if (!read_side(word.at, n, &value->height))
                return false;
        if (n < word.n)
                return read_side(word.at + n + 1, word.n - n - 1, &value->width);
        value->width = argument->type == ARGUMENT_SIZE ? value->height : 0;
        return true;
}

static bool read_range(const struct argument *argument, struct grammar_word word, struct range *range) {
        size_t n = first_length(word);

        if (n < word.n)
                return read_within(argument, word.at, n, &range->from) &&
                       read_within(argument, word.at + n + 1, word.n - n - 1, &range->to) && range->from <= range->to &&
                       (argument->type != ARGUMENT_RANGE || range->to > 0);
        if (argument->type == ARGUMENT_RANGE)
                return false;
        if (argument->type == ARGUMENT_SPAN) {
                if (!read_within(argument, word.at, n, &range->from))
                        return false;
                range->to = range->from;
                return true;
        }
        /* torchvision's ColorJitter: one number is the distance to both sides. */
        if (!read_number(word.at, n, &range->to) || range->to < 0 || range->to > argument->maximum - argument->center)
                return false;
        range->from = fmax(argument->center - range->to, argument->minimum);
        range->to = argument->center + range->to;
        return true;
}

static bool values_is_in_list(const struct argument *argument, double number, const double *list, uint32_t n) {
        return !((argument->is_whole && rint(number) != number) || (argument->is_odd && fmod(number, 2) != 1) ||
                 (argument->is_range && n > 0 && number < list[n - 1]));
}

static bool may_have(const struct argument *argument, uint32_t n) {
        return !argument->counts || (n <= 31 && argument->counts & 1u << n);
}

static int read_list(struct value_store *store, const struct argument *argument, struct grammar_word word,
                     struct value *value) {
        double list[KIND_LIST_MAX], *kept;
        uint32_t n_list = 0;

        for (const char *at = word.at, *end = word.at + word.n;;) {
                size_t n = first_length((struct grammar_word){ at, (size_t)(end - at) });

                if (n_list == KIND_LIST_MAX || !read_within(argument, at, n, &list[n_list]) ||
                    !values_is_in_list(argument, list[n_list], list, n_list))
                        return -EINVAL;
                n_list++;
                if (at + n == end)
                        break;
                at += n + 1;
        }
        if (!may_have(argument, n_list))
                return -EINVAL;
        kept = take(store, n_list * sizeof(*kept));
        if (!kept)
                return -ENOMEM;
        value->list = memcpy(kept, list, n_list * sizeof(*kept));
        value->n_list = n_list;
        return 0;
}

/* "224", "..512" or "-1". */
static bool read_dimension(const struct argument *argument, const char *at, size_t n, int64_t *ret_dim) {
        bool varies = n > 2 && memcmp(at, "..", 2) == 0, is_any = n == 2 && memcmp(at, "-1", 2) == 0;
        uint64_t most = 0;

        if (!is_any && (!read_whole(varies ? at + 2 : at, varies ? n - 2 : n, &most) ||
                        (double)most < argument->minimum || (double)most > argument->maximum))
                return false;
        *ret_dim = varies ? -(int64_t)most : (int64_t)most;
        return true;
}

/* With ":" between them, or "," as Python has it. */
static int read_dimensions(struct value_store *store, const struct argument *argument, const char *at, const char *end,
                           struct value_form *form) {
        int64_t dims[KIND_LIST_MAX], *kept;
        uint32_t n_dims = 0;

        for (at += strspn(at, BLANKS); at < end || n_dims > 0; at += 1 + strspn(at + 1, BLANKS)) {
                size_t n = strcspn(at, ":,])" BLANKS);

                if (n_dims == KIND_LIST_MAX || !read_dimension(argument, at, n, &dims[n_dims]))
                        return -EINVAL;
                n_dims++;
                at += n + strspn(at + n, BLANKS);
                if (at >= end)
                        break;
                if (*at != ':' && *at != ',')
                        return -EINVAL;
        }
        if (!may_have(argument, n_dims))
                return -EINVAL;
        kept = take(store, n_dims * sizeof(*kept));
        if (!kept)
                return -ENOMEM;
        form->has_dims = true;
        form->dims = memcpy(kept, dims, n_dims * sizeof(*kept));
        form->n_dims = n_dims;
        return 0;
}

static int read_form(struct value_store *store, const struct argument *argument, struct grammar_word word,
                     struct value_form *form) {
        const char *bracket = memchr(word.at, '[', word.n), *end = word.at + word.n;
        size_t n = bracket ? (size_t)(bracket - word.at) : word.n;
        uint32_t dtype = (uint32_t)typed_find(word.at, n, argument->choices, argument->n_choices);

        *form = (struct value_form){ .has_dtype = dtype < argument->n_choices };
        form->dtype = form->has_dtype ? dtype : 0;
        if (word.n == 0 || (bracket && ((n > 0 && !form->has_dtype) || end[-1] != ']')))
                return -EINVAL;
        if (bracket)
                return read_dimensions(store, argument, bracket + 1, end - 1, form);
        return form->has_dtype ? 0 : read_dimensions(store, argument, word.at, end, form);
}

static int read_name(struct value_store *store, struct grammar_word word, struct value *value) {
        if (word.n == 0)
                return -EINVAL;
        value->text = keep(store, word);
        return value->text ? 0 : -ENOMEM;
}

/* Returns 0, -EINVAL: it is not allowed, -ENOMEM. */
static int read_one(struct value_store *store, const struct argument *argument, struct grammar_word word,
                    struct value *value) {
        bool is_good;
        int r;

        switch (argument->type) {
        case ARGUMENT_WHOLE:
                is_good = read_whole(word.at, word.n, &value->whole) && (double)value->whole >= argument->minimum &&
                          (double)value->whole <= argument->maximum;
                break;
        case ARGUMENT_NUMBER:
                is_good = read_within(argument, word.at, word.n, &value->number) &&
                          (!argument->is_whole || rint(value->number) == value->number);
                break;
        case ARGUMENT_FLAG:
                value->choice = value->flag = typed_is(word.at, word.n, "true");
                is_good = value->flag || typed_is(word.at, word.n, "false");
                break;
        case ARGUMENT_CHOICE:
                value->choice = (uint32_t)typed_find(word.at, word.n, argument->choices, argument->n_choices);
                value->flag = value->choice > 0;
                is_good = word.n > 0 && value->choice < argument->n_choices;
                break;
        case ARGUMENT_SIZE:
        case ARGUMENT_SIZE_SHORT:
                is_good = read_size(argument, word, value);
                break;
        case ARGUMENT_RANGE:
        case ARGUMENT_SPAN:
        case ARGUMENT_AROUND:
                is_good = read_range(argument, word, &value->range);
                break;
        case ARGUMENT_LIST:
        case ARGUMENT_FORM:
                r = argument->type == ARGUMENT_FORM ? read_form(store, argument, word, &value->form)
                                                    : read_list(store, argument, word, value);
                if (r == -ENOMEM)
                        return r;
                is_good = r == 0;
                break;
        case ARGUMENT_STEPS:
                is_good = word.n > 0 && *word.at == '[';
                break;
        case ARGUMENT_NAME:
        case ARGUMENT_COLUMN:
        case ARGUMENT_LENGTHS:
                return read_name(store, word, value);
        default:
                is_good = false;
                break;
        }
        if (is_good)
                return 0;
        *value = (struct value){ .is_word = argument->word && typed_is(word.at, word.n, argument->word) };
        return value->is_word ? 0 : -EINVAL;
}

/* ---- refusing it ----------------------------------------------------------------------------------------------- */

static int refuse_value(const struct values_reader *reader, const struct kind *kind, uint32_t idx,
                        const struct value *values, const struct grammar_argument *given) {
        const struct argument *argument = &kind->arguments[idx];
        struct grammar_word word = given->value, name = { argument->name, strlen(argument->name) };
        char expected[EXPECTED_MAX], hint[FAMILY_HINT_MAX] = "";
        struct nearest nearest;

        if (argument->type == ARGUMENT_STEPS) {
                values_describe(kind, argument, expected, sizeof(expected));
                return grammar_expect(reader->grammar, word.at, expected, reader->why);
        }
        if (argument->type == ARGUMENT_FORMS)
                name = given->key;
        nearest_begin(&nearest, word.at, word.n);
        for (uint32_t i = 0; i < argument->n_choices; i++)
                nearest_offer(&nearest, argument->choices[i]);
        values_describe(kind, argument, expected, sizeof(expected));
        if (*word.at == '\0')
                return grammar_refuse(reader->grammar, word.at, reader->why,
                                      "the text ends where %.*s should be; expected %s", (int)name.n, name.at,
                                      expected);
        if (reader->family->hint)
                reader->family->hint(kind, idx, values, word, hint, sizeof(hint));
        return grammar_refuse(reader->grammar, word.at, reader->why, "%.*s: \"%.*s\" is not allowed%s; expected %s%s",
                              grammar_shown(name), name.at, word.n > 0 ? grammar_shown(word) : 1, word.at,
                              nearest_hint(&nearest), expected, hint);
}

static int refuse_key(const struct values_reader *reader, const struct kind *kind, struct grammar_word key) {
        const struct kind_word *left_out = reader->family->left_out;
        char names[EXPECTED_MAX] = "";
        struct printer printer = { names, sizeof(names), 0 };
        struct nearest nearest;

        for (; left_out && left_out->word; left_out++)
                if (typed_is_class(key.at, key.n, left_out->word))
                        return grammar_refuse(reader->grammar, key.at, reader->why,
                                              "%s has no argument \"%.*s\"; leave it out: %s", kind->name,
                                              grammar_shown(key), key.at, left_out->text);
        nearest_begin(&nearest, key.at, key.n);
        for (uint32_t i = 0; i < kind_n_arguments(kind); i++) {
                nearest_offer(&nearest, kind->arguments[i].name);
                print(&printer, "%s%s", i > 0 ? ", " : "", kind->arguments[i].name);
        }
        return grammar_refuse(reader->grammar, key.at, reader->why, "%s has no argument \"%.*s\"%s; it has %s",
                              kind->name, grammar_shown(key), key.at, nearest_hint(&nearest),
                              names[0] ? names : "none");
}

static int refuse_unnamed(const struct values_reader *reader, const struct kind *kind, struct grammar_word value,
                          bool was_named) {
        bool is_number = value.n > 0 && memchr("+-.0123456789", *value.at, 13);

        if (kind_n_arguments(kind) == 0)
                return grammar_expect(reader->grammar, value.at, "\")\": it has no arguments", reader->why);
        if (!was_named && !kind->arguments[kind_n_arguments(kind) - 1].needs_key)
                return grammar_expect(reader->grammar, value.at, "\")\": the step has no more arguments", reader->why);
        if (!was_named)
                return grammar_expect(reader->grammar, value.at, "KEY=VALUE", reader->why);
        return grammar_expect(reader->grammar, value.at,
                              is_number ? "key=value, as after another key=value; a list is written mean=[0.5, 0.4, "
                                          "0.4], or mean=0.5:0.4:0.4"
                                        : "key=value, as after another key=value",
                              reader->why);
}

/* ---- the arguments of a step ----------------------------------------------------------------------------------- */

static bool is_argument(const struct argument *argument, struct grammar_word key) {
        return grammar_is(key, argument->name) || (argument->other_name && grammar_is(key, argument->other_name));
}

/* The argument that is meant; n: none is. */
static uint32_t values_find_argument(const struct kind *kind, uint32_t n, const struct value *values,
                                     struct grammar_word key) {
        uint32_t idx = n;

        for (uint32_t i = 0; i < n; i++) {
                const struct argument *argument = &kind->arguments[i];

                if (key.n == 0) {
                        if (argument->type == ARGUMENT_NUMBERS ||
                            (!values[i].is_given && argument->type != ARGUMENT_WEIGHTS && !argument->needs_key))
                                return i;
                } else if (argument->type != ARGUMENT_FORMS && is_argument(argument, key)) {
                        return i;
                } else if (argument->type == ARGUMENT_WEIGHTS || argument->type == ARGUMENT_FORMS) {
                        idx = i;
                }
        }
        return idx;
}

static int values_refuse_twice(const struct values_reader *reader, const struct kind *kind, const char *name, size_t n,
                               const char *at) {
        return grammar_refuse(reader->grammar, at, reader->why, "%.*s of %s is given twice", (int)n, name, kind->name);
}

/* One more number or form of a list that grows, of a step with up to n_most of them. */
static int values_add(const struct values_reader *reader, const struct kind *kind, uint32_t idx,
                      const struct grammar_argument *given, uint32_t n_most, struct value *values) {
        const struct argument *argument = &kind->arguments[idx];
        bool is_form = argument->type == ARGUMENT_FORMS, has_names = is_form || argument->type == ARGUMENT_WEIGHTS;
        struct value *value = &values[idx];
        double *list = (double *)(uintptr_t)value->list;
        const char **names = (const char **)(uintptr_t)value->names;
        struct value_form *forms = (struct value_form *)(uintptr_t)value->forms, form = { 0 };
        double number;
        int r = 0;

        for (uint32_t i = 0; names && i < value->n_list; i++)
                if (grammar_is(given->key, names[i]))
                        return values_refuse_twice(reader, kind, names[i], strlen(names[i]), given->value.at);
        if (is_form)
                r = read_form(reader->store, argument, given->value, &form);
        else if (!read_within(argument, given->value.at, given->value.n, &number) ||
                 !values_is_in_list(argument, number, list, value->n_list))
                r = -EINVAL;
        if (r == -EINVAL)
                return refuse_value(reader, kind, idx, values, given);
        if (value->n_list == KIND_LIST_MAX)
                return grammar_refuse(reader->grammar, given->value.at, reader->why, "%s: more than %u %s",
                                      argument->name, KIND_LIST_MAX, is_form ? "fields" : "numbers");
        if (value->n_list == 0) {
                list = is_form ? NULL : take(reader->store, n_most * sizeof(*list));
                forms = is_form ? take(reader->store, n_most * sizeof(*forms)) : NULL;
                names = has_names ? take(reader->store, n_most * sizeof(*names)) : NULL;
        }
        if (r < 0 || (!list && !forms) || (has_names && !names))
                return why_errno(reader->why, -ENOMEM, "%s", kind->name);
        form.at = given->key.at;
        if (is_form)
                forms[value->n_list] = form;
        else
                list[value->n_list] = number;
        if (has_names) {
                names[value->n_list] = keep(reader->store, given->key);
                if (!names[value->n_list])
                        return why_errno(reader->why, -ENOMEM, "%s", kind->name);
        }
        value->n_list++;
        value->list = list;
        value->forms = forms;
        value->names = names;
        value->is_set = value->is_given = true;
        return 0;
}

/* A field may be called as one of the other arguments: what is a form is said of the field. */
static bool means_field(const struct values_reader *reader, const struct kind *kind, uint32_t idx,
                        const struct value *values, struct grammar_word word) {
        const struct argument *last = &kind->arguments[kind_n_arguments(kind) - 1];
        enum argument_type type = kind->arguments[idx].type;
        struct value_form form;

        return last->type == ARGUMENT_FORMS &&
               (type == ARGUMENT_FLAG || (type == ARGUMENT_NAME && values[idx].is_given)) &&
               read_form(reader->store, last, word, &form) == 0;
}

static int values_read_argument(const struct values_reader *reader, const struct kind *kind,
                                const struct grammar_step *step, const struct grammar_argument *given, bool was_named,
                                struct value *values) {
        uint32_t n = kind_n_arguments(kind), idx = values_find_argument(kind, n, values, given->key);
        struct value value = { 0 };
        int r;

        if (given->key.n > 0 && idx == n)
                return refuse_key(reader, kind, given->key);
        if (given->key.n == 0 && (idx == n || (was_named && !reader->family->takes_any_sequence)))
                return refuse_unnamed(reader, kind, given->value, was_named);
        if (means_field(reader, kind, idx, values, given->value))
                idx = n - 1;
        if (kind->arguments[idx].type == ARGUMENT_NUMBERS || kind->arguments[idx].type == ARGUMENT_WEIGHTS ||
            kind->arguments[idx].type == ARGUMENT_FORMS)
                return values_add(reader, kind, idx, given, step->n_arguments, values);
        if (values[idx].is_given)
                return values_refuse_twice(reader, kind, kind->arguments[idx].name, strlen(kind->arguments[idx].name),
                                           given->value.at);
        r = read_one(reader->store, &kind->arguments[idx], given->value, &value);
        if (r == -EINVAL)
                return refuse_value(reader, kind, idx, values, given);
        if (r == 0 && kind->arguments[idx].type == ARGUMENT_STEPS)
                r = grammar_inside(reader->grammar, given->value, &value.inside);
        if (r < 0)
                return why_errno(reader->why, r, "%s", kind->name);
        value.is_set = value.is_given = true;
        value.written = given->value;
        values[idx] = value;
        return 0;
}

static int read_default(const struct values_reader *reader, const struct kind *kind, const struct grammar_step *step,
                        uint32_t idx, struct value *values) {
        const struct argument *argument = &kind->arguments[idx];
        struct value value = { 0 };
        int r;

        if (!argument->by_default && argument->is_optional)
                return 0;
        if (!argument->by_default)
                return grammar_refuse(reader->grammar, step->name.at, reader->why, "%s needs its %s, as in %s",
                                      kind->name, argument->name, kind->example);
        r = read_one(reader->store, argument,
                     (struct grammar_word){ argument->by_default, strlen(argument->by_default) }, &value);
        if (r == -EINVAL)
                return grammar_refuse(reader->grammar, step->name.at, reader->why,
                                      "%s has a default for %s that it does not allow itself: \"%s\"", kind->name,
                                      argument->name, argument->by_default);
        if (r < 0)
                return why_errno(reader->why, r, "%s", kind->name);
        value.is_set = true;
        values[idx] = value;
        return 0;
}

/* Does a bracket of it stay open to the end of the text? */
static bool is_open(const struct kind *kind, const struct value *values, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                if (kind->arguments[i].type == ARGUMENT_STEPS && values[i].is_given &&
                    (values[i].written.n == 1 || values[i].written.at[values[i].written.n - 1] != ']'))
                        return true;
        return false;
}

int values_read(const struct values_reader *reader, const struct kind *kind, const struct grammar_step *step,
                struct value *ret_values) {
        _cleanup_(plain_locale_endp) locale_t before = plain_locale_begin();
        uint32_t n = kind_n_arguments(kind);
        bool was_named = false;
        int r = 0;

        memset(ret_values, 0, n * sizeof(*ret_values));
        if (n > 0 && kind->arguments[0].type == ARGUMENT_ANYTHING && step->stop)
                return grammar_expect(reader->grammar, step->stop, step->expected, reader->why);
        if (n > 0 && kind->arguments[0].type == ARGUMENT_ANYTHING) {
                ret_values[0] = (struct value){ .is_set = true,
                                                .is_given = true,
                                                .text = keep(reader->store, step->inside),
                                                .written = step->inside };
                return ret_values[0].text ? 0 : why_errno(reader->why, -ENOMEM, "%s", kind->name);
        }
        for (uint32_t i = 0; i < step->n_arguments && r == 0; i++) {
                r = values_read_argument(reader, kind, step, &step->arguments[i], was_named, ret_values);
                was_named |= step->arguments[i].key.n > 0;
        }
        if (r == 0 && step->stop && !is_open(kind, ret_values, n)) /* of an open bracket, who reads its steps says it */
                return grammar_expect(reader->grammar, step->stop, step->expected, reader->why);
        if (r == 0 && step->comma && !reader->family->takes_any_sequence)
                return grammar_expect(reader->grammar, step->comma, "another argument after \",\"", reader->why);
        for (uint32_t i = 0; i < n && r == 0; i++)
                if (!ret_values[i].is_set)
                        r = read_default(reader, kind, step, i, ret_values);
        return r;
}

int values_refuse(const struct values_reader *reader, const struct kind *kind, const struct grammar_step *step,
                  const struct why *reason) {
        return grammar_refuse(reader->grammar, step->name.at, reader->why, "%s: %s", kind->name, reason->text);
}

/* ---- the normal spelling --------------------------------------------------------------------------------------- */

static void print_number(struct printer *printer, enum family_numbers how, double number) {
        char text[NUMBER_TEXT_MAX];

        if (how != FAMILY_FIFTEEN)
                number += 0.0; /* turns -0 into 0 */
        if (how == FAMILY_FIFTEEN)
                snprintf(text, sizeof(text), "%.15g", number);
        else if (how == FAMILY_PLAIN && rint(number) == number && fabs(number) < 1e6)
                snprintf(text, sizeof(text), "%.0f", number);
        else
                for (int precision = 1; precision <= 17; precision++) {
                        snprintf(text, sizeof(text), "%.*g", precision, number);
                        if (strtod(text, NULL) == number)
                                break;
                }
        print(printer, "%s", text);
}

static void print_list(struct printer *printer, enum family_numbers how, const struct argument *argument,
                       const struct value *value) {
        for (uint32_t i = 0; i < value->n_list; i++) {
                if (i > 0)
                        print(printer, "%s", argument->type == ARGUMENT_LIST ? ":" : ", ");
                if (value->names)
                        print(printer, "%s=", value->names[i]);
                if (how == FAMILY_WHOLE_LISTS && argument->is_whole)
                        print(printer, "%.0f", value->list[i]);
                else
                        print_number(printer, how, value->list[i]);
        }
}

static void print_value(struct printer *printer, enum family_numbers how, const struct argument *argument,
                        const struct value *value) {
        if (value->is_word) {
                print(printer, "%s", argument->word);
                return;
        }
        switch (argument->type) {
        case ARGUMENT_WHOLE:
                print(printer, "%" PRIu64, value->whole);
                break;
        case ARGUMENT_NUMBER:
                print_number(printer, how, value->number);
                break;
        case ARGUMENT_FLAG:
                print(printer, "%s", value->flag ? "true" : "false");
                break;
        case ARGUMENT_CHOICE:
                print(printer, "%s", argument->choices[value->choice]);
                break;
        case ARGUMENT_SIZE:
        case ARGUMENT_SIZE_SHORT:
                print(printer, "%u", value->height);
                if (value->width != (argument->type == ARGUMENT_SIZE ? value->height : 0))
                        print(printer, ":%u", value->width);
                break;
        case ARGUMENT_RANGE:
        case ARGUMENT_SPAN:
        case ARGUMENT_AROUND:
                print_number(printer, how, value->range.from);
                if (argument->type != ARGUMENT_SPAN || value->range.from != value->range.to) {
                        print(printer, ":");
                        print_number(printer, how, value->range.to);
                }
                break;
        case ARGUMENT_LIST:
        case ARGUMENT_NUMBERS:
        case ARGUMENT_WEIGHTS:
                print_list(printer, how, argument, value);
                break;
        case ARGUMENT_NAME:
        case ARGUMENT_COLUMN:
        case ARGUMENT_LENGTHS:
        case ARGUMENT_ANYTHING:
                print(printer, "%s", value->text);
                break;
        case ARGUMENT_STEPS: /* printed by who knows them */
        case ARGUMENT_FORM:
        case ARGUMENT_FORMS:
        case ARGUMENT_END:
                break;
        }
}

static bool has_key(const struct kind_family *family, const struct argument *argument, uint32_t idx) {
        if (argument->type == ARGUMENT_NUMBERS || argument->type == ARGUMENT_WEIGHTS ||
            argument->type == ARGUMENT_ANYTHING)
                return false;
        return family->keys == FAMILY_ALL_KEYS || (family->keys == FAMILY_NOT_THE_FIRST && idx > 0) ||
               (family->keys == FAMILY_OF_DEFAULTS && (argument->by_default || argument->is_optional));
}

size_t values_print(const struct kind_family *family, const struct kind *kind, const struct value *values,
                    values_inside_fn inside, const void *userdata, char *text, size_t size) {
        _cleanup_(plain_locale_endp) locale_t before = plain_locale_begin();
        struct printer printer = { text, size, 0 };
        const char *between = "(";

        print(&printer, "%s", kind->name);
        for (uint32_t i = 0; i < kind_n_arguments(kind); i++) {
                const struct argument *argument = &kind->arguments[i];
                bool has_room;

                if (!values[i].is_set || (family->hides_first_choice && argument->is_optional &&
                                          argument->type == ARGUMENT_CHOICE && values[i].choice == 0))
                        continue;
                print(&printer, "%s", between);
                between = ", ";
                if (has_key(family, argument, i))
                        print(&printer, "%s=", argument->name);
                if (argument->type != ARGUMENT_STEPS) {
                        print_value(&printer, family->numbers, argument, &values[i]);
                        continue;
                }
                print(&printer, "[");
                has_room = printer.n < printer.size;
                printer.n += inside(userdata, has_room ? text + printer.n : NULL, has_room ? size - printer.n : 0);
                print(&printer, "]");
        }
        if (between[0] == '(' && family->writes_parentheses)
                print(&printer, "(");
        if (between[0] == ',' || family->writes_parentheses)
                print(&printer, ")");
        return printer.n;
}
