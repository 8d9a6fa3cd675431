/* staging/record/address.h: the URLs of origins as text: taken apart, checked, percent-encoded.
 *
 * An address is http, https or file, percent-encoded as usual, or s3://bucket/key with the key as it is: there '?', '#'
 * and '%' are a part of it. Nothing here speaks to anybody; everything is bounded. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/why.h"

#define ADDRESS_MAX        16384u /* bytes: presigned URLs have about 2,000 */
#define ADDRESS_SHOWN_SIZE 320u   /* bytes with NUL of what is shown of a URL */

/* Pointers into the URL; nothing is copied. */
struct address {
        const char *scheme; /* "https": any case */
        const char *host;   /* and port; the bucket of s3; empty for file */
        const char *path;   /* with its slash; may be empty */
        const char *rest;   /* "?query#fragment"; "" for s3 */
        size_t n_scheme, n_host, n_path;
};

/* Returns 0, or -EINVAL with `why` quoting the URL (never its query): unknown scheme, no host, control characters or no
 * UTF-8 in it, too long, or a user and password: whatever is listed is kept in files that others may read. */
int address_parse(const char *url, struct address *ret_address, struct why *why);

/* The URL without its query, cut if it is long. Returns `shown`. */
const char *address_show(const struct address *address, char shown[ADDRESS_SHOWN_SIZE]);

/* Writes "scheme://host/folder/path": the path in place of the last part of the URL's own. n_scheme + n_host + n_path +
 * 3 * strlen(path) + 5 bytes are enough for it. Returns the length. */
size_t address_beside(const struct address *address, const char *path, char *ret_url);

/* The same below the URL's path, which is a folder's. */
size_t address_below(const struct address *address, const char *path, char *ret_url);

bool address_has_scheme(const struct address *address, const char *scheme);

/* A value in a query, as S3 signs it: whatever is not unreserved is encoded, '/' as well. 3 * strlen(value) + 1 bytes
 * are enough for it. Returns the length. */
size_t address_encode_value(const char *value, char *ret_encoded);

/* n_bytes + 1 bytes are enough for it. Returns the length, or -EINVAL: a '%' without two digits, or "%00". */
int address_decode(const char *encoded, size_t n_bytes, char *ret_plain);

/* The URL's path without its slash, decoded. ret_path: address->n_path + 1 bytes. -EINVAL with `why`. */
int address_plain_path(const struct address *address, char *ret_path, struct why *why);

/* The path of a file: URL on this machine. -EINVAL with `why` if it cannot be decoded; -ENAMETOOLONG. */
int address_local_path(const struct address *address, char ret_path[PATH_MAX], struct why *why);
