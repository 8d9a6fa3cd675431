#include "daemon/pipeline/pipeline.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/base/log.h"
#include "daemon/base/threads/fair_queue.h"
#include "daemon/base/work/sweeper.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/planner/planner_thread.h"
#include "daemon/pipeline/sample_states.h"
#include "daemon/pipeline/workers/pool.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define STOP_NAPS_MAX    10000u /* about one millisecond each */
#define TASKS_MIN        2u
#define SPARE_TASKS      3u            /* for each of n_tasks: three jobs may hang while others read on */
#define FREED_WAIT_NS    8000000000ull /* for memory that is being given back; background_stop() waits for longer */
#define HELD_WAIT_NS     1000000000ull /* for memory that a client which has left still holds: it may hold it for ever */
#define TOUCH_NAPS_MAX   100           /* naps of a millisecond: the longest wait for a feed's first batch */
#define TOUCH_NICE       10            /* of the touching thread: on Linux, nice(2) applies to a thread */
#define SCRATCH_POOL_MAX (1ull << 30)  /* bytes; the most that the largest pictures may take by default */
#define READER_THREADS   8u            /* of the fallback: a disk needs about this many waiting readers */

struct pipeline {
        struct pipeline_options options;
        struct decode_limits limits;
        enum decode_jpeg decode_jpeg;
        struct counters counters; /* the planner's */
        struct counters sum;      /* main thread: with the workers' */
        struct order_tables *tables;
        struct lent_list held;
        struct scratch_pool scratch;
        bool scratch_made;
        struct isolation isolation;
        bool isolation_made; /* else workers decode */
        struct reader *reader;
        bool ready_made, planner_started;
        _Alignas(64) struct fair_queue ready; /* written by all threads, once for each sample */
        _Alignas(64) struct planner planner;
        _Alignas(64) struct pool pool;
        struct task *tasks;
        uint32_t n_depth; /* samples under way normally: read_depth, or fewer if memory_limit is small */
        uint32_t n_tasks; /* these, and the spare ones */
        uint8_t *buffers;
        uint64_t buffers_bytes, charged_bytes;
        uint64_t scratch_bytes;      /* of all workers together: their own scratch */
        uint64_t scratch_pool_bytes; /* in addition, for large pictures */
        _Atomic uint32_t n_removing; /* removed feeds whose memory has not been given back yet */
        _Atomic uint32_t n_feeds;
};

/* The reader does not know the queue to the workers, so its callback finds the pipeline through the request. */
static void pipeline_on_read(struct read_request *request) {
        struct pipeline *pipeline = request->userdata;
        struct task *task = (struct task *)((uint8_t *)request - offsetof(struct task, request));

        states_arrived(task, &pipeline->ready);
}

/* On a thread of the cache. */
static void pipeline_on_fetched(struct cache_want *want) {
        struct task *task = want->userdata;
        struct pipeline *pipeline = task->request.userdata;

        if (want->result < 0) {
                task->held = NULL;
                task->request.result = want->result;
                task->request.n_bytes = 0;
                task->request.why = want->why;
        }
        states_fetched(&pipeline->planner, task);
}

static void on_order_ready(void *userdata) {
        struct pipeline *pipeline = userdata;

        planner_wake(&pipeline->planner);
}

/* The memory comes out of what the job has reserved in feed_new(). */
static int on_order_reserve(void *userdata, void *payer, uint64_t bytes, const char *what, struct why *why) {
        return job_take_order(payer, bytes, why);
}

static void on_order_release(void *userdata, void *payer, uint64_t bytes) {
        job_give_order(payer, bytes);
}

static void on_order_told(void *userdata, void *payer, uint64_t epoch, uint64_t n_done, uint64_t n_total) {
        (void)userdata;
        job_tell_order(payer, epoch, n_done, n_total);
}

static struct order_user *on_order_user(void *userdata, void *payer) {
        struct job *job = payer;

        (void)userdata;
        return &job->household->user->orders;
}

/* Who has orders made has less of the workers for it. */
static void on_order_spent(void *userdata, void *payer, uint64_t taken_ns) {
        struct job *job = payer;

        (void)userdata;
        fair_share_charge(&job->share, taken_ns);
}

static void on_feed_freed(void *userdata) {
        struct pipeline *pipeline = userdata;

        atomic_fetch_sub_explicit(&pipeline->n_removing, 1, memory_order_release);
        atomic_fetch_sub_explicit(&pipeline->n_feeds, 1, memory_order_release);
}

