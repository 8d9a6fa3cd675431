#include "daemon/pipeline/planner/waits.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/data/growth.h"
#include "daemon/pipeline/catalog/catalog_remote.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/failure/park.h"
#include "proto/base/clock.h"
#include "proto/base/shown/shorten.h"
#include "proto/ring.h"

#define WAIT_TELL_NS 1000000000ull /* between two words about the same reason: its numbers change */
#define SLOW_NS      5000000000ull /* a read that takes longer is told: a disk that hangs reports nothing itself */

/* ---- noticing ------------------------------------------------------------------------------------------------ */

void waits_look(struct planner *planner, uint64_t now_ns) {
        struct feed *feed;

        TAILQ_FOREACH(feed, &planner->feeds, entry) {
                bool tell = false;

                feed->noticed.reason = DLP_WAIT_NOTHING;
                if (feed->desk && !feed->is_removed)
                        desk_look(feed->desk, now_ns, &feed->noticed, &tell);
                if (tell)
                        planner->options.desk_filled(planner->options.userdata, feed);
        }
}

static bool is_of_reads(uint32_t reason) {
        return reason == DLP_WAIT_READ || reason == DLP_WAIT_ORIGIN;
}

/* Of each feed the slowest read is told. The job can only wait for it: a buffer that the kernel is reading into
 * cannot be taken back. */
void waits_notice_read(const struct task *task, uint64_t now_ns) {
        struct dlp_wait *noticed = &task->batch->feed->noticed;
        uint64_t since_ns = now_ns - task_reading_ns(task, now_ns);
        bool is_fetching = atomic_load_explicit(&task->is_fetching, memory_order_relaxed);
        struct why path;

        if (now_ns - since_ns < SLOW_NS || (is_of_reads(noticed->reason) && noticed->since_ns <= since_ns))
                return;
        why_set(&path, 0, "%s", task->request.path);
        *noticed = (struct dlp_wait){ .reason = is_fetching ? DLP_WAIT_ORIGIN : DLP_WAIT_READ, .since_ns = since_ns };
        memcpy(noticed->detail, path.text, sizeof(path.text));
}

/* ---- telling ------------------------------------------------------------------------------------------------- */

static enum dlp_wait_reason wait_reason_of(struct feed *feed, struct why *ret_detail) {
        if (!TAILQ_EMPTY(&feed->parked) && catalog_dataset_is_held(feed->dataset, ret_detail))
                return DLP_WAIT_OUTAGE;
        if (feed->noticed.reason != DLP_WAIT_NOTHING)
                return feed->noticed.reason;
        if (feed->stopped_by != DLP_WAIT_SAMPLES || !feed->order) /* which is that of a stream */
                return feed->stopped_by == DLP_WAIT_SAMPLES ? DLP_WAIT_SAMPLES : DLP_WAIT_NOTHING;
        if (order_table_is_short(feed->order, ret_detail))
                return DLP_WAIT_MEMORY;
        return growth_silent_ns(dataset_source(feed->dataset->dataset)->growth, ret_detail) != 0 ? DLP_WAIT_ORIGIN
                                                                                                 : DLP_WAIT_SAMPLES;
}

/* A word about the same reason comes once a second. A feed's short waits are not worth one. */
static bool wait_is_due(const struct feed *feed, uint64_t now_ns) {
        if (feed->told_ns != 0)
                return now_ns - feed->told_ns >= WAIT_TELL_NS;
        return feed->waits.reason != DLP_WAIT_SAMPLES || now_ns - feed->waits.since_ns >= WAIT_TELL_NS;
}

/* "cats/7.jpg of https://host/cats, whose first byte takes ..." */
static void describe_origin(struct feed *feed) {
        char text[DLP_TEXT_MAX], path[DLP_TEXT_MAX];
        struct dlp_origin origin;

        if (!remote_report(feed->dataset, &origin))
                return;
        memcpy(path, feed->waits.detail, sizeof(path));
        dlp_origin_text(&origin, text);
        shorten(feed->waits.detail, sizeof(feed->waits.detail), "%s of %s%s%s", path, origin.url, text[0] ? ": " : "",
                text);
}

