/* data/formats/listing/listing_columns.h: what the records of a listing hold, column by column, and what field each becomes.
 *
 * A record adds a cell to each column that it has; what a column is can only be said after the last record. A cell
 * takes 16 bytes: where it lies, and its number if it is one. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/json/json_value.h"
#include "daemon/data/field_name.h"
#include "daemon/data/growing.h"
#include "daemon/data/index/index_layout.h"
#include "daemon/data/refusals.h"
#include "proto/base/why.h"

/* Columns that cannot be served are among them, so that they are known again. */
#define TABLE_COLUMNS_MAX (INDEX_FIELDS_MAX + REFUSALS_MAX)

enum value_kind {
        CELL_ABSENT, /* null, no such member or column, or an empty cell of a CSV file, of which `integer` is 1 */
        CELL_BOOLEAN,
        CELL_INTEGER,  /* 0 to 2^63 - 1: both int64 and uint64 have it */
        CELL_NEGATIVE, /* a whole number that only int64 has */
        CELL_HUGE,     /* one that only uint64 has: its bits are in `integer` */
        CELL_FLOAT,
        CELL_TEXT,
        CELL_NUMBERS, /* an array of numbers */
        CELL_TEXTS,   /* an array of strings */
        CELL_OTHER,   /* an object, or another array */
        N_CELL_KINDS,
};

struct table_cell {
        union {
                int64_t integer; /* CELL_BOOLEAN to CELL_HUGE */
                double number;   /* CELL_FLOAT */
        };
        uint32_t begin;        /* bytes from the beginning of its record */
        uint32_t n_bytes : 28; /* < TEXT_WINDOW_RECORD_MAX */
        uint32_t kind : 4;     /* enum value_kind */
};

struct table_column {
        char name[SCHEMA_NAME_MAX];
        uint32_t idx;     /* in table_columns.columns */
        bool is_left_out; /* it cannot be served: only its name counts. Of a part of a table: in these records */
        bool is_raw;      /* wanted as the bytes in the file, whatever they are */
        bool is_path;     /* names files */
        bool is_label;    /* the option label names it */
        bool is_kept;     /* its texts are in `texts`, at `begin` of each cell: there is no file to read them from */
        struct growing texts;
        bool is_part;        /* its text is a part of the names of files */
        struct growing part; /* of such a column: the text that it has in record part_row - 1 */
        uint64_t part_row;
        struct growing cells; /* struct table_cell, from the first record on; absent ones at the end are left out */
        uint64_t n_put;       /* cells that were put, */
        uint64_t n_present;   /* and those among them that hold something */
        uint64_t n_named;     /* the line of names that had it last, counted from 1 */
        /* Where the first cell of each kind was found; line 0: nowhere. */
        struct {
                uint64_t line;
                size_t idx_file;
        } seen[N_CELL_KINDS];
        /* Of its arrays: the first one that is not empty; n 0: there is none. */
        struct json_numbers numbers;
        bool has_empty, has_empty_rows, is_ragged, is_uneven;
};

struct table_columns {
        struct table_column *columns[TABLE_COLUMNS_MAX];
        size_t n_columns, n_left_out;
        uint16_t places[FIELD_NAME_PLACES]; /* by name: 1 + the index of a column; 0: none */
        struct growing rows;                /* uint64_t: where each record begins in its file */
        uint64_t n_rows;
        size_t idx_next; /* the column that comes next if this record is like the one before */
};

/* How cells are written. */
enum columns_syntax {
        COLUMNS_JSON,
        COLUMNS_CSV,
};

void columns_fini(struct table_columns *columns);

/* The record that begins at `offset` of its file: cells that are put belong to it. -ENOMEM. */
int columns_begin_row(struct table_columns *columns, uint64_t offset);

/* The column of this name, or NULL. `name` is UTF-8 and has n bytes. */
struct table_column *columns_find(struct table_columns *columns, const char *name, size_t n);

/* Adds a column. Returns 0; -E2BIG with `why` if there are too many; -ENOMEM. */
int columns_add(struct table_columns *columns, const char *name, size_t n, struct table_column **ret_column,
                struct why *why);

/* Forgets the cells of a column; nothing may be put into it any more. */
void columns_leave_out(struct table_columns *columns, struct table_column *column);

/* Puts a cell into the column; if the record has one there already, in its place. `line` and `idx_file` are for
 * messages. -ENOMEM. */
int columns_put(struct table_columns *columns, struct table_column *column, const struct table_cell *cell,
                uint64_t line, size_t idx_file);

/* The text that the record has in a column that is a part of names. -ENOMEM. */
int columns_put_part(struct table_columns *columns, struct table_column *column, const void *text, size_t n);

/* Notes the shape of an array that will be put, or was put. */
void column_note_numbers(struct table_column *column, const struct json_numbers *numbers);

/* Removes all records; keeps the columns. */
void columns_clear(struct table_columns *columns);

/* The column of each column of `part` that has cells, by its index there; NULL: it has none, or is left out here.
 * False: one is missing here, or is left out there and not here. */
bool columns_match(struct table_columns *columns, const struct table_columns *part,
                   struct table_column *ret_matches[TABLE_COLUMNS_MAX]);

/* Adds the records of `part`, after those that are there, as if they had been put one after the other; line 1 there is
 * line 1 + line_base of file idx_file. -ENOMEM. */
int columns_take(struct table_columns *columns, const struct table_columns *part,
                 struct table_column *const matches[TABLE_COLUMNS_MAX], uint64_t line_base, size_t idx_file);

/* The cell of a row; an absent one beyond the last. */
struct table_cell column_cell(const struct table_column *column, uint64_t row);

/* Says what field the column is. Returns 0, or -EINVAL if no field can be all of its cells: then the first cell of
 * *ret_one and the first of *ret_other, enum value_kind, are of kinds that do not go together. */
int column_describe(const struct table_columns *columns, const struct table_column *column, enum columns_syntax syntax,
                    struct schema_field *ret_field, enum value_kind *ret_one, enum value_kind *ret_other);

/* Sets number and kind of a cell from a whole number as JSON writes it. Returns as json_integer_read(); -ERANGE:
 * neither int64 nor uint64 has it. */
int cell_read_integer(const void *bytes, size_t n_bytes, struct table_cell *cell, struct why *why);

const char *cell_kind_name(enum value_kind kind);
