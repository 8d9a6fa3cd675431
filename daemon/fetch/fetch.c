#include "daemon/fetch/fetch.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/threads/thread.h"
#include "daemon/fetch/download.h"
#include "daemon/fetch/pauses.h"
#include "daemon/fetch/retry.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define DEFAULT_CONNECTIONS 16u
#define CONNECTIONS_MAX     256u
#define STREAMS             4u  /* small pieces under way for each connection, once a server speaks HTTP/2 */
#define WAITING_MAX         64u /* pieces that wait for another try and hold up nobody; then no new ones are begun */
#define POLL_MS             1000

TAILQ_HEAD(fetch_jobs, fetch_job); /* in the order of submission */

struct fetcher {
        struct http *http;
        void (*done)(struct fetch_job *job);
        uint32_t n_connections;
        pthread_t thread;
        CURLM *multi; /* the thread's, but for curl_multi_wakeup() */

        pthread_mutex_t lock; /* of the next three; held for a few instructions */
        struct fetch_jobs submitted;
        bool is_stopping;
        struct why last_retry;

        _Atomic uint64_t n_bytes, n_requests, n_retries; /* relaxed: counters */

        /* The thread's own. */
        struct fetch_jobs jobs; /* taken over from `submitted` */
        struct download *downloads;
        uint32_t n_downloads;
        uint32_t n_running;
        bool is_multiplexed; /* the last small piece came over HTTP/2 */
        struct pauses pauses;
};

