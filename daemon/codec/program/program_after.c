/* codec/program/program_after.c: the steps after a function of the trainer's, and what mixing asks of what it delivers. */
#include "daemon/codec/program/program_body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

/* How many channels a function's picture has: what the text says, or what the steps before make; 0: it is none. */
static uint32_t channels_of(const struct program *program, uint32_t idx) {
        const struct python_form *form = &program->pythons[idx].form;
        int64_t n = form->has_shape && form->n_dims == 3 ? form->shape[2] : 0;

        if (!form->has_shape)
                n = codec_is_picture(program->codecs[idx]) ? codec_channels(program->codecs[idx]) : 0;
        return n == 1 || n == 3 ? (uint32_t)n : 0;
}

static int refuse_moving(const struct codec_steps *steps, const struct python_call *python, const char *field,
                         struct why *why) {
        return grammar_refuse(
                steps->grammar, steps->list.at[0].name.at, why,
                "field %s moves with its picture; after python(%s) only to, normalize, "
                "layout and erasing may follow in its part, which leave pixels where they are: write the others "
                "before it, or let the function do that, too",
                field, python->function);
}

int bind_after(struct program *program, uint32_t begin, const struct python_call *python, struct why *why) {
        const struct codec_steps steps = { program->grammar, python->after };
        uint32_t n = 0;

        if (python->after.n == 0)
                return 0;
        if (python->is_whole)
                return grammar_refuse(
                        steps.grammar, python->after.at[0].name.at, why,
                        "steps are done sample by sample, and python(%s, batch=true) gets "
                        "the batch when all its samples are done: write them before it, or let the function do "
                        "that, too; only what mixes the batch, such as mixup, may follow it",
                        python->function);
        for (uint32_t i = begin; i < program->n_fields; i++) {
                uint32_t n_channels = channels_of(program, i);
                int r = n_channels > 0 ? steps_after_new(&steps, n_channels, codec_view(program->codecs[i]),
                                                         &program->afters[i], why)
                                       : 0;

                if (r < 0)
                        return r;
                n += n_channels > 0;
        }
        if (n == 0)
                return grammar_refuse(steps.grammar, python->after.at[0].name.at, why,
                                      "steps after python(%s) are for pictures, uint8 height x width x 3 "
                                      "or x 1, and it delivers none: let the function do that, too",
                                      python->function);
        for (uint32_t i = begin; i < program->n_fields; i++)
                for (uint32_t k = begin; k < program->n_fields && moves_along(program->codecs[i]); k++)
                        if (program->afters[k] && !steps_after_keeps_places(program->afters[k]))
                                return refuse_moving(&steps, python, codec_name(program->codecs[i]), why);
        return 0;
}

int check_cut(const struct program *program, uint32_t idx, const struct field_form *form, struct why *why) {
        const struct collation *collation = &program->collations[idx];

        if (!program_python(program, idx) || !collation_mixes(collation) || mix_cuts(&collation->mix) == 0 ||
            program->mix_pictures[idx] != idx || form->n_padded_dims == 2)
                return 0;
        return why_set(
                why, -EINVAL,
                "pipeline, column %zu: a box is cut out of pictures, and what python(%s) delivers for field %s is "
                "none: expected height x width x channels, or channels x height x width",
                collation->column, program->pythons[idx].function, form->name);
}
