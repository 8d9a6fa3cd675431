#include "daemon/codec/plugged/plugin_step.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/steps/field_steps.h"
#include "proto/base/cleanup.h"
#include "proto/text/step_values.h"

#define NAME      "plugin"
#define EXAMPLE   NAME "(blocks.mosaic, size=8)"
#define WHOLE_MAX 9007199254740992.0 /* 2^53 */

const struct kind field_step_plugin = {
        .name = NAME,
        .doc = "Applies a step of a plug-in that the configuration names, `PLUGIN.STEP`, with the arguments that "
               "the plug-in says.",
        .example = EXAMPLE,
};

bool plugin_steps_are(const struct grammar_step *step) {
        return grammar_is(step->name, NAME);
}

int plugin_steps_check_bare(const struct grammar *grammar, struct grammar_steps steps, const struct plugins *plugins,
                            struct why *why) {
        for (uint32_t i = 0; i < steps.n; i++) {
                struct grammar_word name = steps.at[i].name, plugin = name;
                const char *dot = name.n > 0 ? memchr(name.at, '.', name.n) : NULL;

                plugin.n = dot ? (size_t)(dot - name.at) : 0;
                for (size_t k = 0; k < plugins_count(plugins) && plugin.n > 0 && plugin.n + 1 < name.n; k++)
                        if (grammar_is(plugin, plugin_name(plugins_at(plugins, k))))
                                return grammar_refuse(grammar, name.at, why,
                                                      "%.*s is a step of a plug-in: write plugin(%.*s)",
                                                      grammar_shown(name), name.at, grammar_shown(name), name.at);
        }
        return 0;
}

/* ---- arguments ------------------------------------------------------------------------------------------------- */

static const struct plugin_step *table_of(const struct plugin_step_text *step) {
        return &plugin_table(step->plugin)->steps[step->idx_step];
}

/* What a plug-in says of a step as a kind of ours. Its first argument is the step's own name. */
struct told_kind {
        struct kind kind;
        struct argument arguments[DLPLUGIN_ARGUMENTS_MAX + 2];
        const char *choices[DLPLUGIN_ARGUMENTS_MAX][DLPLUGIN_TEXT_MAX / 2];
        char words[DLPLUGIN_ARGUMENTS_MAX][DLPLUGIN_TEXT_MAX];
};

/* Cuts the words of a choice, which have blanks between them. */
static uint32_t cut_choices(const char *text, char *words, const char **ret_choices) {
        uint32_t n = 0;

        strcpy(words, text);
        for (char *rest = words, *word; (word = strsep(&rest, " "));)
                if (*word)
                        ret_choices[n++] = word;
        return n;
}

static void tell(const struct plugin_step *table, struct told_kind *told) {
        told->arguments[0] = (struct argument){ ARGUMENT_NAME, "step" };
        for (uint32_t i = 0; i < table->n_arguments; i++) {
                const struct plugin_argument *from = &table->arguments[i];
                struct argument *argument = &told->arguments[i + 1];
                bool is_whole = from->kind == DLPLUGIN_WHOLE;

                *argument = (struct argument){
                        .type = from->kind == DLPLUGIN_CHOICE ? ARGUMENT_CHOICE
                                : from->kind == DLPLUGIN_TEXT ? ARGUMENT_NAME
                                                              : ARGUMENT_LIST,
                        .name = from->name,
                        .by_default = from->must_be_given ? NULL : from->by_default,
                        .minimum = is_whole ? fmax(from->minimum, -WHOLE_MAX) : from->minimum,
                        .maximum = is_whole ? fmin(from->maximum, WHOLE_MAX) : from->maximum,
                        .counts = 1u << 1,
                        .is_whole = is_whole,
                };
                if (from->kind == DLPLUGIN_CHOICE) {
                        argument->n_choices = cut_choices(from->choices, told->words[i], told->choices[i]);
                        argument->choices = told->choices[i];
                } else if (from->kind == DLPLUGIN_TEXT) {
                        argument->form = "letters, digits, \"_\", \"-\" and \".\"";
                }
        }
        told->kind = (struct kind){ .name = table->name, .example = EXAMPLE, .arguments = told->arguments };
}

static bool is_plugin_word(const char *text) {
        size_t n = strlen(text);

        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)text[i]) && !strchr("_-.", text[i]))
                        return false;
        return n > 0 && n < DLPLUGIN_TEXT_MAX;
}

