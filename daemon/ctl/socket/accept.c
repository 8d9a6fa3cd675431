#include "daemon/ctl/socket/accept.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/work/closer.h"
#include "daemon/ctl/socket/requests.h"
#include "proto/base/cleanup.h"

#define PAUSE_US              200000
#define SHORT_PAUSE_US        5000
#define DESCRIPTORS_A_SESSION 4u /* on average: an idle session has two, a rank has six */

static void on_pause_end(evutil_socket_t fd, short what, void *userdata) {
        accept_again(userdata);
}

void accept_again(struct server *server) {
        if (!server->is_paused || !server->listen_event || event_add(server->listen_event, NULL) < 0)
                return; /* retry when the timer fires again */
        server->is_paused = false;
        event_del(server->pause_event);
}

/* If the timer cannot be set there is no pause: busy waiting is better than never accepting again. */
static void pause_accepting(struct server *server, suseconds_t pause_us) {
        if (event_add(server->pause_event, &(struct timeval){ .tv_usec = pause_us }) < 0)
                return;
        event_del(server->listen_event);
        server->is_paused = true;
}

static void tell_and_close(int fd, uid_t user) {
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__Error body = DLP__ERROR__INIT;

        body.code = EMFILE;
        body.text = (char *)(uintptr_t) "the daemon closed the connection: it has no descriptor left; "
                                        "close loaders that are not needed, or raise LimitNOFILE= of the daemon";
        reply.protocol = DLP_PROTOCOL_VERSION;
        reply.error = &body;
        dlp_reply_send(fd, &reply, NULL, 0, MSG_DONTWAIT);
        closer_end_connection(fd, user);
}

static uid_t accept_user_of(int fd) {
        struct ucred peer = { .uid = (uid_t)-1 };
        socklen_t n = sizeof(peer);

        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n);
        return peer.uid;
}

/* There is no descriptor left for the client, so the spare one is given up for it for a moment. Returns false if the
 * client could not be told. */
static bool turn_away(struct server *server) {
        int fd;

        closep(&server->spare_fd);
        fd = accept4(server->options.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
                tell_and_close(fd, accept_user_of(fd));
        server->spare_fd = fcntl(server->options.listen_fd, F_DUPFD_CLOEXEC, 0);
        return fd >= 0;
}

static void on_connection(evutil_socket_t listen_fd, short what, void *userdata) {
        struct server *server = userdata;
        int fd, error;

        if (!closer_has_room()) {
                pause_accepting(server, SHORT_PAUSE_US);
                return;
        }
        fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        error = errno;
        if (fd >= 0) {
                requests_open(server, fd);
                return;
        }
        if (error == EAGAIN || error == EINTR || error == ECONNABORTED)
                return;
        if ((error != EMFILE && error != ENFILE) || !turn_away(server)) {
                log_warning("ctl", "accept: %s; trying again in 0.2 s", strerror(error));
                pause_accepting(server, PAUSE_US);
        }
}

/* Computes how many connections the descriptor limit allows. */
static void find_limits(struct server *server) {
        struct rlimit limit = { .rlim_cur = 1024 };
        uint32_t n;

        getrlimit(RLIMIT_NOFILE, &limit);
        server->n_descriptors_max = limit.rlim_cur < UINT32_MAX ? (uint32_t)limit.rlim_cur : UINT32_MAX;
        n = server->n_descriptors_max > 2 * DESCRIPTORS_RESERVED ? server->n_descriptors_max - DESCRIPTORS_RESERVED
                                                                 : DESCRIPTORS_RESERVED;
        n /= DESCRIPTORS_A_SESSION;
        server->n_sessions_max = n < SESSIONS_MAX ? n : SESSIONS_MAX;
}

int accept_start(struct server *server, struct why *why) {
        find_limits(server);
        server->spare_fd = fcntl(server->options.listen_fd, F_DUPFD_CLOEXEC, 0);
        server->pause_event = event_new(server->options.base, -1, EV_PERSIST, on_pause_end, server);
        server->listen_event = event_new(server->options.base, server->options.listen_fd, EV_READ | EV_PERSIST,
                                         on_connection, server);
        if (!server->pause_event || !server->listen_event || event_add(server->listen_event, NULL) < 0)
                return why_errno(why, -ENOMEM, "ctl: events");
        return 0;
}

void accept_stop(struct server *server) {
        if (server->listen_event)
                event_free(server->listen_event);
        if (server->pause_event)
                event_free(server->pause_event);
        server->listen_event = server->pause_event = NULL;
        closep(&server->spare_fd);
        if (server->options.listen_fd >= 0) /* with the packets of those who were not accepted */
                closer_close(server->options.listen_fd, (uid_t)-1);
        server->spare_fd = server->options.listen_fd = -1;
}
