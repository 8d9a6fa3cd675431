#include "daemon/pipeline/workers/worker.h"

#include <errno.h>

#include "proto/base/clock.h"

bool worker_has_scratch(const struct worker *worker, const struct task *task, uint64_t need) {
        return need <= worker->own_bytes || need <= task->n_scratch_bytes;
}

int worker_reserve(struct worker *worker, struct task *task, uint64_t need) {
        if (need == 0 || codec_tools_bytes(worker->tools) + need <= worker->own_bytes)
                return 0;
        codec_tools_trim(worker->tools);
        if (worker_has_scratch(worker, task, need))
                return 0;
        if (need > worker->scratch->n_bytes)
                return -EFBIG;
        scratch_give(worker->scratch, task, clock_now_ns()); /* a task that waits holds no scratch */
        fair_item_refund(&task->ready); /* before it waits: another worker may have the task a moment later */
        if (scratch_take(worker->scratch, task, need, clock_now_ns()) == SCRATCH_WAITS) {
                counter_add(&worker->counters->n_scratch_waits, 1);
                return SCRATCH_WAITS;
        }
        return 0;
}

/* Gives back what the task was granted, whether it was needed or not. This comes after the memory itself has been
 * freed. */
void worker_settle(struct worker *worker, struct task *task) {
        if (task->n_scratch_bytes == 0)
                return;
        codec_tools_trim(worker->tools);
        scratch_give(worker->scratch, task, clock_now_ns());
}

struct tally *worker_tally(const struct worker *worker, const struct batch *batch) {
        return &batch->feed->job->tallies[worker->idx % TALLIES];
}
