/* Arguments of steps for sound: read, checked and printed in the same way for all of them. */

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sound/sound_step.h"
#include "proto/base/nearest.h"
#include "proto/base/typed.h"

#define NUMBER_TEXT_MAX 40u
#define EXPECTED_MAX    200u

const char *const SOUND_BOOLS[2] = { "false", "true" };

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void describe_choices(const struct sound_argument *argument, char *text, size_t size) {
        size_t n = 0;

        text[0] = '\0';
        for (uint32_t i = 0; i < argument->n_choices && n < size; i++)
                n += (size_t)snprintf(text + n, size - n, "%s%s",
                                      i == 0                        ? ""
                                      : i + 1 < argument->n_choices ? ", "
                                                                    : " or ",
                                      argument->choices[i]);
}

static void sound_arguments_describe(const struct sound_argument *argument, char *text, size_t size) {
        if (argument->kind == SOUND_ARGUMENT_CHOICE)
                describe_choices(argument, text, size);
        else
                snprintf(text, size, "%s from %.15g to %.15g%s",
                         argument->kind == SOUND_ARGUMENT_WHOLE   ? "a whole number"
                         : argument->kind == SOUND_ARGUMENT_RANGE ? "a number, or two as in LOW:HIGH,"
                                                                  : "a number",
                         argument->minimum, argument->maximum,
                         argument->by_default && strcmp(argument->by_default, SOUND_NONE_TEXT) == 0 ? ", or none" : "");
}

static int sound_arguments_refuse_value(const struct step_text *reader, const struct sound_argument *argument,
                                        size_t n) {
        char expected[EXPECTED_MAX];
        struct nearest nearest;
        bool is_choice = argument->kind == SOUND_ARGUMENT_CHOICE;

        sound_arguments_describe(argument, expected, sizeof(expected));
        return why_set(reader->why, -EINVAL, "pipeline, column %zu: \"%.*s\" is not allowed for %s%s; expected %s",
                       step_text_column(reader, reader->at), word_shown(n), reader->at, argument->name,
                       is_choice ? nearest_in(&nearest, reader->at, n, expected) : "", expected);
}

static bool sound_arguments_read_number(const struct sound_argument *argument, const char *text, size_t n,
                                        double *ret_number) {
        char copy[NUMBER_TEXT_MAX], *end;

        if (n == 0 || n >= sizeof(copy) || strspn(text, "0123456789.+-eE") < n)
                return false;
        memcpy(copy, text, n);
        copy[n] = '\0';
        *ret_number = strtod(copy, &end);
        if (*end || !(*ret_number >= argument->minimum && *ret_number <= argument->maximum))
                return false;
        return argument->kind != SOUND_ARGUMENT_WHOLE || *ret_number == floor(*ret_number);
}

static bool sound_arguments_read_numbers(const struct sound_argument *argument, const char *text, size_t n,
                                         struct sound_value *value) {
        size_t n_first = argument->kind == SOUND_ARGUMENT_RANGE ? strcspn(text, ":") : n;

        if (n_first >= n) {
                if (!sound_arguments_read_number(argument, text, n, &value->from))
                        return false;
                value->to = value->from;
                return true;
        }
        return sound_arguments_read_number(argument, text, n_first, &value->from) &&
               sound_arguments_read_number(argument, text + n_first + 1, n - n_first - 1, &value->to) &&
               value->from <= value->to;
}

int sound_argument_read(struct step_text *reader, const struct sound_argument *argument,
                        struct sound_value *ret_value) {
        size_t n = strcspn(reader->at, ",) \t\r\n");
        bool may_be_none = argument->by_default && strcmp(argument->by_default, SOUND_NONE_TEXT) == 0 &&
                           argument->kind != SOUND_ARGUMENT_CHOICE;
        struct sound_value value = { NAN, NAN };

        if (argument->kind == SOUND_ARGUMENT_CHOICE) {
                size_t i = typed_find(reader->at, n, argument->choices, argument->n_choices);

                if (i == argument->n_choices)
                        return sound_arguments_refuse_value(reader, argument, n);
                value.from = value.to = (double)i;
        } else if (!(may_be_none && typed_is(reader->at, n, SOUND_NONE_TEXT)) &&
                   !sound_arguments_read_numbers(argument, reader->at, n, &value)) {
                return sound_arguments_refuse_value(reader, argument, n);
        }
        reader->at += n;
        *ret_value = value;
        return 0;
}

/* ---- all arguments of a step ------------------------------------------------------------------------------------- */

static unsigned sound_arguments_n_arguments(const struct sound_step_type *type) {
        unsigned n = 0;

        while (type->arguments[n].kind != SOUND_ARGUMENT_END)
                n++;
        return n;
}

