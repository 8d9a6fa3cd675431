/* data/formats/listing/listing_table.h: a listing whose records have columns (jsonl, csv): its options, and its index.
 *
 * Which columns name files is in table_files.h. The option `raw = "a, b"` keeps columns as they are written. */
#pragma once

#include "daemon/data/formats/listing/class_names.h"
#include "daemon/data/formats/listing/listing.h"
#include "daemon/data/formats/listing/listing_columns.h"
#include "daemon/data/formats/listing/table_files.h"

/* Samples that are files themselves, not records of a listing (the format folder). */
struct table_samples {
        enum field_kind kind; /* a picture is the field "image", a sound "audio"; others "file" */
        /* Adds the folders to the index, the root first; then the file of each sample, with its row. An errno without
         * `why`. */
        int (*begin)(void *userdata, struct index_builder *builder);
        int (*give)(void *userdata, uint64_t row, struct index_builder *builder, struct index_row *ret_row);
        void *userdata;
};

struct table_notes;

/* What formats say of it (data/format_options.h). */
#define OPTION_FILES                                                                                                   \
        {                                                                                                              \
                .name = "files", .kind = SETTING_OPTIONAL, .max = 1023,                                                \
                .prose = "The columns that name files, as in \"image=path, mask=masks/{id}.png\"."                     \
        }
#define OPTION_RAW                                                                                                       \
        {                                                                                                                \
                .name = "raw", .kind = SETTING_OPTIONAL, .max = 4095,                                                    \
                .prose =                                                                                                 \
                        "The columns, separated by commas, that are delivered as bytes exactly as they are in the file." \
        }
#define OPTION_LABEL                                                                                                   \
        { .name = "label", .kind = SETTING_OPTIONAL, .max = 31, .prose = "The column that is the label." }

struct record_table {
        struct text_listing listing;
        struct table_columns columns;
        enum columns_syntax syntax;
        struct refusals *refusals; /* of format_refusals() */
        const char *raw;           /* the option; may be NULL */
        const char *label;         /* the option: the column that is the label; may be NULL */
        struct class_names classes;
        bool has_classes;                    /* the label is a place among the texts of its column */
        const struct table_samples *samples; /* NULL: samples are the records of listings */
        struct table_files_set files;
        const char *files_option;  /* may be NULL */
        struct growing text;       /* a name or a value as it is without its quotes, until the next one is read */
        struct table_notes *notes; /* of a part of a table (table_part.h), which only writes down what is noted */
};

void table_fini(struct record_table *table);

/* Reads the options, each of which may be NULL. Returns 0 or -EINVAL with listing.why. */
int table_init(struct record_table *table, const char *files, const char *raw, const char *label);

/* The column of this name, which is added if it is new; it is left out if it cannot be a field. Returns 0 or an errno
 * with `why`, which says nothing of lines. */
int table_find_column(struct record_table *table, const char *name, size_t n, struct table_column **ret_column,
                      struct why *why);

/* The column is left out because of `error`, unless an option needs it, and is listed; of a part, only until its next
 * records. Returns 0; else the error, and `why` stays what it was. */
int table_leave_out(struct record_table *table, struct table_column *column, int error, const struct why *why);

/* Puts a text that lies in no file: the column keeps it. Returns 0 or an errno with `why`. */
int table_keep_text(struct record_table *table, struct table_column *column, const char *text, size_t n,
                    struct why *why);

/* Notes what the record that is read has in a column that names files, is a part of their names, or is the label
 * (is_path, is_part, is_label).
 * `text` is UTF-8. Returns 0 or an errno with `why`. */
int table_note_text(struct record_table *table, struct table_column *column, const char *text, size_t n,
                    struct why *why);

/* The record has this number, as it is written, in a column that is a part of names (is_part). Returns as above. */
int table_note_number(struct record_table *table, struct table_column *column, const void *text, size_t n,
                      struct why *why);

/* The record has null there, whatever it had before. Returns as above. */
int table_forget_text(struct record_table *table, struct table_column *column, struct why *why);

/* All values of the record were put and noted. Returns 0 or an errno with `why`. */
int table_end_record(struct record_table *table, struct why *why);

/* Makes the index of what was read. Returns 0 or an errno with listing.why. */
int table_make_index(struct record_table *table, struct index_builder **ret_builder);