static void on_feed_broken(void *userdata, struct feed *feed) {
        struct pipeline *pipeline = userdata;

        pipeline->options.broken(pipeline->options.userdata, feed);
}

static void on_desk_filled(void *userdata, struct feed *feed) {
        struct pipeline *pipeline = userdata;

        pipeline->options.desk_filled(pipeline->options.userdata, feed);
}

static int make_tasks(struct pipeline *pipeline, struct why *why) {
        uint32_t n = pipeline->n_tasks;
        int r;

        pipeline->buffers_bytes = (uint64_t)n * TASK_BUFFER_BYTES;
        r = budget_reserve(pipeline->options.budget, pipeline->buffers_bytes + n * sizeof(struct task),
                           "the read buffers", why);
        if (r < 0)
                return r;
        pipeline->charged_bytes = pipeline->buffers_bytes + n * sizeof(struct task);

        pipeline->buffers = mmap(NULL, pipeline->buffers_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                 0);
        if (pipeline->buffers == MAP_FAILED) {
                pipeline->buffers = NULL;
                return why_errno(why, -errno, "read buffers");
        }
        madvise(pipeline->buffers, pipeline->buffers_bytes,
                MADV_HUGEPAGE); /* fewer TLB misses; nothing depends on it */
        pipeline->tasks = calloc(n, sizeof(struct task));
        if (!pipeline->tasks)
                return why_errno(why, -ENOMEM, "tasks");
        for (uint32_t i = 0; i < n; i++) {
                pipeline->tasks[i].idx = i;
                pipeline->tasks[i].own_buffer = pipeline->buffers + (uint64_t)i * TASK_BUFFER_BYTES;
                pipeline->tasks[i].request.userdata = pipeline;
        }
        return 0;
}

static int make_scratch_pool(struct pipeline *pipeline, struct why *why) {
        uint64_t n_bytes = pipeline->scratch_pool_bytes;
        int r = budget_reserve(pipeline->options.budget, n_bytes, "scratch for large pictures", why);

        if (r < 0)
                return r;
        scratch_pool_init(&pipeline->scratch, n_bytes, &pipeline->ready);
        pipeline->scratch_made = true;
        return 0;
}

static int start_reader(struct pipeline *pipeline, struct why *why) {
        struct reader_options options = {
                .depth = pipeline->n_tasks,
                .buffers = pipeline->buffers,
                .buffer_bytes = TASK_BUFFER_BYTES,
                .n_buffers = pipeline->n_depth,
                .backend = pipeline->options.settings->reader,
                .n_threads = READER_THREADS,
                .done = pipeline_on_read,
        };

        return reader_start(&options, &pipeline->reader, why);
}

static int start_planner(struct pipeline *pipeline, struct why *why) {
        struct planner_options options = {
                .reader = pipeline->reader,
                .tables = pipeline->tables,
                .ready = &pipeline->ready,
                .budget = pipeline->options.budget,
                .settings = pipeline->options.settings,
                .counters = &pipeline->counters,
                .tasks = pipeline->tasks,
                .n_tasks = pipeline->n_tasks,
                .n_depth = pipeline->n_depth,
                .fetched = pipeline_on_fetched,
                .freed = on_feed_freed,
                .broken = on_feed_broken,
                .desk_filled = on_desk_filled,
                .userdata = pipeline,
        };
        int r = planner_start(&pipeline->planner, &options);

        if (r < 0)
                return why_errno(why, r, "planner");
        pipeline->planner_started = true;
        return 0;
}

static int pipeline_start_workers(struct pipeline *pipeline, struct why *why) {
        struct pool_options options = {
                .ready = &pipeline->ready,
                .planner = &pipeline->planner,
                .budget = pipeline->options.budget,
                .scratch = &pipeline->scratch,
                .settings = pipeline->options.settings,
                .limits = pipeline->limits,
                .decode_jpeg = pipeline->decode_jpeg,
                .cells = pipeline->options.cells,
                .isolation = pipeline->isolation_made ? &pipeline->isolation : NULL,
                .scratch_bytes = pipeline->scratch_bytes,
        };
        int r;

        pool_init(&pipeline->pool, &options);
        r = pipeline_configure(pipeline, why);
        return r < 0 ? r : 0; /* threads that start later may have any nice value */
}

