/* pipeline/memory/large_buffers.h: memory for files that do not fit a task's own buffer.
 *
 * Each stream has its own, out of what it reserved when its rank attached: room for a few of the largest files of its
 * dataset. If it is used up, the next large file waits for one of the same stream. The buffer that was given back last
 * is taken first, so its pages are there and in the caches. The planner's alone. */
#pragma once

#include <stdint.h>

#include "daemon/base/budget.h"

#define LARGE_BUFFER_ALIGN 4096u        /* bytes: what reading past the page cache asks for */
#define LARGE_BUFFER_KEEP  (4ull << 20) /* bytes; a larger one is given back at once */

struct large_buffer {
        struct large_buffer *next;
        uint64_t n_bytes; /* of `bytes` */
        _Alignas(LARGE_BUFFER_ALIGN) uint8_t bytes[];
};

struct large_buffers {
        struct budget *budget;      /* what the stream has reserved */
        struct large_buffer *spare; /* last given back first */
};

/* Room for `n_bytes`. -ENOMEM with the numbers; what is spare has been given back then. */
int large_buffers_take(struct large_buffers *buffers, uint64_t n_bytes, struct large_buffer **ret_buffer,
                       struct why *why);

/* What a buffer for `n_bytes` costs. */
uint64_t large_buffer_cost(uint64_t n_bytes);

/* Takes NULL. */
void large_buffers_put(struct large_buffers *buffers, struct large_buffer *buffer);

/* Gives back all that is spare. */
void large_buffers_trim(struct large_buffers *buffers);
