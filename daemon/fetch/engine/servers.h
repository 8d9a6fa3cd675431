/* fetch/engine/servers.h: what a fetcher knows of each server: whether it may be asked, by how many at once, and how
 * soon it answers.
 *
 * A server that has too much to do (429, 503) says so to one request and means all. There is one clock of retries for
 * each: nobody asks it before until_ns, which is what Retry-After says or else a pause that grows with each refusal in
 * a row. The number of requests side by side is halved then and grows by one each time that as many have been answered
 * (additive increase, multiplicative decrease). What was under way when a server refused belongs to the same refusal.
 *
 * Until its name is known one request is under way, or each of hundreds would ask for the name by itself.
 *
 * Belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/fetch/engine/bandwidth.h"
#include "daemon/fetch/engine/latency.h"

#define SERVERS_MAX         64u
#define SERVER_N_UNLIMITED  UINT32_MAX
#define SERVER_HEDGE_MIN_NS 50000000ull /* nothing is asked for twice earlier */

struct server {
        char name[128];      /* the URL as far as its first slash; "" shares a row: all that found none of their own */
        uint64_t until_ns;   /* not to be asked before (CLOCK_MONOTONIC) */
        uint64_t refused_ns; /* when it last refused; 0: never */
        uint64_t used_ns;
        uint32_t n_refused; /* in a row */
        uint32_t n_running; /* requests */
        uint32_t n_most;    /* of them side by side; SERVER_N_UNLIMITED */
        uint32_t n_good;    /* answers since that grew */
        bool is_found;      /* its name was looked up */
        struct latency first_byte;
        uint64_t late_ns; /* an answer that has not begun by then is one of the slowest; 0: too few came to know */

        /* The fetcher's. */
        struct download *first;      /* that looks its name up; NULL: none is under way */
        struct downloads waiting[2]; /* due, but not to be asked for yet; [1]: urgent */
        struct downloads unanswered; /* urgent ones under way, in the order in which they began */
};

struct servers {
        struct server rows[SERVERS_MAX + 1]; /* the first is what others share */
        uint32_t n_rows;
};

void servers_init(struct servers *servers);

/* The row of the server of `url`; it stays its own while something is under way or waits. Never NULL. */
struct server *servers_get(struct servers *servers, const char *url, uint64_t now_ns);

bool server_is_open(const struct server *server, uint64_t now_ns);

/* A request ended well; its answer began after first_byte_us. */
void server_answered(struct server *server, uint64_t first_byte_us);

/* A request that had begun at begun_ns was refused; `asked_ns`: what Retry-After says, 0 if nothing. `random`: uniform,
 * 64 bits. True: a new refusal, false: one that was known. */
bool server_refused(struct server *server, uint64_t begun_ns, uint64_t asked_ns, uint64_t random, uint64_t now_ns);
