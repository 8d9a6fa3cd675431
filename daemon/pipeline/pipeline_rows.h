/* pipeline/pipeline_rows.h: samples that are only copied, many of them a task.
 *
 * Where all fields of a feed are rows of mapped arrays, or known without reading, a sample costs a copy, and a task
 * and a read for each would cost several times that. So a task takes up to TASK_ROWS_MAX samples of a batch, which one
 * worker copies straight from the mapping to their places.
 *
 * That is for rows in the page cache. Where some are not, or the file was cut short, the task falls back: it takes its
 * samples one by one through the reader like all others, and what is wrong with one is handled as everywhere. After
 * rows that were not in memory, samples are planned one a task for a while: the reader keeps a disk busier than workers
 * that wait for pages could.
 *
 * Where functions of the trainer's are applied to them, the task goes to the desk with all its samples, and is one
 * order (pipeline/desk/desk.h says how many samples it may have). If one of them is damaged, or a process ends over it,
 * the samples before it are done, and it and those after it go on one by one. */
#pragma once

#include "daemon/pipeline/workers/worker.h"

/* Can the feed's samples be copied? Call it once the feed has its program and dataset. */
bool rows_are_mapped(const struct feed *feed);

/* Planner: how many samples a task of this feed may take now; 1: one, to be read. */
uint32_t rows_at_once(struct feed *feed);

/* Worker: copies the task's samples. */
enum sample_state rows_copy(struct worker *worker, struct task *task);

/* Worker: a run is back from the desk: all of it, or its first samples are done, and the next one has the outcome. */
enum sample_state rows_function(struct worker *worker, struct task *task);
