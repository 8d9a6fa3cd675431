/* codec/convert.h: numbers of one dtype as numbers of another one.
 *
 * A number that the other dtype cannot hold is an error and never wraps: -ERANGE. A float becomes a whole number
 * without its fraction, as in torch and NumPy; a whole number becomes the nearest float; a float too large becomes
 * infinite. To bool: everything but 0 is true. A float of 2^63 and more is refused for uint64 as well. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

/* Converts `n` elements, which need no alignment and do not overlap. `why` names the number that does not fit. Neither
 * dtype is bytes or text (asserted). */
int convert(uint32_t from_dtype, const void *from, uint32_t to_dtype, void *to, size_t n, struct why *why);
