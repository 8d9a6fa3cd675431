/* pipeline/catalog_private.h: what the files of the catalog know of each other.
 *
 *   catalog.c         the list; opening in the background      catalog_staged.c  datasets with an origin */
#pragma once

#include "daemon/pipeline/catalog.h"

/* Opens what the configuration or the stamp says, in the background. What is open already is served until then. */
void entry_open(struct catalog_entry *entry);

/* It cannot be opened: says so, once for each text if it is staged. */
void entry_fail(struct catalog_entry *entry, int error, const struct why *why);

struct catalog_entry *entry_find(struct catalog *catalog, const char *name); /* or NULL */

/* ---- catalog_staged.c ---------------------------------------------------------------------------------------- */

int staged_new(const struct catalog_wish *wish, struct catalog_staged **ret_staged, struct why *why);
void staged_free(struct catalog_staged *staged); /* NULL is fine */

/* Is the origin still the same? `staged` is NULL without one. */
bool staged_matches(const struct catalog_staged *staged, const char *origin);

/* Where the stamped version lies, its index ("" if none was made) with its digest, and its format. */
int staged_aim(const struct catalog_entry *entry, char ret_path[PATH_MAX], char ret_index[PATH_MAX],
               char ret_digest[INDEX_DIGEST_SIZE], char ret_format[32]);

/* `open` is what is served from now on; what was until now stays with those who have it. */
void staged_take(struct catalog_entry *entry, const struct catalog_dataset *open);

/* Is the version before still held, and of this content? */
bool staged_has_previous(const struct catalog_staged *staged, const char *digest);

/* After a failure: the next look reads the stamp whether it changed or not. */
void staged_look_again(struct catalog_entry *entry);
