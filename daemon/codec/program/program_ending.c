/* codec/program/program_ending.c: what follows the steps of a part: a function of the trainer's, and a collation. And whether
 * its plug-ins and functions may be applied to the fields that it names. */
#include "daemon/codec/program/program_body.h"

#include <errno.h>

#include "daemon/codec/labels/one_hot.h"

static int check_function(const struct python_call *python, const struct collation *collation, struct why *why) {
        if (python->is_whole && !collation_is_stack(collation) && !collation_mixes(collation))
                return why_set(
                        why, -EINVAL,
                        "pipeline, column %zu: python(%s, batch=true) gets and delivers arrays of a whole batch, "
                        "[n, ...], so its part is stacked: leave %s out. Samples that differ in size before the "
                        "function are given as a list",
                        collation->column, python->function, collation_name(collation));
        if (python->function[0] && collation_is_pack(collation))
                return why_set(
                        why, -EINVAL,
                        "pipeline, column %zu: pack fills rows before a sample is read, and how long it is is known "
                        "only after python(%s): use ragged(joined=true) or pad",
                        collation->column, python->function);
        return 0;
}

static int check_alone(const struct part *part, struct why *why) {
        const struct plugin_step_text *plugged = &part->plugged;
        const char *name = plugged->plugin ? plugin_table(plugged->plugin)->steps[plugged->idx_step].name : NULL;

        if (name && part->collation.type)
                return why_set(why, -EINVAL,
                               "pipeline, column %zu: %s and the collation %s.%s of a plug-in would both make the "
                               "batch: leave one of them out",
                               part->collation.column, collation_name(&part->collation), plugin_name(plugged->plugin),
                               name);
        if (name && part->python.function[0])
                return why_set(why, -EINVAL,
                               "pipeline, column %zu: the collation %s.%s of a plug-in gets what steps make, and not "
                               "what python(%s) delivers: leave one of them out",
                               plugged->column, plugin_name(plugged->plugin), name, part->python.function);
        return 0;
}

int read_ending(const struct program *program, struct grammar_steps steps, struct part *ret_part, struct why *why) {
        struct plugins *plugins = program->named ? program->named->plugins : NULL;
        struct grammar *grammar = program->grammar;
        int r = views_read(grammar, steps, &ret_part->views, &steps.n, why);

        if (r < 0)
                return r;
        if (plugin_collation_read(grammar, steps, plugins, &ret_part->plugged))
                steps.n--;
        r = collation_read(grammar, steps, &ret_part->collation, &steps.n, why);
        if (r == 0)
                r = python_step_read(grammar, steps, &ret_part->python, &steps.n, why);
        if (r == 0)
                r = check_function(&ret_part->python, &ret_part->collation, why);
        ret_part->steps = (struct codec_steps){ grammar, steps };
        return r < 0 ? r : check_alone(ret_part, why);
}

bool has_ending(const struct part *part) {
        return part->collation.type || part->python.function[0] || part->plugged.plugin;
}

int bind_plugged(struct program *program, const struct source *source, uint32_t begin,
                 const struct plugin_step_text *plugged, struct why *why) {
        uint32_t idx = program->n_fields - 1;

        if (!plugged->plugin)
                return 0;
        if (idx != begin)
                return why_set(why, -EINVAL,
                               "pipeline, column %zu: a collation of a plug-in is for one field, and a part names %s "
                               "with %s: give each field a part of its own",
                               plugged->column, codec_name(program->codecs[begin]), codec_name(program->codecs[idx]));
        return plugin_collation_new(plugged, program->codecs[idx], source, &program->plugged[idx], why);
}

int check_collated(const struct program *program, uint32_t begin, const struct collation *collation, struct why *why) {
        if (!program_python(program, begin) || collation_is_stack(collation) || collation_mixes(collation))
                return 0;
        for (uint32_t i = begin; i < program->n_fields; i++)
                if (python_step_varies(&program->pythons[i]))
                        return 0;
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: what python(%s) delivers has one shape and is stacked: leave %s out, or "
                       "say that it varies, as in shape=..512 or boxes=float32[..100:4]",
                       collation->column, program->pythons[begin].function, collation_name(collation));
}

int bind_python(struct program *program, uint32_t first, uint32_t begin, const struct python_call *python,
                struct why *why) {
        const char *names[DLP_TENSORS_MAX];
        uint32_t n = program->n_fields - begin;

        for (uint32_t i = 0; i < n; i++)
                names[i] = codec_name(program->codecs[first + i]);
        return python_step_bind(python, names, n, &program->pythons[begin], why);
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
