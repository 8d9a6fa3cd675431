#include "daemon/pipeline/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/thread.h"
#include "daemon/pipeline/after.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/failure/failure.h"
#include "daemon/pipeline/fields.h"
#include "daemon/pipeline/pipeline_rows.h"
#include "daemon/pipeline/whole.h"
#include "proto/base/clock.h"

/* ---- reserving scratch memory -------------------------------------------------------------------------------- */

bool worker_has_scratch(const struct worker *worker, const struct task *task, uint64_t need) {
        return need <= worker->own_bytes || need <= task->n_scratch_bytes;
}

int worker_reserve(struct worker *worker, struct task *task, uint64_t need) {
        if (need == 0 || codec_tools_bytes(worker->tools) + need <= worker->own_bytes)
                return 0;
        codec_tools_trim(worker->tools);
        if (worker_has_scratch(worker, task, need))
                return 0;
        if (need > worker->scratch->n_bytes)
                return -EFBIG;
        scratch_give(worker->scratch, task, clock_now_ns()); /* a task that waits holds no scratch */
        fair_item_refund(&task->ready); /* before it waits: another worker may have the task a moment later */
        if (scratch_take(worker->scratch, task, need, clock_now_ns()) == SCRATCH_WAITS) {
                counter_add(&worker->counters->n_scratch_waits, 1);
                return SAMPLE_WAITS;
        }
        return 0;
}

/* Gives back what the task was granted, whether it was needed or not. This comes after the memory itself has been
 * freed. */
void worker_settle(struct worker *worker, struct task *task) {
        if (task->n_scratch_bytes == 0)
                return;
        codec_tools_trim(worker->tools);
        scratch_give(worker->scratch, task, clock_now_ns());
}

/* ---- one sample ---------------------------------------------------------------------------------------------- */

static void count_decoded(struct worker *worker, struct codec_counts counts) {
        if (counts.n_decoded[DECODED_BY_BASELINE] > 0)
                counter_add(&worker->counters->n_jpeg_own, counts.n_decoded[DECODED_BY_BASELINE]);
        if (counts.n_decoded[DECODED_BY_LIBJPEG] > 0)
                counter_add(&worker->counters->n_jpeg_libjpeg, counts.n_decoded[DECODED_BY_LIBJPEG]);
        if (counts.n_shared > 0)
                counter_add(&worker->counters->n_shared, counts.n_shared);
        if (counts.n_handed_over > 0)
                counter_add(&worker->counters->n_jpeg_handed_over, counts.n_handed_over);
}

static void worker_count_for_job(struct tally *tally, const struct codec_counts *counts) {
        const struct tally_counts more = {
                .n_texts_cut = counts->n_texts_cut,
                .n_tokens_cut = counts->n_tokens_cut,
                .n_shared = counts->n_shared,
        };

        if (more.n_texts_cut > 0 || more.n_shared > 0)
                tally_add(tally, &more);
}

/* NULL: the sample will be made again, and what is cut of it is counted then. */
static void worker_count_decoded(struct worker *worker, const struct batch *batch) {
        struct codec_counts counts = codec_tools_take_counts(worker->tools);

        count_decoded(worker, counts);
        count_decoded(worker, worker->rendering.counts);
        if (batch) {
                worker_count_for_job(worker_tally(worker, batch), &counts);
                worker_count_for_job(worker_tally(worker, batch), &worker->rendering.counts);
        }
        worker->rendering.counts = (struct codec_counts){ 0 };
        if (worker->rendering.n_ended > 0)
                counter_add(&worker->counters->n_decoder_ends, worker->rendering.n_ended);
        worker->rendering.n_ended = 0;
}

struct tally *worker_tally(const struct worker *worker, const struct batch *batch) {
        return &batch->stream->job->tallies[worker->idx % TALLIES];
}

/* From now on this worker's stages are parts of this sample. */
static void trace_sample(struct worker *worker, const struct task *task) {
        if (!trace_is_on())
                return;
        worker->subject = batch_subject(task->batch);
        worker->subject.sample = task->candidate;
        worker->subject.lane = (uint16_t)task->idx;
        trace_set_subject(&worker->subject);
}

/* The task may be another thread's by now. */
static void trace_sample_end(struct worker *worker, enum dlp_trace_outcome outcome, uint64_t begin_ns, uint64_t end_ns,
                             uint64_t n_bytes) {
        if (trace_is_on())
                trace_write(&worker->subject, DLP_TRACE_SAMPLE, (uint8_t)outcome, begin_ns, end_ns, n_bytes);
        trace_set_subject(NULL);
}

