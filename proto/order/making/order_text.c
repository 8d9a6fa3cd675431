#include "proto/order/making/order_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/nearest.h"
#include "proto/base/step_text.h"
#include "proto/order/making/order_arguments.h"

#define END ",) \t\r\n" /* what ends a value */

/* ---- reading --------------------------------------------------------------------------------------------------- */

static uint32_t order_text_n_arguments(const struct dlp_step_type *type) {
        uint32_t n = 0;

        while (type->arguments[n].kind != DLP_ARGUMENT_END)
                n++;
        return n;
}

/* Puts the place before a reason that names only the argument. */
static int order_text_refuse_at(const struct step_text *steps, const char *at, const struct dlp_step_type *type,
                                const struct why *reason) {
        return why_set(steps->why, -EINVAL, "%s, column %zu: %s: %s", steps->what, step_text_column(steps, at),
                       type->name, reason->text);
}

static bool takes_any_name(const struct dlp_argument *argument) {
        return argument->kind == DLP_ARGUMENT_WEIGHTS;
}

static bool is_list_of_all(const struct dlp_argument *argument) {
        return argument->kind == DLP_ARGUMENT_WEIGHTS || argument->kind == DLP_ARGUMENT_NUMBERS;
}

/* The argument of a name; else that which takes any name; else n. */
static uint32_t argument_named(const struct dlp_step_type *type, const char *name, size_t n_name) {
        uint32_t n = order_text_n_arguments(type), idx = n;

        for (uint32_t i = 0; i < n; i++) {
                if (word_is(name, n_name, type->arguments[i].name))
                        return i;
                if (takes_any_name(&type->arguments[i]))
                        idx = i;
        }
        return idx;
}

/* Values without a name fill the arguments in their sequence; numbers without names are all one argument's. */
static uint32_t next_unnamed(const struct dlp_step *step) {
        uint32_t n = order_text_n_arguments(step->type);

        for (uint32_t i = 0; i < n; i++) {
                const struct dlp_argument *argument = &step->type->arguments[i];

                if (argument->kind == DLP_ARGUMENT_NUMBERS || (!step->values[i].is_set && !takes_any_name(argument)))
                        return i;
        }
        return n;
}

static int order_text_refuse_argument(const struct step_text *steps, const struct dlp_step_type *type, const char *name,
                                      size_t n_name) {
        struct nearest nearest;

        nearest_begin(&nearest, name, n_name);
        for (uint32_t i = 0; i < order_text_n_arguments(type); i++)
                nearest_offer(&nearest, type->arguments[i].name);
        return why_set(steps->why, -EINVAL, "%s, column %zu: %s does not take \"%.*s\"%s; expected as in %s",
                       steps->what, step_text_column(steps, name), type->name, word_shown(n_name), name,
                       nearest_hint(&nearest), type->example);
}

static int order_text_read_argument(struct step_text *steps, struct dlp_order_text *text, struct dlp_step *step) {
        const struct dlp_step_type *type = step->type;
        const char *name = steps->at, *value;
        size_t n_name = strcspn(name, "=" END);
        bool is_named = name[n_name] == '=';
        uint32_t idx = is_named ? argument_named(type, name, n_name) : next_unnamed(step);
        const struct dlp_argument *argument = &type->arguments[idx];
        struct why reason = { "" };
        int r;

        if (argument->kind == DLP_ARGUMENT_END)
                return order_text_refuse_argument(steps, type, name, n_name);
        value = is_named ? name + n_name + 1 : name;
        steps->at = value + strcspn(value, END);
        if (is_list_of_all(argument)) {
                bool takes_name = takes_any_name(argument);

                for (uint32_t i = 0; takes_name && i < step->values[idx].n_list; i++)
                        if (word_is(name, n_name, step->values[idx].names[i]))
                                return why_set(steps->why, -EINVAL, "%s, column %zu: %.*s is given twice", steps->what,
                                               step_text_column(steps, name), word_shown(n_name), name);
                r = dlp_argument_add(argument, takes_name ? name : NULL, n_name, value, (size_t)(steps->at - value),
                                     text, &step->values[idx], &reason);
        } else if (step->values[idx].is_set) {
                return why_set(steps->why, -EINVAL, "%s, column %zu: %s is given twice", steps->what,
                               step_text_column(steps, name), argument->name);
        } else {
                r = dlp_argument_read(argument, value, (size_t)(steps->at - value), text, &step->values[idx], &reason);
        }
        return r < 0 ? order_text_refuse_at(steps, value, type, &reason) : 0;
}

