/* data/growing.h: bytes that are appended to, of which nobody knows in advance how many will come.
 *
 * One allocation for a million names instead of a million. Addresses move when it grows, so others keep offsets. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct growing {
        uint8_t *bytes; /* aligned as malloc aligns */
        size_t n_bytes;
        size_t capacity;
};

/* Appends n_bytes bytes; NULL appends zeroes. Returns 0 or -ENOMEM, which leaves it as it was. */
int growing_append(struct growing *growing, const void *bytes, size_t n_bytes);

/* Forgets the contents, keeps the memory. */
void growing_clear(struct growing *growing);

void growing_fini(struct growing *growing);
