/* pipeline/memory/large_buffers.h: memory for files that do not fit a task's own buffer.
 *
 * Each feed has its own, from what it reserved when its rank attached: room for a few of the largest files of its
 * dataset. If it is used up, the next large file waits for a buffer of the same feed. The buffer that was returned
 * last is taken first, because its pages exist and are in the caches. Planner only. */
#pragma once

#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/pipeline/isolation/isolation.h"

#define LARGE_BUFFER_ALIGN 4096u        /* bytes: needed for reading past the page cache */
#define LARGE_BUFFER_KEEP  (4ull << 20) /* bytes; a larger one is freed at once */

struct large_buffer {
        struct large_buffer *next;
        uint64_t n_bytes;        /* of `bytes` */
        uint8_t *bytes;          /* aligned to LARGE_BUFFER_ALIGN */
        struct cell_area shared; /* the same, for cells of the feed's user; none: it is not shared */
};

struct large_buffers {
        struct budget *budget;       /* what the feed has reserved */
        struct isolation *isolation; /* NULL: no cell needs to see them */
        struct large_buffer *spare;  /* last returned first */
};

/* A buffer for `n_bytes`. -ENOMEM with the numbers, after spare buffers have been freed. */
int large_buffers_take(struct large_buffers *buffers, uint64_t n_bytes, struct large_buffer **ret_buffer,
                       struct why *why);

/* The memory of a buffer for `n_bytes`. */
uint64_t large_buffer_cost(uint64_t n_bytes);

/* Takes NULL. */
void large_buffers_put(struct large_buffers *buffers, struct large_buffer *buffer);

/* Frees all spare buffers. */
void large_buffers_trim(struct large_buffers *buffers);
