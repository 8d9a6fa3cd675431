/* pipeline/desk/desk.c: tasks come, are dealt to seats, and go back. */
#include "daemon/pipeline/desk/desk_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/codec/steps/python_step.h"
#include "proto/base/clock.h"

/* ---- made and freed -------------------------------------------------------------------------------------------- */

static int make_ticket(char ticket[DESK_TICKET_MAX]) {
        uint64_t words[2];

        if (getrandom(words, sizeof(words), 0) != (ssize_t)sizeof(words))
                return -errno;
        snprintf(ticket, DESK_TICKET_MAX, "%016llx%016llx", (unsigned long long)words[0], (unsigned long long)words[1]);
        return 0;
}

int desk_new(struct feed *feed, struct fair_queue *ready, struct desk **ret_desk) {
        const struct program *program = programs_first(feed->programs);
        struct desk *desk = calloc(1, sizeof(*desk));
        int r;

        if (!desk)
                return -ENOMEM;
        for (int is_whole = 0; is_whole < 2; is_whole++) {
                for (uint32_t i = 0; i < program_n_fields(program); i++)
                        if (program_python(program, i) && program_python(program, i)->is_whole == is_whole)
                                desk->steps[desk->n_steps++] = i;
                if (!is_whole)
                        desk->n_of_samples = desk->n_steps;
        }
        r = desk->n_steps > 0 ? make_ticket(desk->ticket) : 0;
        if (r < 0 || desk->n_steps == 0) {
                free(desk);
                *ret_desk = NULL;
                return r;
        }
        desk->feed = feed;
        desk->alone_ns = clock_now_ns();
        atomic_init(&desk->n_run, 1);
        desk->ready = ready;
        pthread_mutex_init(&desk->lock, NULL);
        STAILQ_INIT(&desk->waiting);
        STAILQ_INIT(&desk->lost);
        TAILQ_INIT(&desk->seats);
        *ret_desk = desk;
        return 0;
}

void desk_free(struct desk *desk) {
        if (!desk)
                return;
        pthread_mutex_destroy(&desk->lock);
        free(desk);
}

bool desk_has_samples(const struct desk *desk) {
        return desk && desk->n_of_samples > 0;
}

bool desk_has_batches(const struct desk *desk) {
        return desk && desk->n_steps > desk->n_of_samples;
}

bool desk_is_whole(const struct task *task) {
        return task->state == SAMPLE_BATCH;
}

