#include "daemon/data/formats/arrow/table/cells.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/files/listed.h"
#include "daemon/data/formats/differing/columns_map.h"
#include "daemon/data/index/indexing.h"

#define VIEW_BYTES    16u
#define VIEW_INLINE   12u   /* bytes that a view holds itself */
#define LEVEL_OFFSETS 1024u /* that are read at once to compare lengths */

#define BITS_BYTES (ARROW_ROWS_MAX / 8 + 2) /* of a chunk, wherever it begins within a byte */

struct cell_reader {
        const struct arrow_rows *rows;
        const struct arrow_field *field;
        const struct arrow_array *array;
        uint32_t idx_field;
        struct why *why;
};

static struct cell_reader cursor_at(const struct arrow_rows *rows, uint32_t idx_field, struct why *why) {
        return (struct cell_reader){
                .rows = rows,
                .field = arrow_schema_field(rows->schema, idx_field),
                .array = arrow_batch_array(rows->batch, idx_field),
                .idx_field = idx_field,
                .why = why,
        };
}

static int cells_damaged(const struct cell_reader *cursor, uint64_t row, const char *what) {
        return why_set(cursor->why, -EBADMSG, "row %" PRIu64 " of the batch: %s; write the file again", row, what);
}

/* Reads from a buffer of the array. What was checked when the batch was read is within it. */
static int read_buffer(const struct cell_reader *cursor, uint32_t idx_buffer, uint64_t offset, size_t n_bytes,
                       void *into) {
        const struct arrow_buffer *buffer = arrow_batch_buffer(cursor->rows->batch, cursor->array, idx_buffer);

        if (offset > buffer->n_bytes || n_bytes > buffer->n_bytes - offset)
                return cells_damaged(cursor, cursor->rows->first, "a buffer is shorter than its elements");
        if (cursor->rows->batch->plain) {
                memcpy(into, cursor->rows->batch->plain + buffer->offset + offset, n_bytes);
                return 0;
        }
        return listed_read(cursor->rows->fd, into, n_bytes, buffer->offset + offset, cursor->why);
}

/* Bits first .. first + n of a buffer, one bool each; n is at most ARROW_ROWS_MAX. */
static int read_bits_at(const struct cell_reader *cursor, uint32_t idx_buffer, uint64_t first, uint64_t n,
                        bool *ret_bits) {
        uint8_t bytes[BITS_BYTES];
        int r = n == 0 ? 0 : read_buffer(cursor, idx_buffer, first / 8, (first % 8 + n + 7) / 8, bytes);

        for (uint64_t i = 0, bit = first % 8; i < n && r == 0; i++, bit++)
                ret_bits[i] = bytes[bit / 8] >> bit % 8 & 1;
        return r;
}

static int read_bits(const struct cell_reader *cursor, uint32_t idx_buffer, bool *ret_bits) {
        return read_bits_at(cursor, idx_buffer, cursor->rows->first, cursor->rows->n, ret_bits);
}

static int validity_of(const struct cell_reader *cursor, bool *ret_is_valid) {
        bool has_nulls = cursor->array->n_nulls > 0;

        if (cursor->field->kind == ARROW_NULL || !has_nulls) {
                memset(ret_is_valid, cursor->field->kind != ARROW_NULL, cursor->rows->n);
                return 0;
        }
        return read_bits(cursor, 0, ret_is_valid);
}

int arrow_validity(const struct arrow_rows *rows, uint32_t idx_field, bool *ret_is_valid, struct why *why) {
        struct cell_reader cursor = cursor_at(rows, idx_field, why);

        return validity_of(&cursor, ret_is_valid);
}

/* ---- what has cells -------------------------------------------------------------------------------------------- */

static bool cells_is_list(const struct arrow_field *field) {
        return field->kind == ARROW_LIST || field->kind == ARROW_LIST_VIEW || field->kind == ARROW_FIXED_LIST;
}

