#include "client/dlctl/output.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/dlctl/dlctl_ending.h"
#include "client/dlctl/dlctl_text.h"
#include "proto/base/text.h"
#include "proto/base/utf8.h"

#define CELL_MAX    256
#define COLUMNS_MAX 32u

int output_format_from_name(const char *name, enum output_format *ret_format) {
        if (strcmp(name, "text") == 0)
                *ret_format = OUTPUT_TEXT;
        else if (strcmp(name, "json") == 0)
                *ret_format = OUTPUT_JSON;
        else
                return -EINVAL;
        return 0;
}

bool output_colours(int fd) {
        const char *forbidden = getenv("NO_COLOR"), *terminal = getenv("TERM");

        return isatty(fd) && !(forbidden && *forbidden) && terminal && strcmp(terminal, "dumb") != 0;
}

/* ---- records ------------------------------------------------------------------------------------------------- */

static cJSON *or_end(cJSON *item) {
        if (!item) {
                fprintf(stderr, "dlctl: no memory\n");
                exit(EXIT_FAILURE);
        }
        return item;
}

cJSON *record_new(void) {
        return or_end(cJSON_CreateObject());
}

/* File names may hold any bytes, JSON may not: bytes that are not UTF-8 become '?'. */
void record_text(cJSON *record, const char *key, const char *value) {
        char *copy = strdup(value);

        if (!copy)
                or_end(NULL);
        for (char *c = copy; *c;) {
                uint32_t point;
                size_t n = utf8_decode(c, SIZE_MAX, &point);

                if (n == 0)
                        *c = '?';
                c += n > 0 ? n : 1;
        }
        or_end(cJSON_AddStringToObject(record, key, copy));
        free(copy);
}

void record_number(cJSON *record, const char *key, uint64_t value) {
        char digits[24];

        snprintf(digits, sizeof(digits), "%" PRIu64, value);
        or_end(cJSON_AddRawToObject(record, key, digits));
}

void record_bool(cJSON *record, const char *key, bool value) {
        or_end(cJSON_AddBoolToObject(record, key, value));
}

void record_real(cJSON *record, const char *key, double value) {
        char digits[40];

        snprintf(digits, sizeof(digits), "%.6g", value);
        or_end(cJSON_AddRawToObject(record, key, digits));
}

static void record_field(cJSON *record, const ProtobufCMessage *message, char *name) {
        size_t n = strlen(name);
        bool is_optional = n > 0 && name[n - 1] == '?';
        char *equal = strchr(name, '=');
        const ProtobufCFieldDescriptor *field;
        const void *at;
        uint64_t number;

        if (is_optional)
                name[n - 1] = '\0';
        if (equal)
                *equal = '\0';
        field = protobuf_c_message_descriptor_get_field_by_name(message->descriptor, equal ? equal + 1 : name);
        assert(field && field->label != PROTOBUF_C_LABEL_REPEATED);
        at = (const char *)message + field->offset;
        switch (field->type) {
        case PROTOBUF_C_TYPE_STRING:
                if (!is_optional || **(char *const *)at)
                        record_text(record, name, *(char *const *)at);
                return;
        case PROTOBUF_C_TYPE_BOOL:
                if (!is_optional || *(const protobuf_c_boolean *)at)
                        record_bool(record, name, *(const protobuf_c_boolean *)at);
                return;
        case PROTOBUF_C_TYPE_UINT32:
                number = *(const uint32_t *)at;
                break;
        case PROTOBUF_C_TYPE_INT64:
                number = *(const int64_t *)at > 0 ? (uint64_t) * (const int64_t *)at : 0;
                break;
        default:
                assert(field->type == PROTOBUF_C_TYPE_UINT64);
                number = *(const uint64_t *)at;
        }
        if (!is_optional || number > 0)
                record_number(record, name, number);
}

void record_fields(cJSON *record, const void *message, const char *names) {
        char name[80];

        for (size_t n; *names; names += n + strspn(names + n, " ")) {
                n = strcspn(names, " ");
                assert(n < sizeof(name));
                snprintf(name, sizeof(name), "%.*s", (int)n, names);
                record_field(record, message, name);
        }
}

