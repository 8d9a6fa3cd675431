/* fetch/fetch.h: pieces of files from the origin, into memory or to whoever takes them as they come: many at once, tried
 * again, from mirrors.
 *
 * One thread with one libcurl multi handle. A job is a list of pieces (the files of a chunk, or one range of a large
 * file); its pieces are fetched side by side over at most `n_connections` connections that stay open, and done() is
 * called when all of them are there or one cannot be had. A piece that fails is tried again after a growing, jittered
 * pause, from the next mirror in turn; on the same mirror it goes on where it ended. What another try cannot mend (404
 * on all mirrors, a file that is longer than it should be, another ETag) fails at once.
 *
 * Urgent jobs: somebody waits for them. Their pieces are begun before all others, and for URGENT_LATELY_NS after the
 * last one a quarter of the connections is left to them, so that the next need not wait for a large piece to end. An
 * urgent piece of 1 MiB or less whose answer is later than 99 of 100 (fetch/engine/servers.h) is asked for a second
 * time over another connection, and the first answer counts; that is done with at most one request of twenty.
 *
 * Servers that have too much to do (429, 503) are left alone for as long as they say, or for a pause that grows with
 * each refusal, and are then asked by half as many requests side by side (fetch/engine/servers.h). A Retry-After of
 * more than two minutes is a failure.
 *
 * Small pieces share HTTP/2 connections where a server speaks it; those of 1 MiB and more have one of their own. From a
 * server without ranges, parts are had up to 32 MiB into a file, by reading past what is before them.
 *
 * Checked here: status, Content-Range, length, ETag (the plan's for the first URL, for the others that it does not
 * change between tries), that no HTML page comes in place of a file, nothing compressed. Not here: SHA-256.
 *
 * Memory: 300 KiB a connection at most, beside the pieces themselves. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/threads/queue.h"
#include "daemon/fetch/fetch_http.h"
#include "daemon/store/plan/plan.h"
#include "proto/base/why.h"

#define URGENT_LATELY_NS 2000000000ull

struct fetch_piece {
        const struct plan_file *file;
        uint64_t offset;  /* bytes */
        uint32_t n_bytes; /* 0: nothing is asked for */
        uint8_t *into;    /* NULL: take() */

        /* On the fetcher's thread: these bytes of the piece, from `at` on. They come in sequence, and begin again at 0
         * if another mirror sends the piece. A negative errno ends the job with it: no other try, and no mirror. */
        int (*take)(struct fetch_piece *piece, uint32_t at, const uint8_t *bytes, size_t n_bytes);
        void *userdata; /* take()'s */

        bool has_xxh3; /* set when it is there: the server told a digest of the chunk */
        uint64_t xxh3;
};

struct download;
TAILQ_HEAD(fetch_jobs, fetch_job);

/* The caller's, and not touched by it from submit until done(). */
struct fetch_job {
        struct fetch_piece *pieces;
        uint32_t n_pieces;
        uint32_t idx_mirror; /* which URL to begin with, modulo their number: 1 when a file from 0 proved bad */
        bool is_urgent;
        void *userdata;

        /* Set when done() is called. */
        int result;     /* 0, or an errno as of http_get(); -EBADMSG: not what the plan says; -ECANCELED */
        struct why why; /* names file and URL */

        /* The fetcher's, from submit until done(). */
        struct fetch_jobs *list; /* where it is; NULL: it is done */
        TAILQ_ENTRY(fetch_job) entry;
        LIST_HEAD(, download) downloads; /* of its pieces, under way or waiting */
        uint32_t idx_next;               /* the first piece that was not begun */
        uint32_t n_complete;             /* pieces that are there */
};

struct fetcher_options {
        struct http *http;                   /* outlives the fetcher */
        uint32_t n_connections;              /* 0: 16; 1,024 at most */
        uint64_t max_bytes_per_s;            /* over all of them; 0: no limit */
        uint64_t answer_ns;                  /* an answer that has not begun by then has failed; 0: as http says */
        void (*done)(struct fetch_job *job); /* on the fetcher's thread: hand over and return; may submit */
};

/* Of what came lately. */
struct fetcher_latency {
        uint64_t n_answers; /* that the two quantiles are made of; 0: none came yet */
        uint64_t first_byte_median_ns;
        uint64_t first_byte_p999_ns; /* 99.9 % of the answers began earlier */
        uint64_t bytes_per_s;        /* while there was something to fetch; 0: not known yet */
};

struct fetcher_counts {
        uint64_t n_bytes;    /* bodies received, also of what was thrown away */
        uint64_t n_requests; /* sent */
        uint64_t n_retries;  /* of them: tries after the first */
        uint64_t n_hedged;   /* of them: second ones, since the first was late */
        uint64_t n_paused;   /* times that a server was left alone because it said so (429, 503) */
        struct fetcher_latency latency;
        struct why last; /* why the last retry was needed; "" if none was */
};

struct fetcher;

int fetcher_start(const struct fetcher_options *options, struct fetcher **ret_fetcher, struct why *why);

/* Any thread; never blocks. In the order of submission as far as connections allow, urgent ones first. */
void fetcher_submit(struct fetcher *fetcher, struct fetch_job *job);

/* The pieces of a submitted job that were not begun become urgent. Any thread; never blocks. Not once done() has
 * returned for it, which is the caller's to know. */
void fetcher_hurry(struct fetcher *fetcher, struct fetch_job *job);

/* A submitted job of which nothing was begun is done soon, with -ECANCELED; any other goes on. As fetcher_hurry(). */
void fetcher_cancel(struct fetcher *fetcher, struct fetch_job *job);

/* Completes everything with -ECANCELED and ends the thread; done() is not to answer that with new jobs. Takes as long
 * as done() does. NULL is fine. */
void fetcher_stop(struct fetcher *fetcher);

/* Any thread. */
void fetcher_counts(struct fetcher *fetcher, struct fetcher_counts *ret_counts);
