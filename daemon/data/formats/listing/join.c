#include "daemon/data/formats/listing/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/keyed_hash.h"
#include "daemon/data/files/listed.h"
#include "daemon/data/formats/listing/csv/csv_scan.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define FIRST_PLACES 64u /* a power of two */

void join_fini(struct join *join) {
        for (size_t i = 0; i < join->n; i++) {
                growing_fini(&join->tables[i].texts);
                growing_fini(&join->tables[i].cells);
                growing_fini(&join->tables[i].places);
                growing_fini(&join->tables[i].column_names);
                free(join->tables[i].columns);
        }
        join->n = 0;
}

/* ---- the option ------------------------------------------------------------------------------------------------ */

static int join_refuse_option(const char *option, struct why *why) {
        return why_set(why, -EINVAL,
                       "join = \"%s\": files and their columns were expected, as in \"labels.txt(id, class), "
                       "boxes.csv\", %u at most; the files lie in the folder of the dataset",
                       option, JOINS_MAX);
}

/* Takes "FILE" or "FILE(COLUMN, ...)", and the comma after it. */
static bool join_take_table(struct join *join, const char **at) {
        struct joined *table = &join->tables[join->n];
        size_t n, n_file;

        *at += strspn(*at, " \t");
        n = n_file = strcspn(*at, ",(");
        while (n_file > 0 && text_is_blank((*at)[n_file - 1]))
                n_file--;
        if (n_file == 0 || n_file >= JOIN_NAME_MAX)
                return false;
        memcpy(table->file, *at, n_file);
        *at += n;
        if (**at == '(') {
                n = strcspn(*at, ")");
                if ((*at)[n] != ')' || n == 1 || n >= JOIN_COLUMNS_TEXT)
                        return false;
                memcpy(table->names, *at + 1, n - 1);
                *at += n + 1;
                *at += strspn(*at, " \t");
        }
        if (**at != ',' && **at != '\0')
                return false;
        *at += **at == ',';
        return index_is_inner_path(table->file);
}

static int join_read_option(struct join *join, const char *option, struct why *why) {
        for (const char *at = option; *at;) {
                if (join->n == JOINS_MAX || !join_take_table(join, &at))
                        return join_refuse_option(option, why);
                join->n++;
        }
        return 0;
}

/* ---- a table --------------------------------------------------------------------------------------------------- */

static const char *join_text_at(const struct joined *table, const struct growing *offsets, size_t idx) {
        return (const char *)table->texts.bytes + ((const uint64_t *)(const void *)offsets->bytes)[idx];
}

static const char *key_at(const struct joined *table, uint64_t row) {
        return join_text_at(table, &table->cells, row * table->n_columns);
}

/* The place of the row with this key, or the empty one where it belongs. */
static uint64_t *join_place_of(const struct joined *table, const char *key) {
        uint64_t *places = (void *)table->places.bytes;
        size_t mask = table->places.n_bytes / sizeof(*places) - 1, at = keyed_hash(key, strlen(key)) & mask;

        while (places[at] != 0 && strcmp(key_at(table, places[at] - 1), key) != 0)
                at = (at + 1) & mask;
        return &places[at];
}

static int fill_places(struct joined *table, struct why *why) {
        size_t n_places = FIRST_PLACES;

        while (n_places < 2 * table->n_rows)
                n_places *= 2;
        if (growing_append(&table->places, NULL, n_places * sizeof(uint64_t)) < 0)
                return why_set(why, -ENOMEM, "no memory for its keys");
        for (uint64_t row = 0; row < table->n_rows; row++) {
                uint64_t *place = join_place_of(table, key_at(table, row));

                if (*place != 0)
                        return why_set(why, -EINVAL, "two rows have the key \"%s\"", key_at(table, row));
                *place = row + 1;
        }
        return 0;
}

/* Adds the text of a cell, which is a name if `is_name`. */
static int join_add_text(struct joined *table, const uint8_t *cell, size_t n_cell, bool is_name, struct why *why) {
        struct growing *offsets = is_name ? &table->column_names : &table->cells;
        uint64_t at = table->texts.n_bytes;
        size_t n = csv_text(cell, n_cell, NULL);
        uint8_t *text;

        if (growing_append(&table->texts, NULL, n + 1) < 0 || growing_append(offsets, &at, sizeof(at)) < 0)
                return why_set(why, -ENOMEM, "no memory for its cells");
        text = table->texts.bytes + at;
        csv_text(cell, n_cell, text);
        return memchr(text, '\0', n) ? why_set(why, -EBADMSG, "a cell has a NUL in it") : 0;
}

static int join_take_row(struct joined *table, const uint8_t *row, size_t n_row, char delimiter, bool has_names,
                         struct why *why) {
        struct csv_cell cell;
        size_t at = 0, n = 0;

        while (csv_next_cell(row, n_row, delimiter, &at, &cell)) {
                size_t n_cell = cell.n_bytes;
                int r;

                for (; has_names && n_cell > 0 && text_is_blank(row[cell.begin]); n_cell--)
                        cell.begin++;
                while (has_names && n_cell > 0 && text_is_blank(row[cell.begin + n_cell - 1]))
                        n_cell--;
                r = join_add_text(table, row + cell.begin, n_cell, has_names, why);
                if (r < 0)
                        return r;
                n++;
        }
        if (has_names)
                table->n_columns = n;
        else if (n != table->n_columns)
                return why_set(why, -EBADMSG, "there are %zu cells for %zu columns", n, table->n_columns);
        else
                table->n_rows++;
        return 0;
}

