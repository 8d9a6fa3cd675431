#include "client/dlctl/web/web_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/dlctl/command.h"
#include "client/dlctl/web/peer.h"
#include "proto/http/http_intake.h"

#define WELCOME_MAX  64u /* visitors at once; a browser has six connections to a site */
#define STRANGER_MAX 16u
#define SILENT_S     75 /* a connection without a request: Prometheus asks each minute at the latest, usually */
#define SLOW_S       20 /* an answer of which nothing is taken */
#define FAREWELL_S   2  /* for the other end to close, so that what it still sends does not tear the answer away */
#define SENTENCE_MAX 768u

enum visitor_state {
        VISITOR_ASKS,
        VISITOR_LISTENS, /* takes an answer */
        VISITOR_LEAVES,  /* has its last one: what it still sends is thrown away */
};

struct visitor {
        TAILQ_ENTRY(visitor) entry;
        struct server *server;
        struct bufferevent *stream;
        enum visitor_state state;
        bool is_stranger, has_asked, keep, head_only;
        int peer_error; /* of a stranger: what the kernel said instead of: */
        uid_t uid;
};

TAILQ_HEAD(visitors, visitor);

struct server {
        struct server_options options;
        struct intake intake;
        struct visitors visitors; /* the one that has been silent longest is the first */
        unsigned n_visitors[2];   /* [is_stranger] */
};

/* ---- visitors ------------------------------------------------------------------------------------------------ */

static void web_server_visitor_free(struct visitor *visitor) {
        struct server *server = visitor->server;

        TAILQ_REMOVE(&server->visitors, visitor, entry);
        server->n_visitors[visitor->is_stranger]--;
        bufferevent_free(visitor->stream); /* closes the socket */
        free(visitor);
}

static void web_server_visitor_limit(struct visitor *visitor, int read_s, int write_s) {
        struct timeval read = { .tv_sec = read_s }, write = { .tv_sec = write_s };

        bufferevent_set_timeouts(visitor->stream, &read, &write);
}

