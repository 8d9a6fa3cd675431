#include "daemon/fetch/fetch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "daemon/base/threads/thread.h"
#include "daemon/fetch/engine/fetch_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define DEFAULT_CONNECTIONS  16u
#define CONNECTIONS_MAX      1024u
#define STREAMS_A_CONNECTION 4u          /* small pieces, once a server speaks HTTP/2; CONNECTIONS_MAX in all */
#define BYTES_PER_S_LEAST    (16u << 10) /* a connection, or a limited rate would look like servers that stand still */
#define WAITING_MAX          64u         /* pieces that wait and hold up nobody; then no new ones are begun */
#define POLL_NS              1000000000ull
#define BUSY_NS              250000000ull /* after so much of it the rate is computed anew */

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

/* With the lock held. */
static void move_job(struct fetch_job *job, struct fetch_jobs *list) {
        TAILQ_REMOVE(job->list, job, entry);
        job->list = list;
        if (list)
                TAILQ_INSERT_TAIL(list, job, entry);
}

void fetch_end_job(struct fetcher *fetcher, struct fetch_job *job, int result, const struct why *why) {
        struct download *download;

        while ((download = LIST_FIRST(&job->downloads)))
                fetch_tries_drop(fetcher, download);
        pthread_mutex_lock(&fetcher->lock);
        move_job(job, NULL);
        pthread_mutex_unlock(&fetcher->lock);
        job->result = result;
        job->why = why ? *why : (struct why){ 0 };
        fetcher->done(job);
}

void fetch_piece_complete(struct fetcher *fetcher, struct fetch_job *job) {
        if (++job->n_complete == job->n_pieces)
                fetch_end_job(fetcher, job, 0, NULL);
}

/* Pieces of urgent jobs may wait in numbers of their own: others that wait are not in their way. */
static bool can_begin(const struct fetcher *fetcher, const struct fetch_piece *piece, bool is_urgent) {
        return fetcher->n_waiting < (is_urgent ? 2 * WAITING_MAX : WAITING_MAX) && !TAILQ_EMPTY(&fetcher->idle) &&
               fetch_tries_has_room(fetcher, piece->n_bytes, is_urgent);
}

/* The next piece in order; its job has one piece less that was not begun. Returns NULL if there is none, or no room.
 * *ret_piece NULL: the job has no pieces at all. With the lock held. */
static struct fetch_job *take_piece(struct fetcher *fetcher, struct fetch_piece **ret_piece) {
        struct fetch_job *job = TAILQ_FIRST(TAILQ_EMPTY(&fetcher->urgent) ? &fetcher->others : &fetcher->urgent);
        struct fetch_piece *piece;

        if (!job)
                return NULL;
        piece = job->n_pieces > 0 ? &job->pieces[job->idx_next] : NULL;
        if (piece && piece->n_bytes > 0 && !can_begin(fetcher, piece, job->is_urgent))
                return NULL;
        if (piece)
                job->idx_next++;
        if (job->idx_next == job->n_pieces)
                move_job(job, &fetcher->begun);
        *ret_piece = piece;
        return job;
}

/* Begins the next piece in order. False: there is no piece, or no room. */
static bool fetch_begin_piece(struct fetcher *fetcher) {
        struct fetch_piece *piece = NULL;
        struct fetch_job *job;
        bool is_urgent;

        pthread_mutex_lock(&fetcher->lock);
        fetcher->is_reserving = fetcher->urgent_ns > 0 && clock_now_ns() < fetcher->urgent_ns + URGENT_LATELY_NS;
        job = take_piece(fetcher, &piece);
        is_urgent = job && job->is_urgent;
        pthread_mutex_unlock(&fetcher->lock);
        if (!job)
                return false;
        if (!piece)
                fetch_end_job(fetcher, job, 0, NULL);
        else if (piece->n_bytes == 0)
                fetch_piece_complete(fetcher, job);
        else
                fetch_tries_begin(fetcher, job, piece, is_urgent);
        return true;
}

static struct fetch_job *first_of(struct fetcher *fetcher, const struct fetch_jobs *list) {
        struct fetch_job *job;

        pthread_mutex_lock(&fetcher->lock);
        job = TAILQ_FIRST(list);
        pthread_mutex_unlock(&fetcher->lock);
        return job;
}

static void end_all(struct fetcher *fetcher, const struct fetch_jobs *list) {
        const struct why canceled = { "canceled" };
        struct fetch_job *job;

        while ((job = first_of(fetcher, list)))
                fetch_end_job(fetcher, job, -ECANCELED, &canceled);
}

