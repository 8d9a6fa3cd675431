#include "daemon/codec/plugged/plugin_step.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/step_text.h"
#include "proto/base/typed.h"

#define NAME      "plugin"
#define EXAMPLE   NAME "(blocks.mosaic, size=8)"
#define WHOLE_MAX 9007199254740992.0 /* 2^53 */

const char *plugin_steps_find(const char *text, size_t begin) {
        struct step_word word = { .end = begin };
        size_t end = strlen(text);

        while (step_text_next_word(text, word.end, end, &word))
                if (word_is(text + word.begin, word.n, NAME))
                        return text + word.begin;
        return NULL;
}

int plugin_steps_check_bare(const char *text, const struct plugins *plugins, struct why *why) {
        struct step_word word = { .end = 0 }, last = { 0 };
        size_t end = strlen(text), n_step;

        while (step_text_next_word(text, word.end, end, &word))
                last = word;
        n_step = text[word.begin] == '.' ? word_length(text + word.begin + 1) : 0;
        for (size_t i = 0; i < plugins_count(plugins) && n_step > 0 && last.begin + last.n == word.begin; i++)
                if (word_is(text + last.begin, last.n, plugin_name(plugins_at(plugins, i))))
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: %.*s is a step of a plug-in: write plugin(%.*s)",
                                       last.begin + 1, (int)(last.n + 1 + n_step), text + last.begin,
                                       (int)(last.n + 1 + n_step), text + last.begin);
        return 0;
}

/* ---- values --------------------------------------------------------------------------------------------------------
 */

/* One value of an argument: of the text, or its default. */
struct reading {
        struct step_text *reader;
        const struct plugin_step_text *step;
        const struct plugin_argument *argument;
};

static size_t plugin_step_value_length(const char *text) {
        return strcspn(text, ",) \t\r\n");
}

static int plugin_step_refuse_value(const struct reading *reading, size_t n, const char *expected) {
        return why_set(reading->reader->why, -EINVAL, "%s, column %zu: %s=\"%.*s\" of %s is not allowed; expected %s",
                       reading->reader->what, step_text_column(reading->reader, reading->reader->at),
                       reading->argument->name, word_shown(n), reading->reader->at,
                       plugin_table(reading->step->plugin)->steps[reading->step->idx_step].name, expected);
}

static int plugin_step_read_number(const struct reading *reading, const char *value, size_t n, double *ret_number) {
        const struct plugin_argument *argument = reading->argument;
        bool is_whole = argument->kind == DLPLUGIN_WHOLE,
             is_open = isinf(argument->minimum) && isinf(argument->maximum);
        char expected[128], *after;
        double number = NAN;

        snprintf(expected, sizeof(expected), is_open ? "a %s" : "a %s from %.17g to %.17g",
                 is_whole ? "whole number" : "number", argument->minimum, argument->maximum);
        if (n > 0 && strspn(value, "0123456789+-.eE") >= n) {
                number = strtod(value, &after);
                if (after != value + n)
                        number = NAN;
        }
        if (!isfinite(number) || number < argument->minimum || number > argument->maximum ||
            (is_whole && (number != trunc(number) || fabs(number) > WHOLE_MAX)))
                return plugin_step_refuse_value(reading, n, expected);
        *ret_number = number;
        return 0;
}

/* A choice is one of words with blanks between them. Exact names come first. */
static int plugin_step_read_choice(const struct reading *reading, const char *value, size_t n, double *ret_idx,
                                   char *ret_word) {
        char expected[DLPLUGIN_TEXT_MAX + 64];
        struct nearest nearest;

        for (unsigned pass = 0; pass < 2; pass++) {
                const char *word = reading->argument->choices;

                for (unsigned i = 0; *(word += strspn(word, " ")); i++) {
                        size_t n_word = strcspn(word, " ");
                        char name[DLPLUGIN_TEXT_MAX];

                        snprintf(name, sizeof(name), "%.*s", (int)n_word, word);
                        if (pass == 0 ? word_is(value, n, name) : typed_is(value, n, name)) {
                                *ret_idx = i;
                                strcpy(ret_word, name);
                                return 0;
                        }
                        word += n_word;
                }
        }
        snprintf(expected, sizeof(expected), "one of %s%s", reading->argument->choices,
                 nearest_in(&nearest, value, n, reading->argument->choices));
        return plugin_step_refuse_value(reading, n, expected);
}

