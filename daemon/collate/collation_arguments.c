/* The arguments of collations, key=value, by their tables. */

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collate/collation_type.h"
#include "proto/base/nearest.h"
#include "proto/base/typed.h"

#define COUNT_MAX 2147483647ul /* also of both numbers of a size: their product stays in 64 bits */

static unsigned collation_arguments_count_arguments(const struct collation_type *type) {
        unsigned n = 0;

        while (type->arguments[n].name)
                n++;
        return n;
}

static uint32_t *count_at(const struct collation *collation, const struct collation_argument *argument) {
        return (uint32_t *)(void *)((uint8_t *)(uintptr_t)collation + argument->offset);
}

static double *collation_arguments_number_at(const struct collation *collation,
                                             const struct collation_argument *argument) {
        return (double *)(void *)((uint8_t *)(uintptr_t)collation + argument->offset);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static int collation_arguments_read_number(struct step_text *reader, double *ret_number) {
        char *after;
        double number = strtod(reader->at, &after);

        if (after == reader->at || !isfinite(number))
                return step_text_refuse_here(reader, "a finite number");
        *ret_number = number == 0 ? 0 : number; /* -0 is 0 */
        reader->at = after;
        return 0;
}

static int collation_arguments_read_whole(struct step_text *reader, unsigned long minimum, uint32_t *ret_count) {
        char *after;
        unsigned long count;

        if (*reader->at < '0' || *reader->at > '9')
                return step_text_refuse_here(reader, minimum > 0 ? "a whole number, 1 or more" : "a whole number");
        errno = 0;
        count = strtoul(reader->at, &after, 10);
        if (errno != 0 || count < minimum || count > COUNT_MAX)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: \"%.*s\"; expected %lu to %lu",
                               step_text_column(reader, reader->at), word_shown((size_t)(after - reader->at)),
                               reader->at, minimum, COUNT_MAX);
        *ret_count = (uint32_t)count;
        reader->at = after;
        return 0;
}

static int collation_arguments_read_count(struct step_text *reader, uint32_t *ret_count) {
        return collation_arguments_read_whole(reader, 1, ret_count);
}

static int collation_arguments_read_list(struct step_text *reader, uint32_t *ret_n, uint32_t *ret_list) {
        uint32_t n = 0;
        int r;

        do {
                if (n == MLM_SPECIAL_MAX)
                        return step_text_refuse_here(reader, "the end of the list, which has 16 numbers at most");
                r = collation_arguments_read_whole(reader, 0, &ret_list[n++]);
        } while (r == 0 && *reader->at == ':' && reader->at++);
        *ret_n = n;
        return r;
}

static int collation_arguments_read_size(struct step_text *reader, const struct collation_argument *argument,
                                         uint32_t *ret_size) {
        uint32_t size[2] = { 0, 0 };
        size_t n_word = word_length(reader->at);
        int r = 0;

        if (argument->word && word_is(reader->at, n_word, argument->word)) {
                reader->at += n_word;
        } else if (argument->word && (*reader->at < '0' || *reader->at > '9')) {
                char expected[64];

                snprintf(expected, sizeof(expected), "%s, or a whole number", argument->word);
                return step_text_refuse_here(reader, expected);
        } else {
                r = collation_arguments_read_count(reader, &size[0]);
                size[1] = size[0];
                if (r == 0 && *reader->at == ':') {
                        reader->at++;
                        r = collation_arguments_read_count(reader, &size[1]);
                }
        }
        if (r == 0)
                memcpy(ret_size, size, sizeof(size));
        return r;
}

static int collation_arguments_read_shares(struct step_text *reader, double *ret_shares) {
        static const char EXPECTED[] = "two numbers from 0 to 1, the smaller one first, as in 0.2:0.8";
        const char *begin = reader->at;
        double shares[2] = { 0, 0 };
        int r = collation_arguments_read_number(reader, &shares[0]);

        if (r == 0 && *reader->at != ':')
                return step_text_refuse_here(reader, "\":\" and the larger number, as in 0.2:0.8");
        if (r == 0) {
                reader->at++;
                r = collation_arguments_read_number(reader, &shares[1]);
        }
        if (r < 0)
                return r;
        if (!(shares[0] >= 0 && shares[0] <= shares[1] && shares[1] > 0 && shares[1] <= 1))
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: \"%.*s\"; expected %s",
                               step_text_column(reader, begin), word_shown((size_t)(reader->at - begin)), begin,
                               EXPECTED);
        memcpy(ret_shares, shares, sizeof(shares));
        return 0;
}

