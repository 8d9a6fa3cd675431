/* fetch/url_line.h: URLs as they go over the line, and whose server they name: as libcurl sees them. */
#pragma once

#include <stdbool.h>

/* As it goes over the line: bytes that may not be in a URL (blanks, what is not ASCII, quotes) are percent-encoded
 * after the host, what is encoded stays as it is; `query` (NULL: none) goes after '?'; no fragment. The caller's
 * (free). NULL: no memory. */
char *url_line(const char *url, const char *query);

/* Have both the same scheme, host and port? Of http and https only; a port that is not said is 80 or 443. */
bool url_same_server(const char *one, const char *other);
