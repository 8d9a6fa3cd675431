/* pipeline/workers/sample_serve.h: what a worker does with a sample, from bytes that have arrived to its end (pipeline/sample_states.h). */
#pragma once

#include "daemon/pipeline/workers/worker.h"

/* Its bytes have arrived, or could not be read. */
enum sample_state sample_open(struct worker *worker, struct task *task);

/* The fields of this read are made, in their places. */
enum sample_state sample_render(struct worker *worker, struct task *task);

/* It is in its place, complete. */
enum sample_state sample_served(struct worker *worker, struct task *task);

/* Nobody wants it any more. */
enum sample_state sample_drop(struct worker *worker, struct task *task);

/* It has ended: served, left out, failed or dropped. The last one of a batch completes it. */
enum sample_state sample_end(struct worker *worker, struct task *task);

/* A whole batch is served again, from a copy. */
enum sample_state sample_replay(struct worker *worker, struct task *task);

/* Work on the sample has ended with `error`, or RENDERING_DROPPED; why: worker->fault.why. Returns FAULT, or what
 * follows if it was only given up. */
enum sample_state sample_failed(struct worker *worker, const struct task *task, int error);
