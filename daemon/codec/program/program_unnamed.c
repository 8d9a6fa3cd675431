/* codec/program/program_unnamed.c: a text that names no field: its steps are for the only field that they can be for. */
#include "daemon/codec/program/program_body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/labels/one_hot.h"
#include "proto/base/cleanup.h"

static bool has_steps(const struct schema_field *field) {
        return field->is_stored && (field->kind == FIELD_PICTURE || field->kind == FIELD_SOUND ||
                                    field->kind == FIELD_BYTES || field->kind == FIELD_TEXT);
}

/* The dataset's only picture, or else its only field of stored bytes or text. */
static int find_main(const struct schema *schema, uint32_t *ret_idx, struct why *why) {
        uint32_t n_pictures = 0, n_stored = 0, idx_picture = 0, idx_stored = 0;
        char names[256];

        for (uint32_t i = 0; i < schema->n_fields; i++) {
                if (!has_steps(&schema->fields[i]))
                        continue;
                n_stored++;
                idx_stored = i;
                if (schema->fields[i].kind == FIELD_PICTURE) {
                        n_pictures++;
                        idx_picture = i;
                }
        }
        if (n_stored == 0) {
                list_fields(schema, false, names, sizeof(names));
                return why_set(why, -EINVAL,
                               "pipeline: the steps are for a picture, and the dataset has none; its fields are %s: "
                               "name those that you want, or leave the pipeline out",
                               names);
        }
        if (n_pictures != 1 && n_stored != 1) {
                list_fields(schema, true, names, sizeof(names));
                return why_set(why, -EINVAL,
                               "pipeline: the dataset has several fields that are read: %s: say which field the steps "
                               "are for, as in \"%s: ...\"",
                               names, schema->fields[idx_stored].name);
        }
        *ret_idx = n_pictures == 1 ? idx_picture : idx_stored;
        return 0;
}

/* A dataset of texts and numbers, without pictures: `raw`, which is what a job without a pipeline gets, delivers all
 * fields, each as it is. */
static bool is_table(const struct schema *schema) {
        uint32_t n_bytes = 0, n_others = 0;

        for (uint32_t i = 0; i < schema->n_fields; i++) {
                bool is_stored_bytes = schema->fields[i].kind == FIELD_BYTES && schema->fields[i].is_stored;

                if (schema->fields[i].kind == FIELD_PICTURE)
                        return false;
                n_bytes += is_stored_bytes;
                n_others += !is_stored_bytes && schema->fields[i].kind != FIELD_NAME && !is_value(&schema->fields[i]) &&
                            !schema->fields[i].is_on_demand;
        }
        return n_bytes != 1 || n_others > 0;
}

static bool is_raw(struct grammar_steps steps) {
        return steps.n == 1 && grammar_is(steps.at[0].name, "raw") && steps.at[0].n_arguments == 0 && !steps.at[0].stop;
}

/* The field that the steps are for, in all its views. */
static int add_main(struct program *program, const struct source *source, struct adding *adding,
                    const struct part *part, struct why *why) {
        const struct python_call *python = &part->python;
        uint32_t idx_main = 0;
        int r = find_main(&source->schema, &idx_main, why);

        if (r < 0 && source->n_refused > 0) {
                struct why detail = *why;

                return why_set(why, r, "%s; not served is %s: %s", detail.text, source->refused[0].name,
                               source->refused[0].reason);
        }
        if (r == 0)
                r = add_field(program, source, idx_main, adding, why);
        if (r == 0)
                r = bind_python(program, 0, 0, python, why);
        if (r == 0)
                r = check_collated(program, 0, &part->collation, why);
        if (r == 0)
                r = bind_plugged(program, source, 0, &part->plugged, why);
        if (r == 0)
                r = bind_after(program, 0, python, why);
        if (r == 0 && codec_drops_boxes(program->codecs[0]))
                r = refuse_dropping(0, why);
        if (r == 0 && codec_needs_boxes(program->codecs[0]))
                r = refuse_needing(0, why);
        if (r == 0)
                r = check_mask_dtype(program, source, 0, why);
        if (r == 0)
                r = check_views(program, 0, &adding->views, why);
        for (adding->view = 1; adding->view < adding->views.n && r == 0; adding->view++) {
                r = add_field(program, source, idx_main, adding, why);
                if (r == 0)
                        r = bind_python(program, 0, program->n_fields - 1, python, why);
                if (r == 0)
                        r = bind_plugged(program, source, program->n_fields - 1, &part->plugged, why);
                if (r == 0)
                        r = bind_after(program, program->n_fields - 1, python, why);
        }
        for (uint32_t i = 0; i < program->n_fields; i++)
                program->collations[i] = part->collation;
        return r;
}

int parse_unnamed(struct program *program, const struct source *source, struct why *why) {
        static const struct adding AS_IT_IS;
        uint32_t idx_main = source->schema.n_fields, idx_label = idx_main;
        struct part part = { 0 };
        struct adding adding = { .collation = &part.collation };
        struct grammar_steps steps;
        bool no_main;
        int r;

        if (grammar_steps(program->grammar, grammar_all(program->grammar), &steps) < 0)
                return why_errno(why, -ENOMEM, "pipeline");
        no_main = is_raw(steps) && is_table(&source->schema);
        r = read_ending(program, steps, &part, why);
        if (r < 0)
                return r;
        adding.views = part.views;
        if ((part.views.n == 0 && !has_ending(&part)) || part.steps.list.n > 0)
                adding.steps = &part.steps;
        r = find_label(source, &part.collation, &idx_label, why);
        if (!no_main && r == 0) {
                r = add_main(program, source, &adding, &part, why);
                idx_main = r == 0 ? codec_field(program->codecs[0]) : idx_main;
        }
        if (idx_label < source->schema.n_fields && idx_label != idx_main && r == 0)
                r = add_label(program, source, idx_label, &adding, why);
        for (uint32_t view = 0; (view == 0 || view < adding.views.n) && collation_mixes(&part.collation) && r == 0;
             view++)
                r = check_mixed(program, 0, view, &part.collation, why);
        for (uint32_t i = 0; i < source->schema.n_fields && r == 0; i++)
                if (no_main ? source->schema.fields[i].kind != FIELD_NAME &&
                                      source->schema.fields[i].kind != FIELD_MASKS &&
                                      !source->schema.fields[i].is_on_demand
                            : is_value(&source->schema.fields[i]) && i != idx_main && i != idx_label)
                        r = add_field(program, source, i, &AS_IT_IS, why);
        return r < 0 ? r : print_unnamed(program, source, no_main, why);
}
