/* What s3://bucket/prefix or gs://bucket/prefix means (origin_pattern.h), a thousand keys a request. One request after
 * the other, since each names where the one before ended: a million objects take a thousand round trips, about a
 * minute. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/patterns/glob_match.h"
#include "daemon/fetch/origin/origin_pattern.h"
#include "daemon/fetch/origin/origin_private.h"
#include "daemon/fetch/origin/s3_listing.h"
#include "proto/base/cleanup.h"

#define PAGE_BYTES_MAX  (16u << 20) /* a thousand of the longest keys, encoded, and all that stands around them */
#define EMPTY_PAGES_MAX 1000u       /* one after the other: stores may give such for deleted objects */

struct listing {
        struct origin_run *run;
        struct origin_pattern pattern;
        char bucket_url[300];           /* "s3://bucket" */
        char first_key[S3_KEY_MAX + 1]; /* of all: the listing goes round if it comes again */
        uint64_t n_files;
        struct why *why;
};

/* ---- an object ----------------------------------------------------------------------------------------------- */

static int add_object(struct listing *listing, const struct s3_object *object) {
        char url[sizeof(listing->bucket_url) + S3_KEY_MAX + 2];
        struct plan_file file = { .path = object->key + listing->pattern.n_base,
                                  .n_bytes = object->n_bytes,
                                  .etag = object->etag[0] ? object->etag : NULL };

        snprintf(url, sizeof(url), "%s/%s", listing->bucket_url, object->key);
        listing->n_files++;
        return origin_add(listing->run, &file, url, listing->why);
}

static int on_object(void *userdata, const struct s3_object *object) {
        struct listing *listing = userdata;
        size_t n_key = strlen(object->key), n_texts;
        bool is_mark = object->key[n_key - 1] == '/', is_taken; /* a folder's: what is in it says as much */
        int r;

        if (strncmp(object->key, listing->pattern.prefix, strlen(listing->pattern.prefix)) != 0)
                return why_set(listing->why, -EINVAL, "%s: the store lists \"%s\", which is not below it",
                               listing->run->shown, object->key);
        if (!listing->first_key[0])
                snprintf(listing->first_key, sizeof(listing->first_key), "%s", object->key);
        else if (strcmp(listing->first_key, object->key) == 0)
                return why_set(listing->why, -EPROTO, "%s: the store's listing begins again at \"%s\"",
                               listing->run->shown, object->key);
        is_taken = !is_mark && origin_pattern_takes(&listing->pattern, object->key);
        n_texts = 2 * n_key + strlen(listing->bucket_url) + strlen(object->etag);
        r = origin_count(listing->run, is_taken || is_mark ? n_texts : 0, listing->why);
        return r == 0 && is_taken ? add_object(listing, object) : r;
}

/* ---- pages --------------------------------------------------------------------------------------------------- */

/* Sorted by name, as the signature requires. The caller's (free). */
static char *make_query(const struct listing *listing, const char *token) {
        static const char FIXED[] = "encoding-type=url&list-type=2&max-keys=1000";
        size_t n_room = sizeof(FIXED) + 3 * (strlen(token) + strlen(listing->pattern.prefix)) + 64;
        char *query = malloc(n_room), *at = query;

        if (!query)
                return NULL;
        if (token[0]) {
                at = stpcpy(at, "continuation-token=");
                at += url_encode_value(token, at);
                at = stpcpy(at, "&");
        }
        at = stpcpy(at, FIXED);
        if (listing->pattern.prefix[0]) {
                at = stpcpy(at, "&prefix=");
                url_encode_value(listing->pattern.prefix, at);
        }
        return query;
}

static int get_page(struct listing *listing, const char *token, struct s3_page *ret_page) {
        _cleanup_(http_answer_fini) struct http_answer answer = { 0 };
        _cleanup_(freep) char *query = make_query(listing, token);
        struct origin_run *run = listing->run;
        struct why inner = { 0 };
        int r;

        if (!query)
                return -ENOMEM;
        r = http_get(run->http, listing->bucket_url, query, PAGE_BYTES_MAX, run->options->cancel, &answer, &inner);
        if (r == -ENOENT)
                return why_set(listing->why, r, "%s: there is no such bucket (%s)", run->shown, inner.text);
        if (r == -EACCES)
                return why_set(listing->why, r, "%s: may these credentials list the bucket? (%s)", run->shown,
                               inner.text);
        if (r < 0)
                return why_set(listing->why, r, "%s", inner.text);
        r = s3_listing_parse(answer.body, answer.n_bytes, on_object, listing, ret_page, &inner);
        if (r < 0 && inner.text[0]) /* else on_object() has said it */
                return why_set(listing->why, r, "%s: %s", run->shown, inner.text);
        return r;
}

