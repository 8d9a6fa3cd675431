#include "client/dlctl/web/web_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/dlctl/command.h"
#include "client/dlctl/web/peer.h"
#include "proto/http/visitor.h"

#define SECURITY                                                                                                       \
        "Cache-Control: no-store\r\nContent-Security-Policy: %s\r\nX-Content-Type-Options: nosniff\r\n"                \
        "X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"

struct server {
        struct server_options options;
        struct visitors visitors;
        char lines[512], page_lines[1024]; /* of the heads of answers */
};

/* ---- who is answered ----------------------------------------------------------------------------------------- */

static bool is_welcome(const struct server *server, uid_t uid) {
        for (size_t i = 0; i < server->options.n_users; i++)
                if (server->options.users[i] == uid)
                        return true;
        return uid == 0;
}

/* An answer goes out in several writes. On a connection that is kept, the kernel would hold its last piece back until
 * the visitor confirms the one before (Nagle), which the visitor delays as well: 40 ms of each request. Without it
 * answers are slower, and no more than that. */
static void send_at_once(evutil_socket_t fd) {
        int yes = 1;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static void meet(void *arg, struct visitor *visitor, evutil_socket_t fd) {
        uid_t uid;

        send_at_once(fd);
        visitor->is_stranger = peer_user(fd, &uid) < 0 || !is_welcome(arg, uid);
}

static void refuse_stranger(struct visitor *visitor) {
        uid_t uid = (uid_t)-1;
        int error = peer_user(bufferevent_getfd(visitor->stream), &uid);

        visitor->keep = false;
        if (error)
                visitor_say(
                        visitor, 403,
                        "The kernel does not tell whose connection this is (%s), so it is refused: this page is for "
                        "the processes of one user.",
                        strerror(-error));
        else
                visitor_say(
                        visitor, 403,
                        "This page is not for the user with number %u: it shows another user's jobs. Whoever started "
                        "it can let you in (dlctl web --user NAME), or start your own: dlctl web --port 0.",
                        uid);
}

/* Printable ASCII alone: the host is a stranger's word. */
static void clean(const char *text, char *ret_text, size_t size) {
        size_t n = 0;

        for (; *text && n + 1 < size; text++)
                ret_text[n++] = *text > ' ' && *text < 0x7f ? *text : '?';
        ret_text[n] = '\0';
}

static bool admit(void *arg, struct visitor *visitor, const struct request *request) {
        const struct server *server = arg;
        char host[128];

        if (visitor->is_stranger) {
                refuse_stranger(visitor);
                return false;
        }
        if (!request || request_host_is(request, server->options.hosts))
                return true;
        clean(request->host, host, sizeof(host));
        visitor_say(visitor, 403,
                    "This page does not answer to the name \"%s\", so that no other site can read it through your "
                    "browser. Use localhost or 127.0.0.1, or start it with: dlctl web --host NAME.",
                    host);
        return false;
}

static void serve(void *arg, const struct request *request, struct visitor *visitor) {
        const struct server *server = arg;

        server->options.serve(server->options.arg, request, visitor);
}

void server_answer(struct visitor *visitor, int status, const char *type, struct evbuffer *body) {
        const struct server *server = visitor->visitors->options.arg;
        bool is_page = strncmp(type, "text/html", 9) == 0;

        visitor_answer(visitor, status, type, is_page ? server->page_lines : server->lines, body);
}

static void web_server_end(evutil_socket_t fd) {
        close(fd);
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

static int loopback_address(const struct server_options *options, struct why *why, struct sockaddr_storage *ret_address,
                            int *ret_n) {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(options->port) };
        struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(options->port) };

        memset(ret_address, 0, sizeof(*ret_address));
        if (inet_pton(AF_INET, options->address, &in.sin_addr) == 1 && (ntohl(in.sin_addr.s_addr) >> 24) == 127) {
                memcpy(ret_address, &in, sizeof(in));
                *ret_n = sizeof(in);
                return 0;
        }
        if (inet_pton(AF_INET6, options->address, &in6.sin6_addr) == 1 && IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr)) {
                memcpy(ret_address, &in6, sizeof(in6));
                *ret_n = sizeof(in6);
                return 0;
        }
        return why_set(why, -EINVAL,
                       "--address: \"%s\" is not an address of this machine alone; choose 127.0.0.1 or ::1. From "
                       "another machine use ssh -L %u:localhost:%u, or a proxy here",
                       options->address, options->port, options->port);
}

static int not_bound(const struct server_options *options, int error, struct why *why) {
        if (error == EADDRINUSE)
                return why_set(
                        why, -error,
                        "port %u of %s is taken by another program; choose another one with --port (0: one that is "
                        "free)",
                        options->port, options->address);
        if (error == EACCES)
                return why_set(why, -error, "port %u is reserved for root; choose one above 1023 with --port",
                               options->port);
        return why_errno(why, -error, "cannot listen on port %u of %s", options->port, options->address);
}

int server_open(struct event_base *base, const struct server_options *options, struct why *why,
                struct server **ret_server) {
        struct sockaddr_storage address;
        struct server *server;
        int n_address = 0, r;

        r = loopback_address(options, why, &address, &n_address);
        if (r < 0)
                return r;
        server = calloc(1, sizeof(*server));
        if (!server)
                return why_set(why, -ENOMEM, "no memory");
        server->options = *options;
        snprintf(server->lines, sizeof(server->lines), SECURITY, "default-src 'none'; frame-ancestors 'none'");
        snprintf(server->page_lines, sizeof(server->page_lines), SECURITY, options->policy);
        const struct visitors_options visitors = {
                .n_max = { 64, 16 }, /* a browser has six connections to a site */
                .silent_s = 75,      /* Prometheus asks each minute at the latest, usually */
                .slow_s = 20,
                .lines = server->lines,
                .arg = server,
                .meet = meet,
                .admit = admit,
                .serve = serve,
                .close = web_server_end,
        };
        r = visitors_open(&server->visitors, base, &visitors, -1, (struct sockaddr *)&address, n_address);
        if (r < 0) {
                r = not_bound(options, -r, why);
                server_close(server);
                return r;
        }
        *ret_server = server;
        return 0;
}

void server_close(struct server *server) {
        if (!server)
                return;
        visitors_close(&server->visitors);
        free(server);
}

uint16_t server_port(const struct server *server) {
        struct sockaddr_storage address = { 0 };
        socklen_t n = sizeof(address);

        getsockname(evconnlistener_get_fd(server->visitors.listener), (struct sockaddr *)&address, &n);
        return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&address)->sin6_port
                                                   : ((struct sockaddr_in *)(void *)&address)->sin_port);
}