/* Lists of lists of such elements: only the outermost may be a view, whose lists may lie in any sequence. */
static bool is_list_of(const struct arrow_schema *schema, uint32_t idx_field, enum arrow_kind element) {
        if (!cells_is_list(arrow_schema_field(schema, idx_field)))
                return false;
        for (uint32_t level = 1; level <= ARROW_LEVELS_MAX; level++) {
                const struct arrow_field *child = arrow_schema_field(schema, idx_field + level);

                if (child->has_dictionary)
                        return false;
                if (child->kind == element)
                        return true;
                if (child->kind != ARROW_LIST && child->kind != ARROW_FIXED_LIST)
                        return false;
        }
        return false;
}

bool arrow_has_cells(const struct arrow_schema *schema, uint32_t idx_field) {
        const struct arrow_field *field = arrow_schema_field(schema, idx_field);

        switch (field->kind) {
        case ARROW_NULL:
        case ARROW_NUMBER:
        case ARROW_FIXED:
        case ARROW_BYTES:
        case ARROW_BYTES_VIEW:
                return true;
        default:
                return is_list_of(schema, idx_field, ARROW_NUMBER);
        }
}

bool arrow_has_bools(const struct arrow_schema *schema, uint32_t idx_field) {
        return is_list_of(schema, idx_field, ARROW_BOOL);
}

const struct arrow_field *arrow_list_element(const struct arrow_schema *schema, uint32_t idx_field,
                                             uint32_t *ret_n_levels) {
        uint32_t n = 0;

        for (; cells_is_list(arrow_schema_field(schema, idx_field)); n++)
                idx_field++; /* a list has one child, which comes next */
        *ret_n_levels = n;
        return arrow_schema_field(schema, idx_field);
}

/* ---- cells ----------------------------------------------------------------------------------------------------- */

static uint64_t cells_number_at(const uint8_t *bytes, uint64_t i, uint32_t width) {
        switch (width) {
        case 1:
                return bytes[i];
        case 2:
                return le16(bytes + 2 * i);
        case 4:
                return le32(bytes + 4 * i);
        default:
                return le64(bytes + 8 * i);
        }
}

static int64_t signed_at(const uint8_t *bytes, uint64_t i, uint32_t width) {
        uint32_t n_unused = 64 - 8 * width;

        return (int64_t)(cells_number_at(bytes, i, width) << n_unused) >> n_unused;
}

/* Cells that are counted in elements become cells of bytes. What a compressed buffer holds is only known once it is
 * unpacked, so that it is too short for its elements can first be seen here. */
static int count_in_bytes(const struct cell_reader *cursor, const bool *is_valid, struct arrow_cell *cells) {
        const struct arrow_buffer *buffer = arrow_batch_buffer(cursor->rows->batch, cursor->array, 1);
        uint64_t width = cursor->field->width, n_elements = width > 0 ? buffer->n_bytes / width : UINT64_MAX;

        for (uint32_t i = 0; i < cursor->rows->n; i++) {
                if (!is_valid[i])
                        continue;
                if (cells[i].offset > n_elements || cells[i].n_bytes > n_elements - cells[i].offset)
                        return cells_damaged(cursor, cursor->rows->first + i, "a buffer is shorter than its elements");
                cells[i].offset = buffer->offset + cells[i].offset * width;
                cells[i].n_bytes *= width;
        }
        return 0;
}

static int fixed_cells(const struct cell_reader *cursor, const bool *is_valid, struct arrow_cell *cells) {
        for (uint32_t i = 0; i < cursor->rows->n; i++)
                cells[i] = (struct arrow_cell){ cursor->rows->first + i, 1 };
        return count_in_bytes(cursor, is_valid, cells);
}

/* Offsets first .. first + n of an array, n + 1 of them. They may not fall, nor leave what has n_elements. The cells
 * are counted in elements. */
static int read_offsets(const struct cell_reader *cursor, uint64_t first, uint32_t n, uint64_t n_elements,
                        struct arrow_cell *cells) {
        uint32_t width = cursor->field->is_large ? 8 : 4;
        uint8_t bytes[(ARROW_ROWS_MAX + 1) * 8];
        int r = n == 0 ? 0 : read_buffer(cursor, 1, first * width, ((size_t)n + 1) * width, bytes);

        for (uint32_t i = 0; i < n && r == 0; i++) {
                int64_t begin = signed_at(bytes, i, width), end = signed_at(bytes, i + 1, width);

                if (begin < 0 || end < begin)
                        return cells_damaged(cursor, first + i, "its offsets fall");
                if ((uint64_t)end > n_elements)
                        return cells_damaged(cursor, first + i, "its offset lies outside its buffer");
                cells[i] = (struct arrow_cell){ (uint64_t)begin, (uint64_t)(end - begin) };
        }
        return r;
}

