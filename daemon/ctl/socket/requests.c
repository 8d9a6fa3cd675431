#include "daemon/ctl/socket/requests.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/work/closer.h"
#include "daemon/ctl/ctl_trace.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/metrics/metrics_pages.h"
#include "daemon/ctl/socket/accept.h"
#include "daemon/ctl/socket/packet.h"
#include "daemon/ctl/users/access.h"
#include "daemon/ctl/users/turns.h"
#include "daemon/ctl/users/user_quota.h"
#include "daemon/ctl/work/ctl_work.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

#define PACKETS_AT_ONCE 16 /* packets of one session before other sessions get a turn */

/* clang-format off */
static const struct {
        Dlp__Request__BodyCase body;
        void (*handle)(struct session *session, const Dlp__Request *request);
} HANDLERS[] = {
        { DLP__REQUEST__BODY_ATTACH, handle_attach },
        { DLP__REQUEST__BODY_SEEK, handle_seek },
        { DLP__REQUEST__BODY_STATUS, handle_status },
        { DLP__REQUEST__BODY_DATASETS, handle_datasets },
        { DLP__REQUEST__BODY_JOBS, handle_jobs },
        { DLP__REQUEST__BODY_ERRORS, handle_errors },
        { DLP__REQUEST__BODY_CLASSES, handle_classes },
        { DLP__REQUEST__BODY_WORKERS, handle_workers },
        { DLP__REQUEST__BODY_RANKS, handle_ranks },
        { DLP__REQUEST__BODY_SAMPLES, handle_samples },
        { DLP__REQUEST__BODY_PLACES, handle_places },
        { DLP__REQUEST__BODY_FILL, handle_fill },
        { DLP__REQUEST__BODY_INDEX, handle_index },
        { DLP__REQUEST__BODY_WHO, handle_who },
        { DLP__REQUEST__BODY_STOP, handle_stop },
        { DLP__REQUEST__BODY_WAIT, handle_wait },
        { DLP__REQUEST__BODY_METRICS, handle_metrics },
        { DLP__REQUEST__BODY_TRACE, handle_trace },
        { DLP__REQUEST__BODY_REPLAY, handle_replay },
        { DLP__REQUEST__BODY_WORK, handle_work },
        { DLP__REQUEST__BODY_WORKED, handle_worked },
        { DLP__REQUEST__BODY_WORK_ENDED, handle_work_ended },
};
/* clang-format on */

/* The client will close the connection; if it does not, another refusal costs nothing. */
static void refuse_version(struct session *session, const Dlp__Request *request) {
        char text[DLP_TEXT_MAX];

        snprintf(text, sizeof(text),
                 "protocol: this daemon (%s) speaks version %u, the client speaks version %u; install "
                 "the same version of dataloaderd and libdlclient",
                 session->server->options.version, DLP_PROTOCOL_VERSION, request->protocol);
        session_refuse_with(session, request->id, -EPROTONOSUPPORT, text, false, NULL);
}

static void requests_handle(struct session *session, const Dlp__Request *request) {
        struct server *server = session->server;

        if (request->protocol != DLP_PROTOCOL_VERSION) {
                refuse_version(session, request);
                return;
        }
        snprintf(session->client, sizeof(session->client), "%.60s", request->client);
        text_make_printable(session->client); /* it is written to the log */

        for (size_t i = 0; i < sizeof(HANDLERS) / sizeof(HANDLERS[0]); i++)
                if (HANDLERS[i].body == request->body_case) {
                        session_asks(session);
                        HANDLERS[i].handle(session, request);
                        session_asked(server);
                        return;
                }
        session_close(session, "its request is of an unknown kind");
}

static void requests_dispatch(struct session *session, const uint8_t *bytes, size_t n_bytes) {
        Dlp__Request *request = dlp__request__unpack(NULL, n_bytes, bytes);

        if (!request)
                session_close(session, "its packet is not a request");
        else if (session->sent_fd >= 0 && request->body_case != DLP__REQUEST__BODY_ATTACH)
                session_close(session, "it sent descriptors, which no such request has");
        else
                requests_handle(session, request);
        if (!request)
                return;
        dlp__request__free_unpacked(request, NULL);
}

