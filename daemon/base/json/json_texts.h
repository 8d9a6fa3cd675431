/* base/json/json_texts.h: arrays of strings: ["a", "b"]. Errors as in json_value.h. */
#pragma once

#include "daemon/base/json/json_value.h"

/* How many strings there are, and the bytes of all of them as UTF-8. Returns 0; -EINVAL if it is not an array, or an
 * element is not a string; -EILSEQ for an escape that has no UTF-8. */
int json_texts_measure(const void *bytes, size_t n_bytes, uint64_t *ret_n, uint64_t *ret_n_text_bytes, struct why *why);

/* Writes the strings as a list of texts (proto/base/texts.h). `into` has 8 + 8 * n bytes and room for the bytes of all
 * of them; it needs no alignment. -EINVAL if their number is not `n`. */
int json_texts_read(const void *bytes, size_t n_bytes, uint8_t *into, uint64_t n, struct why *why);
