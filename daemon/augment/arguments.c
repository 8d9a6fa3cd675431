/* augment/arguments.c: the values of a step's arguments, from text and to text. */
#include "daemon/augment/step.h"
#include "proto/base/nearest.h"
#include "proto/base/typed.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_TEXT_MAX 64u /* characters of one number; the longest useful one has 24 */

static size_t arguments_length_of(const char *text) {
        return strcspn(text, ",) \t\r\n");
}

/* How many characters a message shows: at least one, but not too many. */
static int arguments_shown_length(const char *text) {
        size_t n = arguments_length_of(text);

        return n > 40 ? 40 : n == 0 ? 1 : (int)n;
}

static int arguments_refuse(const struct argument *argument, const char *text, const char *hint, const char *expected,
                            struct why *why) {
        if (*text == '\0')
                return why_set(why, -EINVAL, "the text ends where %s should be; expected %s", argument->name, expected);
        return why_set(why, -EINVAL, "%s: \"%.*s\" is not allowed%s; expected %s", argument->name,
                       arguments_shown_length(text), text, hint, expected);
}

/* Reads n characters as a plain decimal number: no hexadecimal, no "inf", no "nan". */
static int arguments_read_number(const char *text, size_t n, double *ret_number) {
        char copy[NUMBER_TEXT_MAX];
        char *end;
        double number;

        if (n == 0 || n >= sizeof(copy) || strspn(text, "0123456789.eE+-") < n)
                return -EINVAL;
        memcpy(copy, text, n);
        copy[n] = '\0';
        number = strtod(copy, &end);
        if (*end || !isfinite(number))
                return -EINVAL;
        *ret_number = number;
        return 0;
}

static int arguments_read_size(const char *text, size_t n, uint32_t *ret_size) {
        uint32_t size = 0;

        if (n == 0 || n > 5)
                return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return -EINVAL;
                size = size * 10 + (uint32_t)(text[i] - '0');
        }
        if (size < 1 || size > RECIPE_SIZE_MAX)
                return -EINVAL;
        *ret_size = size;
        return 0;
}

static int arguments_parse_size(const struct argument *argument, const char *text, struct value *value,
                                struct why *why) {
        size_t n = arguments_length_of(text), n_first = strcspn(text, ":,) \t\r\n");
        char expected[80];
        int r;

        r = arguments_read_size(text, n_first, &value->height);
        if (r == 0 && n_first < n)
                r = arguments_read_size(text + n_first + 1, n - n_first - 1, &value->width);
        else
                value->width = argument->kind == ARGUMENT_SIZE ? value->height : 0;
        if (r == 0)
                return (int)n;

        snprintf(expected, sizeof(expected), "a size in pixels, 1 to %u, or HEIGHT:WIDTH", RECIPE_SIZE_MAX);
        return arguments_refuse(argument, text, "", expected, why);
}

static bool arguments_is_within(const struct argument *argument, double number) {
        return number >= argument->minimum && number <= argument->maximum;
}

static int parse_range(const struct argument *argument, const char *text, struct value *value, struct why *why) {
        size_t n = arguments_length_of(text), n_first = strcspn(text, ":,) \t\r\n");
        struct range *range = &value->range;
        char expected[120];

        if (n_first < n && arguments_read_number(text, n_first, &range->from) == 0 &&
            arguments_read_number(text + n_first + 1, n - n_first - 1, &range->to) == 0 &&
            arguments_is_within(argument, range->from) && arguments_is_within(argument, range->to) &&
            range->from <= range->to && range->to > 0)
                return (int)n;

        snprintf(expected, sizeof(expected), "FROM:TO with %g <= FROM <= TO <= %g, such as %.12s", argument->minimum,
                 argument->maximum, argument->by_default);
        return arguments_refuse(argument, text, "", expected, why);
}