static int plugin_step_read_word(const struct reading *reading, const char *value, size_t n,
                                 char ret_word[DLPLUGIN_TEXT_MAX]) {
        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)value[i]) && !strchr("_-.", value[i]))
                        return plugin_step_refuse_value(reading, n, "letters, digits, \"_\", \"-\" and \".\"");
        if (n == 0 || n >= DLPLUGIN_TEXT_MAX)
                return plugin_step_refuse_value(reading, n, "a word that is not too long");
        memcpy(ret_word, value, n);
        ret_word[n] = '\0';
        return 0;
}

/* The shortest text that gives the same number. */
static void plugin_step_print_number(double number, char text[DLPLUGIN_TEXT_MAX]) {
        for (int digits = 1; digits <= 17; digits++) {
                snprintf(text, DLPLUGIN_TEXT_MAX, "%.*g", digits, number);
                if (strtod(text, NULL) == number)
                        return;
        }
}

/* `value` is in the text, or the default. Its normal spelling is what the plug-in gets as text. */
static int plugin_step_take_value(const struct reading *reading, const char *value, size_t n,
                                  struct plugin_step_text *step, uint32_t idx) {
        double number = 0;
        char text[DLPLUGIN_TEXT_MAX] = "";
        int r;

        switch (reading->argument->kind) {
        case DLPLUGIN_CHOICE:
                r = plugin_step_read_choice(reading, value, n, &number, text);
                break;
        case DLPLUGIN_TEXT:
                r = plugin_step_read_word(reading, value, n, text);
                break;
        default:
                r = plugin_step_read_number(reading, value, n, &number);
                if (r == 0)
                        plugin_step_print_number(number, text);
        }
        if (r < 0)
                return r;
        step->values.values[idx].number = number;
        strcpy(step->values.values[idx].text, text);
        return 0;
}

/* ---- arguments -----------------------------------------------------------------------------------------------------
 */

static const struct plugin_step *table_of(const struct plugin_step_text *step) {
        return &plugin_table(step->plugin)->steps[step->idx_step];
}

static int plugin_step_refuse_key(const struct step_text *reader, const struct plugin_step *table, size_t n) {
        struct nearest nearest;
        char names[DLPLUGIN_ARGUMENTS_MAX * (DLPLUGIN_NAME_MAX + 2)] = "";

        nearest_begin(&nearest, reader->at, n);
        for (uint32_t i = 0; i < table->n_arguments; i++) {
                nearest_offer(&nearest, table->arguments[i].name);
                snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "",
                         table->arguments[i].name);
        }
        return why_set(reader->why, -EINVAL, "%s, column %zu: %s has no argument \"%.*s\"%s; it has %s", reader->what,
                       step_text_column(reader, reader->at), table->name, word_shown(n), reader->at,
                       nearest_hint(&nearest), names[0] ? names : "none");
}

/* Which argument comes next: the one that is named, else the first. Moves over "name =". */
static int find_argument(struct step_text *reader, const struct plugin_step *table, unsigned *seen, bool *was_named,
                         uint32_t *ret_idx) {
        size_t n = word_length(reader->at), n_blanks = strspn(reader->at + n, " \t\r\n");
        bool is_named = n > 0 && reader->at[n + n_blanks] == '=';
        uint32_t i = 0;

        while (i < table->n_arguments &&
               (is_named ? !word_is(reader->at, n, table->arguments[i].name) : (*seen & 1u << i) > 0))
                i++;
        if (is_named && i == table->n_arguments)
                return plugin_step_refuse_key(reader, table, n);
        if (i == table->n_arguments)
                return step_text_refuse_here(reader, "\")\": the step has no further arguments");
        if (*seen & 1u << i)
                return step_text_refuse_here(reader, "each argument once");
        if (!is_named && *was_named)
                return step_text_refuse_here(reader, "NAME=VALUE, as the argument before it");
        if (is_named)
                reader->at += n + n_blanks + 1;
        step_text_skip_blanks(reader);
        *was_named |= is_named;
        *seen |= 1u << i;
        *ret_idx = i;
        return 0;
}

