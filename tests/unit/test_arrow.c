/* Arrow files that pyarrow wrote, row by row, and what is refused: damaged metadata, buffers, offsets and lengths.
 * Whole datasets are in test_arrow.py. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/data/formats/arrow/table/ipc_table.h"
#include "daemon/data/formats/differing/columns_map.h"
#include "daemon/data/formats/differing/number_types.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/support/vectors.h"

#define FOLDER "tests/vectors/arrow"

static struct why why;

/* ---- what pyarrow wrote ---------------------------------------------------------------------------------------- */

static int open_vector(const char *name, uint64_t *ret_n_bytes) {
        char path[256];
        struct stat status;
        int fd;

        snprintf(path, sizeof(path), FOLDER "/%s", name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        ck_assert_msg(fd >= 0 && fstat(fd, &status) == 0, "%s", path);
        *ret_n_bytes = (uint64_t)status.st_size;
        return fd;
}

static uint32_t field_of_column(const struct arrow_schema *schema, uint32_t column) {
        uint32_t idx = 0;

        for (; column > 0; column--)
                idx += 1 + arrow_schema_field(schema, idx)->n_below;
        return idx;
}

static uint32_t find_column(const struct arrow_schema *schema, const char *name) {
        for (uint32_t i = 0; i < schema->n_columns; i++) {
                uint32_t idx = field_of_column(schema, i);

                if (strcmp(arrow_schema_text(schema, arrow_schema_field(schema, idx)->name), name) == 0)
                        return idx;
        }
        ck_abort_msg("no column %s", name);
}

static void check_hex(const uint8_t *bytes, uint64_t n, const char *hex, const char *what) {
        char byte[3];

        ck_assert_msg(strlen(hex) == 2 * n, "%s: %llu bytes instead of %zu", what, (unsigned long long)n,
                      strlen(hex) / 2);
        for (uint64_t i = 0; i < n; i++) {
                snprintf(byte, sizeof(byte), "%02x", bytes[i]);
                ck_assert_msg(strncmp(byte, hex + 2 * i, 2) == 0, "%s: byte %llu", what, (unsigned long long)i);
        }
}

static void check_cell(int fd, const struct arrow_cell *cell, const cJSON *row, const char *what) {
        static uint8_t bytes[4096];

        ck_assert_msg(cJSON_IsNull(row) == (cell->offset == ARROW_CELL_NULL), "%s: null or not", what);
        if (cell->offset == ARROW_CELL_NULL)
                return;
        ck_assert_uint_le(cell->n_bytes, sizeof(bytes));
        ck_assert_int_eq(arrow_cell_read(cell, fd, bytes), 0);
        check_hex(bytes, cell->n_bytes, row->valuestring, what);
}

static struct columnar_widths no_widths(void) {
        struct columnar_widths widths;

        for (unsigned i = 0; i < ARROW_LEVELS_MAX; i++)
                widths.n[i] = COLUMNAR_WIDTH_NONE;
        return widths;
}

static void check_bools(const struct arrow_rows *rows, uint32_t idx, const struct arrow_cell *cell, const cJSON *row,
                        const char *what) {
        bool bools[256];

        ck_assert_msg(cJSON_IsNull(row) == (cell->offset == ARROW_CELL_NULL), "%s: null or not", what);
        if (cell->offset == ARROW_CELL_NULL)
                return;
        ck_assert_uint_le(cell->n_bytes, sizeof(bools));
        ck_assert_int_eq(arrow_bools(rows, idx, cell, bools, &why), 0);
        check_hex((const uint8_t *)bools, cell->n_bytes, row->valuestring, what);
}

/* Compares the rows of the current batch, a few at a time. */
static void check_batch(const struct arrow_table *table, int fd, uint32_t idx, const cJSON **row, const char *what) {
        const struct arrow_field *field = arrow_schema_field(arrow_table_schema(table), idx);
        struct columnar_widths widths = no_widths();
        struct arrow_cell cells[ARROW_ROWS_MAX];
        bool is_valid[ARROW_ROWS_MAX], has_bools = arrow_has_bools(arrow_table_schema(table), idx);
        bool has_cells = arrow_has_cells(arrow_table_schema(table), idx) || has_bools;
        uint64_t n = arrow_table_batch(table)->n_rows;
        uint8_t numbers[64];

        for (uint64_t first = 0; first < n; first += 5) {
                struct arrow_rows rows = arrow_table_rows(table, first, n - first < 5 ? (uint32_t)(n - first) : 5);
                uint32_t width = field->kind == ARROW_BOOL ? 1 : field->width;
                bool is_number = field->kind == ARROW_NUMBER || field->kind == ARROW_BOOL;

                if (is_number)
                        ck_assert_msg(arrow_numbers(&rows, idx, numbers, is_valid, &why) == 0, "%s: %s", what,
                                      why.text);
                if (has_cells && !(is_number && field->has_dictionary))
                        ck_assert_msg(arrow_cells(&rows, idx, &widths, cells, &why) == 0, "%s: %s", what, why.text);
                for (uint32_t i = 0; i < rows.n; i++, *row = (*row)->next) {
                        ck_assert_ptr_nonnull(*row);
                        if (is_number)
                                ck_assert_int_eq(is_valid[i], !cJSON_IsNull(*row));
                        if (is_number && is_valid[i])
                                check_hex(numbers + i * width, width, (*row)->valuestring, what);
                        if (has_bools)
                                check_bools(&rows, idx, &cells[i], *row, what);
                        else if (has_cells && !(is_number && field->has_dictionary))
                                check_cell(fd, &cells[i], *row, what);
                }
        }
}

START_TEST(every_row_of_every_type_is_what_pyarrow_reads) {
        struct vectors vectors;
        unsigned n_columns = 0;

        vectors_open(&vectors, _i ? "arrow/compressed.jsonl" : "arrow/values.jsonl");
        for (; vectors_next(&vectors); n_columns++) {
                const char *name = cJSON_GetObjectItem(vectors.line, "file")->valuestring;
                const char *column = cJSON_GetObjectItem(vectors.line, "column")->valuestring;
                const cJSON *row = cJSON_GetObjectItem(vectors.line, "rows")->child;
                _cleanup_(arrow_table_closep) struct arrow_table *table = NULL;
                char what[128];
                uint64_t n_bytes;
                _cleanup_(closep) int fd = open_vector(name, &n_bytes);
                int r;

                if (strchr(column, '.')) /* a member of a struct, whose nulls the format puts in: test_arrow.py */
                        continue;
                snprintf(what, sizeof(what), "%s, %s", name, column);
                ck_assert_msg(arrow_table_open(fd, 0, n_bytes, &table, &why) == 0, "%s: %s", what, why.text);
                while ((r = arrow_table_next(table, &why)) == 0)
                        check_batch(table, fd, find_column(arrow_table_schema(table), column), &row, what);
                ck_assert_msg(r == ARROW_END, "%s: %s", what, why.text);
                ck_assert_msg(!row, "%s: rows are missing", what);
        }
        ck_assert_uint_gt(n_columns, 60);
}
END_TEST

/* ---- damaged files --------------------------------------------------------------------------------------------- */

/* A file in memory, which the test changes. */
static int memory_file(const uint8_t *bytes, size_t n) {
        int fd = memfd_create("arrow", MFD_CLOEXEC);

        ck_assert(fd >= 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
        return fd;
}

static uint8_t *read_vector(const char *name, size_t *ret_n) {
        uint64_t n_bytes;
        _cleanup_(closep) int fd = open_vector(name, &n_bytes);
        uint8_t *bytes = malloc(n_bytes);

        ck_assert_ptr_nonnull(bytes);
        ck_assert_int_eq(disk_read_at(fd, bytes, n_bytes, 0), 0);
        *ret_n = n_bytes;
        return bytes;
}

/* Reads all rows of all columns that can be read. */
static int read_rows(const struct arrow_table *table) {
        static uint8_t numbers[ARROW_ROWS_MAX * 8];
        static struct arrow_cell cells[ARROW_ROWS_MAX];
        static bool is_valid[ARROW_ROWS_MAX];
        const struct arrow_schema *schema = arrow_table_schema(table);
        int r = 0;

        for (uint32_t i = 0; i < schema->n_columns && r == 0; i++) {
                struct columnar_widths widths = no_widths();
                uint32_t idx = field_of_column(schema, i);
                const struct arrow_field *field = arrow_schema_field(schema, idx);
                uint64_t n = arrow_table_batch(table)->n_rows;
                struct arrow_rows rows = arrow_table_rows(table, 0, n < ARROW_ROWS_MAX ? (uint32_t)n : ARROW_ROWS_MAX);

                if (field->kind == ARROW_NUMBER || field->kind == ARROW_BOOL)
                        r = arrow_numbers(&rows, idx, numbers, is_valid, &why);
                else if (arrow_has_cells(schema, idx))
                        r = arrow_cells(&rows, idx, &widths, cells, &why);
        }
        return r;
}

static int read_all(const uint8_t *bytes, size_t n) {
        _cleanup_(arrow_table_closep) struct arrow_table *table = NULL;
        _cleanup_(closep) int fd = memory_file(bytes, n);
        int r;

        why.text[0] = '\0';
        r = arrow_table_open(fd, 0, n, &table, &why);
        while (r == 0 && (r = arrow_table_next(table, &why)) == 0)
                r = read_rows(table);
        ck_assert_msg(r >= 0 || why.text[0], "an error without a sentence");
        return r;
}

START_TEST(a_file_that_is_cut_anywhere_is_refused) {
        static const char *const NAMES[] = { "strings.arrow", "strings-nulls.arrow", "old-file.arrow" };
        size_t n;
        _cleanup_(freep) uint8_t *bytes = read_vector(NAMES[_i], &n);

        ck_assert_int_eq(read_all(bytes, n), ARROW_END);
        for (size_t k = 0; k < n; k += suite_stride()) {
                int r = read_all(bytes, k);

                /* a stream that ends between two messages, without its end mark, is one of an older writer */
                if (r == ARROW_END)
                        ck_assert(NAMES[_i][7] == '.' && k % 8 == 0);
                else
                        ck_assert_msg(r == -EBADMSG, "%s of %zu bytes: %d, %s", NAMES[_i], k, r, why.text);
        }
}
END_TEST

START_TEST(no_changed_byte_leads_out_of_the_file) {
        static const char *const NAMES[] = { "strings-nulls.arrow", "lists.arrow",       "scalars-sliced.arrow",
                                             "delta.arrow",         "strings-lz4.arrow", "lists-zstd.arrow" };
        static const uint8_t VALUES[] = { 0xff, 0x81 };
        size_t n;
        _cleanup_(freep) uint8_t *bytes = read_vector(NAMES[_i], &n);

        for (size_t k = 0; k < n; k += suite_stride()) {
                uint8_t was = bytes[k];

                for (size_t i = 0; i < sizeof(VALUES); i++) {
                        bytes[k] = VALUES[i];
                        read_all(bytes, n);
                }
                bytes[k] = was;
        }
        ck_assert_int_eq(read_all(bytes, n), ARROW_END);
}
END_TEST

/* The plain length of the first compressed buffer of the file. */
static size_t find_length(const uint8_t *bytes, size_t n) {
        static const uint8_t ZSTD_BEGINS[] = { 0x28, 0xb5, 0x2f, 0xfd };

        for (size_t at = 8; at + sizeof(ZSTD_BEGINS) <= n; at++)
                if (memcmp(bytes + at, ZSTD_BEGINS, sizeof(ZSTD_BEGINS)) == 0)
                        return at - 8;
        ck_abort_msg("nothing is compressed");
}

START_TEST(a_compressed_buffer_that_lies_about_its_length_is_refused) {
        static const struct {
                uint64_t n_bytes;
                int error;
                const char *word;
        } rows[] = {
                { 1, -EBADMSG, "has another length" },        { 1 << 20, -EBADMSG, "has another length" },
                { 1ull << 31, -EFBIG, "smaller batches" },    { 1ull << 63, -EFBIG, "smaller batches" },
                { 0, -EBADMSG, "shorter than its elements" },
        };
        size_t n, at;
        _cleanup_(freep) uint8_t *bytes = read_vector("zstd.feather", &n);

        at = find_length(bytes, n);
        ck_assert_int_eq(read_all(bytes, n), ARROW_END);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                memcpy(bytes + at, &rows[i].n_bytes, 8);
                ck_assert_msg(read_all(bytes, n) == rows[i].error, "%zu: %s", i, why.text);
                ck_assert_msg(strstr(why.text, rows[i].word), "%zu: %s", i, why.text);
        }
}
END_TEST

/* Finds the offsets 0, 6, 12 of the column "text" of old.arrow, whose first texts are "row 0 ", "row 1 ä". */
static size_t find_offsets(const uint8_t *bytes, size_t n) {
        static const uint8_t OFFSETS[] = { 0, 0, 0, 0, 6, 0, 0, 0, 14, 0, 0, 0 };

        for (size_t at = 0; at + sizeof(OFFSETS) <= n; at += 4)
                if (memcmp(bytes + at, OFFSETS, sizeof(OFFSETS)) == 0)
                        return at;
        ck_abort_msg("the offsets are not there");
}

START_TEST(offsets_that_fall_or_leave_their_buffer_are_refused) {
        size_t n, at;
        _cleanup_(freep) uint8_t *bytes = read_vector("old.arrow", &n);

        at = find_offsets(bytes, n);
        bytes[at + 4] = 20;
        ck_assert_int_eq(read_all(bytes, n), -EBADMSG);
        ck_assert_msg(strstr(why.text, "row 1 of the batch: its offsets fall"), "%s", why.text);
        bytes[at + 4] = 6;
        bytes[at + 3] = 0x80;
        ck_assert_int_eq(read_all(bytes, n), -EBADMSG);
        bytes[at + 3] = 0;
        ck_assert_int_eq(read_all(bytes, n), ARROW_END);
        bytes[at + 20 * 4 + 2] = 1; /* the last offset, of the batch's 20 rows */
        ck_assert_int_eq(read_all(bytes, n), -EBADMSG);
        ck_assert_msg(strstr(why.text, "row 19 of the batch: its offset lies outside"), "%s", why.text);
}
END_TEST

START_TEST(what_is_not_an_arrow_file_is_refused) {
        static const struct {
                const char *bytes, *word;
        } rows[] = {
                { "", "not an Arrow file" },
                { "PK\3\4 and so on, and so on", "not an Arrow file" },
                { "ARROW1\0\0 and so on, and so on", "is cut" },
                { "FEA1 and so on, and so on", "version 1" },
        };
        static const uint8_t ENDED[16] = { 255, 255, 255, 255 };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                size_t n = i == 2 ? 30 : strlen(rows[i].bytes);

                ck_assert_int_lt(read_all((const uint8_t *)rows[i].bytes, n), 0);
                ck_assert_msg(strstr(why.text, rows[i].word), "%s", why.text);
        }
        ck_assert_int_eq(read_all(ENDED, sizeof(ENDED)), -EBADMSG);
}
END_TEST

