/* pipeline/after.h: what is left to do when a sample comes back from the desk: the steps after a function of the
 * trainer's; and what varies in size is checked, and put where collation wants it. */
#pragma once

#include "daemon/pipeline/worker.h"

/* Makes the fields of what the function has delivered. Returns 0; SAMPLE_WAITS: it comes back and begins anew, once
 * there is memory; or a negative errno for what is wrong. The worker's thread. */
int after_serve(struct worker *worker, struct task *task, struct why *why);
