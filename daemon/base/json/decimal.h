/* base/json/decimal.h: numbers as "-12.5" that become doubles without strtod(), which takes longer than all the rest of
 * reading a table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Digits with at most one point among, before or after them, and a sign or none. Sets *ret_number to the nearest double
 * (of two that are as near, the even one), as strtod() does. Returns false, and sets nothing, if the text is anything
 * else, or has too many digits for this function. */
bool decimal_read(const uint8_t *text, size_t n_bytes, double *ret_number);
