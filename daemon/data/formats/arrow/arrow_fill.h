/* data/formats/arrow/arrow_fill.h: the second pass, which makes the index.
 *
 * The bytes of text, pictures and lists of numbers lie in the files as they are, so the index keeps their places and
 * copies nothing; numbers, bools and lists of text are kept in the index. Compressed batches are unpacked once, and
 * what they hold is kept in the index as well. Samples are named FILE:ROW. */
#pragma once

#include "daemon/data/formats/arrow/arrow_pass.h"

/* Reads all rows. Returns 0, or an errno with the pass's `why`. Blocks as a pass does. */
int arrow_fill(struct arrow_pass *pass, struct index_builder **ret_builder);