static int order_text_read_arguments(struct step_text *steps, struct dlp_order_text *text, struct dlp_step *step) {
        int r;

        if (*steps->at != '(')
                return 0;
        do {
                steps->at++;
                step_text_skip_blanks(steps);
                if (*steps->at == ')')
                        break;
                r = order_text_read_argument(steps, text, step);
                if (r < 0)
                        return r;
                step_text_skip_blanks(steps);
        } while (*steps->at == ',');
        if (*steps->at != ')')
                return step_text_refuse_here(steps, "\",\" or \")\"");
        steps->at++;
        return 0;
}

static int complete_arguments(struct step_text *steps, const char *at, struct dlp_order_text *text,
                              struct dlp_step *step) {
        uint32_t n = order_text_n_arguments(step->type);
        struct why reason = { "" };

        for (uint32_t i = 0; i < n; i++) {
                const struct dlp_argument *argument = &step->type->arguments[i];
                int r;

                if (step->values[i].is_set || argument->is_optional)
                        continue;
                if (!argument->by_default)
                        return why_set(steps->why, -EINVAL, "%s, column %zu: %s lacks %s; expected as in %s",
                                       steps->what, step_text_column(steps, at), step->type->name, argument->name,
                                       step->type->example);
                r = dlp_argument_read(argument, argument->by_default, strlen(argument->by_default), text,
                                      &step->values[i], &reason);
                if (r < 0)
                        return order_text_refuse_at(steps, at, step->type, &reason);
        }
        if (step->type->check && step->type->check(step, &reason) < 0)
                return order_text_refuse_at(steps, at, step->type, &reason);
        return 0;
}

/* A chooser is the first step, a grouper the last one. */
static int check_role(const struct step_text *steps, const char *at, const struct dlp_order_text *text,
                      const struct dlp_step_type *type) {
        const struct dlp_step_type *before = text->n_steps > 0 ? text->steps[text->n_steps - 1].type : NULL;

        if (before && type->role == DLP_CHOOSER)
                return why_set(steps->why, -EINVAL,
                               "%s, column %zu: %s chooses the samples, so it must come first, before %s", steps->what,
                               step_text_column(steps, at), type->name, before->name);
        if (before && before->role == DLP_GROUPER)
                return why_set(steps->why, -EINVAL, "%s, column %zu: %s cannot follow %s, which makes batches",
                               steps->what, step_text_column(steps, at), type->name, before->name);
        return 0;
}

static int order_text_read_step(struct step_text *steps, struct dlp_order_text *text) {
        const char *at = steps->at;
        size_t n = word_length(at);
        struct dlp_step *step = &text->steps[text->n_steps];
        struct nearest nearest;
        int r;

        if (n == 0)
                return step_text_refuse_here(steps, "a sampler");
        if (text->n_steps == DLP_ORDER_STEPS_MAX)
                return why_set(steps->why, -EINVAL, "%s, column %zu: more than %u steps", steps->what,
                               step_text_column(steps, at), DLP_ORDER_STEPS_MAX);
        step->type = dlp_step_type_find(at, n);
        step->follows_chooser = text->n_steps > 0 && text->steps[0].type->role == DLP_CHOOSER;
        if (!step->type)
                return why_set(steps->why, -EINVAL, "%s, column %zu: \"%.*s\" is unknown%s; choose one of: %s",
                               steps->what, step_text_column(steps, at), word_shown(n), at,
                               nearest_in(&nearest, at, n, dlp_step_names), dlp_step_names);
        r = check_role(steps, at, text, step->type);
        if (r < 0)
                return r;
        steps->at += n;
        r = order_text_read_arguments(steps, text, step);
        if (r == 0)
                r = complete_arguments(steps, at, text, step);
        if (r == 0)
                text->n_steps++;
        return r;
}

