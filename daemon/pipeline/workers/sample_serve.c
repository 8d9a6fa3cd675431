#include "daemon/pipeline/workers/sample_serve.h"

#include <errno.h>

#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/planner/planner.h"
#include "daemon/pipeline/replay/replay.h"
#include "daemon/pipeline/workers/batch_function.h"
#include "daemon/pipeline/workers/fields.h"
#include "proto/base/clock.h"

/* ---- counting and tracing -------------------------------------------------------------------------------------- */

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

static void count_for_job(struct tally *tally, const struct codec_counts *counts) {
        const struct tally_counts more = {
                .n_texts_cut = counts->n_texts_cut,
                .n_tokens_cut = counts->n_tokens_cut,
                .n_shared = counts->n_shared,
        };

        if (more.n_texts_cut > 0 || more.n_shared > 0)
                tally_add(tally, &more);
}

/* NULL: the sample will be made again, and what is cut of it is counted then. */
static void serve_count_decoded(struct worker *worker, const struct batch *batch) {
        struct codec_counts counts = codec_tools_take_counts(worker->tools);

        count_decoded(worker, counts);
        count_decoded(worker, worker->rendering.counts);
        if (batch) {
                count_for_job(worker_tally(worker, batch), &counts);
                count_for_job(worker_tally(worker, batch), &worker->rendering.counts);
        }
        worker->rendering.counts = (struct codec_counts){ 0 };
        if (worker->rendering.n_ended > 0)
                counter_add(&worker->counters->n_decoder_ends, worker->rendering.n_ended);
        worker->rendering.n_ended = 0;
}

/* From now on this worker's stages are parts of this sample. */
static void trace_sample(struct worker *worker, const struct task *task) {
        if (!trace_is_on())
                return;
        worker->subject = batch_subject(task->batch);
        worker->subject.sample = task->sample.candidate;
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
                                     .fetch_ns = task->fetch_ns,
                                     .queued_ns = begin_ns - task->arrived_ns,
                                     .serving_ns = worker->serving_ns };

        trace_read(worker, task, begin_ns);
        batch_took(task->batch, took.read_ns, took.queued_ns, took.serving_ns);
        tally_add(worker_tally(worker, task->batch), &took);
        counter_add(&worker->counters->read_ns, took.read_ns);
        counter_add(&worker->counters->queued_ns, took.queued_ns);
        counter_add(&worker->counters->decode_ns, took.serving_ns);
}

/* ---- the way of a sample --------------------------------------------------------------------------------------- */

enum sample_state sample_open(struct worker *worker, struct task *task) {
        uint64_t begin_ns;

        task->bad_field = NULL;
        if (task->request.result >= 0) {
                counter_add(&worker->counters->n_bytes_read, task->request.n_bytes);
                return SAMPLE_RENDER;
        }
        begin_ns = clock_now_ns();
        trace_sample(worker, task);
        task->bad_field = fields_only_read(task);
        count_time(worker, task, begin_ns);
        trace_sample_end(worker, DLP_TRACE_FAILED, begin_ns, clock_now_ns(), 0);
        worker->fault.error = task->request.result;
        worker->fault.why = task->request.why;
        return SAMPLE_FAULT;
}

/* It was given up: nobody wants it any more, or another user waits; or it has failed. */
enum sample_state sample_failed(struct worker *worker, const struct task *task, int error) {
        bool is_given_up = error == RENDERING_DROPPED || error == -ECANCELED || worker->yields;

        if (is_given_up && (error == RENDERING_DROPPED || !batch_is_wanted(task->batch)))
                return SAMPLE_DROP;
        worker->fault.error = error;
        return is_given_up && worker->yields ? SAMPLE_RETRY : SAMPLE_FAULT;
}

/* Until its ragged fields get their places, which they do once (fields.c). */
static bool may_yield(const struct task *task) {
        return !task->remakes && !task->gave_way;
}

/* It is begun again, here or from its bytes, or is not wanted; one that waits for memory may be another worker's now.
 */
static void stop_rendering(struct worker *worker, uint64_t begin_ns, bool is_paid) {
        struct stage_clock *clock = codec_tools_clock(worker->tools);
        uint64_t end_ns = stage_clock_stop(clock);

        if (!is_paid)
                worker->serving_ns = end_ns - begin_ns;
        stage_clock_drop(clock);
        serve_count_decoded(worker, NULL);
        trace_sample_end(worker, DLP_TRACE_POSTPONED, begin_ns, end_ns, 0);
}

