#include "daemon/pipeline/failure/park.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/planner/schedule.h"
#include "daemon/pipeline/sample_states.h"
#include "proto/base/clock.h"

static void read_parked_again(struct planner *planner, struct feed *feed, struct trouble *trouble) {
        struct task *task = planner_take_task(planner, feed);

        TAILQ_REMOVE(&feed->parked, trouble, entry);
        planner->n_parked--;
        task->n_rows = 1;
        task->idx_row = 0;
        task->function.idx_blamed = UINT32_MAX;
        task->is_copied = false;
        task_begin(task, trouble->batch, trouble->idx_sample, &trouble->sample);
        task->remakes = trouble->remakes;
        task->n_batch_tries = trouble->n_batch_tries;
        task->trouble = trouble;
        states_begin(planner, task, SAMPLE_LOCATE);
}

/* ---- giving up ----------------------------------------------------------------------------------------------- */

/* The sample is not wanted any more, or its job has failed: it ends without having been served. */
static void give_up(struct planner *planner, struct feed *feed, struct trouble *parked, const struct why *why) {
        struct counters *counters = planner->options.counters;
        struct batch *batch = parked->batch;

        if (why)
                batch_failed(batch, parked->idx_sample, EBADMSG, why);
        else
                counter_add(&counters->n_dropped, 1);
        if (parked->remakes) /* all samples of the batch have ended before */
                batch_whole_done(batch, counters);
        else
                batch_sample_done(batch, counters);
        TAILQ_REMOVE(&feed->parked, parked, entry);
        planner->n_parked--;
        free(parked);
}

static struct outage *outage_of(const struct feed *feed, const struct trouble *parked) {
        uint64_t sample = parked->sample.candidate;

        return catalog_dataset_with(feed->dataset, &sample)->outage;
}

static bool is_too_late(const struct planner *planner, const struct trouble *parked, uint64_t now_ns) {
        return now_ns - parked->since_ns >= planner->options.settings->outage_timeout * 1000000000u;
}

static void give_up_late(struct planner *planner, struct feed *feed, struct trouble *parked, uint64_t now_ns) {
        struct why why, reason;

        if (!outage_is_held(outage_of(feed, parked), &reason))
                reason = parked->last; /* a look can open the dataset, but reads fail */
        why_set(&why, 0, "%s could not be read for %llu s (outage_timeout): %s", feed->dataset->name,
                (unsigned long long)(now_ns - parked->since_ns) / 1000000000u, reason.text);
        if (!feed->is_given_up)
                log_user_error(feed->job->uid, "outage", "the job ends: %s job=%s rank=%u", why.text, feed->job->name,
                               feed->rank);
        feed->is_given_up = true;
        give_up(planner, feed, parked, &why);
}

/* ---- continuing ---------------------------------------------------------------------------------------------- */

static void park_go_on_with(struct planner *planner, struct feed *feed, uint64_t now_ns) {
        uint64_t n_ended = catalog_dataset_n_ended(feed->dataset);
        struct trouble *parked, *next;
        struct why why;

        catalog_dataset_poke(feed->dataset);
        if (feed->n_outages != n_ended) { /* open files may belong to a mount that is gone */
                feed->n_outages = n_ended;
                planner_forget_files(planner, feed);
        }
        TAILQ_FOREACH_SAFE(parked, &feed->parked, entry, next) {
                bool failed = atomic_load_explicit(&feed->job->failed, memory_order_acquire);

                if (failed)
                        job_failure(feed->job, &why);
                if (!batch_is_wanted(parked->batch))
                        give_up(planner, feed, parked, NULL);
                else if (failed)
                        give_up(planner, feed, parked, &why);
                else if (is_too_late(planner, parked, now_ns))
                        give_up_late(planner, feed, parked, now_ns);
                else if (outage_has_cleared(outage_of(feed, parked), parked->round) && schedule_may_take(planner, feed))
                        read_parked_again(planner, feed, parked);
        }
}

void park_go_on(struct planner *planner) {
        uint64_t now_ns = planner->n_parked > 0 ? clock_now_ns() : 0;
        struct feed *feed;

        if (planner->n_parked == 0)
                return;
        TAILQ_FOREACH(feed, &planner->feeds, entry)
                if (!TAILQ_EMPTY(&feed->parked))
                        park_go_on_with(planner, feed, now_ns);
}

uint64_t park_since_ns(const struct feed *feed) {
        return TAILQ_FIRST(&feed->parked)->since_ns;
}
