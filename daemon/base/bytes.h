/* base/bytes.h: numbers of bytes as people write and read them. */
#pragma once

#include <stdint.h>

#define BYTES_TEXT_MAX 32 /* with NUL: room for any number format_bytes() writes */

/* Writes "0 bytes", "1023 bytes", "64.0 KiB", "12.3 MiB", ...: one decimal, rounded to the nearest. Returns `buffer`.
 */
const char *format_bytes(char buffer[BYTES_TEXT_MAX], uint64_t n_bytes);

/* Reads digits, followed by nothing or by one of KiB, MiB, GiB, TiB: "8GiB", "512MiB", "4096". No blanks, no sign, no
 * fraction, the unit spelled exactly so. Returns 0; -EINVAL if the text is anything else; -ERANGE above 2^64 - 1. */
int parse_bytes(const char *text, uint64_t *ret_bytes);
