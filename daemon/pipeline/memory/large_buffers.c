#include "daemon/pipeline/memory/large_buffers.h"

#include <errno.h>
#include <stdlib.h>

#define STEP (256u << 10) /* bytes: otherwise each slightly larger file would need a new buffer */

static uint64_t large_buffers_rounded(uint64_t n_bytes) {
        return (n_bytes + STEP - 1) / STEP * STEP;
}

uint64_t large_buffer_cost(uint64_t n_bytes) {
        return sizeof(struct large_buffer) + large_buffers_rounded(n_bytes);
}

static void large_buffers_buffer_free(struct large_buffers *buffers, struct large_buffer *buffer) {
        budget_release(buffers->budget, sizeof(*buffer) + buffer->n_bytes);
        if (buffer->shared.bytes)
                cell_area_drop(buffers->isolation->cells, &buffer->shared);
        else
                free(buffer->bytes);
        free(buffer);
}

static struct large_buffer *buffer_new(struct large_buffers *buffers, uint64_t n_bytes) {
        struct large_buffer *buffer = calloc(1, sizeof(*buffer));

        if (!buffer)
                return NULL;
        buffer->n_bytes = n_bytes;
        if (!buffers->isolation)
                buffer->bytes = aligned_alloc(LARGE_BUFFER_ALIGN, n_bytes);
        else if (cell_area_make(buffers->isolation->cells, "dataloaderd-file", n_bytes, &buffer->shared) == 0)
                buffer->bytes = buffer->shared.bytes;
        if (buffer->bytes)
                return buffer;
        free(buffer);
        return NULL;
}

void large_buffers_trim(struct large_buffers *buffers) {
        struct large_buffer *buffer;

        while ((buffer = buffers->spare)) {
                buffers->spare = buffer->next;
                large_buffers_buffer_free(buffers, buffer);
        }
}

static struct large_buffer *take_spare(struct large_buffers *buffers, uint64_t n_bytes) {
        for (struct large_buffer **place = &buffers->spare; *place; place = &(*place)->next)
                if ((*place)->n_bytes >= n_bytes) {
                        struct large_buffer *buffer = *place;

                        *place = buffer->next;
                        return buffer;
                }
        return NULL;
}

/* No spare buffer is large enough: frees one of them to make room for a larger one. */
static void drop_one(struct large_buffers *buffers) {
        struct large_buffer *buffer = buffers->spare;

        if (!buffer)
                return;
        buffers->spare = buffer->next;
        large_buffers_buffer_free(buffers, buffer);
}

/* Spare buffers are in the same account: they go if there is no room for a new one. */
static int large_buffers_reserve(struct large_buffers *buffers, uint64_t n_bytes, struct why *why) {
        if (budget_reserve(buffers->budget, n_bytes, "a large file's buffer", NULL) == 0)
                return 0;
        large_buffers_trim(buffers);
        return budget_reserve(buffers->budget, n_bytes, "a large file's buffer", why);
}

int large_buffers_take(struct large_buffers *buffers, uint64_t n_bytes, struct large_buffer **ret_buffer,
                       struct why *why) {
        struct large_buffer *buffer = take_spare(buffers, n_bytes);
        int r;

        if (!buffer) {
                drop_one(buffers);
                n_bytes = large_buffers_rounded(n_bytes);
                r = large_buffers_reserve(buffers, sizeof(*buffer) + n_bytes, why);
                if (r < 0)
                        return r;
                buffer = buffer_new(buffers, n_bytes);
                if (!buffer) {
                        budget_release(buffers->budget, sizeof(*buffer) + n_bytes);
                        return why_errno(why, -ENOMEM, "a buffer of %llu bytes", (unsigned long long)n_bytes);
                }
        }
        buffer->next = NULL;
        *ret_buffer = buffer;
        return 0;
}

void large_buffers_put(struct large_buffers *buffers, struct large_buffer *buffer) {
        if (!buffer)
                return;
        if (buffer->n_bytes > LARGE_BUFFER_KEEP) {
                large_buffers_buffer_free(buffers, buffer);
                return;
        }
        buffer->next = buffers->spare;
        buffers->spare = buffer;
}
