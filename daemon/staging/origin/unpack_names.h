/* staging/origin/unpack_names.h: the names that an archive has used up. Eight bytes each, for archives of many
 * millions. */
#pragma once

#include <stdint.h>

#include "proto/base/why.h"

struct unpack_names;

int unpack_names_new(struct unpack_names **ret_names);
void unpack_names_free(struct unpack_names *names); /* NULL is fine */
void unpack_names_freep(struct unpack_names **names);

/* Takes a path that plan_path_check() allows, for a file or a link, and those of the folders above it. Returns 0;
 * -EINVAL with `why` if an entry of that name was there before (or of one that differs in case alone), or if one of the
 * names would have to be file and folder at once; -ENOMEM. */
int unpack_names_take(struct unpack_names *names, const char *path, struct why *why);

/* How many names are used up, those of folders included: each is an inode. */
uint64_t unpack_names_n(const struct unpack_names *names);
