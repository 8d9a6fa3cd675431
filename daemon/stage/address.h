/* stage/address.h: the URLs of origins as text: taken apart, checked, percent-encoded.
 *
 * An address is http, https, file or s3. All of them are percent-encoded, s3://bucket/key as well, so that a key with a
 * '?' or a '%' in it is one. Nothing here speaks to anybody; everything is bounded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/why.h"

#define ADDRESS_MAX 8192u /* bytes: what servers take at most */

/* Pointers into the URL; nothing is copied. */
struct address {
        const char *scheme; /* "https": any case */
        const char *host;   /* and port; the bucket of s3; empty for file */
        const char *path;   /* with its slash; may be empty */
        const char *rest;   /* "?query#fragment", or "" */
        size_t n_scheme, n_host, n_path;
};

/* Returns 0, or -EINVAL with `why` quoting the URL (never its query): unknown scheme, no host, blanks or control
 * characters, too long, or a user and password in it: whatever is listed is kept in files that others may read. */
int address_parse(const char *url, struct address *ret_address, struct why *why);

bool address_has_scheme(const struct address *address, const char *scheme);

/* Of a path below a folder; '/' stays. 3 * strlen(path) + 1 bytes are enough for it. Returns the length. */
size_t address_encode_path(const char *path, char *ret_encoded);

/* The same, with '/' encoded, too: a value in a query, as S3 signs it. */
size_t address_encode_value(const char *value, char *ret_encoded);

/* n_bytes + 1 bytes are enough for it. Returns the length, or -EINVAL: a '%' without two digits, or "%00". */
int address_decode(const char *encoded, size_t n_bytes, char *ret_plain);
