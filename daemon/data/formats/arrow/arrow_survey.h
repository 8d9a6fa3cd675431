/* data/formats/arrow/arrow_survey.h: the first pass, over those columns whose field depends on what their rows hold.
 *
 * Lists within lists are an array only if the inner lists have one length; a ClassLabel's rows may hold -1; the bytes
 * of an Image may be inside the Arrow file or in a file of their own. */
#pragma once

#include "daemon/data/formats/arrow/arrow_pass.h"

/* Looks at the rows, if a column needs that, and settles the columns. Returns 0 or an errno with the pass's `why`.
 * Blocks as a pass does. */
int arrow_survey(struct arrow_pass *pass);