static void fetch_count(_Atomic uint64_t *counter) {
        atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- jobs that end --------------------------------------------------------------------------------------------- */

static void stop_download(struct fetcher *fetcher, struct download *download) {
        if (download->state == DOWNLOAD_RUNNING) {
                curl_multi_remove_handle(fetcher->multi, download->easy);
                http_request_fini(&download->request);
                fetcher->n_running--;
        }
        download->state = DOWNLOAD_IDLE;
}

/* Hands the job back: nothing of it is under way any more. */
static void fetch_end_job(struct fetcher *fetcher, struct fetch_job *job, int result, const struct why *why) {
        for (uint32_t i = 0; i < fetcher->n_downloads; i++)
                if (fetcher->downloads[i].state != DOWNLOAD_IDLE && fetcher->downloads[i].job == job)
                        stop_download(fetcher, &fetcher->downloads[i]);
        TAILQ_REMOVE(&fetcher->jobs, job, entry);
        job->result = result;
        job->why = why ? *why : (struct why){ 0 };
        fetcher->done(job);
}

static void piece_complete(struct fetcher *fetcher, struct fetch_job *job) {
        if (++job->n_complete == job->n_pieces)
                fetch_end_job(fetcher, job, 0, NULL);
}

/* ---- tries ---------------------------------------------------------------------------------------------------- */

/* Shall the piece be tried again? Then its mirror and time are set. */
static bool plan_another_try(struct fetcher *fetcher, struct download *download, const struct http_failure *failure) {
        const uint64_t now_ns = clock_now_ns();
        uint64_t pause_ns;
        bool has_progress = download->n_done >= download->n_done_best + RETRY_PROGRESS_BYTES;

        if (download->n_done > download->n_done_best)
                download->n_done_best = download->n_done;
        if (!failure->again) {
                download->dead_urls |= 1u << download->idx_url;
                download->n_failed++;
                if (download_is_hopeless(download))
                        return false;
                download_turn(download);
                download->due_ns = 0; /* another server has done nothing wrong yet */
                return true;
        }
        if (has_progress) { /* a server that cuts long answers; bounded, since each such try brings the piece on */
                download->due_ns = now_ns + retry_pause_ns(1, retry_random());
                return true;
        }

        download->n_failed++;
        if (download->n_failed >= http_n_tries(fetcher->http) ||
            (failure->n_tries_max && download->n_failed >= failure->n_tries_max))
                return false;
        pause_ns = retry_pause_ns(failure->pause_ns ? 1 : download->n_failed, retry_random());
        if (failure->pause_ns)
                pauses_set(&fetcher->pauses, download_url(download), now_ns + failure->pause_ns + pause_ns);
        download_turn(download);
        download->due_ns = now_ns + pause_ns;
        return true;
}

static void try_failed(struct fetcher *fetcher, struct download *download, const char *shown,
                       const struct http_failure *failure) {
        bool again = plan_another_try(fetcher, download, failure);
        char tried[40] = "";
        struct why why;

        download->state = DOWNLOAD_WAITING;
        if (!again && download->n_failed > 1)
                snprintf(tried, sizeof(tried), "; tried %u times", download->n_failed);
        why_set(&why, 0, "%s: %s: %s%s", download->piece->file->path, shown, failure->text, tried);
        if (!again) {
                fetch_end_job(fetcher, download->job, failure->error, &why);
                return;
        }
        fetch_count(&fetcher->n_retries);
        pthread_mutex_lock(&fetcher->lock);
        fetcher->last_retry = why;
        pthread_mutex_unlock(&fetcher->lock);
}

static void run_download(struct fetcher *fetcher, struct download *download) {
        struct http_failure failure = { .error = -ENOMEM };
        char shown[URL_SHOWN_SIZE];
        struct why why = { "no memory" };
        int r = -ENOMEM;

        download->state = DOWNLOAD_WAITING;
        if (!download->easy)
                download->easy = curl_easy_init();
        if (download->easy) {
                r = download_begin(download, fetcher->http, &why);
                if (r == 0 && curl_multi_add_handle(fetcher->multi, download->easy) != CURLM_OK)
                        r = why_set(&why, -ENOMEM, "libcurl takes no more downloads");
        }
        if (r < 0) {
                http_request_fini(&download->request);
                failure.error = r;
                memcpy(failure.text, why.text, sizeof(failure.text) - 1);
                try_failed(fetcher, download, url_show(download_url(download), shown), &failure);
                return;
        }
        download->state = DOWNLOAD_RUNNING;
        fetcher->n_running++;
        fetch_count(&fetcher->n_requests);
}

static void download_finished(struct fetcher *fetcher, struct download *download, CURLcode result) {
        struct http_failure failure;
        char shown[URL_SHOWN_SIZE];
        long version = 0;
        int r = download_end(download, result, &failure);

        if (curl_easy_getinfo(download->easy, CURLINFO_HTTP_VERSION, &version) == CURLE_OK &&
            !download_is_large(download))
                fetcher->is_multiplexed = version == CURL_HTTP_VERSION_2_0;
        memcpy(shown, download->request.shown, sizeof(shown));
        stop_download(fetcher, download);
        if (r == 0)
                piece_complete(fetcher, download->job);
        else
                try_failed(fetcher, download, shown, &failure);
}

/* ---- which piece next ------------------------------------------------------------------------------------------ */

static struct download *idle_download(struct fetcher *fetcher) {
        for (uint32_t i = 0; i < fetcher->n_downloads; i++)
                if (fetcher->downloads[i].state == DOWNLOAD_IDLE)
                        return &fetcher->downloads[i];
        return NULL;
}

/* When a download that waits may continue: the later one of its own time and its server's. */
static uint64_t fetch_due_ns(const struct fetcher *fetcher, const struct download *download) {
        uint64_t until_ns = pauses_until(&fetcher->pauses, download_url(download));

        return download->due_ns > until_ns ? download->due_ns : until_ns;
}

/* The one that waits and is due first; NULL if none waits. */
static struct download *next_due(struct fetcher *fetcher, uint64_t *ret_due_ns) {
        struct download *first = NULL;

        for (uint32_t i = 0; i < fetcher->n_downloads; i++) {
                struct download *download = &fetcher->downloads[i];
                uint64_t due;

                if (download->state != DOWNLOAD_WAITING)
                        continue;
                due = fetch_due_ns(fetcher, download);
                if (!first || due < *ret_due_ns) {
                        first = download;
                        *ret_due_ns = due;
                }
        }
        return first;
}

static bool has_room_for(const struct fetcher *fetcher, const struct fetch_piece *piece) {
        bool is_small = piece->n_bytes < DOWNLOAD_LARGE_BYTES;

        return fetcher->n_running < fetcher->n_connections * (is_small && fetcher->is_multiplexed ? STREAMS : 1);
}

/* Begins the next piece in order. False: there is no piece, or no room. */
static bool fetch_begin_piece(struct fetcher *fetcher) {
        struct fetch_job *job = TAILQ_FIRST(&fetcher->jobs);
        struct fetch_piece *piece;
        struct download *download;

        while (job && job->n_pieces > 0 && job->idx_next == job->n_pieces)
                job = TAILQ_NEXT(job, entry);
        if (!job)
                return false;
        if (job->n_pieces == 0) {
                fetch_end_job(fetcher, job, 0, NULL);
                return true;
        }
        piece = &job->pieces[job->idx_next];
        if (piece->n_bytes == 0) {
                job->idx_next++;
                piece_complete(fetcher, job);
                return true;
        }
        download = idle_download(fetcher);
        if (!download || !has_room_for(fetcher, piece))
                return false;

        job->idx_next++;
        download_init(download, job, piece, job->idx_mirror, &fetcher->n_bytes);
        download->state = DOWNLOAD_WAITING;
        if (fetch_due_ns(fetcher, download) <= clock_now_ns())
                run_download(fetcher, download);
        return true;
}

/* Starts everything that may start now. Returns in how many ms something else may start. */
static int start_more(struct fetcher *fetcher) {
        for (;;) {
                uint64_t due = 0, now_ns = clock_now_ns();
                struct download *waiting = next_due(fetcher, &due);

                if (waiting && due <= now_ns && has_room_for(fetcher, waiting->piece)) {
                        run_download(fetcher, waiting);
                        continue;
                }
                if (fetch_begin_piece(fetcher))
                        continue;
                if (waiting && due > now_ns && due - now_ns < POLL_MS * 1000000ull)
                        return (int)((due - now_ns) / 1000000ull) + 1;
                return POLL_MS;
        }
}

/* ---- the thread ----------------------------------------------------------------------------------------------- */

/* Takes over what was submitted. Returns false if it is time to stop. */
static bool fetch_take_jobs(struct fetcher *fetcher) {
        bool is_stopping;

        pthread_mutex_lock(&fetcher->lock);
        TAILQ_CONCAT(&fetcher->jobs, &fetcher->submitted, entry);
        is_stopping = fetcher->is_stopping;
        pthread_mutex_unlock(&fetcher->lock);
        return !is_stopping;
}

static void collect(struct fetcher *fetcher) {
        CURLMsg *message;
        int n_left;

        while ((message = curl_multi_info_read(fetcher->multi, &n_left))) {
                CURLcode result = message->data.result;
                char *request = NULL;

                curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
                download_finished(fetcher, (struct download *)(request - offsetof(struct download, request)), result);
        }
}

static void *fetcher_main(void *argument) {
        struct fetcher *fetcher = argument;
        const struct why canceled = { "canceled" };

        while (fetch_take_jobs(fetcher)) {
                int n_running;

                start_more(fetcher);
                curl_multi_perform(fetcher->multi, &n_running);
                collect(fetcher);
                curl_multi_poll(fetcher->multi, NULL, 0, start_more(fetcher), NULL);
        }
        while (!TAILQ_EMPTY(&fetcher->jobs)) {
                fetch_end_job(fetcher, TAILQ_FIRST(&fetcher->jobs), -ECANCELED, &canceled);
                fetch_take_jobs(fetcher);
        }
        return NULL;
}

/* ---- for callers ---------------------------------------------------------------------------------------------- */

static void fetcher_free(struct fetcher *fetcher) {
        for (uint32_t i = 0; i < fetcher->n_downloads; i++)
                if (fetcher->downloads[i].easy)
                        curl_easy_cleanup(fetcher->downloads[i].easy);
        if (fetcher->multi)
                curl_multi_cleanup(fetcher->multi);
        free(fetcher->downloads);
        pthread_mutex_destroy(&fetcher->lock);
        free(fetcher);
}

static void fetcher_freep(struct fetcher **fetcher) {
        if (*fetcher)
                fetcher_free(*fetcher);
}

int fetcher_start(const struct fetcher_options *options, struct fetcher **ret_fetcher, struct why *why) {
        _cleanup_(fetcher_freep) struct fetcher *fetcher = calloc(1, sizeof(*fetcher));
        uint32_t n_connections = options->n_connections ? options->n_connections : DEFAULT_CONNECTIONS;
        uint32_t n_downloads;
        int r;

        if (!fetcher)
                return -ENOMEM;
        if (n_connections > CONNECTIONS_MAX)
                n_connections = CONNECTIONS_MAX;
        n_downloads = n_connections * STREAMS + WAITING_MAX;
        pthread_mutex_init(&fetcher->lock, NULL);
        fetcher->http = options->http;
        fetcher->done = options->done;
        fetcher->n_connections = n_connections;
        TAILQ_INIT(&fetcher->submitted);
        TAILQ_INIT(&fetcher->jobs);
        fetcher->downloads = calloc(n_downloads, sizeof(*fetcher->downloads));
        fetcher->multi = curl_multi_init();
        if (!fetcher->downloads || !fetcher->multi)
                return -ENOMEM;
        fetcher->n_downloads = n_downloads;
        curl_multi_setopt(fetcher->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)n_connections);
        curl_multi_setopt(fetcher->multi, CURLMOPT_MAXCONNECTS, (long)n_connections);

        r = thread_start(&fetcher->thread, "fetcher", fetcher_main, fetcher);
        if (r < 0)
                return why_errno(why, r, "cannot start a thread");
        *ret_fetcher = TAKE_PTR(fetcher);
        return 0;
}

