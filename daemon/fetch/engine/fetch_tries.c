#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/fetch/engine/fetch_private.h"
#include "daemon/fetch/retry.h"
#include "proto/base/clock.h"

#define HEDGED_OF 20u /* one request of so many may be a second one */

/* ---- where a download is --------------------------------------------------------------------------------------- */

static void retry_later(struct fetcher *fetcher, struct download *download) {
        struct download *before;

        download->state = DOWNLOAD_RETRYING;
        fetcher->n_waiting++;
        TAILQ_FOREACH_REVERSE(before, &fetcher->retrying, downloads, entry) {
                if (before->due_ns <= download->due_ns) {
                        TAILQ_INSERT_AFTER(&fetcher->retrying, before, download, entry);
                        return;
                }
        }
        TAILQ_INSERT_HEAD(&fetcher->retrying, download, entry);
}

static void wait_for_server(struct fetcher *fetcher, struct download *download, struct server *server) {
        download->state = DOWNLOAD_WAITING;
        download->server = server;
        fetcher->n_waiting++;
        TAILQ_INSERT_TAIL(&server->waiting[download->is_urgent], download, entry);
}

/* Out of the list that it waits in, or off its connection. */
static void leave(struct fetcher *fetcher, struct download *download) {
        switch (download->state) {
        case DOWNLOAD_IDLE:
                break;
        case DOWNLOAD_RETRYING:
                TAILQ_REMOVE(&fetcher->retrying, download, entry);
                fetcher->n_waiting--;
                break;
        case DOWNLOAD_WAITING:
                TAILQ_REMOVE(&download->server->waiting[download->is_urgent], download, entry);
                fetcher->n_waiting--;
                break;
        case DOWNLOAD_RUNNING:
                curl_multi_remove_handle(fetcher->sockets.multi, download->easy);
                http_request_fini(&download->request);
                if (download->is_unanswered)
                        TAILQ_REMOVE(&download->server->unanswered, download, unanswered);
                if (download->is_held)
                        TAILQ_REMOVE(&fetcher->bandwidth.held, download, held);
                download->is_unanswered = download->is_held = false;
                if (download->server->first == download)
                        download->server->first = NULL;
                download->server->n_running--;
                fetcher->n_running--;
                fetcher->n_plain -= !download->is_urgent;
                break;
        }
        download->state = DOWNLOAD_IDLE;
}

void fetch_tries_drop(struct fetcher *fetcher, struct download *download) {
        leave(fetcher, download);
        LIST_REMOVE(download, of_job);
        if (download->twin)
                download->twin->twin = NULL;
        download->twin = NULL;
        TAILQ_INSERT_HEAD(&fetcher->idle, download, entry); /* the one that was used last has the warmest memory */
}

static struct download *take_idle(struct fetcher *fetcher, struct fetch_job *job, struct fetch_piece *piece,
                                  uint32_t idx_url, bool is_urgent) {
        struct download *download = TAILQ_FIRST(&fetcher->idle);

        TAILQ_REMOVE(&fetcher->idle, download, entry);
        download_init(download, job, piece, idx_url, &fetcher->bandwidth, &fetcher->n_bytes);
        download->is_urgent = is_urgent;
        LIST_INSERT_HEAD(&job->downloads, download, of_job);
        return download;
}

/* ---- tries ----------------------------------------------------------------------------------------------------- */

/* All that would go to this server waits. A piece that is nowhere else has been tried as often as the server has
 * refused in a row, whichever pieces it refused: else each of many would find out by itself that it is to be given up.
 */
static bool plan_after_refusal(struct fetcher *fetcher, struct download *download, const struct http_failure *failure) {
        struct server *server = download->server;

        if (server_refused(server, download->begun_ns, failure->pause_ns, retry_random(), clock_now_ns()))
                fetch_count(&fetcher->n_paused);
        download->n_failed++;
        if (download->piece->file->n_urls == 1 && download->n_failed < server->n_refused)
                download->n_failed = server->n_refused;
        if (download->n_failed >= http_n_tries(fetcher->http))
                return false;
        download->due_ns = 0; /* its server is not asked now, and the next has done nothing wrong yet */
        return true;
}

/* Shall the piece be tried again? Then its mirror and time are set. */
static bool plan_another_try(struct fetcher *fetcher, struct download *download, const struct http_failure *failure) {
        const uint64_t now_ns = clock_now_ns();
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
        if (failure->is_busy)
                return plan_after_refusal(fetcher, download, failure);
        if (has_progress) { /* a server that cuts long answers; bounded, since each such try brings the piece on */
                download->due_ns = now_ns + retry_pause_ns(1, retry_random());
                return true;
        }

        download->n_failed++;
        if (download->n_failed >= http_n_tries(fetcher->http) ||
            (failure->n_tries_max && download->n_failed >= failure->n_tries_max))
                return false;
        download_turn(download);
        download->due_ns = now_ns + retry_pause_ns(download->n_failed, retry_random());
        return true;
}

