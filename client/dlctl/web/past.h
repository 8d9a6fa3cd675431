/* web/past.h: what the daemon said of its jobs in the last minute, so that a verdict is about that minute.
 *
 * A look is kept for each ten seconds: memory is bounded by what six answers take. */
#pragma once

#include <stdint.h>

#include "client/dlctl/glance.h"

#define PAST_LOOKS  6u
#define PAST_GAP_NS 10000000000ull

struct past {
        struct past_look {
                uint64_t ns; /* CLOCK_MONOTONIC */
                struct glance *glance;
        } looks[PAST_LOOKS]; /* the oldest first */
        size_t n;
};

/* Takes a look over, of now_ns: keeps or frees it. */
void past_take(struct past *past, uint64_t now_ns, struct glance *glance);

/* The earliest look at this job. Returns false if there is none: the job is new, or the daemon was away. */
bool past_find(const struct past *past, uint64_t now_ns, const Dlp__Job *job, struct look *ret_look);

void past_free(struct past *past); /* empty afterwards */
