/* pipeline/desk/desk_ends.c: a process ends: what becomes of its orders, and which sample is to blame. */
#include "daemon/pipeline/desk/desk_private.h"

#include <stdio.h>

#include "proto/base/clock.h"

/* ---- blame ------------------------------------------------------------------------------------------------------ */

/* A process ended over it. */
static void ends_blame(struct desk *desk, struct task *task, const char *text) {
        struct why *note, how;

        if (task->is_copied) { /* the first for any sample of a run, which goes on one by one */
                desk_give_back(desk, task, FUNCTION_AGAIN);
                return;
        }
        if (++task->function.n_tries < FUNCTION_TRIES) {
                desk_give_back(desk, task, FUNCTION_AGAIN);
                return;
        }
        why_set(&how, 0, "python(%s): %u worker processes ended over it, the last: %s", desk_function_of(desk, task),
                FUNCTION_TRIES, text); /* which may be the note */
        note = desk_note(task);
        if (note)
                *note = how;
        desk_give_back(desk, task, FUNCTION_FAILED);
}

void desk_release(struct desk *desk, struct task *task, const char *text) {
        bool is_closed = task->function.is_closed && task->trouble;

        if (task->function.is_blamed && text)
                ends_blame(desk, task, is_closed ? task->trouble->last.text : text);
        else
                desk_give_back(desk, task, FUNCTION_AGAIN);
}

/* ---- what was dealt --------------------------------------------------------------------------------------------- */

/* How many of its orders the process has begun, the last of which met its end: of a run, the sample that is blamed. A
 * mark that makes no sense is taken for the first of them: so there is an end to this. */
static uint32_t n_begun(const struct seat *seat) {
        uint64_t begun = seat->mark ? atomic_load_explicit(&seat->mark->begun, memory_order_acquire) : 0;

        if (seat->n_dealt == 0 || begun < seat->dealt[0]->function.number)
                return 0;
        for (uint32_t i = 0; i < seat->n_dealt; i++) {
                struct task *task = seat->dealt[i];
                uint32_t idx_sample = desk_find_sample(task, begun);

                if (idx_sample == UINT32_MAX)
                        continue;
                if (task->is_copied)
                        task->function.idx_blamed = idx_sample;
                return i + 1;
        }
        if (seat->dealt[0]->is_copied)
                seat->dealt[0]->function.idx_blamed = 0;
        return 1;
}

/* Those that were not begun, from `first` on, wait in front of all others. */
static void put_back(struct desk *desk, struct seat *seat, uint32_t first) {
        pthread_mutex_lock(&desk->lock);
        while (seat->n_dealt > first) {
                struct task *task = seat->dealt[--seat->n_dealt];

                STAILQ_INSERT_HEAD(&desk->waiting, task, entry);
                seat->n_samples -= task_n_samples(task);
                desk->n_waiting += task_n_samples(task);
        }
        pthread_mutex_unlock(&desk->lock);
}

static void lose(struct desk *desk, const struct seat *seat, struct task *task, bool is_blamed) {
        task->function.worker = seat->worker;
        task->function.lost_ns = clock_now_ns();
        task->function.is_blamed = is_blamed;
        task->function.is_closed = seat->closed[0] != '\0';
        if (task->function.is_closed)
                why_set(desk_note(task), 0, "the daemon closed its connection: %s", seat->closed);
        pthread_mutex_lock(&desk->lock);
        STAILQ_INSERT_TAIL(&desk->lost, task, entry);
        pthread_mutex_unlock(&desk->lock);
}

/* The process has ended. What was begun before the last one is done, but its answer has not come: it is made again. */
static void part_from(struct desk *desk, struct seat *seat, uint32_t n) {
        for (uint32_t i = 0; i + 1 < n; i++)
                desk_give_back(desk, seat->dealt[i], FUNCTION_AGAIN);
        if (n == 0)
                return;
        if (desk->supervisor) {
                lose(desk, seat, seat->dealt[n - 1], true);
                return;
        }
        seat->dealt[n - 1]->function.is_blamed = true;
        seat->dealt[n - 1]->function.is_closed = false;
        desk_release(desk, seat->dealt[n - 1], "it ended");
}