/* The shortest text that gives the same number. */
static void plugin_step_print_number(double number, char text[DLPLUGIN_TEXT_MAX]) {
        for (int digits = 1; digits <= 17; digits++) {
                snprintf(text, DLPLUGIN_TEXT_MAX, "%.*g", digits, number);
                if (strtod(text, NULL) == number)
                        return;
        }
}

/* Its normal spelling is what the plug-in gets as text. */
static int keep_value(const struct values_reader *reader, const struct argument *argument, const struct value *value,
                      struct plugin_step_text *step, uint32_t idx) {
        double number = 0;
        char text[DLPLUGIN_TEXT_MAX] = "";

        if (argument->type == ARGUMENT_LIST) {
                number = value->list[0];
                plugin_step_print_number(number, text);
        } else if (argument->type == ARGUMENT_CHOICE) {
                number = value->choice;
                strcpy(text, argument->choices[value->choice]);
        } else if (is_plugin_word(value->text)) {
                strcpy(text, value->text);
        } else if (value->is_given) {
                return grammar_refuse(reader->grammar, value->written.at, reader->why,
                                      "%s: \"%.*s\" is not allowed; expected %s", argument->name,
                                      grammar_shown(value->written), value->written.at, argument->form);
        } else {
                return why_set(reader->why, -EINVAL,
                               "the plug-in %s has a default for %s of %s that it does not allow "
                               "itself: \"%s\"",
                               plugin_name(step->plugin), argument->name, table_of(step)->name, value->text);
        }
        step->values.values[idx].number = number;
        strcpy(step->values.values[idx].text, text);
        return 0;
}

static int plugin_step_read_values(struct grammar *grammar, const struct grammar_step *written,
                                   struct plugin_step_text *step, struct why *why) {
        static const struct kind *const NONE[] = { NULL };
        static const struct kind_family PLUGIN_STEPS = { .noun = "step of a plug-in", .kinds = NONE };
        _Alignas(8) uint8_t memory[VALUE_STORE_BYTES(DLP_PIPELINE_MAX, 1) + DLPLUGIN_ARGUMENTS_MAX * DLPLUGIN_TEXT_MAX];
        struct value_store store = { memory, sizeof(memory) };
        const struct values_reader reader = { &PLUGIN_STEPS, grammar, &store, why };
        struct value values[DLPLUGIN_ARGUMENTS_MAX + 1];
        _cleanup_(freep) struct told_kind *told = calloc(1, sizeof(*told));
        int r;

        if (!told)
                return why_errno(why, -ENOMEM, "pipeline");
        tell(table_of(step), told);
        r = values_read(&reader, &told->kind, written, values);
        for (uint32_t i = 0; i < table_of(step)->n_arguments && r == 0; i++)
                r = keep_value(&reader, &told->arguments[i + 1], &values[i + 1], step, i);
        return r;
}

