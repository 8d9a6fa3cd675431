#include "client/dlctl/inquiry/inquiry.h"

#include <errno.h>
#include <string.h>

#include "client/lib/daemon/silent.h"

#define LATE_NS 3000000000ull /* an answer that takes longer is missed aloud */

void inquiry_init(struct inquiry *inquiry, const struct context *context, const char *client) {
        *inquiry = (struct inquiry){ .context = context, .client = client, .connection.socket = -1 };
}

void inquiry_close(struct inquiry *inquiry) {
        dli_connection_close(&inquiry->connection);
        inquiry->is_connected = inquiry->is_asking = false;
        glance_free(inquiry->glance);
        glance_free(inquiry->lists);
        inquiry->glance = inquiry->lists = NULL;
}

int inquiry_connect(struct inquiry *inquiry, enum reach *ret_reach) {
        struct why reason;
        int r;

        if (inquiry->is_connected)
                return 0;
        r = reach_try(inquiry->context, inquiry->client, &inquiry->connection, &reason, ret_reach);
        if (r < 0) {
                inquiry->away = reason;
                inquiry_close(inquiry);
                return r;
        }
        inquiry->is_connected = true;
        inquiry->generation++;
        inquiry->datasets_ns = 0;
        return 1;
}

bool inquiry_wants_datasets(const struct inquiry *inquiry, uint64_t now_ns) {
        return inquiry->datasets_ns == 0 || inquiry->n_datasets <= INQUIRY_FEW ||
               now_ns - inquiry->datasets_ns >= INQUIRY_MANY_NS;
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
        struct question_request request;
        struct why reason;
        int r;

        question_fill(inquiry->question, inquiry->page, "", &request);
        inquiry->asked_ns = now_ns;
        r = dli_connection_send(&inquiry->connection, &request.request, &reason);
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
        inquiry->glance = glance_new();
        inquiry->lists = wanted[ASK_DATASETS] || wanted[ASK_ERRORS] ? glance_new() : NULL;
        return ask_first(inquiry, now_ns);
}

bool inquiry_is_late(struct inquiry *inquiry, uint64_t now_ns) {
        if (!inquiry->is_asking || now_ns - inquiry->asked_ns < LATE_NS)
                return false;
        dli_daemon_silent(inquiry->connection.socket, inquiry->connection.path, &inquiry->away);
        return true;
}

/* Returns 1 and an answer to the question; 0: there is none yet; a negative errno: the connection has ended. */
static int take_reply(struct inquiry *inquiry, Dlp__Reply **ret_reply) {
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
        if (r == 0 && reply->body_case != question_body(inquiry->question)) {
                dlp__reply__free_unpacked(reply, NULL);
                r = why_set(&reason, -EPROTO, "the daemon at %s answered another question", inquiry->connection.path);
        }
        if (r != 0)
                return inquiry_lost(inquiry, r < 0 ? r : -EPROTO, r == -ECONNRESET ? NULL : &reason);
        *ret_reply = reply;
        return 1;
}

int inquiry_take(struct inquiry *inquiry, uint64_t now_ns, struct glance **ret_glance, struct glance **ret_lists) {
        Dlp__Reply *reply;
        uint64_t next;
        int r = take_reply(inquiry, &reply);

        if (r <= 0)
                return r;
        next = question_next(reply, inquiry->page);
        if (!glance_add(inquiry->question <= ASK_JOBS ? inquiry->glance : inquiry->lists, reply))
                next = 0;
        if (next > 0) {
                inquiry->page = next;
                return inquiry_ask(inquiry, now_ns);
        }
        if (inquiry->question == ASK_DATASETS) {
                inquiry->n_datasets = inquiry->lists->n_datasets;
                inquiry->datasets_ns = now_ns;
        }
        inquiry->wanted[inquiry->question] = false;
        r = ask_first(inquiry, now_ns);
        if (r <= 0)
                return r;
        *ret_glance = inquiry->glance;
        *ret_lists = inquiry->lists;
        inquiry->glance = inquiry->lists = NULL;
        inquiry->away.text[0] = '\0';
        return 1;
}
