/* codec/program/ending.c: what follows the steps of a part: a function of the trainer's, and a collation. */
#include "daemon/codec/program/body.h"

#include <errno.h>

int take_ending(const char *text, size_t begin, size_t *steps_end, struct own_call *ret_own,
                struct collation *ret_collation, struct why *why) {
        int r = collation_take(text, begin, *steps_end, ret_collation, steps_end, why);

        if (r == 0)
                r = own_step_take(text, begin, *steps_end, ret_own, steps_end, why);
        if (r == 0 && ret_own->function[0] && !collation_is_stack(ret_collation))
                r = why_set(why, -EINVAL,
                            "pipeline, column %zu: what a function delivers has one shape and is stacked: leave what "
                            "follows python(%s) out",
                            ret_collation->column, ret_own->function);
        return r;
}

int bind_own(struct program *program, uint32_t first, uint32_t begin, const struct own_call *own, struct why *why) {
        const char *names[DLP_TENSORS_MAX];
        uint32_t n = program->n_fields - begin;

        for (uint32_t i = 0; i < n; i++)
                names[i] = codec_name(program->codecs[first + i]);
        return own_step_bind(own, names, n, &program->owns[begin], why);
}
