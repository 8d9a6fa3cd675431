#include "client/dlctl/inquiry/inquiry.h"

#include <errno.h>
#include <string.h>

#include "client/lib/daemon/silent.h"

#define LATE_NS 3000000000ull /* an answer that takes longer is missed aloud */

void inquiry_init(struct inquiry *inquiry) {
        *inquiry = (struct inquiry){ .connection.socket = -1 };
}

void inquiry_close(struct inquiry *inquiry) {
        dli_connection_close(&inquiry->connection);
        inquiry->is_connected = inquiry->is_asking = false;
}

void inquiry_connected(struct inquiry *inquiry, int r, const struct why *reason) {
        inquiry->is_connected = r >= 0;
        if (r >= 0)
                return;
        inquiry->away = *reason;
        inquiry_close(inquiry);
}

/* A loader would be told to attach again; here it is enough to say that the daemon has gone. */
static int inquiry_lost(struct inquiry *inquiry, int r, const struct why *reason) {
        const struct dli_connection *connection = &inquiry->connection;

        if (connection->farewell.text[0])
                why_set(&inquiry->away, 0, "the daemon at %s has closed the connection: %s", connection->path,
                        connection->farewell.text);
        else if (reason)
                inquiry->away = *reason;
        else
                why_set(&inquiry->away, 0, "the daemon at %s has ended", connection->path);
        inquiry_close(inquiry);
        return r;
}

static int inquiry_ask(struct inquiry *inquiry, uint64_t now_ns) {
        Dlp__StatusRequest status = DLP__STATUS_REQUEST__INIT;
        Dlp__JobsRequest jobs = DLP__JOBS_REQUEST__INIT;
        Dlp__DatasetsRequest datasets = DLP__DATASETS_REQUEST__INIT;
        Dlp__ErrorsRequest errors = DLP__ERRORS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct why reason;
        int r;

        switch (inquiry->question) {
        case ASK_STATUS:
                request.body_case = DLP__REQUEST__BODY_STATUS;
                request.status = &status;
                break;
        case ASK_JOBS:
                jobs.first = (uint32_t)inquiry->page;
                request.body_case = DLP__REQUEST__BODY_JOBS;
                request.jobs = &jobs;
                break;
        case ASK_DATASETS:
                datasets.first = (uint32_t)inquiry->page;
                request.body_case = DLP__REQUEST__BODY_DATASETS;
                request.datasets = &datasets;
                break;
        default:
                errors.first = inquiry->page;
                request.body_case = DLP__REQUEST__BODY_ERRORS;
                request.errors = &errors;
                break;
        }
        inquiry->asked_ns = now_ns;
        r = dli_connection_send(&inquiry->connection, &request, &reason);
        return r < 0 ? inquiry_lost(inquiry, r, &reason) : 0;
}

/* The first one that is wanted; 1: there is none. */
static int ask_first(struct inquiry *inquiry, uint64_t now_ns) {
        inquiry->page = 0;
        for (inquiry->question = ASK_STATUS; inquiry->question < N_QUESTIONS; inquiry->question++)
                if (inquiry->wanted[inquiry->question])
                        return inquiry_ask(inquiry, now_ns);
        inquiry->is_asking = false;
        return 1;
}

int inquiry_begin(struct inquiry *inquiry, const bool wanted[N_QUESTIONS], uint64_t now_ns) {
        memcpy(inquiry->wanted, wanted, sizeof(inquiry->wanted));
        inquiry->is_asking = true;
        return ask_first(inquiry, now_ns);
}

bool inquiry_is_late(struct inquiry *inquiry, uint64_t now_ns) {
        if (!inquiry->is_asking || now_ns - inquiry->asked_ns < LATE_NS)
                return false;
        dli_daemon_silent(inquiry->connection.socket, inquiry->connection.path, &inquiry->away);
        return true;
}

int inquiry_take(struct inquiry *inquiry, Dlp__Reply **ret_reply) {
        static const Dlp__Reply__BodyCase BODIES[] = { [ASK_STATUS] = DLP__REPLY__BODY_STATUS,
                                                       [ASK_JOBS] = DLP__REPLY__BODY_JOBS,
                                                       [ASK_DATASETS] = DLP__REPLY__BODY_DATASETS,
                                                       [ASK_ERRORS] = DLP__REPLY__BODY_ERRORS };
        struct why reason;
        Dlp__Reply *reply;
        int r;

        if (!inquiry->is_connected)
                return 0;
        if (!inquiry->is_asking) {
                r = dli_connection_drain(&inquiry->connection, &reason);
                return r < 0 ? inquiry_lost(inquiry, r, NULL) : 0;
        }
        r = dli_connection_answer(&inquiry->connection, 0, &reason, &reply, NULL, 0);
        if (r == -ETIMEDOUT || r == -EINTR)
                return 0; /* something else came */
        if (r == 0 && reply->body_case != BODIES[inquiry->question]) {
                dlp__reply__free_unpacked(reply, NULL);
                r = why_set(&reason, -EPROTO, "the daemon at %s answered another question", inquiry->connection.path);
        }
        if (r != 0)
                return inquiry_lost(inquiry, r < 0 ? r : -EPROTO, r == -ECONNRESET ? NULL : &reason);
        *ret_reply = reply;
        return 1;
}

int inquiry_proceed(struct inquiry *inquiry, uint64_t next, uint64_t now_ns) {
        if (inquiry_has_page(inquiry, next)) {
                inquiry->page = next;
                return inquiry_ask(inquiry, now_ns);
        }
        inquiry->wanted[inquiry->question] = false;
        return ask_first(inquiry, now_ns);
}