static void visitor_is_heard(struct visitor *visitor) {
        struct visitors *visitors = &visitor->server->visitors;

        TAILQ_REMOVE(visitors, visitor, entry);
        TAILQ_INSERT_TAIL(visitors, visitor, entry);
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

static const char *phrase_of(int status) {
        switch (status) {
        case 200:
                return "OK";
        case 400:
                return "Bad Request";
        case 403:
                return "Forbidden";
        case 404:
                return "Not Found";
        case 405:
                return "Method Not Allowed";
        case 413:
                return "Content Too Large";
        case 431:
                return "Request Header Fields Too Large";
        case 503:
                return "Service Unavailable";
        case 505:
                return "HTTP Version Not Supported";
        default:
                return "Error";
        }
}

void visitor_answer(struct visitor *visitor, int status, const char *type, struct evbuffer *body) {
        struct evbuffer *output = bufferevent_get_output(visitor->stream);
        bool is_page = strncmp(type, "text/html", 9) == 0;

        if (status >= 400 && status != 404 && status != 503)
                visitor->keep = false;
        evbuffer_add_printf(
                output,
                "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
                "Content-Security-Policy: %s\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
                "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n%s%s\r\n",
                status, phrase_of(status), type, evbuffer_get_length(body),
                is_page ? visitor->server->options.policy : "default-src 'none'; frame-ancestors 'none'",
                status == 405 ? "Allow: GET, HEAD\r\n" : "", visitor->keep ? "" : "Connection: close\r\n");
        if (visitor->head_only)
                evbuffer_drain(body, evbuffer_get_length(body));
        evbuffer_add_buffer(output, body);
        visitor->state = VISITOR_LISTENS;
        bufferevent_disable(visitor->stream, EV_READ); /* no further request before this answer is taken */
        web_server_visitor_limit(visitor, SILENT_S, SLOW_S);
}

void visitor_say(struct visitor *visitor, int status, const char *format, ...) {
        struct evbuffer *body = evbuffer_new();
        char text[SENTENCE_MAX];
        va_list arguments;

        if (!body)
                exit(fail(EXIT_REFUSED, "no memory"));
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        evbuffer_add_printf(body, "%s\n", text);
        visitor_answer(visitor, status, "text/plain; charset=utf-8", body);
        evbuffer_free(body);
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

static void refuse_stranger(struct visitor *visitor) {
        if (visitor->peer_error)
                visitor_say(
                        visitor, 403,
                        "The kernel does not tell whose connection this is (%s), so it is refused: this page is for "
                        "the processes of one user.",
                        strerror(-visitor->peer_error));
        else
                visitor_say(
                        visitor, 403,
                        "This page is not for the user with number %u: it shows another user's jobs. Whoever started "
                        "it can let you in (dlctl web --user NAME), or start your own: dlctl web --port 0.",
                        visitor->uid);
}

/* Printable ASCII alone: the host is a stranger's word. */
static void web_server_clean(const char *text, char *ret_text, size_t size) {
        size_t n = 0;

        for (; *text && n + 1 < size; text++)
                ret_text[n++] = *text > ' ' && *text < 0x7f ? *text : '?';
        ret_text[n] = '\0';
}

static void web_server_serve(struct visitor *visitor, char *head, size_t n) {
        const struct server_options *options = &visitor->server->options;
        struct request request = { .host = NULL };
        const char *why = "";
        int status;

        status = request_parse(head, n, &request, &why);
        visitor->keep = status == 0 && request.keep;
        visitor->head_only = status == 0 && request.method == REQUEST_HEAD;
        if (visitor->is_stranger) {
                visitor->keep = false;
                refuse_stranger(visitor);
        } else if (status != 0) {
                visitor_say(visitor, status, "%s", why);
        } else if (!request_host_is(&request, options->hosts)) {
                char host[128];

                web_server_clean(request.host, host, sizeof(host));
                visitor_say(visitor, 403,
                            "This page does not answer to the name \"%s\", so that no other site can read it through "
                            "your browser. Use localhost or 127.0.0.1, or start it with: dlctl web --host NAME.",
                            host);
        } else if (request.method == REQUEST_OTHER) {
                visitor_say(visitor, 405, "Nothing can be changed here: GET and HEAD are allowed.");
        } else {
                options->serve(options->arg, &request, visitor);
        }
}

static void web_server_take_requests(struct visitor *visitor) {
        struct evbuffer *input = bufferevent_get_input(visitor->stream);
        char head[REQUEST_HEAD_MAX + 1];
        size_t n;

        if (visitor->state != VISITOR_ASKS)
                return;
        n = (size_t)evbuffer_copyout(input, head, REQUEST_HEAD_MAX);
        head[n] = '\0';
        n = request_head_length(head, n);
        if (n > 0) {
                evbuffer_drain(input, n);
                head[n] = '\0';
                visitor->has_asked = true;
                visitor_is_heard(visitor);
                web_server_serve(visitor, head, n);
        } else if (evbuffer_get_length(input) >= REQUEST_HEAD_MAX) {
                visitor->keep = false;
                visitor->head_only = false;
                if (visitor->is_stranger)
                        refuse_stranger(visitor);
                else
                        visitor_say(visitor, 431, "The head of the request is longer than %u bytes.", REQUEST_HEAD_MAX);
        }
}

static void web_server_on_readable(struct bufferevent *stream, void *arg) {
        struct visitor *visitor = arg;

        if (visitor->state == VISITOR_LEAVES)
                evbuffer_drain(bufferevent_get_input(stream), SIZE_MAX);
        else
                web_server_take_requests(visitor);
}

/* All of an answer has been handed to the kernel. */
static void web_server_on_written(struct bufferevent *stream, void *arg) {
        struct visitor *visitor = arg;

        if (visitor->state != VISITOR_LISTENS)
                return;
        if (visitor->keep) {
                visitor->state = VISITOR_ASKS;
                bufferevent_enable(stream, EV_READ);
                web_server_take_requests(visitor); /* the next one may have come with this one */
                return;
        }
        visitor->state = VISITOR_LEAVES;
        shutdown(bufferevent_getfd(stream), SHUT_WR);
        bufferevent_setwatermark(stream, EV_READ, 0, 0);
        web_server_visitor_limit(visitor, FAREWELL_S, FAREWELL_S);
        bufferevent_enable(stream, EV_READ);
        evbuffer_drain(bufferevent_get_input(stream), SIZE_MAX);
}

static void web_server_on_end(struct bufferevent *stream, short what, void *arg) {
        (void)stream;
        (void)what;
        web_server_visitor_free(arg);
}

/* ---- coming -------------------------------------------------------------------------------------------------- */

static bool is_welcome(const struct server *server, uid_t uid) {
        for (size_t i = 0; i < server->options.n_users; i++)
                if (server->options.users[i] == uid)
                        return true;
        return uid == 0;
}

/* Who goes first: a visitor that does not take his answer, one that has never asked, one that is between two questions.
 */
static int patience_with(const struct visitor *visitor) {
        if (visitor->state == VISITOR_LISTENS)
                return 0;
        return visitor->has_asked ? 2 : 1;
}

/* Of those the one that has been silent longest. */
static void web_server_make_room(struct server *server, bool is_stranger) {
        struct visitor *visitor, *first = NULL;

        if (server->n_visitors[is_stranger] < (is_stranger ? STRANGER_MAX : WELCOME_MAX))
                return;
        TAILQ_FOREACH(visitor, &server->visitors, entry)
                if (visitor->is_stranger == is_stranger && (!first || patience_with(visitor) < patience_with(first)))
                        first = visitor;
        if (first)
                web_server_visitor_free(first);
}

/* An answer goes out in several writes. On a connection that is kept, the kernel would hold its last piece back until
 * the visitor confirms the one before (Nagle), which the visitor delays as well: 40 ms of each request. Without it
 * answers are slower, and no more than that. */
static void send_at_once(evutil_socket_t fd) {
        int yes = 1;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static void web_server_on_visitor(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                                  int n_address, void *arg) {
        struct server *server = arg;
        struct visitor *visitor = calloc(1, sizeof(*visitor));
        struct bufferevent *stream = bufferevent_socket_new(evconnlistener_get_base(listener), fd,
                                                            BEV_OPT_CLOSE_ON_FREE);

        (void)address;
        (void)n_address;
        if (!visitor || !stream) {
                if (stream)
                        bufferevent_free(stream);
                else
                        close(fd);
                free(visitor);
                return;
        }
        visitor->server = server;
        visitor->stream = stream;
        send_at_once(fd);
        visitor->peer_error = peer_user(fd, &visitor->uid);
        visitor->is_stranger = visitor->peer_error || !is_welcome(server, visitor->uid);
        web_server_make_room(server, visitor->is_stranger);
        TAILQ_INSERT_TAIL(&server->visitors, visitor, entry);
        server->n_visitors[visitor->is_stranger]++;
        bufferevent_setcb(stream, web_server_on_readable, web_server_on_written, web_server_on_end, visitor);
        bufferevent_setwatermark(stream, EV_READ, 0, REQUEST_HEAD_MAX);
        web_server_visitor_limit(visitor, visitor->is_stranger ? FAREWELL_S : SILENT_S, SLOW_S);
        bufferevent_enable(stream, EV_READ | EV_WRITE);
        intake_count(&server->intake);
}

static void web_server_on_listen_error(struct evconnlistener *listener, void *arg) {
        struct server *server = arg;

        (void)listener;
        intake_lacks(&server->intake);
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
        struct evconnlistener *listener;
        struct server *server;
        int n_address = 0, r;

        r = loopback_address(options, why, &address, &n_address);
        if (r < 0)
                return r;
        server = calloc(1, sizeof(*server));
        if (!server)
                return why_set(why, -ENOMEM, "no memory");
        server->options = *options;
        TAILQ_INIT(&server->visitors);
        listener = evconnlistener_new_bind(base, web_server_on_visitor, server,
                                           LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, SOMAXCONN,
                                           (struct sockaddr *)&address, n_address);
        r = intake_begin(&server->intake, base, listener, 0);
        if (r < 0) {
                r = not_bound(options, -r, why);
                server_close(server);
                return r;
        }
        evconnlistener_set_error_cb(listener, web_server_on_listen_error);
        *ret_server = server;
        return 0;
}

void server_close(struct server *server) {
        struct visitor *visitor;

        if (!server)
                return;
        while ((visitor = TAILQ_FIRST(&server->visitors)))
                web_server_visitor_free(visitor);
        intake_end(&server->intake);
        free(server);
}

uint16_t server_port(const struct server *server) {
        struct sockaddr_storage address = { 0 };
        socklen_t n = sizeof(address);

        getsockname(evconnlistener_get_fd(server->intake.listener), (struct sockaddr *)&address, &n);
        return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&address)->sin6_port
                                                   : ((struct sockaddr_in *)(void *)&address)->sin_port);
}
