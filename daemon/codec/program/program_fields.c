/* codec/program/program_fields.c: a field is added to a program, with the steps of its part and the name that it gets. */
#include "daemon/codec/program/program_body.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/codec/codec_choose.h"

void list_fields(const struct schema *schema, bool only_stored, char *text, size_t size) {
        size_t n = 0;

        text[0] = '\0';
        for (uint32_t i = 0; i < schema->n_fields && n < size; i++)
                if (schema->fields[i].is_stored || !only_stored)
                        n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", schema->fields[i].name);
}

int refuse_long_name(const char *name, size_t column, const char *field, struct why *why) {
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: \"%s\" is longer than the %u characters that a field's name may have: "
                       "rename field %s with fields= of the dataset",
                       column, name, DLP_TENSOR_NAME_MAX - 1, field);
}

bool is_value(const struct schema_field *field) {
        if (field->is_on_demand || field->may_be_absent ||
            (field->kind == FIELD_VALUE && field->n_dims > 0 && field->shape[0] < 0))
                return false;
        return field->kind == FIELD_VALUE || field->kind == FIELD_NUMBER;
}

bool is_field(const struct schema *schema, struct grammar_word word) {
        for (uint32_t i = 0; i < schema->n_fields; i++)
                if (grammar_is(word, schema->fields[i].name))
                        return true;
        return false;
}

static int set_view(const struct program *program, struct codec *codec, const struct adding *adding, const char *field,
                    struct why *why) {
        char name[2 * DLP_TENSOR_NAME_MAX], first[DLP_TENSOR_NAME_MAX];

        if (adding->name.n > 0 && codec_set_name(codec, adding->name.at, adding->name.n) < 0)
                return grammar_refuse(program->grammar, adding->name.at, why,
                                      "\"%.*s\" is longer than the %u characters that a field's name may "
                                      "have",
                                      grammar_shown(adding->name), adding->name.at, DLP_TENSOR_NAME_MAX - 1);
        strcpy(first, codec_name(codec));
        if (codec_set_view(codec, adding->view) == 0) {
                if (adding->views.is_crops)
                        codec_set_crop(codec);
                return 0;
        }
        snprintf(name, sizeof(name), "%s_%u", first, adding->view + 1);
        return refuse_long_name(name, adding->views.column, field, why);
}

/* Of these views, one is a field of its own; else the text says NAME=FIELD for one of the two. */
static int program_fields_check_twice(const struct program *program, const char *field, const struct adding *adding,
                                      struct why *why) {
        const struct codec *codec = program->codecs[program->n_fields - 1];

        for (uint32_t i = 0; i + 1 < program->n_fields; i++)
                if (codec_field(program->codecs[i]) == codec_field(codec) &&
                    codec_view(program->codecs[i]) == codec_view(codec) &&
                    strcmp(codec_name(program->codecs[i]), codec_name(codec)) == 0)
                        return why_set(why, -EINVAL,
                                       "pipeline: field %s is named twice%s; to deliver it twice, give one of them a "
                                       "name of its own, as in \"small=%s: resize(64:64)\"",
                                       codec_name(codec), adding->name.n > 0 ? ", with one name" : "", field);
        return 0;
}

/* A function may get a label or a text with a picture, whose steps before it are for the picture. */
static bool is_for_function_alone(const struct schema_field *field, const struct adding *adding) {
        bool is_fixed = field->kind != FIELD_VALUE || field->n_dims == 0 || field->shape[0] >= 0;

        return adding->has_function_on_picture && is_fixed && is_beside_picture(field, adding->steps);
}

int add_field(struct program *program, const struct source *source, uint32_t idx_field, const struct adding *adding,
              struct why *why) {
        const char *name = source->schema.fields[idx_field].name;
        struct codec **codec = &program->codecs[program->n_fields];
        int r;

        if (program->n_fields == DLP_TENSORS_MAX)
                return why_set(
                        why, -EINVAL, "pipeline: more than %u fields, which is the limit of a batch%s", DLP_TENSORS_MAX,
                        adding->view > 0 || codec_view(program->codecs[DLP_TENSORS_MAX - 1]) > 0 ? "; each view is one"
                                                                                                 : "");
        r = adding->collation && collation_mixes(adding->collation)
                    ? new_mixed(program, source, idx_field, adding, codec, why)
                    : codec_read(source, idx_field, adding->group,
                                 is_for_function_alone(&source->schema.fields[idx_field], adding) ? NULL
                                                                                                  : adding->steps,
                                 program->named, codec, why);
        if (r < 0)
                return r;
        program->mix_pictures[program->n_fields] = FIELD_NONE;
        for (uint32_t i = 0; i < program->n_fields; i++)
                if (codec_field(program->codecs[i]) == idx_field)
                        codec_set_again(*codec);
        program->renamed[program->n_fields] = adding->name.n > 0 ? grammar_column(program->grammar, adding->name.at)
                                                                 : 0;
        program->views[program->n_fields++] = adding->views;
        r = set_view(program, *codec, adding, name, why);
        return r < 0 ? r : program_fields_check_twice(program, name, adding, why);
}
