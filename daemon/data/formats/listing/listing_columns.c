#include "daemon/data/formats/listing/listing_columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/formats/listing/text_window.h"

_Static_assert(TEXT_WINDOW_RECORD_MAX <= 1u << 28, "the length of a cell fits its bits");
_Static_assert(TABLE_COLUMNS_MAX < FIELD_NAME_PLACES, "an empty place ends each search");
_Static_assert(sizeof(struct table_cell) == 16, "memory for each cell is as documented");

void columns_fini(struct table_columns *columns) {
        for (size_t i = 0; i < columns->n_columns; i++) {
                growing_fini(&columns->columns[i]->cells);
                growing_fini(&columns->columns[i]->part);
                growing_fini(&columns->columns[i]->texts);
                free(columns->columns[i]);
        }
        growing_fini(&columns->rows);
        memset(columns->places, 0, sizeof(columns->places));
        columns->n_columns = 0;
}

int columns_begin_row(struct table_columns *columns, uint64_t offset) {
        int r = growing_append(&columns->rows, &offset, sizeof(offset));

        if (r < 0)
                return r;
        columns->n_rows++;
        columns->idx_next = 0;
        return 0;
}

static bool listing_columns_has_name(const struct table_column *column, const char *name, size_t n) {
        return strncmp(column->name, name, n) == 0 && column->name[n] == '\0';
}

/* The place of the column with this name, or the empty one where it belongs. */
static uint16_t *listing_columns_place_of(struct table_columns *columns, const char *name, size_t n) {
        uint32_t at = field_name_place(name, n);

        while (columns->places[at] != 0 &&
               !listing_columns_has_name(columns->columns[columns->places[at] - 1], name, n))
                at = (at + 1) % FIELD_NAME_PLACES;
        return &columns->places[at];
}

struct table_column *columns_find(struct table_columns *columns, const char *name, size_t n) {
        size_t idx = columns->idx_next;
        char cut[SCHEMA_NAME_MAX];

        if (n >= SCHEMA_NAME_MAX) {
                field_name_from(name, n, cut);
                name = cut;
                n = strlen(cut);
        }
        if (idx == columns->n_columns || !listing_columns_has_name(columns->columns[idx], name, n)) {
                idx = *listing_columns_place_of(columns, name, n);
                if (idx-- == 0)
                        return NULL;
        }
        columns->idx_next = idx + 1;
        return columns->columns[idx];
}

int columns_add(struct table_columns *columns, const char *name, size_t n, struct table_column **ret_column,
                struct why *why) {
        struct table_column *column;

        if (columns->n_columns == TABLE_COLUMNS_MAX)
                return why_set(why, -E2BIG, "\"%.*s\" is one column too many: %u can be looked at",
                               n > 100 ? 100 : (int)n, name, TABLE_COLUMNS_MAX);
        column = calloc(1, sizeof(*column));
        if (!column)
                return why_set(why, -ENOMEM, "no memory for another column");
        field_name_from(name, n, column->name);
        column->idx = (uint32_t)columns->n_columns;
        columns->columns[columns->n_columns++] = column;
        *listing_columns_place_of(columns, column->name, strlen(column->name)) = (uint16_t)columns->n_columns;
        columns->idx_next = columns->n_columns;
        *ret_column = column;
        return 0;
}

void columns_leave_out(struct table_columns *columns, struct table_column *column) {
        growing_fini(&column->cells);
        growing_fini(&column->texts);
        columns->n_left_out += !column->is_left_out;
        column->is_left_out = true;
}

int columns_put(struct table_columns *columns, struct table_column *column, const struct table_cell *cell,
                uint64_t line, size_t idx_file) {
        uint64_t row = columns->n_rows - 1, n_cells = column->cells.n_bytes / sizeof(*cell);
        int r = 0;

        if (n_cells > row) { /* twice in one record: the last one counts */
                struct table_cell *last = (struct table_cell *)(void *)column->cells.bytes + row;

                column->n_present -= last->kind != CELL_ABSENT;
                *last = *cell;
        } else {
                if (n_cells < row)
                        r = growing_append(&column->cells, NULL, (row - n_cells) * sizeof(*cell));
                if (r == 0)
                        r = growing_append(&column->cells, cell, sizeof(*cell));
                column->n_put++;
        }
        if (r < 0)
                return r;
        column->n_present += cell->kind != CELL_ABSENT;
        if (column->seen[cell->kind].line == 0) {
                column->seen[cell->kind].line = line;
                column->seen[cell->kind].idx_file = idx_file;
        }
        return 0;
}

int columns_put_part(struct table_columns *columns, struct table_column *column, const void *text, size_t n) {
        growing_clear(&column->part);
        column->part_row = columns->n_rows;
        return n > 0 ? growing_append(&column->part, text, n) : 0;
}

