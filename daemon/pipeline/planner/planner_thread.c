#include "daemon/pipeline/planner/planner_thread.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/machine_memory.h"
#include "daemon/base/threads/thread.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/failure/park.h"
#include "daemon/pipeline/feed_make.h"
#include "daemon/pipeline/memory/page_cache.h"
#include "daemon/pipeline/planner/foresight.h"
#include "daemon/pipeline/planner/lookahead.h"
#include "daemon/pipeline/planner/schedule.h"
#include "daemon/pipeline/planner/waits.h"
#include "daemon/pipeline/replay/replay.h"
#include "daemon/pipeline/sample_states.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/fetching.h"

#define EVENTS_MAX 64
#define STUCK_NS   1000000000ull /* a read that takes longer is stuck: a healthy disk is far below this */
#define LOOK_NS    250000000ull  /* between two checks for stuck reads */

static void feed_destroy(struct planner *planner, struct feed *feed) {
        TAILQ_REMOVE(&planner->feeds, feed, entry);
        /* Other feeds of this dataset open the files again, which takes a few microseconds and needs no reference
         * count. This must come before the dataset is freed: another one could be allocated at its address. */
        planner_forget_files(planner, feed);
        foresight_free(planner, feed->foresight);
        feed_free(feed);
        planner->options.freed(planner->options.userdata);
}

/* A removed feed is freed when the last of its samples is back and no thread works on its memory. */
static void planner_free_removed(struct planner *planner) {
        struct feed *feed, *next;

        TAILQ_FOREACH_SAFE(feed, &planner->feeds, entry, next)
                if (feed->is_removed && feed->n_tasks == 0 && TAILQ_EMPTY(&feed->parked) &&
                    atomic_load_explicit(&feed->is_touched, memory_order_acquire))
                        feed_destroy(planner, feed);
}

/* Decided once for each feed: the dataset is compared with the memory that is free at that time. */
static void feed_choose_cache(struct planner *planner, struct feed *feed) {
        const struct source *index = dataset_source(feed->dataset->dataset);
        struct why why;

        if (index->n_shards == 0 || feed->dataset->remote) /* what was fetched a moment ago is in the page cache */
                return;
        feed->past_cache = page_cache_is_bypassed(planner->options.settings->page_cache, index->total_bytes,
                                                  memory_available(), &why);
        if (feed->rank == 0)
                log_user_info(feed->job->uid, "reader", "dataset %s is read %s the page cache: %s job=%s",
                              feed->dataset->name, feed->past_cache ? "past" : "through", why.text, feed->job->name);
}

/* An origin may take a minute to fail. */
static void planner_leave_origins(struct planner *planner, const struct feed *feed) {
        for (uint32_t i = 0; i < planner->options.n_tasks; i++) {
                struct task *task = &planner->options.tasks[i];

                if (task->batch && task->batch->feed == feed)
                        states_leave(planner, task);
        }
}

static void feed_apply(struct planner *planner, struct feed *feed, uint32_t commands, uint64_t n_seeks,
                       const struct cursor *sought) {
        struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.ptr = feed };

        if (commands & FEED_ADD) {
                feed_choose_cache(planner, feed);
                TAILQ_INSERT_TAIL(&planner->feeds, feed, entry);
                /* Without this event a full ring would never be checked again: better no job than one that hangs. */
                if (epoll_ctl(planner->epoll_fd, EPOLL_CTL_ADD, feed->release_fd, &event) < 0)
                        job_fail(feed->job, EBADMSG,
                                 "the daemon cannot watch another ring (out of memory, or fs.epoll limits)");
        }
        if (commands & FEED_REPLAY)
                replay_begin(feed);
        if (commands & FEED_REPLAY_END)
                replay_end(&planner->feeds, feed, REPLAY_ASKED);
        if (commands & FEED_SEEK) {
                replay_end(&planner->feeds, feed, REPLAY_LEFT);
                if (feed->batch) {
                        batch_abandon(feed->batch, feed->idx_sample, planner->options.counters);
                        feed->batch = NULL;
                }
                feed->planned_seeks = n_seeks;
                feed->idx_sample = 0;
                feed_go_to(feed, sought);
                if (feed->drains)
                        feed_end(feed);
        }
        if (commands & FEED_DRAIN) {
                feed->drains = true;
                if (!feed->batch)
                        feed_end(feed);
        }
        if (commands & FEED_REMOVE) {
                epoll_ctl(planner->epoll_fd, EPOLL_CTL_DEL, feed->release_fd, NULL);
                feed_end(feed);
                feed->is_removed = true;
                replay_end(&planner->feeds, feed, REPLAY_LEFT);
                feed->batch = NULL; /* never published: its client has left */
        }
        if (commands & (FEED_SEEK | FEED_REMOVE))
                planner_leave_origins(planner, feed);
}

