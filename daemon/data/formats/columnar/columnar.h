/* data/formats/columnar/columnar.h: datasets whose files are tables that are kept column by column (Arrow, Parquet): a row
 * is a sample, a column is a field.
 *
 * A format says what a file's schema has, and how its bytes give the values of a column, some rows at a time (struct
 * columnar_format). The rest is the same for all: the first file's schema decides what becomes of the columns; in the
 * other files they are found by their names, and of a column without a type the first file that has one decides. A
 * first pass finds out what only all files show (the types of numbers, the lengths of inner lists), a second one fills
 * the index.
 *
 * Text, bytes and lists of numbers stay in the file where they lie there as they are, and the index keeps their places.
 * Everything else is kept in the index. A struct is not a field itself; its members are: "objects" with the member
 * "bbox" becomes the field "objects.bbox".
 *
 * Several threads go through the files (data/files/parted.h): each visits some rows of a file for itself, in a part.
 * The parts are taken in order; what a part could not read is visited again, by the caller's thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "daemon/data/files/listed.h"
#include "daemon/data/format.h"
#include "daemon/data/formats/columnar/columnar_value.h"
#include "daemon/data/formats/differing/columns_map.h"
#include "daemon/data/formats/text_list.h"
#include "daemon/data/index/indexing_json.h"

#define COLUMNAR_SERVED                                                                                                \
        "numbers, bools, text, binary, lists of numbers, bools or text, structs of these, Image and Audio"
#define COLUMNAR_PARENTS_MAX 4u    /* structs within each other, where their own nulls count */
#define COLUMNAR_ROWS_MAX    4096u /* between two looks at whether it is cancelled */

/* Positive outcome of next(): there are no further rows. */
#define COLUMNAR_END 1

enum columnar_role {
        COLUMNAR_STORED, /* bytes, text, or a list of numbers, in the file */
        COLUMNAR_COPIED, /* bytes or text that have to be unpacked: a column of the index */
        COLUMNAR_LIST,   /* a list of numbers or bools: a column of the index */
        COLUMNAR_TEXTS,  /* a list of text: a column of the index */
        COLUMNAR_NUMBER, /* a column of the index */
        COLUMNAR_CLASS,  /* the label of the index */
        COLUMNAR_MEDIA,  /* struct{bytes, path}: the bytes in the file, else the file that `path` names */
};

/* Where a column is in a schema. */
struct columnar_place {
        uint32_t idx_field;           /* COLUMN_NONE: the file does not have it */
        uint32_t idx_bytes, idx_path; /* COLUMNAR_MEDIA: of its members */
        uint32_t dtype;               /* of its numbers, also in lists */

        /* The structs that it is a member of, where their own nulls count: a row that has none of one has no value. */
        uint32_t n_parents, idx_parents[COLUMNAR_PARENTS_MAX];
};

struct columnar_column {
        enum columnar_role role;
        struct schema_field field;
        struct columnar_place place; /* in the dataset's schema, */
        struct columnar_place here;  /* and in that of the file that is read */
        uint32_t idx_index;          /* the number of the stored field, or of the index's column */
        const cJSON *class_names;    /* an array of texts; NULL: they are not classes */

        /* Found out by the first pass over the schemas, and over the rows where that is needed. */
        bool is_surveyed;                       /* the rows have to be looked at */
        bool is_mixed;                          /* its numbers are not of one type in all files */
        bool is_compressed;                     /* some of its bytes do not lie in the file as they are */
        struct columnar_widths widths;          /* of lists within lists */
        uint64_t n_inside, n_outside, n_absent; /* media: bytes in the file, a file named by its path, neither */
        int64_t least, most;                    /* of class labels */
};

struct columnar_columns {
        uint32_t n;
        struct columnar_column *all;
        bool is_settled;            /* the first pass is over */
        struct indexing_json notes; /* what "datasets" has noted in the schema */
};

struct columnar_format;

