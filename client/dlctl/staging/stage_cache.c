#include "client/dlctl/staging/stage_cache.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/dlctl/control.h"
#include "client/dlctl/inquiry/inquiry_reach.h"
#include "client/dlctl/waiting.h"
#include "proto/base/clock.h"
#include "proto/base/shown/amounts.h"
#include "proto/version.h"

#define TICK_NS      100000000l
#define PASSES       3u /* over all files: what could not be fetched is tried again */
#define REPLY_MS     5000
#define NO_SUCH_PART UINT64_MAX

struct staging {
        struct control *control;
        const char *dataset; /* as the daemon calls it */
        uint64_t first;      /* chunk */
        uint32_t n_passes;
        uint64_t begun_ns;
        struct dlp_pace pace;
};

static void fill_request(Dlp__Request *request, Dlp__FillRequest *fill, const char *dataset, uint64_t first) {
        dlp__request__init(request);
        dlp__fill_request__init(fill);
        fill->dataset = (char *)(uintptr_t)dataset;
        fill->first = first;
        request->body_case = DLP__REQUEST__BODY_FILL;
        request->fill = fill;
}

bool stage_is_of_cache(const struct context *context, const char *dataset) {
        struct dli_connection connection;
        Dlp__FillRequest fill;
        Dlp__Request request;
        Dlp__Reply *reply;
        struct why reason;
        enum reach reach;
        bool is = false;

        if (reach_try(context, "dlctl " DLP_FULL_VERSION, &connection, &reason, &reach) < 0)
                return false;
        fill_request(&request, &fill, dataset, NO_SUCH_PART);
        if (dli_connection_call(&connection, &request, REPLY_MS, &reason, &reply, NULL, 0) == 0) {
                is = reply->body_case == DLP__REPLY__BODY_FILL && reply->fill->origin;
                dlp__reply__free_unpacked(reply, NULL);
        }
        dli_connection_close(&connection);
        return is;
}

static void stage_show(struct staging *staging, const Dlp__Origin *origin) {
        struct dlp_progress progress = {
                .phase = "fetching", .unit = "B", .done = origin->cached_bytes, .total = origin->total_bytes
        };
        char text[DLP_TEXT_MAX];
        uint64_t now_ns = clock_now_ns();

        dlp_pace_add(&staging->pace, now_ns, progress.done, progress.total);
        dlp_pace_read(&staging->pace, now_ns, &progress);
        waiting_draw(staging->dataset, &progress);
        if (!waiting_is_drawn())
                waiting_say(dlp_progress_sentence(&progress, text));
}

static int stage_end(const struct staging *staging, const Dlp__Origin *origin, const struct context *context) {
        cJSON *record = record_new();

        waiting_end();
        record_text(record, "dataset", staging->dataset);
        record_number(record, "n_files", origin->n_files);
        record_number(record, "total_bytes", origin->total_bytes);
        record_number(record, "cached_bytes", origin->cached_bytes);
        record_number(record, "cache_limit_bytes", origin->cache_limit);
        record_real(record, "seconds", (double)((clock_now_ns() - staging->begun_ns) / 1000000u) / 1e3);
        output_record(context->format, record);
        cJSON_Delete(record);
        return EXIT_DONE;
}

static int stage_refuse_full(const Dlp__Origin *origin) {
        char total[BYTES_TEXT_MAX], cached[BYTES_TEXT_MAX], limit[BYTES_TEXT_MAX];

        return fail(EXIT_REFUSED,
                    "stage: the cache is full: %s of %s are here, and cache_limit, or the disk, has room for %s; what "
                    "is lacking is fetched as it is needed (a larger cache_limit, or order=\"blocks\", needs less)",
                    format_bytes(cached, origin->cached_bytes), format_bytes(total, origin->total_bytes),
                    format_bytes(limit, origin->cache_limit));
}

/* What one answer means: goes on with -1, else an exit code. */
static int stage_take(struct staging *staging, const Dlp__FillReply *fill, const struct context *context) {
        const Dlp__Origin *origin = fill->origin;

        if (!origin) {
                printf("%s lies on this node\n", staging->dataset);
                return EXIT_DONE;
        }
        stage_show(staging, origin);
        staging->first = fill->next;
        if (origin->n_ahead > 0 || (!fill->is_full && fill->next < fill->n_chunks))
                return -1;
        if (origin->cached_bytes >= origin->total_bytes)
                return stage_end(staging, origin, context);
        staging->first = 0;
        if (staging->n_passes++ < PASSES)
                return -1;
        stage_end(staging, origin, context);
        if (fill->is_full)
                return stage_refuse_full(origin);
        return fail(EXIT_REFUSED, "stage: not all could be fetched%s%s; the next run tries what is lacking",
                    origin->trouble[0] ? ": " : "", origin->trouble);
}

int stage_cache(const struct context *context, const char *operand) {
        const struct timespec tick = { .tv_nsec = TICK_NS };
        struct staging staging = { .begun_ns = clock_now_ns() };
        int r = control_open_dataset(context, operand, &staging.control, &staging.dataset), ended = -1;

        if (r != EXIT_DONE)
                return r;
        dlp_pace_begin(&staging.pace, staging.begun_ns);
        while (ended < 0) {
                Dlp__FillRequest fill;
                Dlp__Request request;
                Dlp__Reply *reply;

                fill_request(&request, &fill, staging.dataset, staging.first);
                r = control_ask(staging.control, &request, DLP__REPLY__BODY_FILL, &reply);
                if (r != EXIT_DONE)
                        break;
                ended = stage_take(&staging, reply->fill, context);
                dlp__reply__free_unpacked(reply, NULL);
                if (ended < 0)
                        nanosleep(&tick, NULL);
        }
        waiting_end();
        control_close(staging.control);
        return r != EXIT_DONE ? r : ended;
}
