#include "client/dlctl/web/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/dlctl/command.h"
#include "client/dlctl/listing.h"
#include "client/dlctl/web/reach.h"
#include "proto/base/clock.h"

#define SECOND_NS    1000000000ull
#define LOOKED_NS    (60 * SECOND_NS)  /* after the last look, lists are asked for that long */
#define REST_NS      (300 * SECOND_NS) /* and a daemon that would end if nobody were connected */
#define LATE_NS      (3 * SECOND_NS)   /* an answer that takes longer is missed aloud */
#define ERRORS_NS    (15 * SECOND_NS)  /* the ledger is read again, though the number of entries is the same */
#define FEW_DATASETS 64u               /* are asked for each second */
#define MANY_NS      (10 * SECOND_NS)  /* more of them that often */

/* What is asked in a round, in this sequence. */
enum question {
        ASK_STATUS,
        ASK_JOBS,
        ASK_DATASETS,
        ASK_ERRORS,
        N_QUESTIONS,
};

struct watch {
        struct event_base *base;
        struct event *second, *readable;
        struct view *view;
        const struct context *context;
        struct dli_connection connection;
        bool is_connected, is_asking;
        bool wanted[N_QUESTIONS]; /* of this round */
        enum question question;   /* that is being asked */
        uint64_t page;            /* of its answer */
        uint64_t asked_ns, looked_ns, datasets_ns, errors_ns;
        uint64_t n_errors; /* when the ledger was read last */
        size_t n_datasets;
        Dlp__Reply *status; /* of this round */
        struct jobs_seen jobs;
        cJSON *list; /* pages of datasets or errors */
        bool ends_idle;
};

static void ask_next(struct watch *watch);

static void forget_round(struct watch *watch) {
        if (watch->status)
                dlp__reply__free_unpacked(watch->status, NULL);
        jobs_seen_free(&watch->jobs);
        cJSON_Delete(watch->list);
        watch->status = NULL;
        watch->list = NULL;
        memset(watch->wanted, 0, sizeof(watch->wanted));
        watch->is_asking = false;
}

/* ---- the connection ------------------------------------------------------------------------------------------ */

static void disconnect(struct watch *watch, const char *why) {
        if (watch->readable)
                event_free(watch->readable);
        watch->readable = NULL;
        dli_connection_close(&watch->connection);
        watch->is_connected = false;
        forget_round(watch);
        view_set_away(watch->view, why);
}

/* A loader would be told to attach again; here it is enough to say that the daemon has gone. */
static void lost(struct watch *watch, const struct why *reason) {
        struct why why;

        if (watch->connection.farewell.text[0])
                why_set(&why, 0, "the daemon at %s has closed the connection: %s", watch->connection.path,
                        watch->connection.farewell.text);
        else if (reason)
                why = *reason;
        else
                why_set(&why, 0, "the daemon at %s has ended", watch->connection.path);
        disconnect(watch, why.text);
}

static void take_answer(struct watch *watch);

static void on_readable(evutil_socket_t fd, short what, void *arg) {
        struct watch *watch = arg;

        (void)fd;
        (void)what;
        if (watch->is_asking)
                take_answer(watch);
        else if (dli_connection_drain(&watch->connection, NULL) < 0)
                lost(watch, NULL);
}