/* Commands are copied under the lock and applied without it, because workers need the lock to return tasks. */
static void planner_obey(struct planner *planner) {
        for (;;) {
                struct feed *feed;
                uint32_t commands;
                struct cursor sought;
                uint64_t n_seeks;

                pthread_mutex_lock(&planner->lock);
                feed = TAILQ_FIRST(&planner->commands);
                if (!feed) {
                        pthread_mutex_unlock(&planner->lock);
                        return;
                }
                TAILQ_REMOVE(&planner->commands, feed, commanded);
                commands = feed->commands;
                feed->commands = 0;
                n_seeks = atomic_load_explicit(&feed->n_seeks, memory_order_relaxed);
                sought = feed->sought;
                pthread_mutex_unlock(&planner->lock);
                feed_apply(planner, feed, commands, n_seeks, &sought);
        }
}

/* They go on in their states. */
static void planner_go_on(struct planner *planner, struct tasks *tasks) {
        struct tasks some = STAILQ_HEAD_INITIALIZER(some);
        struct task *task;

        STAILQ_CONCAT(&some, tasks);
        while ((task = STAILQ_FIRST(&some))) {
                STAILQ_REMOVE_HEAD(&some, entry);
                states_plan(planner, task);
        }
}

static void planner_collect(struct planner *planner) {
        struct tasks returned = STAILQ_HEAD_INITIALIZER(returned);

        pthread_mutex_lock(&planner->lock);
        STAILQ_CONCAT(&returned, &planner->returned);
        STAILQ_CONCAT(&returned, &planner->again);
        /* The planner is awake: no wake-up is needed until planner_arm() asks for one. */
        planner->n_returned = 0;
        planner->wake_at = 0;
        pthread_mutex_unlock(&planner->lock);
        planner_go_on(planner, &returned);
}

/* Finds reads that have not come back for a long time. Until they do, their jobs take no more than their share of the
 * tasks. */
static void planner_look_for_stuck(struct planner *planner) {
        uint64_t now_ns = clock_now_ns();

        if (now_ns - planner->looked_ns < LOOK_NS)
                return;
        planner->looked_ns = now_ns;
        reader_tend(planner->options.reader);
        waits_look(planner, now_ns);
        for (uint32_t i = 0; i < planner->options.n_tasks; i++) {
                struct task *task = &planner->options.tasks[i];
                bool is_stuck = task->batch && task_reading_ns(task, now_ns) >= STUCK_NS;

                if (is_stuck)
                        waits_notice_read(task, now_ns);
                if (is_stuck == task->is_stuck)
                        continue;
                task->is_stuck = is_stuck;
                shares_set_stuck(&planner->shares, &task->batch->feed->job->tasks, is_stuck);
        }
}

static int ms_until(uint64_t then_ns, uint64_t now_ns) {
        return then_ns <= now_ns ? 0 : (int)((then_ns - now_ns) / 1000000) + 1;
}

/* The same while no sample is under way. A client that was told why it waits is to learn that this is over, and a
 * thread that makes an order and could not be started is nobody's to announce. */
static int idle_patience(const struct planner *planner, int look_ms) {
        const struct feed *feed;

        TAILQ_FOREACH(feed, &planner->feeds, entry)
                if (feed->told_ns != 0 || feed->stopped_by == DLP_WAIT_SAMPLES ||
                    (feed->stopped_by == DLP_WAIT_ORDER && !feed->order))
                        return look_ms;
        return -1;
}

/* How long the planner may sleep, in ms. -1: without a limit, because nothing is in progress. */
static int planner_patience(const struct planner *planner) {
        const struct task *first = STAILQ_FIRST(&planner->resting);
        uint64_t now_ns = clock_now_ns();
        int look_ms = ms_until(planner->looked_ns + LOOK_NS, now_ns), rest_ms;

        if (planner->n_parked > 0)
                return PARK_TICK_MS;
        if (planner->shares.n_free == planner->options.n_tasks)
                return idle_patience(planner, look_ms);
        rest_ms = first ? ms_until(first->not_before_ns, now_ns) : look_ms;
        return rest_ms < look_ms ? rest_ms : look_ms;
}

/* More of any order may be known after a wake-up, and more memory. */
static void planner_go_on_waiting(struct planner *planner) {
        struct feed *feed;

        planner_go_on(planner, &planner->substitutes);
        planner_go_on(planner, &planner->resting);
        TAILQ_FOREACH(feed, &planner->feeds, entry) {
                if (feed->stopped_by == DLP_WAIT_ORDER || feed->stopped_by == DLP_WAIT_SAMPLES)
                        feed->stopped_by = DLP_WAIT_NOTHING;
                planner_go_on(planner, &feed->large_waiting);
        }
}

