#include "proto/order/making/order_arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/nearest.h"
#include "proto/base/step_text.h"

#define NUMBER_TEXT_MAX 64u

static int order_arguments_refuse(const struct dlp_argument *argument, const char *word, size_t n, const char *expected,
                                  struct why *why) {
        return why_set(why, -EINVAL, "%s: \"%.*s\" is not allowed; expected %s", argument->name, word_shown(n), word,
                       expected);
}

static bool order_arguments_is_within(const struct dlp_argument *argument, double number) {
        return number >= argument->minimum && number <= argument->maximum;
}

/* A plain decimal number: no hexadecimal, no "inf", no "nan". */
static bool order_arguments_read_number(const char *word, size_t n, double *ret_number) {
        char copy[NUMBER_TEXT_MAX], *end;

        if (n == 0 || n >= sizeof(copy) || strspn(word, "0123456789.eE+-") < n)
                return false;
        memcpy(copy, word, n);
        copy[n] = '\0';
        *ret_number = strtod(copy, &end);
        return *end == '\0' && isfinite(*ret_number);
}

static bool order_arguments_read_whole(const char *word, size_t n, uint64_t *ret_whole) {
        uint64_t whole = 0;

        if (n == 0)
                return false;
        for (size_t i = 0; i < n; i++) {
                unsigned digit = (unsigned)(word[i] - '0');

                if (digit > 9 || __builtin_mul_overflow(whole, 10, &whole) ||
                    __builtin_add_overflow(whole, digit, &whole))
                        return false;
        }
        *ret_whole = whole;
        return true;
}

/* Keeps a word in the text. The text has room for twice its own length, so it never runs out. */
static const char *keep_word(struct dlp_order_text *text, const char *word, size_t n) {
        char *kept = text->words + text->n_words;

        if (n >= sizeof(text->words) - text->n_words)
                return NULL;
        memcpy(kept, word, n);
        kept[n] = '\0';
        text->n_words += n + 1;
        return kept;
}

static int order_arguments_choose(const struct dlp_argument *argument, const char *word, size_t n,
                                  struct dlp_value *value, struct why *why) {
        char expected[160];
        const char *at = argument->choices;
        struct nearest nearest;

        for (uint32_t i = 0; *at; i++) {
                size_t length = strcspn(at, " ");

                if (length == n && memcmp(at, word, n) == 0) {
                        value->choice = i;
                        return 0;
                }
                at += length + strspn(at + length, " ");
        }
        snprintf(expected, sizeof(expected), "one of: %s%s", argument->choices,
                 nearest_in(&nearest, word, n, argument->choices));
        return order_arguments_refuse(argument, word, n, expected, why);
}

static int order_arguments_read_list(const struct dlp_argument *argument, const char *word, size_t n,
                                     struct dlp_order_text *text, struct dlp_value *value, struct why *why) {
        int r;

        for (;;) {
                size_t n_one = 0;

                while (n_one < n && word[n_one] != ':')
                        n_one++;
                r = dlp_argument_add(argument, NULL, 0, word, n_one, text, value, why);
                if (r < 0 || n_one == n)
                        return r;
                word += n_one + 1;
                n -= n_one + 1;
        }
}

int dlp_argument_read(const struct dlp_argument *argument, const char *word, size_t n, struct dlp_order_text *text,
                      struct dlp_value *ret_value, struct why *why) {
        struct dlp_value value = { .is_set = true };
        char expected[96];
        int r = 0;

        switch (argument->kind) {
        case DLP_ARGUMENT_WHOLE:
                snprintf(expected, sizeof(expected), "a whole number from %.17g to %.17g", argument->minimum,
                         argument->maximum);
                if (!order_arguments_read_whole(word, n, &value.whole) ||
                    !order_arguments_is_within(argument, (double)value.whole))
                        r = order_arguments_refuse(argument, word, n, expected, why);
                break;
        case DLP_ARGUMENT_REAL:
                snprintf(expected, sizeof(expected), "a number from %g to %g", argument->minimum, argument->maximum);
                if (!order_arguments_read_number(word, n, &value.real) ||
                    !order_arguments_is_within(argument, value.real))
                        r = order_arguments_refuse(argument, word, n, expected, why);
                break;
        case DLP_ARGUMENT_FLAG:
                value.flag = word_is(word, n, "true");
                if (!value.flag && !word_is(word, n, "false"))
                        r = order_arguments_refuse(argument, word, n, "true or false", why);
                break;
        case DLP_ARGUMENT_CHOICE:
                r = order_arguments_choose(argument, word, n, &value, why);
                break;
        case DLP_ARGUMENT_COLUMN:
        case DLP_ARGUMENT_LENGTHS:
                value.text = n > 0 ? keep_word(text, word, n) : NULL;
                if (!value.text)
                        r = order_arguments_refuse(argument, word, n, "the name of a column", why);
                break;
        case DLP_ARGUMENT_LIST:
                r = order_arguments_read_list(argument, word, n, text, &value, why);
                break;
        default:
                r = order_arguments_refuse(argument, word, n, "nothing", why);
                break;
        }
        if (r == 0)
                *ret_value = value;
        return r;
}

