/* The sampler of an attach: what makes the order of its epochs, if it asks for more than shuffling. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ctl/attach/attach.h"
#include "proto/base/cleanup.h"

/* Does the sampler end with this step already? That of a state does, in its normal spelling. */
static bool ends_with_step(const char *sampler, const char *step) {
        _cleanup_(freep) struct dlp_order_text *text = malloc(sizeof(*text));
        char normal[DLP_SAMPLER_MAX];
        size_t n, n_sampler = strlen(sampler);
        struct why why;

        if (!text || dlp_order_text_parse(step, text, &why) < 0 || dlp_order_text_print(text, normal, &why) < 0)
                return false;
        n = strlen(normal);
        return n_sampler >= n && strcmp(sampler + n_sampler - n, normal) == 0 &&
               (n_sampler == n || sampler[n_sampler - n - 1] == ' ');
}

/* Rows of packed fields are filled by a step of the order, after those that the trainer asks for. */
static int add_packing(const char *sampler, const struct programs *programs, const struct source *source,
                       char ret_text[2 * DLP_SAMPLER_MAX]) {
        const struct program *program = programs_first(programs);
        const struct packing_terms *pack;
        uint32_t idx;
        size_t n = (size_t)snprintf(ret_text, 2 * DLP_SAMPLER_MAX, "%s", sampler);

        pack = program_packing(program, &idx);
        if (!pack || n >= DLP_SAMPLER_MAX)
                return n >= DLP_SAMPLER_MAX ? -EINVAL : 0;
        n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, " pack(size=%u, column=%s, strategy=%s",
                              pack->size, source->schema.fields[codec_field(program_codec(program, idx))].name,
                              PACKING_STRATEGIES[pack->strategy]);
        if (pack->on_long)
                n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ", long=%s", PACKING_LONG[pack->on_long]);
        if (pack->rows)
                n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ", rows=%u", pack->rows);
        if (pack->bins)
                n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ", bins=%u", pack->bins);
        if (pack->max_samples)
                n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ", max_samples=%u", pack->max_samples);
        if (pack->shuffle)
                n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ", shuffle=%s",
                                      PACKING_SHUFFLE[pack->shuffle]);
        snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ")");
        if (ends_with_step(sampler, ret_text + strlen(sampler) + 1))
                ret_text[strlen(sampler)] = '\0';
        return 0;
}

/* Rows are filled before a sample is read. Only of an array that is stored as such is it known how many elements it
 * becomes. */
static int check_packing(const Dlp__Attach *wish, const struct programs *programs, const struct source *source,
                         struct why *why) {
        const struct schema_field *field;
        uint32_t idx;

        if (!program_packing(programs_first(programs), &idx))
                return 0;
        field = &source->schema.fields[codec_field(program_codec(programs_first(programs), idx))];
        for (size_t i = 0; i < wish->n_columns; i++)
                if (strcmp(wish->columns[i]->name, field->name) == 0)
                        return 0;
        if (field->kind == FIELD_VALUE)
                return 0;
        return why_set(why, -EINVAL,
                       "pipeline: pack: how many elements a sample of the field %s becomes is not known before it is "
                       "read: count them once, and give them as a column of that name, in Python columns={\"%s\": "
                       "lengths}, with dlctl --column %s=FILE",
                       field->name, field->name, field->name);
}

int attach_settle_sampling(struct attach *attach, const Dlp__Attach *wish, const struct source *source,
                           struct job_terms *terms, struct why *why) {
        struct sampling_column columns[SAMPLING_COLUMNS_MAX];
        const struct dlp_step *grouper;
        struct dlp_sampler_terms base;
        char text[2 * DLP_SAMPLER_MAX];
        int r;

        if (wish->n_columns > SAMPLING_COLUMNS_MAX)
                return why_set(why, -EINVAL, "columns: %zu; at most %u are allowed", wish->n_columns,
                               SAMPLING_COLUMNS_MAX);
        for (size_t i = 0; i < wish->n_columns; i++)
                columns[i] = (struct sampling_column){ .name = wish->columns[i]->name,
                                                       .dtype = wish->columns[i]->dtype,
                                                       .offset = wish->columns[i]->offset,
                                                       .n_values = wish->columns[i]->n_values };
        if (wish->n_columns > 0 && attach->columns_fd < 0)
                return why_set(why, -EINVAL, "columns: their memory did not come with the request");
        if (strlen(wish->columns_digest) >= sizeof(terms->columns))
                return why_set(why, -EINVAL, "columns: a digest of at most %zu bytes is allowed",
                               sizeof(terms->columns) - 1);
        r = check_packing(wish, attach->options.programs, source, why);
        if (r < 0)
                return r;
        if (add_packing(wish->sampler, attach->options.programs, source, text) < 0)
                return why_set(why, -EINVAL, "sampler: is longer than %u bytes", DLP_SAMPLER_MAX - 1);
        r = sampling_new(text, attach->columns_fd, columns, (uint32_t)wish->n_columns, &attach->sampling, why);
        if (r < 0)
                return r;
        attach->sampling->wants_blocks = terms->shuffle && terms->order == DLP_ORDER_BLOCKS && !source->growth;
        terms->is_made = attach->sampling->text.n_steps > 0;
        if (!terms->is_made)
                return 0;
        if (source->growth)
                return why_set(why, -EINVAL, "sampler: it needs to know how many samples there are, and %s is a stream",
                               terms->dataset);
        if (source->n_samples == 0)
                return why_set(why, -EINVAL, "sampler: %s has no samples", terms->dataset);
        if (terms->shuffle && terms->order == DLP_ORDER_BUFFER)
                return why_set(why, -EINVAL, "sampler: the order \"buffer\" cannot be combined with one");
        base = job_sampler_terms(terms, source->n_samples, 0);
        r = dlp_order_text_may_follow(&attach->sampling->text, &base, why);
        if (r < 0)
                return r;
        grouper = dlp_order_text_grouper(&attach->sampling->text);
        if (grouper && !grouper->type->is_batch && terms->on_error == ON_ERROR_SUBSTITUTE)
                return why_set(
                        why, -EINVAL,
                        "on_error: \"substitute\" cannot be combined with packs: another sample has another length; "
                        "ask for \"skip\"");
        terms->repeats = attach->sampling->text.steps[0].type->repeats;
        terms->uses_batch_size = dlp_order_text_uses_batch_size(&attach->sampling->text);
        terms->has_units = grouper != NULL;
        terms->deals_batches = grouper && grouper->type->is_batch;
        snprintf(terms->columns, sizeof(terms->columns), "%s", wish->columns_digest);
        r = dlp_order_text_print(&attach->sampling->text, terms->sampler, why);
        return r < 0 ? r : sampling_check(attach->sampling, source, why);
}
