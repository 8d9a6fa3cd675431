/* fetch/origin/url_list.h: a text of URLs, one a line: what files they name. Blank lines and lines that begin with
 * '#' are passed over; blanks around a URL as well. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/plan/arena.h"
#include "daemon/store/record/url.h"
#include "proto/base/why.h"

struct url_list_item {
        const char *url;
        const char *path; /* decoded, below the longest folder that all have in common */
};

struct url_list {
        struct plan_arena arena;
        struct url_list_item *items; /* in the text's order */
        uint64_t n_items;
};

/* Returns 0; -EINVAL with `why` naming source and line; -E2BIG; -ENOMEM. */
int url_list_parse(const char *text, size_t n_bytes, const char *source, struct url_list *ret_list, struct why *why);
void url_list_fini(struct url_list *list);
