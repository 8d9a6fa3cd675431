/* proto/base/shown/columns.h: texts of any origin as a terminal shows them, counted in columns.
 *
 * A name may hold any bytes. What moves the cursor, turns the direction of the text or is not UTF-8 becomes '?', and
 * so does everything beyond ASCII if the terminal does not show UTF-8. A character that does not fit as a whole is
 * left out. Nothing allocates. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/symbol.h"

/* Text that grows in a buffer, always with a NUL at its end. */
struct columns {
        char *bytes;
        size_t size; /* of the buffer; what does not fit is left out */
        size_t n;    /* bytes, without the NUL */
        unsigned n_columns;
        bool utf8; /* the terminal shows UTF-8 */
};

/* How many columns the text takes. */
unsigned columns_of(const char *text, bool utf8) DLP_SYMBOL(columns_of);

/* Adds bytes of our own, which take n_columns. */
void columns_bytes(struct columns *columns, const char *bytes, size_t n, unsigned n_columns) DLP_SYMBOL(columns_bytes);

/* Adds the text from its column `from` to its column `to`. */
void columns_text(struct columns *columns, const char *text, unsigned from, unsigned to) DLP_SYMBOL(columns_text);

/* Adds the text in at most n_columns: of one that is longer the end is left out, and a mark says so. */
void columns_begin(struct columns *columns, const char *text, unsigned n_columns) DLP_SYMBOL(columns_begin);

/* The same for a name or path, of which the middle is left out, for the ends of paths tell them apart. */
void columns_name(struct columns *columns, const char *name, unsigned n_columns) DLP_SYMBOL(columns_name);

/* Adds a bar of n_columns that is filled by a share of 0 to 1. */
void columns_bar(struct columns *columns, double share, unsigned n_columns) DLP_SYMBOL(columns_bar);
