/* data/formats/listing/join.h: further tables whose rows belong to the records of a table, by a column that both have.
 *
 *   join = "image_class_labels.txt(id, class_id), classes.txt(class_id, class)"
 *
 * Each table is a file of the dataset's folder. The names in brackets are its columns, of which the first is the key;
 * without them, its first row has the names. Keys are compared as they are written. The tables are in memory until the
 * index is made. One thread. */
#pragma once

#include "daemon/data/formats/listing/listing_table.h"

#define JOINS_MAX         8u
#define JOIN_FILE_MAX     (1u << 30) /* bytes */
#define JOIN_NAME_MAX     256u       /* of a file, with NUL */
#define JOIN_COLUMNS_TEXT 1024u

struct joined {
        char file[JOIN_NAME_MAX];
        char names[JOIN_COLUMNS_TEXT]; /* "id, class_id"; "": the first row has them */
        struct growing texts;          /* of all cells, each with its NUL */
        struct growing cells;          /* uint64_t: offsets into texts, row by row */
        struct growing places;         /* uint64_t: an open-addressed table of rows by key, plus 1; 0: empty */
        struct growing column_names;   /* uint64_t: offsets into texts */
        size_t n_columns;
        uint64_t n_rows;
        struct table_column **columns; /* of the table; NULL until the first record */
};

struct join {
        struct joined tables[JOINS_MAX];
        size_t n;
};

void join_fini(struct join *join);

/* Reads the option (NULL: no tables), and the tables. `delimiter` is as for csv_find_row(); is_by_name: told
 * by the ending of each file's name. Returns 0 or an errno with `why`. Blocks for the disk. */
int join_open(struct join *join, const char *option, char delimiter, bool is_by_name, int root_fd, const char *root,
              struct why *why);

/* Before the first record: adds the columns to the table, whose own columns are there. Returns 0 or an errno with
 * `why`, which says nothing of lines. */
int join_bind(struct join *join, struct record_table *table, struct why *why);

/* Puts what the tables have for the record that is read, all of whose own values were put. Returns as above; -EINVAL if
 * a table has no row for it. */
int join_record(struct join *join, struct record_table *table, struct why *why);
