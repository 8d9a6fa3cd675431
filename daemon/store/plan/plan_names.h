/* store/plan/plan_names.h: the names that a plan or an archive has used up. Eight bytes each, for many millions of them. */
#pragma once

#include <stdint.h>

#include "proto/base/why.h"

struct plan_names;

int plan_names_new(struct plan_names **ret_names);
void plan_names_free(struct plan_names *names); /* NULL is fine */
void plan_names_freep(struct plan_names **names);

/* Takes a path that plan_path_check() allows, for a file or a link, and those of the folders above it. Returns 0;
 * -EINVAL with `why` if an entry of that name was there before (or of one that differs in case alone), or if one of the
 * names would have to be file and folder at once; -ENOMEM. */
int plan_names_take(struct plan_names *names, const char *path, struct why *why);

/* How many names are used up, those of folders included: each is an inode. */
uint64_t plan_names_n(const struct plan_names *names);
