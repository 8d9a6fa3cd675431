/* fetch/origin/s3_listing.h: a page of an object store's listing (ListObjectsV2), as XML.
 *
 * The store is a stranger: document types are refused, and with them all that entities can do; depth and texts are
 * bounded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

#define S3_KEY_MAX   1024u /* bytes: S3's own limit */
#define S3_TOKEN_MAX 4096u

struct s3_object {
        const char *key;  /* plain */
        uint64_t n_bytes; /* UINT64_MAX: it does not say */
        const char *etag; /* as it is said, quotes and all; "" if it is not */
};

struct s3_page {
        uint64_t n_objects;
        bool is_truncated;        /* more pages follow */
        char token[S3_TOKEN_MAX]; /* to ask for the next with; "" if none was given */
};

/* Calls `object` for each in order; a negative return ends it and is returned. Returns 0, or -EINVAL with `why` for
 * anything that is not a listing; the store's own error (NoSuchBucket, ...) becomes -ENOENT, -EACCES or -EPROTO and a
 * sentence. */
int s3_listing_parse(const char *xml, size_t n_bytes, int (*object)(void *userdata, const struct s3_object *object),
                     void *userdata, struct s3_page *ret_page, struct why *why);