/* Letters, digits and underscores: no path. */
static size_t plain_length(const char *at, size_t n) {
        size_t n_plain = 0;

        while (n_plain < n && (isalnum((unsigned char)at[n_plain]) || at[n_plain] == '_'))
                n_plain++;
        return n_plain;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

int plugin_step_read(struct grammar *grammar, const struct grammar_step *written, struct plugins *plugins,
                     struct plugin_step_text *ret_step, struct why *why) {
        struct grammar_word name = written->n_arguments > 0 ? written->arguments[0].value
                                                            : (struct grammar_word){ written->inside.at, 0 };
        size_t n_plugin = plain_length(name.at, name.n), n_step = 0;
        struct plugin_step_text step = { 0 };
        struct why what;
        int r;

        if (!written->has_parentheses)
                return grammar_expect(grammar, written->name.at + written->name.n,
                                      "\"(\" and a step of a plug-in, as in " EXAMPLE, why);
        if (n_plugin == 0 || written->arguments[0].key.n > 0)
                return grammar_expect(grammar, name.at, "the names of a plug-in and its step, as in " EXAMPLE, why);
        step.column = grammar_column(grammar, name.at);
        r = plugins_find(plugins, name.at, n_plugin, &step.plugin, &what);
        if (r < 0)
                return grammar_refuse(grammar, name.at, why, "%s", what.text), r;
        if (n_plugin == name.n || name.at[n_plugin] != '.')
                return grammar_expect(grammar, name.at + n_plugin,
                                      "\".\" and the name of one of its steps, as in " EXAMPLE, why);
        n_plugin++;
        n_step = plain_length(name.at + n_plugin, name.n - n_plugin);
        r = plugin_find_step(step.plugin, name.at + n_plugin, n_step, &step.idx_step, &what);
        if (r < 0)
                return grammar_refuse(grammar, name.at + n_plugin, why, "%s", what.text);
        if (n_plugin + n_step < name.n)
                return grammar_expect(grammar, name.at + n_plugin + n_step, "\",\" or \")\"", why);
        r = plugin_step_read_values(grammar, written, &step, why);
        if (r == 0)
                *ret_step = step;
        return r;
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
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct plugin_step_text format = { 0 };
        struct grammar_steps steps;
        int r = grammar_new("format", text, &grammar, why);

        if (r == 0 && grammar_steps(grammar, grammar_all(grammar), &steps) < 0)
                r = why_errno(why, -ENOMEM, "format");
        if (r < 0)
                return r;
        if (steps.n == 0)
                return grammar_expect(grammar, grammar_all(grammar).at, EXAMPLE, why);
        r = plugin_step_read(grammar, &steps.at[0], plugins, &format, why);
        if (r < 0)
                return r;
        if (steps.n > 1)
                return grammar_expect(grammar, steps.at[1].name.at, "the end: a dataset has one format", why);
        if (table_of(&format)->kind != PLUGIN_FORMAT)
                return why_set(why, -EINVAL, "format, column %zu: %s.%s is %s, which a pipeline names", format.column,
                               plugin_name(format.plugin), table_of(&format)->name, table_kind(table_of(&format)));
        *ret_format = format;
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

bool plugin_collation_read(struct grammar *grammar, struct grammar_steps steps, struct plugins *plugins,
                           struct plugin_step_text *ret_collation) {
        const struct grammar_step *last = steps.n > 0 ? &steps.at[steps.n - 1] : NULL;
        struct plugin_step_text collation = { 0 };

        if (!last || !plugin_steps_are(last) || last->stop ||
            plugin_step_read(grammar, last, plugins, &collation, NULL) < 0 ||
            table_of(&collation)->kind != PLUGIN_COLLATION)
                return false;
        *ret_collation = collation;
        return true;
}

int plugin_steps_read(struct grammar *grammar, struct grammar_steps steps, struct plugins *plugins,
                      struct plugin_step_text ret_steps[PLUGIN_STEPS_A_FIELD_MAX], uint32_t *ret_n, struct why *why) {
        for (uint32_t n = 0; n < steps.n; n++) {
                const struct grammar_step *written = &steps.at[n];
                struct plugin_step_text step = { 0 };
                int r;

                if (!plugin_steps_are(written))
                        return grammar_expect(grammar, written->name.at,
                                              "another " NAME "(...), how samples become a batch, or the end: steps of "
                                              "the daemon stand before those of plug-ins",
                                              why);
                if (n == PLUGIN_STEPS_A_FIELD_MAX)
                        return grammar_refuse(grammar, written->name.at, why, "a field has up to %u steps of plug-ins",
                                              PLUGIN_STEPS_A_FIELD_MAX);
                r = plugin_step_read(grammar, written, plugins, &step, why);
                if (r == 0 && table_of(&step)->kind == PLUGIN_CODEC)
                        r = refuse_codec(&step, why);
                if (r == 0 && table_of(&step)->kind == PLUGIN_FORMAT)
                        r = plugin_step_refuse_format(&step, why);
                if (r == 0 && table_of(&step)->kind == PLUGIN_COLLATION)
                        r = refuse_collation(&step, why);
                if (r < 0)
                        return r;
                ret_steps[n] = step;
        }
        *ret_n = steps.n;
        return 0;
}

void plugin_step_print(const struct plugin_step_text *step, FILE *stream) {
        const struct plugin_step *table = table_of(step);

        fprintf(stream, NAME "(%s.%s", plugin_name(step->plugin), table->name);
        for (uint32_t i = 0; i < table->n_arguments; i++)
                fprintf(stream, ", %s=%s", table->arguments[i].name, step->values.values[i].text);
        fputs(")", stream);
}
