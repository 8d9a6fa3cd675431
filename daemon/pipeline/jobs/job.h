/* pipeline/jobs/job.h: one training run: the ranks that attached under one name, and what they agreed on.
 *
 * The first rank sets the job's terms; a rank whose terms differ is refused with the name of the term and both values.
 * A job lives as long as one of its ranks is attached. Everything except the failure belongs to the main thread. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/budget.h"
#include "daemon/base/machine/machine_process.h"
#include "daemon/base/threads/fair_queue.h"
#include "daemon/base/threads/queue.h"
#include "daemon/base/work/work.h"
#include "daemon/data/orders/data_sampling.h"
#include "daemon/io/reader.h"
#include "daemon/pipeline/failure/damage.h"
#include "daemon/pipeline/jobs/attendance.h"
#include "daemon/pipeline/jobs/shares.h"
#include "daemon/pipeline/jobs/tally.h"
#include "daemon/pipeline/jobs/user.h"
#include "daemon/pipeline/memory/scratch_account.h"
#include "daemon/ring/step_waits.h"
#include "proto/base/why.h"
#include "proto/order/epoch_plan.h"
#include "proto/order/sampler.h"

enum on_error {
        ON_ERROR_FAIL,       /* a damaged sample ends the job */
        ON_ERROR_SUBSTITUTE, /* the next good sample of the order is served in its place */
        ON_ERROR_SKIP,       /* it is left out of its batch, which is smaller then */
};

/* "fail", "substitute", "skip"; NULL / -EINVAL for anything else. */
const char *on_error_name(enum on_error on_error);
int on_error_from_name(const char *name, enum on_error *ret_on_error);

/* The terms on which all ranks must agree. */
struct job_terms {
        char dataset[DLP_DATASET_MAX];
        char digest[65];                 /* of the dataset, hex */
        char pipeline[DLP_PIPELINE_MAX]; /* canonical spelling */
        uint32_t world;
        uint32_t batch_size;
        uint32_t shuffle_buffer; /* samples; 0: the order has none */
        uint32_t window;         /* blocks; likewise */
        uint64_t seed;
        uint64_t draws;     /* stream of draws of the augmentation (proto/order/philox.h); 0: the seed's own */
        uint64_t n_samples; /* of the dataset */
        double max_errors;  /* as asked for, checked */
        bool shuffle;
        enum dlp_order_kind order;     /* of the shuffling */
        char sampler[DLP_SAMPLER_MAX]; /* canonical spelling; "": none */
        char columns[65];              /* digest of the trainer's columns; "": none */
        bool is_made;                  /* a sampler's steps make the order; only then is an epoch's length known */
        bool repeats;                  /* and may have a sample several times */
        bool uses_batch_size;          /* and depends on it */
        bool has_units;                /* and units of several samples */
        bool deals_batches;            /* and a unit of it is a whole batch */
        bool drop_last;
        enum dlp_dealing dealing;
        enum dlp_partition partition;
        enum on_error on_error;
};

/* Where a rank continues: with batch `step` of what is left of an epoch from the global `position` on. The samples
 * before the position were served to an earlier run; the rest is dealt out to the ranks anew. */
struct cursor {
        uint64_t epoch;
        uint64_t position; /* 0 .. samples of the dataset */
        uint64_t step;     /* of this rank */
};

struct job_member {
        LIST_ENTRY(job_member) entry;
        uint32_t rank;
        uint32_t pid;           /* for messages */
        struct process process; /* the session's, which sets it: PROCESS_NONE at first */
        struct cursor cursor;   /* where it last began, at attach or by a seek */
        bool has_moved;         /* it came to `cursor` by a seek */
};

struct job {
        LIST_ENTRY(job) entry;
        char name[DLP_NAME_MAX];
        uid_t uid;                   /* the user who started it. Two users may have jobs with the same name. */
        struct household *household; /* the accounts to which all of its ranks count */
        struct job_terms terms;
        struct sampling *sampling; /* a reference; NULL: the terms alone say the order. Not only if is_made:
                                    * an order of blocks has the blocks from it */
        LIST_HEAD(, job_member) members;
        uint32_t n_members;
        struct attendance attendance;
        struct damage damage;
        struct step_waits waits;
        _Atomic uint64_t traced; /* its word, for whoever writes events (base/base_trace.h) */
        _Atomic uint32_t refs;   /* the members, and feeds whose last samples are still under way */

        pthread_mutex_t lock;                     /* guards what follows; only work.lock is taken under it */
        struct budget *orders_budget;             /* paid for orders_bytes; NULL: none has yet */
        uint64_t orders_bytes, orders_used_bytes; /* for the tables of the orders of its epochs */
        _Atomic bool failed;
        struct why failure;     /* the first one */
        uint32_t failure_code;  /* its errno, positive */
        bool has_order_told;    /* an order is being made, */
        uint64_t order_epoch;   /* that of this epoch, */
        struct work order_work; /* and it is so far */