static void fetch_tries_tell(const struct download *download, const char *shown, const struct http_failure *failure,
                             bool again, struct why *ret_why) {
        char tried[40] = "";

        if (!again && download->n_failed > 1)
                snprintf(tried, sizeof(tried), "; tried %u times", download->n_failed);
        why_set(ret_why, 0, "%s: %s: %s%s", download->piece->file->path, shown, failure->text, tried);
}

/* The first that waits for this server and is nowhere else. */
static struct download *bound_to(const struct server *server) {
        struct download *download;

        for (int is_urgent = 1; is_urgent >= 0; is_urgent--)
                TAILQ_FOREACH(download, &server->waiting[is_urgent], entry)
                        if (download->piece->file->n_urls == 1)
                                return download;
        return NULL;
}

/* The server has refused as often as anything is tried: what still waits for it has been refused, too. */
static void give_up_server(struct fetcher *fetcher, const struct server *server, const struct http_failure *failure) {
        struct download *download;

        while ((download = bound_to(server))) {
                char shown[URL_SHOWN_SIZE];
                struct why why;

                download->n_failed = server->n_refused;
                fetch_tries_tell(download, url_show(download_url(download), shown), failure, false, &why);
                fetch_end_job(fetcher, download->job, failure->error, &why);
        }
}

/* `download` is off its connection, and so is what its request knew. */
static void try_failed(struct fetcher *fetcher, struct download *download, const char *shown,
                       const struct http_failure *failure) {
        bool again = plan_another_try(fetcher, download, failure);
        struct server *server = download->server;
        struct why why;

        fetch_tries_tell(download, shown, failure, again, &why);
        if (!again) {
                fetch_end_job(fetcher, download->job, failure->error, &why);
                if (failure->is_busy && server->n_refused >= http_n_tries(fetcher->http))
                        give_up_server(fetcher, server, failure);
                return;
        }
        retry_later(fetcher, download);
        fetch_count(&fetcher->n_retries);
        pthread_mutex_lock(&fetcher->lock);
        fetcher->last_retry = why;
        pthread_mutex_unlock(&fetcher->lock);
}

static void send_request(struct fetcher *fetcher, struct download *download, struct server *server) {
        struct http_failure failure = { .error = -ENOMEM };
        char shown[URL_SHOWN_SIZE];
        struct why why = { "no memory" };
        int r = -ENOMEM;

        leave(fetcher, download);
        download->server = server;
        download->begun_ns = clock_now_ns();
        if (!download->easy)
                download->easy = curl_easy_init();
        if (download->easy) {
                r = download_begin(download, fetcher->http, &why);
                if (r == 0 && curl_multi_add_handle(fetcher->sockets.multi, download->easy) != CURLM_OK)
                        r = why_set(&why, -ENOMEM, "libcurl takes no more downloads");
        }
        if (r < 0) {
                http_request_fini(&download->request);
                failure.error = r;
                memcpy(failure.text, why.text, sizeof(failure.text) - 1);
                if (download->twin)
                        fetch_tries_drop(fetcher, download);
                else
                        try_failed(fetcher, download, url_show(download_url(download), shown), &failure);
                return;
        }

        download->state = DOWNLOAD_RUNNING;
        if (!server->is_found)
                server->first = download;
        server->n_running++;
        fetcher->n_running++;
        fetcher->n_plain += !download->is_urgent;
        fetch_count(&fetcher->n_requests);
        if (download->is_urgent && !download_is_large(download) && download->n_done == 0 && !download->twin) {
                download->is_unanswered = true;
                TAILQ_INSERT_TAIL(&server->unanswered, download, unanswered);
        }
}

bool fetch_tries_has_room(const struct fetcher *fetcher, uint32_t n_bytes, bool is_urgent) {
        bool is_shared = n_bytes < DOWNLOAD_LARGE_BYTES && fetcher->is_multiplexed;
        uint32_t n_most = is_shared ? fetcher->n_streams : fetcher->n_connections;

        if (fetcher->n_running >= n_most)
                return false;
        return is_urgent || !fetcher->is_reserving || fetcher->n_plain < n_most - n_most / 4;
}

/* The server that the download may ask now: its own or, where that is paused or full, that of the next mirror; NULL if
 * none is open. */