static void end_rendering(struct worker *worker, struct task *task, uint64_t begin_ns, bool has_failed) {
        struct stage_clock *clock = codec_tools_clock(worker->tools);
        bool is_isolated = task->batch->feed->isolated != NULL;

        serve_count_decoded(worker, task->batch);
        worker_settle(worker, task);
        worker->serving_ns = stage_clock_stop(clock) - begin_ns +
                             (is_isolated ? rendering_took_ns(&worker->rendering) : 0);
        stage_clock_harvest(clock, &worker_tally(worker, task->batch)->stages);
        count_time(worker, task, begin_ns);
        trace_sample_end(worker,
                         has_failed                           ? DLP_TRACE_FAILED
                         : task->idx_read + 1 < task->n_reads ? DLP_TRACE_MORE
                                                              : DLP_TRACE_DONE,
                         begin_ns, begin_ns + worker->serving_ns, task->request.n_bytes);
}

enum sample_state sample_render(struct worker *worker, struct task *task) {
        uint64_t begin_ns = stage_clock_start(codec_tools_clock(worker->tools), STAGE_OTHER);
        enum sample_state failed = SAMPLE_RENDER;
        int r;

        trace_sample(worker, task);
        codec_tools_begin_sample(worker->tools);
        worker->may_yield = may_yield(task);
        r = fields_serve(worker, task, &worker->fault.why);
        if (r != 0 && r != SCRATCH_WAITS)
                failed = sample_failed(worker, task, r);
        worker->may_yield = worker->yields = false;
        codec_tools_begin_sample(worker->tools); /* it needs no memory that is returned now */
        if (r == SCRATCH_WAITS) {
                stop_rendering(worker, begin_ns, true);
                return SAMPLE_ELSEWHERE;
        }
        if (failed == SAMPLE_DROP || failed == SAMPLE_RETRY) {
                task->gave_way |= failed == SAMPLE_RETRY;
                stop_rendering(worker, begin_ns, false);
                worker_settle(worker, task);
                return failed;
        }
        end_rendering(worker, task, begin_ns, failed == SAMPLE_FAULT);
        if (failed == SAMPLE_FAULT)
                return SAMPLE_FAULT;
        if (task->idx_read + 1 < task->n_reads) {
                task->idx_read++;
                return SAMPLE_LOCATE;
        }
        return desk_has_samples(task->batch->feed->desk) ? SAMPLE_FUNCTION : SAMPLE_SERVED;
}

/* If it was made again for a function that gets the whole batch, all is known already, unless it has a substitute now.
 */
enum sample_state sample_served(struct worker *worker, struct task *task) {
        const struct why *reason = task->trouble && task->trouble->reason.text[0] ? &task->trouble->reason : NULL;
        struct batch *batch = task->batch;

        if (batch->samples)
                batch->samples[task->idx_sample] = task->sample;
        if (!task->remakes || reason)
                batch_served(batch, task->idx_sample, task->sample.index, task->sample.candidate, reason);
        if (reason)
                counter_add(&worker->counters->n_substituted, 1);
        if (!task->remakes) {
                counter_add(&worker->counters->n_samples, 1);
                tally_add(worker_tally(worker, batch), &(struct tally_counts){ .n_samples = 1 });
        }
        return SAMPLE_END;
}

enum sample_state sample_drop(struct worker *worker, struct task *task) {
        worker_settle(worker, task);
        task->function.state = FUNCTION_NONE;
        counter_add(&worker->counters->n_dropped, task_n_samples(task));
        return SAMPLE_END;
}

/* ---- its end --------------------------------------------------------------------------------------------------- */

/* All samples that the task has with it have ended. The next one is the task's from now on, if there is one. */
enum sample_state sample_end(struct worker *worker, struct task *task) {
        struct batch *batch = task->batch;
        uint32_t n = task_n_samples(task);

        if (task->remakes)
                return batch_function_next(task);
        if (batch_samples_are_last(batch, n, worker->counters))
                return SAMPLE_GATHER;
        if (atomic_load_explicit(&batch->feed->job->failed, memory_order_relaxed))
                planner_wake(worker->planner); /* so that the other ranks of the job learn of it */
        task->idx_row += n - 1;
        return task_next_row(task) ? SAMPLE_LOCATE : SAMPLE_FREE;
}

/* If it is no longer wanted, an empty batch is published, which the client passes over. */
enum sample_state sample_replay(struct worker *worker, struct task *task) {
        struct stage_clock *clock = codec_tools_clock(worker->tools);
        struct batch *batch = task->batch;

        if (batch_is_wanted(batch)) {
                uint64_t begin_ns = stage_clock_start(clock, STAGE_COLLATE);

                replay_serve(batch);
                worker->serving_ns = stage_clock_stop(clock) - begin_ns;
                stage_clock_harvest(clock, &worker_tally(worker, batch)->stages);
        }
        batch_sample_done(batch, worker->counters);
        return SAMPLE_FREE;
}
