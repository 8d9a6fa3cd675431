/* fetch/engine/download.h: one piece on its way: what is asked for in each try, and whether the answer is that. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/fetch/engine/bandwidth.h"
#include "daemon/fetch/fetch.h"
#include "daemon/fetch/http_request.h"

/* A server without ranges sends the file from its beginning: so much is read past and thrown away, for files above it
 * they cannot be fetched in parts. */
#define DOWNLOAD_SKIP_MAX (32u << 20)

/* Above it a piece is worth a connection of its own. */
#define DOWNLOAD_LARGE_BYTES (1u << 20)

enum download_state {
        DOWNLOAD_IDLE,
        DOWNLOAD_RETRYING, /* not before due_ns */
        DOWNLOAD_WAITING,  /* for its server, or for a connection */
        DOWNLOAD_RUNNING,
};

struct download {
        enum download_state state;
        TAILQ_ENTRY(download) entry; /* in the list of its state, unless it is running */
        LIST_ENTRY(download) of_job;
        struct fetch_job *job;
        struct fetch_piece *piece;
        bool is_urgent;
        uint64_t due_ns;
        uint32_t n_done;      /* bytes in place; the next try continues after them if it goes to the same mirror */
        uint32_t n_done_best; /* the most that any try came to */
        uint32_t n_failed;
        uint32_t idx_url;
        uint32_t dead_urls; /* a bit a mirror: it cannot have it */
        char etag[256];     /* of this mirror's first answer; "" if it has none */
        char modified[64];  /* the same of its Last-Modified, if that tells contents apart */

        /* Of this try. */
        CURL *easy; /* made with the first, then kept */
        struct server *server;
        uint64_t begun_ns;
        bool is_overdue;                  /* its answer had not begun when it should have */
        bool is_unanswered;               /* it is in its server's list of these */
        TAILQ_ENTRY(download) unanswered; /* in that list */
        struct download *twin;            /* the same piece, asked for a second time; NULL */
        bool is_second;                   /* of the two: has a connection of its own */
        struct http_request request;
        uint64_t n_skip;     /* bytes of the body before the next that is wanted */
        uint64_t n_promised; /* bytes after those that are the file's: as many as its Content-Range says */
        bool is_checked;     /* the head was looked at, and is right */
        bool is_refused;     /* by us: `refusal` says why */
        bool is_late;        /* its twin's answer came first */
        struct http_failure refusal;
        struct bandwidth *bandwidth;
        bool is_held; /* what arrived waits for bandwidth */
        TAILQ_ENTRY(download) held;
        _Atomic uint64_t *n_bytes; /* what arrives is added to it */
};

/* Begins with a piece, whose file has at least one URL. What was in `download` before is forgotten, but for `easy`. */
void download_init(struct download *download, struct fetch_job *job, struct fetch_piece *piece, uint32_t idx_url,
                   struct bandwidth *bandwidth, _Atomic uint64_t *n_bytes);

/* Sets the handle up for a try; the caller performs it. Errno with `why` as of http_request_init(). */
int download_begin(struct download *download, const struct http *http, struct why *why);

/* Has the server begun to answer? */
bool download_is_answered(const struct download *download);

/* After a try: 0, the piece is there; -1: *ret_failure says why not. */
int download_end(struct download *download, CURLcode result, struct http_failure *ret_failure);

/* Chooses the next mirror in turn that is not dead, if there is another. What another mirror sent is forgotten. */
void download_turn(struct download *download);
void download_turn_to(struct download *download, uint32_t idx_url); /* or this one */

/* Nothing was tried on any mirror that is not dead? */
bool download_is_hopeless(const struct download *download);

bool download_is_large(const struct download *download);
const char *download_url(const struct download *download);