int dlp_order_text_parse(const char *text, struct dlp_order_text *ret_text, struct why *why) {
        struct step_text steps = { .what = "sampler", .text = text, .at = text, .why = why };
        int r;

        memset(ret_text, 0, sizeof(*ret_text));
        if (strlen(text) >= DLP_SAMPLER_MAX)
                return why_set(why, -EINVAL, "sampler: is longer than %u bytes", DLP_SAMPLER_MAX - 1);
        for (step_text_skip_blanks(&steps); *steps.at; step_text_skip_blanks(&steps)) {
                r = order_text_read_step(&steps, ret_text);
                if (r < 0)
                        return r;
                if (*steps.at && !strchr(" \t\r\n", *steps.at))
                        return step_text_refuse_here(&steps, "a blank between steps");
        }
        return 0;
}

/* ---- the normal spelling --------------------------------------------------------------------------------------- */

static size_t order_text_print_step(const struct dlp_step *step, char *text, size_t size) {
        size_t length = (size_t)snprintf(text, size, "%s", step->type->name);
        const char *before = "(";

        for (uint32_t i = 0; i < order_text_n_arguments(step->type) && length < size; i++) {
                const struct dlp_argument *argument = &step->type->arguments[i];

                if (!step->values[i].is_set)
                        continue;
                length += (size_t)snprintf(text + length, size - length, "%s", before);
                if (!is_list_of_all(argument) && length < size)
                        length += (size_t)snprintf(text + length, size - length, "%s=", argument->name);
                if (length < size)
                        length += dlp_argument_print(argument, &step->values[i], text + length, size - length);
                before = ", ";
        }
        if (length < size && before[0] == ',')
                length += (size_t)snprintf(text + length, size - length, ")");
        return length;
}

int dlp_order_text_print(const struct dlp_order_text *text, char *ret_text, struct why *why) {
        char normal[DLP_SAMPLER_MAX] = "";
        size_t length = 0;

        for (uint32_t i = 0; i < text->n_steps && length < sizeof(normal); i++) {
                if (i > 0)
                        normal[length++] = ' ';
                length += order_text_print_step(&text->steps[i], normal + length, sizeof(normal) - length);
        }
        if (length >= sizeof(normal))
                return why_set(why, -EINVAL, "sampler: is longer than %u bytes with its defaults", DLP_SAMPLER_MAX - 1);
        memcpy(ret_text, normal, sizeof(normal));
        return 0;
}

/* ---- what it says ---------------------------------------------------------------------------------------------- */

const struct dlp_step *dlp_order_text_grouper(const struct dlp_order_text *text) {
        const struct dlp_step *last = text->n_steps > 0 ? &text->steps[text->n_steps - 1] : NULL;

        return last && last->type->role == DLP_GROUPER ? last : NULL;
}

bool dlp_order_text_uses_batch_size(const struct dlp_order_text *text) {
        return text->n_steps > 0 && text->steps[text->n_steps - 1].type->role != DLP_CHOOSER;
}

uint32_t dlp_step_columns(const struct dlp_step *step, struct dlp_column_wish *ret_wishes, uint32_t n) {
        uint32_t n_wishes = 0;

        for (uint32_t k = 0; k < order_text_n_arguments(step->type); k++) {
                enum dlp_argument_kind kind = step->type->arguments[k].kind;

                if (!step->values[k].is_set || (kind != DLP_ARGUMENT_COLUMN && kind != DLP_ARGUMENT_LENGTHS))
                        continue;
                if (n_wishes < n)
                        ret_wishes[n_wishes] = (struct dlp_column_wish){ .name = step->values[k].text,
                                                                         .is_lengths = kind == DLP_ARGUMENT_LENGTHS };
                n_wishes++;
        }
        return n_wishes;
}

uint32_t dlp_order_text_columns(const struct dlp_order_text *text, struct dlp_column_wish *ret_wishes, uint32_t n) {
        uint32_t n_wishes = 0;

        for (uint32_t i = 0; i < text->n_steps; i++)
                n_wishes += dlp_step_columns(&text->steps[i], n_wishes < n ? ret_wishes + n_wishes : NULL,
                                             n_wishes < n ? n - n_wishes : 0);
        return n_wishes;
}
