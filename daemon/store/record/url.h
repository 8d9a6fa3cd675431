/* store/record/url.h: URLs of origins as text: taken apart, checked, percent-encoded, shown.
 *
 * A URL is of http, https or file, percent-encoded as usual; or s3://bucket/key, gs://bucket/key or
 * hf://datasets/ORG/NAME[@REVISION]/PATH, whose keys and paths are plain: there '?', '#' and '%' are a part of them. It
 * may carry secrets: "user:password@", or a query that is a signature (presigned URLs). What
 * is shown to people has neither. Nothing here talks to a server; everything is bounded. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/base/why.h"

#define URL_BYTES_MAX  16384u /* presigned URLs have about 2,000 */
#define URL_SHOWN_SIZE 256u   /* bytes with NUL of a shown URL: longer ones are cut in the middle */

enum url_scheme {
        URL_HTTP,
        URL_HTTPS,
        URL_FILE,
        URL_S3,
        URL_GS, /* Google's object store, by its S3 interface */
        URL_HF, /* the Hugging Face hub */
        N_URL_SCHEMES
};

/* Pointers into the text; nothing is copied. */
struct url {
        const char *text;
        enum url_scheme scheme;
        const char *host; /* and port; the bucket of s3 and gs; "datasets" of hf; empty for file */
        const char *path; /* with its slash; may be empty */
        const char *rest; /* "?query#fragment"; "" where paths are plain */
        size_t n_host, n_path;
};

/* Returns 0, or -EINVAL with `why` quoting the URL (never its query): unknown scheme, no host, control characters or no
 * UTF-8 in it, too long, or a user and password: whatever is listed is kept in files that others may read. */
int url_parse(const char *text, struct url *ret_url, struct why *why);

/* Is nothing of its path percent-encoded, so that '?', '#' and '%' are a part of it? */
bool url_is_plain(enum url_scheme scheme);

/* Is it "http(s)://host" with nothing that a server's address cannot have: user, blank, query, fragment? */
bool url_is_endpoint(const char *text);

/* "s3" */
const char *url_scheme_name(enum url_scheme scheme);

/* Any text as a URL without user and password; query and fragment become "?...". Returns `shown`. */
const char *url_show(const char *text, char shown[URL_SHOWN_SIZE]);

/* Writes "scheme://host/folder/path": the path in place of the last part of the URL's own. strlen(url->text) +
 * 3 * strlen(path) + 2 bytes are enough for it. Returns the length. */
size_t url_beside(const struct url *url, const char *path, char *ret_text);

/* The same below the URL's path, which is a folder's. */
size_t url_below(const struct url *url, const char *path, char *ret_text);

/* Percent-encodes all that is not unreserved (RFC 3986), as S3 signs it: of a value in a query '/' as well, of a path
 * not. 3 * strlen(text) + 1 bytes are enough for it. Returns the length. */
size_t url_encode_value(const char *text, char *ret_encoded);
size_t url_encode_path(const char *text, char *ret_encoded);

/* n_bytes + 1 bytes are enough for it. Returns the length, or -EINVAL: a '%' without two digits, or "%00". */
int url_decode(const char *encoded, size_t n_bytes, char *ret_plain);

/* The URL's path without its first slash, decoded. ret_path: url->n_path + 1 bytes. -EINVAL with `why`. */
int url_plain_path(const struct url *url, char *ret_path, struct why *why);

/* The path of a file: URL on this machine. -EINVAL with `why` if it cannot be decoded; -ENAMETOOLONG; -ENOMEM. */
int url_local_path(const struct url *url, char ret_path[PATH_MAX], struct why *why);