static void trace_read(struct worker *worker, const struct task *task, uint64_t begin_ns) {
        uint8_t outcome = task->request.result < 0 ? DLP_TRACE_FAILED : DLP_TRACE_DONE;

        if (!trace_is_on())
                return;
        if (task->request.path)
                trace_write(&worker->subject, DLP_TRACE_READ, outcome, task->asked_ns, task->arrived_ns,
                            task->request.n_bytes);
        trace_write(&worker->subject, DLP_TRACE_QUEUED, DLP_TRACE_DONE, task->arrived_ns, begin_ns, 0);
}

/* Counts where the time of this read's sample went: in its batch, its job, and this worker. */
static void count_time(struct worker *worker, struct task *task, uint64_t begin_ns) {
        bool was_read = task->request.path != NULL;
        struct tally_counts took = { .n_reads = was_read,
                                     .n_bytes_read = task->request.n_bytes,
                                     .read_ns = task->arrived_ns - task->asked_ns,
                                     .queued_ns = begin_ns - task->arrived_ns,
                                     .serving_ns = worker->serving_ns };

        trace_read(worker, task, begin_ns);
        batch_took(task->batch, took.read_ns, took.queued_ns, took.serving_ns);
        tally_add(worker_tally(worker, task->batch), &took);
        counter_add(&worker->counters->read_ns, took.read_ns);
        counter_add(&worker->counters->queued_ns, took.queued_ns);
        counter_add(&worker->counters->decode_ns, took.serving_ns);
}

#define SAMPLE_ENDS_JOB 2 /* and not because of its own bytes */
#define SAMPLE_AGAIN    3 /* to be made again from its bytes */

/* What takes long asks it now and then. */
static bool worker_is_wanted(const void *userdata) {
        struct worker *worker = (struct worker *)(uintptr_t)userdata;

        if (worker->may_yield && fair_queue_presses(worker->ready, &worker->taking))
                worker->yields = true;
        return !worker->yields && batch_is_wanted(worker->batch);
}

/* It was given up, because nobody wants it any more or another user waits, or has failed. */
static int given_up_or(const struct worker *worker, const struct task *task, int error) {
        if (error >= 0 || (error != -ECANCELED && !worker->yields))
                return error;
        if (!batch_is_wanted(task->batch))
                return RENDERING_DROPPED;
        return worker->yields ? SAMPLE_AGAIN : error;
}

/* Until its ragged fields get their places, which they do once (fields.c). */
static bool may_yield(const struct task *task) {
        return !task->carried.is_again && !task->gave_way;
}

/* Returns 0, SAMPLE_WAITS, SAMPLE_AGAIN, RENDERING_DROPPED, or a negative errno for what is wrong with the sample. */
static int worker_serve(struct worker *worker, struct task *task, struct why *why) {
        struct stage_clock *clock = codec_tools_clock(worker->tools);
        uint64_t begin_ns = stage_clock_start(clock, STAGE_OTHER);
        bool is_isolated = task->batch->stream->isolated != NULL, is_begun_again;
        int r;

        trace_sample(worker, task);
        task->bad_field = NULL;
        if (task->request.result < 0) {
                task->bad_field = fields_only_read(task);
                *why = task->request.why;
                stage_clock_drop(clock);
                count_time(worker, task, begin_ns);
                trace_sample_end(worker, DLP_TRACE_FAILED, begin_ns, clock_now_ns(), 0);
                return task->request.result;
        }
        counter_add(&worker->counters->n_bytes_read, task->request.n_bytes);

        codec_tools_begin_sample(worker->tools);
        worker->may_yield = may_yield(task);
        r = given_up_or(worker, task, fields_serve(worker, task, why));
        worker->may_yield = worker->yields = false;
        if (r == SAMPLE_AGAIN)
                task->gave_way = true;
        is_begun_again = r == SAMPLE_WAITS || r == RENDERING_DROPPED || r == SAMPLE_AGAIN;
        codec_tools_begin_sample(worker->tools); /* it needs no memory that is returned now */
        worker_count_decoded(worker,
                             is_begun_again ? NULL : task->batch); /* one that waits may be another worker's now */
        if (is_begun_again) {
                uint64_t end_ns = stage_clock_stop(clock);

                if (r != SAMPLE_WAITS) /* it is paid for */
                        worker->serving_ns = end_ns - begin_ns;
                stage_clock_drop(clock);
                trace_sample_end(worker, DLP_TRACE_POSTPONED, begin_ns, end_ns, 0);
                return r;
        }
        worker_settle(worker, task);
        worker->serving_ns = stage_clock_stop(clock) - begin_ns +
                             (is_isolated ? rendering_took_ns(&worker->rendering) : 0);
        stage_clock_harvest(clock, &worker_tally(worker, task->batch)->stages);
        count_time(worker, task, begin_ns);
        trace_sample_end(worker,
                         r < 0                                ? DLP_TRACE_FAILED
                         : task->idx_read + 1 < task->n_reads ? DLP_TRACE_MORE
                                                              : DLP_TRACE_DONE,
                         begin_ns, begin_ns + worker->serving_ns, task->request.n_bytes);
        return r;
}

