#include "client/dlctl/inquiry/inquiry_reach.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/private.h"

static int try_private(struct dli_connection *connection, const char *client, struct why *reason) {
        struct dlp_private place;
        int r;

        r = dlp_private_find(&place, reason);
        if (r < 0)
                return r;
        r = dli_connection_try(connection, place.socket, client, reason);
        if (r == -ECONNREFUSED)
                why_set(reason, r, "no private daemon runs for this user; a loader with a path starts one");
        return r;
}

int reach_try(const struct context *context, const char *client, struct dli_connection *connection, struct why *reason,
              enum reach *ret_reach) {
        const char *variable = getenv("DATALOADERD_SOCKET");
        int r;

        if (context->is_private) {
                *ret_reach = REACH_PRIVATE;
                return try_private(connection, client, reason);
        }
        *ret_reach = context->socket || (variable && *variable) ? REACH_GIVEN : REACH_NODE;
        r = dli_connection_try(connection, context->socket, client, reason);
        if (r != -ECONNREFUSED || *ret_reach == REACH_GIVEN)
                return r;
        dli_connection_close(connection);
        if (try_private(connection, client, reason) == 0) {
                *ret_reach = REACH_PRIVATE;
                return 0;
        }
        return why_set(reason, r,
                       "no daemon runs for this user: neither the node's (%s) nor a private one, which a loader with a "
                       "path starts",
                       dlp_socket_system());
}

const char *reach_name(enum reach reach) {
        static const char *const NAMES[] = { "given", "node", "private" };

        return NAMES[reach];
}
