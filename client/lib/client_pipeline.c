/* What a pipeline's text says, for programs that have to know it: cut by the grammar that the daemon uses, too. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/include/dlclient.h"
#include "client/lib/reason.h"
#include "proto/base/cleanup.h"
#include "proto/text/grammar.h"

static void put_word(FILE *stream, const char *before, struct grammar_word word) {
        fputs(before, stream);
        for (size_t i = 0; i < word.n; i++) /* quotes may hold tabs and newlines, which are between our words */
                fputc(word.at[i] == '\t' || word.at[i] == '\n' ? ' ' : word.at[i], stream);
}

static void put_part(FILE *stream, const struct grammar *grammar, const struct grammar_part *part) {
        fprintf(stream, "part\t%zu", grammar_column(grammar, part->end) - 1);
        for (uint32_t i = 0; part->colon && i < part->n_fields; i++)
                put_word(stream, "\t", part->fields[i].key.n > 0 ? part->fields[i].key : part->fields[i].value);
        fputc('\n', stream);
        for (uint32_t i = 0; i < part->steps.n && part->steps.at[i].name.n > 0; i++) {
                const struct grammar_step *step = &part->steps.at[i];

                put_word(stream, "step\t", step->name);
                for (uint32_t k = 0; k < step->n_arguments; k++) {
                        put_word(stream, "\t", step->arguments[k].key);
                        put_word(stream, step->arguments[k].key.n > 0 ? "=" : "", step->arguments[k].value);
                }
                fputc('\n', stream);
        }
}

static int put_parts(FILE *stream, struct grammar *grammar) {
        for (const char *at = grammar_all(grammar).at; at;) {
                const char *begin = at;
                struct grammar_part part;

                if (grammar_next_part(grammar, &at, &part) < 0 ||
                    (!part.colon && grammar_steps(grammar, (struct grammar_word){ begin, (size_t)(part.end - begin) },
                                                  &part.steps) < 0))
                        return -ENOMEM;
                put_part(stream, grammar, &part);
        }
        return 0;
}

int dlc_pipeline_steps(const char *pipeline, char *buffer, size_t size) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        _cleanup_(freep) char *text = NULL;
        struct why reason = { "" };
        size_t n = 0;
        FILE *stream;
        int r;

        if (!pipeline || !buffer || size == 0)
                return dli_refuse(-EINVAL, "dlc_pipeline_steps: pipeline and buffer must not be NULL, size not 0");
        r = grammar_new("pipeline", pipeline, &grammar, &reason);
        if (r < 0)
                return dli_report(&reason, r);
        stream = open_memstream(&text, &n);
        r = stream ? put_parts(stream, grammar) : -ENOMEM;
        if (stream && fclose(stream) != 0)
                r = -ENOMEM;
        if (r < 0)
                return dli_refuse(r, "dlc_pipeline_steps: no memory");
        if (n >= size)
                return dli_refuse(-E2BIG, "dlc_pipeline_steps: size is %zu; %zu bytes are needed", size, n + 1);
        memcpy(buffer, text, n + 1);
        return 0;
}