static int get_pages(struct listing *listing) {
        struct origin_run *run = listing->run;
        _cleanup_(freep) struct s3_page *page = calloc(1, sizeof(*page));
        _cleanup_(freep) char *token = calloc(1, S3_TOKEN_MAX);
        uint32_t n_empty = 0;
        int r;

        if (!page || !token)
                return -ENOMEM;
        do {
                r = get_page(listing, token, page);
                if (r == 0)
                        r = origin_progress(run, listing->n_files, listing->why);
                if (r < 0)
                        return r;
                n_empty = page->n_objects > 0 ? 0 : n_empty + 1;
                if (page->is_truncated &&
                    (!page->token[0] || strcmp(page->token, token) == 0 || n_empty > EMPTY_PAGES_MAX))
                        return why_set(listing->why, -EPROTO,
                                       "%s: the store says that its listing goes on after %" PRIu64
                                       " files, but not how; does it know ListObjectsV2?",
                                       run->shown, listing->n_files);
                strcpy(token, page->token);
        } while (page->is_truncated);
        return 0;
}

/* ---- the origin ---------------------------------------------------------------------------------------------- */

static int set_place(struct listing *listing, struct why *why) {
        const struct url *address = &listing->run->address;
        const char *path = address->path + (address->n_path > 0);
        struct why inner = { 0 };
        int r;

        if (address->n_host > 255 || strcspn(path, "{" GLOB_CHARACTERS) > S3_KEY_MAX - 1)
                return why_set(why, -EINVAL, "%s: a bucket's name has 255 bytes at most, a key %u", listing->run->shown,
                               S3_KEY_MAX);
        snprintf(listing->bucket_url, sizeof(listing->bucket_url), "%s://%.*s", url_scheme_name(address->scheme),
                 (int)address->n_host, address->host);
        r = origin_pattern_init(&listing->pattern, path, &inner);
        return r < 0 ? why_set(why, r, "%s: %s", listing->run->shown, r == -ENOMEM ? "no memory" : inner.text) : 0;
}

static int check_found(const struct listing *listing, struct why *why) {
        const char *shown = listing->run->shown, *missing = origin_pattern_missing(&listing->pattern);

        if (missing)
                return why_set(why, -ENOENT, "%s: there is no object \"%s\"%s", shown, missing,
                               strpbrk(missing, GLOB_CHARACTERS) ? ": nothing matches it" : "");
        if (listing->n_files > 0)
                return 0;
        return why_set(
                why, -EINVAL,
                listing->pattern.prefix[0]
                        ? "%s: there is no such object, and nothing below it; a prefix is taken as a folder's name"
                        : "%s: the bucket is empty; there is nothing below it",
                shown);
}

/* A key that nothing is below may be an object; and who may not list a bucket may have been given one. */
static bool may_be_object(const struct listing *listing, int result) {
        const struct url *address = &listing->run->address;

        return strcmp(listing->run->options->kind, "auto") == 0 && !listing->pattern.items && listing->n_files == 0 &&
               (result == 0 || result == -EACCES) && address->n_path > 1 && address->path[address->n_path - 1] != '/';
}

int origin_s3(struct origin_run *run, struct why *why) {
        struct listing listing = { .run = run, .why = why };
        int r = set_place(&listing, why);

        if (r < 0)
                return r;
        r = get_pages(&listing);
        if (may_be_object(&listing, r)) {
                struct why inner;
                int is_object = origin_file(run, &inner);

                if (is_object == 0) {
                        listing.n_files = 1;
                        r = 0;
                } else if (is_object != -ENOENT && is_object != -EACCES) {
                        r = why_set(why, is_object, "%s", inner.text);
                }
        }
        if (r == 0)
                r = check_found(&listing, why);
        origin_pattern_fini(&listing.pattern);
        return r;
}
