/* data/view/view.h: a source over another one, with some of its samples and fields.
 *
 * `fields = "image=jpg|png, caption=txt, id=__key__"` chooses fields and renames them; alternatives become one field,
 * of which each sample has the first one that it has. `split = "0:90%"` chooses samples (data/view/split.h). Modules
 * above notice neither.
 *
 * The digest of a view is made of the digest of what is under it, of both texts, and of the samples that a list names.
 */
#pragma once

#include "daemon/data/source.h"
#include "daemon/data/view/split.h"
#include "proto/base/why.h"

/* Puts a view over *source, which it owns from then on; *source becomes the view. `root` is for a split. A text that is
 * NULL changes nothing; without both, there is no view. Returns 0; -EINVAL with `why`; -ENOMEM; the errors of
 * split_make(). In case of an error *source stays as it was. May look at each sample. */
int view_open(struct source **source, const char *fields, const char *split, const struct split_root *root,
              struct why *why);
