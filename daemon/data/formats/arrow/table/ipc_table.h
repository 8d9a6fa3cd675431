/* data/formats/arrow/table/ipc_table.h: one Arrow file as its schema and its record batches, one after the other.
 *
 * Dictionaries are read on the way: the values that a batch refers to are those that came before it. Memory: the
 * metadata of one message, and 16 bytes (or a number) for each value of a dictionary. */
#pragma once

#include "daemon/data/formats/arrow/table/cells.h"

struct arrow_table;

/* Reads the schema from `fd`, a regular file, which stays the caller's: the table has n_bytes from begin_byte on, which
 * lie within it. Returns 0; -EBADMSG or -ENOTSUP with
 * `why`, which says where, but does not name the file; -ENOMEM or an errno of reading. Blocks for a few reads. */
int arrow_table_open(int fd, uint64_t begin_byte, uint64_t n_bytes, struct arrow_table **ret_table, struct why *why);

/* Sets how many bytes a compressed batch, or the dictionaries, may have when they are unpacked: ARROW_UNPACKED_MAX at
 * first, which is the most. */
void arrow_table_limit(struct arrow_table *table, uint64_t max_unpacked);

/* Both take NULL. */
void arrow_table_close(struct arrow_table *table);
void arrow_table_closep(struct arrow_table **table);

/* Valid as long as the table. */
const struct arrow_schema *arrow_table_schema(const struct arrow_table *table);

/* Goes on to the next record batch. Returns 0, ARROW_END, or an errno as above, with `why`, which says which batch. */
int arrow_table_next(struct arrow_table *table, struct why *why);

/* The batch, and its number from 0. Valid until the next one. */
const struct arrow_batch *arrow_table_batch(const struct arrow_table *table);
uint64_t arrow_table_idx_batch(const struct arrow_table *table);

/* Rows of the batch, for arrow_cells() and the others. */
struct arrow_rows arrow_table_rows(const struct arrow_table *table, uint64_t first, uint32_t n);
