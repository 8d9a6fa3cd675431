/* fetch/engine/fetch_private.h: what the parts of a fetcher share.
 *
 *   fetch.c          jobs and their pieces, the thread, what callers ask for
 *   fetch_tries.c    a piece under way: sent, waiting for its server, tried again, asked for twice */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/fetch/engine/bandwidth.h"
#include "daemon/fetch/engine/download.h"
#include "daemon/fetch/engine/servers.h"
#include "daemon/fetch/engine/sockets.h"
#include "daemon/fetch/fetch.h"

struct fetcher {
        struct http *http;
        void (*done)(struct fetch_job *job);
        uint32_t n_connections;
        uint64_t answer_ns, looked_ns; /* as in the options; when answers were last looked for */
        uint32_t n_streams;            /* small pieces side by side, once a server speaks HTTP/2 */
        pthread_t thread;

        pthread_mutex_t lock;             /* of what follows; held for a few instructions */
        struct fetch_jobs urgent, others; /* with pieces that were not begun, in the order of submission */
        struct fetch_jobs begun;          /* all their pieces were */
        struct fetch_jobs canceled;       /* to be given back */
        uint64_t urgent_ns;               /* when the last urgent job came */
        bool is_stopping;
        struct why last_retry;
        struct fetcher_latency latency;

        _Atomic uint64_t n_bytes, n_requests, n_retries, n_hedged, n_paused; /* relaxed: counters */

        /* The thread's own, but for sockets_wake(). */
        struct sockets sockets;
        struct download *downloads; /* all that there are */
        struct downloads idle;
        struct downloads retrying; /* by due_ns */
        uint32_t n_downloads;
        uint32_t n_waiting; /* of them, in `retrying` or in a server's list */
        uint32_t n_running;
        uint32_t n_plain;    /* of these, that are not urgent */
        bool is_reserving;   /* an urgent job came lately: some connections are kept for the next */
        bool is_multiplexed; /* the last small piece came over HTTP/2 */
        struct servers servers;
        struct bandwidth bandwidth;
        struct latency first_byte;      /* of all servers */
        uint64_t busy_ns, n_bytes_told; /* since and when `latency` was last told */
};

static inline void fetch_count(_Atomic uint64_t *counter) {
        atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static inline uint64_t fetch_counted(const _Atomic uint64_t *counter) {
        return atomic_load_explicit(counter, memory_order_relaxed);
}

/* ---- fetch.c ---- */

/* Hands the job back: nothing of it is under way any more. */
void fetch_end_job(struct fetcher *fetcher, struct fetch_job *job, int result, const struct why *why);
void fetch_piece_complete(struct fetcher *fetcher, struct fetch_job *job);

/* ---- fetch_tries.c ---- */

/* May one more request be sent, as far as connections go? */
bool fetch_tries_has_room(const struct fetcher *fetcher, uint32_t n_bytes, bool is_urgent);

/* Asks for a piece, or lets it wait for its server. There must be an idle download. */
void fetch_tries_begin(struct fetcher *fetcher, struct fetch_job *job, struct fetch_piece *piece, bool is_urgent);

/* Forgets a download, wherever it is. */
void fetch_tries_drop(struct fetcher *fetcher, struct download *download);

/* After its transfer. */
void fetch_tries_end(struct fetcher *fetcher, struct download *download, CURLcode result);

/* Sends what waited and may go now, and second requests for what is late. Returns when it is to be called again at the
 * latest, until_ns or earlier. */
uint64_t fetch_tries_continue(struct fetcher *fetcher, uint64_t until_ns);