static int bytes_cells(const struct cell_reader *cursor, struct arrow_cell *cells) {
        const struct arrow_buffer *data = arrow_batch_buffer(cursor->rows->batch, cursor->array, 2);
        int r = read_offsets(cursor, cursor->rows->first, cursor->rows->n, data->n_bytes, cells);

        for (uint32_t i = 0; i < cursor->rows->n && r == 0; i++)
                cells[i].offset += data->offset;
        return r;
}

/* A short value lies in its view, a long one in one of the buffers after the views. */
static int view_cell(const struct cell_reader *cursor, uint64_t row, const uint8_t *view, struct arrow_cell *ret_cell) {
        const struct arrow_buffer *buffer = arrow_batch_buffer(cursor->rows->batch, cursor->array, 1);
        int64_t n_bytes = signed_at(view, 0, 4), idx_buffer = signed_at(view, 2, 4), offset = signed_at(view, 3, 4);

        if (n_bytes >= 0 && n_bytes <= VIEW_INLINE) {
                *ret_cell = (struct arrow_cell){ buffer->offset + row * VIEW_BYTES + 4, (uint64_t)n_bytes };
                return 0;
        }
        if (n_bytes < 0 || idx_buffer < 0 || idx_buffer >= (int64_t)cursor->array->n_buffers - 2 || offset < 0)
                return cells_damaged(cursor, row, "its view refers to a buffer that is missing");
        buffer = arrow_batch_buffer(cursor->rows->batch, cursor->array, 2 + (uint32_t)idx_buffer);
        if ((uint64_t)offset > buffer->n_bytes || (uint64_t)n_bytes > buffer->n_bytes - (uint64_t)offset)
                return cells_damaged(cursor, row, "its view leaves its buffer");
        *ret_cell = (struct arrow_cell){ buffer->offset + (uint64_t)offset, (uint64_t)n_bytes };
        return 0;
}

static int view_cells(const struct cell_reader *cursor, const bool *is_valid, struct arrow_cell *cells) {
        uint8_t views[256 * VIEW_BYTES];
        uint32_t n = cursor->rows->n, n_here;
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0; i += n_here) {
                n_here = n - i < 256 ? n - i : 256;
                r = read_buffer(cursor, 1, (cursor->rows->first + i) * VIEW_BYTES, n_here * VIEW_BYTES, views);
                for (uint32_t k = 0; k < n_here && r == 0; k++)
                        if (is_valid[i + k]) /* what a null's view says has no meaning */
                                r = view_cell(cursor, cursor->rows->first + i + k, views + k * VIEW_BYTES,
                                              &cells[i + k]);
        }
        return r;
}

/* ---- lists ----------------------------------------------------------------------------------------------------- */

static int list_view_cells(const struct cell_reader *cursor, const bool *is_valid, uint64_t n_elements,
                           struct arrow_cell *cells) {
        uint32_t width = cursor->field->is_large ? 8 : 4, n = cursor->rows->n;
        uint8_t offsets[ARROW_ROWS_MAX * 8], sizes[ARROW_ROWS_MAX * 8];
        int r = read_buffer(cursor, 1, cursor->rows->first * width, (size_t)n * width, offsets);

        if (r == 0)
                r = read_buffer(cursor, 2, cursor->rows->first * width, (size_t)n * width, sizes);
        for (uint32_t i = 0; i < n && r == 0; i++) {
                int64_t offset = signed_at(offsets, i, width), size = signed_at(sizes, i, width);

                if (!is_valid[i])
                        continue;
                if (offset < 0 || size < 0 || (uint64_t)offset > n_elements ||
                    (uint64_t)size > n_elements - (uint64_t)offset)
                        return cells_damaged(cursor, cursor->rows->first + i, "its offset lies outside its buffer");
                cells[i] = (struct arrow_cell){ (uint64_t)offset, (uint64_t)size };
        }
        return r;
}

