/* fetch/http_request.h: one request on a libcurl handle, with everything that all requests have in common:
 * address, signature, credentials, limits, and what of the answer is a failure. The caller performs it, alone
 * (fetch_http.c) or among many (fetch.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/fetch/fetch_http.h"
#include "daemon/fetch/http_head.h"
#include "daemon/fetch/late/curl_late.h"
#include "daemon/fetch/s3_regions.h"
#include "daemon/store/record/url.h"
#include "proto/base/why.h"

/* The next bytes of a body that is no error's; the head is known. -EAGAIN: not now; the transfer is paused, and the
 * bytes come again after curl_easy_pause(). Another negative errno ends the transfer, after which http_request_judge()
 * says nothing: the sink knows why. */
typedef int (*http_sink)(void *userdata, const uint8_t *bytes, size_t n_bytes);

#define HTTP_HEAD_MAX (512u << 10) /* bytes of heads of one request: who sends more sends without end */

struct http_ask {
        const char *url;
        const char *query; /* NULL: none */
        bool is_range;     /* bytes [first, last] are asked for */
        uint64_t first, last;
        const char *if_match; /* NULL: none; weak ones are left out, since they match nothing */
        bool only_head;
        bool is_large; /* a connection of its own rather than a share of one (HTTP/2) */
        http_sink sink;
        void *userdata;
        const _Atomic bool *cancel; /* looked at about once a second; may be NULL */
};

struct http_request {
        CURL *easy;
        struct http_ask ask;
        struct curl_slist *headers;
        struct http_head head;
        char shown[URL_SHOWN_SIZE]; /* the URL as it may be told */
        struct s3_regions *regions;
        char bucket[S3_BUCKET_NAME_SIZE]; /* of an object store; cut if it is no bucket's name */
        char region[S3_REGION_SIZE];      /* in which it is asked for */
        bool has_keys;                    /* it is signed, or has a token */
        const struct http *http;          /* of a part of a hub's file: where its redirects are kept, */
        char *hub_url;                    /* and what was asked for; NULL: it is none */
        bool is_remembered;               /* it goes where an earlier one was led */
        enum url_scheme scheme;
        bool is_plain; /* http: no two requests can share a connection */
        char curl_text[CURL_ERROR_SIZE];
        bool has_file; /* of this machine: file_fd is open, or file_error says why not */
        int file_fd;
        int file_error;
        int sink_error;       /* what the sink returned; 0 */
        uint64_t n_body;      /* bytes of a body that is no error's */
        bool is_pointer;      /* which is a Git LFS pointer in place of a file */
        uint64_t n_discarded; /* bytes of error pages */
        size_t n_head_bytes;  /* of all answers, redirects too */
};

/* What became of a request that did not work. */
struct http_failure {
        int error;            /* negative errno */
        bool again;           /* another try may help */
        uint32_t n_tries_max; /* if so many have failed so, that is enough; 0: as configured */
        bool is_busy;         /* the server has too much to do: that holds for all that would go there */
        uint64_t pause_ns;    /* what it asks for (Retry-After); 0: nothing */
        char text[512];       /* "status 503 (Service Unavailable)"; without URL */
};

/* Sets the handle up (everything that was set on it is forgotten, its connections stay). `request` must stay where it
 * is until http_request_fini(); the texts of `ask` are copied or looked at only here, except `cancel`. Returns 0;
 * -EINVAL with `why` for a URL that is none; -ENOMEM. */
int http_request_init(struct http_request *request, const struct http *http, CURL *easy, const struct http_ask *ask,
                      struct why *why);
void http_request_fini(struct http_request *request); /* of zeros, too */

/* After the transfer: did it work (0), or why not (-1, *ret_failure)? A status of 300 and more is a failure. */
int http_request_judge(struct http_request *request, CURLcode result, struct http_failure *ret_failure);

/* Once it is judged: keeps where the hub has led it, or forgets where that was refused. */
void http_request_learn(struct http_request *request, bool has_worked);

/* Is the server's name looked up? libcurl's multi handle keeps it then for other requests. */
bool http_has_name(CURL *easy);

/* How often a request is tried; how long a transfer may stand still. */
uint32_t http_n_tries(const struct http *http);