static int arguments_parse_number(const struct argument *argument, const char *text, struct value *value,
                                  struct why *why) {
        size_t n = arguments_length_of(text);
        char expected[80];

        if (arguments_read_number(text, n, &value->number) == 0 && arguments_is_within(argument, value->number))
                return (int)n;
        snprintf(expected, sizeof(expected), "a number from %g to %g", argument->minimum, argument->maximum);
        return arguments_refuse(argument, text, "", expected, why);
}

/* torchvision's ColorJitter: one number is the distance to both sides, two numbers are a range. */
static int parse_around(const struct argument *argument, const char *text, struct value *value, struct why *why) {
        size_t n = arguments_length_of(text), n_first = strcspn(text, ":,) \t\r\n");
        struct range *range = &value->range;
        char expected[120];
        double reach;

        if (n_first < n) {
                if (arguments_read_number(text, n_first, &range->from) == 0 &&
                    arguments_read_number(text + n_first + 1, n - n_first - 1, &range->to) == 0 &&
                    arguments_is_within(argument, range->from) && arguments_is_within(argument, range->to) &&
                    range->from <= range->to)
                        return (int)n;
        } else if (arguments_read_number(text, n, &reach) == 0 && reach >= 0 &&
                   reach <= argument->maximum - argument->center) {
                range->from = fmax(argument->center - reach, argument->minimum);
                range->to = argument->center + reach;
                return (int)n;
        }

        snprintf(expected, sizeof(expected), "a number from 0 to %g, or FROM:TO with %g <= FROM <= TO <= %g",
                 argument->maximum - argument->center, argument->minimum, argument->maximum);
        return arguments_refuse(argument, text, "", expected, why);
}

/* Reads the numbers of a list. Returns how many; -EINVAL if there are too many, or one is not a number within the
 * bounds. */
static int arguments_read_list(const struct argument *argument, const char *text, size_t n, double *ret_list) {
        uint32_t n_list = 0;

        for (;;) {
                size_t n_one = strcspn(text, ":,) \t\r\n");
                double number;

                if (n_list == LIST_MAX || arguments_read_number(text, n_one, &number) < 0 ||
                    !arguments_is_within(argument, number) || (argument->is_whole && rint(number) != number) ||
                    (argument->is_odd && fmod(number, 2) != 1) ||
                    (argument->is_range && n_list > 0 && number < ret_list[n_list - 1]))
                        return -EINVAL;
                ret_list[n_list++] = number;
                if (n_one == n)
                        return (int)n_list;
                text += n_one + 1;
                n -= n_one + 1;
        }
}

static int parse_list(const struct argument *argument, const char *text, struct value *value, struct why *why) {
        size_t n = arguments_length_of(text);
        int n_list = arguments_read_list(argument, text, n, value->list);
        char expected[160];

        if (n_list > 0 && argument->counts & 1u << n_list) {
                value->n_list = (uint32_t)n_list;
                return (int)n;
        }
        if (argument->word && typed_is(text, n, argument->word))
                return (int)n;
        snprintf(expected, sizeof(expected), "%s, %s from %g to %g%s%s", argument->form,
                 argument->is_odd     ? "odd numbers"
                 : argument->is_whole ? "whole numbers"
                                      : "numbers",
                 argument->minimum, argument->maximum, argument->word ? ", or the word " : "",
                 argument->word ? argument->word : "");
        return arguments_refuse(argument, text, "", expected, why);
}

/* "box, bilinear or lanczos" */
static void arguments_print_choices(const struct argument *argument, char *text, size_t size) {
        size_t n = 0;

        for (uint32_t i = 0; i < argument->n_choices && n < size; i++) {
                const char *between = i + 1 == argument->n_choices ? " or " : ", ";

                n += (size_t)snprintf(text + n, size - n, "%s%s", i ? between : "", argument->choices[i]);
        }
}