START_TEST(two_streams_in_one_file_are_refused) {
        size_t n;
        _cleanup_(freep) uint8_t *bytes = read_vector("scalars.arrow", &n);
        _cleanup_(freep) uint8_t *twice = malloc(2 * n);

        ck_assert_ptr_nonnull(twice);
        memcpy(twice, bytes, n);
        memcpy(twice + n, bytes, n);
        ck_assert_int_eq(read_all(twice, 2 * n), -EBADMSG);
        ck_assert_msg(strstr(why.text, "continues after its end"), "%s", why.text);
}
END_TEST

static struct arrow_table *open_table(const char *name, int *ret_fd) {
        struct arrow_table *table = NULL;
        uint64_t n_bytes;

        *ret_fd = open_vector(name, &n_bytes);
        ck_assert_msg(arrow_table_open(*ret_fd, 0, n_bytes, &table, &why) == 0, "%s", why.text);
        return table;
}

START_TEST(columns_are_found_by_their_names_in_files_that_differ) {
        static const struct {
                const char *one, *other, *column;
                uint32_t place; /* COLUMN_NONE, COLUMN_OTHER, or 0: it is found */
        } rows[] = {
                { "arrow/0.arrow", "arrow/0.arrow", "word", 0 },
                { "arrow/0.arrow", "arrow/1.arrow", "word", 0 },
                { "arrow/0.arrow", "arrow/1.arrow", "number", 0 },
                { "arrow/0.arrow", "arrow/1.arrow", "list", 0 },
                { "arrow/0.arrow", "arrow/1.arrow", "both", 0 },
                { "arrow/0.arrow", "arrow/1.arrow", "only_first", COLUMN_NONE },
                { "arrow/0.arrow", "arrow/1.arrow", "clash", COLUMN_OTHER },
                { "arrow/0.arrow", "arrow/1.arrow", "when", COLUMN_OTHER },
                { "arrow/0.arrow", "arrow/1.arrow", "nothing", COLUMN_OTHER },
                { "arrow/0.arrow", "arrow/2.arrow", "number", COLUMN_NONE },
                { "arrow/0.arrow", "arrow/3.arrow", "word", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char one_name[64], other_name[64];
                _cleanup_(closep) int one_fd = -1, other_fd = -1;
                _cleanup_(arrow_table_closep) struct arrow_table *one = NULL;
                _cleanup_(arrow_table_closep) struct arrow_table *other = NULL;
                uint32_t map[ARROW_FIELDS_MAX], idx;

                snprintf(one_name, sizeof(one_name), "../differing/%s", rows[i].one);
                snprintf(other_name, sizeof(other_name), "../differing/%s", rows[i].other);
                one = open_table(one_name, &one_fd);
                other = open_table(other_name, &other_fd);
                ck_assert(columns_map(&ARROW_COLUMNS, arrow_schema_range(arrow_table_schema(one)),
                                      arrow_schema_range(arrow_table_schema(other)), map));
                idx = find_column(arrow_table_schema(one), rows[i].column);
                if (rows[i].place == 0)
                        ck_assert_uint_eq(map[idx], find_column(arrow_table_schema(other), rows[i].column));
                else
                        ck_assert_msg(map[idx] == rows[i].place, "%s in %s", rows[i].column, rows[i].other);
        }
}
END_TEST

START_TEST(a_column_without_a_type_gets_that_of_another_file) {
        _cleanup_(closep) int one_fd = -1, other_fd = -1;
        _cleanup_(arrow_table_closep) struct arrow_table *one = open_table("../differing/arrow/0.arrow", &one_fd);
        _cleanup_(arrow_table_closep) struct arrow_table *other = open_table("../differing/arrow/1.arrow", &other_fd);
        struct arrow_schema schema = { 0 };
        uint32_t map[ARROW_FIELDS_MAX], idx;

        ck_assert_int_eq(arrow_schema_complete(&schema, arrow_table_schema(one), &why), 0);
        ck_assert_uint_eq(schema.n_fields, arrow_table_schema(one)->n_fields);
        ck_assert(columns_have_null(&ARROW_COLUMNS, arrow_schema_range(&schema)));
        ck_assert_int_eq(arrow_schema_complete(&schema, arrow_table_schema(other), &why), 0);
        ck_assert_uint_eq(schema.n_columns, arrow_table_schema(one)->n_columns);
        ck_assert(columns_have_null(&ARROW_COLUMNS, arrow_schema_range(&schema))); /* "never" */
        idx = find_column(&schema, "both");
        ck_assert_uint_eq(arrow_schema_field(&schema, idx)->n_below, 2);
        ck_assert_str_eq(arrow_schema_field(&schema, idx + 2)->type, "string"); /* both.y */
        ck_assert_str_eq(arrow_schema_field(&schema, find_column(&schema, "nothing"))->type, "large_string");
        ck_assert(columns_map(&ARROW_COLUMNS, arrow_schema_range(&schema), arrow_schema_range(arrow_table_schema(one)),
                              map));
        ck_assert_uint_eq(map[idx + 2], COLUMN_NONE);
        arrow_schema_fini(&schema);
}
END_TEST

START_TEST(the_type_of_several_types_of_numbers_has_all_of_them_whatever_the_sequence) {
        static const uint32_t TYPES[] = { DLP_DTYPE_INT8,    DLP_DTYPE_INT16,   DLP_DTYPE_INT32,  DLP_DTYPE_INT64,
                                          DLP_DTYPE_UINT8,   DLP_DTYPE_UINT16,  DLP_DTYPE_UINT32, DLP_DTYPE_UINT64,
                                          DLP_DTYPE_FLOAT16, DLP_DTYPE_FLOAT32, DLP_DTYPE_FLOAT64 };
        static const uint16_t HALF = 0x4500; /* 5 */
        const size_t n = ARRAY_SIZE(TYPES);

        for (size_t i = 0; i < n * n * n; i++) {
                uint32_t a = TYPES[i % n], b = TYPES[i / n % n], c = TYPES[i / n / n];
                uint32_t ab = number_types_join(a, b), bc = number_types_join(b, c);
                uint64_t five = 0, back = 0;
                const float single = 5;
                const double wide = 5;

                ck_assert_uint_eq(ab, number_types_join(b, a));
                ck_assert_uint_eq(number_types_join(ab, c), number_types_join(a, bc));
                memcpy(&five, &(uint64_t){ 5 }, sizeof(five));
                if (a == DLP_DTYPE_FLOAT16)
                        memcpy(&five, &HALF, sizeof(HALF));
                else if (a == DLP_DTYPE_FLOAT32)
                        memcpy(&five, &single, sizeof(single));
                else if (a == DLP_DTYPE_FLOAT64)
                        memcpy(&five, &wide, sizeof(wide));
                ck_assert(number_convert(a, &five, ab, &back));
                if (ab == DLP_DTYPE_FLOAT64)
                        ck_assert(memcmp(&back, &wide, sizeof(wide)) == 0);
        }
        ck_assert_uint_eq(number_types_join(DLP_DTYPE_BOOL, DLP_DTYPE_INT8), NUMBER_TYPE_NONE);
        ck_assert(!number_convert(DLP_DTYPE_INT64, &(int64_t){ (1ll << 60) + 1 }, DLP_DTYPE_FLOAT64, &(double){ 0 }));
        ck_assert(!number_convert(DLP_DTYPE_UINT64, &(uint64_t){ UINT64_MAX }, DLP_DTYPE_INT64, &(int64_t){ 0 }));
        ck_assert(number_convert(DLP_DTYPE_INT8, &(int8_t){ -7 }, DLP_DTYPE_INT64, &(int64_t){ 0 }));
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "arrow", every_row_of_every_type_is_what_pyarrow_reads, 2 },
                { "arrow", a_file_that_is_cut_anywhere_is_refused, 3 },
                { "arrow", no_changed_byte_leads_out_of_the_file, 6 },
                { "arrow", a_compressed_buffer_that_lies_about_its_length_is_refused },
                { "arrow", offsets_that_fall_or_leave_their_buffer_are_refused },
                { "arrow", what_is_not_an_arrow_file_is_refused },
                { "arrow", two_streams_in_one_file_are_refused },
                { "differing", columns_are_found_by_their_names_in_files_that_differ },
                { "differing", a_column_without_a_type_gets_that_of_another_file },
                { "differing", the_type_of_several_types_of_numbers_has_all_of_them_whatever_the_sequence },
        };

        return suite_run("arrow", rows, ARRAY_SIZE(rows));
}
