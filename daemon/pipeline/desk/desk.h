/* pipeline/desk/desk.h: samples that wait for a function of the trainer's, and the processes that take them.
 *
 * The function runs in worker processes that the trainer starts, never in the daemon. When all fields of a sample are
 * in the slot, the worker thread lays its task on the desk of the feed. A seat is one worker process that is
 * connected; the main thread deals it tasks as orders, which say where in the slot the sample is, and takes its
 * answers. What has been answered goes back to the worker threads, one of which counts the batch down as for every
 * other sample. So the main thread only passes tasks on, and a function that fails is a damaged sample like all others.
 *
 *      worker thread -> desk_put() -> waiting -> desk_take() -> dealt -> desk_answer() -> worker thread
 *                                       ^                         |           (function.state says how)
 *                                       +----- the seat ends -----+
 *                                          the task that it had begun last counts the end
 *
 * A function that gets whole batches has one order a batch, which is a task, too (pipeline/workers/batch_function.h):
 * whatever is said here of a sample is true of such a batch.
 *
 * A process works on its orders in their sequence and writes into a page that it shares with the daemon which one it
 * has begun (proto/mark.h). So of the orders that it had when it ended, those up to that one may be changed: they are
 * read and rendered again, and the one that was begun last counts an end; after FUNCTION_TRIES of them it is damaged.
 * The others are dealt to the next process. A process whose connection the daemon closed, since a function wrote to it,
 * may still be at work: all its orders are lost with it, and made again once it is said that it has ended.
 *
 * A task that copies several rows of a batch (pipeline/pipeline_rows.h) is one order for all of them, a run: where a
 * function takes a few microseconds, an order for each would cost more. Each of its samples has a number, so all of the
 * above holds for samples. A run comes back as a whole; or its first samples are done, and it goes on one by one from
 * the next on: that one failed, or the process gave back the others because the run takes long. If a process ends in a
 * run, the samples of it are made again, one by one, and the one that was begun last has counted an end.
 *
 * Nothing here lasts for ever. What is lost waits for LOST_NS to hear how the process ended. A process that nobody
 * supervises ends its job if it does not come back from a sample within the limit that it has named: while it lives, it
 * may write to the sample's place, so nobody else can have it. And UNBEGUN_MAX processes in a row that ended with
 * orders of which they had begun none end the job, since no sample is to blame.
 *
 * Several threads of a process have a seat each, and leave them together. Which of their samples ended it the daemon
 * cannot know: who supervises says it.
 *
 * Threads: desk_put() any worker thread, desk_look() the planner, all else the main thread. The lock is a leaf. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/threads/fair_queue.h"
#include "daemon/pipeline/task.h"
#include "proto/mark.h"

#define DESK_TICKET_MAX 33u            /* bytes with NUL */
#define DESK_TEXT_MAX   384u           /* bytes with NUL, of what a process says about a failure */
#define FUNCTION_TRIES  3u             /* a sample that met the end of a process is dealt again twice */
#define UNBEGUN_MAX     30u            /* processes in a row that began none of their orders */
#define LIMIT_NS        60000000000ull /* that a process may take for a sample if it says nothing else */

/* One worker process, or a thread of one, or one that starts others and says how they ended (`supervises`). The caller
 * makes it and frees it; the desk fills it in. */
struct seat {
        TAILQ_ENTRY(seat) entry;
        struct desk *desk;           /* NULL: none, or the desk was closed */
        void *userdata;              /* the caller's */
        const struct dlp_mark *mark; /* NULL: of who supervises */
        uint64_t worker;             /* its number, chosen by who started it */
        bool supervises;
        bool takes_runs;
        pid_t pid;                  /* 0: not known here */
        uint64_t limit_ns;          /* that it may take for a sample where nobody supervises; 0: any time */
        char closed[DESK_TEXT_MAX]; /* why the daemon closed its connection; "": it ended by itself */
        uint32_t n_dealt;
        uint32_t n_samples;                 /* of what is dealt */
        struct task *dealt[DLP_ORDERS_MAX]; /* the first was dealt first */
        uint32_t n_sent;                    /* of them; the others have not reached it. The caller's to raise */
        uint64_t begun_ns;                  /* when it can have begun with the first */
        uint64_t usual_ns;                  /* that it takes for a sample, smoothed; 0: not known yet */
        bool has_begun;                     /* a seat of the same process, which has left, had begun an order */
};

/* A process that has been with a sample for longest, measured by its limit. */
struct overdue {
        uint64_t begun_ns, limit_ns; /* limit_ns 0: none has a limit */
        pid_t pid;
        uint64_t sample;
        bool is_run; /* it may be at one of the samples after that */
};

struct desk {
        struct feed *feed;
        struct fair_queue *ready; /* to the worker threads */
        char ticket[DESK_TICKET_MAX];
        uint32_t n_steps;
        uint32_t n_of_samples;           /* of them: the first ones are for samples, the others for whole batches */
        uint32_t steps[DLP_TENSORS_MAX]; /* fields that functions are applied to */