static int start_isolation(struct pipeline *pipeline, struct why *why) {
        struct isolation_options options = {
                .cells = pipeline->options.cells,
                .timeout_ns = pipeline->options.settings->isolation_timeout * 1000000000u,
                .limits = pipeline->limits,
                .decode_jpeg = pipeline->decode_jpeg,
                .most_bytes = pipeline->scratch_pool_bytes,
        };
        int r;

        if (strcmp(pipeline->options.settings->isolation, "process") != 0)
                return 0;
        r = isolation_init(&pipeline->isolation, &options, why);
        pipeline->isolation_made = r == 0;
        return r;
}

/* Starts bottom-up: whatever a thread hands work to exists before the thread. pipeline_stop() does the same
 * backwards. */
static int pipeline_start_floors(struct pipeline *pipeline, struct why *why) {
        struct order_tables_options tables = {
                .reserve = on_order_reserve,
                .release = on_order_release,
                .ready = on_order_ready,
                .told = on_order_told,
                .user = on_order_user,
                .spent = on_order_spent,
                .userdata = pipeline,
        };
        int r;

        r = sweeper_start(why);
        if (r < 0)
                return r;
        r = make_tasks(pipeline, why);
        if (r < 0)
                return r;
        fair_queue_init(&pipeline->ready);
        pipeline->ready_made = true;
        r = make_scratch_pool(pipeline, why);
        if (r < 0)
                return r;
        r = order_tables_new(&tables, &pipeline->tables);
        if (r < 0)
                return why_errno(why, r, "order tables");
        r = start_reader(pipeline, why);
        if (r < 0)
                return r;
        r = start_planner(pipeline, why);
        if (r < 0)
                return r;
        r = start_isolation(pipeline, why);
        if (r < 0)
                return r;
        return pipeline_start_workers(pipeline, why);
}

/* With a small memory_limit, read buffers take a quarter of it at most, the buffers of the spare tasks
 * (pipeline/jobs/shares.h) a sixteenth, the workers' own scratch an eighth, and the pool for large pictures a quarter.
 * The rest is for the rings. */
static void fit_into_budget(struct pipeline *pipeline) {
        uint64_t limit = pipeline->options.budget->limit_bytes, n_depth = pipeline->options.settings->read_depth;
        uint64_t n_tasks = limit / 4 / (TASK_BUFFER_BYTES + sizeof(struct task)), n_spare;

        if (n_tasks < n_depth)
                n_depth = n_tasks < TASKS_MIN ? TASKS_MIN : n_tasks;
        n_spare = limit / 16 / (TASK_BUFFER_BYTES + sizeof(struct task));
        if (n_spare > n_depth * SPARE_TASKS)
                n_spare = n_depth * SPARE_TASKS;
        pipeline->n_depth = (uint32_t)n_depth;
        pipeline->n_tasks = (uint32_t)(n_depth + n_spare);
        pipeline->scratch_bytes = limit / 8;
        pipeline->scratch_pool_bytes = limit / 4 < SCRATCH_POOL_MAX ? limit / 4 : SCRATCH_POOL_MAX;
}

int pipeline_start(const struct pipeline_options *options, struct pipeline **ret_pipeline, struct why *why) {
        struct pipeline *pipeline = aligned_alloc(_Alignof(struct pipeline), sizeof(*pipeline));
        const struct settings *settings = options->settings;
        int r;

        if (!pipeline)
                return why_errno(why, -ENOMEM, "pipeline");
        memset(pipeline, 0, sizeof(*pipeline));
        pipeline->options = *options;
        pipeline->limits = (struct decode_limits){ .max_pixels = settings->max_pixels,
                                                   .max_step_pixels = settings->max_step_pixels,
                                                   .max_scans = (uint32_t)settings->max_scans,
                                                   .max_scratch_bytes = settings->memory_limit };
        pipeline->decode_jpeg = strcmp(settings->decoder, "libjpeg") == 0 ? DECODE_JPEG_LIBJPEG : DECODE_JPEG_AUTO;
        lent_list_init(&pipeline->held);
        fit_into_budget(pipeline);
        r = pipeline_start_floors(pipeline, why);
        if (r < 0) {
                pipeline_stop(pipeline);
                return r;
        }
        *ret_pipeline = pipeline;
        return 0;
}

