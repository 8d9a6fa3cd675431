#include "client/dlctl/web/web_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/dlctl/diagnose/diagnose_record.h"
#include "client/dlctl/listing/dlctl_listing.h"
#include "client/dlctl/web/moment.h"
#include "client/dlctl/web/past.h"
#include "client/dlctl/web/piece.h"
#include "proto/base/clock.h"
#include "proto/version.h"

/* A list of records as text; its version rises when it changes, so that a reader gets it once. */
struct part {
        struct piece *text;
        uint64_t version;
};

struct view {
        const char *user, *found; /* "": no daemon was found yet */
        char socket[DLP_SOCKET_PATH_MAX + 1];
        char host[65];
        uint64_t run; /* names this process: a reader notices that another one answers */
        char away[DLP_TEXT_MAX];
        int64_t away_since_unix;
        struct glance *now; /* NULL: nothing yet */
        uint64_t now_ns;    /* when it came, CLOCK_MONOTONIC */
        struct past past;
        struct piece *state; /* status and jobs as text; NULL: not made yet */
        struct part datasets, errors;
        uint64_t n_errors;
        bool has_more_errors;
        struct piece *seconds[VIEW_SECONDS]; /* [sequence % VIEW_SECONDS] */
        uint64_t first, next;                /* sequences of the seconds that are kept */
        size_t n_bytes;                      /* of them */
};

static uint64_t now_unix_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct view *view_new(const char *user) {
        struct view *view = calloc(1, sizeof(*view));

        if (!view)
                exit(fail(EXIT_REFUSED, "no memory"));
        view->user = user;
        view->found = "";
        view->run = now_unix_ms();
        view->first = view->next = 1;
        gethostname(view->host, sizeof(view->host) - 1);
        return view;
}

static void forget_state(struct view *view) {
        if (view->now)
                past_take(&view->past, view->now_ns, view->now);
        view->now = NULL;
        piece_unref(view->state);
        view->state = NULL;
}

static void forget_second(struct view *view) {
        struct piece **second = &view->seconds[view->first++ % VIEW_SECONDS];

        view->n_bytes -= (*second)->n;
        piece_unref(*second);
        *second = NULL;
}

void view_free(struct view *view) {
        if (!view)
                return;
        forget_state(view);
        past_free(&view->past);
        while (view->first < view->next)
                forget_second(view);
        piece_unref(view->datasets.text);
        piece_unref(view->errors.text);
        free(view);
}

void view_set_daemon(struct view *view, const char *found, const char *socket) {
        view->found = found;
        snprintf(view->socket, sizeof(view->socket), "%s", socket);
}

void view_set_state(struct view *view, struct glance *glance) {
        struct piece *second;

        forget_state(view);
        view->now = glance;
        view->now_ns = clock_now_ns();
        if (glance->n_jobs > VIEW_JOBS_MAX)
                glance->n_jobs = VIEW_JOBS_MAX;
        view_set_away(view, NULL);

        second = moment_describe(view->next, now_unix_ms(), glance);
        while (view->next - view->first >= VIEW_SECONDS ||
               (view->first < view->next && view->n_bytes + second->n > VIEW_BYTES_MAX))
                forget_second(view);
        view->seconds[view->next++ % VIEW_SECONDS] = second;
        view->n_bytes += second->n;
}

void view_set_away(struct view *view, const char *why) {
        if (!why) {
                view->away[0] = '\0';
                return;
        }
        if (!view->away[0])
                view->away_since_unix = (int64_t)(now_unix_ms() / 1000);
        snprintf(view->away, sizeof(view->away), "%s", why);
}

bool view_is_idle(const struct view *view) {
        return !view->now || view->now->status->n_jobs == 0;
}

uint64_t view_errors(const struct view *view) {
        return view->n_errors;
}

/* ---- text ---------------------------------------------------------------------------------------------------- */

static void part_set(struct part *part, cJSON *list) {
        struct piece *text = piece_of_record(list);

        if (part->text && part->text->n == text->n && memcmp(part->text->bytes, text->bytes, text->n) == 0) {
                piece_unref(text);
                return;
        }
        piece_unref(part->text);
        part->text = text;
        part->version++;
}