static int collation_arguments_read_choice(struct step_text *reader, const struct collation_argument *argument,
                                           uint32_t *ret_choice) {
        size_t n = word_length(reader->at), n_names = 0, n_value = strcspn(reader->at, ",) \t\r\n");
        size_t choice = typed_find(reader->at, n_value, argument->choices, argument->n_choices);
        struct nearest nearest;
        char names[128] = "";

        if (n_value > 0 && choice < argument->n_choices) {
                *ret_choice = (uint32_t)choice;
                reader->at += n_value;
                return 0;
        }
        for (uint32_t i = 0; i < argument->n_choices; i++) {
                n_names += (size_t)snprintf(names + n_names, sizeof(names) - n_names, "%s%s",
                                            i == 0                         ? ""
                                            : i + 1 == argument->n_choices ? " or "
                                                                           : ", ",
                                            argument->choices[i]);
        }
        if (n == 0)
                return step_text_refuse_here(reader, names);
        return why_set(reader->why, -EINVAL, "pipeline, column %zu: \"%.*s\"%s; expected %s",
                       step_text_column(reader, reader->at), word_shown(n), reader->at,
                       nearest_in(&nearest, reader->at, n, names), names);
}

static int read_tensor_name(struct step_text *reader, char *ret_name) {
        size_t n = word_length(reader->at);

        if (n == 0 || n >= DLP_TENSOR_NAME_MAX)
                return step_text_refuse_here(reader, "a name of 1 to 31 bytes: letters, digits and \"_\"");
        memcpy(ret_name, COLLATION_WHOLE_NAME, 1);
        memcpy(ret_name + 1, reader->at, n);
        ret_name[1 + n] = '\0';
        reader->at += n;
        return 0;
}

static int collation_arguments_read_value(struct step_text *reader, const struct collation_argument *argument,
                                          struct collation *collation) {
        switch (argument->kind) {
        case COLLATION_NUMBER:
                return collation_arguments_read_number(reader, collation_arguments_number_at(collation, argument));
        case COLLATION_COUNT:
                return collation_arguments_read_count(reader, count_at(collation, argument));
        case COLLATION_WHOLE:
                return collation_arguments_read_whole(reader, 0, count_at(collation, argument));
        case COLLATION_LIST:
                return collation_arguments_read_list(reader, count_at(collation, argument),
                                                     count_at(collation, argument) + 1);
        case COLLATION_NAME:
                return read_tensor_name(reader, (char *)count_at(collation, argument));
        case COLLATION_SHARES:
                return collation_arguments_read_shares(reader, collation_arguments_number_at(collation, argument));
        case COLLATION_SIZE:
                return collation_arguments_read_size(reader, argument, count_at(collation, argument));
        default:
                return collation_arguments_read_choice(reader, argument, count_at(collation, argument));
        }
}

static int collation_arguments_refuse_key(const struct step_text *reader, const struct collation_type *type,
                                          size_t n_word) {
        unsigned n_arguments = collation_arguments_count_arguments(type);
        struct nearest nearest;
        char names[160] = "";

        for (unsigned i = 0; i < n_arguments; i++) {
                size_t n = strlen(names);

                snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "", type->arguments[i].name);
        }
        if (n_arguments == 0)
                return step_text_refuse_here(reader, "\")\": the step has no arguments");
        return why_set(reader->why, -EINVAL, "pipeline, column %zu: %s has no argument \"%.*s\"%s; it has %s",
                       step_text_column(reader, reader->at), type->name, word_shown(n_word), reader->at,
                       nearest_in(&nearest, reader->at, n_word, names), names);
}

