/* pipeline/task.h: one sample on its way from its file into its slot.
 *
 * There are more tasks than `read_depth` (pipeline/jobs/shares.h), made once. A task belongs to exactly one of: the
 * planner (free, or to be read again with another sample), the reader, the workers' queue, a worker, a desk. After a
 * thread has passed it on, that thread must not touch it. Samples that are only copied share a task
 * (pipeline/pipeline_rows.h). */
#pragma once

#include <assert.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/threads/fair_queue.h"
#include "daemon/base/threads/queue.h"
#include "daemon/io/reader.h"
#include "daemon/pipeline/feed.h"
#include "daemon/pipeline/memory/large_buffers.h"
#include "daemon/store/cache/cache.h"

#define TASK_BUFFER_BYTES (256u << 10) /* registered with the kernel; an ImageNet photo is 110 KiB */

/* What is done with a sample next (pipeline/sample_states.h). */
enum sample_state {
        SAMPLE_FREE, /* of the task: it has no sample */
        SAMPLE_LOCATE,
        SAMPLE_FETCH,
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

        SAMPLE_GATHER, /* of a whole batch (pipeline/workers/batch_function.h) */
        SAMPLE_BATCH,
        SAMPLE_COLLATE,
        SAMPLE_REPLAY,

        N_SAMPLE_STATES,
        SAMPLE_ELSEWHERE, /* returned by a function that has left the task, as it is, to somebody who passes it on */
};

struct picture_size {
        uint32_t width, height;
};

/* A piece of what a task reads. */
struct field_bytes {
        uint64_t offset; /* from the first byte that is read */
        uint64_t n_bytes;
        uint32_t idx_read; /* which of the sample's reads brings it */
        bool is_absent;    /* the sample does not have the field */
};

#define TASK_ROWS_MAX 64u /* samples that one task copies (pipeline/pipeline_rows.h): 256 KiB of rows of 4 KiB */
static_assert(TASK_ROWS_MAX <= DLP_RUN_MAX, "a task with functions is one order");

struct task_row {
        uint64_t position;
        uint64_t index;
};

static inline struct batch_sample task_row_sample(const struct task_row *row) {
        return (struct batch_sample){ .position = row->position, .index = row->index, .candidate = row->index };
}

/* What has become of a sample that was laid on its feed's desk (pipeline/desk/desk.h). */
enum function_state {
        FUNCTION_NONE,   /* it has not been there */
        FUNCTION_DONE,   /* the trainer's functions have been applied; or its rank has left */
        FUNCTION_FAILED, /* one of them failed, */
        FUNCTION_AGAIN,  /* a process ended over it: it may be half changed, and is made again */
        FUNCTION_ENDED,  /* or the job ends: desk_why() */
};

struct task_function {
        enum function_state state;
        uint32_t n_tries;    /* processes that have ended over the candidate */
        uint32_t n_done;     /* of a run: its samples before the one that `state` is about, unless that is about all */
        uint32_t idx_blamed; /* of a run: the sample over which a process has ended; UINT32_MAX: none */
        uint64_t number;     /* of the order: of the first of a run */
        uint64_t worker;     /* number of the process that ended last, */
        uint64_t lost_ns;    /* and when */
        bool is_blamed;      /* the process had begun it last */
        bool is_closed;      /* the daemon had closed its connection: trouble->last says why */
};

/* What is known of a sample with which something is wrong; allocated when that is met. */
struct trouble {
        struct why reason; /* why another one takes its place, or is to; "": none is */
        struct why last;   /* what came after that, what a function said, or what is not judged yet, */
        uint64_t round;    /* as of outage_judge(), */
        uint64_t since_ns; /* and since when the candidate cannot be read; 0: that is not so */

        /* While it is parked without a task (pipeline/failure/park.h). */
        TAILQ_ENTRY(trouble) entry;
        struct batch *batch;
        uint32_t idx_sample;
        struct batch_sample sample;
        bool remakes;
        uint32_t n_batch_tries;
};

/* The members are grouped by the states that fill them in (pipeline/sample_states.h); later states read them, too. */
struct task {
        STAILQ_ENTRY(task) entry;
        enum sample_state state;
        struct fair_item ready; /* in the workers' queue */
        uint8_t *own_buffer;    /* TASK_BUFFER_BYTES, registered as buffer `idx` if that many are registered */
        uint32_t idx;

        /* In all states but FREE: the sample that it is with, or, one after the other, the rows of its batch. */
        struct batch *batch;
        uint32_t idx_sample; /* in the batch */
        struct batch_sample sample;
        const struct program *program; /* of the candidate's part of the dataset */
        uint32_t n_rows;               /* samples that it takes; idx_sample is of the one that it is with, */
        uint32_t idx_row;              /* and this is its number among them */
        bool is_copied; /* all its rows are to be copied, nothing is read; where functions follow, they are a run */
        bool remakes; /* the batch's samples are made again, one after the other (pipeline/workers/batch_function.h), */
        uint32_t n_batch_tries; /* and this many processes have ended over the batch */
        struct task_row rows[TASK_ROWS_MAX];

