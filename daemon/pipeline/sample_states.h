/* pipeline/sample_states.h: the states of a sample on its way into its slot.
 *
 * Each state has a row in the table of sample_states.c: which thread has the sample, the function that does its work,
 * and which states may follow. A function does its work and returns what follows; the loops here check that the row
 * allows it, and hand the sample to the thread that has it next. Whatever a sample has to wait for (memory, a place in
 * an order, a pause), it waits in its state, and its function runs again.
 *
 * A task (pipeline/task.h) is what a sample has while it is under way; a free task is in the state FREE. */
#pragma once

enum sample_state {
        SAMPLE_FREE, /* of the task: it has no sample */
        SAMPLE_LOCATE,
        SAMPLE_READ,
        SAMPLE_OPEN,
        SAMPLE_RENDER,
        SAMPLE_FUNCTION,
        SAMPLE_FINISH,
        SAMPLE_SERVED,

        SAMPLE_FAULT,
        SAMPLE_RETRY,
        SAMPLE_REST,
        SAMPLE_PARK,
        SAMPLE_SUBSTITUTE,
        SAMPLE_SKIP,
        SAMPLE_FAIL,
        SAMPLE_DROP,
        SAMPLE_END,

        SAMPLE_COPY, /* of several samples that are only copied (pipeline/pipeline_rows.h) */
        SAMPLE_RUN,

        SAMPLE_GATHER, /* of a whole batch (pipeline/whole.h) */
        SAMPLE_BATCH,
        SAMPLE_COLLATE,
        SAMPLE_REPLAY,

        N_SAMPLE_STATES,
        SAMPLE_ELSEWHERE, /* returned by a function that has left the task, as it is, to somebody who passes it on */
};

struct fair_queue;
struct planner;
struct task;
struct worker;

/* The planner begins a sample, or several, with a free task. */
void states_begin(struct planner *planner, struct task *task, enum sample_state first);

/* The planner goes on with a task that is in one of its states, until another thread has it or it waits. */
void states_plan(struct planner *planner, struct task *task);

/* The same for a worker that has taken the task from the queue. */
void states_work(struct worker *worker, struct task *task);

/* Passes a task to the workers: its bytes have arrived, or there is nothing to read. Any thread of the reader, or the
 * planner. */
void states_arrived(struct task *task, struct fair_queue *ready);
