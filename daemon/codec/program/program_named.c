/* codec/program/program_named.c: a text that names the fields of each of its parts. */
#include "daemon/codec/program/program_body.h"

#include <errno.h>

#include "daemon/augment/recipe.h"
#include "daemon/data/field_name.h"
#include "proto/base/nearest.h"

static int find_named(const struct source *source, const struct grammar *grammar, struct grammar_word word,
                      uint32_t *ret_idx, struct why *why) {
        char names[256], meant[RECIPE_MEANT_MAX];
        const char *reason;
        struct nearest nearest;

        nearest_begin(&nearest, word.at, word.n);
        for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                if (field_name_is(&source->schema.fields[i], word.at, word.n)) {
                        *ret_idx = i;
                        return 0;
                }
                nearest_offer(&nearest, source->schema.fields[i].name);
        }
        reason = refusal_of(source->refused, source->n_refused, word.at, word.n);
        if (reason)
                return grammar_refuse(grammar, word.at, why, "field \"%.*s\" cannot be served: %s", grammar_shown(word),
                                      word.at, reason),
                       -ENOTSUP;
        list_fields(&source->schema, false, names, sizeof(names));
        if (recipe_means(word, meant))
                return grammar_refuse(grammar, word.at, why,
                                      "\"%.*s\" is neither a step nor a field of the dataset, whose fields are %s; the "
                                      "step is written as in %s",
                                      grammar_shown(word), word.at, names, meant);
        return grammar_refuse(grammar, word.at, why, "the dataset has no field \"%.*s\"%s; its fields are %s",
                              grammar_shown(word), word.at, nearest_hint(&nearest), names);
}

/* Does the part name a picture, or bytes that may be one? Its steps are for that. */
static bool names_picture(const struct source *source, const struct grammar_part *part) {
        for (uint32_t k = 0; k < part->n_fields; k++)
                for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                        const struct schema_field *field = &source->schema.fields[i];

                        if (grammar_is(part->fields[k].value, field->name) &&
                            (field->kind == FIELD_PICTURE || field->kind == FIELD_BYTES))
                                return true;
                }
        return false;
}

/* Adds one view of the fields that the part names. */
static int program_named_add_part(struct program *program, const struct source *source, const struct part *part,
                                  uint32_t group, uint32_t view, struct why *why) {
        const struct grammar_part *written = part->written;
        struct adding adding = { .steps = part->steps.list.n > 0 ? &part->steps : NULL,
                                 .group = group,
                                 .views = part->views,
                                 .has_function_on_picture = part->python.function[0] && names_picture(source, written),
                                 .view = view,
                                 .collation = &part->collation };

        for (uint32_t i = 0; i < written->n_fields; i++) {
                uint32_t idx_field = 0;
                int r = find_named(source, program->grammar, written->fields[i].value, &idx_field, why);

                adding.name = written->fields[i].key;
                if (r == 0)
                        r = add_field(program, source, idx_field, &adding, why);
                if (r < 0)
                        return r;
        }
        if (written->stop)
                return grammar_expect(program->grammar, written->stop, written->expected, why);
        if (written->colon && !adding.steps && part->views.n == 0 && !has_ending(part))
                return grammar_refuse(program->grammar, written->colon + 1, why,
                                      "expected steps after \":\"; without it the field is handed out as it is stored");
        return 0;
}

/* Adds all views of a part, each as if it were the part alone. */
static int program_named_parse_part(struct program *program, const struct source *source, const struct part *part,
                                    uint32_t group, struct why *why) {
        uint32_t n_views = part->views.n > 0 ? part->views.n : 1, first = program->n_fields;

        for (uint32_t view = 0; view < n_views; view++) {
                uint32_t begin = program->n_fields;
                int r = program_named_add_part(program, source, part, group, view, why);

                if (r < 0)
                        return r;
                r = bind_python(program, first, begin, &part->python, why);
                if (r == 0)
                        r = check_collated(program, begin, &part->collation, why);
                if (r == 0)
                        r = check_plugged(program, begin, why);
                if (r == 0)
                        r = bind_plugged(program, source, begin, &part->plugged, why);
                if (r < 0)
                        return r;
                collate_part(program, begin, &part->collation);
                find_masks(program, source, begin);
                r = lead_fields(program, source, begin, why);
                if (r == 0)
                        r = bind_after(program, begin, &part->python, why);
                if (r == 0 && collation_mixes(&part->collation))
                        r = check_mixed(program, begin, view, &part->collation, why);
                if (r == 0)
                        r = check_mask_dtype(program, source, begin, why);
                if (r == 0 && view == 0)
                        r = check_views(program, begin, &part->views, why);
                if (r < 0)
                        return r;
        }
        return 0;
}

int parse_named(struct program *program, const struct source *source, struct why *why) {
        uint32_t parts[DLP_TENSORS_MAX] = { 0 }, n_parts = 0, n_with_steps = 0;

        for (const char *next = grammar_all(program->grammar).at; next;) {
                struct grammar_part written;
                struct part part = { .written = &written };
                uint32_t n_before = program->n_fields;
                int r = grammar_next_part(program->grammar, &next, &written);

                if (r < 0)
                        return why_errno(why, r, "pipeline");
                r = read_ending(program, written.steps, &part, why);
                if (r == 0)
                        r = program_named_parse_part(program, source, &part, n_with_steps, why);
                if (r < 0)
                        return r;
                for (uint32_t i = n_before; i < program->n_fields; i++)
                        parts[i] = n_parts;
                n_parts++;
                /* A part without steps must not change what the others draw. */
                n_with_steps += part.collation.has_mlm || part.python.function[0] || part.plugged.plugin ||
                                collation_mixes(&part.collation) || part.steps.list.n > 0;
        }
        return print_named(program, source, parts, why);
}
