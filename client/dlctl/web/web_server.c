#include "client/dlctl/web/web_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/dlctl/command.h"
#include "client/dlctl/web/peer.h"
#include "proto/http/visitor.h"

#define PIECE_BYTES 32768u /* of a body, sent at once */

struct server {
        struct server_options options;
        int listen_fd;
        struct visitors visitors;
};

/* What keeps pages of others out. */
static const struct visitor_header HEADERS[] = {
        { "Cache-Control", "no-store" },
        { "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'" },
        { "X-Content-Type-Options", "nosniff" },
        { "X-Frame-Options", "DENY" },
        { "Referrer-Policy", "no-referrer" },
        { "Cross-Origin-Resource-Policy", "same-origin" },
        { NULL, NULL },
};

/* ---- who is answered ----------------------------------------------------------------------------------------- */

static bool is_welcome(const struct server *server, uid_t uid) {
        for (size_t i = 0; i < server->options.n_users; i++)
                if (server->options.users[i] == uid)
                        return true;
        return uid == 0;
}

static bool web_server_is_stranger(void *arg, int fd) {
        uid_t uid;

        return peer_user(fd, &uid) < 0 || !is_welcome(arg, uid);
}

static enum MHD_Result refuse_stranger(struct visitor *visitor) {
        struct MHD_Response *why;
        uid_t uid = (uid_t)-1;
        int error = peer_user(visitor->fd, &uid);

        if (error)
                why = visitor_sentence("The kernel does not tell whose connection this is (%s), so it is refused: this "
                                       "page is for the processes of one user.",
                                       strerror(-error));
        else
                why = visitor_sentence("This page is not for the user with number %u: it shows another user's jobs. "
                                       "Whoever started it can let you in (dlctl web --user NAME), or start your own: "
                                       "dlctl web --port 0.",
                                       uid);
        return visitor_answer(visitor, MHD_HTTP_FORBIDDEN, why);
}

/* Is it one of `names` (an IPv6 address without brackets), whatever its port is? */
static bool host_is_one_of(const char *header, const char *const *names) {
        const char *host = header + (header[0] == '[');
        size_t n = strcspn(host, header[0] == '[' ? "]" : ":");
        const char *rest = host + n;

        if (header[0] == '[' && *rest++ != ']')
                return false;
        if (*rest != '\0' && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")] != '\0'))
                return false;
        for (; *names; names++)
                if (strlen(*names) == n && strncasecmp(*names, host, n) == 0)
                        return true;
        return false;
}

static enum MHD_Result refuse_host(struct visitor *visitor, const char *host) {
        char shown[128]; /* printable ASCII alone: it is a stranger's word */
        size_t n = 0;

        for (; *host && n + 1 < sizeof(shown); host++)
                shown[n++] = *host > ' ' && *host < 0x7f ? *host : '?';
        shown[n] = '\0';
        return visitor_answer(visitor, MHD_HTTP_FORBIDDEN,
                              visitor_sentence("This page does not answer to the name \"%s\", so that no other site "
                                               "can read it through your browser. Use localhost or 127.0.0.1, or start "
                                               "it with: dlctl web --host NAME.",
                                               shown));
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

struct question {
        struct MHD_Connection *request;
        const char *path;
        struct MHD_Response *response; /* the answer */
        unsigned status;
};

static void web_server_hear(void *arg, void *question) {
        const struct server_options *options = &((const struct server *)arg)->options;
        struct question *asked = question;

        asked->response = options->answer(options->arg, asked->request, asked->path, &asked->status);
}

static enum MHD_Result web_server_serve(void *arg, struct visitor *visitor, const char *path) {
        struct server *server = arg;
        struct question question = { .request = visitor->connection, .path = path };
        const char *host = MHD_lookup_connection_value(visitor->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

        if (visitor->is_stranger)
                return refuse_stranger(visitor);
        if (!host)
                return visitor_answer(visitor, MHD_HTTP_BAD_REQUEST,
                                      visitor_sentence("The request does not say which host it wants (header Host)."));
        if (!host_is_one_of(host, server->options.hosts))
                return refuse_host(visitor, host);
        if (!visitors_ask(&server->visitors, &question))
                return MHD_NO;
        return visitor_answer(visitor, question.status, question.response);
}

static ssize_t body_take(void *body, uint64_t place, char *ret_bytes, size_t n_max) {
        (void)place;
        return evbuffer_remove(body, ret_bytes, n_max);
}

static void body_free(void *body) {
        evbuffer_free(body);
}

struct MHD_Response *server_body(const char *type, const char *policy, struct evbuffer *body) {
        struct MHD_Response *response = MHD_create_response_from_callback(evbuffer_get_length(body), PIECE_BYTES,
                                                                          body_take, body, body_free);

        if (!response) {
                evbuffer_free(body);
                return NULL;
        }
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        if (policy)
                MHD_add_response_header(response, "Content-Security-Policy", policy);
        return response;
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

/* Listens there. Returns the socket or a negative errno. */
static int server_listen(const struct sockaddr_storage *address, int n_address) {
        int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1, r;

        if (fd < 0)
                return -errno;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)); /* else a port is taken for a minute */
        if (bind(fd, (const struct sockaddr *)address, (socklen_t)n_address) == 0 && listen(fd, SOMAXCONN) == 0)
                return fd;
        r = -errno;
        close(fd);
        return r;
}

int server_open(struct event_base *base, const struct server_options *options, struct why *why,
                struct server **ret_server) {
        struct sockaddr_storage address;
        struct server *server;
        int n_address = 0, fd, r;

        r = mhd_load(why);
        if (r == 0)
                r = loopback_address(options, why, &address, &n_address);
        if (r < 0)
                return r;
        fd = server_listen(&address, n_address);
        if (fd < 0)
                return not_bound(options, -fd, why);
        server = calloc(1, sizeof(*server));
        if (!server)
                exit(fail(EXIT_REFUSED, "no memory"));
        server->options = *options;
        server->listen_fd = fd;
        const struct visitors_options visitors = {
                .n_max = { 64, 16 }, /* a browser has six connections to a site */
                .silent_s = 75,      /* Prometheus asks each minute at the latest, usually */
                .headers = HEADERS,
                .arg = server,
                .is_stranger = web_server_is_stranger,
                .serve = web_server_serve,
                .hear = web_server_hear,
        };
        r = visitors_open(&server->visitors, base, &visitors, fd);
        if (r < 0) {
                server_close(server);
                return why_errno(why, r, "cannot serve on port %u", options->port);
        }
        *ret_server = server;
        return 0;
}

void server_close(struct server *server) {
        if (!server)
                return;
        visitors_close(&server->visitors);
        close(server->listen_fd);
        free(server);
}

uint16_t server_port(const struct server *server) {
        struct sockaddr_storage address = { 0 };
        socklen_t n = sizeof(address);

        getsockname(server->listen_fd, (struct sockaddr *)&address, &n);
        return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&address)->sin6_port
                                                   : ((struct sockaddr_in *)(void *)&address)->sin_port);
}
