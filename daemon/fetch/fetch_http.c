#include "daemon/fetch/fetch_http.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/fetch/http_private.h"
#include "daemon/fetch/http_request.h"
#include "daemon/fetch/hub_address.h"
#include "daemon/fetch/local_file.h"
#include "daemon/fetch/retry.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define DEFAULT_STALL_S 30u
#define DEFAULT_N_TRIES 8u
#define GS_ENDPOINT     "https://storage.googleapis.com"
#define CANCEL_NS       50000000ull /* how often a pause looks whether it is over before its time */

/* ---- set up once ---------------------------------------------------------------------------------------------- */

static pthread_once_t libcurl_once = PTHREAD_ONCE_INIT;
static CURLcode libcurl_result;

static void libcurl_begin(void) {
        libcurl_result = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static const char *fetch_http_environment(const char *name) {
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

/* Where systems keep the certificates of authorities. The first is where Debian's libcurl looks by itself; the others
 * count if it is not there. */
static const char *system_authorities(void) {
        static const char *const PLACES[] = {
                "/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch */
                "/etc/pki/tls/certs/ca-bundle.crt",   /* RHEL, Fedora */
                "/etc/ssl/ca-bundle.pem",             /* SUSE */
                "/etc/ssl/cert.pem",                  /* Alpine, conda's images */
        };

        for (size_t i = 0; i < sizeof(PLACES) / sizeof(PLACES[0]); i++)
                if (access(PLACES[i], R_OK) == 0)
                        return i > 0 ? PLACES[i] : NULL;
        return NULL;
}

/* As the curl program does it: libcurl itself does not read these variables. A configured file replaces them all. */
static int set_authorities(struct http *http, const struct http_options *options, struct why *why) {
        http->ca_file = options->ca_file;
        if (!http->ca_file) {
                http->ca_file = fetch_http_environment("CURL_CA_BUNDLE");
                if (!http->ca_file)
                        http->ca_file = fetch_http_environment("SSL_CERT_FILE");
                http->ca_folder = fetch_http_environment("SSL_CERT_DIR");
                if (!http->ca_file && !http->ca_folder)
                        http->ca_file = system_authorities();
        }
        if (http->ca_file && access(http->ca_file, R_OK) < 0)
                return why_errno(why, -errno, "ca_file %s", http->ca_file);
        return 0;
}

/* The endpoint is that of the origin's own kind: a list on this machine may name stores of the other kinds. */
static enum url_scheme endpoint_scheme(const struct http_options *options) {
        struct url origin;

        if (!options->origin || url_parse(options->origin, &origin, NULL) < 0 || !url_is_plain(origin.scheme))
                return URL_S3;
        return origin.scheme;
}

static int set_hub(struct http *http, const char *endpoint) {
        http->hub = http->user && http->user->hub_endpoint ? http->user->hub_endpoint : HUB_ENDPOINT;
        if (!endpoint)
                return 0;
        http->hub = http->hub_text = strdup(endpoint);
        if (!http->hub_text)
                return -ENOMEM;
        for (size_t n = strlen(endpoint); n > 0 && http->hub_text[n - 1] == '/'; n--)
                http->hub_text[n - 1] = '\0';
        return 0;
}

static int set_stores(struct http *http, const struct http_options *options, struct why *why) {
        const char *addressing = options->addressing ? options->addressing : "auto", *region = options->region;
        enum url_scheme scheme = endpoint_scheme(options);
        int r;

        if (!region && http->user)
                region = http->user->s3_region;
        http->s3 = (struct s3_store){ .endpoint = scheme == URL_S3 && options->endpoint ? options->endpoint
                                                  : http->user                          ? http->user->s3_endpoint
                                                                                        : NULL,
                                      .region = region ? region : "us-east-1",
                                      .addressing = addressing };
        http->gs = (struct s3_store){ .endpoint = scheme == URL_GS && options->endpoint ? options->endpoint
                                                                                        : GS_ENDPOINT,
                                      .region = "auto",
                                      .addressing = addressing };
        http->regions = calloc(1, sizeof(*http->regions));
        if (!http->regions)
                return -ENOMEM;
        s3_regions_init(http->regions);
        r = s3_store_check(&http->s3, why);
        if (r == 0)
                r = s3_store_check(&http->gs, why);
        if (r == 0 && strlen(http->s3.region) >= S3_REGION_SIZE)
                r = why_set(why, -EINVAL, "region \"%.64s...\" is too long", http->s3.region);
        return r < 0 ? r : set_hub(http, scheme == URL_HF ? options->endpoint : NULL);
}

int http_new(const struct http_options *options, struct http **ret_http, struct why *why) {
        _cleanup_(http_freep) struct http *http = NULL;
        int r = curl_load(why);

        if (r < 0)
                return r;
        pthread_once(&libcurl_once, libcurl_begin);
        if (libcurl_result != CURLE_OK)
                return why_set(why, -ENOMEM, "libcurl: %s", curl_easy_strerror(libcurl_result));

        http = calloc(1, sizeof(*http));
        if (!http)
                return -ENOMEM;
        pthread_mutex_init(&http->lock, NULL);
        http->origin = options->origin;
        http->peer_key = options->peer_key;
        snprintf(http->files_below, sizeof(http->files_below), "%s", options->files_below ? options->files_below : "");
        http->stall_s = options->stall_s ? options->stall_s : DEFAULT_STALL_S;
        http->n_tries = options->n_tries ? options->n_tries : DEFAULT_N_TRIES;
        http->redirects = redirects_new();
        if (!http->redirects)
                return -ENOMEM;
        r = options->of_user ? of_user_read(&http->user) : 0;
        if (r >= 0)
                r = set_stores(http, options, why);
        if (r >= 0)
                r = set_authorities(http, options, why);
        if (r >= 0 && options->credentials)
                r = credentials_read(options->credentials, &http->credentials, why);
        if (r < 0)
                return r;

        *ret_http = TAKE_PTR(http);
        return 0;
}

void http_free(struct http *http) {
        if (!http)
                return;
        for (uint32_t i = 0; i < http->n_idle; i++)
                curl_easy_cleanup(http->idle[i]);
        credentials_free(http->credentials);
        of_user_free(http->user);
        if (http->regions)
                s3_regions_fini(http->regions);
        free(http->regions);
        redirects_free(http->redirects);
        free(http->hub_text);
        pthread_mutex_destroy(&http->lock);
        free(http);
}

void http_freep(struct http **http) {
        http_free(*http);
}

/* ---- handles -------------------------------------------------------------------------------------------------- */

/* An idle handle holds the connection it last used: so a caller that asks for a thousand sizes connects once. */
static CURL *take_handle(struct http *http) {
        CURL *easy = NULL;

        pthread_mutex_lock(&http->lock);
        if (http->n_idle > 0)
                easy = http->idle[--http->n_idle];
        pthread_mutex_unlock(&http->lock);
        return easy ? easy : curl_easy_init();
}

static void give_handle(struct http *http, CURL *easy) {
        pthread_mutex_lock(&http->lock);
        if (http->n_idle < HTTP_IDLE_MAX) {
                http->idle[http->n_idle++] = easy;
                easy = NULL;
        }
        pthread_mutex_unlock(&http->lock);
        if (easy)
                curl_easy_cleanup(easy);
}

/* ---- a request, tried until it works --------------------------------------------------------------------------- */

static bool is_canceled(const _Atomic bool *cancel) {
        return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

static void fetch_http_pause_for(uint64_t pause_ns, const _Atomic bool *cancel) {
        uint64_t end_ns = clock_now_ns() + pause_ns, now_ns;

        while (!is_canceled(cancel) && (now_ns = clock_now_ns()) < end_ns) {
                uint64_t left_ns = end_ns - now_ns < CANCEL_NS ? end_ns - now_ns : CANCEL_NS;

                nanosleep(&(struct timespec){ .tv_nsec = (long)left_ns }, NULL);
        }
}

/* What comes of a request. */
struct document {
        struct http_answer answer; /* so far, of this try */
        size_t n_room, limit;      /* of its body */
        http_wanted wanted;        /* NULL: it is */
        int is_wanted;             /* as that said */
        struct http_head head;     /* once it has worked */
};

static int fetch_http_take_all(void *userdata, const uint8_t *bytes, size_t n_bytes);

static int fetch_http_take_answer(struct document *document, const struct http_request *request) {
        const char *url = NULL;

        curl_easy_getinfo(request->easy, CURLINFO_EFFECTIVE_URL, &url);
        document->head = request->head;
        document->answer.url = url ? strdup(url) : NULL;
        document->answer.next = request->head.link_next[0] ? strdup(request->head.link_next) : NULL;
        return document->answer.url && (document->answer.next || !request->head.link_next[0]) ? 0 : -ENOMEM;
}

/* One try. A sink that has seen enough returns -EALREADY, which is not a failure. */
static int perform(struct http *http, CURL *easy, const struct http_ask *ask, struct document *document,
                   struct http_failure *ret_failure, struct why *why) {
        struct http_request request;
        int r = http_request_init(&request, http, easy, ask, why);
        CURLcode result;

        *ret_failure = (struct http_failure){ 0 };
        if (r < 0) {
                http_request_fini(&request);
                return r;
        }
        document->answer.n_bytes = 0;
        document->is_wanted = document->wanted ? -EAGAIN : true;
        result = curl_easy_perform(easy);
        if (request.sink_error == -EFBIG)
                r = why_set(why, -EFBIG, "%s: larger than it may be", request.shown);
        else if (request.sink_error && request.sink_error != -EALREADY)
                r = why_errno(why, request.sink_error, "%s", request.shown);
        else if (!request.sink_error && http_request_judge(&request, result, ret_failure) < 0)
                r = why_set(why, ret_failure->error, "%s: %s", request.shown, ret_failure->text);
        else if (ask->sink == fetch_http_take_all && request.head.is_encoded)
                r = why_set(
                        why, -EPROTO,
                        "%s: it comes compressed (Content-Encoding), though that was not asked for; have the server "
                        "send it as it is",
                        request.shown);
        else if (request.head.status == 206 && !ask->is_range)
                r = why_set(why, -EPROTO, "%s: the server sent a part (status 206) when asked for the whole",
                            request.shown);
        else
                r = fetch_http_take_answer(document, &request);
        http_request_fini(&request);
        return r;
}

/* *ret_failure is that of the last try. */
static int perform_again(struct http *http, const struct http_ask *ask, struct document *document,
                         struct http_failure *ret_failure, struct why *why) {
        CURL *easy = take_handle(http);
        int r;

        *ret_failure = (struct http_failure){ 0 };
        if (!easy)
                return -ENOMEM;
        for (uint32_t n_failed = 1;; n_failed++) {
                r = perform(http, easy, ask, document, ret_failure, why);
                if (r == 0 || !ret_failure->again || n_failed >= http->n_tries ||
                    (ret_failure->n_tries_max && n_failed >= ret_failure->n_tries_max))
                        break;
                fetch_http_pause_for(ret_failure->pause_ns +
                                             retry_pause_ns(ret_failure->pause_ns ? 1 : n_failed, retry_random()),
                                     ask->cancel);
                if (is_canceled(ask->cancel)) {
                        r = -ECANCELED;
                        break;
                }
        }
        give_handle(http, easy);
        return r;
}

/* The file system knows better than libcurl, which takes a folder for an empty file. */
static int fetch_http_look_at_file(const struct http *http, const char *url, struct http_facts *ret_facts,
                                   struct why *why) {
        _cleanup_(closep) int fd = -1;
        char shown[URL_SHOWN_SIZE];
        struct stat stat_of;
        int r = local_file_open(url, http->files_below, &fd);

        if (r == 0 && fstat(fd, &stat_of) < 0)
                r = -errno;
        if (r < 0)
                return why_errno(why, r, "%s", url_show(url, shown));
        *ret_facts = (struct http_facts){ .n_bytes = (uint64_t)stat_of.st_size, .has_ranges = true };
        return 0;
}

/* ---- a whole document ----------------------------------------------------------------------------------------- */

static int fetch_http_take_all(void *userdata, const uint8_t *bytes, size_t n_bytes) {
        struct document *document = userdata;
        struct http_answer *answer = &document->answer;
        size_t n_needed = answer->n_bytes + n_bytes + 1;

        if (n_bytes > document->limit - answer->n_bytes)
                return -EFBIG;
        if (n_needed > document->n_room) {
                size_t n_room = n_needed > 2 * document->n_room ? n_needed : 2 * document->n_room;
                char *body = realloc(answer->body, n_room);

                if (!body)
                        return -ENOMEM;
                answer->body = body;
                document->n_room = n_room;
        }
        memcpy(answer->body + answer->n_bytes, bytes, n_bytes);
        answer->n_bytes += n_bytes;
        if (document->is_wanted == -EAGAIN)
                document->is_wanted = document->wanted(answer->body, answer->n_bytes);
        return document->is_wanted ? 0 : -EALREADY;
}

static int get_document(struct http *http, const char *url, const char *query, struct document *document,
                        const _Atomic bool *cancel, struct http_answer *ret_answer, struct why *why) {
        struct http_ask ask = {
                .url = url, .query = query, .sink = fetch_http_take_all, .userdata = document, .cancel = cancel
        };
        struct http_failure failure;
        struct http_facts facts;
        struct url parsed;
        int r = url_parse(url, &parsed, why);

        if (r >= 0 && parsed.scheme == URL_FILE)
                r = fetch_http_look_at_file(http, url, &facts, why);
        if (r >= 0)
                r = perform_again(http, &ask, document, &failure, why);
        if (r >= 0 && !document->answer.body && !(document->answer.body = malloc(1)))
                r = -ENOMEM;
        if (r == 0 && !document->is_wanted)
                r = HTTP_NOT_WANTED;
        if (r != 0) {
                http_answer_fini(&document->answer);
                return r;
        }
        document->answer.body[document->answer.n_bytes] = '\0';
        *ret_answer = document->answer;
        return 0;
}

int http_get(struct http *http, const char *url, const char *query, size_t limit, const _Atomic bool *cancel,
             struct http_answer *ret_answer, struct why *why) {
        struct document document = { .limit = limit };

        return get_document(http, url, query, &document, cancel, ret_answer, why);
}

int http_get_if(struct http *http, const char *url, size_t limit, http_wanted wanted, const _Atomic bool *cancel,
                struct http_answer *ret_answer, struct why *why) {
        struct document document = { .limit = limit, .wanted = wanted };

        return get_document(http, url, NULL, &document, cancel, ret_answer, why);
}

/* ---- size and kind of a document --------------------------------------------------------------------------------- */

#define LOOK_BYTES 65536u /* so much of a body is read to its end, so that the connection stays */

/* One byte is requested, but a server without ranges sends everything. */
static int take_little(void *userdata, const uint8_t *bytes, size_t n_bytes) {
        struct document *document = userdata;

        document->answer.n_bytes += n_bytes;
        return document->answer.n_bytes > LOOK_BYTES ? -EALREADY : 0;
}

struct http_facts http_facts_of(const struct http_head *head) {
        struct http_facts facts = {
                .n_bytes = head->has_range ? head->range_total : head->n_bytes,
                .has_ranges = head->has_ranges || head->has_range,
                .is_html = head->is_html,
        };

        if (head->is_encoded && !head->has_range) /* it may be the length of something else */
                facts.n_bytes = UINT64_MAX;
        strcpy(facts.etag, head->etag);
        if (http_head_is_dated(head))
                strcpy(facts.modified, head->modified);
        return facts;
}

enum look {
        LOOK_HEAD,
        LOOK_BYTE,
        LOOK_GET, /* of an empty file there is no first byte */
};

static int fetch_http_look(struct http *http, const char *url, enum look how, const _Atomic bool *cancel,
                           struct http_facts *ret_facts, struct http_failure *ret_failure, struct why *why) {
        struct document document = { 0 };
        struct http_ask ask = {
                .url = url,
                .only_head = how == LOOK_HEAD,
                .is_range = how == LOOK_BYTE,
                .sink = take_little,
                .userdata = &document,
                .cancel = cancel,
        };
        int r = perform_again(http, &ask, &document, ret_failure, why);

        if (r == 0)
                *ret_facts = http_facts_of(&document.head);
        http_answer_fini(&document.answer);
        return r;
}

int http_look(struct http *http, const char *url, const _Atomic bool *cancel, struct http_facts *ret_facts,
              struct why *why) {
        struct http_failure failure;
        struct http_facts facts;
        struct url parsed;
        bool is_refused;
        int r = url_parse(url, &parsed, why);

        if (r < 0)
                return r;
        if (parsed.scheme == URL_FILE)
                return fetch_http_look_at_file(http, url, ret_facts, why);

        r = fetch_http_look(http, url, LOOK_HEAD, cancel, &facts, &failure, why);
        is_refused = r < 0 && !failure.again && (r == -EPROTO || r == -EACCES); /* 405; URLs signed for GET: 403 */
        if (is_refused || (r == 0 && facts.n_bytes == UINT64_MAX)) {
                int r_head = r;

                r = fetch_http_look(http, url, LOOK_BYTE, cancel, &facts, &failure, why);
                if (r == -EBADMSG)
                        r = fetch_http_look(http, url, LOOK_GET, cancel, &facts, &failure, why);
                if (r_head == 0 && r != -ECANCELED) /* what HEAD said is something */
                        r = 0;
        }
        if (r == 0)
                *ret_facts = facts;
        return r;
}
