/* pipeline/plugged.h: the collations of plug-ins, which make tensors of whole batches. */
#pragma once

#include "daemon/pipeline/worker.h"

/* Is there memory for them? -EINVAL: a batch and what they make of it would take more than workers may have. When a
 * rank attaches. `allowed_bytes`: of the pool for large samples. */
int plugged_check(const struct programs *programs, uint32_t batch_size, uint64_t allowed_bytes, struct why *why);

/* Makes the tensors of the task's batch, whose samples are complete and without gaps; the task is with the first of
 * them. Takes as long as the plug-ins do. Returns 0, SAMPLE_WAITS; -EBADMSG: one fails, or its process ended or hung;
 * -ENOMEM, -ECANCELED. The worker's thread. */
int plugged_collate(struct worker *worker, struct task *task, struct why *why);