void fetcher_submit(struct fetcher *fetcher, struct fetch_job *job) {
        job->idx_next = job->n_complete = 0;
        pthread_mutex_lock(&fetcher->lock);
        TAILQ_INSERT_TAIL(&fetcher->submitted, job, entry);
        pthread_mutex_unlock(&fetcher->lock);
        curl_multi_wakeup(fetcher->multi);
}

void fetcher_stop(struct fetcher *fetcher) {
        if (!fetcher)
                return;
        pthread_mutex_lock(&fetcher->lock);
        fetcher->is_stopping = true;
        pthread_mutex_unlock(&fetcher->lock);
        curl_multi_wakeup(fetcher->multi);
        thread_join(fetcher->thread);
        fetcher_free(fetcher);
}

void fetcher_counts(struct fetcher *fetcher, struct fetcher_counts *ret_counts) {
        ret_counts->n_bytes = atomic_load_explicit(&fetcher->n_bytes, memory_order_relaxed);
        ret_counts->n_requests = atomic_load_explicit(&fetcher->n_requests, memory_order_relaxed);
        ret_counts->n_retries = atomic_load_explicit(&fetcher->n_retries, memory_order_relaxed);
        pthread_mutex_lock(&fetcher->lock);
        ret_counts->last = fetcher->last_retry;
        pthread_mutex_unlock(&fetcher->lock);
}