static struct server *open_server(struct fetcher *fetcher, struct download *download, uint64_t now_ns) {
        const struct plan_file *file = download->piece->file;

        for (uint32_t i = 0; i < file->n_urls; i++) {
                uint32_t idx = (download->idx_url + i) % file->n_urls;
                struct server *server;

                if (download->dead_urls & (1u << idx))
                        continue;
                server = servers_get(&fetcher->servers, file->urls[idx], now_ns);
                if (!server_is_open(server, now_ns))
                        continue;
                if (i > 0)
                        download_turn_to(download, idx);
                return server;
        }
        return NULL;
}

static void send_or_wait(struct fetcher *fetcher, struct download *download, uint64_t now_ns) {
        struct server *server = open_server(fetcher, download, now_ns);

        if (server && TAILQ_EMPTY(&server->waiting[download->is_urgent]) &&
            fetch_tries_has_room(fetcher, download->piece->n_bytes, download->is_urgent)) {
                send_request(fetcher, download, server);
                return;
        }
        leave(fetcher, download);
        wait_for_server(fetcher, download, servers_get(&fetcher->servers, download_url(download), now_ns));
}

void fetch_tries_begin(struct fetcher *fetcher, struct fetch_job *job, struct fetch_piece *piece, bool is_urgent) {
        send_or_wait(fetcher, take_idle(fetcher, job, piece, job->idx_mirror, is_urgent), clock_now_ns());
}

/* ---- after a transfer ------------------------------------------------------------------------------------------ */

static void note_answer(struct fetcher *fetcher, struct download *download) {
        curl_off_t first_byte_us = 0;
        long version = 0;

        if (curl_easy_getinfo(download->easy, CURLINFO_HTTP_VERSION, &version) == CURLE_OK &&
            !download_is_large(download) && !download->is_second)
                fetcher->is_multiplexed = version == CURL_HTTP_VERSION_2_0;
        curl_easy_getinfo(download->easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte_us);
        server_answered(download->server, first_byte_us > 0 ? (uint64_t)first_byte_us : 0);
        latency_add(&fetcher->first_byte, first_byte_us > 0 ? (uint64_t)first_byte_us : 0);
}

/* One of two requests for a piece did not work out before it answered: the other goes on alone, nothing is lost. */
static void leave_it_to_the_twin(struct fetcher *fetcher, struct download *download,
                                 const struct http_failure *failure) {
        if (failure->is_busy &&
            server_refused(download->server, download->begun_ns, failure->pause_ns, retry_random(), clock_now_ns()))
                fetch_count(&fetcher->n_paused);
        fetch_tries_drop(fetcher, download);
}

void fetch_tries_end(struct fetcher *fetcher, struct download *download, CURLcode result) {
        struct http_failure failure;
        char shown[URL_SHOWN_SIZE];
        int r = download_end(download, result, &failure);
        struct fetch_job *job = download->job;

        if (r < 0 && download->twin && (download->is_late || !download->is_checked)) {
                leave_it_to_the_twin(fetcher, download, &failure);
                return;
        }
        if (download->twin) /* it is later than this one, whatever has become of this one since */
                fetch_tries_drop(fetcher, download->twin);
        if (r == 0) {
                note_answer(fetcher, download);
                fetch_tries_drop(fetcher, download);
                fetch_piece_complete(fetcher, job);
                return;
        }
        memcpy(shown, download->request.shown, sizeof(shown));
        leave(fetcher, download);
        try_failed(fetcher, download, shown, &failure);
}

/* ---- what goes on by itself ------------------------------------------------------------------------------------ */

static bool may_hedge(const struct fetcher *fetcher, const struct server *server, uint32_t n_bytes, uint64_t now_ns) {
        return (fetch_counted(&fetcher->n_hedged) + 1) * HEDGED_OF <= fetch_counted(&fetcher->n_requests) &&
               !TAILQ_EMPTY(&fetcher->idle) && server_is_open(server, now_ns) &&
               fetch_tries_has_room(fetcher, n_bytes, true);
}

