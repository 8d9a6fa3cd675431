/* data/formats/listing/csv_scan.h: rows and cells of a CSV file, as RFC 4180 and Python's csv module have them.
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

/* Finds the end of the row that begins at bytes[0]. `is_last`: the file ends with these bytes. Returns 0 and the bytes
 * of the row, with and without its end, and how many line breaks are in it and at its end; CSV_MORE; or -EBADMSG with
 * `why`: a quote is not closed, or something follows it. */
int csv_find_row(const uint8_t *bytes, size_t n_bytes, bool is_last, char delimiter, size_t *ret_n_row,
                 size_t *ret_n_with_end, uint64_t *ret_n_lines, struct why *why);

/* The next cell of such a row. *at is 0 for the first one. Returns false after the last one. A row has one cell at
 * least. */
bool csv_next_cell(const uint8_t *row, size_t n_row, char delimiter, size_t *at, struct csv_cell *ret_cell);

/* The text of a cell: without its quotes, and with one quote for two. `into` has room for n_bytes, or is NULL to learn
 * the length only. Returns the length. */
size_t csv_text(const uint8_t *cell, size_t n_bytes, uint8_t *into);
