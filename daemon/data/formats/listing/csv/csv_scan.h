/* data/formats/listing/csv/csv_scan.h: rows and cells of a CSV file, as RFC 4180 and Python's csv module have them.
 *
 * A cell that begins with a quote ends at the next quote that is not doubled, and may hold delimiters and line breaks.
 * A row ends with "\n", "\r\n" or "\r". Nothing is copied: a cell is where it lies. With CSV_BLANKS as the delimiter
 * any number of blanks and tabs is between cells, and those before the first and after the last cell do not count. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

#define CSV_BLANKS '\0' /* as a delimiter */

/* Positive outcome: the bytes end within the row, and more of them follow. */
#define CSV_MORE 1

struct csv_cell {
        size_t begin, n_bytes; /* as written, with its quotes */
        bool is_quoted;
};

/* What is between the cells of a file of this name. */
char csv_delimiter_of(const char *name);

/* Finds the end of the row that begins at bytes[0]. `is_last`: the file ends with these bytes. Returns 0 and the bytes
 * of the row, with and without its end, and how many line breaks are in it and at its end; CSV_MORE; or -EBADMSG with
 * `why`: a quote is not closed, or something follows it. */
int csv_find_row(const uint8_t *bytes, size_t n_bytes, bool is_last, char delimiter, size_t *ret_n_row,
                 size_t *ret_n_with_end, uint64_t *ret_n_lines, struct why *why);

/* Where a byte of a file may lie, as far as quotes go. */
enum csv_state {
        CSV_PLAIN,  /* outside of quotes */
        CSV_QUOTED, /* within them */
        CSV_QUOTE,  /* within them after a quote, which ends the cell, or is the first of two */
        N_CSV_STATES,
};

/* The state of the byte after these, for each state that bytes[0] may have. `before` is the byte before them; where a
 * row begins with them, any line break. Of a file that is not refused this is exact. */
void csv_states(uint8_t before, const uint8_t *bytes, size_t n_bytes, char delimiter, uint8_t ret_after[N_CSV_STATES]);

/* The first of these bytes with which a row begins; n_bytes: none. `state` is that of bytes[0]. */
size_t csv_find_begin(uint8_t before, const uint8_t *bytes, size_t n_bytes, char delimiter, uint8_t state);

/* The next cell of such a row. *at is 0 for the first one. Returns false after the last one. A row has one cell at
 * least. */
bool csv_next_cell(const uint8_t *row, size_t n_row, char delimiter, size_t *at, struct csv_cell *ret_cell);

/* The text of a cell: without its quotes, and with one quote for two. `into` has room for n_bytes, or is NULL to learn
 * the length only. Returns the length. */
size_t csv_text(const uint8_t *cell, size_t n_bytes, uint8_t *into);
