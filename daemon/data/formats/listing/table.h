/* data/formats/listing/table.h: a listing whose records have columns (jsonl, csv): its options, and its index.
 *
 * Which columns name files is in table_files.h. The option `raw = "a, b"` keeps columns as they are written. */
#pragma once

#include "daemon/data/formats/listing/columns.h"
#include "daemon/data/formats/listing/listing.h"
#include "daemon/data/formats/listing/table_files.h"

struct record_table {
        struct text_listing listing;
        struct table_columns columns;
        enum columns_syntax syntax;
        const char *raw; /* the option; may be NULL */
        struct table_files_set files;
};

void table_fini(struct record_table *table);

/* Reads the options; `files` and `raw` may be NULL. Returns 0 or -EINVAL with listing.why. */
int table_init(struct record_table *table, const char *files, const char *raw);

/* The column of this name, which is added if it is new. Returns 0 or an errno with `why`, which says nothing of lines.
 */
int table_find_column(struct record_table *table, const char *name, size_t n, struct table_column **ret_column,
                      struct why *why);

/* Notes what the record that is read has in a column that names files, or is a part of their names (is_path, is_part).
 * `text` is UTF-8. Returns 0 or an errno with `why`. */
int table_note_text(struct record_table *table, struct table_column *column, const char *text, size_t n,
                    struct why *why);

/* The record has null there, whatever it had before. */
void table_forget_text(struct record_table *table, struct table_column *column);

/* All values of the record were put and noted. Returns 0 or an errno with `why`. */
int table_end_record(struct record_table *table, struct why *why);

/* Makes the index of what was read. Returns 0 or an errno with listing.why. */
int table_make_index(struct record_table *table, struct index_builder **ret_builder);
