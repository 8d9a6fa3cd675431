#include "client/dlctl/web/web_watch.h"

#include <stdlib.h>
#include <string.h>

#include "client/dlctl/command.h"
#include "client/dlctl/dlctl_listing.h"
#include "client/dlctl/inquiry/inquiry.h"
#include "client/dlctl/inquiry/inquiry_reach.h"
#include "proto/base/clock.h"
#include "proto/version.h"

#define SECOND_NS    1000000000ull
#define LOOKED_NS    (60 * SECOND_NS)  /* after the last look, lists are asked for that long */
#define REST_NS      (300 * SECOND_NS) /* and a daemon that would end if nobody were connected */
#define ERRORS_NS    (15 * SECOND_NS)  /* the ledger is read again, though the number of entries is the same */
#define FEW_DATASETS 64u               /* are asked for each second */
#define MANY_NS      (10 * SECOND_NS)  /* more of them that often */

struct watch {
        struct event_base *base;
        struct event *second, *readable;
        struct view *view;
        const struct context *context;
        struct inquiry inquiry;
        uint64_t looked_ns, datasets_ns, errors_ns;
        uint64_t n_errors; /* when the ledger was read last */
        size_t n_datasets;
        Dlp__Reply *status; /* of this round */
        struct jobs_seen jobs;
        cJSON *list; /* pages of datasets or errors */
        bool ends_idle;
};

/* ---- the connection ------------------------------------------------------------------------------------------ */

/* The connection has ended, because of this: what came of the round is forgotten. */
static void went(struct watch *watch, const char *why) {
        if (watch->readable)
                event_free(watch->readable);
        watch->readable = NULL;
        if (watch->status)
                dlp__reply__free_unpacked(watch->status, NULL);
        watch->status = NULL;
        jobs_seen_free(&watch->jobs);
        cJSON_Delete(watch->list);
        watch->list = NULL;
        view_set_away(watch->view, why);
}

static void disconnect(struct watch *watch, const char *why) {
        inquiry_close(&watch->inquiry);
        went(watch, why);
}

static void web_watch_on_readable(evutil_socket_t fd, short what, void *arg);