static int join_take_rows(struct joined *table, const uint8_t *bytes, size_t n_bytes, char delimiter, uint64_t *line,
                          struct why *why) {
        size_t at = n_bytes >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        int r = 0;

        if (table->names[0])
                r = join_take_row(table, (const uint8_t *)table->names, strlen(table->names), ',', true, why);
        while (r == 0 && at < n_bytes) {
                size_t n_row = 0, n_with_end = 0;
                uint64_t n_lines = 0;

                r = csv_find_row(bytes + at, n_bytes - at, true, delimiter, &n_row, &n_with_end, &n_lines, why);
                if (r == 0 && n_row > 0)
                        r = join_take_row(table, bytes + at, n_row, delimiter, table->n_columns == 0, why);
                at += n_with_end;
                if (r == 0)
                        *line += n_lines;
        }
        return r;
}

static int join_read_file(struct joined *table, char delimiter, int root_fd, const char *root, int64_t *settled_ns,
                          struct why *why) {
        struct stat status;
        _cleanup_(closep) int fd = listed_open(root_fd, root, table->file, settled_ns, &status, why);
        _cleanup_(growing_fini) struct growing text = { 0 };
        uint64_t line = 1;
        struct why detail;
        int r;

        if (fd < 0)
                return fd;
        if ((uint64_t)status.st_size > JOIN_FILE_MAX)
                return why_set(why, -EFBIG, "%s/%s: a joined table has at most %u MiB", root, table->file,
                               JOIN_FILE_MAX >> 20);
        r = growing_reserve(&text, (size_t)status.st_size + 1);
        if (r == 0)
                r = indexing_read_at(fd, text.bytes, (size_t)status.st_size, 0);
        if (r < 0)
                return why_errno(why, r, "%s/%s", root, table->file);
        r = join_take_rows(table, text.bytes, (size_t)status.st_size, delimiter, &line, &detail);
        if (r < 0)
                return why_set(why, r, "%s/%s: line %llu: %s", root, table->file, (unsigned long long)line,
                               detail.text);
        r = fill_places(table, &detail);
        return r < 0 ? why_set(why, r, "%s/%s: %s", root, table->file, detail.text) : 0;
}

int join_open(struct join *join, const char *option, char delimiter, bool is_by_name, int root_fd, const char *root,
              struct why *why) {
        int64_t settled_ns = 0;
        int r = option ? join_read_option(join, option, why) : 0;

        for (size_t i = 0; i < join->n && r == 0; i++) {
                char between = is_by_name ? csv_delimiter_of(join->tables[i].file) : delimiter;

                r = join_read_file(&join->tables[i], between, root_fd, root, &settled_ns, why);
        }
        return r;
}

/* ---- records --------------------------------------------------------------------------------------------------- */

/* A key that is not read would be the same for all records. */
static int join_refuse_key(const struct joined *joined, const struct record_table *table,
                           const struct table_column *key, struct why *why) {
        struct refusal one = { 0 };

        while (refusals_next(table->refusals, &one) && strcmp(one.name, key->name) != 0)
                ;
        return why_set(why, -EINVAL, "the first column of %s is \"%s\", which cannot be served: %s", joined->file,
                       key->name, one.reason);
}

static int bind_one(struct joined *joined, struct record_table *table, struct why *why) {
        joined->columns = calloc(joined->n_columns, sizeof(struct table_column *));
        if (!joined->columns)
                return why_set(why, -ENOMEM, "no memory for its columns");
        for (size_t i = 0; i < joined->n_columns; i++) {
                const char *name = join_text_at(joined, &joined->column_names, i);
                struct table_column *column = columns_find(&table->columns, name, strlen(name));
                int r = 0;

                if (i == 0 && !column)
                        return why_set(why, -EINVAL,
                                       "the first column of %s, \"%s\", is in none of the tables before it",
                                       joined->file, name);
                if (i == 0 && column->is_left_out)
                        return join_refuse_key(joined, table, column, why);
                if (i > 0 && column)
                        return why_set(why, -EINVAL, "%s has a column \"%s\", as a table before it; rename one",
                                       joined->file, name);
                if (i == 0)
                        column->is_part = true; /* so that its text is known */
                else
                        r = table_find_column(table, name, strlen(name), &column, why);
                if (r < 0)
                        return r;
                joined->columns[i] = column;
        }
        return 0;
}

int join_bind(struct join *join, struct record_table *table, struct why *why) {
        int r = 0;

        for (size_t i = 0; i < join->n && r == 0; i++) {
                if (join->tables[i].n_columns < 2)
                        return why_set(why, -EINVAL, "%s has no column but its key", join->tables[i].file);
                r = bind_one(&join->tables[i], table, why);
        }
        return r;
}

static int join_one(const struct joined *joined, struct record_table *table, struct why *why) {
        const struct growing *part = &joined->columns[0]->part;
        bool has_key = joined->columns[0]->part_row == table->columns.n_rows;
        _cleanup_(freep) char *key = has_key ? strndup((const char *)part->bytes, part->n_bytes) : strdup("");
        uint64_t row;

        if (!key)
                return why_set(why, -ENOMEM, "no memory for a key");
        row = *join_place_of(joined, key);
        if (row == 0)
                return why_set(why, -EINVAL, "%s has no row for the %s \"%s\"", joined->file, joined->columns[0]->name,
                               key);
        for (size_t i = 1; i < joined->n_columns; i++) {
                const char *text = join_text_at(joined, &joined->cells, (row - 1) * joined->n_columns + i);
                int r = table_keep_text(table, joined->columns[i], text, strlen(text), why);

                if (r < 0)
                        return r;
        }
        return 0;
}

int join_record(struct join *join, struct record_table *table, struct why *why) {
        int r = 0;

        for (size_t i = 0; i < join->n && r == 0; i++)
                r = join_one(&join->tables[i], table, why);
        return r;
}
