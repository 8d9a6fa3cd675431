/* codec/program/program.c: a program from its text, and what it says once it is parsed. */
#include "daemon/codec/codec_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "daemon/codec/program/program_body.h"
#include "proto/base/cleanup.h"

static void program_freep(struct program **program) {
        program_free(*program);
}

void program_free(struct program *program) {
        if (!program)
                return;
        for (uint32_t i = 0; i < program->n_fields; i++) {
                codec_free(program->codecs[i]);
                steps_after_free(program->afters[i]);
                plugin_collation_free(program->plugged[i]);
        }
        free(program->text);
        free(program);
}

const char *program_text(const struct program *program) {
        return program->text;
}

const struct python_step *program_python(const struct program *program, uint32_t idx) {
        return program->pythons[idx].function[0] ? &program->pythons[idx] : NULL;
}

const struct steps_after *program_after(const struct program *program, uint32_t idx) {
        return program->afters[idx];
}

const struct plugin_collation *program_plugged(const struct program *program, uint32_t idx) {
        return program->plugged[idx];
}

uint32_t program_uses(const struct program *program, uint32_t idx,
                      const struct plugin_use *ret_uses[PROGRAM_USES_MAX]) {
        uint32_t n = codec_uses(program->codecs[idx], ret_uses);

        if (program->plugged[idx])
                ret_uses[n++] = plugin_collation_use(program->plugged[idx]);
        return n;
}

/* Does nothing come after the steps of the codec that needs their result here? */
static bool is_last_to_change(const struct program *program, uint32_t idx) {
        return collation_is_stack(&program->collations[idx]) && !program_python(program, idx) && !program->plugged[idx];
}

bool program_can_leave_form(const struct program *program, uint32_t idx) {
        return is_last_to_change(program, idx) && codec_can_leave_form(program->codecs[idx]);
}

void program_leave_form(struct program *program, uint32_t idx) {
        codec_leave_form(program->codecs[idx]);
}

bool program_can_leave_operations(const struct program *program, uint32_t idx) {
        return is_last_to_change(program, idx) && codec_can_leave_operations(program->codecs[idx]);
}

void program_leave_operations(struct program *program, uint32_t idx) {
        codec_leave_operations(program->codecs[idx]);
}

uint32_t program_n_fields(const struct program *program) {
        return program->n_fields;
}

const struct codec *program_codec(const struct program *program, uint32_t idx) {
        return program->codecs[idx];
}

uint32_t program_serving(const struct program *program, uint32_t k) {
        return program->serving[k];
}

uint32_t program_sharer(const struct program *program, uint32_t idx) {
        return program->sharers[idx];
}

const struct packing_terms *program_packing(const struct program *program, uint32_t *ret_idx) {
        for (uint32_t i = 0; i < program->n_fields; i++)
                if (collation_is_pack(&program->collations[i])) {
                        *ret_idx = i;
                        return &program->collations[i].pack;
                }
        return NULL;
}

int program_form(const struct program *program, uint32_t idx, const struct codec_terms *terms,
                 struct field_form *ret_form, struct why *why) {
        int r = codec_form(program->codecs[idx], terms, ret_form, why);

        if (r == 0 && program_python(program, idx))
                r = python_step_apply(program_python(program, idx), ret_form, why);
        if (r == 0 && program->afters[idx])
                r = steps_after_form(program->afters[idx], ret_form, why);
        if (r == 0 && program->plugged[idx])
                plugin_collation_apply(program->plugged[idx], ret_form);
        if (r == 0)
                r = check_cut(program, idx, ret_form, why);
        if (r < 0)
                return r;
        ret_form->mix_picture = program->mix_pictures[idx];
        return collation_apply(&program->collations[idx], ret_form, why);
}

/* 0: needs no other field; 1: boxes; 2: what leaves with boxes. */
static unsigned program_level_of(const struct codec *codec) {
        return codec_boxes(codec) != CODEC_NONE ? 2 : codec_lead(codec) != CODEC_NONE;
}

/* Fields that may share a picture are served one after the other: a chain. The first of them that is after `idx`, or
 * CODEC_NONE. */
static uint32_t find_sharer(const struct program *program, uint32_t idx) {
        for (uint32_t i = idx + 1; i < program->n_fields; i++)
                if (codec_can_share(program->codecs[idx], program->codecs[i]))
                        return i;
        return CODEC_NONE;
}

static void order_fields(struct program *program) {
        bool is_ordered[DLP_TENSORS_MAX] = { false };
        uint32_t n = 0;

        for (uint32_t i = 0; i < program->n_fields; i++)
                program->sharers[i] = find_sharer(program, i);
        for (unsigned level = 0; level <= 2; level++)
                for (uint32_t i = 0; i < program->n_fields; i++)
                        for (uint32_t k = i; k != CODEC_NONE; k = program->sharers[k])
                                if (!is_ordered[k] && program_level_of(program->codecs[k]) == level) {
                                        is_ordered[k] = true;
                                        program->serving[n++] = k;
                                }
}

/* Names are followed by ':' or separated by ';'. In a plain list of words, names are meant if the first word is one. A
 * field may have the name of a step, such as the "raw" of a tar's 000.raw: then what follows the word decides, and
 * neither reading is guessed. */
static int program_find_names(struct grammar *grammar, const struct schema *schema, bool *ret_named, struct why *why) {
        const char *next = grammar_all(grammar).at;
        struct grammar_part part;
        struct grammar_word word;

        if (grammar_next_part(grammar, &next, &part) < 0)
                return why_errno(why, -ENOMEM, "pipeline");
        *ret_named = part.colon || *part.end == ';' || part.fields[0].key.n > 0;
        word = part.fields[0].value;
        if (*ret_named || !is_field(schema, word))
                return 0;
        *ret_named = !recipe_is_step(word) || part.n_fields > 1;
        if (*ret_named || part.stop) /* a field's name is followed by neither an argument nor a step */
                return 0;
        return grammar_refuse(grammar, word.at, why,
                              "\"%.*s\" is a step and also a field of this dataset; write \"%.*s()\" for the step, and "
                              "\"%.*s;\" for the field",
                              (int)word.n, word.at, (int)word.n, word.at, (int)word.n, word.at);
}

int program_parse(const char *text, const struct source *source, const struct codec_named *named,
                  struct program **ret_program, struct why *why) {
        _cleanup_(program_freep) struct program *program = calloc(1, sizeof(*program));
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        bool is_named = false;
        int r;

        if (strlen(text) >= DLP_PIPELINE_MAX)
                return why_set(why, -EINVAL, "the pipeline's text is longer than %u bytes, which is the limit",
                               DLP_PIPELINE_MAX - 1);
        if (!program)
                return why_errno(why, -ENOMEM, "pipeline");
        r = grammar_new("pipeline", text, &grammar, why);
        if (r < 0)
                return r;
        program->named = named;
        program->grammar = grammar;
        r = program_find_names(grammar, &source->schema, &is_named, why);
        if (r == 0)
                r = is_named ? parse_named(program, source, why) : parse_unnamed(program, source, why);
        program->grammar = NULL;
        if (r == 0)
                r = settle_packing(program, why);
        if (r == 0)
                r = check_view_names(program, source, why);
        if (r == 0)
                r = check_added(program, why);
        if (r == 0 && strlen(program->text) >= DLP_PIPELINE_MAX)
                r = why_set(why, -EINVAL, "pipeline: with all defaults written out it is longer than %u bytes",
                            DLP_PIPELINE_MAX - 1);
        if (r < 0)
                return r;
        order_fields(program);
        *ret_program = TAKE_PTR(program);
        return 0;
}