        /* FETCH: until the read is over, for what lies elsewhere. */
        struct cache_want want;
        struct cached *held;      /* where the want holds what is read; NULL: nowhere */
        struct cached *asked;     /* where it was asked for last; the planner's */
        _Atomic bool is_fetching; /* its origin is waited for */
        uint64_t fetch_ns;        /* for how long that was, of the read under way */

        /* LOCATE, READ, OPEN: the read under way. */
        struct read_request request;
        struct large_buffer *large; /* for a file that is larger than own_buffer; NULL: it fits */
        uint32_t n_reads;  /* of the sample: one for each file that has fields of it. 0: nothing has to be read */
        uint32_t idx_read; /* the one under way; the fields of earlier ones are served */
        struct field_bytes fields[DLP_TENSORS_MAX]; /* where each field of its feed's program lies in what is read */
        struct source_piece piece;                  /* of a gathered field: what the read under way brings */
        bool is_head; /* the read under way brings the first bytes of a long sound: locate_take_head() */
        struct codec_excerpt excerpt; /* the read under way brings this part of it, if it has a head */
        char path[PATH_MAX];          /* request.path, if the sample is a file of its own */
        uint64_t asked_ns;            /* when the candidate's bytes were requested */
        _Atomic uint64_t reading_ns;  /* since when the reader has it; 0: it does not */
        bool is_stuck;                /* planner: its read has not come back for a long time */
        uint64_t arrived_ns;          /* when the bytes had arrived */

        /* RENDER: the worker that has it. */
        uint32_t idx_field; /* the first field (in program_serving()) that is not served yet; it may wait for memory */
        struct picture_size sizes[DLP_TENSORS_MAX]; /* of the pictures that are served, as they are stored */
        struct codec_kept kept;                     /* boxes of the candidate */
        const char *bad_field;    /* which one the candidate failed with; NULL: none, or more than one */
        uint64_t n_scratch_bytes; /* pipeline/memory/scratch.h: what it has borrowed, or waits for; else 0 */
        uint64_t scratch_ns;      /* since when it has that */
        bool gave_way; /* the candidate was given up for another user once; not again, or it might never be made */

        /* FUNCTION, RUN, BATCH: whoever has the task. */
        struct task_function function;
        int64_t inputs[DLP_TENSORS_MAX][FIELD_DIMS_MAX];  /* shapes of what functions are given, where it varies */
        int64_t results[DLP_TENSORS_MAX][FIELD_DIMS_MAX]; /* the same of what they delivered, as their process says: */
                                                          /* not checked */

        /* FAULT and what follows it. */
        struct trouble *trouble; /* owned; NULL: nothing was wrong with the sample */
        uint32_t n_shortages;    /* tries that failed for lack of memory or descriptors */
        uint64_t not_before_ns;  /* such a task rests until then; 0: to be read at once */
};

/* How many samples it has with it now. */
static inline uint32_t task_n_samples(const struct task *task) {
        return task->is_copied ? task->n_rows : 1;
}

static inline struct task *task_of_ready(struct fair_item *item) {
        return (struct task *)((uint8_t *)item - offsetof(struct task, ready));
}

/* From now on the task is with this sample of the batch. Planner, or the worker that has it. */
void task_begin(struct task *task, struct batch *batch, uint32_t idx_sample, const struct batch_sample *sample);

/* What is known of the trouble with its sample. NULL: there is no memory for it. Any thread that has the task. */
struct trouble *task_trouble(struct task *task);

/* From now on it is with its row `idx_row`, and takes the others one by one. */
void task_go_to_row(struct task *task, uint32_t idx_row);

/* Its next row is the sample that it is with from now on, to be read. Returns false if there is none. */
bool task_next_row(struct task *task);

/* Nothing is read for its sample, or for its batch; what an earlier one read may be gone. Any thread that has the
 * task. */
void task_read_nothing(struct task *task);

/* For how long the reader has had it; 0 if it has not. Planner only. */
uint64_t task_reading_ns(const struct task *task, uint64_t now_ns);

/* The seed of its candidate's draws, which depend on epoch, sample and step as well. View v has the draws of a job
 * whose `draws` is larger by v. In an order that repeats samples, the position is a part of the seed, so that a sample
 * is cropped and coloured differently each time. Any thread that has the task. */
uint64_t task_seed(const struct task *task, uint32_t view);

/* The same for another one of its rows, which has this position. */
uint64_t task_seed_at(const struct task *task, uint64_t position, uint32_t view);

/* A field of the candidate, as its codec gets it. The worker that has the task. */
struct codec_input task_input(struct task *task, uint32_t idx_field);

/* Gives back the buffer for a large file. Planner only. */
void task_trim(struct task *task);