static int plugin_step_read_argument(struct step_text *reader, struct plugin_step_text *step, unsigned *seen,
                                     bool *was_named) {
        const struct plugin_step *table = table_of(step);
        uint32_t idx = 0;
        int r = find_argument(reader, table, seen, was_named, &idx);
        struct reading reading = { reader, step, &table->arguments[idx] };
        size_t n = plugin_step_value_length(reader->at);

        if (r == 0)
                r = plugin_step_take_value(&reading, reader->at, n, step, idx);
        if (r == 0)
                reader->at += n;
        return r;
}

static int plugin_step_fill_in(struct step_text *reader, struct plugin_step_text *step, unsigned seen) {
        const struct plugin_step *table = table_of(step);

        for (uint32_t i = 0; i < table->n_arguments; i++) {
                const struct plugin_argument *argument = &table->arguments[i];
                struct reading reading = { reader, step, argument };
                int r;

                if (seen & 1u << i)
                        continue;
                if (argument->must_be_given)
                        return why_set(reader->why, -EINVAL, "%s, column %zu: %s needs %s=", reader->what, step->column,
                                       table->name, argument->name);
                r = plugin_step_take_value(&reading, argument->by_default, strlen(argument->by_default), step, i);
                if (r < 0)
                        return why_set(reader->why, -EINVAL,
                                       "%s, column %zu: the plug-in %s has a default for %s of %s that it does not "
                                       "allow itself: \"%s\"",
                                       reader->what, step->column, plugin_name(step->plugin), argument->name,
                                       table->name, argument->by_default);
        }
        return 0;
}

/* ---- steps ---------------------------------------------------------------------------------------------------------
 */

/* "blocks.mosaic" */
static int plugin_step_read_name(struct step_text *reader, struct plugins *plugins, struct plugin_step_text *step) {
        size_t n_plugin = word_length(reader->at), n_step;
        struct why what;
        int r;

        step->column = step_text_column(reader, reader->at);
        if (n_plugin == 0)
                return step_text_refuse_here(reader, "the names of a plug-in and its step, as in " EXAMPLE);
        r = plugins_find(plugins, reader->at, n_plugin, &step->plugin, &what);
        if (r < 0)
                return why_set(reader->why, r, "%s, column %zu: %s", reader->what, step->column, what.text);
        reader->at += n_plugin;
        if (*reader->at != '.')
                return step_text_refuse_here(reader, "\".\" and the name of one of its steps, as in " EXAMPLE);
        reader->at++;
        n_step = word_length(reader->at);
        r = plugin_find_step(step->plugin, reader->at, n_step, &step->idx_step, &what);
        if (r < 0)
                return why_set(reader->why, r, "%s, column %zu: %s", reader->what, step_text_column(reader, reader->at),
                               what.text);
        reader->at += n_step;
        return 0;
}

static int plugin_step_read_step(struct step_text *reader, struct plugins *plugins, struct plugin_step_text *step) {
        bool was_named = false;
        unsigned seen = 0;
        int r;

        reader->at += strlen(NAME);
        step_text_skip_blanks(reader);
        if (*reader->at != '(')
                return step_text_refuse_here(reader, "\"(\" and a step of a plug-in, as in " EXAMPLE);
        reader->at++;
        step_text_skip_blanks(reader);
        r = plugin_step_read_name(reader, plugins, step);
        for (;;) {
                if (r < 0)
                        return r;
                step_text_skip_blanks(reader);
                if (*reader->at == ')')
                        break;
                if (*reader->at != ',')
                        return step_text_refuse_here(reader, "\",\" or \")\"");
                reader->at++;
                step_text_skip_blanks(reader);
                r = plugin_step_read_argument(reader, step, &seen, &was_named);
        }
        reader->at++;
        return plugin_step_fill_in(reader, step, seen);
}

static int plugin_step_refuse_format(const struct plugin_step_text *step, struct why *why) {
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: %s.%s is a format: a dataset names it, as in format = \"" NAME
                       "(%s.%s)\"",
                       step->column, plugin_name(step->plugin), table_of(step)->name, plugin_name(step->plugin),
                       table_of(step)->name);
}

int plugin_format_parse(const char *text, struct plugins *plugins, struct plugin_step_text *ret_format,
                        struct why *why) {
        struct step_text reader = { .what = "format", .text = text, .at = text, .why = why };
        struct plugin_step_text format = { 0 };
        int r = plugin_step_read_step(&reader, plugins, &format);

        if (r < 0)
                return r;
        if (*reader.at)
                return step_text_refuse_here(&reader, "the end: a dataset has one format");
        if (table_of(&format)->kind != PLUGIN_FORMAT)
                return why_set(why, -EINVAL, "format, column %zu: %s.%s is %s, which a pipeline names", format.column,
                               plugin_name(format.plugin), table_of(&format)->name, table_kind(table_of(&format)));
        *ret_format = format;
        return 0;
}

