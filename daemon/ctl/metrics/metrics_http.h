/* ctl/metrics/metrics_http.h: the metrics over HTTP, on a unix socket of their own.
 *
 * Who may connect is decided by the socket's permissions, and whoever connects sees the whole node. Nothing that
 * visitors do takes more than a small part of the main thread: there are few at a time, each with one request under
 * way, and a text is made anew only when making them would take a fiftieth of the time at most; until then all get the
 * same. */
#pragma once

struct event_base;
struct metrics_http;
struct server;

/* Serves on a listening socket, which it takes over in any case. Returns 0 or -ENOMEM. `server` outlives it. */
int metrics_http_open(struct event_base *base, int listen_fd, struct server *server, struct metrics_http **ret_http);

/* Closes all. Takes NULL. */
void metrics_http_close(struct metrics_http *http);