/* ---- the loop ------------------------------------------------------------------------------------------------ */

/* All its fields are in the slot: functions of the trainer's come next. */
static void put_on_desk(struct worker *worker, struct task *task) {
        struct stream *stream = task->batch->stream;
        const struct planner_options *options = &worker->planner->options;

        if (desk_put(stream->desk, task)) /* the stream may be gone after that if its rank has left: see desk_filled */
                options->desk_filled(options->userdata, stream);
}

/* So many of the task's rows have ended: all, or the next one is the task's from now on. */
static void end_rows(struct worker *worker, struct task *task, uint32_t n) {
        bool is_all = n == task->n_rows;

        if (n > 0 && batch_samples_are_last(task->batch, n, worker->counters)) {
                whole_begin(worker, task);
                return;
        }
        if (!is_all) {
                planner_retry(worker->planner, task);
                return;
        }
        task->idx_row = n - 1;
        planner_return(worker->planner, task);
}

static void drop_rows(struct worker *worker, struct task *task) {
        counter_add(&worker->counters->n_dropped, task->n_rows);
        fair_item_done(&task->ready, 0);
        end_rows(worker, task, task->n_rows);
}

/* Samples that are only copied. From the first one that cannot be copied on, they are read one by one. */
static void worker_copy_rows(struct worker *worker, struct task *task) {
        bool has_desk = desk_has_samples(task->batch->stream->desk);
        uint32_t n = rows_serve(worker, task);

        fair_item_done(&task->ready, worker->serving_ns);
        if (!has_desk)
                end_rows(worker, task, n);
        else if (task->is_copied)
                put_on_desk(worker, task);
        else /* that have not been copied: nothing is lost if all are read */
                end_rows(worker, task, 0);
}

/* If it is no longer wanted, an empty batch is published, which the client passes over. */
static void serve_again(struct worker *worker, struct task *task) {
        struct stage_clock *clock = codec_tools_clock(worker->tools);
        struct batch *batch = task->batch;

        if (batch_is_wanted(batch)) {
                uint64_t begin_ns = stage_clock_start(clock, STAGE_COLLATE);

                replay_serve(batch);
                worker->serving_ns = stage_clock_stop(clock) - begin_ns;
                stage_clock_harvest(clock, &worker_tally(worker, batch)->stages);
        }
        fair_item_done(&task->ready, worker->serving_ns);
        batch_sample_done(batch, worker->counters);
        planner_return(worker->planner, task);
}

/* What has become of the sample on its stream's desk: 0, one of these, or a negative errno. */
static int own_outcome(struct task *task, struct why *why) {
        *why = task->own.why;
        task->bad_field = NULL;
        switch (task->own.state) {
        case OWN_FAILED:
                return -EBADMSG;
        case OWN_AGAIN:
                return SAMPLE_AGAIN;
        case OWN_ENDED:
                return SAMPLE_ENDS_JOB;
        default:
                return 0;
        }
}

/* A run has come back from the desk. Returns true if it is served as a whole; else its first samples are, and the task
 * is with the next one, which has the outcome. */
static bool take_back_rows(struct worker *worker, struct task *task) {
        struct own own = task->own;
        uint32_t n = own.state == OWN_DONE ? task->n_rows : own.n_done;

        rows_served(worker, task, n);
        if (n == task->n_rows) {
                task->own.state = OWN_NONE;
                fair_item_done(&task->ready, 0);
                end_rows(worker, task, n);
                return true;
        }
        if (n > 0)
                batch_samples_done(task->batch, n, worker->counters); /* not the last ones of the batch */
        rows_go_to(task, n);
        task->own.state = own.state;
        return false;
}

/* If it was made again for a function that gets the whole batch, all is known already, unless it has a substitute now.
 */
