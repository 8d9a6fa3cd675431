#include "daemon/fetch/engine/servers.h"

#include <string.h>

#include "daemon/fetch/retry.h"

#define TIMES_KNOWN_MIN  100u /* answers, before the slowest hundredth of them means anything */
#define TIMES_REFRESH    32u
#define LATE_TO_MEDIAN   3u
#define SMALLEST_N_UNTIL 1024u /* side by side, above which a limit is none: a fetcher has no more connections */

static void clear_row(struct server *server) {
        memset(server, 0, sizeof(*server));
        server->n_most = SERVER_N_UNLIMITED;
        TAILQ_INIT(&server->waiting[0]);
        TAILQ_INIT(&server->waiting[1]);
        TAILQ_INIT(&server->unanswered);
}

void servers_init(struct servers *servers) {
        servers->n_rows = 1;
        clear_row(&servers->rows[0]);
        servers->rows[0].is_found = true; /* it stands for many */
}

static size_t server_bytes(const char *url) {
        const char *slashes = strstr(url, "://");
        size_t n_bytes = slashes ? (size_t)(slashes - url) + 3 : 0;

        return n_bytes + strcspn(url + n_bytes, "/?#");
}

static bool server_is_idle(const struct server *server) {
        return server->n_running == 0 && TAILQ_EMPTY(&server->waiting[0]) && TAILQ_EMPTY(&server->waiting[1]);
}

/* When a row was, or will be, of use for the last time. */
static uint64_t useful_ns(const struct server *server) {
        return server->until_ns > server->used_ns ? server->until_ns : server->used_ns;
}

/* An empty row, or that of the idle server which is the least missed; the shared one if all are busy. */
static struct server *servers_make_room(struct servers *servers) {
        struct server *least = NULL;

        if (servers->n_rows <= SERVERS_MAX)
                return &servers->rows[servers->n_rows++];
        for (uint32_t i = 1; i < servers->n_rows; i++) {
                struct server *server = &servers->rows[i];

                if (server_is_idle(server) && (!least || useful_ns(server) < useful_ns(least)))
                        least = server;
        }
        return least ? least : &servers->rows[0];
}

struct server *servers_get(struct servers *servers, const char *url, uint64_t now_ns) {
        size_t n_bytes = server_bytes(url);
        struct server *server = NULL;

        for (uint32_t i = 1; i < servers->n_rows && !server; i++)
                if (strncmp(servers->rows[i].name, url, n_bytes) == 0 && servers->rows[i].name[n_bytes] == '\0')
                        server = &servers->rows[i];
        if (!server) {
                server = n_bytes < sizeof(server->name) ? servers_make_room(servers) : &servers->rows[0];
                if (server != &servers->rows[0]) {
                        clear_row(server);
                        memcpy(server->name, url, n_bytes);
                }
        }
        server->used_ns = now_ns;
        return server;
}

bool server_is_open(const struct server *server, uint64_t now_ns) {
        return now_ns >= server->until_ns && server->n_running < server->n_most &&
               (server->is_found || server->n_running == 0);
}

void server_answered(struct server *server, uint64_t first_byte_us) {
        server->n_refused = 0;
        server->is_found = true;
        if (server->n_most != SERVER_N_UNLIMITED && ++server->n_good >= server->n_most) {
                server->n_good = 0;
                if (++server->n_most >= SMALLEST_N_UNTIL)
                        server->n_most = SERVER_N_UNLIMITED;
        }
        latency_add(&server->first_byte, first_byte_us);
        if (server->first_byte.n >= TIMES_KNOWN_MIN && server->first_byte.n % TIMES_REFRESH == 0) {
                uint64_t late_us = latency_quantile_us(&server->first_byte, 990);
                uint64_t median_us = latency_quantile_us(&server->first_byte, 500);

                if (late_us < LATE_TO_MEDIAN * median_us)
                        late_us = LATE_TO_MEDIAN * median_us;
                server->late_ns = late_us * 1000 > SERVER_HEDGE_MIN_NS ? late_us * 1000 : SERVER_HEDGE_MIN_NS;
        }
}

bool server_refused(struct server *server, uint64_t begun_ns, uint64_t asked_ns, uint64_t random, uint64_t now_ns) {
        bool is_new = begun_ns >= server->refused_ns;
        uint64_t until_ns = now_ns + asked_ns;

        if (is_new) {
                uint32_t n_now = server->n_running < server->n_most ? server->n_running : server->n_most;

                server->refused_ns = now_ns;
                server->n_refused++;
                server->n_most = n_now > 1 ? n_now / 2 : 1;
                server->n_good = 0;
        }
        if (is_new || asked_ns > 0) {
                until_ns += retry_pause_ns(asked_ns ? 1 : server->n_refused, random);
                if (until_ns > server->until_ns)
                        server->until_ns = until_ns;
        }
        return is_new;
}