/* Which elements of its child each list of the rows has. */
static int outer_cells(const struct cell_reader *cursor, const bool *is_valid, struct arrow_cell *cells) {
        uint64_t n_elements = arrow_batch_array(cursor->rows->batch, cursor->idx_field + 1)->n;

        switch (cursor->field->kind) {
        case ARROW_LIST:
                return read_offsets(cursor, cursor->rows->first, cursor->rows->n, n_elements, cells);
        case ARROW_LIST_VIEW:
                return list_view_cells(cursor, is_valid, n_elements, cells);
        default:
                for (uint32_t i = 0; i < cursor->rows->n; i++)
                        cells[i] = (struct arrow_cell){ (cursor->rows->first + i) * cursor->field->width,
                                                        cursor->field->width };
                return 0;
        }
}

static int different_lengths(const struct cell_reader *cursor, uint64_t row, uint64_t n, uint64_t width) {
        return why_set(cursor->why, -ENOTSUP,
                       "row %" PRIu64 " of the batch: holds lists of different lengths (%" PRIu64 " and %" PRIu64
                       "), which are not an array; flatten them",
                       row, width, n);
}

/* One cell of lists -> the same cell, counted in elements of these lists, if they all have the same length. */
static int inner_cell(const struct cell_reader *cursor, uint64_t row, uint64_t *width, struct arrow_cell *cell) {
        uint64_t n_elements = arrow_batch_array(cursor->rows->batch, cursor->idx_field + 1)->n, begin = 0;
        struct arrow_cell lists[LEVEL_OFFSETS];
        uint32_t n_here;
        int r = 0;

        for (uint64_t i = 0; i < cell->n_bytes && r == 0; i += n_here) {
                n_here = cell->n_bytes - i < LEVEL_OFFSETS ? (uint32_t)(cell->n_bytes - i) : LEVEL_OFFSETS;
                r = read_offsets(cursor, cell->offset + i, n_here, n_elements, lists);
                for (uint32_t k = 0; k < n_here && r == 0; k++) {
                        if (*width == COLUMNAR_WIDTH_NONE)
                                *width = lists[k].n_bytes;
                        if (lists[k].n_bytes != *width)
                                return different_lengths(cursor, row, lists[k].n_bytes, *width);
                }
                if (i == 0 && r == 0)
                        begin = lists[0].offset;
        }
        if (r == 0)
                *cell = (struct arrow_cell){ begin, cell->n_bytes > 0 ? cell->n_bytes * *width : 0 };
        return r;
}

/* The same for all cells, through one level of lists. */
static int inner_cells(const struct cell_reader *cursor, const bool *is_valid, uint64_t *width,
                       struct arrow_cell *cells) {
        int r = 0;

        if (cursor->field->kind == ARROW_FIXED_LIST)
                *width = cursor->field->width;
        for (uint32_t i = 0; i < cursor->rows->n && r == 0; i++) {
                if (!is_valid[i])
                        continue;
                if (cursor->field->kind == ARROW_FIXED_LIST) {
                        cells[i].offset *= *width;
                        cells[i].n_bytes *= *width;
                } else {
                        r = inner_cell(cursor, cursor->rows->first + i, width, &cells[i]);
                }
        }
        return r;
}

/* Has one of the elements of these cells no value? Those of rows without a value do not count. */
static int check_elements(const struct cell_reader *cursor, const bool *is_valid, const struct arrow_cell *cells) {
        bool has_value[ARROW_ROWS_MAX];
        int r = 0;

        for (uint32_t i = 0; i < cursor->rows->n && cursor->array->n_nulls > 0; i++) {
                uint64_t n_left = is_valid[i] ? cells[i].n_bytes : 0, n_here;

                for (uint64_t at = cells[i].offset; n_left > 0; at += n_here, n_left -= n_here) {
                        n_here = n_left < ARROW_ROWS_MAX ? n_left : ARROW_ROWS_MAX;
                        r = read_bits_at(cursor, 0, at, n_here, has_value);
                        if (r < 0)
                                return r;
                        if (memchr(has_value, false, n_here))
                                return why_set(cursor->why, -ENOTSUP,
                                               "row %" PRIu64
                                               " of the batch: its list has an element without a value (null); replace "
                                               "it by a number",
                                               cursor->rows->first + i);
                }
        }
        return r;
}

