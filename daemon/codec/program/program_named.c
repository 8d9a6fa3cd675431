/* codec/program/program_named.c: a text that names the fields of each of its parts. */
#include "daemon/codec/program/program_body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "daemon/data/field_name.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/step_text.h"

size_t find_outside(const char *text, size_t begin, size_t end, char wanted) {
        unsigned depth = 0;

        for (size_t i = begin; i < end; i++) {
                if (text[i] == wanted && depth == 0)
                        return i;
                depth += text[i] == '(';
                depth -= text[i] == ')' && depth > 0;
        }
        return end;
}

static int find_named(const struct source *source, struct step_text *reader, size_t n_word, uint32_t *ret_idx) {
        char names[256], meant[RECIPE_MEANT_MAX];
        const char *reason;
        struct nearest nearest;

        nearest_begin(&nearest, reader->at, n_word);
        for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                if (field_name_is(&source->schema.fields[i], reader->at, n_word)) {
                        *ret_idx = i;
                        return 0;
                }
                nearest_offer(&nearest, source->schema.fields[i].name);
        }
        reason = refusal_of(source->refused, source->n_refused, reader->at, n_word);
        if (reason)
                return why_set(reader->why, -ENOTSUP, "pipeline, column %zu: field \"%.*s\" cannot be served: %s",
                               step_text_column(reader, reader->at), word_shown(n_word), reader->at, reason);
        list_fields(&source->schema, false, names, sizeof(names));
        if (recipe_means((struct grammar_word){ reader->at, n_word }, meant))
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: \"%.*s\" is neither a step nor a field of the dataset, whose "
                               "fields are %s; the step is written as in %s",
                               step_text_column(reader, reader->at), word_shown(n_word), reader->at, names, meant);
        return why_set(
                reader->why, -EINVAL, "pipeline, column %zu: the dataset has no field \"%.*s\"%s; its fields are %s",
                step_text_column(reader, reader->at), word_shown(n_word), reader->at, nearest_hint(&nearest), names);
}

/* Reads "NAME =" of NAME=FIELD, if it is there. Returns the length of the word at which the reader is then. */
static size_t program_named_take_name(struct step_text *reader, size_t n_word, const char *names_end,
                                      struct adding *adding) {
        const char *after = reader->at + n_word + strspn(reader->at + n_word, BLANKS);

        adding->name = NULL;
        if (after >= names_end || *after != '=')
                return n_word;
        adding->name = reader->at;
        adding->n_name = n_word;
        adding->column = step_text_column(reader, reader->at);
        reader->at = after + 1;
        step_text_skip_blanks(reader);
        return reader->at < names_end ? name_length(reader->at) : 0;
}

/* Does the part name a picture, or bytes that may be one? Its steps are for that. */
static bool names_picture(const struct source *source, const char *text, const struct part *part) {
        const char *end = text + (part->steps < part->end ? part->steps - 1 : part->end);

        for (const char *at = text + part->begin; at < end;) {
                size_t n = name_length(at);

                for (uint32_t i = 0; n > 0 && i < source->schema.n_fields; i++) {
                        const struct schema_field *field = &source->schema.fields[i];

                        if (word_is(at, n, field->name) &&
                            (field->kind == FIELD_PICTURE || field->kind == FIELD_BYTES) &&
                            at[n + strspn(at + n, BLANKS)] != '=')
                                return true;
                }
                at += n > 0 ? n : 1;
        }
        return false;
}