void view_set_datasets(struct view *view, const struct glance *lists) {
        cJSON *list = cJSON_CreateArray();

        view->n_errors = 0;
        for (size_t i = 0; i < lists->n_datasets && i < VIEW_DATASETS_MAX; i++) {
                dataset_record(list, lists->datasets[i]);
                view->n_errors += lists->datasets[i]->n_errors;
        }
        part_set(&view->datasets, list);
}

void view_set_errors(struct view *view, const struct glance *lists) {
        cJSON *list = cJSON_CreateArray();

        for (size_t i = 0; i < lists->n_errors; i++)
                error_record(list, lists->errors[i]);
        view->has_more_errors = lists->has_more_errors;
        part_set(&view->errors, list);
}

/* As dlctl jobs has it, and what dlctl diagnose says, of the last minute; it is also the last one of the list. */
static void describe_job(const struct view *view, cJSON *list, struct look now) {
        struct verdict verdict;
        struct look before;
        bool has_past;

        has_past = past_find(&view->past, view->now_ns, now.job, &before);
        verdict_make(has_past ? &before : NULL, &now, &verdict);
        job_record(list, now.job, now.node);
        verdict_record(record_inner(list->child->prev, "verdict"), &verdict);
}

/* {"status":...,"jobs":[...]}, without its braces. */
static struct piece *describe_state(const struct view *view) {
        cJSON *record = record_new(), *jobs;

        if (view->now)
                cJSON_AddItemToObject(record, "status", status_record(view->now->status));
        else
                cJSON_AddNullToObject(record, "status");
        jobs = record_list(record, "jobs");
        for (size_t i = 0; view->now && i < view->now->n_jobs; i++)
                describe_job(view, jobs, view->now->jobs[i]);
        return piece_of_record(record);
}

static struct piece *describe_head(const struct view *view) {
        cJSON *record = record_new();

        record_number(record, "run", view->run);
        record_number(record, "sequence", view->next - 1);
        record_number(record, "now_unix_ms", now_unix_ms());
        record_text(record, "version", DLP_FULL_VERSION);
        record_text(record, "host", view->host);
        record_text(record, "user", view->user);
        record_text(record, "daemon", view->found);
        record_text(record, "socket", view->socket);
        record_text(record, "away", view->away);
        if (view->away[0])
                record_number(record, "away_since_unix", (uint64_t)view->away_since_unix);
        record_number(record, "datasets_version", view->datasets.version);
        record_number(record, "errors_version", view->errors.version);
        record_bool(record, "has_more_errors", view->has_more_errors);
        return piece_of_record(record);
}

/* An object's members, to be continued. */
static void send_members(const struct piece *object, struct evbuffer *body) {
        evbuffer_add(body, object->bytes + 1, object->n - 2);
}

static void send_part(const struct part *part, const char *name, uint64_t known, struct evbuffer *body) {
        if (!part->text || part->version == known)
                return;
        evbuffer_add_printf(body, ",\"%s\":", name);
        piece_send(part->text, body);
}

void view_write(struct view *view, const struct view_known *known, struct evbuffer *body) {
        struct piece *head = describe_head(view);
        uint64_t first = known->sequence >= view->first && known->sequence < view->next ? known->sequence + 1
                                                                                        : view->first;

        if (!view->state)
                view->state = describe_state(view);
        evbuffer_add(body, "{", 1);
        send_members(head, body);
        evbuffer_add(body, ",", 1);
        send_members(view->state, body);
        send_part(&view->datasets, "datasets", known->datasets, body);
        send_part(&view->errors, "errors", known->errors, body);
        evbuffer_add_printf(body, ",\"seconds\":[");
        for (uint64_t i = first; i < view->next; i++) {
                if (i > first)
                        evbuffer_add(body, ",", 1);
                piece_send(view->seconds[i % VIEW_SECONDS], body);
        }
        evbuffer_add(body, "]}\n", 3);
        piece_unref(head);
}
