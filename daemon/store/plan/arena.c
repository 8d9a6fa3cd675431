#include "daemon/store/plan/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MIN (16u << 10)
#define BLOCK_MAX (4u << 20)

struct plan_arena_block {
        struct plan_arena_block *older;
        size_t n_bytes; /* of `bytes` */
        _Alignas(void *) uint8_t bytes[];
};

/* Each block is twice as large as the one before, so that a plan of three files is small and one of a million quick. */
static int arena_grow(struct plan_arena *arena, size_t n_wanted) {
        size_t n_bytes = arena->blocks ? 2 * arena->blocks->n_bytes : BLOCK_MIN;
        struct plan_arena_block *block;

        if (n_bytes > BLOCK_MAX)
                n_bytes = BLOCK_MAX;
        if (n_bytes < n_wanted)
                n_bytes = n_wanted;
        block = malloc(sizeof(*block) + n_bytes);
        if (!block)
                return -1;
        block->older = arena->blocks;
        block->n_bytes = n_bytes;
        arena->blocks = block;
        arena->n_left = n_bytes;
        return 0;
}

/* From the block's end downward: texts have no gaps between them, and for pointers the address is rounded down. */
static void *arena_take(struct plan_arena *arena, size_t n_bytes, size_t alignment) {
        size_t at;

        if (n_bytes > SIZE_MAX / 2 ||
            ((!arena->blocks || arena->n_left < n_bytes + alignment) && arena_grow(arena, n_bytes + alignment) < 0))
                return NULL;
        at = (arena->n_left - n_bytes) & ~(alignment - 1);
        arena->n_left = at;
        return arena->blocks->bytes + at;
}

void *plan_arena_take(struct plan_arena *arena, size_t n_bytes) {
        return arena_take(arena, n_bytes, sizeof(void *));
}

char *plan_arena_text(struct plan_arena *arena, const char *text, size_t n_bytes) {
        char *copy = arena_take(arena, n_bytes + 1, 1);

        if (copy) {
                memcpy(copy, text, n_bytes);
                copy[n_bytes] = '\0';
        }
        return copy;
}

void plan_arena_free(struct plan_arena *arena) {
        struct plan_arena_block *block = arena->blocks, *older;

        for (; block; block = older) {
                older = block->older;
                free(block);
        }
        *arena = (struct plan_arena){ 0 };
}
