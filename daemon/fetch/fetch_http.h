/* fetch/fetch_http.h: how an origin is spoken to: addresses, signatures, credentials; and short answers.
 *
 * libcurl speaks http, https and file; `s3://bucket/key` and `gs://bucket/key` become signed https requests to the
 * endpoint (libcurl's own signatures), in path or virtual-host style, in the region that the store tells if it is not
 * the one that is set. `hf://datasets/ORG/NAME@REVISION/PATH` becomes a request to the hub, with its token. Keys and
 * paths of these are plain (store/record/url.h). Redirects lead to http and https alone, from https to https
 * alone, at most ten; those of an object store are not followed. Proxies and CA settings are those of the environment
 * (http_proxy, https_proxy, no_proxy, SSL_CERT_FILE, SSL_CERT_DIR, CURL_CA_BUNDLE) unless the configuration names a
 * file. Credentials come from a file that only its owner may read (its format: fetch/credentials.h), and for a program
 * that serves one user from that user's own settings (fetch/of_user.h). They are in no log, no message and on no
 * command line, and go to no other server by a redirect (where a hub's redirects lead is remembered: redirects.h); URLs
 * are told without user, password and query. The program ignores SIGPIPE.
 *
 * Made before threads start; any number of threads may use it from then on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "proto/base/why.h"

/* The texts must outlive what is made of them, but for files_below. */
struct http_options {
        const char *endpoint;    /* of the origin's store or hub, "https://host:port"; NULL: the user's, else AWS of the
                                  * region, Google or huggingface.co */
        const char *region;      /* NULL: the user's, else "us-east-1" */
        const char *addressing;  /* "auto" (path style if there is an endpoint), "path", "virtual"; NULL: "auto" */
        const char *credentials; /* a file; NULL: the user's, else unsigned */
        bool of_user;            /* environment and home of the user that we run as count, too: nobody else is served */
        const char *origin; /* URL of the dataset's origin: credentials of web servers go to its server alone; NULL or
                             * a file: to each server that they are for */
        const char
                *files_below; /* folder in which files of this machine may lie (fetch/local_file.h); NULL: anywhere */
        const char *ca_file;  /* NULL: the environment's, else the system's */
        const char *peer_key; /* all servers are nodes of ours, asked with this token, by no proxy; NULL: none is */
        uint32_t stall_s;     /* a transfer below 1 KiB/s for so long has failed; 0: 30 */
        uint32_t n_tries;     /* of each request, with backoff between them; 0: 8 */
};

struct http;

/* Returns 0; -EACCES if the credentials' file may be read by others; -EINVAL if it is none; -ENOENT; -ENOMEM. */
int http_new(const struct http_options *options, struct http **ret_http, struct why *why);
void http_free(struct http *http); /* NULL is fine */
void http_freep(struct http **http);

struct http_answer {
        char *body; /* a NUL follows it */
        size_t n_bytes;
        char *url;  /* where redirects led */
        char *next; /* its Link header: the next page; NULL: it has none */
};

static inline void http_answer_fini(struct http_answer *answer) { /* of zeros, too */
        free(answer->body);
        free(answer->url);
        free(answer->next);
        *answer = (struct http_answer){ 0 };
}

/* Reads a whole document of `limit` bytes at most, with retries. `query` (may be NULL) goes after '?', already encoded
 * and in the order in which it is to be signed. Blocks; ends early with -ECANCELED once *cancel is true (may be NULL).
 * Returns 0, or an errno with `why` naming the URL without credentials: -ENOENT (404), -EACCES (401, 403), -EFBIG,
 * -ETIMEDOUT, -EPROTO (another status, TLS), -EIO. */
int http_get(struct http *http, const char *url, const char *query, size_t limit, const _Atomic bool *cancel,
             struct http_answer *ret_answer, struct why *why);

/* Do these first bytes of a document, of `n_bytes` so far, begin what is to be read? -EAGAIN: only more of it can tell.
 */
typedef int (*http_wanted)(const char *body, size_t n_bytes);

/* The same as http_get(), unless the document turns out to be another one than was meant: then the rest is not read,
 * and it returns HTTP_NOT_WANTED. What ends before that can be told is returned. */
#define HTTP_NOT_WANTED 1
int http_get_if(struct http *http, const char *url, size_t limit, http_wanted wanted, const _Atomic bool *cancel,
                struct http_answer *ret_answer, struct why *why);

struct http_facts {
        uint64_t n_bytes;  /* UINT64_MAX: it does not say */
        char etag[256];    /* "" : it does not say */
        char modified[64]; /* its Last-Modified, if that tells one content from the next; "" */
        bool has_ranges;   /* it says that it serves ranges */
        bool is_html;      /* Content-Type text/html: an error page, more often than not */
};

/* What is known of a document without reading it (HEAD; if that is refused or says no length, a GET of one byte). Of
 * file: size alone, -EISDIR for a folder. As http_get(). */
int http_look(struct http *http, const char *url, const _Atomic bool *cancel, struct http_facts *ret_facts,
              struct why *why);

/* Documents of http and https, or of a store, by their numbers from 0 on. */
struct http_looks {
        uint64_t n;
        uint32_t n_connections;                           /* the most that are asked for side by side, at least 1 */
        const char *(*url)(void *userdata, uint64_t idx); /* NULL: this one is not asked for */
        bool (*take)(void *userdata, uint64_t idx, const struct http_facts *facts); /* false: that will not do */
        bool (*is_to_stop)(void *userdata);                                         /* asked about every 100 ms */
        void *userdata;
};

/* What HEAD says of as many of them as one try each gives. It ends with the first that does not work, or will not do:
 * some have not been taken then, and http_look() knows more. All calls are on the caller's thread, for as long as it
 * takes. */
void http_look_at_many(struct http *http, const struct http_looks *looks);
