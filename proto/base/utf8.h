/* proto/base/utf8.h: the one decoder of UTF-8. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/base/symbol.h"

/* The character that begins at `bytes`, strictly: no longer form than needed, no surrogate, nothing above U+10FFFF.
 * Returns its length in bytes, or 0 if there is none or if n_bytes cut it. A NUL is a character of one byte and ends
 * every longer one, so SIZE_MAX will do for a text that ends with it. */
size_t utf8_decode(const char *bytes, size_t n_bytes, uint32_t *ret_point) DLP_SYMBOL(utf8_decode);

/* How many bytes from the beginning on are whole characters: n_bytes if all of it is UTF-8. `bytes` may be NULL if
 * there are none. */
size_t utf8_valid(const void *bytes, size_t n_bytes) DLP_SYMBOL(utf8_valid);

/* How many columns a terminal gives the character: two for the scripts of East Asia and for pictures, none for marks
 * that are drawn over the character before. */
unsigned utf8_columns(uint32_t point) DLP_SYMBOL(utf8_columns);
