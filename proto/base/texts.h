/* proto/base/texts.h: a list of texts in one piece, as batches and indices hold it.
 *
 *      uint64_t n | uint64_t ends[n] | the UTF-8 of all texts, one after the other
 *
 * ends[i] counts from the first byte of the first text: text i is what lies between ends[i - 1] (0 for the first one)
 * and ends[i], and the last end is the number of bytes that follow the ends. Little-endian. No function needs
 * alignment, allocates or blocks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/symbol.h"

struct texts {
        uint64_t n;
        const uint8_t *ends;  /* 8 bytes each */
        const uint8_t *bytes; /* of all texts */
};

/* Finds the parts of a list that has n_bytes bytes. Returns false if they do not fit together: then nothing of it can
 * be read. What the texts hold is not looked at. O(n). Any input is safe. */
bool texts_open(const void *bytes, uint64_t n_bytes, struct texts *ret_texts) DLP_SYMBOL(texts_open);

/* Text i < n of an open list, without NUL. */
const uint8_t *texts_at(const struct texts *texts, uint64_t i, uint64_t *ret_n_bytes) DLP_SYMBOL(texts_at);