static void nap(void) {
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

int pipeline_stop(struct pipeline *pipeline) {
        if (!pipeline)
                return 0;
        /* Every sample in progress comes back by itself: reads end, and what is made is given up between its steps. */
        for (uint32_t n_naps = 0; atomic_load_explicit(&pipeline->n_feeds, memory_order_acquire) > 0; n_naps++) {
                if (n_naps >= STOP_NAPS_MAX)
                        return -ETIMEDOUT;
                nap();
        }

        pool_stop(&pipeline->pool);
        sweeper_stop();       /* what it frees, it frees into what comes next */
        if (pipeline->tables) /* before the planner, because its thread wakes the planner */
                order_tables_free(pipeline->tables);
        if (pipeline->planner_started)
                planner_stop(&pipeline->planner);
        if (pipeline->reader && reader_stop(pipeline->reader) < 0)
                return -ETIMEDOUT;
        if (pipeline->scratch_made) {
                scratch_pool_fini(&pipeline->scratch);
                budget_release(pipeline->options.budget, pipeline->scratch_pool_bytes);
        }
        if (pipeline->ready_made)
                fair_queue_fini(&pipeline->ready);
        free(pipeline->tasks);
        if (pipeline->buffers)
                munmap(pipeline->buffers, pipeline->buffers_bytes);
        lent_list_fini(&pipeline->held);
        budget_release(pipeline->options.budget, pipeline->charged_bytes);
        free(pipeline);
        return 0;
}

/* Is it worth trying again? Ranks that have left give their memory back as soon as the samples are dropped that were
 * under way for them, and a trainer that opens one loader after the other must not be refused meanwhile. */
static bool is_memory_coming(uint32_t n_coming, uint32_t n_held, uint64_t began_ns, uint64_t *removing_ns) {
        uint64_t now_ns = clock_now_ns();

        if (n_coming > 0)
                *removing_ns = now_ns;
        if (now_ns - began_ns >= FREED_WAIT_NS)
                return false;
        return n_coming > 0 || (n_held > 0 && now_ns - *removing_ns < HELD_WAIT_NS);
}

/* All are counted before the memory is tried, in the sequence in which memory passes: a rank that has been removed
 * leaves its ring to the sweeper, that leaves to the held ones what a client still has, and a look at these leaves it
 * to the sweeper again. So none passes by uncounted. */
static uint32_t count_coming(struct pipeline *pipeline, uint32_t *ret_n_held) {
        uint32_t n = atomic_load_explicit(&pipeline->n_removing, memory_order_acquire);

        n += sweeper_n_waiting();
        lent_look(&pipeline->held);
        *ret_n_held = atomic_load_explicit(&pipeline->held.n, memory_order_acquire);
        return n + sweeper_n_waiting();
}

int pipeline_make_feed(struct pipeline *pipeline, const struct feed_options *options, struct feed **ret_feed,
                       struct why *why) {
        const struct settings *settings = pipeline->options.settings;
        struct feed_memory memory = {
                .ready = &pipeline->ready,
                .budget = options->budget ? options->budget : pipeline->options.budget,
                .held = &pipeline->held,
                .tables = pipeline->tables,
                .huge_pages = strcmp(settings->huge_pages, "try") == 0 ? SEGMENT_TRY : SEGMENT_NO,
                .lock = strcmp(settings->lock_memory, "try") == 0 ? SEGMENT_TRY : SEGMENT_NO,
                .isolation = pipeline->isolation_made ? &pipeline->isolation : NULL,
                .n_threads = pipeline_n_workers(pipeline),
                .max_pixels = settings->max_pixels,
                .max_step_pixels = settings->max_step_pixels,
                .large_bytes = pipeline->scratch_pool_bytes,
        };
        uint64_t began_ns = clock_now_ns(), removing_ns = began_ns;
        int r;

        for (;;) {
                uint32_t n_held, n_coming = count_coming(pipeline, &n_held);

                r = feed_new(options, &memory, ret_feed, why);
                if (r != -ENOMEM || !is_memory_coming(n_coming, n_held, began_ns, &removing_ns))
                        return r;
                nap();
        }
}

/* The workers are busy with the first batch already, and clearing pages would take CPU time and memory bandwidth from
 * them. So this waits for that batch, but not for one that takes long. */
static void wait_for_first_batch(const struct feed *feed) {
        for (uint32_t n = 0; n < TOUCH_NAPS_MAX && ring_n_published(feed->ring) == 0 &&
                             !atomic_load_explicit(&feed->has_left, memory_order_relaxed);
             n++)
                nap();
}

void pipeline_touch_feed(struct pipeline *pipeline, struct feed *feed) {
        wait_for_first_batch(feed);
        setpriority(PRIO_PROCESS, 0, TOUCH_NICE); /* one thread, with a lower priority than the workers */
        ring_touch_rest(feed->ring, 1);
        pipeline_skip_touching(pipeline, feed);
}

void pipeline_skip_touching(struct pipeline *pipeline, struct feed *feed) {
        atomic_store_explicit(&feed->is_touched, true, memory_order_release);
        planner_wake(&pipeline->planner); /* the removal of the feed may wait for this thread */
}

void pipeline_add(struct pipeline *pipeline, struct feed *feed) {
        atomic_fetch_add_explicit(&pipeline->n_feeds, 1, memory_order_relaxed);
        planner_command(&pipeline->planner, feed, FEED_ADD);
}

uint64_t pipeline_seek(struct pipeline *pipeline, struct feed *feed, const struct cursor *cursor) {
        return planner_seek(&pipeline->planner, feed, cursor);
}

/* All are marked before the planner hears of the first one: it takes a rank that is not for one that has left. */
void pipeline_replay(struct pipeline *pipeline, struct feed *const *feeds, uint32_t n_feeds, uint32_t n_batches) {
        for (uint32_t i = 0; i < n_feeds; i++)
                atomic_store_explicit(&feeds[i]->replay.n_asked, n_batches, memory_order_relaxed);
        for (uint32_t i = 0; i < n_feeds; i++)
                planner_command(&pipeline->planner, feeds[i], FEED_REPLAY);
}

void pipeline_end_replay(struct pipeline *pipeline, struct feed *feed) {
        planner_command(&pipeline->planner, feed, FEED_REPLAY_END);
}

void pipeline_drain(struct pipeline *pipeline, struct feed *feed) {
        planner_command(&pipeline->planner, feed, FEED_DRAIN);
}

void pipeline_remove(struct pipeline *pipeline, struct feed *feed) {
        atomic_fetch_add_explicit(&pipeline->n_removing, 1, memory_order_relaxed);
        atomic_store_explicit(&feed->has_left, true, memory_order_relaxed);
        if (feed->desk) /* afterwards: what it gives back must be dropped, and never be published without its function
                         */
                desk_close(feed->desk);
        planner_command(&pipeline->planner, feed, FEED_REMOVE);
}

struct lent_list *pipeline_held(struct pipeline *pipeline) {
        return &pipeline->held;
}

int pipeline_configure(struct pipeline *pipeline, struct why *why) {
        int nice = (int)pipeline->options.settings->nice;

        order_tables_set_nice(pipeline->tables, nice);
        errands_set_nice(nice);
        return pool_configure(&pipeline->pool, why);
}

struct pool *pipeline_pool(struct pipeline *pipeline) {
        return &pipeline->pool;
}

struct counters *pipeline_counters(struct pipeline *pipeline) {
        struct reader_counts counts;

        pipeline->sum = (struct counters){ 0 };
        counters_add(&pipeline->sum, &pipeline->counters);
        pool_count(&pipeline->pool, &pipeline->sum);
        reader_counts(pipeline->reader, &counts);
        counter_add(&pipeline->sum.n_reads, counts.n_reads);
        counter_add(&pipeline->sum.n_reads_past_cache, counts.n_direct);
        counter_add(&pipeline->sum.n_reads_slow, counts.n_slow);
        return &pipeline->sum;
}

const struct reader_report *pipeline_reader_report(const struct pipeline *pipeline) {
        return reader_report(pipeline->reader);
}

uint32_t pipeline_read_depth(const struct pipeline *pipeline) {
        return pipeline->n_depth;
}

void pipeline_memory(const struct pipeline *pipeline, struct pipeline_memory *ret_memory) {
        *ret_memory = (struct pipeline_memory){
                .read_buffers = pipeline->charged_bytes,
                .worker_scratch = pool_scratch_bytes(&pipeline->pool),
                .large_picture_scratch = pipeline->scratch_pool_bytes,
        };
}

uint32_t pipeline_n_workers(const struct pipeline *pipeline) {
        return pool_n_workers(&pipeline->pool);
}

uint32_t pipeline_n_reading(const struct pipeline *pipeline) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < pipeline->n_tasks; i++)
                n += atomic_load_explicit(&pipeline->tasks[i].reading_ns, memory_order_relaxed) != 0;
        return n;
}
