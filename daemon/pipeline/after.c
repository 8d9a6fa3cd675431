#include "daemon/pipeline/after.h"

#include <errno.h>

#include "daemon/codec/after/after.h"
#include "daemon/pipeline/batch.h"
#include "proto/base/amounts.h"

static int refuse_memory(uint64_t need_bytes, uint64_t allowed_bytes, struct why *why) {
        char need[AMOUNT_TEXT_MAX], allowed[AMOUNT_TEXT_MAX];

        format_compared(need, need_bytes, allowed, allowed_bytes);
        return why_set(why, -EFBIG,
                       "the steps after the function may take %s, %s are allowed (a quarter of memory_limit, 1 GiB at "
                       "most)",
                       need, allowed);
}

static int serve_field(struct worker *worker, struct task *task, uint32_t idx_field, struct why *why) {
        const struct collating *collating = &task->batch->collating;
        const struct field_layout *field = &collating->layout->fields[idx_field];
        const struct after *after = program_after(task->program, idx_field);
        struct codec_input input = task_input(task, idx_field);
        uint64_t need = 0;
        int r = after_open(after, program_codec(task->program, idx_field), worker->tools, &input, &field->form, &need,
                           why);

        if (r == 0)
                r = worker_reserve(worker, task, need);
        if (r == -EFBIG && need > 0)
                return refuse_memory(need, worker->scratch->n_bytes, why);
        if (r != 0)
                return r;
        return after_render(after, worker->tools, &field->form,
                            collating->slot + field->result_offset + field->result_bytes * task->idx_sample,
                            collating->slot + field->offset + field->sample_bytes * task->idx_sample, why);
}

static bool has_after(const struct program *program) {
        for (uint32_t i = 0; i < program_n_fields(program); i++)
                if (program_after(program, i))
                        return true;
        return false;
}

int after_serve(struct worker *worker, struct task *task, struct why *why) {
        struct stage_clock *clock = codec_tools_clock(worker->tools);
        uint64_t begin_ns;
        int r = 0;

        if (!has_after(task->program))
                return 0;
        begin_ns = stage_clock_start(clock, STAGE_OTHER);
        for (uint32_t i = 0; i < program_n_fields(task->program) && r == 0; i++)
                if (program_after(task->program, i))
                        r = serve_field(worker, task, i, why);
        if (r == SAMPLE_WAITS) {
                stage_clock_drop(clock);
                return r;
        }
        worker_settle(worker, task);
        worker->serving_ns = stage_clock_stop(clock) - begin_ns;
        stage_clock_harvest(clock, &worker_tally(worker, task->batch)->stages);
        batch_took(task->batch, 0, 0, worker->serving_ns);
        tally_add(worker_tally(worker, task->batch), &(struct tally_counts){ .serving_ns = worker->serving_ns });
        counter_add(&worker->counters->decode_ns, worker->serving_ns);
        return r;
}