static void describe_wait(const struct planner *planner, struct feed *feed, const struct why *detail) {
        struct growth_report report;

        switch (feed->waits.reason) {
        case DLP_WAIT_OUTAGE:
                feed->waits.since_ns = park_since_ns(feed);
                feed->waits.until_ns = feed->waits.since_ns + planner->options.settings->outage_timeout * 1000000000u;
                break;
        case DLP_WAIT_MEMORY:
                break;
        case DLP_WAIT_SAMPLES:
                growth_report(dataset_source(feed->dataset->dataset)->growth, &report);
                feed->waits.n_samples = report.n_samples;
                memcpy(feed->waits.detail, report.waiting.text, sizeof(feed->waits.detail));
                if (growth_blocks(dataset_source(feed->dataset->dataset)->growth))
                        shorten(feed->waits.detail, sizeof(feed->waits.detail), "waits for files that arrive");
                return;
        case DLP_WAIT_ORIGIN:
                if (feed->noticed.reason == DLP_WAIT_NOTHING)
                        break; /* for the files of its samples, not for a sample */
                feed->waits = feed->noticed;
                describe_origin(feed);
                return;
        default:
                feed->waits = feed->noticed;
                return;
        }
        memcpy(feed->waits.detail, detail->text, sizeof(feed->waits.detail));
}

/* Who looks after the machine is told as well, once. An outage is in the log already. */
static void warn_of_read(const struct feed *feed, uint64_t now_ns) {
        char text[DLP_TEXT_MAX];

        log_user_warning(feed->job->uid, "outage", "the job waits: %s%s job=%s rank=%u",
                         dlp_wait_sentence(&feed->waits, feed->dataset->name, now_ns, text),
                         feed->waits.reason == DLP_WAIT_READ ? ": its disk or server may hang" : "", feed->job->name,
                         feed->rank);
}

static void tell_wait_over(struct feed *feed) {
        if (feed->told_ns != 0)
                dlp_ring_tell_wait(feed->ring->control, &(struct dlp_wait){ 0 });
        feed->waits.reason = DLP_WAIT_NOTHING;
        feed->told_ns = 0;
}

/* Another reason begins with silence: what was told of the one before is over, also if this one is never told. */
static void tell_wait(const struct planner *planner, struct feed *feed, enum dlp_wait_reason reason,
                      const struct why *detail, uint64_t now_ns) {
        if (feed->waits.reason != reason) {
                tell_wait_over(feed);
                feed->waits = (struct dlp_wait){ .reason = reason, .since_ns = now_ns };
        }
        if (!wait_is_due(feed, now_ns))
                return;
        describe_wait(planner, feed, detail);
        if (is_of_reads(reason) && feed->told_ns == 0)
                warn_of_read(feed, now_ns);
        feed->told_ns = now_ns;
        dlp_ring_tell_wait(feed->ring->control, &feed->waits);
}

void waits_tell(struct planner *planner) {
        uint64_t now_ns = clock_now_ns();
        struct feed *feed;
        struct why detail;

        TAILQ_FOREACH(feed, &planner->feeds, entry) {
                enum dlp_wait_reason reason = wait_reason_of(feed, &detail);

                if (reason == DLP_WAIT_OUTAGE)
                        feed->stopped_by = DLP_WAIT_OUTAGE;
                else if (feed->stopped_by == DLP_WAIT_OUTAGE)
                        feed->stopped_by = DLP_WAIT_NOTHING;
                if (reason != DLP_WAIT_NOTHING)
                        tell_wait(planner, feed, reason, &detail, now_ns);
                else if (feed->waits.reason != DLP_WAIT_NOTHING)
                        tell_wait_over(feed);
        }
}
