#include "daemon/pipeline/workers/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "daemon/base/machine/heap.h"

void pool_init(struct pool *pool, const struct pool_options *options) {
        pool->options = (struct worker_options){
                .ready = options->ready,
                .planner = options->planner,
                .budget = options->budget,
                .scratch = options->scratch,
                .pace = &pool->pace,
                .limits = options->limits,
                .decode_jpeg = options->decode_jpeg,
                .isolation = options->isolation,
        };
        pool->settings = options->settings;
        pool->cells = options->cells;
        pool->scratch_bytes = options->scratch_bytes;
        pace_init(&pool->pace);
}

/* ---- workers that have left ---------------------------------------------------------------------------------- */

static void pool_bury(struct pool *pool, struct worker **place) {
        struct worker *worker = *place;

        *place = NULL;
        counters_add(&pool->left, worker->counters);
        worker_join(worker);
}

/* Joining a worker that has set has_left blocks only for as long as a thread takes to end. */
static void pool_reap(struct pool *pool) {
        for (uint32_t i = 0; i < WORKERS_MAX; i++)
                if (pool->workers[i] && atomic_load_explicit(&pool->workers[i]->has_left, memory_order_acquire))
                        pool_bury(pool, &pool->workers[i]);
}

void pool_stop(struct pool *pool) {
        if (!pool->options.ready)
                return;
        fair_queue_stop(pool->options.ready);
        pace_stop(&pool->pace);
        for (uint32_t i = 0; i < WORKERS_MAX; i++)
                if (pool->workers[i])
                        pool_bury(pool, &pool->workers[i]);
        pace_fini(&pool->pace);
}

/* ---- the number of workers ----------------------------------------------------------------------------------- */

/* A worker that was told to leave keeps its place until it has left, so for a moment there may be more workers than
 * places. */
static int pool_start_one(struct pool *pool, struct why *why) {
        for (uint32_t i = 0; i < WORKERS_MAX; i++)
                if (!pool->workers[i])
                        return worker_start(&pool->options, i, &pool->workers[i], why);
        return why_set(why, -EAGAIN, "workers: %u are ending their last samples; try again in a moment", WORKERS_MAX);
}

static int pool_grow(struct pool *pool, uint32_t n_more, struct why *why) {
        uint32_t n_retained = fair_queue_retain(pool->options.ready, n_more);
        int r = 0;

        for (uint32_t n = n_retained; n < n_more; n++) {
                r = pool_start_one(pool, why);
                if (r < 0) { /* as many as before: those that were started or kept leave again */
                        fair_queue_dismiss(pool->options.ready, n);
                        break;
                }
        }
        return r;
}

static int pool_resize(struct pool *pool, uint32_t n_workers, struct why *why) {
        uint32_t n_before = pool_n_workers(pool);
        int r = 0;

        assert(n_workers >= 1 && n_workers <= WORKERS_MAX);

        pool_reap(pool);
        /* Only workers that start from now on get this share. Those that run keep what they reserved. */
        pool->options.scratch_bytes = pool->scratch_bytes / n_workers;
        if (pool->options.scratch_bytes > WORKER_SCRATCH_BYTES)
                pool->options.scratch_bytes = WORKER_SCRATCH_BYTES;
        heap_keep(pool->options.scratch_bytes);
        if (n_workers > n_before)
                r = pool_grow(pool, n_workers - n_before, why);
        else if (n_workers < n_before)
                fair_queue_dismiss(pool->options.ready, n_before - n_workers);
        if (r == 0)
                atomic_store_explicit(&pool->n_workers, n_workers, memory_order_relaxed);
        return r;
}

uint32_t pool_n_workers(const struct pool *pool) {
        return atomic_load_explicit(&pool->n_workers, memory_order_relaxed);
}

uint32_t pool_n_asked(const struct pool *pool) {
        return pool->n_asked;
}

uint64_t pool_cpus_milli(const struct pool *pool) {
        uint64_t milli = cpus_milli(&pool->cpus), ceiling = cpu_share_milli(&pool->ceiling, &pool->cpus);

        return ceiling > 0 && ceiling < milli ? ceiling : milli;
}

