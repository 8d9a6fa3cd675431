/* data/formats/listing/table.h: a listing whose records have columns (jsonl, csv): its options, and its index.
 *
 * The option `files = "image=path, audio=wav"` says which columns name files: the field "image" is the bytes of the
 * file that the column "path" names. Without it, a column "file_name" (Hugging Face) or "audio_filepath" (NeMo) is
 * taken so if the file that the first record names exists. The option `raw = "a, b"` keeps columns as they are written.
 */
#pragma once

#include "daemon/data/formats/listing/columns.h"
#include "daemon/data/formats/listing/file_paths.h"
#include "daemon/data/formats/listing/listing.h"

#define TABLE_FILES_MAX 8u

/* A column that names files. */
struct table_files {
        char field[SCHEMA_NAME_MAX]; /* "": not known yet */
        char column[SCHEMA_NAME_MAX];
        bool is_guess; /* nobody asked for it */
        bool is_none;  /* a guess that was wrong: paths of which one cannot be a file of the dataset */
        struct file_paths paths;
};

struct record_table {
        struct text_listing listing;
        struct table_columns columns;
        enum columns_syntax syntax;
        const char *raw; /* the option; may be NULL */
        struct table_files files[TABLE_FILES_MAX];
        size_t n_files;
};

void table_fini(struct record_table *table);

/* Reads the options; `files` and `raw` may be NULL. Returns 0 or -EINVAL with listing.why. */
int table_init(struct record_table *table, const char *files, const char *raw);

/* The column of this name, which is added if it is new. Returns 0 or an errno with `why`, which says nothing of lines.
 */
int table_find_column(struct record_table *table, const char *name, size_t n, struct table_column **ret_column,
                      struct why *why);

/* Notes the path that a record has in a column of paths, as UTF-8. Returns 0 or an errno with `why`. */
int table_note_path(struct record_table *table, struct table_column *column, const char *path, size_t n,
                    struct table_cell *cell, struct why *why);

/* Makes the index of what was read. Returns 0 or an errno with listing.why. */
int table_make_index(struct record_table *table, struct index_builder **ret_builder);
