/* top/top_view.h: what is drawn, line by line, as text with styles. Pure functions: the screen and --once show the same. */
#pragma once

#include "client/dlctl/top/line.h"
#include "client/dlctl/top/shown.h"

struct view {
        unsigned n_columns;
        bool utf8;
        const char *host;
        const char *away; /* why the daemon does not answer; NULL: it does */
        const struct rates *rates;
        const struct glance *datasets; /* of this look only the datasets are used; NULL: not known yet */
        struct sorting sorting;
};

typedef void emit_fn(void *arg, const struct line *line);

/* Workers, memory, disk, damage, and what the node is busy with; n_lines at most, the most important ones. */
void view_head(const struct view *view, unsigned n_lines, emit_fn *emit, void *arg);

/* The widths of the table's columns; 0: left out. */
struct layout {
        unsigned widths[N_COLUMNS];
};

/* The columns that fit, as wide as what `items` have in them. */
void view_layout(const struct view *view, const struct items *items, struct layout *ret_layout);
void view_titles(const struct view *view, const struct layout *layout, struct line *line);
void view_item(const struct view *view, const struct layout *layout, const struct item *item, struct line *line);

/* All of a job: terms, what it waits for, stages, ranks. */
void view_details(const struct view *view, const struct job_rates *job, emit_fn *emit, void *arg);

/* What the columns and the keys mean. */
void view_help(const struct view *view, emit_fn *emit, void *arg);
