/* data/formats/table_columns.h: what the formats of tables (arrow, parquet) have in common: which columns become fields,
 * under which names, and what the library "datasets" has noted about them: Image, Audio, the names of a ClassLabel. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/refusals.h"
#include "daemon/data/schema.h"
#include "proto/base/why.h"

/* Is the column named in a list as "image=photo|scan, caption" (photo, scan and caption are)? Every one is if `fields`
 * is NULL. */
bool table_column_is_wanted(const char *fields, const char *name);

/* No column is left. Returns -EINVAL with `why`, if none is named; or -ENODATA with the reason of the first one that
 * cannot be served. */
int table_no_column(const char *fields, const struct refusals *refusals, struct why *why);

/* Lists a column, by the name that it has in its file, which cannot be served because of `error`. As refusals_add(). */
int table_column_refuse(struct refusals *refusals, const char *column, int error, const struct why *why);

/* Two columns give this name of a field: neither is served, because nobody knows which one is meant. Returns -EINVAL
 * with `why`; the column is marked, so that the index is built again without both. */
int table_column_is_twice(struct refusals *refusals, const char *name, struct why *why);

/* Lists a column for which a dataset has no room, by its name in its file; `can_choose`: the format reads those alone
 * that fields = "..." names. As refusals_add(). */
int table_column_is_too_many(struct refusals *refusals, const char *column, bool can_choose, struct why *why);

/* Makes the name of a column that of its field (data/field_name.h). Returns 0; or -EINVAL with `why` for one that is
 * empty or has control characters. */
int table_column_name(const char *name, struct schema_field *field, struct why *why);

/* What messages call the notes that "datasets" leaves in a schema. */
#define TABLE_NOTES "the schema's note \"huggingface\""

/* The features in the notes that "datasets" leaves in a schema; NULL if there are none. */
const cJSON *table_features(const cJSON *notes);

/* What the bytes of this field are, according to the features of the column of this name: pictures, sounds, or what it
 * is already. */
enum field_kind table_feature_kind(const cJSON *features, const char *name, const struct schema_field *field);

/* The names of the classes, an array of texts, if the field is the label; NULL: it is not. */
const cJSON *table_feature_classes(const cJSON *features, const char *name, const struct schema_field *field);
