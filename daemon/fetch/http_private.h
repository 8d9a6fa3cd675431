/* fetch/http_private.h: what fetch_http.c sets up once and http_request.c reads for each request. */
#pragma once

#include <curl/curl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>

#include "daemon/fetch/credentials.h"
#include "daemon/fetch/fetch_http.h"
#include "daemon/fetch/s3_address.h"

#define HTTP_IDLE_MAX 64u

struct http {
        const char *origin;         /* the only server that gets credentials; NULL: each that they are for */
        const char *ca_file;        /* NULL: as libcurl was built */
        const char *ca_folder;      /* NULL: the same, if there is no ca_file either */
        char files_below[PATH_MAX]; /* "": files may lie anywhere */
        char signature[128];        /* "aws:amz:REGION:s3" */
        struct s3_store store;
        struct credentials *credentials; /* read only from http_new() on */
        uint32_t stall_s;
        uint32_t n_tries;

        pthread_mutex_t lock;      /* of what follows; never held while anything else is waited for */
        CURL *idle[HTTP_IDLE_MAX]; /* with their connections, for the next http_get() */
        uint32_t n_idle;
};
