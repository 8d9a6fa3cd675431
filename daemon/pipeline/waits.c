#include "daemon/pipeline/waits.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/data/growth.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/failure/park.h"
#include "proto/base/clock.h"
#include "proto/ring.h"

#define WAIT_TELL_NS 1000000000ull /* between two words about the same reason: its numbers change */
#define SLOW_NS      5000000000ull /* a read that takes longer is told: a disk that hangs reports nothing itself */

/* ---- noticing ------------------------------------------------------------------------------------------------ */

void waits_look(struct planner *planner, uint64_t now_ns) {
        struct stream *stream;

        TAILQ_FOREACH(stream, &planner->streams, entry) {
                bool tell = false;

                stream->noticed.reason = DLP_WAIT_NOTHING;
                if (stream->desk && !stream->is_removed)
                        desk_look(stream->desk, now_ns, &stream->noticed, &tell);
                if (tell)
                        planner->options.desk_filled(planner->options.userdata, stream);
        }
}

/* Of each stream the slowest read is told. The job can only wait for it: a buffer that the kernel is reading into
 * cannot be taken back. */
void waits_notice_read(const struct task *task, uint64_t now_ns) {
        struct dlp_wait *noticed = &task->batch->stream->noticed;
        uint64_t since_ns = now_ns - task_reading_ns(task, now_ns);
        struct why path;

        if (now_ns - since_ns < SLOW_NS || (noticed->reason == DLP_WAIT_READ && noticed->since_ns <= since_ns))
                return;
        why_set(&path, 0, "%s", task->request.path);
        *noticed = (struct dlp_wait){ .reason = DLP_WAIT_READ, .since_ns = since_ns };
        memcpy(noticed->detail, path.text, sizeof(path.text));
}

/* ---- telling ------------------------------------------------------------------------------------------------- */

static enum dlp_wait_reason wait_reason_of(struct stream *stream, struct why *ret_detail) {
        if (!TAILQ_EMPTY(&stream->parked) && catalog_dataset_is_held(stream->dataset, ret_detail))
                return DLP_WAIT_OUTAGE;
        if (stream->noticed.reason != DLP_WAIT_NOTHING)
                return stream->noticed.reason;
        if (stream->stopped_by == DLP_WAIT_SAMPLES)
                return stream->order && order_table_is_short(stream->order, ret_detail) ? DLP_WAIT_MEMORY
                                                                                        : DLP_WAIT_SAMPLES;
        return DLP_WAIT_NOTHING;
}

/* A word about the same reason comes once a second. A stream's short waits are not worth one. */
static bool wait_is_due(const struct stream *stream, uint64_t now_ns) {
        if (stream->told_ns != 0)
                return now_ns - stream->told_ns >= WAIT_TELL_NS;
        return stream->waits.reason != DLP_WAIT_SAMPLES || now_ns - stream->waits.since_ns >= WAIT_TELL_NS;
}

static void describe_wait(const struct planner *planner, struct stream *stream, const struct why *detail) {
        struct growth_report report;

        switch (stream->waits.reason) {
        case DLP_WAIT_OUTAGE:
                stream->waits.since_ns = park_since_ns(stream);
                stream->waits.until_ns = stream->waits.since_ns +
                                         planner->options.settings->outage_timeout * 1000000000u;
                break;
        case DLP_WAIT_MEMORY:
                break;
        case DLP_WAIT_SAMPLES:
                growth_report(dataset_source(stream->dataset->dataset)->growth, &report);
                stream->waits.n_samples = report.n_samples;
                memcpy(stream->waits.detail, report.waiting.text, sizeof(stream->waits.detail));
                return;
        default:
                stream->waits = stream->noticed;
                return;
        }
        memcpy(stream->waits.detail, detail->text, sizeof(stream->waits.detail));
}

/* Who looks after the machine is told as well, once. An outage is in the log already. */
static void warn_of_read(const struct stream *stream, uint64_t now_ns) {
        char text[DLP_TEXT_MAX];

        log_user_warning(stream->job->uid, "outage", "the job waits: %s: its disk or server may hang job=%s rank=%u",
                         dlp_wait_sentence(&stream->waits, stream->dataset->name, now_ns, text), stream->job->name,
                         stream->rank);
}

static void tell_wait_over(struct stream *stream) {
        if (stream->told_ns != 0)
                dlp_ring_tell_wait(stream->ring->control, &(struct dlp_wait){ 0 });
        stream->waits.reason = DLP_WAIT_NOTHING;
        stream->told_ns = 0;
}

/* Another reason begins with silence: what was told of the one before is over, also if this one is never told. */
static void tell_wait(const struct planner *planner, struct stream *stream, enum dlp_wait_reason reason,
                      const struct why *detail, uint64_t now_ns) {
        if (stream->waits.reason != reason) {
                tell_wait_over(stream);
                stream->waits = (struct dlp_wait){ .reason = reason, .since_ns = now_ns };
        }
        if (!wait_is_due(stream, now_ns))
                return;
        describe_wait(planner, stream, detail);
        if (reason == DLP_WAIT_READ && stream->told_ns == 0)
                warn_of_read(stream, now_ns);
        stream->told_ns = now_ns;
        dlp_ring_tell_wait(stream->ring->control, &stream->waits);
}

void waits_tell(struct planner *planner) {
        uint64_t now_ns = clock_now_ns();
        struct stream *stream;
        struct why detail;

        TAILQ_FOREACH(stream, &planner->streams, entry) {
                enum dlp_wait_reason reason = wait_reason_of(stream, &detail);

                if (reason == DLP_WAIT_OUTAGE)
                        stream->stopped_by = DLP_WAIT_OUTAGE;
                else if (stream->stopped_by == DLP_WAIT_OUTAGE)
                        stream->stopped_by = DLP_WAIT_NOTHING;
                if (reason != DLP_WAIT_NOTHING)
                        tell_wait(planner, stream, reason, &detail, now_ns);
                else if (stream->waits.reason != DLP_WAIT_NOTHING)
                        tell_wait_over(stream);
        }
}
