#include "daemon/fetch/engine/download.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/base/clock.h"

#define FEW_TRIES 3u

void download_init(struct download *download, struct fetch_job *job, struct fetch_piece *piece, uint32_t idx_url,
                   struct bandwidth *bandwidth, _Atomic uint64_t *n_bytes) {
        assert(piece->file->n_urls > 0 && piece->offset + piece->n_bytes <= piece->file->n_bytes);
        *download = (struct download){
                .easy = download->easy,
                .job = job,
                .piece = piece,
                .idx_url = idx_url % piece->file->n_urls,
                .bandwidth = bandwidth,
                .n_bytes = n_bytes,
        };
}

const char *download_url(const struct download *download) {
        return download->piece->file->urls[download->idx_url];
}

bool download_is_large(const struct download *download) {
        return download->piece->n_bytes >= DOWNLOAD_LARGE_BYTES;
}

/* The ETag that an answer must have; NULL: any. The plan's is the first URL's: mirrors make their own. */
static const char *expected_etag(const struct download *download) {
        if (download->etag[0])
                return download->etag;
        return download->idx_url == 0 ? download->piece->file->etag : NULL;
}

/* Its Last-Modified, likewise; "": any. Nodes of one server may have different ones for the same bytes, and a SHA-256
 * tells these by itself. */
static const char *expected_date(const struct download *download) {
        const char *planned = download->idx_url == 0 ? download->piece->file->modified : NULL;

        if (download->piece->file->sha256)
                return "";
        return download->modified[0] || !planned ? download->modified : planned;
}

/* ---- does the answer fit the request? ---------------------------------------------------------------------------- */