void record_facts(cJSON *record, Dlp__Fact *const *facts, size_t n_facts) {
        for (size_t i = 0; i < n_facts; i++)
                record_number(record, facts[i]->name, strtoull(facts[i]->value, NULL, 10));
}

cJSON *record_inner(cJSON *record, const char *key) {
        return or_end(cJSON_AddObjectToObject(record, key));
}

void record_numbers(cJSON *record, const char *key, const uint64_t *values, size_t n) {
        cJSON *list = or_end(cJSON_AddArrayToObject(record, key));
        char digits[24];

        for (size_t i = 0; i < n; i++) {
                snprintf(digits, sizeof(digits), "%" PRIu64, values[i]);
                cJSON_AddItemToArray(list, or_end(cJSON_CreateRaw(digits)));
        }
}

/* The daemon's number, whatever it is. */
static uint64_t output_whole(double value) {
        return value >= 0 && value < 1e18 ? (uint64_t)value : 0;
}

void record_progress(cJSON *record, const Dlp__Progress *progress) {
        cJSON *row;

        if (!progress)
                return;
        row = list_record(record_list(record, "progress"));
        record_fields(row, progress, "phase done total unit");
        record_number(row, "per_second", output_whole(progress->per_second));
        if (progress->seconds_left >= 0)
                record_number(row, "left_seconds", output_whole(progress->seconds_left));
        record_number(row, "running_seconds", output_whole(progress->seconds));
}

cJSON *record_list(cJSON *record, const char *key) {
        return or_end(cJSON_AddArrayToObject(record, key));
}

cJSON *list_record(cJSON *list) {
        cJSON *record = record_new();

        cJSON_AddItemToArray(list, record);
        return record;
}

/* ---- text: values -------------------------------------------------------------------------------------------- */

static void print_size(uint64_t n_bytes, char *cell) {
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
        double value = (double)n_bytes;
        size_t i = 0;

        while (value >= 1024 && i + 1 < sizeof(units) / sizeof(units[0])) {
                value /= 1024;
                i++;
        }
        snprintf(cell, CELL_MAX, i == 0 ? "%.0f %s" : "%.1f %s", value, units[i]);
}

static void print_nanoseconds(uint64_t ns, char *cell) {
        if (ns < 1000000000u)
                snprintf(cell, CELL_MAX, "%.3g ms", (double)ns / 1e6);
        else
                snprintf(cell, CELL_MAX, "%.1f s", (double)ns / 1e9);
}

static void print_duration(uint64_t seconds, char *cell) {
        if (seconds < 60)
                snprintf(cell, CELL_MAX, "%" PRIu64 " s", seconds);
        else if (seconds < 3600)
                snprintf(cell, CELL_MAX, "%" PRIu64 " min %" PRIu64 " s", seconds / 60, seconds % 60);
        else if (seconds < 86400)
                snprintf(cell, CELL_MAX, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600, seconds / 60 % 60);
        else
                snprintf(cell, CELL_MAX, "%" PRIu64 " d %" PRIu64 " h", seconds / 86400, seconds / 3600 % 24);
}

static void output_print_time(uint64_t unix_seconds, char *cell) {
        time_t seconds = (time_t)unix_seconds;
        struct tm local;

        if (!localtime_r(&seconds, &local) || strftime(cell, CELL_MAX, "%Y-%m-%d %H:%M:%S %z", &local) == 0)
                snprintf(cell, CELL_MAX, "%" PRIu64, unix_seconds);
}

/* What a terminal acts on is replaced: a file's name could otherwise write anywhere on it. */
static void output_print_plain(const char *value, char *cell) {
        snprintf(cell, CELL_MAX, "%s", value);
        text_make_printable(cell);
}

