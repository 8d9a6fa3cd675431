/* data/index/index_given.h: the index that came with a folder, as a copy of our own.
 *
 * It lies in the dataset's folder tree, where others may write and whose file system may hang or drop it: it is read
 * once, from its begin to its end, and never mapped. The copy takes the place of the dataset's own index file, so it is
 * made once for each version and costs no memory; where that folder cannot be written, it lies in memory. */
#pragma once

#include "daemon/data/dataset.h"

/* `index_path`: where the copy belongs, in `index_dir`. Returns 0; -EBADMSG if it is not an index, or not that of the
 * digest and format; -ENOMEM; another errno. `ret_why` names the file. Blocks for the disk: about 0.1 s a million
 * samples for the first time, else for opening. */
int index_given_open(const struct dataset_spec *spec, const char *index_dir, const char *index_path,
                     struct source **ret_index, struct why *ret_why);
