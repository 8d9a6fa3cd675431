/* fetch/pauses.h: servers that asked to be left alone for a while (429, 503 with Retry-After). What asks of one
 * piece is meant for all that would go there. */
#pragma once

#include <stdint.h>

#define PAUSES_MAX 16u

struct pauses {
        struct {
                char server[128]; /* the URL as far as its first slash */
                uint64_t until_ns;
        } rows[PAUSES_MAX];
};

/* The server of `url` is not asked before `until_ns` (CLOCK_MONOTONIC). Never shortens; if there is no place, the one
 * that is over first makes room. */
void pauses_set(struct pauses *pauses, const char *url, uint64_t until_ns);

/* 0 if it may be asked any time. */
uint64_t pauses_until(const struct pauses *pauses, const char *url);
