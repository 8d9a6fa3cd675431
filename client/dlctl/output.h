/* dlctl/output.h: one description of the result, two ways to show it.
 *
 * A command makes records: trees of cJSON, with the contract's names as keys. As JSON, each record is one line. As
 * text, a record is a block and a list of records is a table. Text derives a key's unit from its name: *_bytes, *_ns,
 * *_seconds, *_unix are made readable, *_share are percent, *_allowed of 0 is any number, and a leading n_ is left out.
 * What is for programs only is a record within a record: text passes over it. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/dataloader.pb-c.h"

enum output_format {
        OUTPUT_TEXT,
        OUTPUT_JSON,
};

/* "text" or "json". Returns 0 or -EINVAL. */
int output_format_from_name(const char *name, enum output_format *ret_format);

/* May output to this descriptor be coloured? It must be a terminal; NO_COLOR is respected. */
bool output_colours(int fd);

/* A new object. Ends the program if there is no memory: dlctl has nothing to lose. */
cJSON *record_new(void);

/* Adds to `record`. Integers are kept to the last digit (cJSON's own numbers are doubles). */
void record_text(cJSON *record, const char *key, const char *value);
void record_number(cJSON *record, const char *key, uint64_t value);
void record_bool(cJSON *record, const char *key, bool value);
void record_real(cJSON *record, const char *key, double value); /* finite; six digits */

/* Adds fields of a message (Dlp__...), by their names in the contract with a blank between them: texts, numbers, bools;
 * a number below 0 is 0. "key=field" gives one another key; one with "?" after it is left out if it is empty or 0. */
void record_fields(cJSON *record, const void *message, const char *names);

/* Adds numbers that the daemon names itself, each under its name. */
void record_facts(cJSON *record, Dlp__Fact *const *facts, size_t n_facts);

/* A new record in `record`, which only JSON shows. */
cJSON *record_inner(cJSON *record, const char *key);

/* Numbers, in a record that only JSON shows. */
void record_numbers(cJSON *record, const char *key, const uint64_t *values, size_t n);

/* Adds the list `progress`, with one record of how far a long piece of work is, unless `progress` is NULL. */
void record_progress(cJSON *record, const Dlp__Progress *progress);

/* A new list in `record`; a new record in that list. */
cJSON *record_list(cJSON *record, const char *key);
cJSON *list_record(cJSON *list);

/* Prints a record as a line or as a block. Returns 0 or negative errno, see output_flush(). */
int output_record(enum output_format format, const cJSON *record);

/* Prints a list's records as lines, or as a table of `columns` (names, ended by NULL); a record's other values follow
 * below its row. `nothing` is printed as text for an empty list. */
int output_list(enum output_format format, const cJSON *list, const char *const *columns, const char *nothing);
