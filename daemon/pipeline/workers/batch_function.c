#include "daemon/pipeline/workers/batch_function.h"

#include <errno.h>

#include "daemon/codec/plugged/plugin_collation.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/failure/failure.h"
#include "daemon/pipeline/planner/planner.h"
#include "proto/base/shown/amounts.h"
#include "proto/order/philox.h"

/* The task is with this sample of its batch, and with what was served of it. */
static void batch_function_go_to(struct task *task, uint32_t idx_sample) {
        task_begin(task, task->batch, idx_sample, &task->batch->samples[idx_sample]);
        task->is_copied = false;
}

/* The function is told which samples these are. */
static void write_numbers(const struct batch *batch) {
        int64_t *numbers = (void *)(batch->slot->base + batch->feed->layout.numbers_offset);

        for (uint32_t i = 0; i < batch->n_kept; i++)
                numbers[i] = (int64_t)batch->samples[i].candidate;
}

/* The batch is laid on the desk next: the task is with its first sample. */
static enum sample_state to_function(struct task *task) {
        write_numbers(task->batch);
        batch_function_go_to(task, 0);
        task->program = programs_with(task->batch->feed->programs, task->sample.candidate);
        task->function.n_tries = task->n_batch_tries;
        task->remakes = false;
        return SAMPLE_BATCH;
}

enum sample_state batch_function_gather(struct worker *worker, struct task *task) {
        (void)worker;
        task->n_batch_tries = 0;
        task->n_rows = 1; /* the others that it had have ended as well */
        task->idx_row = 0;
        if (desk_has_batches(task->batch->feed->desk))
                return to_function(task);
        batch_function_go_to(task, 0);
        return SAMPLE_COLLATE;
}

static enum sample_state make_again(struct task *task, uint32_t idx_sample) {
        batch_function_go_to(task, idx_sample);
        task->remakes = true;
        return SAMPLE_LOCATE;
}

enum sample_state batch_function_returned(struct worker *worker, struct task *task) {
        enum function_state state = task->function.state;
        struct batch *batch = task->batch;
        struct why why;

        task->function.state = FUNCTION_NONE;
        if (!batch_is_wanted(batch))
                return SAMPLE_COLLATE;
        if (state == FUNCTION_AGAIN) {
                task->n_batch_tries = task->function.n_tries;
                return make_again(task, 0);
        }
        if (state != FUNCTION_DONE)
                desk_why(task, state, &why);
        if (state == FUNCTION_FAILED)
                failure_of_batch(task, &why, worker->counters);
        else if (state == FUNCTION_ENDED)
                batch_failed(batch, 0, EINVAL, &why);
        return SAMPLE_COLLATE;
}

enum sample_state batch_function_next(struct task *task) {
        struct batch *batch = task->batch;

        if (!batch->failed && batch_is_wanted(batch)) {
                if (task->idx_sample + 1 < batch->n_kept)
                        return make_again(task, task->idx_sample + 1);
                batch_close_gaps(batch);
                if (batch->n_kept > 0)
                        return to_function(task);
        }
        return SAMPLE_COLLATE;
}

/* ---- collations of plug-ins -------------------------------------------------------------------------------------- */

/* Of all of them together: a worker that has several plug-ins keeps memory for each. */
static uint64_t need_of(const struct program *program, uint32_t n_samples) {
        uint64_t need = 0;

        for (uint32_t i = 0; i < program_n_fields(program); i++)
                if (program_plugged(program, i))
                        need += plugin_collation_need(program_plugged(program, i), n_samples);
        return need;
}

int batch_function_check(const struct programs *programs, uint32_t batch_size, uint64_t allowed_bytes,
                         struct why *why) {
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
        const struct feed *feed = batch->feed;
        const struct job_terms *terms = &feed->job->terms;
        const struct program *program = programs_first(feed->programs);
        const struct field_layout *field = &feed->layout.fields[idx_field];
        const struct codec *codec = program_codec(program, idx_field);
        const struct codec_input input = { .seed = dlp_philox_seed(terms->seed, terms->draws + codec_draws(codec)),
                                           .sample = batch->position,
                                           .epoch = (uint32_t)batch->epoch };

        return plugin_collation_run(program_plugged(program, idx_field), codec, worker->tools, &input, batch->n_kept,
                                    batch->slot->base + field->input_offset, batch->slot->base + field->offset, why);
}

static int collate_fields(struct worker *worker, struct task *task, struct why *why) {
        const struct program *program = programs_first(task->batch->feed->programs);
        int r = worker_reserve(worker, task, need_of(program, task->batch->n_kept));

        if (r == -EFBIG) /* batch_function_check() has seen to it */
                return why_errno(why, -ENOMEM, "collations of plug-ins");
        for (uint32_t i = 0; i < program_n_fields(program) && r == 0; i++)
                if (program_plugged(program, i))
                        r = collate_field(worker, task->batch, i, why);
        return r;
}

/* Makes the tensors of the task's batch, whose samples are complete and without gaps; the task is with the first of
 * them. Takes as long as the plug-ins do. Returns 0, SCRATCH_WAITS; -EBADMSG: one fails, or its process ended or hung;
 * -ENOMEM, -ECANCELED. */
static int plugged_collate(struct worker *worker, struct task *task, struct why *why) {
        struct stage_clock *clock = codec_tools_clock(worker->tools);
        struct tally *tally = worker_tally(worker, task->batch);
        uint64_t begin_ns, took_ns;
        int r;

        if (need_of(programs_first(task->batch->feed->programs), 1) == 0)
                return 0;
        begin_ns = stage_clock_start(clock, STAGE_OTHER);
        r = collate_fields(worker, task, why);
        if (r == SCRATCH_WAITS) {
                stage_clock_drop(clock);
                return r;
        }
        worker_settle(worker, task);
        took_ns = stage_clock_stop(clock) - begin_ns;
        stage_clock_harvest(clock, &tally->stages);
        worker->serving_ns += took_ns;
        batch_took(task->batch, 0, 0, took_ns);
        tally_add(tally, &(struct tally_counts){ .serving_ns = took_ns });
        counter_add(&worker->counters->decode_ns, took_ns);
        return r;
}

/* Plug-ins make their tensors last, of samples that nobody changes any more. */
static int collate(struct worker *worker, struct task *task) {
        struct batch *batch = task->batch;
        struct why why;
        int r;

        if (batch->failed || batch->n_kept == 0 || !batch_is_wanted(batch))
                return 0;
        r = plugged_collate(worker, task, &why);
        if (r == -EBADMSG)
                failure_of_batch(task, &why, worker->counters);
        else if (r < 0)
                batch_failed(batch, 0, (uint32_t)-r, &why);
        return r;
}

enum sample_state batch_function_collate(struct worker *worker, struct task *task) {
        const struct job *job = task->batch->feed->job;

        if (collate(worker, task) == SCRATCH_WAITS)
                return SAMPLE_ELSEWHERE;
        worker_settle(worker, task);
        task->remakes = false;
        batch_whole_done(task->batch, worker->counters);
        if (atomic_load_explicit(&job->failed, memory_order_relaxed))
                planner_wake(worker->planner); /* so that the other ranks of the job learn of it */
        return SAMPLE_FREE;
}
