#include "daemon/pipeline/desk/desk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/codec/steps/own_step.h"
#include "proto/base/clock.h"

#define TELL_NS    1000000000ull  /* without a process for that long: the client is told */
#define GIVE_UP_NS 60000000000ull /* and then its job ends */
#define LONG_NS    2000000ull /* a function that takes longer gets one order at a time: the way is short beside it */
#define QUICK_NS   200000ull  /* one that takes less gets as many as there may be, */
#define SOME       4u         /* and all others this many */

/* ---- made and freed -------------------------------------------------------------------------------------------- */

static int make_ticket(char ticket[DESK_TICKET_MAX]) {
        uint64_t words[2];

        if (getrandom(words, sizeof(words), 0) != (ssize_t)sizeof(words))
                return -errno;
        snprintf(ticket, DESK_TICKET_MAX, "%016llx%016llx", (unsigned long long)words[0], (unsigned long long)words[1]);
        return 0;
}

int desk_new(struct stream *stream, struct fair_queue *ready, struct desk **ret_desk) {
        const struct program *program = programs_first(stream->programs);
        struct desk *desk = calloc(1, sizeof(*desk));
        int r;

        if (!desk)
                return -ENOMEM;
        for (uint32_t i = 0; i < program_n_fields(program); i++)
                if (program_own(program, i))
                        desk->steps[desk->n_steps++] = i;
        r = desk->n_steps > 0 ? make_ticket(desk->ticket) : 0;
        if (r < 0 || desk->n_steps == 0) {
                free(desk);
                *ret_desk = NULL;
                return r;
        }
        desk->stream = stream;
        desk->alone_ns = clock_now_ns();
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

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

static void give_back(struct desk *desk, struct task *task, enum own_state state) {
        task->own.state = state;
        fair_queue_push(desk->ready, &desk->stream->job->share, &task->ready);
}

bool desk_put(struct desk *desk, struct task *task) {
        bool is_closed, has_ended, tell = false;

        pthread_mutex_lock(&desk->lock);
        is_closed = desk->is_closed;
        has_ended = desk->ended.text[0] != '\0';
        if (has_ended)
                task->own.why = desk->ended;
        if (!is_closed && !has_ended) {
                STAILQ_INSERT_TAIL(&desk->waiting, task, entry);
                desk->n_waiting++;
                tell = desk->n_room > 0 && !desk->is_told;
                desk->is_told |= tell;
        }
        pthread_mutex_unlock(&desk->lock);
        if (is_closed || has_ended) /* of a rank that has left no sample is wanted: it is dropped */
                give_back(desk, task, has_ended ? OWN_ENDED : OWN_DONE);
        return tell;
}

/* Takes all waiting tasks off the desk. */
static void take_all(struct desk *desk, struct tasks *tasks) {
        STAILQ_INIT(tasks);
        STAILQ_CONCAT(tasks, &desk->waiting);
        desk->n_waiting = 0;
}

static void give_back_all(struct desk *desk, struct tasks *tasks, enum own_state state, const struct why *why) {
        struct task *task;

        while ((task = STAILQ_FIRST(tasks))) {
                STAILQ_REMOVE_HEAD(tasks, entry);
                if (why)
                        task->own.why = *why;
                give_back(desk, task, state);
        }
}

static const char *function_of(const struct desk *desk) {
        return program_own(programs_first(desk->stream->programs), desk->steps[0])->function;
}

/* It was the first order of a process that has ended. */
static void blame(struct desk *desk, struct task *task, const char *text) {
        if (++task->own.n_tries < OWN_TRIES) {
                give_back(desk, task, OWN_AGAIN);
                return;
        }
        why_set(&task->own.why, 0, "python(%s): %u worker processes ended over it, the last: %s", function_of(desk),
                OWN_TRIES, text);
        give_back(desk, task, OWN_FAILED);
}

/* ---- seats ----------------------------------------------------------------------------------------------------- */

/* Where a function is quick, the next orders are with the process before it asks. */
static uint32_t window_of(const struct seat *seat) {
        if (seat->supervises)
                return 0;
        if (seat->usual_ns == 0 || seat->usual_ns > LONG_NS)
                return 1;
        return seat->usual_ns > QUICK_NS ? SOME : DLP_ORDERS_MAX;
}

static uint32_t room_of(const struct seat *seat) {
        uint32_t window = window_of(seat);

        return seat->n_dealt < window ? window - seat->n_dealt : 0;
}

/* Called after a change of any seat. */
static void count_room(struct desk *desk) {
        uint32_t n_room = 0, n_workers = 0;
        struct seat *seat;

        TAILQ_FOREACH(seat, &desk->seats, entry) {
                n_room += room_of(seat);
                n_workers += !seat->supervises;
        }
        pthread_mutex_lock(&desk->lock);
        desk->n_room = n_room;
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
        count_room(desk);
}

/* Those that were not begun, from `first` on, wait in front of all others. */
static void put_back(struct desk *desk, struct seat *seat, uint32_t first) {
        pthread_mutex_lock(&desk->lock);
        while (seat->n_dealt > first) {
                struct task *task = seat->dealt[--seat->n_dealt];

                STAILQ_INSERT_HEAD(&desk->waiting, task, entry);
                desk->n_waiting++;
        }
        pthread_mutex_unlock(&desk->lock);
}

/* The supervisor has ended as well: nobody will say how they ended. */
static void blame_lost(struct desk *desk) {
        struct task *task;

        while ((task = STAILQ_FIRST(&desk->lost))) {
                STAILQ_REMOVE_HEAD(&desk->lost, entry);
                blame(desk, task, "it ended");
        }
}

/* How many of its orders the process has begun, the last of which met its end. A mark that makes no sense is taken for
 * the first of them: so there is an end to this. */
static uint32_t n_begun(const struct seat *seat) {
        uint64_t begun = seat->mark ? atomic_load_explicit(&seat->mark->begun, memory_order_acquire) : 0;

        if (seat->n_dealt == 0 || begun < seat->dealt[0]->own.number)
                return 0;
        for (uint32_t i = 0; i < seat->n_dealt; i++)
                if (seat->dealt[i]->own.number == begun)
                        return i + 1;
        return 1;
}

/* The others that were begun are done, but their answer has not come: they are made again. */
static void make_again(struct desk *desk, struct seat *seat, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                give_back(desk, seat->dealt[i], OWN_AGAIN);
}

static void lose(struct desk *desk, struct seat *seat, struct task *task) {
        if (!desk->supervisor) {
                blame(desk, task, "it ended");
                return;
        }
        task->own.worker = seat->worker;
        STAILQ_INSERT_TAIL(&desk->lost, task, entry);
}

void desk_leave(struct seat *seat) {
        struct desk *desk = seat->desk;
        uint32_t n = n_begun(seat);

        if (!desk)
                return;
        TAILQ_REMOVE(&desk->seats, seat, entry);
        seat->desk = NULL;
        if (seat == desk->supervisor) {
                desk->supervisor = NULL;
                blame_lost(desk);
        }
        put_back(desk, seat, n);
        if (n > 0) {
                make_again(desk, seat, n - 1);
                lose(desk, seat, seat->dealt[n - 1]);
        }
        seat->n_dealt = 0;
        count_room(desk);
}

struct seat *desk_find_seat(const struct desk *desk, uint64_t worker) {
        struct seat *seat;

        TAILQ_FOREACH(seat, &desk->seats, entry)
                if (seat->worker == worker && !seat->supervises)
                        return seat;
        return NULL;
}

void desk_note_end(struct desk *desk, uint64_t worker, const char *text) {
        struct task *task;

        STAILQ_FOREACH(task, &desk->lost, entry)
        if (task->own.worker == worker)
                break;
        if (!task)
                return;
        STAILQ_REMOVE(&desk->lost, task, task, entry);
        blame(desk, task, text);
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
                if (room_of(seat) > 0 && (!best || seat->n_dealt < best->n_dealt))
                        best = seat;
        }
        if (!best || n_waiting == 0)
                return NULL;
        share = (n_waiting + n_workers - 1) / n_workers; /* so that no process waits beside one that has several */
        *ret_n = room_of(best) < share ? room_of(best) : share;
        return best;
}

