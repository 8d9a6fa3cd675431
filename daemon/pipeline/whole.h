/* pipeline/whole.h: batches that functions of the trainer's get whole, python(my, batch=true), or collations of plug-ins.
 *
 * The task that ends the last sample of such a batch carries the batch on. It closes the gaps of samples that were left
 * out, so that the function gets arrays without any, and lays itself on the desk of its stream: one order for the whole
 * batch. When it is back, plug-ins make their tensors in this thread (pipeline/plugged.h), as they do at once where no
 * function gets the batch; then it is mixed and published, or it has failed.
 *
 *      the last sample ends -> whole_begin() -> desk -> whole_came_back() -> published
 *                                   ^                        | the process has ended: samples may be half changed
 *                                   +--- whole_next() <------+ so they are made again, one after the other
 *
 * No other task is needed to make the samples again: a batch may have more of them than there are tasks. They are made
 * in the places that they have by then, of what batch->samples says. One that cannot be read any more meets the policy
 * of its job, as every sample does. */
#pragma once

#include "daemon/pipeline/worker.h"

/* The task has ended the last sample of its batch: batch_samples_are_last(). The worker's thread, likewise those below.
 */
void whole_begin(struct worker *worker, struct task *task);

/* A task that carries a batch, and does not make its samples again, is back from the desk, or has waited for memory. */
void whole_came_back(struct worker *worker, struct task *task);

/* A sample that such a task was to make again has ended: served, left out, or its batch has failed. */
void whole_next(struct worker *worker, struct task *task);
