#include "daemon/pipeline/sample_states.h"

#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/failure/failure.h"
#include "daemon/pipeline/pipeline_rows.h"
#include "daemon/pipeline/planner/locate.h"
#include "daemon/pipeline/workers/batch_function.h"
#include "daemon/pipeline/workers/function_result.h"
#include "daemon/pipeline/workers/sample_serve.h"
#include "proto/base/clock.h"

/* Who gets a sample that enters a state. From the reader and the desk it comes to a worker, through the same queue. */
enum owner {
        PLANNER,
        READER,
        WORKER,
        DESK,
};

struct state_row {
        const char *name;
        enum owner owner;
        union {
                enum sample_state (*plan)(struct planner *planner, struct task *task);
                enum sample_state (*work)(struct worker *worker, struct task *task);
        };
        uint32_t may_follow;
};

#define TO(state) (1u << SAMPLE_##state)

/* clang-format off */
static const struct state_row ROWS[N_SAMPLE_STATES] = {
        /*                    name          with      its function                   may be followed by */
        [SAMPLE_FREE]       = { "free",       PLANNER, { .plan = planner_retire },    TO(LOCATE) | TO(COPY) | TO(REPLAY) },
        [SAMPLE_LOCATE]     = { "locate",     PLANNER, { .plan = locate_sample },       TO(FETCH) | TO(READ) | TO(OPEN) },
        [SAMPLE_FETCH]      = { "fetch",      PLANNER, { .plan = locate_fetch },        TO(READ) | TO(OPEN) },
        [SAMPLE_READ]       = { "read",       READER,  { NULL },                      TO(OPEN) },
        [SAMPLE_OPEN]       = { "open",       WORKER,  { .work = sample_open },       TO(RENDER) | TO(FAULT) | TO(DROP) },
        [SAMPLE_RENDER]     = { "render",     WORKER,  { .work = sample_render },     TO(LOCATE) | TO(FUNCTION) | TO(SERVED) |
                                                                                      TO(FAULT) | TO(RETRY) | TO(DROP) },
        [SAMPLE_FUNCTION]   = { "function",   DESK,    { .work = function_result_take },    TO(FINISH) | TO(FAULT) | TO(RETRY) |
                                                                                      TO(FAIL) | TO(DROP) },
        [SAMPLE_FINISH]     = { "finish",     WORKER,  { .work = function_result_serve },       TO(SERVED) | TO(FAULT) | TO(RETRY) |
                                                                                      TO(DROP) },
        [SAMPLE_SERVED]     = { "served",     WORKER,  { .work = sample_served },     TO(END) },

        [SAMPLE_FAULT]      = { "fault",      WORKER,  { .work = failure_decide },    TO(PARK) | TO(REST) | TO(SUBSTITUTE) |
                                                                                      TO(SKIP) | TO(FAIL) },
        [SAMPLE_RETRY]      = { "retry",      PLANNER, { .plan = locate_again },        TO(LOCATE) },
        [SAMPLE_REST]       = { "rest",       PLANNER, { .plan = planner_rest },      TO(LOCATE) },
        [SAMPLE_PARK]       = { "park",       PLANNER, { .plan = planner_park },       TO(LOCATE) | TO(FREE) },
        [SAMPLE_SUBSTITUTE] = { "substitute", PLANNER, { .plan = planner_substitute }, TO(LOCATE) },
        [SAMPLE_SKIP]       = { "skip",       WORKER,  { .work = failure_skip },      TO(END) },
        [SAMPLE_FAIL]       = { "fail",       WORKER,  { .work = failure_fail },      TO(END) },
        [SAMPLE_DROP]       = { "drop",       WORKER,  { .work = sample_drop },       TO(END) },
        [SAMPLE_END]        = { "end",        WORKER,  { .work = sample_end },        TO(FREE) | TO(LOCATE) | TO(GATHER) |
                                                                                      TO(BATCH) | TO(COLLATE) },

        [SAMPLE_COPY]       = { "copy",       WORKER,  { .work = rows_copy },         TO(END) | TO(RUN) | TO(LOCATE) | TO(DROP) },
        [SAMPLE_RUN]        = { "run",        DESK,    { .work = rows_function },     TO(END) | TO(FAULT) | TO(RETRY) | TO(FAIL) |
                                                                                      TO(DROP) },

        [SAMPLE_GATHER]     = { "gather",     WORKER,  { .work = batch_function_gather },      TO(BATCH) | TO(COLLATE) },
        [SAMPLE_BATCH]      = { "batch",      DESK,    { .work = batch_function_returned },    TO(LOCATE) | TO(COLLATE) },
        [SAMPLE_COLLATE]    = { "collate",    WORKER,  { .work = batch_function_collate },     TO(FREE) },
        [SAMPLE_REPLAY]     = { "replay",     WORKER,  { .work = sample_replay },     TO(FREE) },
};
/* clang-format on */

