#include "daemon/pipeline/plugged.h"

#include <errno.h>

#include "daemon/codec/plugged/plugin_collation.h"
#include "daemon/pipeline/batch.h"
#include "proto/base/amounts.h"
#include "proto/order/philox.h"

/* Of all of them together: a worker that has several plug-ins keeps memory for each. */
static uint64_t need_of(const struct program *program, uint32_t n_samples) {
        uint64_t need = 0;

        for (uint32_t i = 0; i < program_n_fields(program); i++)
                if (program_plugged(program, i))
                        need += plugin_collation_need(program_plugged(program, i), n_samples);
        return need;
}

int plugged_check(const struct programs *programs, uint32_t batch_size, uint64_t allowed_bytes, struct why *why) {
        uint64_t need = need_of(programs_first(programs), batch_size);
        char needed[AMOUNT_TEXT_MAX], allowed[AMOUNT_TEXT_MAX];

        if (need <= allowed_bytes)
                return 0;
        format_compared(needed, need, allowed, allowed_bytes);
        return why_set(why, -EINVAL,
                       "batch_size: %u samples and what collations of plug-ins make of them take %s, %s are allowed (a "
                       "quarter of memory_limit, 1 GiB at most): ask for a smaller batch, let steps make the samples "
                       "smaller, or raise memory_limit",
                       batch_size, needed, allowed);
}

/* What it draws belongs to the batch, and differs from view to view, as where samples are mixed. */
static int collate_field(struct worker *worker, const struct batch *batch, uint32_t idx_field, struct why *why) {
        const struct stream *stream = batch->stream;
        const struct job_terms *terms = &stream->job->terms;
        const struct program *program = programs_first(stream->programs);
        const struct field_layout *field = &stream->layout.fields[idx_field];
        const struct codec *codec = program_codec(program, idx_field);
        const struct codec_input input = { .seed = dlp_philox_seed(terms->seed, terms->draws + codec_draws(codec)),
                                           .sample = batch->position,
                                           .epoch = (uint32_t)batch->epoch };

        return plugin_collation_run(program_plugged(program, idx_field), codec, worker->tools, &input, batch->n_kept,
                                    batch->slot->base + field->input_offset, batch->slot->base + field->offset, why);
}

static int collate_fields(struct worker *worker, struct task *task, struct why *why) {
        const struct program *program = programs_first(task->batch->stream->programs);
        int r = worker_reserve(worker, task, need_of(program, task->batch->n_kept));

        if (r == -EFBIG) /* plugged_check() has seen to it */
                return why_errno(why, -ENOMEM, "collations of plug-ins");
        for (uint32_t i = 0; i < program_n_fields(program) && r == 0; i++)
                if (program_plugged(program, i))
                        r = collate_field(worker, task->batch, i, why);
        return r;
}

int plugged_collate(struct worker *worker, struct task *task, struct why *why) {
        struct stage_clock *clock = codec_tools_clock(worker->tools);
        struct tally *tally = worker_tally(worker, task->batch);
        uint64_t begin_ns, took_ns;
        int r;

        if (need_of(programs_first(task->batch->stream->programs), 1) == 0)
                return 0;
        begin_ns = stage_clock_start(clock, STAGE_OTHER);
        r = collate_fields(worker, task, why);
        if (r == SAMPLE_WAITS) {
                stage_clock_drop(clock);
                return r;
        }
        worker_settle(worker, task);
        took_ns = stage_clock_stop(clock) - begin_ns;
        stage_clock_harvest(clock, &tally->stages);
        fair_item_done(&task->ready, took_ns);
        batch_took(task->batch, 0, 0, took_ns);
        tally_add(tally, &(struct tally_counts){ .serving_ns = took_ns });
        counter_add(&worker->counters->decode_ns, took_ns);
        return r;
}
