/* data/ledger/ledger_line.h: the file of a ledger, line by line.
 *
 *      # dataloaderd damaged samples 1
 *      # digest 4f0c...
 *      # sample  times  first  last  path  error  field
 *      17  3  2026-11-21T12:00:00Z  2026-11-21T12:05:09Z  dog/7.jpg  JPEG: the data end early  image
 *
 * with tabs between the columns: for people, cut and grep. The field is empty if it is not known which one is damaged;
 * lines without it are of an earlier version. If a sample has several lines, the last one counts, so the file is only
 * ever appended to. A line without its end is torn and is ignored. Tabs, line ends, backslashes and other control
 * characters of paths and errors are written as \t, \n, \\ and \xHH, and so are blanks in the name of a field. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/schema.h"
#include "proto/base/why.h"

/* At most four characters for each byte of path, error and field, and the numbers. */
#define LEDGER_LINE_MAX (4 * PATH_MAX + 4 * DLP_TEXT_MAX + 4 * SCHEMA_NAME_MAX + 256)

struct ledger_entry {
        uint64_t sample;
        uint64_t n_met;
        int64_t first_unix, last_unix; /* seconds */
        struct why error;
        char field[SCHEMA_NAME_MAX]; /* the damaged one; "": not known, or several */
};

/* Writes the lines of the header, or of an entry, with their ends. Returns the length, below LEDGER_LINE_MAX. */
size_t ledger_header_print(char line[LEDGER_LINE_MAX], const char *digest);
size_t ledger_line_print(char line[LEDGER_LINE_MAX], const struct ledger_entry *entry, const char *path);

/* Does the text begin with the header of this digest? */
bool ledger_header_matches(const char *text, const char *digest);

/* Reads a line without its line end. Returns 0; 1 for a comment; -EBADMSG if it is not an entry. The path is ignored,
 * because the index knows it. */
int ledger_line_parse(const char *line, struct ledger_entry *ret_entry);
