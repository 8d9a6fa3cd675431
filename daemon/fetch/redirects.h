/* fetch/redirects.h: where a hub has led requests for parts of files that lie in its storage. Each further part would be
 * led there again, which is a round trip and a request that the hub counts.
 *
 * Such URLs are signed and hold for a time: they are kept for minutes, forgotten as soon as one is refused, and told to
 * nobody. Only those on other servers are kept, and what goes there has no credentials. Any thread. */
#pragma once

#include <stdbool.h>

struct redirects;

struct redirects *redirects_new(void);            /* NULL: no memory */
void redirects_free(struct redirects *redirects); /* NULL is fine */

/* A copy of where this URL leads, the caller's (free). NULL: it is not known. */
char *redirects_get(struct redirects *redirects, const char *url);

/* Without memory it is not kept. */
void redirects_set(struct redirects *redirects, const char *url, const char *target);

void redirects_forget(struct redirects *redirects, const char *url);
