/* proto/base/text.h: texts that come from outside and go into logs, terminals and JSON.
 *
 * A file name or a client's option may hold any bytes: newlines would break the log, escapes a terminal, and bytes that
 * are not UTF-8 the JSON of dlctl. Printable here means: UTF-8 without what a terminal acts on and without what nobody
 * sees: controls (C0, C1), marks of direction, fillers and characters without width, tags. text.c has the table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "proto/base/symbol.h"

bool text_is_printable(const char *text) DLP_SYMBOL(text_is_printable);

/* The length in bytes of the character that begins there; 0 if it is not printable, or none. */
size_t text_printable_length(const char *bytes) DLP_SYMBOL(text_printable_length);

/* May it name a job, a path, a field? UTF-8 without controls (C0, C1). People's names for files have marks of direction
 * and joints that nobody sees: that is refused nowhere, and made printable where it is shown. */
bool text_is_name(const char *text) DLP_SYMBOL(text_is_name);

/* The value of a hexadecimal digit, or -1. */
static inline int text_hex_digit(char character) {
        if (character >= '0' && character <= '9')
                return character - '0';
        if ((character | 32) >= 'a' && (character | 32) <= 'f')
                return (character | 32) - 'a' + 10;
        return -1;
}

static inline bool text_is_blank(int character) {
        return character == ' ' || character == '\t';
}

static inline bool text_ends_with(const char *text, const char *ending) {
        size_t n = strlen(text), n_ending = strlen(ending);

        return n >= n_ending && strcmp(text + n - n_ending, ending) == 0;
}

/* What follows the last slash of a path; without one, all of it. */
static inline const char *text_after_slash(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* Each byte that keeps the text from being printable becomes a '?'. */
void text_make_printable(char *text) DLP_SYMBOL(text_make_printable);