void desk_steps_of(const struct desk *desk, const struct task *task, uint32_t *ret_first, uint32_t *ret_n) {
        bool is_whole = desk_is_whole(task);

        *ret_first = is_whole ? desk->n_of_samples : 0;
        *ret_n = is_whole ? desk->n_steps - desk->n_of_samples : desk->n_of_samples;
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

void desk_give_back(struct desk *desk, struct task *task, enum function_state state) {
        task->function.state = state;
        fair_queue_push(desk->ready, &desk->feed->job->share, &task->ready);
}

static void give_back_some(struct desk *desk, struct task *const *tasks, uint32_t n, enum function_state state) {
        struct fair_item *items[DLP_ORDERS_MAX];

        for (uint32_t i = 0; i < n; i++) {
                tasks[i]->function.state = state;
                items[i] = &tasks[i]->ready;
        }
        fair_queue_push_all(desk->ready, &desk->feed->job->share, items, n);
}

bool desk_put(struct desk *desk, struct task *task) {
        bool is_closed, has_ended, tell = false;

        task->function.n_done = 0;
        pthread_mutex_lock(&desk->lock);
        is_closed = desk->is_closed;
        has_ended = desk->ended.text[0] != '\0';
        if (!is_closed && !has_ended) {
                STAILQ_INSERT_TAIL(&desk->waiting, task, entry);
                desk->n_waiting += task_n_samples(task);
                tell = desk->n_room > 0 && !desk->is_told;
                desk->is_told |= tell;
        }
        pthread_mutex_unlock(&desk->lock);
        if (is_closed || has_ended) /* of a rank that has left no sample is wanted: it is dropped */
                desk_give_back(desk, task, has_ended ? FUNCTION_ENDED : FUNCTION_DONE);
        return tell;
}

/* Takes all waiting tasks off the desk. */
static void desk_take_all(struct desk *desk, struct tasks *tasks) {
        STAILQ_INIT(tasks);
        STAILQ_CONCAT(tasks, &desk->waiting);
        desk->n_waiting = 0;
}

static void give_back_all(struct desk *desk, struct tasks *tasks, enum function_state state) {
        struct task *task;

        while ((task = STAILQ_FIRST(tasks))) {
                STAILQ_REMOVE_HEAD(tasks, entry);
                desk_give_back(desk, task, state);
        }
}

const char *desk_function(const struct desk *desk) {
        return program_python(programs_first(desk->feed->programs), desk->steps[0])->function;
}

const char *desk_function_of(const struct desk *desk, const struct task *task) {
        uint32_t first, n;

        desk_steps_of(desk, task, &first, &n);
        return program_python(programs_first(desk->feed->programs), desk->steps[first])->function;
}

/* ---- seats ----------------------------------------------------------------------------------------------------- */

/* Who supervises ends a process that hangs. */
static void note_limit(const struct desk *desk, const struct seat *seat, struct overdue *overdue) {
        if (desk->supervisor || seat->n_dealt == 0 || seat->limit_ns == 0)
                return;
        if (overdue->limit_ns > 0 && overdue->begun_ns + overdue->limit_ns <= seat->begun_ns + seat->limit_ns)
                return;
        *overdue = (struct overdue){ .begun_ns = seat->begun_ns,
                                     .limit_ns = seat->limit_ns,
                                     .pid = seat->pid,
                                     .sample = seat->dealt[0]->sample.candidate,
                                     .is_run = task_n_samples(seat->dealt[0]) > 1 };
}

void desk_count_seats(struct desk *desk) {
        uint32_t n_room = 0, n_workers = 0;
        struct overdue overdue = { 0 };
        struct seat *seat;

        atomic_store_explicit(&desk->n_run, desk_choose_run(desk), memory_order_relaxed);
        TAILQ_FOREACH(seat, &desk->seats, entry) {
                n_room += desk_room_of(seat);
                n_workers += !seat->supervises;
                note_limit(desk, seat, &overdue);
        }
        pthread_mutex_lock(&desk->lock);
        desk->n_room = n_room;
        desk->overdue = overdue;
        if (n_workers > 0)
                desk->alone_ns = 0;
        else if (desk->alone_ns == 0)
                desk->alone_ns = clock_now_ns();
        pthread_mutex_unlock(&desk->lock);
}

void desk_sit(struct desk *desk, struct seat *seat) {
        seat->desk = desk;
        TAILQ_INSERT_TAIL(&desk->seats, seat, entry);
        if (seat->supervises)
                desk->supervisor = seat;
        desk_count_seats(desk);
}

/* ---- dealing --------------------------------------------------------------------------------------------------- */

struct seat *desk_next_seat(struct desk *desk, uint32_t *ret_n) {
        struct seat *seat, *best = NULL;
        uint32_t n_waiting, n_workers = 0, share;

        pthread_mutex_lock(&desk->lock);
        desk->is_told = false;
        n_waiting = desk->n_waiting;
        pthread_mutex_unlock(&desk->lock);
        TAILQ_FOREACH(seat, &desk->seats, entry) {
                n_workers += !seat->supervises;
                if (desk_room_of(seat) > 0 && (!best || seat->n_samples < best->n_samples))
                        best = seat;
        }
        if (!best || n_waiting == 0) {
                desk_count_seats(desk); /* now it is known which process has which sample */
                return NULL;
        }
        share = (n_waiting + n_workers - 1) / n_workers; /* so that no process waits beside one that has several */
        *ret_n = desk_room_of(best) < share ? desk_room_of(best) : share;
        if (*ret_n > desk_packet_max(desk))
                *ret_n = desk_packet_max(desk);
        return best;
}

static struct task *desk_take_first(struct desk *desk) {
        struct task *task;

        pthread_mutex_lock(&desk->lock);
        task = STAILQ_FIRST(&desk->waiting);
        if (task) {
                uint32_t n = task_n_samples(task);

                STAILQ_REMOVE_HEAD(&desk->waiting, entry);
                desk->n_waiting -= n;
                desk->n_room -= n < desk->n_room ? n : desk->n_room;
        }
        pthread_mutex_unlock(&desk->lock);
        return task;
}

struct task *desk_take(struct desk *desk, struct seat *seat) {
        struct task *task = NULL;

        while (seat->n_dealt < desk_orders_max(desk) && (task = desk_take_first(desk)) && task->is_copied &&
               !seat->takes_runs)
                desk_give_back(desk, task, FUNCTION_AGAIN); /* and comes as single samples */
        if (seat->n_dealt == desk_orders_max(desk) || !task)
                return NULL;
        task->function.number = desk->n_orders + 1;
        desk->n_orders += task_n_samples(task);
        if (seat->n_dealt == 0)
                seat->begun_ns = clock_now_ns();
        seat->dealt[seat->n_dealt++] = task;
        seat->n_samples += task_n_samples(task);
        return task;
}

uint32_t desk_find_sample(const struct task *task, uint64_t number) {
        return number - task->function.number < task_n_samples(task) ? (uint32_t)(number - task->function.number)
                                                                     : UINT32_MAX;
}

/* Which of the seat's tasks has this number. */
static uint32_t find_dealt(const struct seat *seat, uint64_t number) {
        uint32_t i = 0;

        while (i < seat->n_dealt && desk_find_sample(seat->dealt[i], number) == UINT32_MAX)
                i++;
        return i;
}

uint32_t desk_n_answered(const struct seat *seat, uint64_t number) {
        uint32_t i = find_dealt(seat, number);

        return i < seat->n_dealt ? i + 1 : 0;
}

/* The first `n` tasks are no longer the seat's. Returns how many samples they had. */
static uint32_t undeal(struct seat *seat, uint32_t n) {
        uint32_t n_samples = 0;

        for (uint32_t i = 0; i < n; i++)
                n_samples += task_n_samples(seat->dealt[i]);
        seat->n_dealt -= n;
        seat->n_samples -= n_samples;
        seat->n_sent -= n < seat->n_sent ? n : seat->n_sent;
        memmove(seat->dealt, seat->dealt + n, seat->n_dealt * sizeof(*seat->dealt));
        return n_samples;
}

/* What has become of the task whose sample the process has answered. */
static enum function_state outcome_of(struct desk *desk, struct task *task, uint32_t idx_sample, const char *error) {
        if (error)
                why_set(desk_note(task), 0, "python(%s): %s", desk_function_of(desk, task), error);
        task->function.n_done = error ? idx_sample : idx_sample + 1;
        if (error)
                return FUNCTION_FAILED;
        return task->function.n_done == task_n_samples(task) ? FUNCTION_DONE : FUNCTION_AGAIN;
}

int desk_answer(struct seat *seat, uint64_t number, uint64_t took_ns, const char *error) {
        struct desk *desk = seat->desk;
        uint32_t n = find_dealt(seat, number), idx_sample, n_samples;
        struct task *answered[DLP_ORDERS_MAX], *last;

        if (!desk || n == seat->n_dealt)
                return -EPROTO;
        memcpy(answered, seat->dealt, (n + 1) * sizeof(struct task *));
        last = answered[n];
        idx_sample = desk_find_sample(last, number);
        desk->n_unbegun = 0;
        n_samples = undeal(seat, n + 1) - task_n_samples(last) + idx_sample + 1;
        desk_note_time(seat, n_samples, took_ns);
        desk_count_seats(desk);
        last->function.state = outcome_of(desk, last, idx_sample, error);
        if (last->function.state == FUNCTION_DONE) {
                give_back_some(desk, answered, n + 1, FUNCTION_DONE);
        } else {
                give_back_some(desk, answered, n, FUNCTION_DONE);
                desk_give_back(desk, last, last->function.state);
        }
        return 0;
}

struct why *desk_note(struct task *task) {
        struct trouble *trouble = task_trouble(task);

        return trouble ? &trouble->last : NULL;
}

void desk_why(const struct task *task, enum function_state state, struct why *ret_why) {
        struct desk *desk = task->batch->feed->desk;

        if (state == FUNCTION_ENDED) {
                pthread_mutex_lock(&desk->lock);
                *ret_why = desk->ended;
                pthread_mutex_unlock(&desk->lock);
        } else if (task->trouble) {
                *ret_why = task->trouble->last;
        } else {
                why_errno(ret_why, -ENOMEM, "python(%s)", desk_function_of(desk, task));
        }
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

void desk_end_all(struct desk *desk, const struct why *why) {
        struct tasks tasks;

        pthread_mutex_lock(&desk->lock);
        desk->ended = *why;
        desk_take_all(desk, &tasks);
        pthread_mutex_unlock(&desk->lock);
        give_back_all(desk, &tasks, FUNCTION_ENDED);
}

void desk_give_up(struct desk *desk, const char *text) {
        struct why why;

        why_set(&why, 0, "python(%s): %s", desk_function(desk), text);
        desk_end_all(desk, &why);
}

static void take_dealt(struct seat *seat, struct tasks *tasks) {
        for (uint32_t i = 0; i < seat->n_dealt; i++)
                STAILQ_INSERT_TAIL(tasks, seat->dealt[i], entry);
        seat->n_dealt = seat->n_samples = 0;
}

/* Which sample the process has begun, as its page says. */
static uint64_t desk_sample_at(const struct desk *desk, const struct overdue *overdue) {
        const struct seat *seat;

        TAILQ_FOREACH(seat, &desk->seats, entry) {
                uint32_t idx_sample;

                if (seat->supervises || seat->n_dealt == 0 || seat->begun_ns != overdue->begun_ns)
                        continue;
                idx_sample = desk_find_sample(seat->dealt[0],
                                              atomic_load_explicit(&seat->mark->begun, memory_order_relaxed));
                if (seat->dealt[0]->is_copied && idx_sample != UINT32_MAX)
                        return seat->dealt[0]->rows[idx_sample].index;
        }
        return overdue->sample;
}

/* The place of its sample cannot be given to another one: it may come back at any time and write there. */
void desk_end_late(struct desk *desk) {
        struct tasks tasks = STAILQ_HEAD_INITIALIZER(tasks);
        struct overdue overdue;
        struct seat *seat;
        struct why why;
        bool is_late;

        pthread_mutex_lock(&desk->lock);
        overdue = desk->overdue;
        is_late = desk->is_late && overdue.limit_ns > 0;
        desk->is_late = false;
        pthread_mutex_unlock(&desk->lock);
        if (!is_late || clock_now_ns() < overdue.begun_ns + overdue.limit_ns)
                return;
        why_set(&why, 0,
                "python(%s): worker process %d did not come back from sample %llu within %llu s (limit_ms of "
                "dlc_work_open()), and nobody supervises it",
                desk_function(desk), (int)overdue.pid, (unsigned long long)desk_sample_at(desk, &overdue),
                (unsigned long long)overdue.limit_ns / 1000000000u);
        desk_end_all(desk, &why);
        TAILQ_FOREACH(seat, &desk->seats, entry)
                take_dealt(seat, &tasks);
        give_back_all(desk, &tasks, FUNCTION_ENDED);
        desk_count_seats(desk);
}

void desk_close(struct desk *desk) {
        struct tasks tasks;
        struct seat *seat;

        pthread_mutex_lock(&desk->lock);
        desk->is_closed = true;
        desk_take_all(desk, &tasks);
        STAILQ_CONCAT(&tasks, &desk->lost);
        pthread_mutex_unlock(&desk->lock);
        while ((seat = TAILQ_FIRST(&desk->seats))) {
                TAILQ_REMOVE(&desk->seats, seat, entry);
                seat->desk = NULL;
                take_dealt(seat, &tasks);
        }
        desk->supervisor = NULL;
        give_back_all(desk, &tasks, FUNCTION_DONE); /* and are dropped: the rank has left */
}
