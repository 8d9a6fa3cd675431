/* store/plan/arena.h: memory for many small things that are freed together: a plan's files and texts. A malloc for
 * each would take 16 bytes more a piece, and as long as all the rest of the parsing. */
#pragma once

#include <stddef.h>

struct plan_arena {
        struct plan_arena_block *blocks; /* the newest first */
        size_t n_left;                   /* bytes of it */
};

/* Aligned for pointers; valid until the arena is freed. NULL: no memory. */
void *plan_arena_take(struct plan_arena *arena, size_t n_bytes);

/* A copy with a NUL after it. */
char *plan_arena_text(struct plan_arena *arena, const char *text, size_t n_bytes);

void plan_arena_free(struct plan_arena *arena);