/* A bug of ours: nothing is right from here on. */
static void refuse_state(enum sample_state state, enum sample_state next) {
        log_error("sample", "a sample in the state %s is to be in the state %s next, which its row does not allow",
                  ROWS[state].name, ROWS[next].name);
        abort();
}

static void follow(struct task *task, enum sample_state next) {
        if (!(ROWS[task->state].may_follow & 1u << next))
                refuse_state(task->state, next);
        task->state = next;
}

/* Of a sample that nobody wants any more no further work is begun. */
static bool is_unwanted_now(const struct task *task) {
        return (ROWS[task->state].may_follow & TO(DROP)) && !batch_is_wanted(task->batch);
}

/* ---- the planner ----------------------------------------------------------------------------------------------- */

void states_begin(struct planner *planner, struct task *task, enum sample_state first) {
        follow(task, first);
        states_plan(planner, task);
}

void states_plan(struct planner *planner, struct task *task) {
        while (ROWS[task->state].owner == PLANNER) {
                enum sample_state next = ROWS[task->state].plan(planner, task);

                if (next == SAMPLE_ELSEWHERE)
                        return;
                follow(task, next);
        }
        task->asked_ns = clock_now_ns();
        task->fetch_ns = 0;
        if (ROWS[task->state].owner == READER) {
                atomic_store_explicit(&task->reading_ns, task->asked_ns, memory_order_relaxed);
                reader_submit(planner->options.reader, &task->request);
        } else {
                states_arrived(task, planner->options.ready);
        }
}

void states_fetched(struct planner *planner, struct task *task) {
        uint64_t now_ns = clock_now_ns();

        task->fetch_ns = now_ns - task->asked_ns;
        atomic_store_explicit(&task->is_fetching, false, memory_order_relaxed);
        if (task->held) {
                follow(task, SAMPLE_READ);
                atomic_store_explicit(&task->reading_ns, now_ns, memory_order_relaxed);
                reader_submit(planner->options.reader, &task->request);
        } else {
                follow(task, SAMPLE_OPEN);
                states_arrived(task, planner->options.ready);
        }
}

void states_leave(struct planner *planner, struct task *task) {
        if (locate_leave(task))
                states_fetched(planner, task);
}

/* ---- workers --------------------------------------------------------------------------------------------------- */

void states_arrived(struct task *task, struct fair_queue *ready) {
        if (task->state == SAMPLE_READ)
                follow(task, SAMPLE_OPEN);
        if (task->held)
                cached_release(task->held, &task->want);
        task->held = NULL;
        task->arrived_ns = clock_now_ns();
        atomic_store_explicit(&task->reading_ns, 0, memory_order_relaxed);
        fair_queue_push(ready, &task->batch->feed->job->share, &task->ready);
}

/* The feed may be gone after it is on the desk, if its rank has left: see desk_filled. */
static void lay_on_desk(const struct planner_options *options, struct task *task) {
        struct feed *feed = task->batch->feed;

        if (desk_put(feed->desk, task))
                options->desk_filled(options->userdata, feed);
}

void states_work(struct worker *worker, struct task *task) {
        worker->serving_ns = 0;
        worker->batch = task->batch;
        do {
                enum sample_state next = is_unwanted_now(task) ? SAMPLE_DROP : ROWS[task->state].work(worker, task);

                if (next == SAMPLE_ELSEWHERE) /* it may be another worker's by now */
                        return;
                follow(task, next);
        } while (ROWS[task->state].owner == WORKER);
        fair_item_done(&task->ready, worker->serving_ns);
        if (ROWS[task->state].owner == DESK)
                lay_on_desk(&worker->planner->options, task);
        else if (task->state == SAMPLE_FREE)
                planner_return(worker->planner, task);
        else
                planner_go_on_with(worker->planner, task);
}
