/* ctl/metrics/metrics_http.h: the metrics over HTTP, on a unix socket of their own.
 *
 * Who may connect is decided by the socket's permissions, and whoever connects sees the whole node. A thread of its own
 * serves the visitors; the main thread makes the text when that thread asks for it, and does nothing else for them: a
 * text is made anew only when making them would take a fiftieth of the time at most; until then all get the same. */
#pragma once

struct event_base;
struct metrics_http;
struct server;

/* Serves on a listening socket, which it takes over in any case. Returns 0 or a negative errno. `server` outlives it.
 */
int metrics_http_open(struct event_base *base, int listen_fd, struct server *server, struct metrics_http **ret_http);

/* Closes all. Takes NULL. */
void metrics_http_close(struct metrics_http *http);
