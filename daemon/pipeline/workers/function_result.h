/* pipeline/workers/function_result.h: what is left to do when a sample comes back from the desk: the steps after a function of the
 * trainer's; and what varies in size is checked, and put where collation wants it (pipeline/sample_states.h). */
#pragma once

#include "daemon/pipeline/workers/worker.h"

/* The sample is back: task->function.state says what has become of it there. */
enum sample_state function_result_take(struct worker *worker, struct task *task);

/* Makes the fields of what the function has delivered. If it waits for memory, it begins anew. */
enum sample_state function_result_serve(struct worker *worker, struct task *task);