/* A list stays in one piece: if another one was read in between, as in mix(a=1, to=1:2, b=1), it moves to the end. */
static bool move_to_end(struct dlp_order_text *text, struct dlp_value *value) {
        uint32_t begin = (uint32_t)(value->list - text->numbers), end = begin + value->n_list;

        if (end == text->n_numbers)
                return true;
        if (text->n_numbers + value->n_list >= sizeof(text->numbers) / sizeof(text->numbers[0]))
                return false;
        for (uint32_t i = begin; i < end; i++, text->n_numbers++) {
                text->numbers[text->n_numbers] = text->numbers[i];
                text->names[text->n_numbers] = text->names[i];
        }
        value->list = &text->numbers[text->n_numbers - value->n_list];
        value->names = &text->names[text->n_numbers - value->n_list];
        return true;
}

int dlp_argument_add(const struct dlp_argument *argument, const char *name, size_t n_name, const char *word, size_t n,
                     struct dlp_order_text *text, struct dlp_value *value, struct why *why) {
        size_t n_room = sizeof(text->numbers) / sizeof(text->numbers[0]);
        char expected[96];
        double number;

        snprintf(expected, sizeof(expected), "%s from %g to %g", argument->is_whole ? "a whole number" : "a number",
                 argument->minimum, argument->maximum);
        if (!order_arguments_read_number(word, n, &number) || !order_arguments_is_within(argument, number) ||
            (argument->is_whole && rint(number) != number))
                return order_arguments_refuse(argument, word, n, expected, why);
        if (value->n_list == DLP_LIST_MAX || text->n_numbers == n_room ||
            (value->n_list > 0 && !move_to_end(text, value)))
                return why_set(why, -EINVAL, "%s: more than %u numbers", argument->name, DLP_LIST_MAX);
        if (value->n_list == 0) {
                value->list = &text->numbers[text->n_numbers];
                value->names = &text->names[text->n_numbers];
        }
        text->numbers[text->n_numbers] = number;
        text->names[text->n_numbers] = name ? keep_word(text, name, n_name) : NULL;
        text->n_numbers++;
        value->n_list++;
        value->is_set = true;
        return 0;
}

/* ---- to text --------------------------------------------------------------------------------------------------- */

static size_t order_arguments_print_number(double number, char *text, size_t size) {
        char shortest[NUMBER_TEXT_MAX];

        for (int precision = 1; precision <= 17; precision++) {
                snprintf(shortest, sizeof(shortest), "%.*g", precision, number + 0.0); /* turns -0 into 0 */
                if (strtod(shortest, NULL) == number)
                        break;
        }
        return (size_t)snprintf(text, size, "%s", shortest);
}

static size_t order_arguments_print_list(const struct dlp_argument *argument, const struct dlp_value *value, char *text,
                                         size_t size) {
        const char *between = argument->kind == DLP_ARGUMENT_LIST ? ":" : ", ";
        size_t length = 0;

        for (uint32_t i = 0; i < value->n_list && length < size; i++) {
                if (i > 0)
                        length += (size_t)snprintf(text + length, size - length, "%s", between);
                if (value->names[i] && length < size)
                        length += (size_t)snprintf(text + length, size - length, "%s=", value->names[i]);
                if (length < size)
                        length += order_arguments_print_number(value->list[i], text + length, size - length);
        }
        return length;
}

static size_t print_choice(const struct dlp_argument *argument, const struct dlp_value *value, char *text,
                           size_t size) {
        const char *at = argument->choices;

        for (uint32_t i = 0; i < value->choice; i++) {
                at += strcspn(at, " ");
                at += strspn(at, " ");
        }
        return (size_t)snprintf(text, size, "%.*s", (int)strcspn(at, " "), at);
}

size_t dlp_argument_print(const struct dlp_argument *argument, const struct dlp_value *value, char *text, size_t size) {
        switch (argument->kind) {
        case DLP_ARGUMENT_WHOLE:
                return (size_t)snprintf(text, size, "%" PRIu64, value->whole);
        case DLP_ARGUMENT_REAL:
                return order_arguments_print_number(value->real, text, size);
        case DLP_ARGUMENT_FLAG:
                return (size_t)snprintf(text, size, "%s", value->flag ? "true" : "false");
        case DLP_ARGUMENT_CHOICE:
                return print_choice(argument, value, text, size);
        case DLP_ARGUMENT_COLUMN:
        case DLP_ARGUMENT_LENGTHS:
                return (size_t)snprintf(text, size, "%s", value->text);
        default:
                return order_arguments_print_list(argument, value, text, size);
        }
}
