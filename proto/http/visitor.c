#include "proto/http/visitor.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES   16384u /* for the heads of request and answer: a browser sends a tenth of it */
#define STRANGER_S   2u
#define SENTENCE_MAX 768u
#define LEAVING_MAX  16u /* that are sent away are still there for a moment */

/* ---- coming and going ---------------------------------------------------------------------------------------- */

/* Who goes first. */
static int patience_with(const struct visitor *visitor) {
        return visitor->listens ? 0 : visitor->has_asked ? 2 : 1;
}

static void visitor_strike(struct visitor *visitor) {
        TAILQ_REMOVE(&visitor->visitors->list, visitor, entry);
        visitor->visitors->n[visitor->is_stranger]--;
        visitor->has_left = true;
}

/* The one that goes finds its connection shut; libmicrohttpd then does as well, and closes it. */
static void make_room(struct visitors *visitors, bool is_stranger) {
        struct visitor *visitor, *first = NULL;

        if (visitors->n[is_stranger] < visitors->options.n_max[is_stranger])
                return;
        TAILQ_FOREACH(visitor, &visitors->list, entry)
                if (visitor->is_stranger == is_stranger && (!first || patience_with(visitor) < patience_with(first)))
                        first = visitor;
        shutdown(first->fd, SHUT_RDWR);
        visitor_strike(first);
}

/* NULL: no memory; what it asks is not heard. */
static struct visitor *visitor_new(struct visitors *visitors, struct MHD_Connection *connection, int fd) {
        const struct visitors_options *options = &visitors->options;
        struct visitor *visitor = calloc(1, sizeof(*visitor));

        if (!visitor)
                return NULL;
        visitor->visitors = visitors;
        visitor->connection = connection;
        visitor->fd = fd;
        visitor->is_stranger = options->is_stranger && options->is_stranger(options->arg, fd);
        if (visitor->is_stranger)
                MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, STRANGER_S);
        make_room(visitors, visitor->is_stranger);
        TAILQ_INSERT_TAIL(&visitors->list, visitor, entry);
        visitors->n[visitor->is_stranger]++;
        return visitor;
}

static void visitor_on_connection(void *arg, struct MHD_Connection *connection, void **place,
                                  enum MHD_ConnectionNotificationCode what) {
        int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        struct visitors *visitors = arg;
        struct visitor *visitor = *place;

        if (what == MHD_CONNECTION_NOTIFY_STARTED) {
                *place = visitor_new(visitors, connection, fd);
                return;
        }
        if (visitors->options.leave)
                visitors->options.leave(fd);
        if (visitor && !visitor->has_left)
                visitor_strike(visitor);
        free(visitor);
}

/* ---- requests and answers ------------------------------------------------------------------------------------ */

struct MHD_Response *visitor_sentence(const char *format, ...) {
        char text[SENTENCE_MAX];
        struct MHD_Response *response;
        va_list arguments;
        size_t n;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text) - 1, format, arguments);
        va_end(arguments);
        n = strlen(text);
        text[n] = '\n';
        response = MHD_create_response_from_buffer(n + 1, text, MHD_RESPMEM_MUST_COPY);
        if (response)
                MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
        return response;
}

enum MHD_Result visitor_answer(struct visitor *visitor, unsigned status, struct MHD_Response *response) {
        bool is_refusal = status >= 400 && status != MHD_HTTP_NOT_FOUND && status != MHD_HTTP_SERVICE_UNAVAILABLE;
        enum MHD_Result r = response ? MHD_YES : MHD_NO;

        if (r && is_refusal)
                r = MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
        for (const struct visitor_header *header = visitor->visitors->options.headers; r && header->name; header++)
                if (!MHD_get_response_header(response, header->name))
                        r = MHD_add_response_header(response, header->name, header->value);
        if (r)
                r = MHD_queue_response(visitor->connection, status, response);
        if (response)
                MHD_destroy_response(response);
        return r;
}

static enum MHD_Result refuse_method(struct visitor *visitor) {
        struct MHD_Response *response = visitor_sentence("Nothing can be changed here: GET and HEAD are allowed.");

        if (response)
                MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
        return visitor_answer(visitor, MHD_HTTP_METHOD_NOT_ALLOWED, response);
}

