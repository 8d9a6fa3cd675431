#include "client/dlctl/trace/chrome.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/dlctl/trace/counts.h"
#include "client/dlctl/trace/tracks.h"
#include "proto/base/utf8.h"
#include "proto/version.h"

/* torch's profiler counts from the last multiple of this number of seconds since 1970: so microseconds keep their
 * digits in a double. It is about three months. */
#define STRETCH_S    7889238u
#define JSON_MAX(n)  (6 * (n) + 1) /* bytes with NUL of a text of n bytes: each may become \u00xx */
#define NAME_MAX_OUT JSON_MAX(TRACK_NAME_MAX)

struct writer {
        struct traced_file *file;
        const struct recorded *recorded;
        uint64_t base_ns;
        bool has_any;
};

static const char *const KIND_NAMES[DLP_TRACE_KINDS] = {
        [DLP_TRACE_SAMPLE] = "sample",   [DLP_TRACE_ROWS] = "copy",   [DLP_TRACE_COLLATE] = "collate",
        [DLP_TRACE_TURN] = "turn",       [DLP_TRACE_PLAN] = "plan",   [DLP_TRACE_EPOCH] = "epoch",
        [DLP_TRACE_ORDER] = "order",     [DLP_TRACE_READ] = "read",   [DLP_TRACE_QUEUED] = "queued",
        [DLP_TRACE_FILLING] = "filling", [DLP_TRACE_READY] = "ready", [DLP_TRACE_HELD] = "held",
        [DLP_TRACE_WAIT] = "wait",
};

static const char *category(enum dlp_trace_kind kind) {
        switch (kind) {
        case DLP_TRACE_STAGE:
                return "stage";
        case DLP_TRACE_TURN:
        case DLP_TRACE_PLAN:
        case DLP_TRACE_EPOCH:
        case DLP_TRACE_ORDER:
                return "planner";
        case DLP_TRACE_READ:
                return "reader";
        case DLP_TRACE_FILLING:
        case DLP_TRACE_READY:
        case DLP_TRACE_HELD:
        case DLP_TRACE_WAIT:
                return "rank";
        default:
                return "worker";
        }
}

