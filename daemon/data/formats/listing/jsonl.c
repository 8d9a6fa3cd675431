#include "daemon/data/format.h"

/* jsonl: JSON Lines, an object in each line; or one array of objects. The members of the objects are the columns.
 *
 * A member that is a number, true or false in all lines is known without reading. Strings, arrays and objects lie in
 * the file as they are, and the index only says where. Blank lines are not samples. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json/json_texts.h"
#include "daemon/data/formats/listing/lines_cut.h"
#include "daemon/data/formats/listing/parts.h"
#include "daemon/data/formats/listing/table_part.h"
#include "daemon/data/formats/webdataset/shard_list.h"
#include "proto/base/cleanup.h"

struct json_line {
        struct record_table *table;
        const uint8_t *bytes;
        size_t n_bytes;
        struct why why; /* what is wrong in this line */
};

/* Unescapes a string that was scanned. Its memory is kept for the next one. */
static int jsonl_unescape(struct json_line *line, const struct json_token *token) {
        struct growing *text = &line->table->text;

        if (growing_reserve(text, token->n_bytes) < 0)
                return why_set(&line->why, -ENOMEM, "no memory for a string of %zu bytes", token->n_bytes);
        return json_string_read(token->bytes, token->n_bytes, text->bytes, &text->n_bytes, &line->why);
}

/* The column of a member, by its name in quotes. */
static int jsonl_find_column(struct json_line *line, struct json_token *name, struct table_column **ret_column) {
        const struct growing *text = &line->table->text;
        int r;

        if (!name->has_escapes)
                return table_find_column(line->table, (const char *)name->bytes + 1, name->n_bytes - 2, ret_column,
                                         &line->why);
        r = jsonl_unescape(line, name);
        return r < 0 ? r
                     : table_find_column(line->table, (const char *)text->bytes, text->n_bytes, ret_column, &line->why);
}

static int jsonl_take_string(struct json_line *line, struct table_column *column, const struct json_token *token,
                             struct table_cell *cell) {
        const struct growing *text = &line->table->text;
        int r;

        cell->kind = CELL_TEXT;
        if (!column->is_path && !column->is_part && !column->is_label)
                return 0;
        r = jsonl_unescape(line, token);
        return r < 0 ? r : table_note_text(line->table, column, (const char *)text->bytes, text->n_bytes, &line->why);
}

static int jsonl_take_array(struct json_line *line, struct table_column *column, const struct json_token *token,
                            struct table_cell *cell) {
        struct json_numbers numbers;
        uint64_t n, n_text_bytes;
        int r = json_numbers_measure(token->bytes, token->n_bytes, &numbers, NULL); /* most arrays of text end here */

        if (r == -ERANGE)
                return json_numbers_measure(token->bytes, token->n_bytes, &numbers, &line->why);
        cell->kind = CELL_NUMBERS;
        if (r == 0) {
                column_note_numbers(column, &numbers);
                return 0;
        }
        r = json_texts_measure(token->bytes, token->n_bytes, &n, &n_text_bytes, NULL);
        /* A string without UTF-8 is a damaged sample. */
        cell->kind = r == 0 || r == -EILSEQ ? CELL_TEXTS : CELL_OTHER;
        return 0;
}

static int jsonl_take_value(struct json_line *line, struct table_column *column, const struct json_token *token,
                            struct table_cell *cell) {
        if (column->is_raw) {
                cell->kind = CELL_OTHER;
                return 0;
        }
        switch (token->kind) {
        case JSON_NULL:
                cell->kind = CELL_ABSENT;
                return table_forget_text(line->table, column, &line->why);
        case JSON_TRUE:
        case JSON_FALSE:
                cell->kind = CELL_BOOLEAN;
                cell->integer = token->kind == JSON_TRUE;
                return 0;
        case JSON_INTEGER:
                return cell_read_integer(token->bytes, token->n_bytes, cell, &line->why);
        case JSON_FLOAT:
                cell->kind = CELL_FLOAT;
                return json_float_read(token->bytes, token->n_bytes, &cell->number, &line->why);
        case JSON_STRING:
                return jsonl_take_string(line, column, token, cell);
        case JSON_ARRAY:
                return jsonl_take_array(line, column, token, cell);
        default:
                cell->kind = CELL_OTHER;
                return 0;
        }
}

