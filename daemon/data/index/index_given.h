/* data/index/index_given.h: the index that came with a folder, as a copy of our own.
 *
 * It lies in the dataset's folder tree, where others may write, and whose file system may hang or disappear. So it is
 * read once, from beginning to end, and never mapped. The copy takes the place of the dataset's own index file, so it
 * is made once for each version and takes no memory. If that folder cannot be written, the copy is kept in memory. */
#pragma once

#include "daemon/data/dataset.h"

/* `format` and `options`: its name, and the digest of the options that it must have been made with. `index_path`: the
 * path of the copy, in `index_dir`. Returns 0; -EBADMSG if it is not an index, or has another digest, format or
 * options; -ENOMEM; or another errno. `ret_why` names the file. Blocks for the disk: about 0.1 s for a million samples
 * the first time; later as long as opening takes. */
int index_given_open(const struct dataset_spec *spec, const char *format, const char *options, const char *index_dir,
                     const char *index_path, struct source **ret_index, struct why *ret_why);