/* One of chrome://tracing's names of colours; "": it chooses one for the event's name, as Perfetto always does. */
static const char *colour(const struct dlp_trace_event *event) {
        switch (event->kind) {
        case DLP_TRACE_WAIT:
                return "terrible"; /* red */
        case DLP_TRACE_FILLING:
                return "bad"; /* orange */
        case DLP_TRACE_READY:
                return "good"; /* green */
        case DLP_TRACE_HELD:
                return "grey";
        default:
                return "";
        }
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* As the inside of a string. */
static const char *json_text(const char *text, char *buffer) {
        char *out = buffer;

        for (size_t n; *text; text += n) {
                uint32_t point = 0;

                n = utf8_decode(text, SIZE_MAX, &point);
                if (n == 0) {
                        *out++ = '?';
                        n = 1;
                } else if (point == '"' || point == '\\') {
                        *out++ = '\\';
                        *out++ = (char)point;
                } else if (point < ' ') {
                        out += snprintf(out, 7, "\\u%04x", point);
                } else {
                        memcpy(out, text, n);
                        out += n;
                }
        }
        *out = '\0';
        return buffer;
}

/* In the day's clock; what is before the base, by a clock that was set back, is drawn at its beginning. */
static uint64_t since_base(const struct writer *writer, uint64_t ns) {
        int64_t since = (int64_t)ns + writer->recorded->ahead_ns - (int64_t)writer->base_ns;

        return since > 0 ? (uint64_t)since : 0;
}

#define US_FORMAT "%" PRIu64 ".%03" PRIu64
#define US(ns)    (ns) / 1000, (ns) % 1000

static void chrome_next(struct writer *writer) {
        traced_file_print(writer->file, "%s", writer->has_any ? ",\n" : "");
        writer->has_any = true;
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

/* Of what is not over it is not known yet. */
static bool chrome_has_place(const struct dlp_trace_event *event) {
        return event->detail != DLP_TRACE_OPEN || (event->kind != DLP_TRACE_FILLING && event->kind != DLP_TRACE_WAIT);
}

static void chrome_print_job(struct writer *writer, const struct dlp_trace_event *event) {
        const struct recorded_name *job = recorded_job(writer->recorded, event->job);
        char text[JSON_MAX(256)], name[256];

        snprintf(name, sizeof(name), "%.255s", job ? job->text : "");
        traced_file_print(writer->file, "\"job\":\"%s\",\"rank\":%" PRIu32, json_text(name, text), event->rank);
        if (chrome_has_place(event))
                traced_file_print(writer->file, ",\"epoch\":%" PRIu64 ",\"step\":%" PRIu64, event->epoch, event->step);
}

static void print_outcome(struct writer *writer, const struct dlp_trace_event *event) {
        static const char *const OUTCOMES[] = { [DLP_TRACE_MORE] = "more reads follow",
                                                [DLP_TRACE_POSTPONED] = "waits for memory",
                                                [DLP_TRACE_FAILED] = "failed",
                                                [DLP_TRACE_OPEN] = "not over" };

        if (event->detail > DLP_TRACE_DONE && event->detail <= DLP_TRACE_OPEN)
                traced_file_print(writer->file, ",\"outcome\":\"%s\"", OUTCOMES[event->detail]);
}

static void print_args(struct writer *writer, const struct dlp_trace_event *event) {
        switch ((enum dlp_trace_kind)event->kind) {
        case DLP_TRACE_SAMPLE:
        case DLP_TRACE_READ:
                chrome_print_job(writer, event);
                traced_file_print(writer->file, ",\"sample\":%" PRIu64, event->sample);
                if (event->detail != DLP_TRACE_OPEN) /* of what is not over, it is not known yet */
                        traced_file_print(writer->file, ",\"bytes\":%" PRIu64, event->value);
                print_outcome(writer, event);
                break;
        case DLP_TRACE_ROWS:
                chrome_print_job(writer, event);
                traced_file_print(writer->file, ",\"sample\":%" PRIu64 ",\"samples\":%" PRIu64, event->sample,
                                  event->value);
                break;
        case DLP_TRACE_COLLATE:
        case DLP_TRACE_PLAN:
        case DLP_TRACE_FILLING:
        case DLP_TRACE_READY:
        case DLP_TRACE_HELD:
                chrome_print_job(writer, event);
                if (!chrome_has_place(event)) {
                        print_outcome(writer, event);
                        break;
                }
                traced_file_print(writer->file, ",\"samples\":%" PRIu64, event->value);
                print_outcome(writer, event);
                break;
        case DLP_TRACE_EPOCH:
        case DLP_TRACE_WAIT:
                chrome_print_job(writer, event);
                print_outcome(writer, event);
                break;
        case DLP_TRACE_ORDER:
                traced_file_print(writer->file, "\"epoch\":%" PRIu64 ",\"positions\":%" PRIu64, event->epoch,
                                  event->value);
                break;
        default:
                break;
        }
}

static void print_event(struct writer *writer, struct track *track, const struct dlp_trace_event *event) {
        uint64_t begin_ns = since_base(writer, event->begin_ns);
        uint64_t end_ns = since_base(writer, track_end_of(track, event));
        const char *name = event->kind == DLP_TRACE_STAGE ? recorded_stage(writer->recorded, event->detail)
                                                          : KIND_NAMES[event->kind];
        char text[JSON_MAX(64)], shortened[64];
        const char *cname = colour(event);

        snprintf(shortened, sizeof(shortened), "%.63s", name);
        chrome_next(writer);
        traced_file_print(writer->file,
                          "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
                          ",\"ts\":" US_FORMAT ",\"dur\":" US_FORMAT ",%s%s%s\"args\":{",
                          category((enum dlp_trace_kind)event->kind), json_text(shortened, text), track->pid,
                          track->tid, US(begin_ns), US(end_ns - begin_ns), *cname ? "\"cname\":\"" : "", cname,
                          *cname ? "\"," : "");
        print_args(writer, event);
        traced_file_print(writer->file, "}}");
}

static void print_events(struct writer *writer, struct tracks *tracks) {
        for (size_t i = 0; i < writer->recorded->n_events; i++) {
                struct track *track = tracks_place(tracks, tracks->events[i]);

                if (track)
                        print_event(writer, track, tracks->events[i]);
        }
}

/* ---- counters -------------------------------------------------------------------------------------------------- */

static void print_count(void *userdata, const struct count *count) {
        struct writer *writer = userdata;

        chrome_next(writer);
        traced_file_print(writer->file,
                          "{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"ts\":" US_FORMAT
                          ",\"args\":{\"%s\":%" PRId64 "}}",
                          count->name, count->pid, US(since_base(writer, count->at_ns)), count->what, count->value);
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

static void print_name(struct writer *writer, const char *what, uint32_t pid, uint32_t tid, const char *name) {
        char text[NAME_MAX_OUT];

        chrome_next(writer);
        traced_file_print(writer->file,
                          "{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
                          ",\"args\":{\"name\":\"%s\"}}",
                          what, pid, tid, json_text(name, text));
}

static void chrome_print_place(struct writer *writer, const char *what, uint32_t pid, uint32_t tid, uint32_t place) {
        chrome_next(writer);
        traced_file_print(writer->file,
                          "{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
                          ",\"args\":{\"sort_index\":%" PRIu32 "}}",
                          what, pid, tid, place);
}

/* Names, and who stands above whom. Trainers come first, where torch's profiler puts them: a place is the number of the
 * process or thread, and GPUs have 5,000,000 and more. The daemon stands between them. Rows are in the order of their
 * numbers: reads would else be sorted as 1, 10, 11, 2. */
static void chrome_print_names(struct writer *writer, const struct tracks *tracks) {
        for (size_t i = 0; i < tracks->n_processes; i++) {
                const struct process *process = &tracks->processes[i];
                bool is_daemon = process->pid == writer->recorded->pid;

                print_name(writer, "process", process->pid, 0, process->name);
                chrome_print_place(writer, "process", process->pid, 0, is_daemon ? TRACK_NO_THREAD : process->pid);
        }
        for (size_t i = 0; i < tracks->n_tracks; i++) {
                const struct track *track = &tracks->tracks[i];

                print_name(writer, "thread", track->pid, track->tid, track->name);
                chrome_print_place(writer, "thread", track->pid, track->tid, track->tid);
        }
}

int chrome_write(struct traced_file *file, const struct recorded *recorded, struct why *why) {
        struct writer writer = { .file = file, .recorded = recorded };
        int64_t day_ns = (int64_t)recorded->begin_ns + recorded->ahead_ns;
        uint64_t day_s = day_ns > 0 ? (uint64_t)day_ns / 1000000000u : 0; /* a clock may say that it is 1969 */
        struct tracks tracks;
        int r = tracks_new(recorded, &tracks, why);

        if (r < 0)
                return r;
        writer.base_ns = day_s / STRETCH_S * STRETCH_S * 1000000000u;
        traced_file_print(file,
                          "{\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%" PRIu64
                          ",\"otherData\":{\"program\":\"dataloaderd %s\",\"dropped\":%" PRIu64
                          "},\n\"traceEvents\":[\n",
                          writer.base_ns, DLP_FULL_VERSION, recorded->n_dropped);
        print_events(&writer, &tracks);
        r = counts_tell(&tracks, print_count, &writer, why);
        chrome_print_names(&writer, &tracks);
        traced_file_print(file, "\n]}\n");
        tracks_fini(&tracks);
        return r;
}