static int jsonl_refuse_number(struct json_line *line, const struct table_column *column,
                               const struct json_token *token) {
        const struct why detail = line->why;
        const char *instead = token->kind == JSON_INTEGER ? "write it as a string"
                              : token->kind == JSON_FLOAT ? "write null where a value is missing"
                                                          : "correct it";

        return why_set(&line->why, -ERANGE, "\"%s\": %s; %s, or take it as it is written with raw = \"%s\"",
                       column->name, detail.text, instead, column->name);
}

static int jsonl_take_member(struct json_line *line, struct json_token *name, const struct json_token *token) {
        struct text_listing *listing = &line->table->listing;
        struct table_cell cell = { .begin = (uint32_t)(token->bytes - line->bytes),
                                   .n_bytes = (uint32_t)token->n_bytes & 0xfffffffu };
        struct table_column *column = NULL;
        int r = jsonl_find_column(line, name, &column);

        if (r == 0 && column->is_left_out)
                return 0;
        if (r == 0)
                r = jsonl_take_value(line, column, token, &cell);
        if (r == 0 && column->is_part && cell.kind >= CELL_INTEGER && cell.kind <= CELL_FLOAT)
                r = table_note_number(line->table, column, token->bytes, token->n_bytes, &line->why);
        if (r == -ERANGE && column)
                return table_leave_out(line->table, column, jsonl_refuse_number(line, column, token), &line->why);
        if (r < 0) {
                struct why detail = line->why;

                if (column)
                        why_set(&line->why, r, "\"%s\": %s", column->name, detail.text);
                return column ? table_leave_out(line->table, column, r, &line->why) : r;
        }
        r = columns_put(&line->table->columns, column, &cell, listing->window.n_lines, listing_n_files(listing) - 1);
        return r < 0 ? why_set(&line->why, r, "no memory for its values") : 0;
}

static int jsonl_take_object(struct json_line *line) {
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
                        r = jsonl_take_member(line, &name, &value);
        }
        return r < 0 ? r : json_next(&scan, &name, &line->why);
}

static bool jsonl_is_blank(const uint8_t *bytes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r')
                        return false;
        return true;
}

/* ---- objects, one a line --------------------------------------------------------------------------------------- */

/* The object in line->bytes, which begin at `offset` of the file, is the next sample. */
static int jsonl_take_sample(struct json_line *line, uint64_t offset) {
        struct text_listing *listing = &line->table->listing;
        int r;

        if (columns_begin_row(&line->table->columns, offset) < 0)
                return index_builder_refused(-ENOMEM, listing->files->root, listing->why);
        listing->n_samples++;
        r = jsonl_take_object(line);
        if (r == 0)
                r = table_end_record(line->table, &line->why);
        return r < 0 ? listing_refuse(listing, listing->window.n_lines, r, &line->why) : listing_look_up(listing, 0);
}

static int jsonl_read_lines(struct json_line *line) {
        struct text_listing *listing = &line->table->listing;
        int r = 0;

        while (r == 0) {
                uint64_t offset = 0;

                r = text_window_line(&listing->window, &line->bytes, &line->n_bytes, &offset, &line->why);
                if (r < 0)
                        return listing_refuse(listing, 0, r, &line->why);
                if (r == TEXT_WINDOW_END)
                        return 0;
                if (!jsonl_is_blank(line->bytes, line->n_bytes))
                        r = jsonl_take_sample(line, offset);
        }
        return r;
}

/* ---- objects in one array -------------------------------------------------------------------------------------- */

#define NO_BYTE 256 /* not 0: a file may have such a byte */

/* The next byte that is not blank, which stays; NO_BYTE at the end of the file. Counts lines. Returns it or an errno.
 */
static int jsonl_next_byte(struct json_line *line) {
        struct text_window *window = &line->table->listing.window;

        for (;;) {
                int r;

                for (; window->at < window->n_bytes; window->at++) {
                        uint8_t byte = window->bytes[window->at];

                        if (byte != ' ' && byte != '\t' && byte != '\r' && byte != '\n')
                                return byte;
                        window->n_lines += byte == '\n';
                }
                if (window->is_last)
                        return NO_BYTE;
                r = text_window_read_on(window, &line->why);
                if (r < 0)
                        return r;
        }
}

