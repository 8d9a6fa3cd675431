#include "daemon/pipeline/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/thread.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/failure.h"
#include "daemon/pipeline/render.h"
#include "proto/order/philox.h"

/* ---- scratch is paid for before it is taken ------------------------------------------------------------------ */

#define SAMPLE_WAITS 1 /* the task is not ours any more */

static void worker_trim(struct worker *worker) {
        decoder_trim(worker->decoder);
        workspace_trim(worker->workspace);
}

/* What this picture needs, all together, is known from its header and its plan. What is kept of earlier ones counts
 * beside it: of another shape it may be of no use. */
static int worker_charge(struct worker *worker, struct task *task, const struct image_info *info,
                         const struct geometry *geometry, struct why *why) {
        uint64_t need = decoder_need(worker->decoder, &geometry->source) + recipe_bytes_needed(geometry);
        uint64_t held = decoder_scratch_bytes(worker->decoder) + workspace_bytes(worker->workspace);

        if (held + need <= worker->own_bytes)
                return 0;
        worker_trim(worker);
        if (need <= worker->own_bytes || need <= task->n_scratch_bytes)
                return 0;
        if (need > worker->scratch->n_bytes)
                return why_set(why, -EFBIG,
                               "is %u x %u pixels: decoding and augmenting what is needed of it may take %llu bytes, "
                               "%llu are allowed (a quarter of memory_limit, 1 GiB at most): raise memory_limit, or "
                               "crop or resize earlier in the pipeline",
                               info->width, info->height, (unsigned long long)need,
                               (unsigned long long)worker->scratch->n_bytes);
        scratch_give(worker->scratch, task, clock_now_ns()); /* nobody who has something waits for more */
        fair_item_refund(&task->ready); /* now: one that waits may be with another worker in a moment */
        if (scratch_take(worker->scratch, task, need, clock_now_ns()) == SCRATCH_WAITS) {
                counter_add(&worker->counters->n_scratch_waits, 1);
                return SAMPLE_WAITS;
        }
        return 0;
}

/* Gives back what the task was granted, whether it needed that in the end or not, after the memory that it stood for.
 */
static void worker_settle(struct worker *worker, struct task *task) {
        if (task->n_scratch_bytes == 0)
                return;
        worker_trim(worker);
        scratch_give(worker->scratch, task, clock_now_ns());
}

/* ---- one sample ---------------------------------------------------------------------------------------------- */

static int serve_raw(struct task *task, struct why *why) {
        struct batch *batch = task->batch;
        uint64_t offset;
        int r;

        r = batch_place(batch, task->idx_sample, task->request.n_bytes, &offset, why);
        if (r < 0)
                return r;
        memcpy(batch->slot->base + offset, task->request.buffer, task->request.n_bytes);
        return 0;
}

/* What decides is the job's own terms and memory_limit, never what else runs or when this sample comes. */
static int refuse_size(const struct collation *collation, uint32_t height, uint32_t width, struct why *why) {
        return why_set(
                why, -EFBIG,
                "is %u x %u pixels after the pipeline; this job's slots have room for %llu pixels a picture: begin "
                "the pipeline with decode(max_pixels=%llu), or ask for a smaller batch or fewer slots",
                width, height, (unsigned long long)(collation->sample_bytes / pixel_format_bytes(&collation->format)),
                (unsigned long long)width * height);
}

/* Where the sample's pixels go. For pictures of varying size that is known only now. */
static int find_place(struct task *task, uint32_t height, uint32_t width, uint8_t **ret_out, struct why *why) {
        struct batch *batch = task->batch;
        const struct collation *collation = &batch->stream->collation;
        uint64_t bytes = (uint64_t)height * width * pixel_format_bytes(&collation->format);
        int r;

        if (collation->varies) {
                if (bytes > collation->sample_bytes)
                        return refuse_size(collation, height, width, why);
                r = batch_agree_shape(batch, height, width, why);
                if (r < 0)
                        return r;
        }
        *ret_out = batch->slot->base + collation->images_offset + bytes * task->idx_sample;
        return 0;
}

static void worker_count_decoded(struct worker *worker) {
        switch (decoder_decoded_by(worker->decoder)) {
        case DECODED_BY_BASELINE:
                counter_add(&worker->counters->n_jpeg_own, 1);
                break;
        case DECODED_BY_LIBJPEG:
                counter_add(&worker->counters->n_jpeg_libjpeg, 1);
                if (decoder_handed_over(worker->decoder))
                        counter_add(&worker->counters->n_jpeg_handed_over, 1);
                break;
        default:
                break;
        }
}

static int serve_pixels(struct worker *worker, struct task *task, struct why *why) {
        struct batch *batch = task->batch;
        const struct recipe *recipe = batch->stream->recipe;
        const struct job_terms *terms = &batch->stream->job->terms;
        struct geometry geometry;
        struct image_info info;
        size_t stride;
        uint8_t *out = NULL;
        int r;

        r = decoder_open(worker->decoder, task->request.buffer, task->request.n_bytes, &info, why);
        if (r < 0)
                return r;
        r = recipe_plan(recipe, info.width, info.height, dlp_philox_seed(terms->seed, terms->draws),
                        (uint32_t)batch->epoch, task->candidate, &geometry, why);
        if (r < 0)
                return r;
        r = worker_charge(worker, task, &info, &geometry, why);
        if (r != 0)
                return r;
        r = find_place(task, geometry.height, geometry.width, &out, why);
        if (r < 0)
                return r;

        stride = pixel_format_row_bytes(recipe_format(recipe), geometry.width);
        r = render(worker->decoder, worker->workspace, &geometry, out, stride, why);
        if (r == 0)
                worker_count_decoded(worker);
        return r;
}