struct table_cell column_cell(const struct table_column *column, uint64_t row) {
        if (row >= column->cells.n_bytes / sizeof(struct table_cell))
                return (struct table_cell){ .kind = CELL_ABSENT };
        return ((const struct table_cell *)(const void *)column->cells.bytes)[row];
}

/* ---- arrays of numbers ----------------------------------------------------------------------------------------- */

void column_note_numbers(struct table_column *column, const struct json_numbers *numbers) {
        struct json_numbers *first = &column->numbers;

        if (numbers->n == 0) {
                column->has_empty = true;
                column->has_empty_rows = column->has_empty_rows || numbers->n_dims > 1;
                return;
        }
        if (first->n == 0) {
                *first = *numbers;
                return;
        }
        if (first->n_dims != numbers->n_dims || (first->kind == JSON_TRUE) != (numbers->kind == JSON_TRUE) ||
            memcmp(first->shape + 1, numbers->shape + 1, sizeof(first->shape) - sizeof(first->shape[0])) != 0)
                column->is_uneven = true;
        if (first->shape[0] != numbers->shape[0])
                column->is_ragged = true;
        if (numbers->kind == JSON_FLOAT)
                first->kind = JSON_FLOAT;
}

/* ---- records that were read elsewhere -------------------------------------------------------------------------- */

void columns_clear(struct table_columns *columns) {
        for (size_t i = 0; i < columns->n_columns; i++) {
                struct table_column *column = columns->columns[i];

                growing_clear(&column->texts);
                growing_clear(&column->part);
                growing_clear(&column->cells);
                memset(column->seen, 0, sizeof(column->seen));
                column->numbers = (struct json_numbers){ 0 };
                column->part_row = column->n_present = column->n_put = 0;
                column->is_left_out = column->is_kept = column->has_empty = column->has_empty_rows = false;
                column->is_ragged = column->is_uneven = false;
        }
        growing_clear(&columns->rows);
        columns->n_rows = columns->n_left_out = 0;
        columns->idx_next = 0;
}

static uint64_t n_cells(const struct table_column *column) {
        return column->cells.n_bytes / sizeof(struct table_cell);
}

bool columns_match(struct table_columns *columns, const struct table_columns *part,
                   struct table_column *ret_matches[TABLE_COLUMNS_MAX]) {
        for (size_t i = 0; i < part->n_columns; i++) {
                const struct table_column *column = part->columns[i];

                ret_matches[i] = NULL;
                if (n_cells(column) == 0 && !column->is_left_out)
                        continue;
                ret_matches[i] = columns_find(columns, column->name, strlen(column->name));
                if (!ret_matches[i] || (column->is_left_out && !ret_matches[i]->is_left_out))
                        return false;
                if (ret_matches[i]->is_left_out)
                        ret_matches[i] = NULL;
        }
        return true;
}

/* The arrays of `from` come after those of the column. If its first one is like the first one here, the others are like
 * the one if they are like the other. */
static void listing_columns_take_numbers(struct table_column *column, const struct table_column *from) {
        if (from->numbers.n > 0)
                column_note_numbers(column, &from->numbers);
        column->has_empty |= from->has_empty;
        column->has_empty_rows |= from->has_empty_rows;
        column->is_ragged |= from->is_ragged;
        column->is_uneven |= from->is_uneven;
}

static int listing_columns_take_column(const struct table_columns *columns, struct table_column *column,
                                       const struct table_column *from, uint64_t line_base, size_t idx_file) {
        int r = growing_append(&column->cells, NULL, (columns->n_rows - n_cells(column)) * sizeof(struct table_cell));

        if (r == 0)
                r = growing_append(&column->cells, from->cells.bytes, from->cells.n_bytes);
        if (r < 0)
                return r;
        column->n_present += from->n_present;
        column->n_put += from->n_put;
        for (enum value_kind kind = CELL_ABSENT; kind < N_CELL_KINDS; kind++)
                if (column->seen[kind].line == 0 && from->seen[kind].line > 0) {
                        column->seen[kind].line = line_base + from->seen[kind].line;
                        column->seen[kind].idx_file = idx_file;
                }
        listing_columns_take_numbers(column, from);
        return 0;
}

int columns_take(struct table_columns *columns, const struct table_columns *part,
                 struct table_column *const matches[TABLE_COLUMNS_MAX], uint64_t line_base, size_t idx_file) {
        int r = growing_append(&columns->rows, part->rows.bytes, part->rows.n_bytes);

        for (size_t i = 0; i < part->n_columns && r == 0; i++)
                if (matches[i])
                        r = listing_columns_take_column(columns, matches[i], part->columns[i], line_base, idx_file);
        columns->n_rows += part->n_rows;
        return r;
}