struct columnar_pass {
        const struct columnar_format *format;
        const char *name; /* of the index's format */
        int root_fd;
        const struct files *files;
        const struct index_watch *watch; /* may be NULL */
        struct refusals *refusals;       /* NULL in a part */
        struct why *why;
        const struct listed *listed;
        void *schema; /* of the dataset */
        void *own;    /* the format's; its functions only read it */
        int64_t settled_ns;

        /* Zeroes at first. */
        struct columnar_columns columns;
        struct stat status;         /* of the file that was begun last, as it was before */
        uint64_t n_rows;            /* that were put into the index */
        const atomic_bool *is_over; /* of a part: nobody wants it any more; else NULL */
};

/* Some rows of a file that follow each other. */
struct columnar_rows {
        uint64_t idx;   /* the batch or row group, of the file */
        uint64_t first; /* the first row, as messages count them */
        uint64_t n;     /* 1 or more */
};

/* What becomes of the columns is decided. */
struct columnar_planning {
        const struct columnar_format *format;
        const void *schema;
        void *reading;         /* the first file */
        const cJSON *features; /* as "datasets" names them; NULL: nothing is known */
        const char *notes;     /* JSON from which they are to be read; NULL: there is none */
        size_t n_notes;
        const char *fields; /* which are wanted; NULL: all */
        struct refusals *refusals;
        struct why *why;
};

/* A column or a member of a struct, on its way to becoming a field. */
struct columnar_candidate {
        char name[256]; /* "objects.bbox"; what is longer is cut */
        uint32_t idx;
        uint32_t note; /* the format's */
        uint32_t n_parents, idx_parents[COLUMNAR_PARENTS_MAX];
};

struct columnar_format {
        const char *files;        /* "Arrow files" */
        const char *unit, *place; /* "batch", "of the batch", for messages */
        const char *elsewhere;    /* what is wrong if a value that was to stay in the file does not lie there, */
        int elsewhere_error;      /* and its errno */
        bool is_cut;              /* several threads visit the rows of one file */
        bool is_surveyed;         /* the first pass looks at the rows of all files, whatever the columns are */
        bool has_parents;         /* a struct's nulls are its own, and not its members' */

        /* ---- schemas: rows of fields, as differing/columns_map.h has them */
        const struct columns_type *type;
        struct columns_range (*range)(const void *schema);
        /* FIELD_BYTES or FIELD_TEXT, if it is such a leaf, and not part of a dictionary or list; else FIELD_VALUE. */
        enum field_kind (*kind)(const void *schema, uint32_t idx);
        const char *(*type_name)(const void *schema, uint32_t idx);
        uint32_t (*dtype)(const void *schema, uint32_t idx); /* at the end of lists */
        /* Gives columns without a type those of another file; a schema of zeroes becomes a copy. 0 or an errno with
         * `why`. */
        int (*complete)(void *schema, const void *file, struct why *why);
        /* Can it be read in a file with this schema as it was planned? NULL: it can. */
        bool (*suits)(const struct columnar_column *column, const void *file);

        /* ---- planning. Sets what is known of the features. 0 or an errno with the planning's `why`. */
        int (*begin_plan)(const struct columnar_pass *pass, struct columnar_planning *planning);
        uint32_t (*note)(const struct columnar_planning *planning, const struct columnar_candidate *parent,
                         const char *name); /* of a column if `parent` is NULL. NULL: there are none */
        /* The role, the type and the place of a field that has no members of its own. 0 or an errno with `why`. */
        int (*plan)(const struct columnar_planning *planning, const struct columnar_candidate *candidate,
                    struct columnar_column *column);
        /* The last word, when its features are known. NULL: it is as planned. */
        int (*settle)(const struct columnar_planning *planning, struct columnar_column *column);

