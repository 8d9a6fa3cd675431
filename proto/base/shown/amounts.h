/* proto/base/shown/amounts.h: numbers of bytes, numbers of things and times as people read them. */
#pragma once

#include <stdint.h>

#include "proto/base/symbol.h"

#define BYTES_TEXT_MAX    32 /* with NUL: room for any number format_bytes() writes; enough for the others too */
#define AMOUNT_TEXT_MAX   64 /* "12.3 MiB (12897485 bytes)" */
#define COUNT_TEXT_MAX    32
#define DURATION_TEXT_MAX 32

/* Writes "0 bytes", "1023 bytes", "64.0 KiB", "12.3 MiB", ...: one decimal, rounded to the nearest. Returns `buffer`.
 */
const char *format_bytes(char buffer[BYTES_TEXT_MAX], uint64_t n_bytes) DLP_SYMBOL(format_bytes);

/* The same for two numbers that a reader compares. "needs 8.0 MiB, 8.0 MiB are free" would confuse him, so where both
 * read alike, exact numbers are added. */
void format_compared(char one[AMOUNT_TEXT_MAX], uint64_t n_one, char other[AMOUNT_TEXT_MAX], uint64_t n_other)
        DLP_SYMBOL(format_compared);

/* Writes a number of files, samples and the like: "0", "99999", "123 k", "45.6 M", "7.8 G". Returns `buffer`. */
const char *format_count(char buffer[COUNT_TEXT_MAX], uint64_t n) DLP_SYMBOL(format_count);

/* "59 s", "12 min", "3 h 20 min", "4 d 2 h". Returns `buffer`. */
const char *format_duration(char buffer[DURATION_TEXT_MAX], uint64_t seconds) DLP_SYMBOL(format_duration);

/* Whole percent, 0 to 100; 100 only if all is done. */
unsigned percent_of(uint64_t n_done, uint64_t n_total) DLP_SYMBOL(percent_of);