        pthread_mutex_t lock; /* guards what follows; a leaf */
        struct tasks waiting;
        uint32_t n_waiting; /* samples of them */
        uint32_t n_room;    /* samples that processes could take now */
        bool is_told;       /* the main thread knows that there is something to deal */
        bool is_closed;     /* the rank has left */
        uint64_t alone_ns;  /* since when no process is connected; 0: that is not so */
        struct why ended;   /* all samples end with this reason; "": they do not */
        struct tasks lost;  /* of processes of which it is not known yet how they ended, or whether they have */
        struct overdue overdue;
        bool is_late; /* that one has passed its limit: the main thread is to end the job */

        _Atomic uint32_t n_run; /* samples that a run should have, 1: none; written by the main thread */

        /* Main thread. */
        TAILQ_HEAD(, seat) seats;
        struct seat *supervisor; /* NULL: none */
        uint32_t n_unbegun;      /* processes in a row that ended so */
        uint64_t n_orders;
        bool is_dealing; /* the caller's: it deals already */
};

/* NULL in `ret_desk` if no function is applied to any field of the feed. -ENOMEM, or what getrandom() fails with. */
int desk_new(struct feed *feed, struct fair_queue *ready, struct desk **ret_desk);
void desk_free(struct desk *desk);

/* Are functions applied to single samples? Takes NULL: no. */
bool desk_has_samples(const struct desk *desk);

/* The same for whole batches. */
bool desk_has_batches(const struct desk *desk);

/* Is the order that the task is one for a whole batch? */
bool desk_is_whole(const struct task *task);

/* Which of desk->steps apply to the task, those from *ret_first on: the functions for single samples, or, if the task
 * carries a whole batch, those for batches. */
void desk_steps_of(const struct desk *desk, const struct task *task, uint32_t *ret_first, uint32_t *ret_n);

/* How many samples a task that copies rows should have: what takes about half a millisecond, so that no process waits
 * beside one that has many. Any thread. */
uint32_t desk_run(const struct desk *desk);

/* Takes the task, whose sample (or run, or whole batch) is in its slot, until a worker gets it back. Returns whether
 * the main thread is to be told that there is something to deal. Does not block. */
bool desk_put(struct desk *desk, struct task *task);

/* Why the task came back as FUNCTION_FAILED or FUNCTION_ENDED. The worker that has it. */
void desk_why(const struct task *task, enum function_state state, struct why *ret_why);

/* ---- the main thread ------------------------------------------------------------------------------------------- */

void desk_sit(struct desk *desk, struct seat *seat);

/* The process has ended, or seat->closed says why its connection was closed. Its samples are dealt to others. */
void desk_leave(struct seat *seat);

/* The next seat that should get orders, and how many samples about; NULL: there is nothing to deal, or no room. */
struct seat *desk_next_seat(struct desk *desk, uint32_t *ret_n);

/* The next task for the seat, whose number is then task->function.number, or that of its first sample; NULL: none
 * waits, or the seat has as many as it may have. */
struct task *desk_take(struct desk *desk, struct seat *seat);

/* How many of the seat's tasks an answer to this sample answers: its own, and those that were dealt before it. 0: it
 * has no such sample. */
uint32_t desk_n_answered(const struct seat *seat, uint64_t number);

/* The process has answered a sample: all that were dealt before it are done, and so is this one, unless `error` (else
 * NULL) says what is wrong with it. If more samples follow it in its run, they are given back. `took_ns`: how long the
 * functions took for them, as the process says; 0: it does not say. -EPROTO: the seat has no such sample. */
int desk_answer(struct seat *seat, uint64_t number, uint64_t took_ns, const char *error);

/* The seat of the process with this number, which does not supervise; NULL: none. */
struct seat *desk_find_seat(const struct desk *desk, uint64_t worker);

/* The supervisor says how a process ended, whose seat has left before. `text`: the reason for a sample that the process
 * had begun; NULL: its samples are not to blame. */
void desk_note_end(struct desk *desk, uint64_t worker, const char *text);

/* No process can be started: the job ends with this reason. */
void desk_give_up(struct desk *desk, const char *text);

/* If a process does not come back from a sample in time, the job ends, and all orders with it. */
void desk_end_late(struct desk *desk);

/* The rank has left: all tasks come back to be dropped, and no more are taken. Seats are the caller's to end. */
void desk_close(struct desk *desk);

/* ---- the planner ----------------------------------------------------------------------------------------------- */

/* Looks for what the desk waits for: a process at all, one that does not come back from a sample, or word of how one
 * has ended. Returns true, with the reason in `ret_wait`, once it has waited for so long that the client should be
 * told. After a limit the job ends, or (an end of which nobody tells) the desk goes on without. `ret_tell`: the main
 * thread is to be woken, because there is something for it to do. */
bool desk_look(struct desk *desk, uint64_t now_ns, struct dlp_wait *ret_wait, bool *ret_tell);
