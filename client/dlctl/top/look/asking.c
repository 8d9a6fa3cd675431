#include "client/dlctl/top/look/asking.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/dlctl/top/room.h"
#include "client/lib/connection.h"

#define SECOND_NS    1000000000ull
#define LATE_NS      (3 * SECOND_NS) /* an answer that takes longer is missed aloud */
#define FEW_DATASETS 64u             /* are asked for each time */
#define MANY_NS      (10 * SECOND_NS)

/* In this sequence. */
enum question {
        ASK_STATUS,
        ASK_JOBS,
        ASK_DATASETS,
        N_QUESTIONS,
};

struct asking {
        const char *socket;
        struct dli_connection connection;
        bool is_connected, is_asking, asks_datasets;
        enum question question; /* that is being asked */
        uint32_t page;          /* of its answer */
        uint64_t asked_ns, datasets_ns;
        size_t n_datasets;
        struct glance *glance, *datasets; /* as far as they are */
        unsigned generation;
        struct why away;
};

struct asking *asking_new(const char *socket) {
        struct asking *asking = room_for(1, sizeof(*asking));

        asking->socket = socket;
        asking->connection.socket = -1;
        return asking;
}

static void forget(struct asking *asking) {
        glance_free(asking->glance);
        glance_free(asking->datasets);
        asking->glance = asking->datasets = NULL;
        asking->is_asking = false;
}

static void disconnect(struct asking *asking) {
        forget(asking);
        dli_connection_close(&asking->connection);
        asking->is_connected = false;
}

void asking_free(struct asking *asking) {
        if (!asking)
                return;
        disconnect(asking);
        free(asking);
}

int asking_fd(const struct asking *asking) {
        return asking->is_connected ? asking->connection.socket : -1;
}

const char *asking_away(const struct asking *asking) {
        return asking->away.text[0] ? asking->away.text : NULL;
}

unsigned asking_generation(const struct asking *asking) {
        return asking->generation;
}

/* ---- questions ----------------------------------------------------------------------------------------------- */

static void lost(struct asking *asking, const struct why *reason) {
        if (asking->connection.farewell.text[0])
                why_set(&asking->away, 0, "the daemon at %s has closed the connection: %s", asking->socket,
                        asking->connection.farewell.text);
        else if (reason)
                asking->away = *reason;
        else
                why_set(&asking->away, 0, "the daemon at %s has ended", asking->socket);
        disconnect(asking);
}

/* Sending cannot block: the daemon has answered all before. */
static void ask(struct asking *asking, uint64_t now_ns) {
        Dlp__StatusRequest status = DLP__STATUS_REQUEST__INIT;
        Dlp__JobsRequest jobs = DLP__JOBS_REQUEST__INIT;
        Dlp__DatasetsRequest datasets = DLP__DATASETS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct why reason;

        switch (asking->question) {
        case ASK_STATUS:
                request.body_case = DLP__REQUEST__BODY_STATUS;
                request.status = &status;
                break;
        case ASK_JOBS:
                jobs.first = asking->page;
                request.body_case = DLP__REQUEST__BODY_JOBS;
                request.jobs = &jobs;
                break;
        default:
                datasets.first = asking->page;
                request.body_case = DLP__REQUEST__BODY_DATASETS;
                request.datasets = &datasets;
                break;
        }
        asking->asked_ns = now_ns;
        if (dli_connection_send(&asking->connection, &request, &reason) < 0)
                lost(asking, &reason);
}

static void connect_again(struct asking *asking) {
        struct why reason;

        if (dli_connection_try(&asking->connection, asking->socket, "dlctl top " DLP_VERSION, &reason) < 0) {
                asking->away = reason;
                disconnect(asking);
                return;
        }
        asking->is_connected = true;
        asking->generation++;
        asking->datasets_ns = 0;
}

void asking_tick(struct asking *asking, uint64_t now_ns) {
        if (asking->is_asking) {
                if (now_ns - asking->asked_ns >= LATE_NS)
                        why_set(&asking->away, 0, "the daemon at %s does not answer: it is stopped or overloaded",
                                asking->socket);
                return;
        }
        if (!asking->is_connected)
                connect_again(asking);
        if (!asking->is_connected)
                return;
        asking->asks_datasets = asking->datasets_ns == 0 || asking->n_datasets <= FEW_DATASETS ||
                                now_ns - asking->datasets_ns >= MANY_NS;
        asking->glance = glance_new();
        asking->datasets = asking->asks_datasets ? glance_new() : NULL;
        asking->question = ASK_STATUS;
        asking->page = 0;
        asking->is_asking = true;
        ask(asking, now_ns);
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

/* Adds the page. Returns the next one's number; 0: it was the last. */
static uint32_t take_page(struct asking *asking, Dlp__Reply *reply) {
        switch (asking->question) {
        case ASK_STATUS:
                glance_add(asking->glance, reply);
                return 0;
        case ASK_JOBS:
                glance_add(asking->glance, reply);
                return asking->glance->n_jobs < GLANCE_JOBS_MAX ? reply->jobs->next : 0;
        default:
                glance_add(asking->datasets, reply);
                return asking->datasets->n_datasets < GLANCE_DATASETS_MAX ? reply->datasets->next : 0;
        }
}

/* To the next page or question. Returns true when there is none. */
static bool proceed(struct asking *asking, uint32_t next) {
        static const bool OPTIONAL[N_QUESTIONS] = { [ASK_DATASETS] = true };

        if (next > asking->page) { /* numbers must rise, or this would not end */
                asking->page = next;
                return false;
        }
        asking->page = 0;
        do
                asking->question++;
        while (asking->question < N_QUESTIONS && OPTIONAL[asking->question] && !asking->asks_datasets);
        return asking->question == N_QUESTIONS;
}

static void hand_over(struct asking *asking, uint64_t now_ns, struct glance **ret_glance,
                      struct glance **ret_datasets) {
        if (asking->datasets) {
                asking->n_datasets = asking->datasets->n_datasets;
                asking->datasets_ns = now_ns;
        }
        *ret_glance = asking->glance;
        *ret_datasets = asking->datasets;
        asking->glance = asking->datasets = NULL;
        asking->is_asking = false;
        asking->away.text[0] = '\0';
}

bool asking_take(struct asking *asking, uint64_t now_ns, struct glance **ret_glance, struct glance **ret_datasets) {
        static const Dlp__Reply__BodyCase BODIES[] = { [ASK_STATUS] = DLP__REPLY__BODY_STATUS,
                                                       [ASK_JOBS] = DLP__REPLY__BODY_JOBS,
                                                       [ASK_DATASETS] = DLP__REPLY__BODY_DATASETS };
        struct why reason;
        Dlp__Reply *reply;
        int r;

        if (!asking->is_asking) {
                if (asking->is_connected && dli_connection_drain(&asking->connection, &reason) < 0)
                        lost(asking, NULL);
                return false;
        }
        r = dli_connection_answer(&asking->connection, 0, &reason, &reply, NULL, 0);
        if (r == -ETIMEDOUT || r == -EINTR)
                return false; /* something else came */
        if (r == 0 && reply->body_case != BODIES[asking->question]) {
                dlp__reply__free_unpacked(reply, NULL);
                r = why_set(&reason, -EPROTO, "the daemon at %s answered another question", asking->socket);
        }
        if (r != 0) {
                lost(asking, r == -ECONNRESET ? NULL : &reason);
                return false;
        }
        if (proceed(asking, take_page(asking, reply))) {
                hand_over(asking, now_ns, ret_glance, ret_datasets);
                return true;
        }
        ask(asking, now_ns);
        return false;
}
