/* data/formats/differing/number_types.h: numbers of a column whose type differs from file to file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"
#include "proto/layout.h"

#define NUMBER_TYPE_NONE DLP_DTYPE_BYTES

/* The type in which a column has the numbers of both: the smallest that has all of them; int64 for uint64 and a signed
 * type, and float64 for whole numbers and floats, which have those that number_convert() does not refuse.
 * NUMBER_TYPE_NONE: bools do not go with numbers. Whatever the sequence in which several types are joined, the result
 * is the same. */
uint32_t number_types_join(uint32_t one, uint32_t other);

/* Writes a number of type `from` as one of the type `to`, with which the former was joined. Returns false if that is
 * another number. Both are unaligned. */
bool number_convert(uint32_t from, const void *number, uint32_t to, void *ret_number);

/* The same for n of them. */
bool numbers_convert(uint32_t from, const void *numbers, uint64_t n, uint32_t to, void *ret_numbers);

/* It returned false. Returns -ENOTSUP with `why`, which does not name the column. */
int number_differs(uint32_t from, uint32_t to, struct why *why);
