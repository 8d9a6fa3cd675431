#include "proto/order/making/order_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/cleanup.h"

/* A chooser is the first step, a grouper the last one. */
static int check_role(const struct values_reader *reader, const struct grammar_step *written,
                      const struct dlp_order_text *text, const struct dlp_step_type *type) {
        const struct dlp_step_type *before = text->n_steps > 0 ? text->steps[text->n_steps - 1].type : NULL;

        if (before && type->role == DLP_CHOOSER)
                return grammar_refuse(reader->grammar, written->name.at, reader->why,
                                      "%s chooses the samples, so it must come first, before %s", type->kind.name,
                                      before->kind.name);
        if (before && before->role == DLP_GROUPER)
                return grammar_refuse(reader->grammar, written->name.at, reader->why,
                                      "%s cannot follow %s, which makes batches", type->kind.name, before->kind.name);
        return 0;
}

static int order_text_read_step(const struct values_reader *reader, const struct grammar_step *written,
                                struct dlp_order_text *text) {
        const struct kind *kind = kind_find(reader->family, written->name);
        struct dlp_step *step = &text->steps[text->n_steps];
        struct why reason;
        int r;

        if (!kind)
                return kind_refuse(reader->family, reader->grammar, written->name, reader->why);
        if (text->n_steps == DLP_ORDER_STEPS_MAX)
                return grammar_refuse(reader->grammar, written->name.at, reader->why, "more than %u steps",
                                      DLP_ORDER_STEPS_MAX);
        step->type = (const struct dlp_step_type *)kind;
        step->follows_chooser = text->n_steps > 0 && text->steps[0].type->role == DLP_CHOOSER;
        r = check_role(reader, written, text, step->type);
        if (r == 0)
                r = values_read(reader, kind, written, step->values);
        if (r < 0)
                return r;
        if (step->type->check && step->type->check(step, &reason) < 0)
                return values_refuse(reader, kind, written, &reason);
        text->n_steps++;
        return 0;
}

int dlp_order_text_parse(const char *text, struct dlp_order_text *ret_text, struct why *why) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct value_store store = { ret_text->store, sizeof(ret_text->store) };
        struct values_reader reader = { .family = &dlp_samplers, .store = &store, .why = why };
        struct grammar_steps steps;
        int r;

        ret_text->n_steps = 0;
        if (strlen(text) >= DLP_SAMPLER_MAX)
                return why_set(why, -EINVAL, "sampler: is longer than %u bytes", DLP_SAMPLER_MAX - 1);
        r = grammar_new("sampler", text, &grammar, why);
        if (r == 0)
                r = grammar_steps(grammar, grammar_all(grammar), &steps);
        if (r < 0)
                return why_errno(why, r, "sampler");
        reader.grammar = grammar;
        for (uint32_t i = 0; i < steps.n && r == 0; i++)
                r = order_text_read_step(&reader, &steps.at[i], ret_text);
        return r;
}

int dlp_order_text_print(const struct dlp_order_text *text, char *ret_text, struct why *why) {
        char normal[DLP_SAMPLER_MAX] = "";
        size_t length = 0;

        for (uint32_t i = 0; i < text->n_steps && length < sizeof(normal); i++) {
                if (i > 0)
                        normal[length++] = ' ';
                length += values_print(&dlp_samplers, &text->steps[i].type->kind, text->steps[i].values, NULL, NULL,
                                       normal + length, sizeof(normal) - length);
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

int dlp_order_text_may_follow(const struct dlp_order_text *text, const struct dlp_sampler_terms *base,
                              struct why *why) {
        if (!base->shuffle || base->kind != DLP_ORDER_BLOCKS || text->n_steps == 0 ||
            text->steps[0].type->role != DLP_CHOOSER)
                return 0;
        return why_set(why, -EINVAL,
                       "sampler: %s chooses samples from the whole dataset, so it cannot be combined with the order "
                       "\"blocks\"; leave out one of them",
                       text->steps[0].type->kind.name);
}

uint32_t dlp_step_columns(const struct dlp_step *step, struct dlp_column_wish *ret_wishes, uint32_t n) {
        uint32_t n_wishes = 0;

        for (uint32_t k = 0; k < kind_n_arguments(&step->type->kind); k++) {
                enum argument_type type = step->type->kind.arguments[k].type;

                if (!step->values[k].is_set || (type != ARGUMENT_COLUMN && type != ARGUMENT_LENGTHS))
                        continue;
                if (n_wishes < n)
                        ret_wishes[n_wishes] = (struct dlp_column_wish){ .name = step->values[k].text,
                                                                         .is_lengths = type == ARGUMENT_LENGTHS };
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
