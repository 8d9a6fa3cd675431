#include "daemon/staging/fetch/transfer.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FEW_TRIES 3u

void transfer_init(struct transfer *transfer, struct fetch_work *work, struct fetch_piece *piece, uint32_t idx_url,
                   _Atomic uint64_t *n_bytes) {
        assert(piece->file->n_urls > 0 && piece->offset + piece->n_bytes <= piece->file->n_bytes);
        *transfer = (struct transfer){
                .easy = transfer->easy,
                .work = work,
                .piece = piece,
                .idx_url = idx_url % piece->file->n_urls,
                .n_bytes = n_bytes,
        };
}

const char *transfer_url(const struct transfer *transfer) {
        return transfer->piece->file->urls[transfer->idx_url];
}

bool transfer_is_large(const struct transfer *transfer) {
        return transfer->piece->n_bytes >= TRANSFER_LARGE_BYTES;
}

/* The ETag that an answer must have; NULL: any. The plan's is the first URL's: mirrors make their own. */
static const char *expected_etag(const struct transfer *transfer) {
        if (transfer->etag[0])
                return transfer->etag;
        return transfer->idx_url == 0 ? transfer->piece->file->etag : NULL;
}

/* ---- is it what was asked for? --------------------------------------------------------------------------------- */

static int refuse(struct transfer *transfer, bool again, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int refuse(struct transfer *transfer, bool again, const char *format, ...) {
        struct http_failure *refusal = &transfer->refusal;
        va_list arguments;

        *refusal = (struct http_failure){ .error = -EBADMSG, .again = again, .n_tries_max = FEW_TRIES };
        va_start(arguments, format);
        vsnprintf(refusal->text, sizeof(refusal->text), format, arguments);
        va_end(arguments);
        transfer->is_refused = true;
        return -EBADMSG;
}

static bool is_page(const char *path) {
        const char *dot = strrchr(path, '.');

        return dot && (strcasecmp(dot, ".html") == 0 || strcasecmp(dot, ".htm") == 0 || strcasecmp(dot, ".xhtml") == 0);
}

/* The size that the answer says the file has. What else is wrong with it explains a wrong size best. */
static int check_size(struct transfer *transfer, uint64_t n_bytes) {
        const struct plan_file *file = transfer->piece->file;
        const struct http_head *head = &transfer->request.head;

        if (n_bytes == file->n_bytes)
                return 0;
        if (head->is_html && !is_page(file->path))
                return refuse(transfer, true,
                              "an HTML page came in place of the file: an error page, or one to log in");
        if (head->is_encoded)
                return refuse(transfer, false, "it comes compressed (Content-Encoding), though that was not asked for");
        if (n_bytes != UINT64_MAX)
                return refuse(transfer, false, "it has %" PRIu64 " bytes at the origin; listed were %" PRIu64, n_bytes,
                              file->n_bytes);
        return 0;
}

static int check_etag(struct transfer *transfer) {
        const char *expected = expected_etag(transfer), *etag = transfer->request.head.etag;

        if (http_etag_agrees(expected, etag))
                return 0;
        return refuse(transfer, false, "it has changed at the origin: its ETag is %.80s and was %.80s", etag, expected);
}

static int check_range(struct transfer *transfer, uint64_t first, uint64_t last) {
        const struct http_head *head = &transfer->request.head;

        if (!head->has_range)
                return refuse(transfer, false, "status 206 without a Content-Range");
        if (head->range_first != first || head->range_last > last)
                return refuse(transfer, false,
                              "the server sent bytes %" PRIu64 "-%" PRIu64 " when asked for %" PRIu64 "-%" PRIu64,
                              head->range_first, head->range_last, first, last);
        return 0;
}

/* Before the first byte is taken. */
static int check_head(struct transfer *transfer) {
        const struct http_head *head = &transfer->request.head;
        uint64_t first = transfer->piece->offset + transfer->n_done;
        uint64_t last = transfer->piece->offset + transfer->piece->n_bytes - 1;
        int r = 0;

        transfer->n_skip = 0;
        if (head->status == 206) {
                r = check_size(transfer, head->range_total);
                if (r >= 0)
                        r = check_range(transfer, first, last);
        } else if (head->status != 0) { /* 200: the whole file */
                r = check_size(transfer, head->n_bytes);
                transfer->n_skip = first;
                if (r >= 0 && first > TRANSFER_SKIP_MAX)
                        r = refuse(transfer, false,
                                   "the server knows no ranges, so files above %u MiB cannot be fetched in parts",
                                   TRANSFER_SKIP_MAX >> 20);
        }
        if (r >= 0)
                r = check_etag(transfer);
        if (r < 0)
                return r;

        if (!transfer->etag[0])
                strcpy(transfer->etag, head->etag);
        transfer->is_checked = true;
        return 0;
}

static int on_bytes(void *userdata, const uint8_t *bytes, size_t n_bytes) {
        struct transfer *transfer = userdata;
        struct fetch_piece *piece = transfer->piece;
        size_t n_room = piece->n_bytes - transfer->n_done, n;
        int r;

        atomic_fetch_add_explicit(transfer->n_bytes, n_bytes, memory_order_relaxed);
        if (!transfer->is_checked) {
                r = check_head(transfer);
                if (r < 0)
                        return r;
        }
        n = transfer->n_skip < n_bytes ? transfer->n_skip : n_bytes;
        transfer->n_skip -= n;
        bytes += n;
        n_bytes -= n;

        n = n_bytes < n_room ? n_bytes : n_room;
        memcpy(piece->into + transfer->n_done, bytes, n);
        transfer->n_done += (uint32_t)n;
        if (n == n_bytes)
                return 0;
        /* A part was wanted of what comes whole: enough. But behind the file's end nothing may come. */
        if (piece->offset + piece->n_bytes < piece->file->n_bytes && transfer->request.head.status != 206)
                return -EALREADY;
        return refuse(transfer, false, "more than the %" PRIu64 " bytes came that were listed", piece->file->n_bytes);
}

/* ---- tries ---------------------------------------------------------------------------------------------------- */

int transfer_begin(struct transfer *transfer, const struct http *http, struct why *why) {
        const struct fetch_piece *piece = transfer->piece;
        struct http_ask ask = {
                .url = transfer_url(transfer),
                .is_range = transfer->n_done > 0 || piece->n_bytes < piece->file->n_bytes,
                .first = piece->offset + transfer->n_done,
                .last = piece->offset + piece->n_bytes - 1,
                .if_match = expected_etag(transfer),
                .is_large = transfer_is_large(transfer),
                .sink = on_bytes,
                .userdata = transfer,
        };

        transfer->is_checked = transfer->is_refused = false;
        transfer->n_skip = 0;
        return http_request_init(&transfer->request, http, transfer->easy, &ask, why);
}

static void fail(struct http_failure *failure, bool again, const struct transfer *transfer, const char *what) {
        *failure = (struct http_failure){ .error = -EBADMSG, .again = again };
        snprintf(failure->text, sizeof(failure->text), "%s after %" PRIu64 " bytes of %" PRIu64, what,
                 transfer->piece->offset + transfer->n_done, transfer->piece->file->n_bytes);
}

int transfer_end(struct transfer *transfer, CURLcode result, struct http_failure *ret_failure) {
        struct http_request *request = &transfer->request;

        atomic_fetch_add_explicit(transfer->n_bytes, request->n_discarded, memory_order_relaxed);
        if (!transfer->is_refused && !transfer->is_checked && result == CURLE_OK && request->head.status < 300)
                check_head(transfer); /* nothing came: the head may tell why */
        if (transfer->is_refused) {
                *ret_failure = transfer->refusal;
                return -1;
        }
        if (transfer->is_checked && transfer->n_done == transfer->piece->n_bytes)
                return 0;
        if (http_request_judge(request, result, ret_failure) < 0) {
                size_t n = strlen(ret_failure->text);

                if (transfer->n_done > 0)
                        snprintf(ret_failure->text + n, sizeof(ret_failure->text) - n, " (%u bytes of %u)",
                                 transfer->n_done, transfer->piece->n_bytes);
                return -1;
        }
        /* A clean end that comes early: a file is shorter, but what has no length may have been cut on the way. */
        fail(ret_failure, request->scheme != URL_FILE, transfer, "it ended");
        return -1;
}

void transfer_turn(struct transfer *transfer) {
        uint32_t n_urls = transfer->piece->file->n_urls;

        for (uint32_t i = 1; i < n_urls; i++) {
                uint32_t idx = (transfer->idx_url + i) % n_urls;

                if (transfer->dead_urls & (1u << idx))
                        continue;
                transfer->idx_url = idx;
                transfer->n_done = 0;
                transfer->etag[0] = '\0';
                return;
        }
}

bool transfer_is_hopeless(const struct transfer *transfer) {
        return transfer->dead_urls == (1u << transfer->piece->file->n_urls) - 1;
}
