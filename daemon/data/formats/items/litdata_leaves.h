/* data/formats/items/litdata_leaves.h: what the leaves of LitData's items are, as index.json says it. */
#pragma once

#include "daemon/base/json/json_value.h"
#include "daemon/data/formats/items/items.h"

/* Adds a column for each leaf to a set that has none: its kind, how it is stored, and its name, made of the keys of
 * dictionaries and the places in tuples and lists. `whole` is index.json. Of more leaves than a dataset can have the
 * first ones that `fields` names (NULL: all) become columns; the others, and two of one name, are listed. Returns 0;
 * -EBADMSG, -ENOTSUP (names that are too long) or -E2BIG with `why`; -ECANCELED; -ENOMEM. */
int litdata_leaves_read(struct item_set *set, const struct json_token *whole, const char *fields, struct why *why);
