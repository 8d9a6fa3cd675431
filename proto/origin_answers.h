/* proto/origin_answers.h: how the origin of a dataset, which lies elsewhere, answers a node: what the daemon has measured lately.
 *
 * The daemon's cache fills it in (daemon/store/cache/cache.h), a reason to wait has it as text, and replies carry it to
 * clients. */
#pragma once

#include <stdint.h>

#include "proto/limits.h"

struct dlp_origin {
        char url[256];               /* without user, password and query */
        uint64_t n_answers;          /* that the next two are made of; 0: none came yet */
        uint64_t first_byte_ns;      /* the median: from sending a request to the first byte of its answer */
        uint64_t first_byte_late_ns; /* 99.9 % of the answers began earlier */
        uint64_t horizon_ns;         /* that is looked ahead for those who need it; 0: not said */
        uint64_t bytes_per_second;   /* while there was something to fetch; 0: not known yet */
        uint64_t n_requests;         /* since it was opened */
        uint64_t n_retries;          /* of them: tries after the first */
        uint64_t n_paused;           /* times that it asked to be left alone (429, 503) */
        char trouble[DLP_TEXT_MAX];  /* why the last retry was needed; "": none was */
        uint64_t n_ahead;            /* asked for and not here yet: chunks and pieces, */
        uint64_t ahead_bytes;        /* and their bytes */
        uint32_t n_connections;      /* to it, at most */
        uint64_t n_files;            /* that it has */
        uint64_t total_bytes;        /* of these */
        uint64_t cached_bytes;       /* of these, here */
        uint64_t cache_bytes;        /* in the cache, of all origins */
        uint64_t cache_limit;
};

/* "its first byte takes 120 ms (99.9 %: 2.1 s), 11.8 MiB/s; 3 retries (HTTP 503), paused twice ...". What is not known
 * is left out. Returns `buffer`. */
const char *dlp_origin_text(const struct dlp_origin *origin, char buffer[DLP_TEXT_MAX]);
