/* fetch/s3_address.h: where an object of s3://bucket/key or gs://bucket/key is asked for over http.
 *
 * The key is what stands after the bucket's slash, as it is: not percent-encoded, '?' and '#' and '%' are a part of
 * it. Over the line all bytes but A-Z a-z 0-9 - . _ ~ and '/' are encoded, since the store encodes the key just so
 * before it computes the signature, and libcurl signs the path as it is given. */
#pragma once

#include <stdbool.h>

#include "daemon/store/record/url.h"
#include "proto/base/why.h"

struct s3_store {
        const char *endpoint; /* "https://host:port"; NULL: AWS of the region */
        const char *region;
        const char *addressing; /* "auto", "path", "virtual" */
};

/* Is this configuration one? -EINVAL with `why`. */
int s3_store_check(const struct s3_store *store, struct why *why);

/* The URL of an object, or of its bucket if there is no key. The caller's (free). Returns 0; -EINVAL with `why` for
 * something that is not a bucket; -ENOMEM. */
int s3_address(const struct s3_store *store, const char *url, char **ret_url, struct why *why);
