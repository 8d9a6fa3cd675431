/* run/conversions.h: what prepare = "convert" does to which file. Private to this room.
 *
 * Most files become files of samples, with new names. Files that are known by their names keep them: the shards of MDS
 * and LitData, without the ending of their compression, since index.json lists them; arrays (.npy), whose names are
 * those of fields. Whatever else lies in such a dataset is copied. */
#pragma once

#include <stdbool.h>

#include "daemon/staging/plan/plan.h"

#define CONVERSION_WORDS 5u

struct conversion {
        const char *ending;                  /* of the file's name */
        const char *words[CONVERSION_WORDS]; /* the program and its arguments; the last one is NULL */
        const char *becomes;                 /* of files that keep their names: put in place of the ending; else NULL */
};

/* What is done to a file. `keeps_names` as below. NULL: nothing, it is left out. */
const struct conversion *conversion_of(const char *path, bool keeps_names);

/* Do the files keep their names? They do if one of them is a compressed shard, or if there is nothing to be done but to
 * arrays. */
bool conversion_keeps_names(const struct plan *plan);

/* Is a file the compressed form of another one of the dataset, which has it as it is? */
bool conversion_is_needless(const struct plan *plan, const char *path);

/* Puts the path together that a file gets which keeps its name. */
void conversion_path(const struct conversion *conversion, const char *path, char *ret_path, size_t size);