uint64_t pool_scratch_bytes(const struct pool *pool) {
        uint64_t n_bytes = 0;

        for (uint32_t i = 0; i < WORKERS_MAX; i++)
                if (pool->workers[i] && !atomic_load_explicit(&pool->workers[i]->has_left, memory_order_acquire))
                        n_bytes += pool->workers[i]->own_bytes;
        return n_bytes;
}

/* ---- configuration ------------------------------------------------------------------------------------------- */

static int pool_set_nice(struct pool *pool, int nice) {
        int result = 0;

        pool->options.nice = nice;
        for (uint32_t i = 0; i < WORKERS_MAX; i++) {
                int r = pool->workers[i] ? worker_set_nice(pool->workers[i], nice) : 0;

                if (r < 0 && r != -ESRCH) /* ESRCH: it has just left */
                        result = POOL_NICE_STAYS;
        }
        if (pool->cells && cells_set_nice(pool->cells, nice) < 0)
                result = POOL_NICE_STAYS;
        return result;
}

static int pool_follow(struct pool *pool, uint32_t n_workers, struct why *why) {
        uint32_t n = n_workers;

        cpus_find(&pool->cpus);
        if (n == 0)
                n = cpus_n_threads(&pool->cpus);
        if (n > WORKERS_MAX && n_workers > 0)
                return why_set(why, -EINVAL, "workers: %u is not allowed; write a number from 0 to %u", n, WORKERS_MAX);
        return pool_resize(pool, n > WORKERS_MAX ? WORKERS_MAX : n, why);
}

int pool_configure(struct pool *pool, struct why *why) {
        uint32_t n_workers = (uint32_t)pool->settings->workers, nice = (uint32_t)pool->settings->nice;
        int nice_result, r;

        nice_result = nice == pool->nice ? 0 : pool_set_nice(pool, (int)nice);
        cpu_share_parse(pool->settings->cpu_ceiling, &pool->ceiling); /* cannot fail: settings hold only valid values */
        r = pool_follow(pool, n_workers, why);
        pace_set(&pool->pace, cpu_share_milli(&pool->ceiling, &pool->cpus));
        pool->nice = nice;
        if (r < 0)
                return r;
        pool->n_asked = n_workers;
        pool->is_by_hand = false;
        return nice_result;
}

int pool_set_workers(struct pool *pool, uint32_t n_workers, struct why *why) {
        int r = pool_follow(pool, n_workers, why);

        if (r < 0)
                return r;
        pool->n_asked = n_workers;
        pool->is_by_hand = true;
        return 0;
}

const char *pool_text(const struct pool *pool, char text[POOL_TEXT_MAX]) {
        char cpus[CPUS_TEXT_MAX], ceiling[48] = "", nice[24] = "";
        uint64_t milli = cpu_share_milli(&pool->ceiling, &pool->cpus);

        if (milli > 0)
                snprintf(ceiling, sizeof(ceiling), "; ceiling %g CPUs", (double)milli / CPU_MILLI);
        if (pool->nice > 0)
                snprintf(nice, sizeof(nice), "; nice %u", pool->nice);
        snprintf(text, POOL_TEXT_MAX, "%s%s: %s%s%s", pool->n_asked > 0 ? "a fixed number" : "as many as CPUs",
                 pool->is_by_hand ? ", asked for at run time" : "", cpus_text(&pool->cpus, cpus), ceiling, nice);
        return text;
}

/* ---- counters ------------------------------------------------------------------------------------------------ */

void pool_count(struct pool *pool, struct counters *sum) {
        pool_reap(pool);
        counters_add(sum, &pool->left);
        for (uint32_t i = 0; i < WORKERS_MAX; i++)
                if (pool->workers[i]) {
                        counters_add(sum, pool->workers[i]->counters);
                        counter_add(&sum->worker_cpu_ns, worker_cpu_ns(pool->workers[i]));
                }
        if (pool->cells)
                counter_add(&sum->worker_cpu_ns, cells_cpu_ns(pool->cells));
}