/* Adds one view of the fields that the part names. */
static int program_named_add_part(struct program *program, const struct source *source, const char *text,
                                  const struct part *part, uint32_t group, uint32_t view, struct why *why) {
        struct step_text reader = { .what = "pipeline", .text = text, .at = text + part->begin, .why = why };
        const char *names_end = text + (part->steps < part->end ? part->steps - 1 : part->end);
        struct codec_steps steps;
        struct adding adding = { .group = group,
                                 .views = part->views,
                                 .has_function_on_picture = part->ending.own.function[0] &&
                                                            names_picture(source, text, part),
                                 .view = view,
                                 .collation = &part->ending.collation };

        if (program_steps(program, part->steps, part->steps_end, &steps, why) < 0)
                return -ENOMEM;
        if (steps.list.n > 0)
                adding.steps = &steps;
        if (part->steps < part->end && !adding.steps && part->views.n == 0 && !has_ending(&part->ending))
                return why_set(why, -EINVAL,
                               "pipeline, column %zu: expected steps after \":\"; without it the field is "
                               "handed out as it is stored",
                               part->steps + 1);
        for (;;) {
                uint32_t idx_field = 0;
                size_t n_word;
                int r;

                step_text_skip_blanks(&reader);
                n_word = reader.at < names_end ? name_length(reader.at) : 0;
                if (n_word > 0)
                        n_word = program_named_take_name(&reader, n_word, names_end, &adding);
                if (n_word == 0)
                        return step_text_refuse_here(&reader, "the name of a field");
                r = find_named(source, &reader, n_word, &idx_field);
                if (r == 0)
                        r = add_field(program, source, idx_field, &adding, why);
                if (r < 0)
                        return r;
                reader.at += n_word;
                step_text_skip_blanks(&reader);
                if (reader.at >= names_end)
                        return 0;
                if (*reader.at++ != ',') {
                        reader.at--;
                        return step_text_refuse_here(&reader, "\",\", \":\", \";\" or the end");
                }
        }
}

/* Adds all views of a part, each as if it were the part alone. */
static int program_named_parse_part(struct program *program, const struct source *source, const char *text,
                                    const struct part *part, uint32_t group, struct why *why) {
        uint32_t n_views = part->views.n > 0 ? part->views.n : 1, first = program->n_fields;

        for (uint32_t view = 0; view < n_views; view++) {
                uint32_t begin = program->n_fields;
                int r = program_named_add_part(program, source, text, part, group, view, why);

                if (r < 0)
                        return r;
                r = bind_own(program, first, begin, &part->ending.own, why);
                if (r == 0)
                        r = check_collated(program, begin, &part->ending.collation, why);
                if (r == 0)
                        r = check_plugged(program, begin, why);
                if (r == 0)
                        r = bind_plugged(program, source, begin, &part->ending.plugged, why);
                if (r < 0)
                        return r;
                collate_part(program, begin, &part->ending.collation);
                find_masks(program, source, begin);
                r = lead_fields(program, source, begin, why);
                if (r == 0)
                        r = bind_after(program, begin, &part->ending.own, why);
                if (r == 0 && collation_mixes(&part->ending.collation))
                        r = check_mixed(program, begin, view, &part->ending.collation, why);
                if (r == 0)
                        r = check_mask_dtype(program, source, begin, why);
                if (r == 0 && view == 0)
                        r = check_views(program, begin, &part->views, why);
                if (r < 0)
                        return r;
        }
        return 0;
}

int parse_named(struct program *program, const struct source *source, const char *text, struct why *why) {
        uint32_t parts[DLP_TENSORS_MAX] = { 0 }, n_parts = 0, n_with_steps = 0;
        size_t end = strlen(text);

        for (size_t begin = 0; begin <= end;) {
                size_t part_end = find_outside(text, begin, end, ';');
                size_t colon = find_outside(text, begin, part_end, ':');
                struct part part = { begin, part_end, colon < part_end ? colon + 1 : part_end, .steps_end = part_end };
                uint32_t n_before = program->n_fields;
                int r = 0;

                if (colon < part_end)
                        r = views_take(text, part.steps, part_end, &part.views, &part.steps_end, why);
                if (r == 0 && colon < part_end)
                        r = take_ending(program, text, part.steps, &part.steps_end, &part.ending, why);
                if (r == 0)
                        r = program_named_parse_part(program, source, text, &part, n_with_steps, why);
                if (r < 0)
                        return r;
                for (uint32_t i = n_before; i < program->n_fields; i++)
                        parts[i] = n_parts;
                n_parts++;
                /* A part without steps must not change what the others draw. */
                n_with_steps += part.ending.collation.has_mlm || part.ending.own.function[0] ||
                                part.ending.plugged.plugin || collation_mixes(&part.ending.collation) ||
                                part.steps + strspn(text + part.steps, BLANKS) < part.steps_end;
                begin = part_end + 1;
                if (part_end < end && begin + strspn(text + begin, BLANKS) == end) /* "a;" is the field a */
                        break;
        }
        return print_named(program, source, parts, why);
}
