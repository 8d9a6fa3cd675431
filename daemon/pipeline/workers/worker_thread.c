#include "daemon/pipeline/workers/worker_thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/threads/thread.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/sample_states.h"
#include "proto/base/clock.h"

/* What takes long asks it now and then. */
static bool worker_is_wanted(const void *userdata) {
        struct worker *worker = (struct worker *)(uintptr_t)userdata;

        if (worker->may_yield && fair_queue_presses(worker->ready, &worker->taking))
                worker->yields = true;
        return !worker->yields && batch_is_wanted(worker->batch);
}

static int worker_equip(struct worker *worker) {
        int r;

        worker->tid = gettid();
        if (worker->nice > 0)
                worker_set_nice(worker, worker->nice); /* raising the nice value is always allowed */
        r = codec_tools_new(&worker->limits, worker->decode_jpeg, &worker->tools, &worker->why);
        if (r == 0)
                worker->rendering.clock = codec_tools_clock(worker->tools);
        if (r == 0)
                codec_tools_set_wanted(worker->tools, worker_is_wanted, worker);
        return r;
}

static uint64_t cpu_time_of(clockid_t clock) {
        struct timespec time;

        return clock_gettime(clock, &time) < 0 ? 0 : (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Of a worker that has left, its counters have it. One that leaves at this moment may have no clock any more. */
uint64_t worker_cpu_ns(struct worker *worker) {
        clockid_t clock;
        uint64_t ns;

        if (atomic_load_explicit(&worker->has_left, memory_order_acquire))
                return 0;
        ns = pthread_getcpuclockid(worker->thread, &clock) == 0 ? cpu_time_of(clock) : 0;
        return ns > counter_get(&worker->counters->worker_cpu_ns) ? ns - counter_get(&worker->counters->worker_cpu_ns)
                                                                  : 0;
}

/* Its first cell lives as long as it does, and has the worker's scratch: the worker needs next to none. */
static uint64_t cell_bytes(const struct isolation *isolation) {
        return isolation ? ISOLATION_CELL_BYTES : 0;
}

static void worker_strip(struct worker *worker) {
        counter_add(&worker->counters->worker_cpu_ns, clock_thread_ns());
        user_cells_fini(&worker->rendering.user_cells);
        codec_tools_free(worker->tools);
        budget_release(worker->budget, worker->own_bytes + cell_bytes(worker->rendering.user_cells.isolation));
}

#define LEFT_TO_OTHERS 4u /* samples of a job, so that no worker is idle beside one that has several */

/* Where a cell decodes, more samples of the same job come along if they wait: they are ordered together. */
static void worker_take_turns(struct worker *worker, struct task *task) {
        struct task *tasks[RENDER_SAMPLES_MAX] = { task };
        struct fair_item *item;
        uint32_t n = 1;

        while (n < RENDER_SAMPLES_MAX && rendering_may_gather(task) &&
               (item = fair_queue_pop_beside(worker->ready, &task->ready, LEFT_TO_OTHERS)))
                tasks[n++] = task_of_ready(item);
        if (n > 1)
                rendering_gather(&worker->rendering, tasks, n);
        for (uint32_t k = 0; k < n; k++)
                states_work(worker, tasks[k]);
        if (n > 1)
                rendering_forget(&worker->rendering);
}

/* CPU time that processes took for the worker's last samples. Nobody asks if there is no ceiling. */
static uint64_t beside_ns(struct worker *worker) {
        if (!pace_is_set(worker->pace))
                return 0;
        return rendering_cpu_ns(&worker->rendering) + codec_tools_beside_ns(worker->tools);
}

static void *worker_main(void *userdata) {
        struct worker *worker = userdata;
        struct fair_item *item;
        char name[16];

        snprintf(name, sizeof(name), "worker-%u", worker->idx % 1000000);
        trace_thread_begin(&worker->traced, name);
        worker->result = worker_equip(worker);
        sem_post(&worker->began);
        while (worker->result == 0 && (item = fair_queue_pop(worker->ready, &worker->taking))) {
                worker_take_turns(worker, task_of_ready(item));
                pace_rest(worker->pace, &worker->clock_ns, beside_ns(worker)); /* it holds no sample here */
        }
        worker_strip(worker);
        trace_thread_end(&worker->traced);
        atomic_store_explicit(&worker->has_left, true, memory_order_release);
        return NULL;
}

static struct worker *worker_new(const struct worker_options *options, uint32_t idx) {
        struct worker *worker = aligned_alloc(_Alignof(struct worker), sizeof(*worker));

        if (!worker)
                return NULL;
        *worker = (struct worker){
                .idx = idx,
                .ready = options->ready,
                .planner = options->planner,
                .budget = options->budget,
                .pace = options->pace,
                .limits = options->limits,
                .decode_jpeg = options->decode_jpeg,
                .nice = options->nice,
                .counters = &worker->counted,
                .scratch = options->scratch,
                .own_bytes = options->scratch_bytes,
        };
        user_cells_init(&worker->rendering.user_cells, options->isolation, options->budget, options->scratch_bytes);
        sem_init(&worker->began, 0, 0);
        return worker;
}

static void worker_free(struct worker *worker) {
        sem_destroy(&worker->began);
        free(worker);
}

static void wait_until_begun(struct worker *worker) {
        while (sem_wait(&worker->began) < 0) /* EINTR: only with a debugger */
                continue;
}

int worker_start(const struct worker_options *options, uint32_t idx, struct worker **ret_worker, struct why *why) {
        struct worker *worker;
        uint64_t n_bytes;
        char name[16];
        int r;

        n_bytes = options->scratch_bytes + cell_bytes(options->isolation);
        r = budget_reserve(options->budget, n_bytes, "a worker's scratch", why);
        if (r < 0)
                return r;
        worker = worker_new(options, idx);
        snprintf(name, sizeof(name), "worker-%u", idx % 1000000);
        r = worker ? thread_start(&worker->thread, name, worker_main, worker) : -ENOMEM;
        if (r < 0) {
                if (worker)
                        worker_free(worker);
                budget_release(options->budget, n_bytes);
                return why_errno(why, r, "worker %u", idx);
        }
        wait_until_begun(worker);
        if (worker->result < 0) {
                r = why_set(why, worker->result, "%s", worker->why.text);
                worker_join(worker);
                return r;
        }
        *ret_worker = worker;
        return 0;
}

void worker_join(struct worker *worker) {
        thread_join(worker->thread);
        worker_free(worker);
}

int worker_set_nice(struct worker *worker, int nice) {
        return setpriority(PRIO_PROCESS, (id_t)worker->tid, nice) < 0 ? -errno : 0; /* applies to a thread */
}