/* How many tasks must come back before the planner is woken? A quarter of the tasks of those feeds that want more:
 * then one wake-up serves many samples, and no feed runs dry. One task is enough when a feed waits for its last
 * task (to be removed) or for memory (for its order or a large file). Returns true if enough tasks are already back. */
static bool planner_arm(struct planner *planner) {
        bool waiting = false;
        struct feed *feed;
        bool now;

        TAILQ_FOREACH(feed, &planner->feeds, entry)
                waiting |= feed->is_removed || (!feed->order && !feed->is_ended) || !STAILQ_EMPTY(&feed->large_waiting);

        pthread_mutex_lock(&planner->lock);
        planner->wake_at = waiting ? 1 : planner->n_wake_for;
        now = planner->wake_at && planner->n_returned >= planner->wake_at;
        pthread_mutex_unlock(&planner->lock);
        return now;
}

static const struct trace_subject OF_NOBODY = { .word = TRACE_NOBODY };

static void *planner_main(void *userdata) {
        struct planner *planner = userdata;
        struct epoll_event events[EVENTS_MAX];
        uint64_t awake_ns;

        trace_thread_begin(&planner->traced, "planner");
        awake_ns = clock_now_ns();
        while (!atomic_load_explicit(&planner->stopping, memory_order_acquire)) {
                int n;

                planner_obey(planner);
                planner_collect(planner);
                planner_look_for_stuck(planner);
                waits_tell(planner); /* that a wait is over comes before the batch that was waited for */
                park_go_on(planner);
                planner_free_removed(planner);
                planner_go_on_waiting(planner);
                replay_look(&planner->feeds, &planner->n_replays);
                schedule_plan(planner);
                if (lookahead_go_on(planner) | foresight_go_on(planner) || planner_arm(planner))
                        continue;

                if (trace_is_on())
                        trace_write(&OF_NOBODY, DLP_TRACE_TURN, DLP_TRACE_DONE, awake_ns, clock_now_ns(), 0);
                n = epoll_wait(planner->epoll_fd, events, EVENTS_MAX, planner_patience(planner));
                awake_ns = trace_is_on() ? clock_now_ns() : UINT64_MAX; /* a turn that is half over is none */
                if (trace_is_on())
                        trace_open(&OF_NOBODY, DLP_TRACE_TURN);
                for (int i = 0; i < n; i++) {
                        struct feed *feed = events[i].data.ptr;

                        if (feed && feed->stopped_by == DLP_WAIT_SLOT)
                                feed->stopped_by = DLP_WAIT_NOTHING;
                }
        }
        planner_collect(planner);
        trace_thread_end(&planner->traced);
        return NULL;
}

/* ---- start and stop ------------------------------------------------------------------------------------------ */

int planner_start(struct planner *planner, const struct planner_options *options) {
        struct epoll_event event = { .events = EPOLLIN | EPOLLET };
        int r;

        planner->options = *options;
        planner->making_ns = DLP_MAKING_GUESS_NS;
        shares_init(&planner->shares, options->n_depth, options->n_tasks);
        STAILQ_INIT(&planner->free_tasks);
        STAILQ_INIT(&planner->substitutes);
        STAILQ_INIT(&planner->resting);
        STAILQ_INIT(&planner->returned);
        STAILQ_INIT(&planner->again);
        TAILQ_INIT(&planner->feeds);
        TAILQ_INIT(&planner->commands);
        pthread_mutex_init(&planner->lock, NULL);
        for (uint32_t i = 0; i < options->n_tasks; i++)
                STAILQ_INSERT_TAIL(&planner->free_tasks, &options->tasks[i], entry);

        planner->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        planner->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (planner->epoll_fd < 0 || planner->wake_fd < 0 ||
            epoll_ctl(planner->epoll_fd, EPOLL_CTL_ADD, planner->wake_fd, &event) < 0)
                r = -errno;
        else
                r = thread_start(&planner->thread, "planner", planner_main, planner);
        if (r < 0) {
                closep(&planner->epoll_fd);
                closep(&planner->wake_fd);
        }
        return r;
}

void planner_stop(struct planner *planner) {
        atomic_store_explicit(&planner->stopping, true, memory_order_release);
        planner_wake(planner);
        thread_join(planner->thread);
        close(planner->epoll_fd);
        close(planner->wake_fd);
        pthread_mutex_destroy(&planner->lock);
}