/* ---- the thread ----------------------------------------------------------------------------------------------- */

static void collect(struct fetcher *fetcher) {
        CURLMsg *message;
        int n_left;

        while ((message = curl_multi_info_read(fetcher->sockets.multi, &n_left))) {
                CURLcode result = message->data.result;
                char *request = NULL;

                curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
                fetch_tries_end(fetcher, (struct download *)(request - offsetof(struct download, request)), result);
        }
}

/* What others may know. The rate of the last BUSY_NS in which something was under way counts a quarter. */
static void tell_latency(struct fetcher *fetcher) {
        uint64_t n_bytes = fetch_counted(&fetcher->n_bytes);
        uint64_t now = (uint64_t)((double)(n_bytes - fetcher->n_bytes_told) * 1e9 / (double)fetcher->busy_ns);
        struct fetcher_latency latency = {
                .n_answers = fetcher->first_byte.n,
                .first_byte_median_ns = latency_quantile_us(&fetcher->first_byte, 500) * 1000,
                .first_byte_p999_ns = latency_quantile_us(&fetcher->first_byte, 999) * 1000,
        };

        pthread_mutex_lock(&fetcher->lock);
        latency.bytes_per_s = fetcher->latency.bytes_per_s ? fetcher->latency.bytes_per_s / 4 * 3 + now / 4 : now;
        fetcher->latency = latency;
        pthread_mutex_unlock(&fetcher->lock);
        fetcher->busy_ns = 0;
        fetcher->n_bytes_told = n_bytes;
}

/* One turn of the thread, which ends at until_ns. */
static void turn(struct fetcher *fetcher, uint64_t until_ns) {
        bool was_busy = fetcher->n_running > 0;
        uint64_t begun_ns = clock_now_ns();

        sockets_turn(&fetcher->sockets, until_ns);
        collect(fetcher);
        if (was_busy)
                fetcher->busy_ns += clock_now_ns() - begun_ns;
        if (fetcher->busy_ns >= BUSY_NS)
                tell_latency(fetcher);
}

static bool is_to_stop(struct fetcher *fetcher) {
        bool is_stopping;

        pthread_mutex_lock(&fetcher->lock);
        is_stopping = fetcher->is_stopping;
        pthread_mutex_unlock(&fetcher->lock);
        return is_stopping;
}

static void *fetcher_main(void *argument) {
        struct fetcher *fetcher = argument;

        while (!is_to_stop(fetcher)) {
                end_all(fetcher, &fetcher->canceled);
                fetch_tries_continue(fetcher, 0);
                while (fetch_begin_piece(fetcher))
                        ;
                turn(fetcher, fetch_tries_continue(fetcher, clock_now_ns() + POLL_NS));
        }
        end_all(fetcher, &fetcher->canceled);
        end_all(fetcher, &fetcher->begun);
        end_all(fetcher, &fetcher->urgent);
        end_all(fetcher, &fetcher->others);
        return NULL;
}

/* ---- for callers ---------------------------------------------------------------------------------------------- */

static void fetcher_free(struct fetcher *fetcher) {
        for (uint32_t i = 0; i < fetcher->n_downloads; i++)
                if (fetcher->downloads[i].easy)
                        curl_easy_cleanup(fetcher->downloads[i].easy);
        sockets_fini(&fetcher->sockets);
        free(fetcher->downloads);
        pthread_mutex_destroy(&fetcher->lock);
        free(fetcher);
}

static void fetcher_freep(struct fetcher **fetcher) {
        if (*fetcher)
                fetcher_free(*fetcher);
}

static uint32_t fetch_connections(const struct fetcher_options *options) {
        uint64_t n = options->n_connections ? options->n_connections : DEFAULT_CONNECTIONS;

        if (n > CONNECTIONS_MAX)
                n = CONNECTIONS_MAX;
        if (options->max_bytes_per_s > 0 && n > options->max_bytes_per_s / BYTES_PER_S_LEAST)
                n = options->max_bytes_per_s / BYTES_PER_S_LEAST;
        return n > 0 ? (uint32_t)n : 1;
}

