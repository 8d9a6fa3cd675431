/* data/formats/parquet/fill.h: the second pass, which makes the index.
 *
 * The bytes of pictures, sound and text of columns that are not compressed lie in the files as they are, so the index
 * keeps their places and copies nothing. Numbers are kept in the index, and so is what has to be unpacked. Samples are
 * named FILE:ROW. */
#pragma once

#include "daemon/data/formats/parquet/pass.h"

/* Reads all rows. Returns 0, or an errno with the pass's `why`. Blocks as a pass does. */
int parquet_fill(struct parquet_pass *pass, struct index_builder **ret_builder);
