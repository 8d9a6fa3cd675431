/* top/top.h: what the user of dlctl top has chosen. */
#pragma once

#include "client/dlctl/command.h"
#include "client/dlctl/top/shown.h"

struct top_terms {
        bool once;
        bool ranks;   /* are shown from the beginning */
        double delay; /* seconds */
        struct sorting sorting;
        const char *filter;
};

/* Two glances and a table on stdout. Returns an exit code. */
int top_once(struct context *context, const struct top_terms *terms);

/* The same in a terminal, until the user ends it. */
int top_live(struct context *context, const struct top_terms *terms);