        /* ---- a file. Begins to read part `part` of n_parts of its rows. `reading` is used by one thread. 0 or an
         * errno with `why`, which does not name the file, as below. */
        int (*open)(const struct columnar_pass *pass, int fd, uint64_t n_bytes, size_t idx_file, uint64_t part,
                    uint64_t n_parts, void **ret_reading, struct why *why);
        void (*close)(void *reading);
        const void *(*schema)(const void *reading);
        /* Do the types of its columns not count, because it has no rows? NULL: they do. */
        bool (*is_empty)(const void *reading);
        /* The next rows. 0, COLUMNAR_END, or an errno. Errors of the others name neither rows nor column. */
        int (*next)(void *reading, struct columnar_rows *ret_rows, struct why *why);

        /* The first pass: what these rows say about a column that the file has. */
        int (*survey)(void *reading, struct columnar_column *column, struct why *why);

        /* The second pass, with columns by their number. Values are asked for row by row, after begin() and before
         * end(), which may be NULL. */
        int (*begin)(void *reading, uint32_t column, struct why *why);
        int (*end)(void *reading, uint32_t column, struct why *why);
        /* A number is unaligned, of here.dtype; a list of numbers is its elements. Valid until the next row. */
        int (*value)(void *reading, uint32_t column, uint64_t row, struct columnar_value *ret_value, struct why *why);
        /* Reads a value that lies in the file into `copy`, with a byte to spare. NULL: all but stored ones have their
         * bytes. */
        int (*read)(void *reading, uint32_t column, const struct columnar_value *value, struct growing *copy,
                    struct why *why);
        int (*texts)(void *reading, uint32_t column, uint64_t row, struct text_list *texts, bool *ret_is_missing,
                     struct why *why);
        /* More than `max` bytes would have to be copied into the index. Sets `why`, and returns -EFBIG. */
        int (*too_much)(const struct columnar_column *column, uint64_t max, struct why *why);
        /* Pictures or sound are compressed. Returns -ENOTSUP with `why`. NULL: planning has seen it. */
        int (*compressed)(const struct columnar_column *column, struct why *why);

        /* Adds the folders of the dataset. NULL: those of `listed`. */
        int (*give_root)(const struct columnar_pass *pass, struct index_builder *builder);
};

/* Makes the index of the files of a pass. `fields`: the columns that are wanted, as in "image=photo|scan, caption";
 * NULL: all. Returns 0 or an errno with the pass's `why`. Blocks until all files are read. */
int columnar_build(struct columnar_pass *pass, const char *fields, struct index_builder **ret_builder);

void columnar_fini(struct columnar_pass *pass);

/* A builder of an index with the fields of these columns, and without samples. 0; -ENOMEM, -E2BIG. */
int columnar_describe(struct columnar_pass *pass, struct index_builder **ret_builder);
int columnar_give_root(const struct columnar_pass *pass, struct index_builder *builder);

/* ---- for formats ------------------------------------------------------------------------------------------------- */

/* A candidate cannot be served, because it is `type`, "a map". Returns -ENOTSUP with the planning's `why`. */
int columnar_refuse(const struct columnar_planning *planning, const char *name, const char *type);

/* For survey(): a label, of here.dtype, or NULL; and a row of media. */
void columnar_see_label(struct columnar_column *column, const void *number);
void columnar_see_media(struct columnar_column *column, bool has_bytes, bool has_path);

/* To be called after every few thousand rows, of which n_rows were put into the index. 0, or -ECANCELED with `why`. */
int columnar_look_up(struct columnar_pass *pass, uint64_t n_rows, struct why *why);

/* What a part may have of memory that the whole pass may have. */
uint64_t columnar_share(const struct columnar_pass *pass, uint64_t n_bytes);

/* Is it COLUMNAR_MEDIA whose rows are files of their own? Known when the first pass is over. */
bool columnar_has_own_file(const struct columnar_column *column);

/* Is it kept as a place in a file? */
static inline bool columnar_is_stored(const struct columnar_column *column) {
        return column->role == COLUMNAR_STORED || column->role == COLUMNAR_MEDIA;
}