static void note_served(struct worker *worker, struct task *task) {
        struct batch *batch = task->batch;

        if (batch->samples)
                batch->samples[task->idx_sample] = (struct batch_sample){ task->position, task->index, task->candidate,
                                                                          task->n_tries };
        if (task->carried.is_again && !task->reason.text[0])
                return;
        batch_served(batch, task->idx_sample, task->index, task->candidate, &task->reason);
        if (task->reason.text[0])
                counter_add(&worker->counters->n_substituted, 1);
        if (task->carried.is_again)
                return;
        counter_add(&worker->counters->n_samples, 1);
        tally_add(worker_tally(worker, batch), &(struct tally_counts){ .n_samples = 1 });
}

static void worker_do(struct worker *worker, struct task *task) {
        struct batch *batch = task->batch;
        struct why why;
        int r;

        worker->serving_ns = 0;
        worker->batch = batch;
        if (task->is_replay) {
                serve_again(worker, task);
                return;
        }
        if (task->is_copied && !batch_is_wanted(batch)) {
                drop_rows(worker, task);
                return;
        }
        if (task->is_copied && task->own.state == OWN_NONE) {
                worker_copy_rows(worker, task);
                return;
        }
        if (task->is_copied && take_back_rows(worker, task))
                return;
        if (desk_is_whole(task)) {
                whole_came_back(worker, task);
                return;
        }
        if (!batch_is_wanted(batch)) {
                worker_settle(worker, task);
                task->own.state = OWN_NONE;
                counter_add(&worker->counters->n_dropped, 1);
                fair_item_done(&task->ready, 0);
        } else {
                bool was_on_desk = task->own.state != OWN_NONE;

                r = was_on_desk ? own_outcome(task, &why) : worker_serve(worker, task, &why);
                if (r == 0 && was_on_desk)
                        r = given_up_or(worker, task, after_serve(worker, task, &why));
                if (r == SAMPLE_WAITS)
                        return;
                if (r == RENDERING_DROPPED || r == SAMPLE_AGAIN)
                        worker_settle(worker, task);
                if (r == RENDERING_DROPPED)
                        counter_add(&worker->counters->n_dropped, 1);
                task->own.state = OWN_NONE;
                fair_item_done(&task->ready, worker->serving_ns);
                if (r == SAMPLE_AGAIN || (r < 0 && failure_handle(task, r, &why, worker->counters) != FAILURE_ENDS)) {
                        task->own.n_tries = r < 0 ? 0 : task->own.n_tries;
                        task->idx_read = 0;
                        planner_retry(worker->planner, task);
                        return;
                }
                if (r == SAMPLE_ENDS_JOB)
                        batch_failed(batch, task->idx_sample, EINVAL, &why);
                if (r == 0 && !was_on_desk && task->idx_read + 1 < task->n_reads) {
                        task->idx_read++;
                        planner_retry(worker->planner, task);
                        return;
                }
                if (r == 0 && desk_has_samples(batch->stream->desk) && !was_on_desk) {
                        put_on_desk(worker, task);
                        return;
                }
                if (r == 0)
                        note_served(worker, task);
        }
        if (task->carried.is_again) {
                whole_next(worker, task);
                return;
        }
        if (batch_samples_are_last(batch, 1, worker->counters)) {
                whole_begin(worker, task);
                return;
        }
        if (atomic_load_explicit(&batch->stream->job->failed, memory_order_relaxed))
                planner_wake(worker->planner); /* so that the other ranks of the job learn of it */
        if (rows_next(task))
                planner_retry(worker->planner, task); /* without delay: returned tasks may wait for more */
        else
                planner_return(worker->planner, task);
}

/* ---- start and stop ------------------------------------------------------------------------------------------ */

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
        booths_fini(&worker->rendering.booths);
        codec_tools_free(worker->tools);
        budget_release(worker->budget, worker->own_bytes + cell_bytes(worker->rendering.booths.isolation));
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
                worker_do(worker, tasks[k]);
        if (n > 1)
                rendering_forget(&worker->rendering);
}

/* CPU time that processes took for the worker's last samples. Nobody asks if there is no ceiling. */
static uint64_t beside_ns(struct worker *worker) {
        if (!pace_is_set(worker->pace))
                return 0;
        return rendering_cpu_ns(&worker->rendering) + codec_tools_beside_ns(worker->tools);
}

static void *worker_worker_main(void *userdata) {
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
        booths_init(&worker->rendering.booths, options->isolation, options->budget, options->scratch_bytes);
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
        r = worker ? thread_start(&worker->thread, name, worker_worker_main, worker) : -ENOMEM;
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
