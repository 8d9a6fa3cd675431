/* codec/program/program_print.c: a program in its one normal spelling. */
#include "daemon/codec/program/program_body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "proto/base/cleanup.h"

/* The collation of a part, one of the daemon's or of a plug-in; "": the text says none. The caller frees it. NULL: no
 * memory. */
static char *print_collation(const struct program *program, uint32_t idx, const struct collation *collation) {
        char *text = NULL;
        size_t size;
        FILE *stream;

        if (collation && collation->type)
                return collation_text(collation);
        stream = open_memstream(&text, &size);
        if (!stream)
                return NULL;
        if (program->plugged[idx])
                plugin_collation_print(program->plugged[idx], stream);
        if (fclose(stream) == 0)
                return text;
        free(text);
        return NULL;
}

/* What follows the steps of a part whose first view has the fields from idx_first to idx_last, if the text says it; the
 * caller frees it. NULL: no memory. */
static char *print_ending(const struct program *program, uint32_t idx_first, uint32_t idx_last,
                          const struct collation *collation) {
        _cleanup_(freep) char *last = print_collation(program, idx_first, collation);
        const struct python_step *pythons[DLP_TENSORS_MAX];
        const struct steps_after *after = NULL;
        const struct views *views = &program->views[idx_last];
        uint32_t n = idx_last - idx_first + 1;
        bool has_function = program_python(program, idx_first) != NULL;
        char *text = NULL;
        size_t size;
        FILE *stream = last ? open_memstream(&text, &size) : NULL;

        if (!stream)
                return NULL;
        for (uint32_t i = 0; i < n; i++) {
                pythons[i] = &program->pythons[idx_first + i];
                after = after ? after : program->afters[idx_first + i];
        }
        if (has_function)
                python_step_print(pythons, n, stream);
        if (after)
                fprintf(stream, " %s", steps_after_text(after));
        fprintf(stream, "%s%s", has_function && last[0] ? " " : "", last);
        if (views->n > 0)
                fprintf(stream, "%sviews(%u)", has_function || last[0] ? " " : "", views->n);
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

int print_unnamed(struct program *program, const struct source *source, bool no_main, struct why *why) {
        const char *steps = no_main ? "raw" : codec_text(program->codecs[0]);
        _cleanup_(freep) char *last = print_ending(program, 0, 0, &program->collations[0]), *text = NULL;

        if (!last || asprintf(&text, "%s%s%s", steps, steps[0] && last[0] ? " " : "", last) < 0) {
                text = NULL;
                return why_errno(why, -ENOMEM, "pipeline");
        }
        if (asprintf(&program->text, "%s%s", text,
                     is_field(&source->schema, (struct grammar_word){ text, strlen(text) }) ? "()" : "") >= 0)
                return 0;
        program->text = NULL;
        return why_errno(why, -ENOMEM, "pipeline");
}

/* Is it one field without steps that has the name of a step? */
static bool may_be_step(const struct program *program, const struct source *source) {
        const char *name = source->schema.fields[codec_field(program->codecs[0])].name;

        return program->n_fields == 1 && !codec_text(program->codecs[0])[0] &&
               recipe_is_step((struct grammar_word){ name, strlen(name) });
}

/* Those of the part whose last field this is. Not each of its fields may have its collation. */
static int program_print_steps(const struct program *program, const uint32_t *parts, uint32_t idx_last, FILE *stream) {
        const char *steps = codec_text(program->codecs[idx_last]);
        const struct collation *collation = NULL;
        _cleanup_(freep) char *text = NULL;
        uint32_t idx_first = idx_last;

        for (uint32_t i = 0; i <= idx_last; i++) {
                if (parts[i] == parts[idx_last] && i < idx_first)
                        idx_first = i;
                if (parts[i] == parts[idx_last] && program->collations[i].type && !collation)
                        collation = &program->collations[i];
                if (parts[i] == parts[idx_last] && !steps[0]) /* a label that is mixed with a picture has none */
                        steps = codec_text(program->codecs[i]);
        }
        text = print_ending(program, idx_first, idx_last, collation);
        if (!text)
                return -ENOMEM;
        fprintf(stream, "%s%s%s%s", steps[0] || text[0] ? ": " : "", steps, steps[0] && text[0] ? " " : "", text);
        return 0;
}

/* Is it the last field of its part that the text names? Later views follow it. */
static bool is_last_named(const struct program *program, const uint32_t *parts, uint32_t idx) {
        return idx + 1 == program->n_fields || parts[idx + 1] != parts[idx] || codec_view(program->codecs[idx + 1]) > 0;
}

int print_named(struct program *program, const struct source *source, const uint32_t *parts, struct why *why) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);
        int r = 0;

        if (!stream)
                return why_errno(why, -ENOMEM, "pipeline");
        for (uint32_t i = 0; i < program->n_fields && r == 0; i++) {
                if (codec_view(program->codecs[i]) > 0)
                        continue;
                fprintf(stream, "%s%s",
                        i == 0                     ? ""
                        : parts[i] != parts[i - 1] ? "; "
                                                   : ", ",
                        codec_name(program->codecs[i]));
                if (program->renamed[i] > 0)
                        fprintf(stream, "=%s", source->schema.fields[codec_field(program->codecs[i])].name);
                if (is_last_named(program, parts, i))
                        r = program_print_steps(program, parts, i, stream);
        }
        if (may_be_step(program, source))
                fprintf(stream, ";");
        if (fclose(stream) != 0 || r < 0) {
                free(text);
                return why_errno(why, -ENOMEM, "pipeline");
        }
        program->text = text;
        return 0;
}
