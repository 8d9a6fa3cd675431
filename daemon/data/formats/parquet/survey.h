/* data/formats/parquet/survey.h: the first pass: what the index has to know before the first row.
 *
 * Whether a column is verbatim everywhere is said by the footers. Rows are looked at where they decide: lists within
 * lists are an array only if the inner lists have one length; a ClassLabel's rows may hold -1; the bytes of an Image
 * may be in the Parquet file or in a file of their own. */
#pragma once

#include "daemon/data/formats/parquet/pass.h"

/* Looks, and settles the columns. Returns 0 or an errno with the pass's `why`. Blocks as a pass does. */
int parquet_survey(struct parquet_pass *pass);
