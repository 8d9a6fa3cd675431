/* pipeline/workers/fields.h: the fields of a sample, from bytes that have been read to elements in their places.
 *
 * Each field is opened (its shape is known then), charged for the memory that it needs, placed by its collation, and
 * rendered: by the worker's own codec, or by the cell of the sample's user (pipeline/isolation). */
#pragma once

#include "daemon/pipeline/workers/worker.h"

/* Serves all fields that the task's read brought: first those that may fail halfway, then those that are only copied. A
 * field that had to wait for memory goes on where it was. Returns 0; SCRATCH_WAITS or RENDERING_DROPPED: the task is no
 * longer this worker's, or nobody wants the sample; a negative errno: `why` says what is wrong with the sample. The
 * worker's own thread. */
int fields_serve(struct worker *worker, struct task *task, struct why *why);

/* The field that the task's read was to bring, if it is one alone; NULL: it brings several. Valid as long as the
 * feed. */
const char *fields_only_read(const struct task *task);
