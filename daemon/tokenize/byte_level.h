/* tokenize/byte_level.h: how a vocabulary of bytes is written: each byte is a character of its own, those that print
 * themselves, the others from U+0100 on. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Turns such characters back to bytes; `into` has room for n. Returns their number, or SIZE_MAX if one of the
 * characters stands for no byte. */
size_t byte_level_read(const uint8_t *text, size_t n, uint8_t *into);