/* Leaves the reader at the value. */
static int collation_arguments_read_key(struct step_text *reader, const struct collation_type *type, unsigned *given,
                                        unsigned *ret_idx) {
        size_t n = word_length(reader->at);
        const char *equals = reader->at + n + strspn(reader->at + n, " \t");

        if (type->first_needs_no_name && *given == 0 && *equals != '=') {
                *given = 1;
                *ret_idx = 0;
                return 0;
        }
        if (collation_arguments_count_arguments(type) > 0 && (n == 0 || *equals != '='))
                return step_text_refuse_here(reader, "key=value");
        for (unsigned i = 0; i < collation_arguments_count_arguments(type); i++) {
                if (!word_is(reader->at, n, type->arguments[i].name))
                        continue;
                if (*given & 1u << i)
                        return why_set(reader->why, -EINVAL, "pipeline, column %zu: %s of %s is given twice",
                                       step_text_column(reader, reader->at), type->arguments[i].name, type->name);
                *given |= 1u << i;
                *ret_idx = i;
                reader->at = equals + 1;
                step_text_skip_blanks(reader);
                return 0;
        }
        return collation_arguments_refuse_key(reader, type, n);
}

int collation_read_arguments(struct step_text *reader, const struct collation_type *type, struct collation *collation) {
        unsigned given = 0, idx = 0;
        int r;

        r = *reader->at == '(' ? step_text_enter(reader) : 0;
        while (r > 0) {
                r = collation_arguments_read_key(reader, type, &given, &idx);
                if (r == 0)
                        r = collation_arguments_read_value(reader, &type->arguments[idx], collation);
                if (r == 0)
                        r = step_text_after_argument(reader);
        }
        return r;
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

/* The shortest text that gives the same number. */
static void collation_arguments_print_number(double number, FILE *stream) {
        char text[32];

        for (int digits = 1; digits <= DBL_DECIMAL_DIG; digits++) {
                snprintf(text, sizeof(text), "%.*g", digits, number);
                if (strtod(text, NULL) == number)
                        break;
        }
        fputs(text, stream);
}

static void print_shares(const double *shares, FILE *stream) {
        collation_arguments_print_number(shares[0], stream);
        fputs(":", stream);
        collation_arguments_print_number(shares[1], stream);
}

/* As it is where the text does not give it. */
static bool is_nothing(const struct collation_argument *argument, const struct collation *collation) {
        if (argument->kind == COLLATION_NUMBER)
                return isnan(*collation_arguments_number_at(collation, argument));
        if (argument->kind == COLLATION_NAME)
                return *(const char *)count_at(collation, argument) == '\0';
        return argument->kind == COLLATION_SHARES ? !(collation_arguments_number_at(collation, argument)[1] > 0)
                                                  : *count_at(collation, argument) == 0;
}

static void collation_arguments_print_value(const struct collation_argument *argument,
                                            const struct collation *collation, FILE *stream) {
        const uint32_t *count = count_at(collation, argument);

        if (argument->kind == COLLATION_NUMBER)
                collation_arguments_print_number(*collation_arguments_number_at(collation, argument), stream);
        else if (argument->kind == COLLATION_NAME)
                fputs((const char *)count + 1, stream);
        else if (argument->kind == COLLATION_SHARES)
                print_shares(collation_arguments_number_at(collation, argument), stream);
        else if (argument->kind == COLLATION_LIST)
                for (uint32_t i = 0; i < *count; i++)
                        fprintf(stream, "%s%u", i > 0 ? ":" : "", count[1 + i]);
        else if (argument->kind == COLLATION_CHOICE)
                fputs(argument->choices[*count], stream);
        else if (argument->kind == COLLATION_SIZE && count[0] == 0)
                fputs(argument->word, stream);
        else if (argument->kind == COLLATION_SIZE && count[0] != count[1])
                fprintf(stream, "%u:%u", count[0], count[1]);
        else
                fprintf(stream, "%u", *count);
}

void collation_print(const struct collation_type *type, const struct collation *collation, FILE *stream) {
        bool is_first = true;

        fputs(type->name, stream);
        for (unsigned i = 0; i < collation_arguments_count_arguments(type); i++) {
                if (type->arguments[i].is_optional && is_nothing(&type->arguments[i], collation))
                        continue;
                fprintf(stream, "%s%s=", is_first ? "(" : ", ", type->arguments[i].name);
                collation_arguments_print_value(&type->arguments[i], collation, stream);
                is_first = false;
        }
        fputs(is_first ? "" : ")", stream);
}