/* Comes once with the head, perhaps with what the request brings, which nobody reads, and once at its end. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path, const char *method,
                                  const char *version, const char *content, size_t *n_content, void **is_begun) {
        struct visitor *visitor =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
        struct visitors *visitors = arg;
        bool is_new = !*is_begun;

        (void)version;
        (void)content;
        if (!visitor || visitor->has_left)
                return MHD_NO;
        if (is_new) {
                *is_begun = visitor;
                visitor->has_asked = visitor->listens = true;
                TAILQ_REMOVE(&visitors->list, visitor, entry);
                TAILQ_INSERT_TAIL(&visitors->list, visitor, entry);
                if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
                        return refuse_method(visitor);
        }
        if (is_new || *n_content > 0) {
                *n_content = 0;
                return MHD_YES;
        }
        return visitors->options.serve(visitors->options.arg, visitor, path);
}

/* All of an answer has been handed to the kernel, or never will be. */
static void on_end(void *arg, struct MHD_Connection *connection, void **is_begun, enum MHD_RequestTerminationCode how) {
        struct visitor *visitor = *is_begun;

        (void)arg;
        (void)connection;
        (void)how;
        if (visitor)
                visitor->listens = false;
}

/* ---- questions ----------------------------------------------------------------------------------------------- */

bool visitors_ask(struct visitors *visitors, void *question) {
        bool ends;

        pthread_mutex_lock(&visitors->lock);
        visitors->question = question;
        visitors->is_asked = !visitors->ends;
        if (visitors->is_asked)
                eventfd_write(visitors->asked_fd, 1);
        while (visitors->is_asked && !visitors->ends)
                pthread_cond_wait(&visitors->heard, &visitors->lock);
        ends = visitors->ends;
        pthread_mutex_unlock(&visitors->lock);
        return !ends;
}

/* The visitors' thread waits, so nothing that it has in its question moves. */
static void on_asked(evutil_socket_t fd, short what, void *arg) {
        struct visitors *visitors = arg;
        eventfd_t n;

        (void)what;
        eventfd_read(fd, &n);
        visitors->options.hear(visitors->options.arg, visitors->question);
        pthread_mutex_lock(&visitors->lock);
        visitors->is_asked = false;
        pthread_cond_signal(&visitors->heard);
        pthread_mutex_unlock(&visitors->lock);
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

static struct MHD_Daemon *start_daemon(struct visitors *visitors, int listen_fd) {
        const struct visitors_options *options = &visitors->options;
        unsigned n_max = options->n_max[0] + options->n_max[1] + LEAVING_MAX;

        const struct MHD_OptionItem items[] = {
                { MHD_OPTION_LISTEN_SOCKET, listen_fd, NULL },
                { MHD_OPTION_CONNECTION_LIMIT, n_max, NULL },
                { MHD_OPTION_CONNECTION_TIMEOUT, options->silent_s, NULL },
                { MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->head_bytes ? options->head_bytes : HEAD_BYTES, NULL },
                { MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)visitor_on_connection, visitors },
                { MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_end, visitors },
                { MHD_OPTION_END, 0, NULL },
        };

        return MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request,
                                visitors, MHD_OPTION_ARRAY, items, MHD_OPTION_END);
}

/* A libmicrohttpd that has not started has closed its listening socket, or has not: it does not say. */
static void close_if_open(int copy, const struct stat *socket) {
        struct stat found;

        if (fstat(copy, &found) == 0 ? found.st_ino == socket->st_ino && found.st_dev == socket->st_dev
                                     : errno != EBADF)
                close(copy);
}

int visitors_open(struct visitors *visitors, struct event_base *base, const struct visitors_options *options,
                  int listen_fd) {
        struct stat socket;
        int copy;

        *visitors = (struct visitors){ .options = *options };
        TAILQ_INIT(&visitors->list);
        pthread_mutex_init(&visitors->lock, NULL);
        pthread_cond_init(&visitors->heard, NULL);
        visitors->asked_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (visitors->asked_fd < 0)
                return -errno;
        visitors->asked = event_new(base, visitors->asked_fd, EV_READ | EV_PERSIST, on_asked, visitors);
        if (!visitors->asked || event_add(visitors->asked, NULL) < 0)
                return -ENOMEM;
        copy = fstat(listen_fd, &socket) == 0 ? fcntl(listen_fd, F_DUPFD_CLOEXEC, 0) : -1;
        if (copy < 0)
                return -errno;
        visitors->daemon = start_daemon(visitors, copy);
        if (visitors->daemon)
                return 0;
        close_if_open(copy, &socket);
        return -ENOMEM;
}

void visitors_close(struct visitors *visitors) {
        pthread_mutex_lock(&visitors->lock);
        visitors->ends = true;
        pthread_cond_signal(&visitors->heard);
        pthread_mutex_unlock(&visitors->lock);
        if (visitors->daemon)
                MHD_stop_daemon(visitors->daemon);
        if (visitors->asked)
                event_free(visitors->asked);
        if (visitors->asked_fd >= 0)
                close(visitors->asked_fd);
        pthread_cond_destroy(&visitors->heard);
        pthread_mutex_destroy(&visitors->lock);
}
