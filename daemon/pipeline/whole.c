#include "daemon/pipeline/whole.h"

#include <errno.h>

#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/failure/failure.h"
#include "daemon/pipeline/plugged.h"

/* The task is with this sample of its batch, and with what was served of it. */
static void whole_go_to(struct task *task, uint32_t idx_sample) {
        const struct batch_sample *sample = &task->batch->samples[idx_sample];
        const struct task_row row = { .position = sample->position, .index = sample->index };

        task_begin(task, task->batch, idx_sample, &row);
        task->is_copied = false;
        task->candidate = sample->candidate;
        task->n_tries = sample->n_tries;
}

/* The function is told which samples these are. */
static void write_numbers(const struct batch *batch) {
        int64_t *numbers = (void *)(batch->slot->base + batch->stream->layout.numbers_offset);

        for (uint32_t i = 0; i < batch->n_kept; i++)
                numbers[i] = (int64_t)batch->samples[i].candidate;
}

static void whole_put(struct worker *worker, struct task *task) {
        struct stream *stream = task->batch->stream;
        const struct planner_options *options = &worker->planner->options;

        write_numbers(task->batch);
        whole_go_to(task, 0);
        task->program = programs_with(stream->programs, task->candidate);
        task->own.n_tries = task->carried.n_tries;
        task->carried.is_again = false;
        if (desk_put(stream->desk, task)) /* the stream may be gone after that if its rank has left: see desk_filled */
                options->desk_filled(options->userdata, stream);
}

/* Plug-ins make their tensors last, of samples that nobody changes any more. Returns false if the task waits for memory
 * first: it comes back as from the desk. */
static bool collate(struct worker *worker, struct task *task) {
        struct batch *batch = task->batch;
        struct why why;
        int r;

        if (batch->failed || batch->n_kept == 0 || !batch_is_wanted(batch))
                return true;
        r = plugged_collate(worker, task, &why);
        if (r == SAMPLE_WAITS)
                return false;
        if (r == -EBADMSG)
                failure_of_batch(task, &why, worker->counters);
        else if (r < 0)
                batch_failed(batch, 0, (uint32_t)-r, &why);
        return true;
}

static void whole_end(struct worker *worker, struct task *task) {
        const struct job *job = task->batch->stream->job;

        if (!collate(worker, task))
                return;
        worker_settle(worker, task);
        task->carried = (struct carried){ 0 };
        batch_whole_done(task->batch, worker->counters);
        if (atomic_load_explicit(&job->failed, memory_order_relaxed))
                planner_wake(worker->planner); /* so that the other ranks of the job learn of it */
        planner_return(worker->planner, task);
}

void whole_begin(struct worker *worker, struct task *task) {
        task->carried = (struct carried){ .is_whole = true };
        task->n_rows = 1; /* the others that it had have ended as well */
        task->idx_row = 0;
        if (desk_has_batches(task->batch->stream->desk)) {
                whole_put(worker, task);
                return;
        }
        whole_go_to(task, 0);
        whole_end(worker, task);
}

static void make_again(struct worker *worker, struct task *task, uint32_t idx_sample) {
        whole_go_to(task, idx_sample);
        planner_retry(worker->planner, task);
}

void whole_came_back(struct worker *worker, struct task *task) {
        enum own_state state = task->own.state;
        struct batch *batch = task->batch;

        fair_item_done(&task->ready, 0);
        if (!batch_is_wanted(batch)) {
                whole_end(worker, task);
                return;
        }
        if (state == OWN_AGAIN) {
                task->carried.n_tries = task->own.n_tries;
                task->carried.is_again = true;
                make_again(worker, task, 0);
                return;
        }
        if (state == OWN_FAILED)
                failure_of_batch(task, &task->own.why, worker->counters);
        else if (state == OWN_ENDED)
                batch_failed(batch, 0, EINVAL, &task->own.why);
        whole_end(worker, task);
}

void whole_next(struct worker *worker, struct task *task) {
        struct batch *batch = task->batch;

        if (!batch->failed && batch_is_wanted(batch)) {
                if (task->idx_sample + 1 < batch->n_kept) {
                        make_again(worker, task, task->idx_sample + 1);
                        return;
                }
                batch_close_gaps(batch);
                if (batch->n_kept > 0) {
                        whole_put(worker, task);
                        return;
                }
        }
        whole_end(worker, task);
}
