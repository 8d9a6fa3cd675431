/* What came of an index pass, byte by byte: for tests that compare two ways of reading the same files. */
#pragma once

#include "daemon/data/format.h"
#include "tests/support/tree.h"

struct outcome {
        int r;
        struct why why; /* if r is negative */
        uint8_t *bytes; /* of the index, if r is 0 */
        size_t n_bytes;
};

/* Makes an index of the tree's root, or of one file of it. `options` as in the configuration's text; they and the watch
 * may be NULL. */
void outcome_find(const struct tree *tree, const struct format *format, const char *name, const char *options,
                  const struct index_watch *watch, struct outcome *ret_outcome);

void outcome_fini(struct outcome *outcome);

/* Fails the test unless both are the same index, or were refused with the same words. `what` begins the message, and
 * `way` says how the other one came about. */
void outcome_expect_same(const struct outcome *one, const struct outcome *other, const char *what, const char *way);
