#include "daemon/fetch/pauses.h"

#include <string.h>

static size_t server_bytes(const char *url) {
        const char *slashes = strstr(url, "://");
        size_t n_bytes = slashes ? (size_t)(slashes - url) + 3 : 0;

        return n_bytes + strcspn(url + n_bytes, "/?#");
}

/* The row of a server, or -1. Names that do not fit are not kept: then only the piece itself waits. */
static int pauses_find(const struct pauses *pauses, const char *url) {
        size_t n_bytes = server_bytes(url);

        for (uint32_t i = 0; i < PAUSES_MAX; i++)
                if (strlen(pauses->rows[i].server) == n_bytes && memcmp(pauses->rows[i].server, url, n_bytes) == 0)
                        return (int)i;
        return -1;
}

void pauses_set(struct pauses *pauses, const char *url, uint64_t until_ns) {
        size_t n_bytes = server_bytes(url);
        int idx = pauses_find(pauses, url);

        if (n_bytes >= sizeof(pauses->rows[0].server))
                return;
        if (idx < 0) {
                idx = 0;
                for (uint32_t i = 1; i < PAUSES_MAX; i++)
                        if (pauses->rows[i].until_ns < pauses->rows[idx].until_ns)
                                idx = (int)i;
                memcpy(pauses->rows[idx].server, url, n_bytes);
                pauses->rows[idx].server[n_bytes] = '\0';
                pauses->rows[idx].until_ns = 0;
        }
        if (until_ns > pauses->rows[idx].until_ns)
                pauses->rows[idx].until_ns = until_ns;
}

uint64_t pauses_until(const struct pauses *pauses, const char *url) {
        int idx = pauses_find(pauses, url);

        return idx < 0 ? 0 : pauses->rows[idx].until_ns;
}