static int download_refuse(struct download *download, bool again, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static int download_refuse(struct download *download, bool again, const char *format, ...) {
        struct http_failure *refusal = &download->refusal;
        va_list arguments;

        *refusal = (struct http_failure){ .error = -EBADMSG, .again = again, .n_tries_max = FEW_TRIES };
        va_start(arguments, format);
        vsnprintf(refusal->text, sizeof(refusal->text), format, arguments);
        va_end(arguments);
        download->is_refused = true;
        return -EBADMSG;
}

static bool is_page(const char *path) {
        const char *dot = strrchr(path, '.');

        return dot && (strcasecmp(dot, ".html") == 0 || strcasecmp(dot, ".htm") == 0 || strcasecmp(dot, ".xhtml") == 0);
}

/* The size of the file according to the answer. Where it is wrong, a page or an encoding explains it best. */
static int download_check_size(struct download *download, uint64_t n_bytes) {
        const struct plan_file *file = download->piece->file;
        const struct http_head *head = &download->request.head;

        if (n_bytes == file->n_bytes)
                return 0;
        if (head->is_html && !is_page(file->path))
                return download_refuse(download, true,
                                       "an HTML page came instead of the file: an error page, or one to log in");
        if (head->is_encoded)
                return download_refuse(download, false,
                                       "it comes compressed (Content-Encoding), though that was not asked for");
        if (n_bytes != UINT64_MAX)
                return download_refuse(download, false, "it has %" PRIu64 " bytes at the origin; listed were %" PRIu64,
                                       n_bytes, file->n_bytes);
        return 0;
}

/* Is it what it was when the plan was made, or at the try before? An ETag says it; without one, the date. */
static int check_content(struct download *download) {
        const struct http_head *head = &download->request.head;
        const char *etag = expected_etag(download), *date = expected_date(download);

        if (!http_etag_agrees(etag, head->etag))
                return download_refuse(download, false, "it has changed at the origin: its ETag is %.80s and was %.80s",
                                       head->etag, etag);
        if ((!etag || !head->etag[0]) && date[0] && head->modified[0] && strcmp(date, head->modified) != 0)
                return download_refuse(download, true,
                                       "it has changed at the origin: its Last-Modified is %s and was %s",
                                       head->modified, date); /* the next answer may be another node's */
        return 0;
}

static int check_range(struct download *download, uint64_t first, uint64_t last) {
        const struct http_head *head = &download->request.head;

        if (!head->has_range)
                return download_refuse(download, false, "status 206 without a Content-Range");
        if (head->range_first != first || head->range_last > last)
                return download_refuse(download, false,
                                       "the server sent bytes %" PRIu64 "-%" PRIu64 " when asked for %" PRIu64
                                       "-%" PRIu64,
                                       head->range_first, head->range_last, first, last);
        download->n_promised = head->range_last - first + 1;
        return 0;
}

/* Before the first byte is taken. */
static int check_head(struct download *download) {
        const struct http_head *head = &download->request.head;
        uint64_t first = download->piece->offset + download->n_done;
        uint64_t last = download->piece->offset + download->piece->n_bytes - 1;
        int r = 0;

        download->n_skip = 0;
        download->n_promised = UINT64_MAX;
        if (head->status == 206) {
                r = download_check_size(download, head->range_total);
                if (r >= 0)
                        r = check_range(download, first, last);
        } else if (head->status != 0) { /* 200: the whole file */
                r = download_check_size(download, head->n_bytes);
                download->n_skip = first;
                if (r >= 0 && first > DOWNLOAD_SKIP_MAX)
                        r = download_refuse(
                                download, false,
                                "the server knows no ranges, so files above %u MiB cannot be fetched in parts",
                                DOWNLOAD_SKIP_MAX >> 20);
        }
        if (r >= 0)
                r = check_content(download);
        if (r < 0)
                return r;

        if (!download->etag[0])
                strcpy(download->etag, head->etag);
        if (!download->modified[0] && http_head_is_dated(head))
                strcpy(download->modified, head->modified);
        download->is_checked = true;
        return 0;
}

/* Behind those that were held before; urgent ones before all others. */
static void hold(struct download *download) {
        struct download *after;

        download->is_held = true;
        TAILQ_FOREACH(after, &download->bandwidth->held, held) {
                if (download->is_urgent && !after->is_urgent) {
                        TAILQ_INSERT_BEFORE(after, download, held);
                        return;
                }
        }
        TAILQ_INSERT_TAIL(&download->bandwidth->held, download, held);
}

/* Is there bandwidth for what arrives? Else it is held. */
static bool may_take(struct download *download, size_t n_bytes) {
        uint64_t now_ns;

        if (download->bandwidth->bytes_per_s == 0)
                return true;
        now_ns = clock_now_ns();
        if (bandwidth_wait_ns(download->bandwidth, now_ns) > 0) {
                hold(download);
                return false;
        }
        bandwidth_take(download->bandwidth, n_bytes, now_ns);
        return true;
}

/* Its place has no room for it, or is gone: no server can help that. */
static int refuse_to_take(struct download *download, int error) {
        download->dead_urls = (1u << download->piece->file->n_urls) - 1;
        download_refuse(download, false, "%s", strerrordesc_np(-error));
        download->refusal.error = error;
        return error;
}

static int put(struct download *download, const uint8_t *bytes, size_t n_bytes) {
        struct fetch_piece *piece = download->piece;

        if (!piece->into)
                return n_bytes > 0 ? piece->take(piece, download->n_done, bytes, n_bytes) : 0;
        memcpy(piece->into + download->n_done, bytes, n_bytes);
        return 0;
}

static int on_bytes(void *userdata, const uint8_t *bytes, size_t n_bytes) {
        struct download *download = userdata;
        struct fetch_piece *piece = download->piece;
        size_t n_room = piece->n_bytes - download->n_done, n;
        int r;

        if (!may_take(download, n_bytes))
                return -EAGAIN;
        atomic_fetch_add_explicit(download->n_bytes, n_bytes, memory_order_relaxed);
        if (!download->is_checked) {
                r = check_head(download);
                if (r < 0)
                        return r;
                if (download->twin && download->twin->is_checked) { /* it writes to the same place */
                        download->is_late = true;
                        return -EALREADY;
                }
        }
        n = download->n_skip < n_bytes ? download->n_skip : n_bytes;
        download->n_skip -= n;
        bytes += n;
        n_bytes -= n;

        if (n_room > download->n_promised)
                n_room = download->n_promised;
        n = n_bytes < n_room ? n_bytes : n_room;
        r = put(download, bytes, n);
        if (r < 0)
                return refuse_to_take(download, r);
        download->n_done += (uint32_t)n;
        download->n_promised -= n;
        if (n == n_bytes)
                return 0;
        if (download->request.head.status == 206)
                return download_refuse(download, false,
                                       "more bytes came than its Content-Range says: %" PRIu64 "-%" PRIu64,
                                       download->request.head.range_first, download->request.head.range_last);
        /* A part was requested and the whole file comes: the part is enough. But nothing may come after the file's end.
         */
        if (piece->offset + piece->n_bytes < piece->file->n_bytes)
                return -EALREADY;
        return download_refuse(download, false, "more than the %" PRIu64 " bytes came that were listed",
                               piece->file->n_bytes);
}

/* ---- tries ---------------------------------------------------------------------------------------------------- */

int download_begin(struct download *download, const struct http *http, struct why *why) {
        const struct fetch_piece *piece = download->piece;
        struct http_ask ask = {
                .url = download_url(download),
                .is_range = download->n_done > 0 || piece->n_bytes < piece->file->n_bytes,
                .first = piece->offset + download->n_done,
                .last = piece->offset + piece->n_bytes - 1,
                .if_match = expected_etag(download),
                .is_large = download_is_large(download) || download->is_second,
                .sink = on_bytes,
                .userdata = download,
        };

        download->is_checked = download->is_refused = download->is_late = download->is_overdue = false;
        download->n_skip = 0;
        return http_request_init(&download->request, http, download->easy, &ask, why);
}

bool download_is_answered(const struct download *download) {
        return download->request.n_head_bytes > 0;
}

static void download_fail(struct http_failure *failure, bool again, const struct download *download, const char *what) {
        *failure = (struct http_failure){ .error = -EBADMSG, .again = again };
        snprintf(failure->text, sizeof(failure->text), "%s after %" PRIu64 " bytes of %" PRIu64, what,
                 download->piece->offset + download->n_done, download->piece->file->n_bytes);
}

int download_end(struct download *download, CURLcode result, struct http_failure *ret_failure) {
        struct http_request *request = &download->request;

        atomic_fetch_add_explicit(download->n_bytes, request->n_discarded, memory_order_relaxed);
        if (!download->is_refused && !download->is_checked && result == CURLE_OK && request->head.status < 300)
                check_head(download); /* nothing came: the head may tell why */
        if (download->is_refused) {
                *ret_failure = download->refusal;
                http_request_learn(request, false);
                return -1;
        }
        if (download->is_checked && download->n_done == download->piece->n_bytes) {
                http_request_learn(request, true);
                download->piece->has_xxh3 = request->head.has_xxh3;
                download->piece->xxh3 = request->head.xxh3;
                return 0;
        }
        if (http_request_judge(request, result, ret_failure) < 0) {
                size_t n = strlen(ret_failure->text);

                if (download->n_done > 0)
                        snprintf(ret_failure->text + n, sizeof(ret_failure->text) - n, " (%u bytes of %u)",
                                 download->n_done, download->piece->n_bytes);
                return -1;
        }
        /* A clean end, but too early: a local file is shorter; an answer without a length may have been cut on the way.
         */
        download_fail(ret_failure, request->scheme != URL_FILE, download, "it ended");
        return -1;
}

void download_turn_to(struct download *download, uint32_t idx_url) {
        download->idx_url = idx_url;
        download->n_done = 0;
        download->etag[0] = download->modified[0] = '\0';
}

void download_turn(struct download *download) {
        uint32_t n_urls = download->piece->file->n_urls;

        for (uint32_t i = 1; i < n_urls; i++) {
                uint32_t idx = (download->idx_url + i) % n_urls;

                if (download->dead_urls & (1u << idx))
                        continue;
                download_turn_to(download, idx);
                return;
        }
}

bool download_is_hopeless(const struct download *download) {
        return download->dead_urls == (1u << download->piece->file->n_urls) - 1;
}
