/* pipeline/after.h: the steps after a function of the trainer's, when a sample comes back from the desk. */
#pragma once

#include "daemon/pipeline/worker.h"

/* Makes the fields of what the function has delivered. Returns 0; SAMPLE_WAITS: it comes back and begins anew, once
 * there is memory; or a negative errno for what is wrong. The worker's thread. */
int after_serve(struct worker *worker, struct task *task, struct why *why);
