/* data/joined/joined.h: a source over several, one after the other, as torch's ConcatDataset has them.
 *
 * Sample i of part k is sample parts[k].first + i. The fields are those of all parts, by name:
 *
 *   - How a field is stored may differ from part to part; whether its samples can stand in one batch is decided where a
 *     pipeline asks for it, since a field that nobody asks for does no harm (codec/programs/programs.h).
 *   - A field that not all parts have is absent in the samples of the others.
 *   - Arrays whose first dimensions differ vary in it.
 *   - `__dataset__` says which part a sample is of, from 0: an int64, delivered where a pipeline names it. A part that
 *     has a field of this name keeps its own.
 *
 * Classes are known if all parts with classes have the same. The digest is made of the names and the digests of the
 * parts, in their sequence. A part may not be a stream, whose number of samples is not known. */
#pragma once

#include "daemon/data/source.h"
#include "proto/base/why.h"

#define JOINED_FIELD "__dataset__"

struct joined_part {
        const char *name;
        const struct source *source; /* without parts */
};

/* The sources of the parts stay the caller's and outlive the joined one; names are copied. 2 to DLP_PARTS_MAX parts
 * (asserted). -EINVAL with `why`: a part is a stream, there are too many samples, or too many fields; -ENOMEM. Does not
 * look at samples. */
int joined_open(const struct joined_part *parts, uint32_t n_parts, struct source **ret_source, struct why *why);

/* Do the parts that have labels of classes have the same classes? Else `why` names the two parts and the first class
 * that differs. Returns 0 or -EINVAL. */
int joined_check_classes(const struct source *source, struct why *why);