/* Reads on until the window has the whole value that begins at its `at`, and says how long it is. */
static int measure_value(struct json_line *line, size_t *ret_n) {
        struct text_window *window = &line->table->listing.window;

        for (;;) {
                struct json_scan scan = { .bytes = NULL };
                struct json_token token;
                int r;

                json_scan_feed(&scan, window->bytes + window->at, window->n_bytes - window->at, window->is_last);
                r = json_next(&scan, &token, &line->why);
                if (r == 0)
                        r = json_skip(&scan, 0, &line->why);
                if (r == 0)
                        *ret_n = scan.at;
                if (r != JSON_MORE)
                        return r;
                r = text_window_read_on(window, &line->why);
                if (r < 0)
                        return r;
        }
}

static int jsonl_take_element(struct json_line *line) {
        struct text_listing *listing = &line->table->listing;
        struct text_window *window = &listing->window;
        int r = measure_value(line, &line->n_bytes);

        if (r < 0)
                return listing_refuse(listing, window->n_lines, r, &line->why);
        line->bytes = window->bytes + window->at;
        r = jsonl_take_sample(line, window->offset + window->at);
        for (size_t i = 0; i < line->n_bytes; i++)
                window->n_lines += line->bytes[i] == '\n';
        window->at += line->n_bytes;
        return r;
}

static int refuse_array(struct json_line *line, int found, const char *expected) {
        struct text_listing *listing = &line->table->listing;

        if (found < 0)
                return listing_refuse(listing, 0, found, &line->why);
        if (found == NO_BYTE)
                why_set(&line->why, 0, "the file ends where %s was expected", expected);
        else if (found < ' ' || found > '~')
                why_set(&line->why, 0, "byte 0x%02x where %s was expected", (unsigned)found, expected);
        else
                why_set(&line->why, 0, "\"%c\" where %s was expected", found, expected);
        return listing_refuse(listing, listing->window.n_lines, -EBADMSG, &line->why);
}

/* [{...}, {...}]: what many programs write as .json. */
static int jsonl_read_array(struct json_line *line) {
        struct text_window *window = &line->table->listing.window;
        int byte;

        window->at++;
        byte = jsonl_next_byte(line);
        while (byte != ']') {
                int r;

                if (byte < 0 || byte == NO_BYTE)
                        return refuse_array(line, byte, "an object {...} or \"]\"");
                r = jsonl_take_element(line);
                if (r < 0)
                        return r;
                byte = jsonl_next_byte(line);
                if (byte != ',' && byte != ']')
                        return refuse_array(line, byte, "\",\" or \"]\" after an object");
                if (byte == ',') {
                        window->at++;
                        byte = jsonl_next_byte(line);
                        if (byte == ']')
                                return refuse_array(line, byte, "an object {...}");
                }
        }
        window->at++;
        byte = jsonl_next_byte(line);
        return byte == NO_BYTE ? 0 : refuse_array(line, byte, "the end of the file");
}

static int read_objects(struct text_listing *listing, void *userdata) {
        struct json_line line = { .table = userdata };
        int byte;

        if (listing->is_inside)
                return jsonl_read_lines(&line);
        byte = jsonl_next_byte(&line);
        if (byte < 0)
                return listing_refuse(listing, 0, byte, &line.why);
        if (byte != '[')
                return jsonl_read_lines(&line);
        listing->window.n_lines++; /* from 1, as they are shown */
        return jsonl_read_array(&line);
}

/* ---- in parts -------------------------------------------------------------------------------------------------- */

static struct text_listing *jsonl_make_part(const void *userdata) {
        struct record_table *part = calloc(1, sizeof(*part));

        if (!part || table_part_init(part, userdata) == 0)
                return part ? &part->listing : NULL;
        table_fini(part);
        free(part);
        return NULL;
}

static void jsonl_free_part(struct text_listing *part) {
        table_fini((struct record_table *)(void *)part);
        free(part);
}

static void jsonl_clear_part(struct text_listing *part) {
        table_part_clear((struct record_table *)(void *)part);
}

static int jsonl_take_part(void *userdata, struct text_listing *part, uint64_t line_base) {
        return table_part_take(userdata, (const struct record_table *)(const void *)part, line_base);
}

static const struct listing_parts PARTS = {
        .make = jsonl_make_part,
        .free = jsonl_free_part,
        .clear = jsonl_clear_part,
        .read = read_objects,
        .take = jsonl_take_part,
};

/* ---- the format ------------------------------------------------------------------------------------------------ */

static bool is_jsonl(const char *name) {
        return listing_has_ending(name, ".jsonl") || listing_has_ending(name, ".ndjson");
}

