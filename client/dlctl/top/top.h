/* top/top.h: what the user of dlctl top has chosen. */
#pragma once

#include "client/dlctl/top/shown.h"

#define DELAY_LEAST 0.1
#define DELAY_MOST  3600.0

struct top_terms {
        bool once;
        bool ranks;   /* are shown from the beginning */
        double delay; /* seconds */
        struct sorting sorting;
        const char *filter;
};

/* Two looks and a table on stdout. Returns an exit code. */
int top_once(struct context *context, const struct top_terms *terms);
