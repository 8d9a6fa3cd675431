/* data/files/splits.h: files whose names say that they belong to several splits: train.csv beside test.csv,
 * train-00000-of-00005.parquet, x-val-0001.tar. Read as one dataset, the test would be trained on, and nobody would see
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/why.h"

/* Writes the splits of these files, separated by commas, each once. Returns how many there are. */
size_t splits_list(const char *const *names, size_t n, char *text, size_t size);

/* Is the file of this split? Also one that is called as the split, whatever its name says otherwise. */
bool splits_has(const char *path, const char *split);

/* The files of a folder of `root`: moves those of the split to the begin of `names` and counts them. Without a split
 * (NULL), all of them, if they are of one. `are_numbered`: sets whose files are numbered are splits whatever they are
 * called; else they may as well be parts by language or origin, unless one has a split's usual name. Returns 0; -EINVAL
 * with `why`, which lists the splits, if one has to be chosen. */
int splits_choose(const char *root, const char *split, bool are_numbered, const char **names, size_t *n,
                  struct why *why);
