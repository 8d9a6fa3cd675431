/* tests/support/no_web.h: origins without a network: http_get() and http_look() are here, and answer from a table. For one
 * test each: it is linked in their place. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/fetch/fetch_http.h"
#include "daemon/fetch/origin/origin.h"
#include "tests/support/suite.h"

#define PAGES_MAX 8

/* ---- the web, as the surveys see it -------------------------------------------------------------------------- */

static struct {
        const char *pages[PAGES_MAX]; /* bodies of http_get(), one after the other; the last again and again */
        int error;                    /* of http_get(), instead */
        const char *led_to;           /* where redirects led; NULL: nowhere */
        char asked[PAGES_MAX][512];   /* "url?query" */
        unsigned n_asked;

        pthread_mutex_t lock;
        unsigned n_looks, n_under_way, n_under_way_most;
        unsigned look_us;   /* how long one takes */
        const char *bad[4]; /* words in URLs that are: not there, an HTML page, of no length, slow */
} web;

static void web_is(const char *first, const char *second) {
        memset(&web, 0, sizeof(web));
        pthread_mutex_init(&web.lock, NULL);
        web.pages[0] = first;
        web.pages[1] = second;
}

int http_get(struct http *http, const char *url, const char *query, size_t limit, const _Atomic bool *cancel,
             struct http_answer *ret_answer, struct why *why) {
        unsigned idx = web.n_asked < PAGES_MAX ? web.n_asked : PAGES_MAX - 1;

        snprintf(web.asked[idx], sizeof(web.asked[idx]), "%s%s%s", url, query ? "?" : "", query ? query : "");
        web.n_asked++;
        if (web.error)
                return why_set(why, web.error, "the web says no");
        while (idx > 0 && !web.pages[idx])
                idx--;
        *ret_answer = (struct http_answer){ .body = strdup(web.pages[idx]),
                                            .n_bytes = strlen(web.pages[idx]),
                                            .url = web.led_to ? strdup(web.led_to) : NULL };
        return 0;
}

int http_get_if(struct http *http, const char *url, size_t limit, http_wanted wanted, const _Atomic bool *cancel,
                struct http_answer *ret_answer, struct why *why) {
        int r = http_get(http, url, NULL, limit, cancel, ret_answer, why);

        if (r < 0 || wanted(ret_answer->body, ret_answer->n_bytes))
                return r;
        http_answer_fini(ret_answer);
        return HTTP_NOT_WANTED;
}

static int look(const char *url, const _Atomic bool *cancel, struct http_facts *ret_facts, struct why *why) {
        if (web.bad[3] && strstr(url, web.bad[3]))
                while (!*cancel)
                        usleep(1000);
        else
                usleep(web.look_us);
        if (*cancel)
                return why_set(why, -ECANCELED, "%s: canceled", url);
        if (web.bad[0] && strstr(url, web.bad[0]))
                return why_set(why, -ENOENT, "%s: 404", url);
        *ret_facts = (struct http_facts){ .n_bytes = strlen(url), .etag = "\"tag\"" };
        ret_facts->is_html = web.bad[1] && strstr(url, web.bad[1]);
        if (web.bad[2] && strstr(url, web.bad[2]))
                ret_facts->n_bytes = UINT64_MAX;
        return 0;
}

int http_look(struct http *http, const char *url, const _Atomic bool *cancel, struct http_facts *ret_facts,
              struct why *why) {
        static const _Atomic bool never = false;
        int r;

        pthread_mutex_lock(&web.lock);
        web.n_looks++;
        if (++web.n_under_way > web.n_under_way_most)
                web.n_under_way_most = web.n_under_way;
        pthread_mutex_unlock(&web.lock);
        r = look(url, cancel ? cancel : &never, ret_facts, why);
        pthread_mutex_lock(&web.lock);
        web.n_under_way--;
        pthread_mutex_unlock(&web.lock);
        return r;
}

/* Nothing is asked for by one thread: the threads do it all. */
void http_look_at_many(struct http *http, const struct http_looks *looks) {
        (void)http;
        (void)looks;
}

static struct plan *survey(const struct origin_options *options) {
        struct plan *plan = NULL;
        struct why why = { 0 };
        int r = origin_survey(NULL, options, &plan, &why);

        ck_assert_msg(r == 0, "%d: %s", r, why.text);
        return plan;
}

static struct plan *survey_url(const char *url) {
        return survey(&(struct origin_options){ .url = url, .kind = "auto", .unpack = "auto" });
}

/* The survey fails with this errno, and says this. */
static void refused(const struct origin_options *options, int error, const char *says) {
        struct plan *plan = NULL;
        struct why why = { 0 };
        int r = origin_survey(NULL, options, &plan, &why);

        ck_assert_msg(r == error && strstr(why.text, says), "%d, not %d: %s (not: %s)", r, error, why.text, says);
        ck_assert_ptr_null(plan);
}

static void refused_url(const char *url, int error, const char *says) {
        refused(&(struct origin_options){ .url = url, .kind = "auto", .unpack = "auto" }, error, says);
}

static void is_file(const struct plan *plan, uint64_t idx, const char *path, const char *url) {
        ck_assert_uint_lt(idx, plan_n_files(plan));
        ck_assert_str_eq(plan_file(plan, idx)->path, path);
        ck_assert_str_eq(plan_file(plan, idx)->urls[0], url);
}