int plugin_step_parse(const char *text, const char *at, struct plugins *plugins, struct plugin_step_text *ret_step,
                      const char **ret_after, struct why *why) {
        struct step_text reader = { .what = "pipeline", .text = text, .at = at, .why = why };
        struct plugin_step_text step = { 0 };
        int r = plugin_step_read_step(&reader, plugins, &step);

        if (r == 0 && table_of(&step)->kind == PLUGIN_FORMAT)
                r = plugin_step_refuse_format(&step, why);
        if (r < 0)
                return r;
        *ret_step = step;
        *ret_after = reader.at;
        return 0;
}

static int refuse_codec(const struct plugin_step_text *step, struct why *why) {
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: %s.%s is a codec, which reads stored bytes: it stands first",
                       step->column, plugin_name(step->plugin), table_of(step)->name);
}

static int refuse_collation(const struct plugin_step_text *step, struct why *why) {
        return why_set(
                why, -EINVAL,
                "pipeline, column %zu: %s.%s is a collation, which makes the batch of all its samples: it stands "
                "last in its part, without another collation or a function, and only views may follow it",
                step->column, plugin_name(step->plugin), table_of(step)->name);
}

bool plugin_collation_take(const char *text, size_t begin, size_t end, struct plugins *plugins,
                           struct plugin_step_text *ret_collation, size_t *ret_steps_end) {
        struct step_word word = { .end = begin }, last = { 0 };
        struct plugin_step_text collation = { 0 };
        struct why ignored;
        struct step_text reader = { .what = "pipeline", .text = text, .why = &ignored };

        while (step_text_next_word(text, word.end, end, &word))
                last = word;
        if (!word_is(text + last.begin, last.n, NAME))
                return false;
        reader.at = text + last.begin;
        if (plugin_step_read_step(&reader, plugins, &collation) < 0 || table_of(&collation)->kind != PLUGIN_COLLATION)
                return false;
        step_text_skip_blanks(&reader);
        if (reader.at != text + end)
                return false;
        *ret_collation = collation;
        *ret_steps_end = last.begin;
        return true;
}

int plugin_steps_parse(const char *text, const char *at, struct plugins *plugins,
                       struct plugin_step_text ret_steps[PLUGIN_STEPS_A_FIELD_MAX], uint32_t *ret_n, struct why *why) {
        struct step_text reader = { .what = "pipeline", .text = text, .at = at, .why = why };
        uint32_t n = 0;

        while (*reader.at) {
                struct plugin_step_text step = { 0 };
                int r;

                if (!word_is(reader.at, word_length(reader.at), NAME))
                        return step_text_refuse_here(&reader,
                                                     "another " NAME "(...), how samples become a batch, or the end: "
                                                     "steps of the daemon stand before those of plug-ins");
                if (n == PLUGIN_STEPS_A_FIELD_MAX)
                        return why_set(why, -EINVAL, "pipeline, column %zu: a field has up to %u steps of plug-ins",
                                       step_text_column(&reader, reader.at), PLUGIN_STEPS_A_FIELD_MAX);
                r = plugin_step_read_step(&reader, plugins, &step);
                if (r == 0 && table_of(&step)->kind == PLUGIN_CODEC)
                        r = refuse_codec(&step, why);
                if (r == 0 && table_of(&step)->kind == PLUGIN_FORMAT)
                        r = plugin_step_refuse_format(&step, why);
                if (r == 0 && table_of(&step)->kind == PLUGIN_COLLATION)
                        r = refuse_collation(&step, why);
                if (r < 0)
                        return r;
                ret_steps[n++] = step;
                step_text_skip_blanks(&reader);
        }
        *ret_n = n;
        return 0;
}

void plugin_step_print(const struct plugin_step_text *step, FILE *stream) {
        const struct plugin_step *table = table_of(step);

        fprintf(stream, NAME "(%s.%s", plugin_name(step->plugin), table->name);
        for (uint32_t i = 0; i < table->n_arguments; i++)
                fprintf(stream, ", %s=%s", table->arguments[i].name, step->values.values[i].text);
        fputs(")", stream);
}
