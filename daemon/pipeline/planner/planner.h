/* pipeline/planner/planner.h: what the planner has: its tasks and feeds, and what other threads tell it.
 *
 * The thread itself is in pipeline/planner/planner_thread.h, its decisions in pipeline/planner/schedule.h. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/base/base_trace.h"
#include "daemon/base/budget.h"
#include "daemon/base/settings.h"
#include "daemon/base/threads/fair_queue.h"
#include "daemon/pipeline/counters.h"
#include "daemon/pipeline/jobs/shares.h"
#include "daemon/pipeline/task.h"

struct planner_options {
        struct reader *reader;
        struct order_tables *tables;
        struct fair_queue *ready; /* to the workers; a sample that cannot be read goes there at once */
        struct budget *budget;
        const struct settings *settings; /* in force */
        struct counters *counters;
        struct task *tasks;
        uint32_t n_tasks;
        uint32_t n_depth; /* samples under way normally, <= n_tasks: the others are used when jobs compete or reads hang
                           */
        void (*fetched)(struct cache_want *want); /* what a task's read needs is here, or cannot be had; any thread */
        void (*freed)(void *userdata);            /* a removed feed and its memory are freed; planner thread */
        void (*broken)(void *userdata, struct feed *feed); /* its client wrote an impossible value; planner thread */
        void (*desk_filled)(void *userdata,
                            struct feed *feed); /* samples are to be dealt there, and processes wait; any worker */
        void *userdata;
};

struct planner {
        struct planner_options options;
        pthread_t thread;
        struct trace_thread traced; /* planner */
        int epoll_fd;
        int wake_fd;             /* eventfd: written by planner_wake(), edge-triggered, never read */
        struct tasks free_tasks; /* planner */
        struct shares shares;    /* planner: of the tasks */
        uint32_t n_wake_for; /* planner: how many returned tasks are worth a wake-up for a job that lacks them; 0: none
                                lacks any */
        uint64_t looked_ns;  /* planner: when stuck reads were last looked for */
        uint64_t making_ns;  /* planner: how long making a batch takes, smoothed over all feeds */
        struct feeds feeds;  /* planner */
        struct tasks substitutes; /* planner: waiting for a place in the order that is not final yet */
        uint64_t n_replays;       /* planner: places that were chosen for batches that are served again */
        uint32_t n_parked;        /* planner: samples of all feeds that wait for their dataset */
        struct tasks resting;     /* planner: until task->not_before_ns; the first one is due first */

        _Alignas(64) pthread_mutex_t lock; /* guards what follows; a leaf */
        struct feeds commands;
        struct tasks returned; /* finished; from workers */
        struct tasks again;    /* to be read again; from workers */
        uint32_t n_returned;
        uint32_t wake_at; /* wake the planner when this number has returned; 0 = it does not wait for them */

        _Atomic bool stopping;
};

/* Wakes the planner because something that it checks has changed. Any thread. */
void planner_wake(struct planner *planner);

/* Passes a command about a feed to the planner. Main thread. */
void planner_command(struct planner *planner, struct feed *feed, enum feed_command command);

/* The same for FEED_SEEK: continues at the cursor. Returns how many seeks the feed has had, which the records of its
 * batches have as `stream` from now on. Main thread. */
uint64_t planner_seek(struct planner *planner, struct feed *feed, const struct cursor *cursor);

/* A worker passes on a task that is FREE. Any worker. */
void planner_return(struct planner *planner, struct task *task);

/* The same in any other state of the planner's, which is woken for it. */
void planner_go_on_with(struct planner *planner, struct task *task);

/* A free task, for a sample of the feed, whose job may take one (shares_may_take()). Planner only, as those below. */
struct task *planner_take_task(struct planner *planner, struct feed *feed);

/* The task has no sample any more. */
enum sample_state planner_retire(struct planner *planner, struct task *task);

/* The next sample of the order takes the place of the damaged one: the rule depends on the order alone. If the order is
 * not known that far, it waits. */
enum sample_state planner_substitute(struct planner *planner, struct task *task);

/* The sample waits until task->not_before_ns. */
enum sample_state planner_rest(struct planner *planner, struct task *task);

/* The sample leaves its task, which then takes its next one, or is free (pipeline/failure/park.h). */
enum sample_state planner_park(struct planner *planner, struct task *task);

/* The files of the feed's datasets are closed, and opened again by whoever reads them. Planner only. */
void planner_forget_files(struct planner *planner, struct feed *feed);
