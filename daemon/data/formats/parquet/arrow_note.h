/* data/formats/parquet/arrow_note.h: what Parquet cannot say about a column, and Arrow's writers note: that all lists of a
 * level have the same length.
 *
 * The note is an Arrow schema message in base64. It only adds to Parquet's own schema: one that is absent, damaged, or
 * of another shape says nothing. */
#pragma once

#include <stdint.h>

#include "daemon/data/formats/arrow/table/ipc_schema.h"
#include "daemon/data/formats/parquet/footer.h"

/* Reads the note. The schema has no columns if it says nothing. Returns 0 or -ENOMEM. */
int parquet_arrow_read(const struct parquet_note *note, struct arrow_schema *ret_schema);

#define PARQUET_ARROW_NONE UINT32_MAX

/* The field of this name: a column, or a member of the struct `parent` (PARQUET_ARROW_NONE: a column).
 * PARQUET_ARROW_NONE: there is none. */
uint32_t parquet_arrow_find(const struct arrow_schema *schema, uint32_t parent, const char *name);

/* Writes the lengths of the lists of a field with n_dims levels where they are fixed, and leaves the others. */
void parquet_arrow_shape(const struct arrow_schema *schema, uint32_t field, uint32_t n_dims, int64_t *shape);
