/* data/formats/parquet/parquet_columns.h: what becomes of each column of a dataset: which leaf has its values, and where they are
 * served from.
 *
 * Bytes and text of a column that is verbatim in all files stay there, and the index keeps their places. Everything
 * else is kept in the index: numbers, lists, and what has to be unpacked. What "datasets" has noted about a
 * column decides what its bytes mean (data/formats/table_columns.h). */
#pragma once

#include "daemon/data/formats/parquet/pages/parquet_reader.h"
#include "daemon/data/formats/table_columns.h"
#include "daemon/data/index/indexing_json.h"

enum parquet_role {
        PARQUET_ROLE_STORED, /* bytes or text in the file */
        PARQUET_ROLE_COPIED, /* the same, but unpacked: a column of the index */
        PARQUET_ROLE_NUMBER, /* a column of the index */
        PARQUET_ROLE_LIST,   /* of numbers: the same */
        PARQUET_ROLE_TEXTS,  /* lists of text: the same */
        PARQUET_ROLE_CLASS,  /* the label of the index */
        PARQUET_ROLE_MEDIA,  /* struct{bytes, path}: the bytes in the file, else the file that `path` names */
};

struct parquet_column {
        enum parquet_role role;
        struct schema_field field;
        uint32_t idx_value;       /* the element of the leaf with its values */
        uint32_t idx_path;        /* PARQUET_ROLE_MEDIA: that of the path; idx_value is that of the bytes */
        uint32_t idx_index;       /* the number of the stored field, or of the index's column */
        const cJSON *class_names; /* an array of texts; NULL: they are not classes */

        /* Found out by a first pass. */
        bool is_surveyed;             /* the rows have to be looked at, not only the footers */
        bool is_compressed;           /* a chunk is not verbatim: compressed, or its encoding takes values apart */
        struct parquet_widths widths; /* of lists within lists */
        uint64_t n_inside, n_outside,
                n_absent;    /* media: bytes in the Parquet file, a file named by its path, neither */
        int64_t least, most; /* of class labels */
};

struct parquet_columns {
        uint32_t n;
        struct parquet_column *all;
        struct indexing_json notes; /* what the schema has noted */
};

/* Decides for all columns, or for those that `fields` names (NULL: all). `footer` is that of the first file. Columns
 * among `refusals` are passed over; one that cannot be served is added there. Returns 0; or
 * -ENOTSUP or -EINVAL with `why`, which names the column; or -ENOMEM. */
int parquet_columns_plan(struct parquet_columns *columns, const struct parquet_footer *footer, const char *fields,
                         struct refusals *refusals, struct why *why);

/* Settles what the first pass has found out. Returns 0, or an errno with `why`, which names the column and marks it. */
int parquet_columns_settle(struct parquet_columns *columns, struct refusals *refusals, struct why *why);

/* Are the rows of this column files of their own? Known when it is settled. */
bool parquet_column_has_own_file(const struct parquet_column *column);

/* Takes a struct of zeroes. */
void parquet_columns_fini(struct parquet_columns *columns);
