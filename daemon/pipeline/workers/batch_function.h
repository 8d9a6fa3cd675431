/* pipeline/workers/batch_function.h: batches that functions of the trainer's get whole, python(my, batch=true), or collations of plug-ins.
 *
 * The task that ends the last sample of such a batch carries the batch on. It closes the gaps of samples that were left
 * out, so that the function gets arrays without any, and lays itself on the desk of its feed: one order for the whole
 * batch. When it is back, plug-ins make their tensors in this thread, as they do at once where no
 * function gets the batch; then it is mixed and published, or it has failed.
 *
 *      END (of the last sample) -> GATHER -> BATCH -> COLLATE -> FREE
 *                                              |
 *                                              | the process has ended: samples may be half changed, so they are made
 *                                              v again, one after the other (task->remakes)
 *                                    LOCATE -> ... -> END -> batch_function_next() -> LOCATE or BATCH
 *
 * No other task is needed to make the samples again: a batch may have more of them than there are tasks. They are made
 * in the places that they have by then, of what batch->samples says. One that cannot be read any more meets the policy
 * of its job, as every sample does. */
#pragma once

#include "daemon/pipeline/workers/worker.h"

/* Is there memory for collations of plug-ins? -EINVAL: a batch and what they make of it would take more than workers
 * may have. When a rank attaches. `allowed_bytes`: of the pool for large samples. */
int batch_function_check(const struct programs *programs, uint32_t batch_size, uint64_t allowed_bytes, struct why *why);

/* The task has ended the last sample of its batch: batch_samples_are_last(). The worker's thread, likewise those below.
 */
enum sample_state batch_function_gather(struct worker *worker, struct task *task);

/* The batch is back from the desk. */
enum sample_state batch_function_returned(struct worker *worker, struct task *task);

/* The batch is complete, or will not be: its last tensors are made, and it is published. */
enum sample_state batch_function_collate(struct worker *worker, struct task *task);

/* A sample that such a task made again has ended: served, left out, or its batch has failed. */
enum sample_state batch_function_next(struct task *task);
