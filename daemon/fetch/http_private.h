/* fetch/http_private.h: what fetch_http.c sets up once and http_request.c reads for each request. */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdint.h>

#include "daemon/fetch/credentials.h"
#include "daemon/fetch/fetch_http.h"
#include "daemon/fetch/late/curl_late.h"
#include "daemon/fetch/of_user.h"
#include "daemon/fetch/redirects.h"
#include "daemon/fetch/s3_address.h"
#include "daemon/fetch/s3_regions.h"

#define HTTP_IDLE_MAX 64u

struct http_head;

/* What the head of an answer says of the document. */
struct http_facts http_facts_of(const struct http_head *head);

struct http {
        const char *origin;         /* the only server that gets credentials; NULL: each that they are for */
        const char *peer_key;       /* as in struct http_options */
        const char *ca_file;        /* NULL: as libcurl was built */
        const char *ca_folder;      /* NULL: the same, if there is no ca_file either */
        char files_below[PATH_MAX]; /* "": files may lie anywhere */
        struct s3_store s3, gs;
        const char *hub;             /* the hub's endpoint, without a slash at its end */
        char *hub_text;              /* what it points to, if it was configured */
        struct s3_regions *regions;  /* that stores told */
        struct redirects *redirects; /* of the hub */
        struct credentials
                *credentials; /* read only from http_new() on, as what follows; NULL: no file is configured */
        struct of_user *user; /* NULL: only the configuration counts */
        uint32_t stall_s;
        uint32_t n_tries;

        pthread_mutex_t lock;      /* of what follows; never held while anything else is waited for */
        CURL *idle[HTTP_IDLE_MAX]; /* with their connections, for the next http_get() */
        uint32_t n_idle;
};