static int sound_arguments_refuse_key(const struct step_text *reader, const struct sound_step_type *type, size_t n) {
        char names[EXPECTED_MAX] = "";
        struct nearest nearest;
        size_t length = 0;

        for (unsigned i = 0; i < sound_arguments_n_arguments(type) && length < sizeof(names); i++)
                length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s", i > 0 ? ", " : "",
                                           type->arguments[i].name);
        if (word_is(reader->at, n, "sample_rate"))
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: leave sample_rate out: it is the rate of audio(rate=...)",
                               step_text_column(reader, reader->at));
        return why_set(reader->why, -EINVAL, "pipeline, column %zu: %s has no argument \"%.*s\"%s; it has %s",
                       step_text_column(reader, reader->at), type->name, word_shown(n), reader->at,
                       nearest_in(&nearest, reader->at, n, names), names[0] ? names : "none");
}

/* NAME=VALUE, or a value in its place; `seen` has a bit for each argument that was read. */
static int sound_arguments_read_one(struct step_text *reader, struct sound_step *step, unsigned *seen) {
        const struct sound_step_type *type = step->type;
        size_t n = word_length(reader->at), blanks = strspn(reader->at + n, " \t");
        unsigned idx = 0, n_all = sound_arguments_n_arguments(type);

        if (n > 0 && reader->at[n + blanks] == '=') {
                while (idx < n_all && !word_is(reader->at, n, type->arguments[idx].name))
                        idx++;
                if (idx == n_all)
                        return sound_arguments_refuse_key(reader, type, n);
                if (*seen & 1u << idx)
                        return step_text_refuse_here(reader, "each argument at most once");
                reader->at += n + blanks + 1;
                step_text_skip_blanks(reader);
        } else {
                while (idx < n_all && *seen >> idx)
                        idx++;
                if (idx == n_all)
                        return step_text_refuse_here(reader, n_all == 0 ? "\")\"" : "NAME=VALUE, or \")\"");
        }
        *seen |= 1u << idx;
        return sound_argument_read(reader, &type->arguments[idx], &step->values[idx]);
}

static int sound_arguments_fill_defaults(const struct step_text *reader, struct sound_step *step, unsigned seen) {
        for (unsigned i = 0; i < sound_arguments_n_arguments(step->type); i++) {
                const struct sound_argument *argument = &step->type->arguments[i];
                struct step_text initial = { .text = argument->by_default, .at = argument->by_default };
                int r;

                if (seen & 1u << i)
                        continue;
                if (!argument->by_default)
                        return why_set(reader->why, -EINVAL, "pipeline, column %zu: %s needs %s",
                                       step_text_column(reader, reader->at), step->type->name, argument->name);
                r = sound_argument_read(&initial, argument, &step->values[i]);
                assert(r == 0);
        }
        return 0;
}

int sound_arguments_read(struct step_text *reader, struct sound_step *step) {
        unsigned seen = 0;
        int r = *reader->at == '(' ? step_text_enter(reader) : 0;

        while (r > 0) {
                r = sound_arguments_read_one(reader, step, &seen);
                if (r == 0)
                        r = step_text_after_argument(reader);
        }
        return r < 0 ? r : sound_arguments_fill_defaults(reader, step, seen);
}

static void sound_arguments_print_value(const struct sound_argument *argument, const struct sound_value *value,
                                        FILE *stream) {
        if (argument->kind == SOUND_ARGUMENT_CHOICE)
                fputs(argument->choices[(unsigned)value->from], stream);
        else if (isnan(value->from))
                fputs(SOUND_NONE_TEXT, stream);
        else if (argument->kind == SOUND_ARGUMENT_RANGE && value->from != value->to)
                fprintf(stream, "%.15g:%.15g", value->from, value->to);
        else
                fprintf(stream, "%.15g", value->from);
}

void sound_arguments_print(const struct sound_step *step, FILE *stream) {
        unsigned n = sound_arguments_n_arguments(step->type);

        fputs(step->type->name, stream);
        for (unsigned i = 0; i < n; i++) {
                const struct sound_argument *argument = &step->type->arguments[i];

                fprintf(stream, "%s%s%s", i == 0 ? "(" : ", ", argument->by_default ? argument->name : "",
                        argument->by_default ? "=" : "");
                sound_arguments_print_value(argument, &step->values[i], stream);
        }
        fputs(n > 0 ? ")" : "", stream);
}

/* ---- for steps --------------------------------------------------------------------------------------------------- */

struct sound_value *sound_step_value(struct sound_step *step, const char *name) {
        unsigned i = 0;

        while (step->type->arguments[i].kind != SOUND_ARGUMENT_END && strcmp(step->type->arguments[i].name, name) != 0)
                i++;
        assert(step->type->arguments[i].kind != SOUND_ARGUMENT_END);
        return &step->values[i];
}

double sound_step_number(const struct sound_step *step, const char *name) {
        return sound_step_value((struct sound_step *)(uintptr_t)step, name)->from;
}

bool sound_step_is(const struct sound_step *step, const char *name) {
        return sound_step_number(step, name) != 0;
}
