/* pipeline/sample_states.h: the states of a sample on its way into its slot.
 *
 * Each state has a row in the table of sample_states.c: which thread has the sample, the function that does its work,
 * and which states may follow. A function does its work and returns what follows; the loops here check that the row
 * allows it, and hand the sample to the thread that has it next. Whatever a sample has to wait for (memory, a place in
 * an order, a pause), it waits in its state, and its function runs again.
 *
 * A task (pipeline/task.h) is what a sample has while it is under way; a free task is in the state FREE. */
#pragma once

#include "daemon/pipeline/planner/planner.h"
#include "daemon/pipeline/workers/worker.h"

/* The planner begins a sample, or several, with a free task. */
void states_begin(struct planner *planner, struct task *task, enum sample_state first);

/* The planner goes on with a task that is in one of its states, until another thread has it or it waits. */
void states_plan(struct planner *planner, struct task *task);

/* The same for a worker that has taken the task from the queue. */
void states_work(struct worker *worker, struct task *task);

/* What the task's read needs is here, or request.result says why not. Any thread. */
void states_fetched(struct planner *planner, struct task *task);

/* A sample that waits for its origin, and that nobody wants any more, goes on at once. Planner only. */
void states_leave(struct planner *planner, struct task *task);

/* Passes a task to the workers: its bytes have arrived, or there is nothing to read. Any thread of the reader, or the
 * planner. */
void states_arrived(struct task *task, struct fair_queue *ready);