        struct task_share tasks;        /* planner */
        struct read_share reading;      /* the reader's */
        struct scratch_account scratch; /* the pool's */

        _Alignas(64) struct fair_share share; /* of the workers' time; written by all of them for each sample */
        struct tally tallies[TALLIES];        /* likewise */
};

LIST_HEAD(jobs, job);

/* A user's job by its name, or NULL. */
struct job *job_find(struct jobs *jobs, uid_t uid, const char *name);

/* Enters a rank into `job`, or, if that is NULL, into a new one of `household`, which outlives the job. -EINVAL a
 * term differs, -EADDRINUSE the rank is taken (names its pid), -EBUSY the job has failed, -EUSERS too many ranks of one
 * job on this node; -EAGAIN instead of the first three if the ranks in the way belong to processes that are ending: a
 * restarted run gets in once these are gone. The job holds one reference for the member, and a new job takes one to
 * `sampling`, which may be NULL. */
int job_join(struct jobs *jobs, struct job *job, struct household *household, const char *name,
             const struct job_terms *terms, struct sampling *sampling, uint32_t rank, uint32_t pid,
             struct job **ret_job, struct job_member **ret_member, struct why *why);

/* Remembers where a new member begins. -EINVAL if another member asked for the same epoch from a position from which
 * its samples are dealt out otherwise: then the two loaded different states, and samples would come twice or never.
 * Positions that are a number of rounds apart (proto/order/dealing.h) deal alike, and after the last sample the next
 * epoch begins. A member that begins with an epoch is not compared with one that has sought elsewhere since: it may be
 * about to do the same. -EAGAIN if the other one is ending. */
int job_place(const struct job *job, struct job_member *member, const struct cursor *cursor, struct why *why);

/* The same for a member that seeks, or that comes back after the daemon restarted. It is not compared with the others,
 * whose seeks may still be on their way. */
void job_move(const struct job *job, struct job_member *member, const struct cursor *cursor);

/* The order as people name it: "torch", "blocks(window=16)". */
void job_order_print(const struct job_terms *terms, char ret_text[DLP_ORDER_CHOICE_MAX]);

/* The terms of an epoch's order, and those of how it is dealt out and cut into batches, for a dataset of n_samples. If
 * a sampler makes the order, the number of positions is DLP_UNKNOWN: order_table_n_units() knows it. */
struct dlp_sampler_terms job_sampler_terms(const struct job_terms *terms, uint64_t n_samples, uint64_t epoch);
struct dlp_epoch_terms job_epoch_terms(const struct job_terms *terms, uint64_t n_samples);

/* Is there such a place for a rank in a dataset of n_samples? -EINVAL with what is allowed. */
int cursor_check(const struct cursor *cursor, const struct job_terms *terms, uint32_t rank, uint64_t n_samples,
                 struct why *why);

/* The same place, or, if nothing is left of its epoch, the beginning of the next one. */
struct cursor cursor_begin(const struct cursor *cursor, const struct job_terms *terms, uint64_t n_samples);

/* Takes the rank out; the last one out removes the job from the list. Frees the member. */
void job_leave(struct job *job, struct job_member *member);

/* For feeds, which may outlive their membership by a moment. Any thread. */
struct job *job_ref(struct job *job);
void job_unref(struct job *job);

/* Ends the job with this failure. `code` is the errno with which its ranks end, positive: EBADMSG for a sample that
 * cannot be served; ENOTRECOVERABLE for more damaged samples than max_errors allows; EINVAL for what was asked for and
 * cannot be (a sampler's order, a pipeline that gives shapes a batch cannot hold). Only the first failure counts;
 * returns true if this is it. Any thread. */
bool job_fail(struct job *job, uint32_t code, const char *text);

/* Reserves memory for the orders of its epochs, once: later calls do nothing. It is released with the job. -ENOMEM
 * with the numbers. Any thread. */
int job_reserve_orders(struct job *job, struct budget *budget, uint64_t n_bytes, struct why *why);

/* Takes a part of that for a table, and a reference. -EAGAIN if tables of other epochs use it, until they are freed;
 * -ENOMEM if an epoch is longer than those before it and there is no memory for that. Any thread. */
int job_take_order(struct job *job, uint64_t n_bytes, struct why *why);
void job_give_order(struct job *job, uint64_t n_bytes);

/* The order of an epoch is being made; once n_done is n_total, it is not any more. Of several orders that of the first
 * epoch is remembered, for it is waited for. Any thread. */
void job_tell_order(struct job *job, uint64_t epoch, uint64_t n_done, uint64_t n_total);

/* How far the making of an order is. False: none is being made for this epoch or one before it. Any thread. */
bool job_order_progress(struct job *job, uint64_t epoch, struct dlp_progress *ret_progress);

/* Copies the reason, empty if there is none, and returns its code; 0 if there is none. Any thread. */
uint32_t job_failure(struct job *job, struct why *ret_why);
