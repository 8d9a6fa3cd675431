/* data/joined/aligned.h: one part of a joined source, with the fields of all parts.
 *
 * Field k is the same field in each part, by name. How the field is stored is the part's own: a label that is known in
 * one part may be a file with a number in another. A field that the part does not have is absent in all its samples. */
#pragma once

#include "daemon/data/joined/joined.h"
#include "daemon/data/source.h"

#define ALIGNED_NONE UINT32_MAX /* the part does not have the field */

/* `fields` are those of all parts, in this part's description; field k is the part's own field inner[k], or
 * ALIGNED_NONE. `number` is the part's: the value of `idx_number`, which may be ALIGNED_NONE. The part's source stays
 * the caller's, and outlives this one. -ENOMEM. */
int aligned_new(const struct source *inner, const struct schema *fields, const uint32_t *numbers, uint32_t idx_number,
                uint32_t number, struct source **ret_source);
