/* run/conversions.h: what prepare = "convert" does to which file: what formats say of theirs (data/format.h), and the
 * decompression of files of samples. Private to this room.
 *
 * Most files become files of samples, with new names. Files that are known by their names keep them: the shards of MDS
 * and LitData, without the ending of their compression, since index.json lists them; arrays (.npy), whose names are
 * those of fields; tables and texts (.csv.gz). Whatever else lies in such a dataset is copied. Chunks of LitData may be
 * compressed within, so that their names do not say it: any that lie beside an index.json go through the program.
 *
 * Beside files that are decompressed there may be others of the same form that are not: they are samples too. So may
 * files whose names do not say that they are compressed. */
#pragma once

#include <stdbool.h>

#include "daemon/data/format.h"
#include "daemon/store/plan/plan.h"

struct conversions {
        bool keeps_names; /* the files do: one of them is a compressed shard, table or text, or there is nothing to be
                           * done but to arrays */
        uint64_t plain_forms; /* otherwise: of which formats files are taken although their names need no conversion */
        const struct plan *plan; /* of the dataset */
};

/* What is done to the files of a dataset. */
void conversions_find(const struct plan *plan, struct conversions *ret_conversions);

/* What is done to a file. NULL: nothing, it is left out. */
const struct format_conversion *conversion_of(const char *path, const struct conversions *conversions);

/* Is a file the compressed form of another one of the dataset, which has it as it is? */
bool conversion_is_needless(const struct plan *plan, const char *path);

/* Puts the path together that a file gets which keeps its name. */
void conversion_path(const struct format_conversion *conversion, const char *path, char *ret_path, size_t size);
