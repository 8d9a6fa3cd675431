#include "daemon/pipeline/failure/failure_hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/data/growth.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/schedule.h"
#include "proto/base/clock.h"
#include "proto/ring.h"

#define REST_NS 100000000ull  /* the pause of a task if there is no memory to park it */
#define TELL_NS 1000000000ull /* between two messages to a client: the time left changes */

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

bool hold_park(struct planner *planner, struct task *task) {
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
        atomic_fetch_add_explicit(&stream->n_parked, 1, memory_order_relaxed);
        planner->n_parked++;
        planner_retire(planner, task);
        return true;
}

static void unpark(struct planner *planner, struct stream *stream, struct parked *parked) {
        TAILQ_REMOVE(&stream->parked, parked, entry);
        atomic_fetch_sub_explicit(&stream->n_parked, 1, memory_order_relaxed);
        planner->n_parked--;
        free(parked);
}

static void failure_hold_read_again(struct planner *planner, struct stream *stream, struct parked *parked) {
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
static void failure_hold_give_up(struct planner *planner, struct stream *stream, struct parked *parked,
                                 const struct why *why) {
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

static bool failure_hold_is_too_late(const struct planner *planner, const struct parked *parked, uint64_t now_ns) {
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
        failure_hold_give_up(planner, stream, parked, &why);
}

/* ---- what the client is told --------------------------------------------------------------------------------- */

static bool is_told_lately(struct stream *stream, uint64_t now_ns) {
        if (stream->told_ns != 0 && now_ns - stream->told_ns < TELL_NS)
                return true;
        stream->told_ns = now_ns;
        return false;
}

static void failure_hold_tell(const struct planner *planner, struct stream *stream, const struct why *why,
                              uint64_t now_ns) {
        uint64_t timeout_ns = planner->options.settings->outage_timeout * 1000000000u;
        const struct parked *first = TAILQ_FIRST(&stream->parked);
        uint64_t passed_ns = now_ns - first->failing_ns;
        uint64_t left_s = timeout_ns > passed_ns ? (timeout_ns - passed_ns + 999999999u) / 1000000000u : 0;
        struct why text;

        if (is_told_lately(stream, now_ns))
                return;
        if (left_s >= 120)
                why_set(&text, 0, "on hold: %s; trying again for %llu min", why->text,
                        (unsigned long long)(left_s + 59) / 60);
        else
                why_set(&text, 0, "on hold: %s; trying again for %llu s", why->text, (unsigned long long)left_s);
        dlp_ring_hold(stream->ring->control, text.text);
}

/* The job can only wait: a buffer that the kernel is reading into cannot be taken back. */
static void tell_slow(struct stream *stream, uint64_t now_ns) {
        bool is_first = stream->told_ns == 0;
        struct why text;

        if (is_told_lately(stream, now_ns))
                return;
        why_set(&text, 0, "on hold: %s: reading %s has not come back for %llu s", stream->dataset->name,
                stream->slow->path, (unsigned long long)task_reading_ns(stream->slow, now_ns) / 1000000000u);
        if (is_first)
                log_user_warning(stream->job->uid, "outage",
                                 "the job waits: %s: its disk or server may hang job=%s rank=%u",
                                 text.text + strlen("on hold: "), stream->job->name, stream->rank);
        dlp_ring_hold(stream->ring->control, text.text);
}

static void tell_alone(struct stream *stream, uint64_t now_ns) {
        if (!is_told_lately(stream, now_ns))
                dlp_ring_hold(stream->ring->control, stream->alone.text);
}

/* The next batch of a stream has not arrived: says what the stream waits for. Short waits are not worth a word. */
static void tell_dry(struct stream *stream, uint64_t now_ns) {
        struct growth_report report;
        struct why text, lack;

        if (stream->dry_ns == 0)
                stream->dry_ns = now_ns;
        if (now_ns - stream->dry_ns < TELL_NS || is_told_lately(stream, now_ns))
                return;
        growth_report(dataset_source(stream->dataset->dataset)->growth, &report);
        if (stream->order && order_table_is_short(stream->order, &lack))
                why_set(&text, 0, "on hold: %s: the stream waits for memory: %s", stream->dataset->name, lack.text);
        else
                why_set(&text, 0, "on hold: %s: the stream %s; %llu samples so far", stream->dataset->name,
                        report.waiting.text[0] ? report.waiting.text : "is being read",
                        (unsigned long long)report.n_samples);
        dlp_ring_hold(stream->ring->control, text.text);
}

static void tell_over(struct stream *stream) {
        stream->dry_ns = 0;
        if (stream->told_ns == 0)
                return;
        stream->told_ns = 0;
        dlp_ring_hold(stream->ring->control, "");
}

/* ---- slow reads ---------------------------------------------------------------------------------------------- */

void hold_forget_slow(struct planner *planner) {
        struct stream *stream;

        planner->any_slow = false;
        TAILQ_FOREACH(stream, &planner->streams, entry)
                stream->slow = NULL;
}

void hold_note_slow(struct planner *planner, const struct task *task, uint64_t now_ns) {
        struct stream *stream = task->batch->stream;
        uint64_t ns = task_reading_ns(task, now_ns);

        if (ns < HOLD_SLOW_NS || (stream->slow && task_reading_ns(stream->slow, now_ns) >= ns))
                return;
        stream->slow = task;
        planner->any_slow = true;
}

void hold_note_alone(struct planner *planner, uint64_t now_ns) {
        struct stream *stream;

        planner->any_alone = false;
        TAILQ_FOREACH(stream, &planner->streams, entry) {
                bool tell = false;

                stream->is_alone = stream->desk && !stream->is_removed &&
                                   desk_look(stream->desk, now_ns, &stream->alone, &tell);
                if (tell)
                        planner->options.desk_filled(planner->options.userdata, stream);
                planner->any_alone |= stream->is_alone;
        }
}

/* The read may have come back since it was noted. */
static bool is_slow(const struct stream *stream, uint64_t now_ns) {
        const struct task *task = stream->slow;

        return task && task->batch && task->batch->stream == stream && task_reading_ns(task, now_ns) >= HOLD_SLOW_NS;
}

/* ---- continuing ---------------------------------------------------------------------------------------------- */

static void failure_hold_go_on(struct planner *planner, struct stream *stream, uint64_t now_ns) {
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
                        failure_hold_give_up(planner, stream, parked, NULL);
                else if (failed)
                        failure_hold_give_up(planner, stream, parked, &why);
                else if (failure_hold_is_too_late(planner, parked, now_ns))
                        give_up_late(planner, stream, parked, now_ns);
                else if (outage_has_cleared(outage_of(stream, parked), parked->round) &&
                         schedule_may_take(planner, stream))
                        failure_hold_read_again(planner, stream, parked);
        }
}

void hold_go_on(struct planner *planner) {
        uint64_t now_ns = planner->n_parked > 0 || planner->any_slow || planner->any_dry || planner->any_alone
                                  ? clock_now_ns()
                                  : 0;
        struct stream *stream;
        struct why why;

        if (now_ns == 0 && !planner->any_held && !planner->any_told)
                return;
        planner->any_told = false;
        planner->any_held = false;
        planner->any_dry = false;
        TAILQ_FOREACH(stream, &planner->streams, entry) {
                if (!TAILQ_EMPTY(&stream->parked))
                        failure_hold_go_on(planner, stream, now_ns);
                stream->is_held = !TAILQ_EMPTY(&stream->parked) && catalog_dataset_is_held(stream->dataset, &why);
                planner->any_held |= stream->is_held;
                if (stream->is_held)
                        failure_hold_tell(planner, stream, &why, now_ns);
                else if (is_slow(stream, now_ns))
                        tell_slow(stream, now_ns);
                else if (stream->is_alone)
                        tell_alone(stream, now_ns);
                else if (stream->is_dry)
                        tell_dry(stream, now_ns);
                else
                        tell_over(stream);
                planner->any_told |= stream->told_ns != 0;
                planner->any_dry |= stream->is_dry;
        }
}
