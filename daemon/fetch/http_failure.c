/* Why a request failed: status and libcurl's code become an errno, a sentence, and whether another try may help. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/fetch/http_request.h"
#include "daemon/fetch/retry.h"
#include "proto/base/cleanup.h"

#define FEW_TRIES 3u /* for what is seldom mended by waiting, but now and then */

static void http_failure_append(struct http_failure *failure, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void http_failure_append(struct http_failure *failure, const char *format, ...) {
        size_t n = strlen(failure->text);
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(failure->text + n, sizeof(failure->text) - n, format, arguments);
        va_end(arguments);
}

/* ---- statuses ------------------------------------------------------------------------------------------------- */

static const struct {
        int status;
        int error;
        bool again;
        const char *text;
} STATUSES[] = {
        { 400, -EPROTO, false, "Bad Request" },
        { 401, -EACCES, false, "Unauthorized; credentials = ... names a file with them" },
        { 403, -EACCES, false, "Forbidden" },
        { 404, -ENOENT, false, "Not Found" },
        { 407, -EACCES, false, "the proxy wants a password" },
        { 408, -ETIMEDOUT, true, "Request Timeout" },
        { 410, -ENOENT, false, "Gone" },
        { 412, -EBADMSG, false, "it has changed at the origin since it was listed" },
        { 416, -EBADMSG, false, "it is shorter at the origin than it was when it was listed" },
        { 425, -EPROTO, true, "Too Early" },
        { 429, -EPROTO, true, "Too Many Requests" },
        { 500, -EPROTO, true, "Internal Server Error" },
        { 501, -EPROTO, false, "Not Implemented" },
        { 502, -EPROTO, true, "Bad Gateway" },
        { 503, -EPROTO, true, "Service Unavailable" },
        { 504, -ETIMEDOUT, true, "Gateway Timeout" },
        { 505, -EPROTO, false, "HTTP Version Not Supported" },
};

static void judge_pause(const struct http_head *head, struct http_failure *failure) {
        const char *after = head->retry_after[0] ? head->retry_after : head->rate_reset;

        failure->is_busy |= head->status == 429 || head->status == 503;
        if (!failure->again || !retry_after_ns(after, head->date, &failure->pause_ns))
                return;
        failure->is_busy = true;
        if (failure->pause_ns > RETRY_AFTER_MAX_S * 1000000000ull) {
                failure->again = false;
                http_failure_append(failure, "; it asks to wait for %llu s",
                                    (unsigned long long)(failure->pause_ns / 1000000000ull));
        }
}

/* "20261129T192232Z" as "2026-11-29T19:22:32Z", which is how stores write their own. */
static void spell_time(char text[32]) {
        char plain[32];

        snprintf(plain, sizeof(plain), "%s", text);
        if (strlen(plain) == 16 && plain[8] == 'T')
                snprintf(text, 32, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", plain, plain + 4, plain + 6, plain + 9, plain + 11,
                         plain + 13);
}

static void add_clocks(const struct http_head *head, struct http_failure *failure) {
        char ours[32], theirs[32];

        http_head_error_element(head, "RequestTime", ours, sizeof(ours));
        http_head_error_element(head, "ServerTime", theirs, sizeof(theirs));
        if (!*ours)
                strftime(ours, sizeof(ours), "%Y-%m-%dT%H:%M:%SZ",
                         gmtime_r(&(time_t){ time(NULL) }, &(struct tm){ 0 }));
        spell_time(ours);
        http_failure_append(failure, "; this machine's clock says %s, the store's %s: set this machine's clock", ours,
                            *theirs ? theirs : head->date);
}

/* The region that the bucket is in, if the store tells another one than it was asked in. Then it is asked there. */
static void learn_region(struct http_request *request, struct http_failure *failure) {
        char region[S3_REGION_SIZE];

        if (*request->head.bucket_region)
                snprintf(region, sizeof(region), "%s", request->head.bucket_region);
        else
                http_head_error_element(&request->head, "Region", region, sizeof(region));
        if (!*region && request->head.status < 400)
                http_failure_append(failure,
                                    "; the store redirects elsewhere, which is not followed: set its endpoint");
        if (!*region || strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(region))
                return;
        http_failure_append(failure, "; the bucket is in region %s and was asked for in %s", region, request->region);
        if (strcmp(region, request->region) == 0)
                return;
        s3_regions_set(request->regions, request->bucket, region);
        failure->again = true;
}

/* An object store says in XML what it means by its status. */
static void add_store_word(struct http_request *request, struct http_failure *failure) {
        char code[64], message[128];

        http_head_error_element(&request->head, "Code", code, sizeof(code));
        http_head_error_element(&request->head, "Message", message, sizeof(message));
        if (*code)
                http_failure_append(failure, ": %s%s%s", code, *message ? ": " : "", message);
        if (strcmp(code, "SlowDown") == 0)
                failure->is_busy = failure->again = true;
        if (strcmp(code, "RequestTimeout") == 0)
                failure->again = true;
        if (strcmp(code, "RequestTimeTooSkewed") == 0)
                add_clocks(&request->head, failure);
        else if (failure->error == -EACCES && !request->has_keys)
                http_failure_append(failure, "; it was asked without keys: %s",
                                    request->scheme == URL_S3
                                            ? "credentials = ... names a file with them, or your own are in "
                                              "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or in ~/.aws/credentials"
                                            : "Google's HMAC keys (they begin with GOOG) belong into the credentials "
                                              "file, or into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
        learn_region(request, failure);
}

/* ---- the hub -------------------------------------------------------------------------------------------------- */

static const struct {
        const char *code;
        int error;
        const char *advice;
} HUB_CODES[] = {
        { "GatedRepo", -EACCES,
          "the repository is gated: ask for access on its page of the hub, then give a token of that account" },
        { "RepoNotFound", -ENOENT,
          "there is no such repository, or it is private: see its name, or give a token that may read it" },
        { "RevisionNotFound", -ENOENT,
          "there is no such revision: write a branch, a tag or a commit's id after the '@'" },
        { "EntryNotFound", -ENOENT, "there is no such file or folder in this revision" },
};

#define TOKEN_ADVICE "(HF_TOKEN, or hf auth login; of a system's daemon: token = ... in the credentials file)"

/* The hub's statuses alone mislead: 401 also stands for what is not there. */
static void add_hub_word(const struct http_request *request, struct http_failure *failure) {
        const struct http_head *head = &request->head;
        const char *advice = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(HUB_CODES); i++)
                if (strcmp(head->error_code, HUB_CODES[i].code) == 0) {
                        failure->error = HUB_CODES[i].error;
                        advice = HUB_CODES[i].advice;
                }
        if (!advice && head->status == 401)
                advice = request->has_keys ? "the token is not valid, or may not read this: give another one"
                                           : "there is no such repository, or it needs a token";
        if (!advice && head->status == 403)
                advice = "the token may not read this: see its rights in your account's settings";
        if (!advice && head->status == 429)
                advice = request->has_keys ? "ask with fewer connections, or later"
                                           : "with a token it lets you ask more";
        if (*head->error_code || *head->error_message)
                http_failure_append(failure, ": %s%s%s", head->error_code,
                                    *head->error_code && *head->error_message ? ": " : "", head->error_message);
        if (advice)
                http_failure_append(failure, "; %s", advice);
        if (advice && (failure->error == -EACCES || !request->has_keys) && strstr(advice, "token"))
                http_failure_append(failure, " " TOKEN_ADVICE);
}

static void judge_status(struct http_request *request, struct http_failure *failure) {
        int status = request->head.status;

        failure->error = -EPROTO;
        failure->again = status >= 500;
        http_failure_append(failure, "status %d", status);
        for (size_t i = 0; i < sizeof(STATUSES) / sizeof(STATUSES[0]); i++) {
                if (STATUSES[i].status != status)
                        continue;
                failure->error = STATUSES[i].error;
                failure->again = STATUSES[i].again;
                http_failure_append(failure, " (%s)",
                                    status == 401 && request->scheme == URL_HF ? "Unauthorized" : STATUSES[i].text);
        }
        if (request->scheme == URL_S3 || request->scheme == URL_GS)
                add_store_word(request, failure);
        if (request->scheme == URL_HF)
                add_hub_word(request, failure);
        judge_pause(&request->head, failure);
}

/* ---- libcurl's codes ------------------------------------------------------------------------------------------ */

/* Codes that are not listed are resets, closed connections, streams that end early: another try may help. */
static const struct {
        CURLcode code;
        int error;
        bool again;
        uint32_t n_tries_max;
        const char *more;
} CODES[] = {
        { CURLE_PEER_FAILED_VERIFICATION, -EPROTO, false, 0, NULL },
        { CURLE_SSL_CACERT_BADFILE, -EPROTO, false, 0, NULL },
        { CURLE_SSL_CERTPROBLEM, -EPROTO, false, 0, NULL },
        { CURLE_SSL_CRL_BADFILE, -EPROTO, false, 0, NULL },
        { CURLE_SSL_ISSUER_ERROR, -EPROTO, false, 0, NULL },
        { CURLE_SSL_CIPHER, -EPROTO, false, 0, NULL },
        { CURLE_TOO_MANY_REDIRECTS, -EPROTO, false, 0, NULL },
        { CURLE_LOGIN_DENIED, -EPROTO, false, 0, NULL },
        { CURLE_UNSUPPORTED_PROTOCOL, -EPROTO, false, 0, /* the URL's own scheme was looked at before */
          "; a redirect may lead to http and https alone, from https to https" },
        { CURLE_URL_MALFORMAT, -EINVAL, false, 0, NULL },
        { CURLE_FILE_COULDNT_READ_FILE, -ENOENT, false, 0, NULL },
        { CURLE_BAD_DOWNLOAD_RESUME, -EBADMSG, false, 0, "; it is shorter than it was when it was listed" }, /* file: */
        { CURLE_RANGE_ERROR, -EBADMSG, false, 0, "; it is shorter than it was when it was listed" },
        { CURLE_OUT_OF_MEMORY, -ENOMEM, false, 0, NULL },
        { CURLE_ABORTED_BY_CALLBACK, -ECANCELED, false, 0, NULL },
        { CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT, true, 0, NULL },
        { CURLE_SSL_CONNECT_ERROR, -EPROTO, true, FEW_TRIES, NULL },
        { CURLE_COULDNT_RESOLVE_HOST, -EIO, true, FEW_TRIES, NULL },
        { CURLE_COULDNT_RESOLVE_PROXY, -EIO, true, FEW_TRIES, NULL },
};

/* Advice for a certificate that was refused. */
static const char *advise_on_certificate(const char *text) {
        if (strcasestr(text, "self-signed") || strcasestr(text, "self signed") || strcasestr(text, "local issuer") ||
            strcasestr(text, "unable to get"))
                return "; if it is yours, ca_file = ... names its authority's certificate";
        return strcasestr(text, "expired") ? "; the server needs a new certificate" : "";
}

/* libcurl takes no line of a head above 100 KiB, and calls that, too, "out of memory". Its memory is there before an
 * answer begins, and a body needs no more. */
static bool has_long_line(const struct http_request *request, CURLcode code) {
        curl_off_t begun_us = 0, n_body = 0;

        curl_easy_getinfo(request->easy, CURLINFO_STARTTRANSFER_TIME_T, &begun_us);
        curl_easy_getinfo(request->easy, CURLINFO_SIZE_DOWNLOAD_T, &n_body);
        return code == CURLE_OUT_OF_MEMORY && begun_us > 0 && n_body == 0;
}

/* Heads that are too large, and answers that are none: libcurl's own words and advice would lead elsewhere. */
static bool judge_head(const struct http_request *request, CURLcode code, struct http_failure *failure) {
        const char *text = NULL;

        if (request->n_head_bytes > HTTP_HEAD_MAX || strstr(request->curl_text, "Too large response headers"))
                text = "the head of its answer is too large, or never ends";
        else if (has_long_line(request, code))
                text = "a line in the head of its answer is longer than 100 KiB";
        else if (code == CURLE_UNSUPPORTED_PROTOCOL && strstr(request->curl_text, "HTTP/0.9"))
                text = "its answer is not HTTP";
        if (!text)
                return false;
        *failure = (struct http_failure){ .error = -EPROTO, .again = true, .n_tries_max = FEW_TRIES };
        http_failure_append(failure, "%s", text);
        return true;
}

static void judge_code(struct http_request *request, CURLcode code, struct http_failure *failure) {
        const char *text = request->curl_text[0] ? request->curl_text : curl_easy_strerror(code);
        const char *more = code == CURLE_PEER_FAILED_VERIFICATION ? advise_on_certificate(text) : "";

        if (judge_head(request, code, failure))
                return;
        if (request->is_pointer) {
                failure->error = -EBADMSG;
                http_failure_append(failure, "the hub sent a Git LFS pointer in place of the file, which was never "
                                             "uploaded: ask the repository's owner to do so");
                return;
        }

        failure->error = -EIO;
        failure->again = true;
        for (size_t i = 0; i < ARRAY_SIZE(CODES); i++) {
                if (CODES[i].code != code)
                        continue;
                failure->error = CODES[i].error;
                failure->again = CODES[i].again;
                failure->n_tries_max = CODES[i].n_tries_max;
                more = CODES[i].more ? CODES[i].more : more;
        }
        if (code == CURLE_FILE_COULDNT_READ_FILE) {
                if (request->file_error < 0)
                        failure->error = request->file_error;
                text = failure->error == -EXDEV ? "it leads out of the folder of the origin"
                                                : strerror(-failure->error);
        } else if (code == CURLE_ABORTED_BY_CALLBACK) {
                text = "canceled";
        }
        if (request->scheme == URL_FILE) /* nobody is busy there */
                failure->again = false;
        http_failure_append(failure, "%s%s", text, more);
}

static int judge_answer(struct http_request *request, CURLcode result, struct http_failure *ret_failure) {
        *ret_failure = (struct http_failure){ 0 };

        /* A status says more, even if the page that came with it was cut or too long. */
        if (request->head.status >= 300 && result != CURLE_TOO_MANY_REDIRECTS && result != CURLE_UNSUPPORTED_PROTOCOL &&
            result != CURLE_ABORTED_BY_CALLBACK && !(result != CURLE_OK && request->head.status < 400)) {
                judge_status(request, ret_failure);
                return -1;
        }
        if (result == CURLE_OK)
                return 0;
        judge_code(request, result, ret_failure);
        return -1;
}

int http_request_judge(struct http_request *request, CURLcode result, struct http_failure *ret_failure) {
        int r = judge_answer(request, result, ret_failure);

        http_request_learn(request, r == 0);
        if (r < 0 && request->is_remembered && ret_failure->error != -ECANCELED)
                ret_failure->again = true; /* the hub leads the next one to a place that holds longer */
        return r;
}
