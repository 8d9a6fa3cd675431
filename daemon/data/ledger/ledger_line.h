/* data/ledger/ledger_line.h: the file of a ledger, line by line.
 *
 *      # dataloaderd damaged samples 1
 *      # digest 4f0c...
 *      # sample  times  first  last  path  error  field
 *      17  3  2026-11-21T12:00:00Z  2026-11-21T12:05:09Z  dog/7.jpg  JPEG: the data end early  image
 *
 * with tabs between the columns: for people, cut and grep. The field is empty where it is not known which one is
 * damaged; lines without it are of an earlier version. A sample that comes again further down is the same one, and what
 * stands last counts, so that the file is only ever appended to. A line without its end was torn and is none. Tabs,
 * line ends, backslashes and other control characters of paths and errors are written as \t, \n, \\ and \xHH; and
 * blanks of a field's name. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/schema.h"
#include "proto/base/why.h"

/* Four bytes for each of path, error and field at most, and the numbers. */
#define LEDGER_LINE_MAX (4 * PATH_MAX + 4 * DLP_TEXT_MAX + 4 * SCHEMA_NAME_MAX + 256)

struct ledger_entry {
        uint64_t sample;
        uint64_t n_met;
        int64_t first_unix, last_unix; /* seconds */
        struct why error;
        char field[SCHEMA_NAME_MAX]; /* that is damaged; "": not known, or several */
};

/* Writes the header's lines, or an entry's, with their ends. Returns the length, below LEDGER_LINE_MAX. */
size_t ledger_header_print(char line[LEDGER_LINE_MAX], const char *digest);
size_t ledger_line_print(char line[LEDGER_LINE_MAX], const struct ledger_entry *entry, const char *path);

/* Does the text begin with the header of this digest? */
bool ledger_header_matches(const char *text, const char *digest);

/* Reads a line without its line end. Returns 0; 1 for a comment; -EBADMSG if it is not an entry. The path is skipped:
 * the index knows it. */
int ledger_line_parse(const char *line, struct ledger_entry *ret_entry);