static void output_print_value(const cJSON *item, char *cell) {
        uint64_t number;

        if (cJSON_IsBool(item)) {
                snprintf(cell, CELL_MAX, "%s", cJSON_IsTrue(item) ? "yes" : "no");
                return;
        }
        if (!cJSON_IsRaw(item)) {
                output_print_plain(cJSON_IsString(item) ? item->valuestring : "", cell);
                return;
        }
        number = strtoull(item->valuestring, NULL, 10);
        if (text_ends_with(item->string, "_share"))
                snprintf(cell, CELL_MAX, "%.3g %%", strtod(item->valuestring, NULL) * 100);
        else if (text_ends_with(item->string, "_allowed") && number == 0)
                snprintf(cell, CELL_MAX, "any number");
        else if (strpbrk(item->valuestring, ".e"))
                snprintf(cell, CELL_MAX, "%.4g", strtod(item->valuestring, NULL));
        else if (text_ends_with(item->string, "_bytes"))
                print_size(number, cell);
        else if (text_ends_with(item->string, "_ns"))
                print_nanoseconds(number, cell);
        else if (text_ends_with(item->string, "_seconds"))
                print_duration(number, cell);
        else if (text_ends_with(item->string, "_unix"))
                output_print_time(number, cell);
        else
                snprintf(cell, CELL_MAX, "%" PRIu64, number);
}

/* "n_batches" -> "batches", "ring_bytes" -> "ring" */
static void print_title(const char *key, char *cell) {
        static const char *const units[] = { "_bytes", "_ns", "_seconds", "_unix" };
        size_t n;

        snprintf(cell, CELL_MAX, "%s", strncmp(key, "n_", 2) == 0 ? key + 2 : key);
        n = strlen(cell);
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
                if (text_ends_with(cell, units[i]))
                        cell[n - strlen(units[i])] = '\0';
        for (char *c = cell; *c; c++)
                if (*c == '_')
                        *c = ' ';
}

/* Columns that the cell takes on a terminal: characters, not bytes. */
static int output_width_of(const char *cell) {
        int n = 0;

        for (; *cell; cell++)
                n += ((unsigned char)*cell & 0xc0) != 0x80;
        return n;
}

static void output_pad(int n) {
        printf("%*s", n > 0 ? n : 0, "");
}

static void print_heading(const char *text) {
        bool colours = output_colours(STDOUT_FILENO);

        printf("%s%s%s", colours ? "\033[1m" : "", text, colours ? "\033[0m" : "");
}

/* ---- text: tables -------------------------------------------------------------------------------------------- */

struct table {
        const char *columns[COLUMNS_MAX]; /* keys */
        int widths[COLUMNS_MAX];
        size_t n;
        int indent;
};

static bool output_is_number(const cJSON *list, const char *column) {
        return cJSON_IsRaw(cJSON_GetObjectItemCaseSensitive(list->child, column));
}

static void table_measure(struct table *table, const cJSON *list) {
        char cell[CELL_MAX];
        const cJSON *row;

        for (size_t i = 0; i < table->n; i++) {
                print_title(table->columns[i], cell);
                table->widths[i] = output_width_of(cell);
                cJSON_ArrayForEach(row, list) {
                        output_print_value(cJSON_GetObjectItemCaseSensitive(row, table->columns[i]), cell);
                        if (output_width_of(cell) > table->widths[i])
                                table->widths[i] = output_width_of(cell);
                }
        }
}

/* Numbers are aligned to the right, words to the left; a last column of words is not padded. */
static void table_print_cell(const struct table *table, size_t i, const char *cell, bool right, bool heading) {
        int room = table->widths[i] - output_width_of(cell);

        if (right)
                output_pad(room);
        if (heading)
                print_heading(cell);
        else
                fputs(cell, stdout);
        if (i + 1 == table->n) {
                putchar('\n');
                return;
        }
        output_pad((right ? 0 : room) + 2);
}

static void table_print_head(const struct table *table, const cJSON *list) {
        char cell[CELL_MAX];

        output_pad(table->indent);
        for (size_t i = 0; i < table->n; i++) {
                print_title(table->columns[i], cell);
                table_print_cell(table, i, cell, output_is_number(list, table->columns[i]), true);
        }
}

static void table_print_row(const struct table *table, const cJSON *list, const cJSON *row) {
        char cell[CELL_MAX];

        output_pad(table->indent);
        for (size_t i = 0; i < table->n; i++) {
                output_print_value(cJSON_GetObjectItemCaseSensitive(row, table->columns[i]), cell);
                table_print_cell(table, i, cell, output_is_number(list, table->columns[i]), false);
        }
}