static void try_to_connect(struct watch *watch) {
        enum reach reach = REACH_GIVEN;
        struct why reason;

        if (reach_try(watch->context, &watch->connection, &reason, &reach) < 0) {
                disconnect(watch, reason.text);
                return;
        }
        watch->readable = event_new(watch->base, watch->connection.socket, EV_READ | EV_PERSIST, on_readable, watch);
        if (!watch->readable || event_add(watch->readable, NULL) < 0)
                exit(fail(EXIT_REFUSED, "no memory"));
        watch->is_connected = true;
        view_set_daemon(watch->view, reach_name(reach), watch->connection.path);
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

static uint64_t take_jobs(struct watch *watch, Dlp__Reply *reply) {
        uint64_t next = reply->jobs->next;

        if (jobs_seen_add(&watch->jobs, reply) != EXIT_DONE)
                exit(EXIT_REFUSED);
        return jobs_seen_count(&watch->jobs) < VIEW_JOBS_MAX ? next : 0;
}

static size_t n_listed(const struct watch *watch) {
        return (size_t)cJSON_GetArraySize(watch->list);
}

static uint64_t take_datasets(struct watch *watch, Dlp__Reply *reply) {
        uint64_t next = reply->datasets->next;

        for (size_t i = 0; i < reply->datasets->n_datasets; i++)
                dataset_record(watch->list, reply->datasets->datasets[i]);
        dlp__reply__free_unpacked(reply, NULL);
        watch->n_datasets = n_listed(watch);
        return watch->n_datasets < VIEW_DATASETS_MAX ? next : 0;
}

static uint64_t take_errors(struct watch *watch, Dlp__Reply *reply) {
        uint64_t next = reply->errors->next;

        for (size_t i = 0; i < reply->errors->n_errors; i++)
                error_record(watch->list, reply->errors->errors[i]);
        dlp__reply__free_unpacked(reply, NULL);
        return next;
}

static const struct {
        Dlp__Reply__BodyCase body;
        uint64_t (*take)(struct watch *watch, Dlp__Reply *reply);
} ANSWERS[] = {
        [ASK_STATUS] = { DLP__REPLY__BODY_STATUS, take_status },
        [ASK_JOBS] = { DLP__REPLY__BODY_JOBS, take_jobs },
        [ASK_DATASETS] = { DLP__REPLY__BODY_DATASETS, take_datasets },
        [ASK_ERRORS] = { DLP__REPLY__BODY_ERRORS, take_errors },
};

/* A question's last page has come. */
static void finish(struct watch *watch, bool has_more) {
        watch->wanted[watch->question] = false;
        switch (watch->question) {
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

static void take_answer(struct watch *watch) {
        uint64_t next, page = watch->page;
        struct why reason;
        Dlp__Reply *reply;
        bool has_more;
        int r;

        r = dli_connection_answer(&watch->connection, 0, &reason, &reply, NULL, 0);
        if (r == -ETIMEDOUT || r == -EINTR)
                return; /* something else came */
        if (r != 0 || reply->body_case != ANSWERS[watch->question].body) {
                if (r == 0) {
                        dlp__reply__free_unpacked(reply, NULL);
                        why_set(&reason, 0, "the daemon at %s answered another question", watch->connection.path);
                }
                lost(watch, r == -ECONNRESET ? NULL : &reason);
                return;
        }
        next = ANSWERS[watch->question].take(watch, reply);
        has_more = next > page && watch->question == ASK_ERRORS && n_listed(watch) >= VIEW_ERRORS_MAX;
        watch->page = next;
        watch->is_asking = false;
        if (next <= page || has_more) { /* page numbers must rise, or this would not end */
                finish(watch, has_more);
                watch->page = 0;
        }
        ask_next(watch);
}

/* ---- questions ----------------------------------------------------------------------------------------------- */

static int send_question(struct watch *watch, struct why *reason) {
        Dlp__StatusRequest status = DLP__STATUS_REQUEST__INIT;
        Dlp__JobsRequest jobs = DLP__JOBS_REQUEST__INIT;
        Dlp__DatasetsRequest datasets = DLP__DATASETS_REQUEST__INIT;
        Dlp__ErrorsRequest errors = DLP__ERRORS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;

        switch (watch->question) {
        case ASK_STATUS:
                request.body_case = DLP__REQUEST__BODY_STATUS;
                request.status = &status;
                break;
        case ASK_JOBS:
                jobs.first = (uint32_t)watch->page;
                request.body_case = DLP__REQUEST__BODY_JOBS;
                request.jobs = &jobs;
                break;
        case ASK_DATASETS:
                datasets.first = (uint32_t)watch->page;
                request.body_case = DLP__REQUEST__BODY_DATASETS;
                request.datasets = &datasets;
                break;
        default:
                errors.first = watch->page;
                request.body_case = DLP__REQUEST__BODY_ERRORS;
                request.errors = &errors;
                break;
        }
        return dli_connection_send(&watch->connection, &request, reason);
}

/* Continues the round. Sending cannot block: the daemon has answered all before. */
static void ask_next(struct watch *watch) {
        struct why reason;

        while (watch->question < N_QUESTIONS && !watch->wanted[watch->question])
                watch->question++;
        if (watch->question == N_QUESTIONS)
                return;
        if (!watch->list && watch->question >= ASK_DATASETS)
                watch->list = cJSON_CreateArray();
        watch->asked_ns = clock_now_ns();
        watch->is_asking = true;
        if (send_question(watch, &reason) < 0)
                lost(watch, &reason);
}

static void begin_round(struct watch *watch, uint64_t now_ns) {
        bool looked = now_ns - watch->looked_ns < LOOKED_NS;
        uint64_t interval_ns = watch->n_datasets <= FEW_DATASETS ? 0 : MANY_NS;

        watch->wanted[ASK_STATUS] = watch->wanted[ASK_JOBS] = true;
        watch->wanted[ASK_DATASETS] = looked && now_ns - watch->datasets_ns >= interval_ns;
        watch->wanted[ASK_ERRORS] = looked && (view_errors(watch->view) != watch->n_errors ||
                                               now_ns - watch->errors_ns >= ERRORS_NS);
        watch->question = ASK_STATUS;
        watch->page = 0;
        ask_next(watch);
}

static bool may_rest(const struct watch *watch, uint64_t now_ns) {
        return watch->ends_idle && now_ns - watch->looked_ns >= REST_NS && view_is_idle(watch->view);
}

static void on_second(evutil_socket_t fd, short what, void *arg) {
        struct watch *watch = arg;
        uint64_t now_ns = clock_now_ns();
        struct why why;

        (void)fd;
        (void)what;
        if (watch->is_asking) {
                if (now_ns - watch->asked_ns < LATE_NS)
                        return;
                why_set(&why, 0, "the daemon at %s does not answer: it is stopped or overloaded",
                        watch->connection.path);
                view_set_away(watch->view, why.text);
                return;
        }
        if (may_rest(watch, now_ns)) {
                if (watch->is_connected)
                        disconnect(watch, "nobody has looked for a while, so the daemon has been left alone");
                return;
        }
        if (!watch->is_connected)
                try_to_connect(watch);
        if (watch->is_connected)
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
        watch->connection.socket = -1;
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
