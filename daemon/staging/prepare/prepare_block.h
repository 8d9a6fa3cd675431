/* staging/prepare/prepare_block.h: memory of any size that is given back for good. Private to this floor.
 *
 * Samples and pictures are of all sizes, are made on one thread and freed on another: from the heap, a few large ones
 * would leave every thread's arena with memory that nobody uses and nobody counts. What is large is mapped instead, and
 * what is too large for memory lies in a file without a name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

struct block {
        uint8_t *bytes; /* NULL: nothing */
        size_t capacity;
        bool is_mapped; /* else the heap's */
};

/* At least n bytes, what was there is kept. Returns 0 or -ENOMEM: then it stays as it was. */
int block_grow(struct block *block, size_t n);

/* Keeps the first n bytes. */
void block_shrink(struct block *block, size_t n);

void block_free(struct block *block);

/* n bytes of a file, to be read and written; the descriptor is no longer needed. Errno. */
int block_map(struct block *block, int fd, size_t n);
