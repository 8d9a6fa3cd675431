/* run/conversions.h: what prepare = "convert" does to which file. Private to this room.
 *
 * Most files become files of samples, with new names. The shards of MDS and LitData keep their names without the ending
 * of their compression, since index.json lists them by name; whatever else lies in such a dataset is copied. */
#pragma once

#include <stdbool.h>

#include "daemon/staging/plan/plan.h"

#define CONVERSION_WORDS 5u

struct conversion {
        const char *ending;                  /* of the file's name */
        const char *words[CONVERSION_WORDS]; /* the program and its arguments; the last one is NULL */
        const char *becomes;                 /* of a shard: what is put in place of the ending; else NULL */
};

/* What is done to a file. `has_shards` as below. NULL: nothing, it is left out. */
const struct conversion *conversion_of(const char *path, bool has_shards);

/* Is one of the files a compressed shard? */
bool conversion_has_shards(const struct plan *plan);

/* Is a file the compressed form of another one of the dataset, which has it as it is? */
bool conversion_is_needless(const struct plan *plan, const char *path);

/* Puts the path together that a shard gets. */
void conversion_path(const struct conversion *conversion, const char *path, char *ret_path, size_t size);
