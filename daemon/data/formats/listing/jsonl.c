#include "daemon/data/format.h"

/* jsonl: JSON Lines, an object in each line. The members of the objects are the columns.
 *
 * A member that is a number, true or false in all lines is known without reading. Strings, arrays and objects lie in
 * the file as they are, and the index only says where. Blank lines are not samples. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/listing/table.h"
#include "proto/base/cleanup.h"

struct json_line {
        struct record_table *table;
        const uint8_t *bytes;
        size_t n_bytes;
        struct why why; /* what is wrong in this line */
};

/* Unescapes a string that was scanned into memory of its own (free). */
static int unescape(const struct json_token *token, char **ret_text, size_t *ret_n, struct why *why) {
        _cleanup_(freep) char *text = malloc(token->n_bytes);
        int r = text ? json_string_read(token->bytes, token->n_bytes, (uint8_t *)text, ret_n, why) : -ENOMEM;

        if (r == -ENOMEM)
                return why_set(why, r, "no memory for a string of %zu bytes", token->n_bytes);
        if (r == 0)
                *ret_text = TAKE_PTR(text);
        return r;
}

/* The column of a member, by its name in quotes. */
static int find_column(struct json_line *line, struct json_token *name, struct table_column **ret_column) {
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        int r;

        if (!name->has_escapes)
                return table_find_column(line->table, (const char *)name->bytes + 1, name->n_bytes - 2, ret_column,
                                         &line->why);
        r = unescape(name, &text, &n, &line->why);
        return r < 0 ? r : table_find_column(line->table, text, n, ret_column, &line->why);
}

static int take_string(struct json_line *line, struct table_column *column, const struct json_token *token,
                       struct table_cell *cell) {
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        int r = 0;

        cell->kind = CELL_TEXT;
        if (!column->is_path)
                return 0;
        r = unescape(token, &text, &n, &line->why);
        return r < 0 ? r : table_note_path(line->table, column, text, n, cell, &line->why);
}

static int take_array(struct json_line *line, struct table_column *column, const struct json_token *token,
                      struct table_cell *cell) {
        struct json_numbers numbers;
        int r = json_numbers_measure(token->bytes, token->n_bytes, &numbers, &line->why);

        if (r == -ERANGE)
                return r;
        cell->kind = r < 0 ? CELL_OTHER : CELL_NUMBERS;
        if (r == 0)
                column_note_numbers(column, &numbers);
        return 0;
}

static int take_value(struct json_line *line, struct table_column *column, const struct json_token *token,
                      struct table_cell *cell) {
        if (column->is_raw) {
                cell->kind = CELL_OTHER;
                return 0;
        }
        switch (token->kind) {
        case JSON_NULL:
                cell->kind = CELL_ABSENT;
                return 0;
        case JSON_TRUE:
        case JSON_FALSE:
                cell->kind = CELL_BOOLEAN;
                cell->integer = token->kind == JSON_TRUE;
                return 0;
        case JSON_INTEGER:
                cell->kind = CELL_INTEGER;
                return json_integer_read(token->bytes, token->n_bytes, &cell->integer, &line->why);
        case JSON_FLOAT:
                cell->kind = CELL_FLOAT;
                return json_float_read(token->bytes, token->n_bytes, &cell->number, &line->why);
        case JSON_STRING:
                return take_string(line, column, token, cell);
        case JSON_ARRAY:
                return take_array(line, column, token, cell);
        default:
                cell->kind = CELL_OTHER;
                return 0;
        }
}

static int take_member(struct json_line *line, struct json_token *name, const struct json_token *token) {
        struct text_listing *listing = &line->table->listing;
        struct table_cell cell = { .begin = (uint32_t)(token->bytes - line->bytes),
                                   .n_bytes = (uint32_t)token->n_bytes & 0xfffffffu };
        struct table_column *column = NULL;
        int r = find_column(line, name, &column);

        if (r == 0)
                r = take_value(line, column, token, &cell);
        if (r < 0) {
                struct why detail = line->why;

                return column ? why_set(&line->why, r, "\"%s\": %.300s%s", column->name, detail.text,
                                        r == -ERANGE ? "; write it as a string, or take it as it is written with the "
                                                       "option raw"
                                                     : "")
                              : r;
        }
        r = columns_put(&line->table->columns, column, &cell, listing->window.n_lines, listing_n_files(listing) - 1);
        return r < 0 ? why_set(&line->why, r, "no memory for its values") : 0;
}

static int take_object(struct json_line *line) {
        struct json_scan scan;
        struct json_token name, value;
        int r;

        json_scan_init(&scan, line->bytes, line->n_bytes);
        r = json_next(&scan, &name, &line->why);
        if (r == 0 && name.kind != JSON_OBJECT)
                return why_set(&line->why, -EBADMSG, "\"%.*s\" where an object {...} was expected; each line is one",
                               line->n_bytes > 20 ? 20 : (int)line->n_bytes, (const char *)line->bytes);
        while (r == 0) {
                r = json_next(&scan, &name, &line->why);
                if (r < 0 || name.kind == JSON_OBJECT_END)
                        break;
                r = json_value(&scan, &value, &line->why);
                if (r == 0)
                        r = take_member(line, &name, &value);
        }
        return r < 0 ? r : json_next(&scan, &name, &line->why);
}

static bool is_blank(const uint8_t *bytes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r')
                        return false;
        return true;
}

static int read_lines(struct text_listing *listing, void *userdata) {
        struct json_line line = { .table = userdata };
        int r = 0;

        while (r == 0) {
                uint64_t offset = 0;

                r = text_window_line(&listing->window, &line.bytes, &line.n_bytes, &offset, &line.why);
                if (r < 0)
                        return listing_refuse(listing, 0, r, &line.why);
                if (r == TEXT_WINDOW_END)
                        return 0;
                if (is_blank(line.bytes, line.n_bytes))
                        continue;
                if (columns_begin_row(&line.table->columns, offset) < 0)
                        return listing_no_memory(listing, -ENOMEM);
                listing->n_samples++;
                r = take_object(&line);
                if (r < 0)
                        return listing_refuse(listing, listing->window.n_lines, r, &line.why);
                r = listing_look_up(listing);
        }
        return r;
}

static bool is_jsonl(const char *name) {
        return listing_has_ending(name, ".jsonl") || listing_has_ending(name, ".ndjson");
}

static bool is_json(const char *name) {
        return listing_has_ending(name, ".json");
}

static int jsonl_build(int root_fd, const struct files *files, const struct format_options *options,
                       const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(table_fini) struct record_table table = {
                .listing = { .root_fd = root_fd, .files = files, .watch = watch, .why = why, .format = "jsonl" },
                .syntax = COLUMNS_JSON,
        };
        int r = table_init(&table, format_option(options, "files"), format_option(options, "raw"));

        if (r == 0)
                r = listing_walk(&table.listing, is_jsonl, is_json, read_lines, &table);
        return r < 0 ? r : table_make_index(&table, ret_builder);
}

static const char *const OPTIONS[] = { "files", "raw", NULL };

const struct format FORMAT_JSONL = {
        .name = "jsonl",
        .takes_files = true,
        .options = OPTIONS,
        .build = jsonl_build,
};