int fetcher_start(const struct fetcher_options *options, struct fetcher **ret_fetcher, struct why *why) {
        _cleanup_(fetcher_freep) struct fetcher *fetcher = calloc(1, sizeof(*fetcher));
        int r;

        if (!fetcher)
                return -ENOMEM;
        pthread_mutex_init(&fetcher->lock, NULL);
        fetcher->sockets = (struct sockets){ .epoll_fd = -1, .wake_fd = -1 };
        fetcher->http = options->http;
        fetcher->done = options->done;
        fetcher->n_connections = fetch_connections(options);
        fetcher->answer_ns = options->answer_ns;
        fetcher->n_streams = fetcher->n_connections * STREAMS_A_CONNECTION;
        if (fetcher->n_streams > CONNECTIONS_MAX)
                fetcher->n_streams = CONNECTIONS_MAX;
        bandwidth_init(&fetcher->bandwidth, options->max_bytes_per_s);
        TAILQ_INIT(&fetcher->urgent);
        TAILQ_INIT(&fetcher->others);
        TAILQ_INIT(&fetcher->begun);
        TAILQ_INIT(&fetcher->canceled);
        TAILQ_INIT(&fetcher->idle);
        TAILQ_INIT(&fetcher->retrying);
        servers_init(&fetcher->servers);

        fetcher->downloads = calloc(fetcher->n_streams + 2 * WAITING_MAX, sizeof(*fetcher->downloads));
        if (!fetcher->downloads)
                return -ENOMEM;
        fetcher->n_downloads = fetcher->n_streams + 2 * WAITING_MAX;
        for (uint32_t i = 0; i < fetcher->n_downloads; i++)
                TAILQ_INSERT_TAIL(&fetcher->idle, &fetcher->downloads[i], entry);
        r = sockets_init(&fetcher->sockets);
        if (r < 0)
                return why_errno(why, r, "cannot watch connections");
        curl_multi_setopt(fetcher->sockets.multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)fetcher->n_connections);
        curl_multi_setopt(fetcher->sockets.multi, CURLMOPT_MAXCONNECTS, (long)fetcher->n_connections);

        r = thread_start(&fetcher->thread, "fetcher", fetcher_main, fetcher);
        if (r < 0)
                return why_errno(why, r, "cannot start a thread");
        *ret_fetcher = TAKE_PTR(fetcher);
        return 0;
}

void fetcher_submit(struct fetcher *fetcher, struct fetch_job *job) {
        job->idx_next = job->n_complete = 0;
        LIST_INIT(&job->downloads);
        pthread_mutex_lock(&fetcher->lock);
        job->list = job->is_urgent ? &fetcher->urgent : &fetcher->others;
        TAILQ_INSERT_TAIL(job->list, job, entry);
        if (job->is_urgent)
                fetcher->urgent_ns = clock_now_ns();
        pthread_mutex_unlock(&fetcher->lock);
        sockets_wake(&fetcher->sockets);
}

void fetcher_hurry(struct fetcher *fetcher, struct fetch_job *job) {
        pthread_mutex_lock(&fetcher->lock);
        if (job->list == &fetcher->others) {
                job->is_urgent = true;
                move_job(job, &fetcher->urgent);
                fetcher->urgent_ns = clock_now_ns();
        }
        pthread_mutex_unlock(&fetcher->lock);
        sockets_wake(&fetcher->sockets);
}

void fetcher_cancel(struct fetcher *fetcher, struct fetch_job *job) {
        pthread_mutex_lock(&fetcher->lock);
        if ((job->list == &fetcher->others || job->list == &fetcher->urgent) && job->idx_next == 0)
                move_job(job, &fetcher->canceled);
        pthread_mutex_unlock(&fetcher->lock);
        sockets_wake(&fetcher->sockets);
}

void fetcher_stop(struct fetcher *fetcher) {
        if (!fetcher)
                return;
        pthread_mutex_lock(&fetcher->lock);
        fetcher->is_stopping = true;
        pthread_mutex_unlock(&fetcher->lock);
        sockets_wake(&fetcher->sockets);
        thread_join(fetcher->thread);
        fetcher_free(fetcher);
}

void fetcher_counts(struct fetcher *fetcher, struct fetcher_counts *ret_counts) {
        *ret_counts = (struct fetcher_counts){
                .n_bytes = fetch_counted(&fetcher->n_bytes),
                .n_requests = fetch_counted(&fetcher->n_requests),
                .n_retries = fetch_counted(&fetcher->n_retries),
                .n_hedged = fetch_counted(&fetcher->n_hedged),
                .n_paused = fetch_counted(&fetcher->n_paused),
        };
        pthread_mutex_lock(&fetcher->lock);
        ret_counts->latency = fetcher->latency;
        ret_counts->last = fetcher->last_retry;
        pthread_mutex_unlock(&fetcher->lock);
}
