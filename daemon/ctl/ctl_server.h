/* ctl/ctl_server.h: the socket and its sessions: who is connected, what they ask for, what they are served.
 *
 * Runs on the main thread's event loop and owns no thread. A request is one packet; each handler is a file
 * (handlers.h). A connection is a session; a session that attached owns a feed until it closes. When it closes, the
 * rank is gone. */
#pragma once

#include "daemon/ctl/server.h"

/* Begins to accept. If it fails, everything is undone and the socket is closed. */
int server_start(struct server *server, const struct server_options *options, struct why *why);

/* For the pipeline's callbacks `broken` and `desk_filled`: the main thread looks at the feed. Any thread. */
void server_on_news(struct server *server, struct feed *feed);

/* Accepts no new connections and no new ranks; batches that were begun are completed. */
void server_drain(struct server *server);

/* Has any batch been begun and not published yet? */
bool server_is_busy(const struct server *server);

/* Closes all sessions and removes their feeds. A session that is attaching ends when its background work does. */
void server_stop(struct server *server);

/* Call it after background_stop(). */
void server_fini(struct server *server);