struct task *desk_take(struct desk *desk, struct seat *seat) {
        struct task *task;

        pthread_mutex_lock(&desk->lock);
        task = STAILQ_FIRST(&desk->waiting);
        if (task) {
                STAILQ_REMOVE_HEAD(&desk->waiting, entry);
                desk->n_waiting--;
                desk->n_room -= desk->n_room > 0;
        }
        pthread_mutex_unlock(&desk->lock);
        if (!task)
                return NULL;
        task->own.number = ++desk->n_orders;
        if (seat->n_dealt == 0)
                seat->begun_ns = clock_now_ns();
        seat->dealt[seat->n_dealt++] = task;
        return task;
}

static void note_time(struct seat *seat, uint32_t n) {
        uint64_t now_ns = clock_now_ns(), took_ns = (now_ns - seat->begun_ns) / n;

        seat->usual_ns = seat->usual_ns == 0 ? took_ns + 1 : (3 * seat->usual_ns + took_ns) / 4;
        seat->begun_ns = now_ns;
}

static uint32_t n_up_to(const struct seat *seat, uint64_t number) {
        for (uint32_t i = 0; i < seat->n_dealt; i++)
                if (seat->dealt[i]->own.number == number)
                        return i + 1;
        return 0;
}

int desk_answer(struct seat *seat, uint64_t number, const char *error) {
        struct desk *desk = seat->desk;
        uint32_t n = n_up_to(seat, number);
        struct task *answered[DLP_ORDERS_MAX];

        if (!desk || n == 0)
                return -EPROTO;
        memcpy(answered, seat->dealt, n * sizeof(*answered));
        seat->n_dealt -= n;
        memmove(seat->dealt, seat->dealt + n, seat->n_dealt * sizeof(*seat->dealt));
        note_time(seat, n);
        count_room(desk);
        if (error)
                why_set(&answered[n - 1]->own.why, 0, "python(%s): %s", function_of(desk), error);
        for (uint32_t i = 0; i < n; i++)
                give_back(desk, answered[i], error && i + 1 == n ? OWN_FAILED : OWN_DONE);
        return 0;
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

static void end_all(struct desk *desk, const struct why *why) {
        struct tasks tasks;

        pthread_mutex_lock(&desk->lock);
        desk->ended = *why;
        take_all(desk, &tasks);
        pthread_mutex_unlock(&desk->lock);
        give_back_all(desk, &tasks, OWN_ENDED, why);
}

void desk_give_up(struct desk *desk, const char *text) {
        struct why why;

        why_set(&why, 0, "python(%s): %s", function_of(desk), text);
        end_all(desk, &why);
}

void desk_close(struct desk *desk) {
        struct tasks tasks;
        struct seat *seat;

        pthread_mutex_lock(&desk->lock);
        desk->is_closed = true;
        take_all(desk, &tasks);
        pthread_mutex_unlock(&desk->lock);
        STAILQ_CONCAT(&tasks, &desk->lost);
        while ((seat = TAILQ_FIRST(&desk->seats))) {
                TAILQ_REMOVE(&desk->seats, seat, entry);
                seat->desk = NULL;
                for (uint32_t i = 0; i < seat->n_dealt; i++)
                        STAILQ_INSERT_TAIL(&tasks, seat->dealt[i], entry);
                seat->n_dealt = 0;
        }
        desk->supervisor = NULL;
        give_back_all(desk, &tasks, OWN_DONE, NULL); /* and are dropped: the rank has left */
}

bool desk_look(struct desk *desk, uint64_t now_ns, struct why *ret_text) {
        uint64_t alone_ns;
        struct why why;

        pthread_mutex_lock(&desk->lock);
        if (desk->n_waiting == 0 || desk->n_room > 0)
                alone_ns = 0;
        else
                alone_ns = desk->alone_ns;
        pthread_mutex_unlock(&desk->lock);
        if (alone_ns == 0 || now_ns < alone_ns + TELL_NS)
                return false;
        why_set(ret_text, 0, "on hold: python(%s): waiting for a worker process of the trainer, for %llu s so far",
                function_of(desk), (unsigned long long)(now_ns - alone_ns) / 1000000000u);
        if (now_ns < alone_ns + GIVE_UP_NS)
                return true;
        why_set(&why, 0,
                "python(%s): no worker process of the trainer came within %llu s: functions are named when a loader is "
                "opened, as in dlclient.Loader(..., workers={\"%s\": function})",
                function_of(desk), GIVE_UP_NS / 1000000000u, function_of(desk));
        end_all(desk, &why);
        return true;
}
