/* codec/program/ending.c: what follows the steps of a part: a function of the trainer's, and a collation. And whether
 * its plug-ins and functions may be applied to the fields that it names. */
#include "daemon/codec/program/body.h"

#include <errno.h>

#include "daemon/codec/labels/one_hot.h"

int take_ending(const char *text, size_t begin, size_t *steps_end, struct own_call *ret_own,
                struct collation *ret_collation, struct why *why) {
        int r = collation_take(text, begin, *steps_end, ret_collation, steps_end, why);

        if (r == 0)
                r = own_step_take(text, begin, *steps_end, ret_own, steps_end, why);
        if (r == 0 && ret_own->is_whole && !collation_is_stack(ret_collation) && !collation_mixes(ret_collation))
                return why_set(
                        why, -EINVAL,
                        "pipeline, column %zu: python(%s, batch=true) gets and delivers arrays of a whole batch, "
                        "[n, ...], so its part is stacked: leave %s out. Samples that differ in size before the "
                        "function are given as a list",
                        ret_collation->column, ret_own->function, collation_name(ret_collation));
        if (r == 0 && ret_own->function[0] && collation_is_pack(ret_collation))
                r = why_set(
                        why, -EINVAL,
                        "pipeline, column %zu: pack fills rows before a sample is read, and how long it is is known "
                        "only after python(%s): use ragged(joined=true) or pad",
                        ret_collation->column, ret_own->function);
        return r;
}

int check_collated(const struct program *program, uint32_t begin, const struct collation *collation, struct why *why) {
        if (!program_own(program, begin) || collation_is_stack(collation) || collation_mixes(collation))
                return 0;
        for (uint32_t i = begin; i < program->n_fields; i++)
                if (own_step_varies(&program->owns[i]))
                        return 0;
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: what python(%s) delivers has one shape and is stacked: leave %s out, or "
                       "say that it varies, as in shape=..512 or boxes=float32[..100:4]",
                       collation->column, program->owns[begin].function, collation_name(collation));
}

int bind_own(struct program *program, uint32_t first, uint32_t begin, const struct own_call *own, struct why *why) {
        const char *names[DLP_TENSORS_MAX];
        uint32_t n = program->n_fields - begin;

        for (uint32_t i = 0; i < n; i++)
                names[i] = codec_name(program->codecs[first + i]);
        return own_step_bind(own, names, n, &program->owns[begin], why);
}

int check_plugged(const struct program *program, uint32_t begin, struct why *why) {
        for (uint32_t i = begin; i < program->n_fields; i++) {
                if (!codec_is_plugged(program->codecs[i]))
                        continue;
                for (uint32_t other = begin; other < program->n_fields; other++)
                        if (other != i && !one_hot_is(program->codecs[other]))
                                return why_set(
                                        why, -EINVAL,
                                        "pipeline: steps of plug-ins are for one field, and a part names %s with "
                                        "%s: give each field a part of its own",
                                        codec_name(program->codecs[i]), codec_name(program->codecs[other]));
        }
        return 0;
}
