/* data/format_tell.h: which format a dataset has, for `format = "auto"`. */
#pragma once

#include <dirent.h>

#include "daemon/data/format.h"

#define FORMAT_AUTO "auto"

/* Finds the format of this name, or with "auto" the one that the content shows: each format looks at the files
 * (struct format, is_it). An option that only one format takes decides without a look. If no format recognises what the
 * files begin with, their names decide, so that the format says what is wrong with them. `options` as in struct
 * dataset_spec. Returns 0; -EINVAL with `why` for an unknown name, if no format or more than one recognises the files,
 * with the candidates; -ENOTSUP if none does, and a file is compressed; and the errors of is_it(), because without one
 * format's answer another one may be wrong. Blocks for a few reads. */
int format_tell(const char *name, int root_fd, const struct files *files, const char *options,
                const struct format **ret_format, struct why *why);

/* For is_it(), after something in it has returned `r`: the errno if memory, descriptors, the disk or a permission were
 * missing, which says nothing about the files; 0 for what another format's files give. */
int format_cannot_tell(int r);

/* For is_it(): calls look() for each entry of the folder until it returns something else than 0, and returns that; 0 at
 * the end; or an errno with which nothing can be told. */
int format_look_into(int root_fd, int (*look)(void *userdata, const struct dirent *entry), void *userdata);

/* For is_it(), with its outcomes: is the name of some file in the folder taken by `is_taken`; or if the path names
 * files, of all of them? */
int format_names_files(int root_fd, const struct files *files, bool (*is_taken)(const char *name));
