/* data/files/complete.h: is a file missing of those whose names say how many there are: "train-00001-of-00003.parquet"?
 *
 * A copy that broke off leaves a folder that is read without an error, and the dataset is a third shorter. */
#pragma once

#include <stddef.h>

#include "proto/base/why.h"

/* A staging that converts files puts a number before each name: "000007-train-00001-of-00003.tar". Returns the length
 * of such a prefix, if all these names have one and are in its order; else 0. */
size_t files_sequence(const char *const *names, size_t n);

/* `names`: the dataset's files, in any order. Numbers begin at 0, or at 1 if the last one is there, or if there is no 0
 * and the names have no "-of-". Returns 0; -ENOENT with `why`, which names the first ones that are missing; -ENOMEM. */
int files_check_complete(const char *const *names, size_t n, struct why *why);
