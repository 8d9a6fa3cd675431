#include "daemon/pipeline/failure/park.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/schedule.h"
#include "proto/base/clock.h"

#define REST_NS 100000000ull /* the pause of a task if there is no memory to park it */

/* What a task knows of its sample. */
struct parked {
        TAILQ_ENTRY(parked) entry;
        struct batch *batch;
        uint32_t idx_sample;
        uint64_t position, index, candidate, n_tries;
        uint64_t round, failing_ns;
        struct why reason, failing;
};

/* ---- parking samples ----------------------------------------------------------------------------------------- */

bool park_sample(struct planner *planner, struct task *task) {
        struct stream *stream = task->batch->stream;
        struct parked *parked = malloc(sizeof(*parked));

        task->is_held = false;
        if (!parked) {
                task->not_before_ns = clock_now_ns() + REST_NS;
                return false;
        }
        *parked = (struct parked){ .batch = task->batch,
                                   .idx_sample = task->idx_sample,
                                   .position = task->position,
                                   .index = task->index,
                                   .candidate = task->candidate,
                                   .n_tries = task->n_tries,
                                   .round = task->held_round,
                                   .failing_ns = task->failing_ns,
                                   .reason = task->reason,
                                   .failing = task->failing };
        TAILQ_INSERT_TAIL(&stream->parked, parked, entry);
        planner->n_parked++;
        planner_retire(planner, task);
        return true;
}

static void unpark(struct planner *planner, struct stream *stream, struct parked *parked) {
        TAILQ_REMOVE(&stream->parked, parked, entry);
        planner->n_parked--;
        free(parked);
}

static void read_parked_again(struct planner *planner, struct stream *stream, struct parked *parked) {
        struct task *task = STAILQ_FIRST(&planner->free_tasks);

        STAILQ_REMOVE_HEAD(&planner->free_tasks, entry);
        task->rows[0] = (struct task_row){ parked->position, parked->index };
        task->n_rows = 1;
        task->idx_row = 0;
        task->own.idx_blamed = UINT32_MAX;
        task->is_copied = false;
        task_begin(task, parked->batch, parked->idx_sample, &task->rows[0]);
        task->candidate = parked->candidate;
        task->n_tries = parked->n_tries;
        task->reason = parked->reason;
        task->failing_ns = parked->failing_ns;
        unpark(planner, stream, parked);
        stream->n_tasks++;
        shares_take(&planner->shares, &stream->job->tasks);
        task_read(planner, task);
}

/* ---- giving up ----------------------------------------------------------------------------------------------- */

/* The sample is not wanted any more, or its job has failed: it ends without having been served. */
static void give_up(struct planner *planner, struct stream *stream, struct parked *parked, const struct why *why) {
        struct batch *batch = parked->batch;

        if (why)
                batch_failed(batch, parked->idx_sample, EBADMSG, why);
        else
                counter_add(&planner->options.counters->n_dropped, 1);
        unpark(planner, stream, parked);
        batch_sample_done(batch, planner->options.counters);
}

static struct outage *outage_of(const struct stream *stream, const struct parked *parked) {
        uint64_t sample = parked->candidate;

        return catalog_dataset_with(stream->dataset, &sample)->outage;
}

static bool is_too_late(const struct planner *planner, const struct parked *parked, uint64_t now_ns) {
        return now_ns - parked->failing_ns >= planner->options.settings->outage_timeout * 1000000000u;
}

static void give_up_late(struct planner *planner, struct stream *stream, struct parked *parked, uint64_t now_ns) {
        struct why why, reason;

        if (!outage_is_held(outage_of(stream, parked), &reason))
                reason = parked->failing; /* a look can open the dataset, but reads fail */
        why_set(&why, 0, "%s could not be read for %llu s (outage_timeout): %s", stream->dataset->name,
                (unsigned long long)(now_ns - parked->failing_ns) / 1000000000u, reason.text);
        if (!stream->is_given_up)
                log_user_error(stream->job->uid, "outage", "the job ends: %s job=%s rank=%u", why.text,
                               stream->job->name, stream->rank);
        stream->is_given_up = true;
        give_up(planner, stream, parked, &why);
}

/* ---- continuing ---------------------------------------------------------------------------------------------- */

static void park_go_on_with(struct planner *planner, struct stream *stream, uint64_t now_ns) {
        uint64_t n_ended = catalog_dataset_n_ended(stream->dataset);
        struct parked *parked, *next;
        struct why why;

        catalog_dataset_poke(stream->dataset);
        if (stream->n_outages != n_ended) { /* open files may belong to a mount that is gone */
                stream->n_outages = n_ended;
                planner_forget_files(planner, stream);
        }
        TAILQ_FOREACH_SAFE(parked, &stream->parked, entry, next) {
                bool failed = atomic_load_explicit(&stream->job->failed, memory_order_acquire);

                if (failed)
                        job_failure(stream->job, &why);
                if (!batch_is_wanted(parked->batch))
                        give_up(planner, stream, parked, NULL);
                else if (failed)
                        give_up(planner, stream, parked, &why);
                else if (is_too_late(planner, parked, now_ns))
                        give_up_late(planner, stream, parked, now_ns);
                else if (outage_has_cleared(outage_of(stream, parked), parked->round) &&
                         schedule_may_take(planner, stream))
                        read_parked_again(planner, stream, parked);
        }
}

void park_go_on(struct planner *planner) {
        uint64_t now_ns = planner->n_parked > 0 ? clock_now_ns() : 0;
        struct stream *stream;

        if (planner->n_parked == 0)
                return;
        TAILQ_FOREACH(stream, &planner->streams, entry)
                if (!TAILQ_EMPTY(&stream->parked))
                        park_go_on_with(planner, stream, now_ns);
}

uint64_t park_since_ns(const struct stream *stream) {
        return TAILQ_FIRST(&stream->parked)->failing_ns;
}