/* Returns 0, SAMPLE_WAITS, or what is wrong with the sample. */
static int serve(struct worker *worker, struct task *task, struct why *why) {
        uint64_t begin_ns = clock_now_ns(), end_ns;
        int r;

        if (task->request.result < 0) {
                *why = task->request.why;
                batch_took(task->batch, task->arrived_ns - task->asked_ns, begin_ns - task->arrived_ns, 0);
                return task->request.result;
        }
        counter_add(&worker->counters->n_bytes_read, task->request.n_bytes);

        if (task->batch->stream->collation.ragged) {
                r = serve_raw(task, why);
        } else {
                r = serve_pixels(worker, task, why);
                decoder_close(worker->decoder);
                if (r == SAMPLE_WAITS)
                        return r;
                worker_settle(worker, task);
        }
        end_ns = clock_now_ns();
        worker->serving_ns = end_ns - begin_ns;
        counter_add(&worker->counters->decode_ns, worker->serving_ns);
        batch_took(task->batch, task->arrived_ns - task->asked_ns, begin_ns - task->arrived_ns, worker->serving_ns);
        return r;
}

/* ---- the loop ------------------------------------------------------------------------------------------------ */

static void worker_do(struct worker *worker, struct task *task) {
        struct batch *batch = task->batch;
        struct why why;
        int r;

        worker->serving_ns = 0;
        if (!batch_is_wanted(batch)) {
                worker_settle(worker, task);
                counter_add(&worker->counters->n_dropped, 1);
                fair_item_done(&task->ready, 0);
        } else {
                r = serve(worker, task, &why);
                if (r == SAMPLE_WAITS)
                        return;
                fair_item_done(&task->ready, worker->serving_ns);
                if (r < 0 && failure_handle(task, r, &why, worker->counters) != FAILURE_ENDS) {
                        planner_retry(worker->planner, task);
                        return;
                }
                if (r == 0) {
                        batch_served(batch, task->idx_sample, task->index, task->candidate, &task->reason);
                        counter_add(&worker->counters->n_samples, 1);
                        if (task->reason.text[0])
                                counter_add(&worker->counters->n_substituted, 1);
                }
        }
        batch_sample_done(batch, worker->counters);
        if (atomic_load_explicit(&batch->stream->job->failed, memory_order_relaxed))
                planner_wake(worker->planner); /* the other ranks of the job are to hear of it */
        planner_return(worker->planner, task);
}

/* ---- its life ------------------------------------------------------------------------------------------------ */

static int worker_equip(struct worker *worker) {
        int r;

        worker->tid = gettid();
        if (worker->nice > 0)
                worker_set_nice(worker, worker->nice); /* giving way is always allowed */
        r = decoder_new(&worker->limits, worker->decode_jpeg, &worker->decoder, &worker->why);
        if (r == 0)
                r = workspace_new(RESIZE_CODE_BEST, &worker->workspace, &worker->why);
        return r;
}

static void worker_strip(struct worker *worker) {
        decoder_free(worker->decoder);
        workspace_free(worker->workspace);
        budget_release(worker->budget, worker->own_bytes);
}

static void *worker_main(void *userdata) {
        struct worker *worker = userdata;
        struct fair_item *item;

        worker->result = worker_equip(worker);
        sem_post(&worker->began);
        while (worker->result == 0 && (item = fair_queue_pop(worker->ready))) {
                worker_do(worker, task_of_ready(item));
                pace_rest(worker->pace, &worker->clock_ns); /* with nothing in hand */
        }
        worker_strip(worker);
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
        sem_init(&worker->began, 0, 0);
        return worker;
}

static void worker_free(struct worker *worker) {
        sem_destroy(&worker->began);
        free(worker);
}

static void wait_until_begun(struct worker *worker) {
        while (sem_wait(&worker->began) < 0) /* EINTR: a debugger, nothing else */
                continue;
}

int worker_start(const struct worker_options *options, uint32_t idx, struct worker **ret_worker, struct why *why) {
        struct worker *worker;
        char name[16];
        int r;

        r = budget_reserve(options->budget, options->scratch_bytes, "a worker's scratch", why);
        if (r < 0)
                return r;
        worker = worker_new(options, idx);
        snprintf(name, sizeof(name), "worker-%u", idx % 1000000);
        r = worker ? thread_start(&worker->thread, name, worker_main, worker) : -ENOMEM;
        if (r < 0) {
                if (worker)
                        worker_free(worker);
                budget_release(options->budget, options->scratch_bytes);
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
        return setpriority(PRIO_PROCESS, (id_t)worker->tid, nice) < 0 ? -errno : 0; /* a thread's own on Linux */
}