static int list_cells(const struct cell_reader *outer, const bool *is_valid, struct columnar_widths *widths,
                      struct arrow_cell *cells) {
        const struct arrow_rows *rows = outer->rows;
        struct cell_reader inner;
        int r = outer_cells(outer, is_valid, cells);

        for (uint32_t level = 1; r == 0; level++) {
                inner = cursor_at(rows, outer->idx_field + level, outer->why);
                r = check_elements(&inner, is_valid, cells);
                if (r < 0 || !cells_is_list(inner.field))
                        break;
                r = inner_cells(&inner, is_valid, &widths->n[level], cells);
        }
        return r < 0 || inner.field->kind == ARROW_BOOL ? r : count_in_bytes(&inner, is_valid, cells);
}

/* ---- dictionaries ---------------------------------------------------------------------------------------------- */

/* The rows' indices into their dictionary. Rows without a value get 0. */
static int read_indices(const struct cell_reader *cursor, const bool *is_valid,
                        const struct arrow_dictionary **ret_found, uint64_t *ret_indices) {
        const struct arrow_field *field = cursor->field;
        const struct arrow_dictionary *found = arrow_dictionary_find(cursor->rows->dictionaries, field->dictionary);
        uint8_t bytes[ARROW_ROWS_MAX * 8];
        int r = read_buffer(cursor, 1, cursor->rows->first * field->index_width,
                            (size_t)cursor->rows->n * field->index_width, bytes);

        for (uint32_t i = 0; i < cursor->rows->n && r == 0; i++) {
                ret_indices[i] = is_valid[i] ? cells_number_at(bytes, i, field->index_width) : 0;
                if (is_valid[i] && (!found || ret_indices[i] >= found->n))
                        return cells_damaged(cursor, cursor->rows->first + i, "its value is not in its dictionary");
        }
        *ret_found = found;
        return r;
}

static int dictionary_cells(const struct cell_reader *cursor, const bool *is_valid, struct arrow_cell *cells) {
        const struct arrow_dictionary *dictionary;
        uint64_t indices[ARROW_ROWS_MAX];
        int r = read_indices(cursor, is_valid, &dictionary, indices);

        for (uint32_t i = 0; i < cursor->rows->n && r == 0; i++)
                if (is_valid[i])
                        cells[i] = ((const struct arrow_cell *)(const void *)dictionary->cells.bytes)[indices[i]];
        return r;
}

static int dictionary_numbers(const struct cell_reader *cursor, size_t width, uint8_t *numbers, bool *is_valid) {
        const struct arrow_dictionary *dictionary;
        uint64_t indices[ARROW_ROWS_MAX];
        int r = read_indices(cursor, is_valid, &dictionary, indices);

        for (uint32_t i = 0; i < cursor->rows->n && r == 0; i++) {
                is_valid[i] = is_valid[i] && ((const bool *)dictionary->valid.bytes)[indices[i]];
                if (is_valid[i])
                        memcpy(numbers + i * width, dictionary->numbers.bytes + indices[i] * width, width);
        }
        return r;
}

/* ---- what others ask for --------------------------------------------------------------------------------------- */

static int cells_of(const struct cell_reader *cursor, const bool *is_valid, struct columnar_widths *widths,
                    struct arrow_cell *cells) {
        if (arrow_batch_has_indices(cursor->rows->batch, cursor->rows->schema, cursor->idx_field))
                return dictionary_cells(cursor, is_valid, cells);
        switch (cursor->field->kind) {
        case ARROW_NULL:
                return 0;
        case ARROW_BYTES:
                return bytes_cells(cursor, cells);
        case ARROW_BYTES_VIEW:
                return view_cells(cursor, is_valid, cells);
        case ARROW_NUMBER:
        case ARROW_FIXED:
                return fixed_cells(cursor, is_valid, cells);
        default:
                return list_cells(cursor, is_valid, widths, cells);
        }
}