static void try_to_connect(struct watch *watch) {
        struct inquiry *inquiry = &watch->inquiry;
        enum reach reach = REACH_GIVEN;
        struct why reason;
        int r = reach_try(watch->context, "dlctl web " DLP_FULL_VERSION, &inquiry->connection, &reason, &reach);

        inquiry_connected(inquiry, r, &reason);
        if (r < 0) {
                went(watch, reason.text);
                return;
        }
        watch->readable = event_new(watch->base, inquiry->connection.socket, EV_READ | EV_PERSIST,
                                    web_watch_on_readable, watch);
        if (!watch->readable || event_add(watch->readable, NULL) < 0)
                exit(fail(EXIT_REFUSED, "no memory"));
        view_set_daemon(watch->view, reach_name(reach), inquiry->connection.path);
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

static bool has_idle_timeout(const Dlp__StatusReply *status) {
        for (size_t i = 0; i < status->n_settings; i++)
                if (strcmp(status->settings[i]->name, "idle_timeout") == 0)
                        return strcmp(status->settings[i]->value, "0") != 0;
        return false;
}

/* The page after this one; 0: it was the last. */
static uint64_t take_status(struct watch *watch, Dlp__Reply *reply) {
        watch->status = reply;
        watch->ends_idle = has_idle_timeout(reply->status);
        return 0;
}

static uint64_t web_watch_take_jobs(struct watch *watch, Dlp__Reply *reply) {
        uint64_t next = reply->jobs->next;

        if (jobs_seen_add(&watch->jobs, reply) != EXIT_DONE)
                exit(EXIT_REFUSED);
        return jobs_seen_count(&watch->jobs) < VIEW_JOBS_MAX ? next : 0;
}

static size_t n_listed(const struct watch *watch) {
        return (size_t)cJSON_GetArraySize(watch->list);
}

static uint64_t web_watch_take_datasets(struct watch *watch, Dlp__Reply *reply) {
        uint64_t next = reply->datasets->next;

        if (!watch->list)
                watch->list = cJSON_CreateArray();
        for (size_t i = 0; i < reply->datasets->n_datasets; i++)
                dataset_record(watch->list, reply->datasets->datasets[i]);
        dlp__reply__free_unpacked(reply, NULL);
        watch->n_datasets = n_listed(watch);
        return watch->n_datasets < VIEW_DATASETS_MAX ? next : 0;
}

static uint64_t take_errors(struct watch *watch, Dlp__Reply *reply) {
        uint64_t next = reply->errors->next;

        if (!watch->list)
                watch->list = cJSON_CreateArray();
        for (size_t i = 0; i < reply->errors->n_errors; i++)
                error_record(watch->list, reply->errors->errors[i]);
        dlp__reply__free_unpacked(reply, NULL);
        return next;
}

static uint64_t web_watch_take_page(struct watch *watch, Dlp__Reply *reply) {
        switch (watch->inquiry.question) {
        case ASK_STATUS:
                return take_status(watch, reply);
        case ASK_JOBS:
                return web_watch_take_jobs(watch, reply);
        case ASK_DATASETS:
                return web_watch_take_datasets(watch, reply);
        default:
                return take_errors(watch, reply);
        }
}

/* A question's last page has come. */
static void web_watch_finish(struct watch *watch, bool has_more) {
        switch (watch->inquiry.question) {
        case ASK_JOBS:
                view_set_state(watch->view, watch->status, &watch->jobs);
                watch->status = NULL;
                break;
        case ASK_DATASETS:
                view_set_datasets(watch->view, watch->list);
                watch->list = NULL;
                watch->datasets_ns = clock_now_ns();
                break;
        case ASK_ERRORS:
                view_set_errors(watch->view, watch->list, has_more);
                watch->list = NULL;
                watch->errors_ns = clock_now_ns();
                watch->n_errors = view_errors(watch->view);
                break;
        default:
                break;
        }
}

static void web_watch_on_readable(evutil_socket_t fd, short what, void *arg) {
        struct watch *watch = arg;
        struct inquiry *inquiry = &watch->inquiry;
        Dlp__Reply *reply;
        int r = inquiry_take(inquiry, &reply);

        (void)fd;
        (void)what;
        if (r > 0) {
                uint64_t next = web_watch_take_page(watch, reply);
                bool has_more = inquiry->question == ASK_ERRORS && inquiry_has_page(inquiry, next) &&
                                n_listed(watch) >= VIEW_ERRORS_MAX;

                if (has_more || !inquiry_has_page(inquiry, next)) {
                        web_watch_finish(watch, has_more);
                        next = 0;
                }
                r = inquiry_proceed(inquiry, next, clock_now_ns());
        }
        if (r < 0)
                went(watch, inquiry->away.text);
}

/* ---- questions ----------------------------------------------------------------------------------------------- */

static void begin_round(struct watch *watch, uint64_t now_ns) {
        bool looked = now_ns - watch->looked_ns < LOOKED_NS;
        uint64_t interval_ns = watch->n_datasets <= FEW_DATASETS ? 0 : MANY_NS;
        const bool wanted[N_QUESTIONS] = {
                [ASK_STATUS] = true,
                [ASK_JOBS] = true,
                [ASK_DATASETS] = looked && now_ns - watch->datasets_ns >= interval_ns,
                [ASK_ERRORS] = looked &&
                               (view_errors(watch->view) != watch->n_errors || now_ns - watch->errors_ns >= ERRORS_NS),
        };

        if (inquiry_begin(&watch->inquiry, wanted, now_ns) < 0)
                went(watch, watch->inquiry.away.text);
}

static bool may_rest(const struct watch *watch, uint64_t now_ns) {
        return watch->ends_idle && now_ns - watch->looked_ns >= REST_NS && view_is_idle(watch->view);
}

static void on_second(evutil_socket_t fd, short what, void *arg) {
        struct watch *watch = arg;
        struct inquiry *inquiry = &watch->inquiry;
        uint64_t now_ns = clock_now_ns();

        (void)fd;
        (void)what;
        if (inquiry->is_asking) {
                if (inquiry_is_late(inquiry, now_ns))
                        view_set_away(watch->view, inquiry->away.text);
                return;
        }
        if (may_rest(watch, now_ns)) {
                if (inquiry->is_connected)
                        disconnect(watch, "nobody has looked for a while, so the daemon has been left alone");
                return;
        }
        if (!inquiry->is_connected)
                try_to_connect(watch);
        if (inquiry->is_connected)
                begin_round(watch, now_ns);
}

struct watch *watch_new(struct event_base *base, const struct context *context, struct view *view) {
        struct timeval second = { .tv_sec = 1 };
        struct watch *watch = calloc(1, sizeof(*watch));

        if (!watch)
                exit(fail(EXIT_REFUSED, "no memory"));
        watch->base = base;
        watch->view = view;
        watch->context = context;
        inquiry_init(&watch->inquiry);
        watch->looked_ns = clock_now_ns();
        watch->second = event_new(base, -1, EV_PERSIST, on_second, watch);
        if (!watch->second || event_add(watch->second, &second) < 0)
                exit(fail(EXIT_REFUSED, "no memory"));
        on_second(-1, 0, watch);
        return watch;
}

void watch_free(struct watch *watch) {
        if (!watch)
                return;
        disconnect(watch, NULL);
        event_free(watch->second);
        free(watch);
}

void watch_looked(struct watch *watch) {
        watch->looked_ns = clock_now_ns();
}
