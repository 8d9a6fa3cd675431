/* data/formats/arrow/arrow_columns.h: what becomes of each column of a dataset: which field it is, and where its values come
 * from.
 *
 * Text, bytes and lists of numbers stay in the file, and the index keeps their places. Numbers, bools and lists
 * of text are kept in the index; so is everything if the batches are compressed, because no row of them can be read
 * alone. What "datasets" has noted about a column decides what its bytes mean: Image, Audio, the names of a ClassLabel.
 * A struct is not a field itself; its members are: "objects" with the member "bbox" becomes the field "objects.bbox".
 */
#pragma once

#include <cjson/cJSON.h>

#include "daemon/data/formats/arrow/table/cells.h"
#include "daemon/data/formats/differing/columns_map.h"
#include "daemon/data/index/indexing_json.h"
#include "daemon/data/refusals.h"
#include "daemon/data/schema.h"

#define ARROW_PARENTS_MAX 4u /* structs within each other */

enum arrow_role {
        ARROW_ROLE_STORED, /* a cell in the file */
        ARROW_ROLE_COPIED, /* the same, but it has to be unpacked: its bytes are a column of the index */
        ARROW_ROLE_NUMBER, /* a column of the index */
        ARROW_ROLE_CLASS,  /* the label of the index */
        ARROW_ROLE_TEXTS,  /* lists of text: a column of the index */
        ARROW_ROLE_BOOLS,  /* lists of bools, which are bits in the file: a column of the index */
        ARROW_ROLE_MEDIA,  /* struct{bytes, path}: the cell of `bytes`, else the file that `path` names */
};

/* Where a column is in a schema. */
struct arrow_place {
        uint32_t idx_field; /* COLUMN_NONE: the file does not have it */
        uint32_t n_parents; /* the structs that it is a member of: a row that has none of one has no value */
        uint32_t idx_parents[ARROW_PARENTS_MAX];
        uint32_t idx_bytes, idx_path; /* ARROW_ROLE_MEDIA: of its members */
        uint32_t dtype;               /* of its numbers, also in lists */
};

struct arrow_column {
        enum arrow_role role;
        struct schema_field field;
        struct arrow_place place; /* in the dataset's schema, */
        struct arrow_place here;  /* and in that of the file that is read */
        uint32_t idx_index;       /* the number of the stored field, or of the index's column */
        const cJSON *class_names; /* an array of texts; NULL: they are not classes */

        /* Found out by a first pass over the schemas, and over the rows where that is needed. */
        bool is_surveyed;
        bool is_mixed;                          /* its numbers are not of one type in all files */
        struct arrow_widths widths;             /* of lists within lists */
        uint64_t n_inside, n_outside, n_absent; /* media: bytes in the Arrow file, a file named by its path, neither */
        int64_t least, most;                    /* of class labels */
};

struct arrow_columns {
        uint32_t n;
        struct arrow_column *all;
        bool is_settled;
        struct indexing_json notes; /* what the schema has noted; unless dataset_info.json is used */
};

/* Decides for all columns, or for those that `fields` names (as in fields = "image=photo|scan, caption"; NULL: all).
 * Columns among `refusals` are passed over; one that cannot be served is added there.
 * `is_compressed`: the batches are. `info` is dataset_info.json, which has to live as long as the columns, or NULL.
 * Returns 0; or -ENOTSUP or -EINVAL with `why`, which names the column that cannot be served; or -ENOMEM. */
int arrow_columns_plan(struct arrow_columns *columns, const struct arrow_schema *schema, const cJSON *info,
                       const char *fields, bool is_compressed, struct refusals *refusals, struct why *why);

/* A file begins, whose schema is `file`: finds each column there. Its numbers get a type that has those of this file,
 * too. Returns 0; or an errno with `why`, which names the column that is of another type there, and marks it, or says
 * that the file has none of them; or -ENOMEM. */
int arrow_columns_find(struct arrow_columns *columns, const struct arrow_schema *schema,
                       const struct arrow_schema *file, struct refusals *refusals, struct why *why);

/* Adds to the type of a column's numbers that of others. */
void arrow_column_join(struct arrow_column *column, uint32_t dtype);

/* Settles what the first pass has found out. Returns 0, or an errno with `why`, which names the column. */
int arrow_columns_settle(struct arrow_columns *columns, struct refusals *refusals, struct why *why);

/* Takes a struct of zeroes. */
void arrow_columns_fini(struct arrow_columns *columns);
