#include "daemon/fetch/http_request.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/fetch/http_private.h"
#include "daemon/fetch/hub_address.h"
#include "daemon/fetch/local_file.h"
#include "daemon/fetch/url_line.h"
#include "proto/base/cleanup.h"
#include "proto/version.h"

#define REDIRECTS_MAX      10L
#define CONNECT_S_MAX      15u
#define SLOW_BYTES_PER_S   1024L        /* below it for stall_s counts as no progress */
#define LARGE_BUFFER_BYTES (256L << 10) /* fewer system calls a MiB */
#define SMALL_BUFFER_BYTES (64L << 10)  /* 20 % less CPU than libcurl's 16 KiB for files of 110 KB */
#define ERROR_PAGE_BYTES   (256u << 10) /* a longer one is not read to its end: the connection is given up instead */

/* SHA-256 of nothing: what a request without a body sends. Stores require it; libcurl signs it but does not add it.
 */
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* ---- callbacks --------------------------------------------------------------------------------------- */

static size_t on_header(char *line, size_t size, size_t n, void *userdata) {
        struct http_request *request = userdata;

        request->n_head_bytes += size * n;
        if (request->n_head_bytes > HTTP_HEAD_MAX)
                return 0;
        http_head_line(&request->head, line, size * n);
        return size * n;
}

/* The body of an error is not the file: its beginning is kept, the rest is skipped so that the connection can be
 * reused. */
static size_t http_request_take_error(struct http_request *request, const char *bytes, size_t n_bytes) {
        struct http_head *head = &request->head;
        size_t n_room = sizeof(head->error) - head->n_error_bytes;
        size_t n = n_bytes < n_room ? n_bytes : n_room;

        memcpy(head->error + head->n_error_bytes, bytes, n);
        head->n_error_bytes += n;
        request->n_discarded += n_bytes;
        return request->n_discarded > ERROR_PAGE_BYTES ? 0 : n_bytes;
}

/* What Git keeps in place of a file that lies elsewhere. A repository may hold such a one whose file was never
 * uploaded.
 */
static bool begins_as_pointer(const struct http_request *request, const char *bytes, size_t n_bytes) {
        static const char POINTER[] = "version https://git-lfs.github.com/spec/v1\n";

        return request->scheme == URL_HF && request->n_body == 0 &&
               !(request->ask.is_range && request->ask.first > 0) && n_bytes >= strlen(POINTER) &&
               memcmp(bytes, POINTER, strlen(POINTER)) == 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *userdata) {
        struct http_request *request = userdata;
        int r;

        if (request->head.status >= 300)
                return http_request_take_error(request, bytes, size * n);
        if (!request->ask.sink)
                return 0;
        if (begins_as_pointer(request, bytes, size * n)) {
                request->is_pointer = true;
                return 0;
        }
        request->n_body += size * n;
        r = request->ask.sink(request->ask.userdata, (const uint8_t *)bytes, size * n);
        if (r == -EAGAIN)
                return CURL_WRITEFUNC_PAUSE;
        if (r < 0) {
                request->sink_error = r;
                return 0;
        }
        return size * n;
}

static int http_request_on_progress(void *userdata, curl_off_t n_down_total, curl_off_t n_down, curl_off_t n_up_total,
                                    curl_off_t n_up) {
        struct http_request *request = userdata;

        return atomic_load_explicit(request->ask.cancel, memory_order_relaxed);
}

/* ---- setting up ----------------------------------------------------------------------------------------------- */

/* libcurl refuses an option if memory is short, or if it is older than the one that we were built with. */
#define SET(easy, option, value)                                                                                       \
        ({                                                                                                             \
                if (curl_easy_setopt(easy, option, value) != CURLE_OK)                                                 \
                        return -ENOMEM;                                                                                \
        })

static int add_header(struct http_request *request, const char *name, const char *value) {
        _cleanup_(freep) char *line = NULL;
        struct curl_slist *headers;

        if (asprintf(&line, "%s: %s", name, value) < 0) {
                line = NULL;
                return -ENOMEM;
        }
        headers = curl_slist_append(request->headers, line);
        if (!headers)
                return -ENOMEM;
        request->headers = headers;
        return 0;
}