static int parse_choice(const struct argument *argument, const char *text, struct value *value, struct why *why) {
        size_t n = arguments_length_of(text);
        char expected[160] = "";
        struct nearest nearest;

        value->choice = (uint32_t)typed_find(text, n, argument->choices, argument->n_choices);
        if (n > 0 && value->choice < argument->n_choices)
                return (int)n;
        nearest_begin(&nearest, text, n);
        for (uint32_t i = 0; i < argument->n_choices; i++)
                nearest_offer(&nearest, argument->choices[i]);
        arguments_print_choices(argument, expected, sizeof(expected));
        return arguments_refuse(argument, text, nearest_hint(&nearest), expected, why);
}

int argument_parse(const struct argument *argument, const char *text, struct value *ret_value, struct why *why) {
        struct value value = {};
        int r = -EINVAL;

        switch (argument->kind) {
        case ARGUMENT_SIZE:
        case ARGUMENT_SIZE_SHORT:
                r = arguments_parse_size(argument, text, &value, why);
                break;
        case ARGUMENT_RANGE:
                r = parse_range(argument, text, &value, why);
                break;
        case ARGUMENT_NUMBER:
                r = arguments_parse_number(argument, text, &value, why);
                break;
        case ARGUMENT_AROUND:
                r = parse_around(argument, text, &value, why);
                break;
        case ARGUMENT_LIST:
                r = parse_list(argument, text, &value, why);
                break;
        case ARGUMENT_CHOICE:
                r = parse_choice(argument, text, &value, why);
                break;
        case ARGUMENT_STEPS: /* read by who reads the steps */
        case ARGUMENT_END:
                break;
        }
        if (r > 0)
                *ret_value = value;
        return r;
}

static void arguments_print_number(double number, char *text, size_t size) {
        if (rint(number) == number && fabs(number) < 1e6) { /* 90, not 9e+01 */
                snprintf(text, size, "%.0f", number + 0.0);
                return;
        }
        for (int precision = 1; precision <= 17; precision++) {
                snprintf(text, size, "%.*g", precision, number + 0.0); /* + 0.0, so that -0 is printed as 0 */
                if (strtod(text, NULL) == number)
                        return;
        }
}

static void print_range(const struct range *range, char *text, size_t size) {
        char from[NUMBER_TEXT_MAX], to[NUMBER_TEXT_MAX];

        arguments_print_number(range->from, from, sizeof(from));
        arguments_print_number(range->to, to, sizeof(to));
        snprintf(text, size, "%s:%s", from, to);
}

static void arguments_print_list(const struct argument *argument, const struct value *value, char *text, size_t size) {
        size_t n = 0;

        if (argument->word && value->n_list == 0)
                snprintf(text, size, "%s", argument->word);
        for (uint32_t i = 0; i < value->n_list && n < size; i++) {
                char number[NUMBER_TEXT_MAX];

                arguments_print_number(value->list[i], number, sizeof(number));
                n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ":" : "", number);
        }
}

void argument_print(const struct argument *argument, const struct value *value, char *text, size_t size) {
        switch (argument->kind) {
        case ARGUMENT_SIZE:
        case ARGUMENT_SIZE_SHORT:
                if (value->width == (argument->kind == ARGUMENT_SIZE ? value->height : 0))
                        snprintf(text, size, "%u", value->height);
                else
                        snprintf(text, size, "%u:%u", value->height, value->width);
                break;
        case ARGUMENT_RANGE:
        case ARGUMENT_AROUND:
                print_range(&value->range, text, size);
                break;
        case ARGUMENT_NUMBER:
                arguments_print_number(value->number, text, size);
                break;
        case ARGUMENT_LIST:
                arguments_print_list(argument, value, text, size);
                break;
        case ARGUMENT_CHOICE:
                snprintf(text, size, "%s", argument->choices[value->choice]);
                break;
        case ARGUMENT_STEPS:
        case ARGUMENT_END:
                *text = '\0';
                break;
        }
}
