/* staging/fetch/url.h: URLs as they are sent and as they may be shown.
 *
 * A URL may carry secrets: `user:password@`, or a query that is a signature (presigned URLs, tokens). What is shown to
 * people, in messages and logs, has neither. */
#pragma once

#include <stdbool.h>

#include "daemon/base/why.h"

#define URL_SHOWN_SIZE 256u   /* bytes with NUL of a shown URL: longer ones are cut in the middle */
#define URL_BYTES_MAX  16384u /* longer ones are refused: presigned URLs have about 2,000 */

enum url_scheme {
        URL_HTTP,
        URL_HTTPS,
        URL_FILE,
        URL_S3,
};

/* Is it one that can be fetched: of these schemes, with a host (a bucket; none for file:), without control characters?
 * -EINVAL with `why`. */
int url_scheme(const char *url, enum url_scheme *ret_scheme, struct why *why);

/* Without user and password; query and fragment become "?...". A key of s3: may hold '?' and '#' and is shown whole.
 * Returns `shown`. */
const char *url_show(const char *url, char shown[URL_SHOWN_SIZE]);

/* As it goes over the line: bytes that may not be in a URL (blanks, what is no ASCII, quotes) are percent-encoded
 * behind the host, what is encoded stays as it is; `query` (NULL: none) goes behind '?'; no fragment. The caller's
 * (free). NULL: no memory. */
char *url_line(const char *url, const char *query);

/* Have both the same scheme, host and port? Of http and https only; a port that is not said is 80 or 443. */
bool url_same_server(const char *one, const char *other);
