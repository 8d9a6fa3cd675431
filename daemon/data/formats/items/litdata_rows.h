/* data/formats/items/litdata_rows.h: chunks whose items are rows of an Arrow table. LitData (0.2.76) writes items that
 * are dictionaries of text, numbers, lists and dictionaries of these so:
 *
 *      a table of items that are all empty, an Arrow file or stream, its length (4 bytes), "LDARW01" and a zero
 *
 * Older chunks may have both, the items and the table; then the table is read, which LitData does, too. */
#pragma once

#include "daemon/data/formats/items/items.h"

/* Does a file of the root end with a table? Returns 1 or 0, or an errno with `why`, which names the file. */
int litdata_has_rows(int root_fd, const char *root, const char *name, int64_t *settled_ns, struct why *why);

/* Makes the index of a set of which only the shards are known, as items_build() does. `fields` are those wanted, as the
 * configuration names them; NULL: all. */
int litdata_rows_build(const struct item_set *set, int root_fd, const struct files *files, const char *fields,
                       struct refusals *refusals, const struct index_watch *watch, struct index_builder **ret_builder,
                       struct why *why);
