/* data/formats/arrow/table/cells.h: where the values of rows lie in the file, and what the numbers among them are.
 *
 * A cell is the place of one row's value: text and bytes as they are, the elements of a list one after the other. So
 * only offsets, indices and null bits are read here, never the bytes that a cell covers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/formats/arrow/table/dictionary.h"
#include "daemon/data/formats/arrow/table/ipc_batch.h"
#include "daemon/data/formats/columnar/columnar_value.h"

#define ARROW_ROWS_MAX   4096u           /* that are asked for at once */
#define ARROW_LEVELS_MAX SCHEMA_DIMS_MAX /* of lists within lists */
#define ARROW_CELL_NULL  UINT64_MAX      /* offset: the row has no value */

struct arrow_cell {
        uint64_t offset, n_bytes; /* in the file, unless it was unpacked */
        const uint8_t *plain; /* the bytes of one that was unpacked, valid as long as the batch; NULL: in the file */
};

struct arrow_rows {
        int fd;
        const struct arrow_schema *schema;
        const struct arrow_batch *batch;
        const struct arrow_dictionaries *dictionaries;
        uint64_t first; /* row */
        uint32_t n;     /* at most ARROW_ROWS_MAX */
};

/* Is each row of this field one piece of bytes? Text, binary, fixed binary, numbers, and lists of numbers of up to
 * ARROW_LEVELS_MAX levels are; bools, structs, and lists of anything else are not. */
bool arrow_has_cells(const struct arrow_schema *schema, uint32_t idx_field);

/* Is it a list of bools, of up to ARROW_LEVELS_MAX levels? Its cells are counted in bools (arrow_bools()), not in
 * bytes. */
bool arrow_has_bools(const struct arrow_schema *schema, uint32_t idx_field);

/* The number type, or the bool, at the end of lists. `idx_field` has cells or bools and is a list. */
const struct arrow_field *arrow_list_element(const struct arrow_schema *schema, uint32_t idx_field,
                                             uint32_t *ret_n_levels);

/* Writes the cells of the rows, n of them; `widths` are used for lists alone. Returns 0; -EBADMSG if offsets or indices
 * lead elsewhere; -ENOTSUP for lists of different lengths or with nulls among their elements; -ENOMEM; or an errno of
 * reading; with `why`, which does not name the file or column. */
int arrow_cells(const struct arrow_rows *rows, uint32_t idx_field, struct columnar_widths *widths,
                struct arrow_cell *ret_cells, struct why *why);

/* The same for text or bytes of a member of a struct. COLUMN_NONE: the file does not have it, so no row has a value. */
int arrow_member_cells(const struct arrow_rows *rows, uint32_t idx_field, struct arrow_cell *ret_cells,
                       struct why *why);

/* The same for lists of anything, counted in elements: which ones of its child a list has. */
int arrow_lists(const struct arrow_rows *rows, uint32_t idx_field, struct arrow_cell *ret_cells, struct why *why);

/* The numbers of an ARROW_NUMBER or ARROW_BOOL field, `width` bytes each, or one for a bool. Rows without a value get
 * zeroes, and `false` in ret_is_valid. Returns as above. */
int arrow_numbers(const struct arrow_rows *rows, uint32_t idx_field, void *ret_numbers, bool *ret_is_valid,
                  struct why *why);

/* The bools of a cell of a list of bools that is not null, a byte each. Returns as arrow_cells(). */
int arrow_bools(const struct arrow_rows *rows, uint32_t idx_field, const struct arrow_cell *cell, bool *ret_bools,
                struct why *why);

/* Copies the bytes of a cell that is not null. Returns 0 or an errno of reading. */
int arrow_cell_read(const struct arrow_cell *cell, int fd, void *into);

/* Which rows have a value. */
int arrow_validity(const struct arrow_rows *rows, uint32_t idx_field, bool *ret_is_valid, struct why *why);
