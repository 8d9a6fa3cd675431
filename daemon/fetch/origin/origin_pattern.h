/* fetch/origin/origin_pattern.h: which of a listing's names an origin's path means.
 *
 * A path without {, * and ? is a folder: everything below it. Else its braces are expanded, and each path that comes of
 * them is one name, or a pattern with * (base/patterns/glob_match.h); each must be found. Paths in the plan begin after
 * the last slash before the first of these characters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/store/plan/arena.h"
#include "proto/base/why.h"

#define ORIGIN_GLOBS_MAX 1000u /* patterns with *: each name is compared with all of them */

struct origin_pattern_item {
        const char *text;
        bool is_found;
};

struct origin_pattern {
        struct plan_arena arena;
        struct origin_pattern_item *items; /* names in order, then patterns; NULL: everything below the folder */
        size_t n_names, n_items;
        char *prefix;  /* all names that are meant begin so */
        size_t n_base; /* bytes of it: their folder, with its slash */
};

/* Returns 0; -EINVAL, -E2BIG with `why`; -ENOMEM. `path` without its first slash. */
int origin_pattern_init(struct origin_pattern *pattern, const char *path, struct why *why);
void origin_pattern_fini(struct origin_pattern *pattern);

/* Is this name meant? It is found from then on. */
bool origin_pattern_takes(struct origin_pattern *pattern, const char *name);

/* The first that was not found; NULL: all were. */
const char *origin_pattern_missing(const struct origin_pattern *pattern);