int arrow_cells(const struct arrow_rows *rows, uint32_t idx_field, struct columnar_widths *widths,
                struct arrow_cell *ret_cells, struct why *why) {
        struct cell_reader cursor = cursor_at(rows, idx_field, why);
        bool is_valid[ARROW_ROWS_MAX];
        bool is_plain = rows->batch->plain && !arrow_batch_has_indices(rows->batch, rows->schema, idx_field) &&
                        !arrow_has_bools(rows->schema, idx_field);
        int r = rows->n == 0 ? 0 : validity_of(&cursor, is_valid);

        if (r < 0 || rows->n == 0)
                return r;
        memset(ret_cells, 0, rows->n * sizeof(*ret_cells));
        r = cells_of(&cursor, is_valid, widths, ret_cells);
        for (uint32_t i = 0; i < rows->n && r == 0; i++) {
                if (!is_valid[i])
                        ret_cells[i] = (struct arrow_cell){ .offset = ARROW_CELL_NULL };
                else if (is_plain)
                        ret_cells[i].plain = rows->batch->plain + ret_cells[i].offset;
        }
        return r;
}

int arrow_member_cells(const struct arrow_rows *rows, uint32_t idx_field, struct arrow_cell *ret_cells,
                       struct why *why) {
        struct columnar_widths unused;

        if (idx_field != COLUMN_NONE)
                return arrow_cells(rows, idx_field, &unused, ret_cells, why);
        for (uint32_t i = 0; i < rows->n; i++)
                ret_cells[i] = (struct arrow_cell){ .offset = ARROW_CELL_NULL };
        return 0;
}

int arrow_lists(const struct arrow_rows *rows, uint32_t idx_field, struct arrow_cell *ret_cells, struct why *why) {
        struct cell_reader cursor = cursor_at(rows, idx_field, why);
        bool is_valid[ARROW_ROWS_MAX];
        int r = rows->n == 0 ? 0 : validity_of(&cursor, is_valid);

        if (r < 0 || rows->n == 0)
                return r;
        memset(ret_cells, 0, rows->n * sizeof(*ret_cells));
        r = outer_cells(&cursor, is_valid, ret_cells);
        for (uint32_t i = 0; i < rows->n && r == 0; i++)
                if (!is_valid[i])
                        ret_cells[i] = (struct arrow_cell){ .offset = ARROW_CELL_NULL };
        return r;
}

int arrow_numbers(const struct arrow_rows *rows, uint32_t idx_field, void *ret_numbers, bool *ret_is_valid,
                  struct why *why) {
        struct cell_reader cursor = cursor_at(rows, idx_field, why);
        size_t width = cursor.field->kind == ARROW_BOOL ? 1 : cursor.field->width;
        uint8_t *numbers = ret_numbers;
        int r = rows->n == 0 ? 0 : validity_of(&cursor, ret_is_valid);

        if (r < 0 || rows->n == 0)
                return r;
        memset(numbers, 0, rows->n * width);
        if (arrow_batch_has_indices(rows->batch, rows->schema, idx_field))
                return dictionary_numbers(&cursor, width, numbers, ret_is_valid);
        r = cursor.field->kind == ARROW_BOOL ? read_bits(&cursor, 1, ret_numbers)
                                             : read_buffer(&cursor, 1, rows->first * width, rows->n * width, numbers);
        for (uint32_t i = 0; i < rows->n && r == 0; i++)
                if (!ret_is_valid[i])
                        memset(numbers + i * width, 0, width);
        return r;
}

int arrow_bools(const struct arrow_rows *rows, uint32_t idx_field, const struct arrow_cell *cell, bool *ret_bools,
                struct why *why) {
        uint32_t n_levels;
        struct cell_reader cursor;
        uint64_t n_here;
        int r = 0;

        arrow_list_element(rows->schema, idx_field, &n_levels);
        cursor = cursor_at(rows, idx_field + n_levels, why);
        for (uint64_t i = 0; i < cell->n_bytes && r == 0; i += n_here) {
                n_here = cell->n_bytes - i < ARROW_ROWS_MAX ? cell->n_bytes - i : ARROW_ROWS_MAX;
                r = read_bits_at(&cursor, 1, cell->offset + i, n_here, ret_bools + i);
        }
        return r;
}

int arrow_cell_read(const struct arrow_cell *cell, int fd, void *into) {
        if (!cell->plain)
                return indexing_read_at(fd, into, cell->n_bytes, cell->offset);
        if (cell->n_bytes > 0)
                memcpy(into, cell->plain, cell->n_bytes);
        return 0;
}