static bool is_store(const struct http_request *request) {
        return request->scheme == URL_S3 || request->scheme == URL_GS;
}

static int set_common(struct http_request *request, const struct http *http) {
        CURL *easy = request->easy;
        uint32_t connect_s = http->stall_s < CONNECT_S_MAX ? http->stall_s : CONNECT_S_MAX;

        SET(easy, CURLOPT_NOSIGNAL, 1L);   /* threads */
        SET(easy, CURLOPT_QUICK_EXIT, 1L); /* an end does not wait for a resolver that hangs */
        SET(easy, CURLOPT_USERAGENT, "dataloaderd/" DLP_FULL_VERSION);
        SET(easy, CURLOPT_ERRORBUFFER, request->curl_text);
        SET(easy, CURLOPT_PRIVATE, request);
        SET(easy, CURLOPT_HEADERFUNCTION, on_header);
        SET(easy, CURLOPT_HEADERDATA, request);
        SET(easy, CURLOPT_WRITEFUNCTION, on_body);
        SET(easy, CURLOPT_WRITEDATA, request);
        SET(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's answer to CONNECT is not the origin's */
        SET(easy, CURLOPT_CONNECTTIMEOUT, (long)connect_s);
        SET(easy, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES_PER_S);
        SET(easy, CURLOPT_LOW_SPEED_TIME, (long)http->stall_s);
        SET(easy, CURLOPT_TCP_KEEPALIVE, 1L);
        SET(easy, CURLOPT_PATH_AS_IS, 1L); /* ".." and "//" are a part of an object's name; nobody resolves them */
        if (http->ca_file)
                SET(easy, CURLOPT_CAINFO, http->ca_file);
        if (http->ca_file || http->ca_folder)
                SET(easy, CURLOPT_CAPATH, http->ca_folder);
        if (http->peer_key)
                SET(easy, CURLOPT_PROXY, "");
        if (request->ask.cancel) {
                SET(easy, CURLOPT_NOPROGRESS, 0L);
                SET(easy, CURLOPT_XFERINFOFUNCTION, http_request_on_progress);
                SET(easy, CURLOPT_XFERINFODATA, request);
        }
        return 0;
}

/* A redirect leads to http and https only, never to a file of this machine, and from https to https. One of an object
 * store is not followed at all, since libcurl would send the session token along. */
static int set_protocols(struct http_request *request, const struct http *http) {
        bool is_encrypted = request->scheme == URL_HTTPS ||
                            (request->scheme == URL_HF && strncasecmp(http->hub, "https:", 6) == 0);
        CURL *easy = request->easy;

        SET(easy, CURLOPT_PROTOCOLS_STR, request->scheme == URL_FILE ? "file" : "http,https");
        SET(easy, CURLOPT_REDIR_PROTOCOLS_STR, is_encrypted ? "https" : "http,https");
        SET(easy, CURLOPT_FOLLOWLOCATION, is_store(request) || http->peer_key ? 0L : 1L);
        SET(easy, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
        return 0;
}

/* Small files go side by side over one HTTP/2 connection where the server speaks it: a round trip less each. Large ones
 * have a connection each, or one congestion window and one core's TLS would carry them all. libcurl gives a request for
 * HTTP/1.1 an idle HTTP/2 connection, too, unless the two differ in their TLS settings; that the newest version is
 * named, or left open, makes the difference and changes nothing else. */
static int set_version(struct http_request *request) {
        CURL *easy = request->easy;

        if (request->ask.is_large) {
                SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
                SET(easy, CURLOPT_SSLVERSION, (long)(CURL_SSLVERSION_TLSv1_2 | CURL_SSLVERSION_MAX_TLSv1_3));
        } else {
                SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
                SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
                if (!request->is_plain) /* it would wait for the first answer */
                        SET(easy, CURLOPT_PIPEWAIT, 1L);
        }
        /* Refused while a handle still holds the buffer of an HTTP/2 transfer; then the one that it has serves. */
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, request->ask.is_large ? LARGE_BUFFER_BYTES : SMALL_BUFFER_BYTES);
        return 0;
}

/* Google's own keys begin so. AWS' would make Google refuse what everybody may read. */
static bool is_for_google(const struct http *http, const struct credentials_s3 *keys) {
        return strncmp(keys->access_key, "GOOG", 4) == 0 || !strstr(http->gs.endpoint, "googleapis.com");
}

/* With keys libcurl signs; all headers that are set here are signed with it. */
static int set_signature(struct http_request *request, const struct http *http) {
        const struct credentials_s3 *keys = credentials_s3(http->credentials);
        char signature[S3_REGION_SIZE + 32];
        CURL *easy = request->easy;
        int r;

        if (!keys && http->user && http->user->s3.access_key)
                keys = &http->user->s3;
        if (!keys || (request->scheme == URL_GS && !is_for_google(http, keys)))
                return 0;
        request->has_keys = true;
        snprintf(signature, sizeof(signature), "aws:amz:%s:s3", request->region);
        SET(easy, CURLOPT_AWS_SIGV4, signature);
        SET(easy, CURLOPT_USERNAME, keys->access_key);
        SET(easy, CURLOPT_PASSWORD, keys->secret_key);
        r = add_header(request, "x-amz-content-sha256", EMPTY_SHA256);
        if (r >= 0 && keys->session_token)
                r = add_header(request, "x-amz-security-token", keys->session_token);
        return r;
}

/* The token of the configuration, else the user's. */
static const struct credentials_web *hub_credentials(const struct http *http, struct credentials_web *user) {
        const struct credentials_web *web = credentials_web(http->credentials, http->hub);

        *user = (struct credentials_web){ .token = http->user ? http->user->hub_token : NULL };
        return web ? web : user->token ? user : NULL;
}

/* libcurl takes them off again where a redirect leads to another host. */
static int set_credentials(struct http_request *request, const struct http *http) {
        const struct credentials_web *web;
        struct credentials_web user;
        CURL *easy = request->easy;

        if (request->is_remembered) /* the URL itself is signed; the token is the hub's */
                return 0;
        if (http->peer_key) {
                user = (struct credentials_web){ .token = http->peer_key };
                web = &user;
        } else if (request->scheme == URL_HF)
                web = hub_credentials(http, &user);
        else if (http->origin && !url_same_server(http->origin, request->ask.url))
                return 0;
        else
                web = credentials_web(http->credentials, request->ask.url);
        if (!web)
                return 0;
        request->has_keys = true;
        if (web->token) {
                SET(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
                SET(easy, CURLOPT_XOAUTH2_BEARER, web->token);
        } else {
                SET(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
                SET(easy, CURLOPT_USERNAME, web->user);
                SET(easy, CURLOPT_PASSWORD, web->password);
        }
        return 0;
}

static int set_what(struct http_request *request) {
        const struct http_ask *ask = &request->ask;
        CURL *easy = request->easy;
        char range[64];
        int r = 0;

        if (ask->only_head)
                SET(easy, CURLOPT_NOBODY, 1L);
        if (ask->is_range) {
                snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, ask->first, ask->last);
                SET(easy, CURLOPT_RANGE, range);
        }
        if (ask->if_match && *ask->if_match == '"')
                r = add_header(request, "If-Match", ask->if_match);
        if (r >= 0 && !is_store(request)) /* not there: proxies change it, which would break the signature */
                r = add_header(request, "Accept-Encoding", "identity");
        if (r >= 0 && request->headers)
                SET(easy, CURLOPT_HTTPHEADER, request->headers);
        return r;
}

/* libcurl gets the file that we have opened: by itself it would follow a link that lies there by then. What cannot be
 * opened fails as a transfer, and http_failure.c knows why. */
static int set_file(struct http_request *request, const struct http *http) {
        char line[64];

        request->has_file = true;
        request->file_fd = -1;
        request->file_error = local_file_open(request->ask.url, http->files_below, &request->file_fd);
        snprintf(line, sizeof(line), "file:///proc/self/fd/%d", request->file_fd);
        SET(request->easy, CURLOPT_URL, line);
        return 0;
}

/* A part of a hub's file goes where an earlier one was led, if that is known. */
static int remember(struct http_request *request, const struct http *http, char **ret_line) {
        request->http = http;
        request->hub_url = strdup(request->ask.url);
        if (!request->hub_url)
                return -ENOMEM;
        *ret_line = redirects_get(http->redirects, request->hub_url);
        request->is_remembered = *ret_line != NULL;
        return 0;
}

void http_request_learn(struct http_request *request, bool has_worked) {
        const char *url = NULL;

        if (request->hub_url && request->is_remembered && !has_worked)
                redirects_forget(request->http->redirects, request->hub_url);
        if (!request->hub_url || request->is_remembered || !has_worked ||
            curl_easy_getinfo(request->easy, CURLINFO_EFFECTIVE_URL, &url) != CURLE_OK || !url ||
            url_same_server(request->http->hub, url)) /* there it would need the token */
                return;
        redirects_set(request->http->redirects, request->hub_url, url);
}

static int set_address(struct http_request *request, const struct http *http, struct why *why) {
        _cleanup_(freep) char *address = NULL, *line = NULL;
        struct s3_store store = request->scheme == URL_GS ? http->gs : http->s3;
        int r = 0;

        if (is_store(request)) {
                s3_regions_get(http->regions, request->bucket, store.region, request->region);
                store.region = request->region;
                r = s3_address(&store, request->ask.url, &address, why);
        } else if (request->scheme == URL_HF) {
                r = hub_address(http->hub, request->ask.url, &address, why);
                if (r >= 0 && request->ask.is_range)
                        r = remember(request, http, &line);
        }
        if (r < 0)
                return r;
        if (!line)
                line = url_line(address ? address : request->ask.url, request->ask.query);
        if (!line)
                return -ENOMEM;
        request->is_plain = strncasecmp(line, "http:", 5) == 0;
        SET(request->easy, CURLOPT_URL, line);
        return 0;
}

/* What the user's own settings ask for and we cannot do. The configuration's keys make them needless. Nobody's keys are
 * needed for what Google shows to everybody. */
static int check_user(const struct http_request *request, const struct http *http, struct why *why) {
        const struct of_user *user = http->user;
        bool is_s3 = request->scheme == URL_S3 || (request->scheme == URL_GS && user && user->s3_error != -ENOTSUP);

        if (user && is_s3 && user->s3_error && !credentials_s3(http->credentials))
                return why_set(why, user->s3_error, "%s: %s", request->shown, user->s3_why.text);
        if (user && request->scheme == URL_HF && user->hub_error && !credentials_web(http->credentials, http->hub))
                return why_set(why, user->hub_error, "%s: %s", request->shown, user->hub_why.text);
        return 0;
}

int http_request_init(struct http_request *request, const struct http *http, CURL *easy, const struct http_ask *ask,
                      struct why *why) {
        struct url url;
        int r;

        *request = (struct http_request){ .easy = easy, .ask = *ask, .regions = http->regions };
        http_head_clear(&request->head);
        url_show(ask->url, request->shown);
        r = url_parse(ask->url, &url, why);
        if (r < 0)
                return r;
        request->scheme = url.scheme;
        snprintf(request->bucket, sizeof(request->bucket), "%.*s", (int)url.n_host, url.host);
        r = check_user(request, http, why);
        if (r < 0)
                return r;

        curl_easy_reset(easy);
        r = request->scheme == URL_FILE ? set_file(request, http) : set_address(request, http, why);
        if (r == -EINVAL)
                return r;
        if (r >= 0)
                r = set_common(request, http);
        if (r >= 0)
                r = set_protocols(request, http);
        if (r >= 0)
                r = set_version(request);
        if (r >= 0)
                r = is_store(request) ? set_signature(request, http) : set_credentials(request, http);
        if (r >= 0)
                r = set_what(request);
        request->ask.url = request->ask.query = request->ask.if_match = NULL; /* they may go now */
        return r < 0 ? why_set(why, r, "%s: no memory", request->shown) : 0;
}

void http_request_fini(struct http_request *request) {
        if (request->easy) /* what points into the request goes with it; the handle may live on */
                curl_easy_reset(request->easy);
        curl_slist_free_all(request->headers);
        request->headers = NULL;
        free(request->hub_url);
        request->hub_url = NULL;
        request->easy = NULL;
        if (request->has_file)
                closep(&request->file_fd);
        request->has_file = false;
}

bool http_has_name(CURL *easy) {
        curl_off_t lookup_us = 0;

        return curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &lookup_us) == CURLE_OK && lookup_us > 0;
}

uint32_t http_n_tries(const struct http *http) {
        return http->n_tries;
}
