/* Everything below s3://bucket/prefix, a thousand keys a request. One request after the other, since each names where
 * the one before ended: a million objects take a thousand round trips, about a minute. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/fetch/origin/origin_private.h"
#include "daemon/fetch/origin/s3_listing.h"
#include "proto/base/cleanup.h"

#define PAGE_BYTES_MAX  (16u << 20) /* a thousand of the longest keys, encoded, and all that stands around them */
#define EMPTY_PAGES_MAX 1000u       /* one after the other: stores may give such for deleted objects */

struct listing {
        struct origin_run *run;
        char prefix[S3_KEY_MAX + 2]; /* ends in '/', or "" */
        size_t n_prefix;
        char bucket_url[300];           /* "s3://bucket" */
        char first_key[S3_KEY_MAX + 1]; /* of all: the listing goes round if it comes again */
        uint64_t n_files;
        uint64_t n_bytes; /* about what a plan of all that was listed takes */
        struct why *why;
};

#define OBJECT_BYTES 100u /* of a plan, beside its texts (plan.h) */

/* ---- an object ----------------------------------------------------------------------------------------------- */

static int add_object(struct listing *listing, const struct s3_object *object) {
        char url[sizeof(listing->bucket_url) + S3_KEY_MAX + 2];
        struct plan_file file = { .path = object->key + listing->n_prefix,
                                  .n_bytes = object->n_bytes,
                                  .etag = object->etag[0] ? object->etag : NULL };

        snprintf(url, sizeof(url), "%s/%s", listing->bucket_url, object->key);
        listing->n_files++;
        return origin_add(listing->run, &file, url, listing->why);
}

static int on_object(void *userdata, const struct s3_object *object) {
        struct listing *listing = userdata;
        size_t n_key = strlen(object->key);

        if (strncmp(object->key, listing->prefix, listing->n_prefix) != 0)
                return why_set(listing->why, -EINVAL, "%s: the store lists \"%s\", which is not below it",
                               listing->run->shown, object->key);
        if (!listing->first_key[0])
                snprintf(listing->first_key, sizeof(listing->first_key), "%s", object->key);
        else if (strcmp(listing->first_key, object->key) == 0)
                return why_set(listing->why, -EPROTO, "%s: the store's listing begins again at \"%s\"",
                               listing->run->shown, object->key);
        listing->n_bytes += OBJECT_BYTES + 2 * n_key + strlen(listing->bucket_url) + strlen(object->etag);
        if (listing->n_bytes / 2 > origin_text_max(listing->run->options))
                return why_set(listing->why, -EFBIG,
                               "%s: its listing takes more than a quarter of the memory (4 GiB at most), after %" PRIu64
                               " files: make several datasets of it, or see why its store does not end",
                               listing->run->shown, listing->n_files);
        if (object->key[n_key - 1] == '/') /* a folder's mark: what is in the folder says as much */
                return 0;
        return add_object(listing, object);
}

/* ---- pages --------------------------------------------------------------------------------------------------- */

/* Sorted by name, as the signature requires. The caller's (free). */
static char *make_query(const struct listing *listing, const char *token) {
        static const char FIXED[] = "encoding-type=url&list-type=2&max-keys=1000";
        size_t n_room = sizeof(FIXED) + 3 * (strlen(token) + listing->n_prefix) + 64;
        char *query = malloc(n_room), *at = query;

        if (!query)
                return NULL;
        if (token[0]) {
                at = stpcpy(at, "continuation-token=");
                at += url_encode_value(token, at);
                at = stpcpy(at, "&");
        }
        at = stpcpy(at, FIXED);
        if (listing->n_prefix > 0) {
                at = stpcpy(at, "&prefix=");
                url_encode_value(listing->prefix, at);
        }
        return query;
}

static int get_page(struct listing *listing, const char *token, struct s3_page *ret_page) {
        _cleanup_(freep) char *query = make_query(listing, token), *body = NULL, *led_to = NULL;
        struct origin_run *run = listing->run;
        struct http_answer answer = { 0 };
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
        body = answer.body;
        led_to = answer.url;
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
        size_t n_key = address->n_path > 0 ? address->n_path - 1 : 0;

        if (address->n_host > 255 || n_key > S3_KEY_MAX)
                return why_set(why, -EINVAL, "%s: a bucket's name has 255 bytes at most, a key %u", listing->run->shown,
                               S3_KEY_MAX);
        snprintf(listing->bucket_url, sizeof(listing->bucket_url), "s3://%.*s", (int)address->n_host, address->host);
        memcpy(listing->prefix, address->path + 1, n_key);
        if (n_key > 0 && listing->prefix[n_key - 1] != '/')
                listing->prefix[n_key++] = '/';
        listing->prefix[n_key] = '\0';
        listing->n_prefix = n_key;
        return 0;
}

int origin_s3(struct origin_run *run, struct why *why) {
        struct listing listing = { .run = run, .why = why };
        int r = set_place(&listing, why);

        if (r == 0)
                r = get_pages(&listing);
        if (r == 0 && listing.n_files == 0)
                r = why_set(why, -EINVAL,
                            "%s: there is nothing below it; a prefix is taken as a folder's name (of one object the "
                            "kind is \"file\")",
                            run->shown);
        return r;
}
