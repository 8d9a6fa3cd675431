/* dlctl/output.h: one way to say what there is, two ways to show it.
 *
 * A command makes records: trees of cJSON, with the contract's own names as keys. As JSON each record is a line. As
 * text a record is a block, and a list of records is a table. Text takes a key's unit from its name: *_bytes,
 * *_seconds,
 * *_unix become readable, and n_ in front is left out. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

enum output_format {
        OUTPUT_TEXT,
        OUTPUT_JSON,
};

/* "text" or "json". Returns 0 or -EINVAL. */
int output_format_from_name(const char *name, enum output_format *ret_format);

/* Is this descriptor a terminal that may be coloured? NO_COLOR is respected. */
bool output_colours(int fd);

/* A fresh object, or the program's end: dlctl has nothing to lose if there is no memory. */
cJSON *record_new(void);

/* Adds to `record`. Integers are kept to the last digit (cJSON's own numbers are doubles). */
void record_text(cJSON *record, const char *key, const char *value);
void record_number(cJSON *record, const char *key, uint64_t value);
void record_bool(cJSON *record, const char *key, bool value);

/* A fresh list in `record`, and a fresh record in that list. */
cJSON *record_list(cJSON *record, const char *key);
cJSON *list_record(cJSON *list);

/* Prints a record as a line or as a block. Returns 0 or negative errno (-EPIPE: the reader has gone). */
int output_record(enum output_format format, const cJSON *record);

/* Prints a list's records as lines, or as a table of `columns` (names, ended by NULL); what else a record says follows
 * below its row. `nothing` is what text says to an empty list. */
int output_list(enum output_format format, const cJSON *list, const char *const *columns, const char *nothing);