/* Not what the hub has beside its folders. */
static bool is_json(const char *name) {
        return listing_has_ending(name, ".json") && strcmp(name, "dataset_infos.json") != 0 &&
               strcmp(name, "dataset_info.json") != 0;
}

static bool is_jsonl_or_json(const char *name) {
        return is_jsonl(name) || listing_has_ending(name, ".json");
}

static const struct shards_kind SHARDS = {
        .what = "jsonl file",
        .pattern = "*.jsonl",
        .path = "a file, a folder of files, or a pattern such as DIR/x-{000..127}.jsonl",
        .is_taken = is_jsonl,
        .is_else_taken = is_json
};

static size_t jsonl_skip_blanks(const uint8_t *bytes, size_t at, size_t n_bytes) {
        while (at < n_bytes && bytes[at] && strchr(" \t\r\n", bytes[at]))
                at++;
        return at;
}

/* Is the first line an object, as far as it is there, or is there an array of objects? */
static bool begins_with_object(const uint8_t *bytes, size_t n_bytes) {
        size_t at = jsonl_skip_blanks(bytes, n_bytes >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0, n_bytes);
        struct json_scan scan = { .bytes = NULL };
        struct json_token token;
        const uint8_t *end;
        int r;

        if (at < n_bytes && bytes[at] == '[') {
                at = jsonl_skip_blanks(bytes, at + 1, n_bytes);
                return at < n_bytes && bytes[at] == '{';
        }
        end = memchr(bytes + at, '\n', n_bytes - at);
        json_scan_feed(&scan, bytes + at, end ? (size_t)(end - bytes) - at : n_bytes - at, end != NULL);
        r = json_next(&scan, &token, NULL);
        if (r != 0 || token.kind != JSON_OBJECT)
                return false;
        r = json_skip(&scan, 0, NULL);
        return r == 0 || r == JSON_MORE;
}

/* Listings often lie beside what they name. A single .json may be one too: then its first line ends with an object. A
 * list of archives is one of their format. */
static int jsonl_is_it(int root_fd, const struct files *files) {
        struct shards_kind kind = SHARDS;
        int r = shard_list_is_it(root_fd, files);

        kind.is_else_taken = NULL; /* a folder of .json may be anything */
        if (r != 0)
                return r < 0 ? r : 0;
        return listing_is_it(root_fd, files, &kind, is_jsonl_or_json, true, begins_with_object);
}

static int jsonl_build(int root_fd, const struct files *files, const struct format_options *options,
                       const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(table_fini) struct record_table table = {
                .listing = { .root_fd = root_fd,
                             .files = files,
                             .watch = watch,
                             .why = why,
                             .format = "jsonl",
                             .split = format_option(options, "split") },
                .refusals = format_refusals(options),
                .syntax = COLUMNS_JSON,
        };
        int r = table_init(&table, format_option(options, "files"), format_option(options, "raw"),
                           format_option(options, "label"));

        if (r == 0)
                r = listing_walk(&table.listing, &SHARDS, read_objects, &PARTS, &table);
        return r < 0 ? r : table_make_index(&table, ret_builder);
}

static const struct setting OPTIONS[] = {
        OPTION_FILES, OPTION_RAW, OPTION_LABEL, OPTION_SPLIT, { 0 },
};

static const struct format_naming NAMES[] = {
        { ".jsonl", .is_end = true }, { ".ndjson", .is_end = true }, { ".json", .is_end = true, .is_file = true }, { 0 }
};

static bool jsonl_begins(const uint8_t *head, size_t n) {
        size_t i = 0;

        while (i < n && memchr(" \t\r\n", head[i], 4))
                i++;
        return i < n && head[i] == '{';
}

static const struct format_written WRITTEN = {
        .suffix = ".jsonl", .n_head = 1, .begins_so = jsonl_begins, .ends_in_line = true, .names = NAMES
};

const struct format format_jsonl = {
        .name = "jsonl",
        .doc = "JSON Lines: a file, a pattern of files, or a folder of files (`*.jsonl` and `*.ndjson`; if there "
               "are none, `*.json`) in the order of their names, with one object in each line. A line is a sample, "
               "and the members of the objects are the fields.",
        .example = "path = \"/data/manifest.jsonl\" files = \"audio=audio_filepath\"",
        .takes_files = true,
        .is_read_through = true,
        .cut = lines_cut,
        .options = OPTIONS,
        .names = NAMES,
        .written = &WRITTEN,
        .is_it = jsonl_is_it,
        .build = jsonl_build,
};