static void describe_numbers(const struct table_column *column, struct schema_field *field) {
        const struct json_numbers *numbers = &column->numbers;

        field->kind = FIELD_VALUE;
        field->coding = CODING_JSON;
        field->dtype = numbers->kind == JSON_TRUE    ? DLP_DTYPE_BOOL
                       : numbers->kind == JSON_FLOAT ? DLP_DTYPE_FLOAT64
                                                     : DLP_DTYPE_INT64;
        field->n_dims = numbers->n > 0 ? numbers->n_dims : 1;
        for (uint32_t i = 0; i < field->n_dims; i++)
                field->shape[i] = (int64_t)numbers->shape[i];
        if (numbers->n == 0 || column->has_empty || column->is_ragged)
                field->shape[0] = -1;
}

/* ---- what a column is ------------------------------------------------------------------------------------------ */

const char *cell_kind_name(enum value_kind kind) {
        static const char *const NAMES[N_CELL_KINDS] = {
                [CELL_ABSENT] = "null",
                [CELL_BOOLEAN] = "true or false",
                [CELL_INTEGER] = "a number",
                [CELL_NEGATIVE] = "a negative number",
                [CELL_HUGE] = "a number of 2^63 or more",
                [CELL_FLOAT] = "a number",
                [CELL_TEXT] = "a string",
                [CELL_NUMBERS] = "an array",
                [CELL_TEXTS] = "an array",
                [CELL_OTHER] = "an array or object",
        };

        return NAMES[kind];
}

int cell_read_integer(const void *bytes, size_t n_bytes, struct table_cell *cell, struct why *why) {
        uint64_t huge;
        int r = json_integer_read(bytes, n_bytes, &cell->integer, why);

        if (r == 0)
                cell->kind = cell->integer < 0 ? CELL_NEGATIVE : CELL_INTEGER;
        if (r != -ERANGE || json_unsigned_read(bytes, n_bytes, &huge, why) < 0)
                return r;
        cell->integer = (int64_t)huge;
        cell->kind = CELL_HUGE;
        return 0;
}

static void describe_scalar(enum value_kind kind, struct schema_field *field) {
        field->kind = FIELD_VALUE;
        field->is_stored = false;
        field->dtype = kind == CELL_BOOLEAN ? DLP_DTYPE_BOOL
                       : kind == CELL_HUGE  ? DLP_DTYPE_UINT64
                       : kind == CELL_FLOAT ? DLP_DTYPE_FLOAT64
                                            : DLP_DTYPE_INT64;
}

/* The kind that cells of both kinds have in common; CELL_ABSENT: none. */
static enum value_kind join_kinds(enum value_kind one, enum value_kind other, enum columns_syntax syntax) {
        enum value_kind low = one < other ? one : other, high = one < other ? other : one;

        if (low == high || low == CELL_ABSENT)
                return high;
        if (low == CELL_INTEGER && high <= CELL_FLOAT)
                return high;
        if (low == CELL_NEGATIVE && high == CELL_FLOAT)
                return CELL_FLOAT; /* but not a huge one, of which a float has the first digits only */
        if (low >= CELL_NUMBERS)
                return high;                                    /* an empty array is also one of strings */
        return syntax == COLUMNS_CSV ? CELL_TEXT : CELL_ABSENT; /* any cell of a CSV file is a text */
}

int column_describe(const struct table_columns *columns, const struct table_column *column, enum columns_syntax syntax,
                    struct schema_field *ret_field, enum value_kind *ret_one, enum value_kind *ret_other) {
        struct schema_field field = { .is_stored = true, .may_be_absent = column->n_present < columns->n_rows };
        enum value_kind kind = CELL_ABSENT;

        for (enum value_kind other = CELL_BOOLEAN; other < N_CELL_KINDS && !column->is_raw; other++) {
                enum value_kind joined;

                if (column->seen[other].line == 0)
                        continue;
                joined = join_kinds(kind, other, syntax);
                if (joined == CELL_ABSENT) {
                        *ret_one = kind;
                        *ret_other = other;
                        return -EINVAL;
                }
                kind = joined;
        }
        strcpy(field.name, column->name);
        field.kind = FIELD_BYTES;
        if (kind >= CELL_BOOLEAN && kind <= CELL_FLOAT) {
                describe_scalar(kind, &field);
        } else if (syntax == COLUMNS_CSV) {
                field.kind = FIELD_TEXT;
                field.coding = CODING_CSV;
                field.may_be_absent = column->n_put < columns->n_rows; /* an empty cell is an empty text */
        } else if (kind == CELL_TEXT) {
                field.kind = FIELD_TEXT;
                field.coding = CODING_JSON;
        } else if (kind == CELL_TEXTS && column->numbers.n == 0 && !column->has_empty_rows) {
                field.kind = FIELD_TEXTS;
                field.coding = CODING_JSON;
        } else if (kind == CELL_NUMBERS && !column->is_uneven) {
                describe_numbers(column, &field);
        } else {
                field.is_json = true;
        }
        *ret_field = field;
        return 0;
}
