/* data/growing.h: an array of bytes that grows by appending.
 *
 * A million names take one allocation instead of a million. Addresses change when it grows, so callers keep offsets.
 *
 * While an index is made, the arrays that its threads begin are counted in a budget until they are freed
 * (data/index/indexing.h), and an array that would take too much of it does not grow. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct indexing;

struct growing {
        uint8_t *bytes; /* aligned as malloc aligns */
        size_t n_bytes;
        size_t capacity;
        struct indexing *payer; /* NULL: it is not counted */
};

/* Appends n_bytes bytes; NULL appends zeroes. Returns 0, or -ENOMEM and the contents are unchanged. */
int growing_append(struct growing *growing, const void *bytes, size_t n_bytes);

/* Makes room for n_bytes in all, which are not set; the contents stay, and may be moved. Returns 0 or -ENOMEM. */
int growing_reserve(struct growing *growing, size_t n_bytes);

/* Removes the contents, but keeps the memory. */
void growing_clear(struct growing *growing);

void growing_fini(struct growing *growing);