/* Returns when the next answer of this server will be late. */
static uint64_t hedge_late(struct fetcher *fetcher, struct server *server, uint64_t now_ns, uint64_t until_ns) {
        struct download *late;

        while (server->late_ns > 0 && (late = TAILQ_FIRST(&server->unanswered))) {
                struct download *second;

                if (!download_is_answered(late)) {
                        if (now_ns < late->begun_ns + server->late_ns)
                                return late->begun_ns + server->late_ns < until_ns ? late->begun_ns + server->late_ns
                                                                                   : until_ns;
                        if (!may_hedge(fetcher, server, late->piece->n_bytes, now_ns))
                                return until_ns; /* whatever changes that is an event */
                }
                TAILQ_REMOVE(&server->unanswered, late, unanswered);
                late->is_unanswered = false;
                if (download_is_answered(late))
                        continue;
                second = take_idle(fetcher, late->job, late->piece, late->idx_url, true);
                second->is_second = true;
                second->twin = late;
                late->twin = second;
                fetch_count(&fetcher->n_hedged);
                send_request(fetcher, second, server);
        }
        return until_ns;
}

/* The first that may go now: to this server, or to another that has it, too. */
static struct download *find_sendable(struct fetcher *fetcher, struct server *server, uint64_t now_ns,
                                      struct server **ret_server) {
        struct download *download;

        for (int is_urgent = 1; is_urgent >= 0; is_urgent--) {
                TAILQ_FOREACH(download, &server->waiting[is_urgent], entry) {
                        if (!fetch_tries_has_room(fetcher, download->piece->n_bytes, is_urgent))
                                break;
                        *ret_server = server_is_open(server, now_ns)       ? server
                                      : download->piece->file->n_urls == 1 ? NULL
                                                                           : open_server(fetcher, download, now_ns);
                        if (*ret_server)
                                return download;
                }
        }
        return NULL;
}

static void send_waiting(struct fetcher *fetcher, struct server *server, uint64_t now_ns) {
        struct download *download;
        struct server *to;

        while ((download = find_sendable(fetcher, server, now_ns, &to)))
                send_request(fetcher, download, to);
}

/* What was held goes on as far as there is bandwidth. Returns when there will be more. */
static uint64_t take_held(struct fetcher *fetcher, uint64_t until_ns) {
        struct bandwidth *bandwidth = &fetcher->bandwidth;
        struct download *download;

        while ((download = TAILQ_FIRST(&bandwidth->held))) {
                uint64_t now_ns = clock_now_ns(), wait_ns = bandwidth_wait_ns(bandwidth, now_ns);
                CURLcode result;

                if (wait_ns > 0)
                        return now_ns + wait_ns < until_ns ? now_ns + wait_ns : until_ns;
                TAILQ_REMOVE(&bandwidth->held, download, held);
                download->is_held = false;
                result = curl_easy_pause(download->easy, CURLPAUSE_CONT);
                if (result != CURLE_OK) /* its bytes were refused */
                        fetch_tries_end(fetcher, download, result);
        }
        return until_ns;
}

/* Those whose answer has not begun in time. One that is overdue ends with the next look: this thread may have been away
 * itself, as on a disk that is slow to write to, and what has come meanwhile is read before that. */
static void end_silent(struct fetcher *fetcher, uint64_t now_ns) {
        if (fetcher->answer_ns == 0 || now_ns - fetcher->looked_ns < fetcher->answer_ns / 8)
                return;
        fetcher->looked_ns = now_ns;
        for (uint32_t i = 0; i < fetcher->n_downloads; i++) {
                struct download *download = &fetcher->downloads[i];

                if (download->state != DOWNLOAD_RUNNING || download_is_answered(download) ||
                    now_ns - download->begun_ns <= fetcher->answer_ns)
                        continue;
                if (download->is_overdue)
                        fetch_tries_end(fetcher, download, CURLE_OPERATION_TIMEDOUT);
                else
                        download->is_overdue = true;
        }
}

uint64_t fetch_tries_continue(struct fetcher *fetcher, uint64_t until_ns) {
        uint64_t now_ns = clock_now_ns();
        struct download *download;

        end_silent(fetcher, now_ns);
        while ((download = TAILQ_FIRST(&fetcher->retrying)) && download->due_ns <= now_ns)
                send_or_wait(fetcher, download, now_ns);
        for (uint32_t i = 0; i < fetcher->servers.n_rows; i++) {
                struct server *server = &fetcher->servers.rows[i];

                if (server->first && http_has_name(server->first->easy))
                        server->is_found = true;
                send_waiting(fetcher, server, now_ns);
                until_ns = hedge_late(fetcher, server, now_ns, until_ns);
                if (server->until_ns > now_ns && server->until_ns < until_ns &&
                    !(TAILQ_EMPTY(&server->waiting[0]) && TAILQ_EMPTY(&server->waiting[1])))
                        until_ns = server->until_ns;
        }
        until_ns = take_held(fetcher, until_ns);
        download = TAILQ_FIRST(&fetcher->retrying);
        return download && download->due_ns < until_ns ? download->due_ns : until_ns;
}
