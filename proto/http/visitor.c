#include "proto/http/visitor.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAREWELL_S   2 /* for the other end to close, so that what it still sends does not tear the answer away */
#define SENTENCE_MAX 768u
#define AT_ONCE      8u /* visitors that are let in before others' requests are read */

/* ---- visitors ------------------------------------------------------------------------------------------------ */

static void visitor_free(struct visitor *visitor) {
        struct visitors *visitors = visitor->visitors;
        evutil_socket_t fd = bufferevent_getfd(visitor->stream);

        TAILQ_REMOVE(&visitors->list, visitor, entry);
        visitors->n[visitor->is_stranger]--;
        bufferevent_free(visitor->stream);
        visitors->options.close(fd);
        free(visitor);
}

static void visitor_limit(struct visitor *visitor, int read_s, int write_s) {
        struct timeval read = { .tv_sec = read_s }, write = { .tv_sec = write_s };

        bufferevent_set_timeouts(visitor->stream, &read, &write);
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

static const char *status_phrase(int status) {
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

void visitor_answer(struct visitor *visitor, int status, const char *type, const char *lines, struct evbuffer *body) {
        const struct visitors_options *options = &visitor->visitors->options;
        struct evbuffer *output = bufferevent_get_output(visitor->stream);

        if (status >= 400 && status != 404 && status != 503)
                visitor->keep = false;
        if (evbuffer_add_printf(output, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s%s%s\r\n",
                                status, status_phrase(status), type, evbuffer_get_length(body), lines,
                                status == 405 ? "Allow: GET, HEAD\r\n" : "",
                                visitor->keep ? "" : "Connection: close\r\n") < 0 ||
            (!visitor->head_only && evbuffer_add_buffer(output, body) < 0)) {
                visitor->has_failed = true;
                return;
        }
        evbuffer_drain(body, evbuffer_get_length(body));
        visitor->state = VISITOR_LISTENS;
        bufferevent_disable(visitor->stream, EV_READ); /* no further request before this answer is taken */
        visitor_limit(visitor, options->silent_s, options->slow_s);
}

void visitor_say(struct visitor *visitor, int status, const char *format, ...) {
        struct evbuffer *body = evbuffer_new();
        char text[SENTENCE_MAX];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        if (!body || evbuffer_add_printf(body, "%s\n", text) < 0)
                visitor->has_failed = true;
        else
                visitor_answer(visitor, status, "text/plain; charset=utf-8", visitor->visitors->options.lines, body);
        if (body)
                evbuffer_free(body);
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

static void serve_head(struct visitor *visitor, char *head, size_t n) {
        const struct visitors_options *options = &visitor->visitors->options;
        struct request request = { .host = NULL };
        const char *why = "";
        int status = request_parse(head, n, &request, &why);

        visitor->keep = status == 0 && request.keep;
        visitor->head_only = status == 0 && request.method == REQUEST_HEAD;
        if (options->admit && !options->admit(options->arg, visitor, status == 0 ? &request : NULL))
                return;
        if (status != 0)
                visitor_say(visitor, status, "%s", why);
        else if (request.method == REQUEST_OTHER)
                visitor_say(visitor, 405, "Nothing can be changed here: GET and HEAD are allowed.");
        else
                options->serve(options->arg, &request, visitor);
}

static void serve_too_long(struct visitor *visitor) {
        const struct visitors_options *options = &visitor->visitors->options;

        visitor->keep = visitor->head_only = false;
        if (!options->admit || options->admit(options->arg, visitor, NULL))
                visitor_say(visitor, 431, "The head of the request is longer than %u bytes.", REQUEST_HEAD_MAX);
}

/* What has come is a head and a read of 16 KiB at most: nothing is read while there is an answer to take. (A watermark
 * would say so, too; libevent 2.1 crashes in setting it if there is no memory.) */
static void take_request(struct visitor *visitor) {
        struct visitors *visitors = visitor->visitors;
        struct evbuffer *input = bufferevent_get_input(visitor->stream);
        char head[REQUEST_HEAD_MAX + 1];
        size_t n = (size_t)evbuffer_copyout(input, head, REQUEST_HEAD_MAX), n_head;

        head[n] = '\0';
        n_head = request_head_length(head, n);
        if (n_head == 0 && n < REQUEST_HEAD_MAX)
                return;
        TAILQ_REMOVE(&visitors->list, visitor, entry);
        TAILQ_INSERT_TAIL(&visitors->list, visitor, entry);
        if (n_head > 0) {
                evbuffer_drain(input, n_head);
                head[n_head] = '\0';
                visitor->has_asked = true;
                serve_head(visitor, head, n_head);
        } else {
                serve_too_long(visitor);
        }
        if (visitor->has_failed)
                visitor_free(visitor);
}

static void on_readable(struct bufferevent *stream, void *arg) {
        struct visitor *visitor = arg;

        if (visitor->state == VISITOR_ASKS)
                take_request(visitor);
        else
                evbuffer_drain(bufferevent_get_input(stream), SIZE_MAX);
}

/* All of an answer has been handed to the kernel. */
static void on_written(struct bufferevent *stream, void *arg) {
        struct visitor *visitor = arg;

        if (visitor->state != VISITOR_LISTENS)
                return;
        if (visitor->keep) {
                visitor->state = VISITOR_ASKS;
                bufferevent_enable(stream, EV_READ);
                take_request(visitor); /* the next one may have come with this one */
                return;
        }
        visitor->state = VISITOR_LEAVES;
        shutdown(bufferevent_getfd(stream), SHUT_WR);
        visitor_limit(visitor, FAREWELL_S, FAREWELL_S);
        bufferevent_enable(stream, EV_READ);
        evbuffer_drain(bufferevent_get_input(stream), SIZE_MAX);
}

static void on_end(struct bufferevent *stream, short what, void *arg) {
        (void)stream;
        (void)what;
        visitor_free(arg);
}

/* ---- coming -------------------------------------------------------------------------------------------------- */

/* Who goes first. */
static int patience_with(const struct visitor *visitor) {
        if (visitor->state != VISITOR_ASKS)
                return 0;
        return visitor->has_asked ? 2 : 1;
}

static void make_room(struct visitors *visitors, bool is_stranger) {
        struct visitor *visitor, *first = NULL;

        if (visitors->n[is_stranger] < visitors->options.n_max[is_stranger])
                return;
        TAILQ_FOREACH(visitor, &visitors->list, entry)
                if (visitor->is_stranger == is_stranger && (!first || patience_with(visitor) < patience_with(first)))
                        first = visitor;
        if (first)
                visitor_free(first);
}

/* libevent's listener takes whoever stands in line before its loop does anything else. Processes that connect as fast
 * as they can would so fill all places again and again, and nobody's request would be read. After a few visitors the
 * listener therefore pauses, in which requests are read and other work is done; who comes meanwhile waits in the
 * kernel's line. */
static void pause_listening(struct visitors *visitors, int seconds, int us) {
        struct timeval pause = { .tv_sec = seconds, .tv_usec = us };

        if (event_add(visitors->again, &pause) == 0) /* without memory for that it goes on */
                evconnlistener_disable(visitors->listener);
        visitors->n_at_once = 0;
}

static void on_again(evutil_socket_t fd, short what, void *arg) {
        struct visitors *visitors = arg;

        (void)fd;
        (void)what;
        evconnlistener_enable(visitors->listener);
}

/* Without descriptors a connection cannot be taken, and stays in the line: look again in a second. */
static void on_listen_error(struct evconnlistener *listener, void *arg) {
        (void)listener;
        pause_listening(arg, 1, 0);
}

static void on_visitor(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int n_address,
                       void *arg) {
        struct visitors *visitors = arg;
        const struct visitors_options *options = &visitors->options;
        struct visitor *visitor = calloc(1, sizeof(*visitor));
        struct bufferevent *stream = visitor ? bufferevent_socket_new(evconnlistener_get_base(listener), fd, 0) : NULL;

        (void)address;
        (void)n_address;
        if (!stream) {
                options->close(fd);
                free(visitor);
                return;
        }
        visitor->visitors = visitors;
        visitor->stream = stream;
        if (options->meet)
                options->meet(options->arg, visitor, fd);
        make_room(visitors, visitor->is_stranger);
        TAILQ_INSERT_TAIL(&visitors->list, visitor, entry);
        visitors->n[visitor->is_stranger]++;
        bufferevent_setcb(stream, on_readable, on_written, on_end, visitor);
        visitor_limit(visitor, visitor->is_stranger ? FAREWELL_S : options->silent_s, options->slow_s);
        bufferevent_enable(stream, EV_READ | EV_WRITE);
        if (++visitors->n_at_once == AT_ONCE)
                pause_listening(visitors, 0, options->pause_us);
}

int visitors_open(struct visitors *visitors, struct event_base *base, const struct visitors_options *options, int fd,
                  const struct sockaddr *address, int n_address) {
        const unsigned flags = LEV_OPT_CLOSE_ON_EXEC | (address ? LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE : 0);

        *visitors = (struct visitors){ .options = *options };
        TAILQ_INIT(&visitors->list);
        errno = 0;
        visitors->listener = address ? evconnlistener_new_bind(base, on_visitor, visitors, flags, SOMAXCONN, address,
                                                               n_address)
                                     : evconnlistener_new(base, on_visitor, visitors, flags, 0, fd);
        if (!visitors->listener)
                return errno ? -errno : -ENOMEM;
        evconnlistener_set_error_cb(visitors->listener, on_listen_error);
        visitors->again = event_new(base, -1, 0, on_again, visitors);
        return visitors->again ? 0 : -ENOMEM;
}

void visitors_close(struct visitors *visitors) {
        struct visitor *visitor;

        while ((visitor = TAILQ_FIRST(&visitors->list)))
                visitor_free(visitor);
        if (visitors->listener)
                evconnlistener_free(visitors->listener);
        if (visitors->again)
                event_free(visitors->again);
}
