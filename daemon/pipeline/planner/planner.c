#include "daemon/pipeline/planner/planner.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/pipeline/batch.h"
#include "proto/base/clock.h"

/* ---- called by other threads --------------------------------------------------------------------------------- */

void planner_wake(struct planner *planner) {
        uint64_t one = 1;

        if (write(planner->wake_fd, &one, sizeof(one)) < 0)
                return; /* cannot happen before 2^64 wake-ups */
}

static void command_locked(struct planner *planner, struct feed *feed, enum feed_command command) {
        if (feed->commands == 0)
                TAILQ_INSERT_TAIL(&planner->commands, feed, commanded);
        feed->commands |= command;
}

void planner_command(struct planner *planner, struct feed *feed, enum feed_command command) {
        pthread_mutex_lock(&planner->lock);
        command_locked(planner, feed, command);
        pthread_mutex_unlock(&planner->lock);
        planner_wake(planner);
}

uint64_t planner_seek(struct planner *planner, struct feed *feed, const struct cursor *cursor) {
        uint64_t n_seeks;

        pthread_mutex_lock(&planner->lock);
        n_seeks = atomic_fetch_add_explicit(&feed->n_seeks, 1, memory_order_relaxed) + 1;
        feed->sought = *cursor;
        /* The count and the command are set together under the lock. Otherwise the planner, still busy with the seek
         * before, could begin a batch under the new n_seeks, and this command would then abandon it. */
        command_locked(planner, feed, FEED_SEEK);
        pthread_mutex_unlock(&planner->lock);
        planner_wake(planner);
        return n_seeks;
}

void planner_return(struct planner *planner, struct task *task) {
        bool wake;

        pthread_mutex_lock(&planner->lock);
        STAILQ_INSERT_TAIL(&planner->returned, task, entry);
        planner->n_returned++;
        wake = planner->wake_at && planner->n_returned >= planner->wake_at;
        if (wake)
                planner->wake_at = 0;
        pthread_mutex_unlock(&planner->lock);
        if (wake)
                planner_wake(planner);
}

void planner_go_on_with(struct planner *planner, struct task *task) {
        pthread_mutex_lock(&planner->lock);
        STAILQ_INSERT_TAIL(&planner->again, task, entry);
        pthread_mutex_unlock(&planner->lock);
        planner_wake(planner);
}

void planner_forget_files(struct planner *planner, struct feed *feed) {
        struct dataset *dataset = feed->dataset->dataset;

        for (uint32_t k = 0; k < dataset_n_parts(dataset); k++)
                reader_forget(planner->options.reader, dataset_part(dataset, k));
}

/* ---- tasks -------------------------------------------------------------------------------------------------- */

struct task *planner_take_task(struct planner *planner, struct feed *feed) {
        struct task *task = STAILQ_FIRST(&planner->free_tasks);

        assert(task); /* shares_may_take() is false without a free task */
        STAILQ_REMOVE_HEAD(&planner->free_tasks, entry);
        feed->n_tasks++;
        shares_take(&planner->shares, &feed->job->tasks);
        return task;
}

enum sample_state planner_retire(struct planner *planner, struct task *task) {
        struct feed *feed = task->batch->feed;

        free(task->trouble);
        task->trouble = NULL;
        task_trim(task);
        shares_give(&planner->shares, &feed->job->tasks, task->is_stuck);
        task->is_stuck = false;
        task->batch = NULL;
        STAILQ_INSERT_HEAD(&planner->free_tasks, task, entry); /* used next: its buffer is still in the caches */
        feed->n_tasks--;
        return SAMPLE_ELSEWHERE;
}

enum sample_state planner_substitute(struct planner *planner, struct task *task) {
        if (order_table_at(task->batch->order, task->sample.position + task->sample.n_tries, &task->sample.candidate) ==
            0)
                return SAMPLE_LOCATE;
        STAILQ_INSERT_TAIL(&planner->substitutes, task, entry);
        return SAMPLE_ELSEWHERE;
}

/* A batch that is no longer wanted ends its samples' rest at once. */
enum sample_state planner_rest(struct planner *planner, struct task *task) {
        if (task->not_before_ns <= clock_now_ns() || !batch_is_wanted(task->batch))
                return SAMPLE_LOCATE;
        STAILQ_INSERT_TAIL(&planner->resting, task, entry);
        return SAMPLE_ELSEWHERE;
}

enum sample_state planner_park(struct planner *planner, struct task *task) {
        struct feed *feed = task->batch->feed;
        struct trouble *trouble = task->trouble;

        trouble->batch = task->batch;
        trouble->idx_sample = task->idx_sample;
        trouble->sample = task->sample;
        trouble->remakes = task->remakes;
        trouble->n_batch_tries = task->n_batch_tries;
        TAILQ_INSERT_TAIL(&feed->parked, trouble, entry);
        planner->n_parked++;
        task->trouble = NULL;
        task->remakes = false;
        return task_next_row(task) ? SAMPLE_LOCATE : SAMPLE_FREE;
}
