/* support/collation_of.h: a text of steps, of which the last one may be a collation. */
#pragma once

#include <string.h>

#include "daemon/collate/collation.h"
#include "proto/base/cleanup.h"

/* As collation_read(); the collation begins at text[*ret_begin], or there is none and the text ends there. */
static inline int collation_of(const char *text, struct collation *ret_collation, size_t *ret_begin, struct why *why) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct grammar_steps steps;
        uint32_t n_before;
        int r = grammar_new("pipeline", text, &grammar, why);

        if (r == 0)
                r = grammar_steps(grammar, grammar_all(grammar), &steps);
        if (r == 0)
                r = collation_read(grammar, steps, ret_collation, &n_before, why);
        if (r == 0)
                *ret_begin = n_before < steps.n ? grammar_column(grammar, steps.at[n_before].name.at) - 1
                                                : strlen(text);
        return r;
}