/* Takes the lost tasks of a process. */
static void take_lost(struct desk *desk, uint64_t worker, struct tasks *ret_tasks) {
        struct tasks others = STAILQ_HEAD_INITIALIZER(others);
        struct task *task;

        STAILQ_INIT(ret_tasks);
        pthread_mutex_lock(&desk->lock);
        while ((task = STAILQ_FIRST(&desk->lost))) {
                STAILQ_REMOVE_HEAD(&desk->lost, entry);
                if (task->function.worker == worker)
                        STAILQ_INSERT_TAIL(ret_tasks, task, entry);
                else
                        STAILQ_INSERT_TAIL(&others, task, entry);
        }
        STAILQ_CONCAT(&desk->lost, &others);
        pthread_mutex_unlock(&desk->lock);
}

/* The supervisor has ended as well: nobody will say how they ended. */
static void release_all(struct desk *desk) {
        struct tasks tasks = STAILQ_HEAD_INITIALIZER(tasks);
        struct task *task;

        pthread_mutex_lock(&desk->lock);
        STAILQ_CONCAT(&tasks, &desk->lost);
        pthread_mutex_unlock(&desk->lock);
        while ((task = STAILQ_FIRST(&tasks))) {
                STAILQ_REMOVE_HEAD(&tasks, entry);
                desk_release(desk, task, "it ended");
        }
}

/* ---- seats ------------------------------------------------------------------------------------------------------ */

/* The seats of other threads of the process leave soon. Returns whether there are any. */
static bool tell_threads(struct desk *desk, const struct seat *seat, bool has_begun) {
        struct seat *other;
        bool found = false;

        TAILQ_FOREACH(other, &desk->seats, entry)
                if (seat->pid != 0 && other->pid == seat->pid && !other->supervises) {
                        other->has_begun |= has_begun;
                        found = true;
                }
        return found;
}

/* A process that had orders and began none is not the fault of a sample. */
static void count_unbegun(struct desk *desk, const struct seat *seat, bool has_begun) {
        char text[DESK_TEXT_MAX];

        if (tell_threads(desk, seat, has_begun) && !has_begun)
                return;
        if (has_begun) {
                desk->n_unbegun = 0;
                return;
        }
        if (++desk->n_unbegun != UNBEGUN_MAX)
                return;
        snprintf(text, sizeof(text), "%u worker processes, one after the other, ended before they began with a sample",
                 UNBEGUN_MAX);
        desk_give_up(desk, text);
}

/* If its job has ended, so have the orders that came back. */
static void end_if_over(struct desk *desk) {
        struct why ended;

        pthread_mutex_lock(&desk->lock);
        ended = desk->ended;
        pthread_mutex_unlock(&desk->lock);
        if (ended.text[0])
                desk_end_all(desk, &ended);
}

void desk_leave(struct seat *seat) {
        struct desk *desk = seat->desk;
        uint32_t n = n_begun(seat), n_sent = seat->n_sent;

        if (!desk)
                return;
        TAILQ_REMOVE(&desk->seats, seat, entry);
        seat->desk = NULL;
        if (seat == desk->supervisor) {
                desk->supervisor = NULL;
                release_all(desk);
        }
        if (seat->closed[0]) {
                put_back(desk, seat, seat->n_sent);
                for (uint32_t i = 0; i < seat->n_dealt; i++)
                        lose(desk, seat, seat->dealt[i], i + 1 == n);
        } else {
                put_back(desk, seat, n);
                part_from(desk, seat, n);
        }
        seat->n_dealt = seat->n_sent = seat->n_samples = 0;
        if (n_sent > 0)
                count_unbegun(desk, seat, n > 0 || seat->has_begun);
        desk_count_seats(desk);
        end_if_over(desk);
}

struct seat *desk_find_seat(const struct desk *desk, uint64_t worker) {
        struct seat *seat;

        TAILQ_FOREACH(seat, &desk->seats, entry)
                if (seat->worker == worker && !seat->supervises)
                        return seat;
        return NULL;
}

void desk_note_end(struct desk *desk, uint64_t worker, const char *text) {
        struct tasks tasks;
        struct task *task;

        take_lost(desk, worker, &tasks);
        while ((task = STAILQ_FIRST(&tasks))) {
                STAILQ_REMOVE_HEAD(&tasks, entry);
                desk_release(desk, task, text);
        }
}