static void read_packets(struct session *session, unsigned n_most) {
        static uint8_t buffer[DLP_PACKET_MAX]; /* main thread only */

        for (unsigned i = 0; i < n_most && !session->closed && session->state != SESSION_ATTACHING; i++) {
                size_t n = 0;
                int r = packet_receive(session->fd, session->peer.uid, buffer, DLP_PACKET_MAX, &n, &session->sent_fd);

                if (r == -EAGAIN || r == -EINTR)
                        return;
                if (r == -EMSGSIZE)
                        session_close(session, "its packet is longer than 65,536 bytes");
                else if (r == -EPROTO)
                        session_close(session, "it sent descriptors that did not arrive, or more than a request has");
                else if (r < 0)
                        session_close(session, NULL);
                else
                        requests_dispatch(session, buffer, n);
                if (session->sent_fd >= 0)
                        closer_close(session->sent_fd, session->peer.uid);
                session->sent_fd = -1;
        }
}

static void requests_on_readable(evutil_socket_t fd, short what, void *userdata) {
        struct session *session = userdata;
        uint64_t begun_ns = clock_thread_ns();

        if (turn_is_over(session))
                return;
        read_packets(session, PACKETS_AT_ONCE);
        turn_end(session, begun_ns);
}

/* The client process has ended. A child that it forked may still hold the socket, but the rank belonged to the
 * process. */
static void requests_process_ended(struct session *session) {
        if (session->seat) /* what it answered before its end counts: at most each of its orders, in a packet of its own
                            */
                read_packets(session, DLP_ORDERS_MAX);
        session_close(session, NULL);
}

static void requests_on_process_end(evutil_socket_t fd, short what, void *userdata) {
        requests_process_ended(userdata);
}

/* Without a process event the session lives as long as any process has the socket. */
static void watch_process(struct session *session) {
        if (session->process.fd < 0)
                return;
        session->process_event = event_new(session->server->options.base, session->process.fd, EV_READ,
                                           requests_on_process_end, session);
        if (session->process_event)
                event_add(session->process_event, NULL);
}

static void requests_begin(struct session *session) {
        struct server *server = session->server;
        struct why why;
        int r;

        TAILQ_INSERT_TAIL(&server->sessions, session, entry);
        server->n_sessions++;
        r = quota_connection(session, &why);
        if (r < 0)
                session_close_because(session, r, why.text);
        else
                watch_process(session);
}

void requests_open(struct server *server, int fd) {
        uint64_t begun_ns = clock_thread_ns();
        struct session *session = calloc(1, sizeof(*session));

        if (!session) {
                close(fd);
                return;
        }
        session->server = server;
        session->fd = fd;
        session->sent_fd = -1;
        access_identify(session);
        session_user(session); /* starts the lookup now, so that the name is known when it is needed */
        snprintf(session->client, sizeof(session->client), "?");

        session->event = event_new(server->options.base, fd, EV_READ | EV_PERSIST, requests_on_readable, session);
        if (!session->event || event_add(session->event, NULL) < 0) {
                if (session->event)
                        event_free(session->event);
                process_close(&session->process);
                session_free(session);
                close(fd);
                return;
        }
        requests_begin(session);
        turn_end(session, begun_ns);
}

/* ---- what happens to sessions ----------------------------------------------------------------------------------- */

static void requests_hung_up(struct session *session) {
        uint64_t begun_ns = clock_thread_ns();

        session_close(session, NULL);
        turn_end(session, begun_ns);
}

static void requests_leaves(struct session *session) {
        tracing_session_ends(session);
        metrics_pages_drop(session->server, session);
}

static void requests_left(struct server *server) {
        event_active(server->sweep_event, EV_TIMEOUT, 0);
        accept_again(server); /* descriptors have become free */
}

const struct session_hooks REQUESTS_HOOKS = {
        .process_ended = requests_process_ended,
        .hung_up = requests_hung_up,
        .closed = work_session_ends,
        .leaves = requests_leaves,
        .rank_left = work_rank_has_left,
        .left = requests_left,
};