static void output_print_table(const cJSON *list, int indent) {
        struct table table = { .indent = indent };
        const cJSON *item, *row;

        if (!list->child)
                return;
        cJSON_ArrayForEach(item, list->child) {
                if (table.n < COLUMNS_MAX && !cJSON_IsObject(item))
                        table.columns[table.n++] = item->string;
        }
        table_measure(&table, list);
        table_print_head(&table, list);
        cJSON_ArrayForEach(row, list) {
                table_print_row(&table, list, row);
        }
}

/* ---- text: blocks -------------------------------------------------------------------------------------------- */

static bool output_is_column(const char *const *columns, const char *key) {
        for (; columns && *columns; columns++)
                if (strcmp(*columns, key) == 0)
                        return true;
        return false;
}

static bool is_passed_over(const cJSON *item) {
        return cJSON_IsObject(item) || (cJSON_IsString(item) && !*item->valuestring) ||
               (cJSON_IsArray(item) && !item->child);
}

/* Prints what a record says besides `columns`: one line for each value, then its lists as tables. */
static void print_block(const cJSON *record, const char *const *columns, int indent) {
        char title[CELL_MAX], cell[CELL_MAX];
        const cJSON *item;
        int width = 0;

        cJSON_ArrayForEach(item, record) {
                print_title(item->string, title);
                if (!cJSON_IsArray(item) && !output_is_column(columns, item->string) && !is_passed_over(item) &&
                    output_width_of(title) > width)
                        width = output_width_of(title);
        }
        cJSON_ArrayForEach(item, record) {
                if (cJSON_IsArray(item) || output_is_column(columns, item->string) || is_passed_over(item))
                        continue;
                print_title(item->string, title);
                output_pad(indent);
                print_heading(title);
                output_pad(width - output_width_of(title) + 2);
                if (cJSON_IsString(item)) { /* never cut */
                        text_make_printable(item->valuestring);
                        puts(item->valuestring);
                } else {
                        output_print_value(item, cell);
                        puts(cell);
                }
        }
        cJSON_ArrayForEach(item, record) {
                if (!cJSON_IsArray(item) || is_passed_over(item))
                        continue;
                print_title(item->string, title);
                putchar('\n');
                output_pad(indent);
                print_heading(title);
                putchar('\n');
                output_print_table(item, indent + 2);
        }
}

/* ---- text and JSON ------------------------------------------------------------------------------------------- */

static void output_print_line(const cJSON *record) {
        char *line = cJSON_PrintUnformatted(record);

        if (!line)
                or_end(NULL);
        for (const char *c = line; *c;) { /* all of it is UTF-8: record_text() */
                size_t n = text_printable_length(c);
                char escaped[JSON_ESCAPED_MAX];
                uint32_t point = 0;

                if (n == 0) {
                        n = utf8_decode(c, SIZE_MAX, &point);
                        json_escape(point, escaped);
                        fputs(escaped, stdout);
                } else {
                        fwrite(c, 1, n, stdout);
                }
                c += n > 0 ? n : 1;
        }
        putchar('\n');
        cJSON_free(line);
}

int output_record(enum output_format format, const cJSON *record) {
        if (format == OUTPUT_JSON)
                output_print_line(record);
        else
                print_block(record, NULL, 0);
        return output_flush();
}

int output_list(enum output_format format, const cJSON *list, const char *const *columns, const char *nothing) {
        struct table table = { .n = 0 };
        const cJSON *row;

        if (format == OUTPUT_JSON) {
                cJSON_ArrayForEach(row, list) {
                        output_print_line(row);
                }
                return output_flush();
        }
        if (!list->child) {
                puts(nothing);
                return output_flush();
        }
        while (columns[table.n]) {
                table.columns[table.n] = columns[table.n];
                table.n++;
        }
        table_measure(&table, list);
        table_print_head(&table, list);
        cJSON_ArrayForEach(row, list) {
                table_print_row(&table, list, row);
                print_block(row, columns, 4);
                if (row->next)
                        putchar('\n');
        }
        return output_flush();
}
