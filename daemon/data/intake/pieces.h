/* data/intake/pieces.h: an array that grows while other threads read it.
 *
 * It consists of pieces that never move, so that a reader needs no lock: it may use each element below a number that
 * the writer published after it had written them (with a release store; data/growth.h). One thread appends. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "proto/limits.h"

#define PIECE_ELEMENTS 4096u
#define PIECES_MAX     (DLP_STREAM_MAX / PIECE_ELEMENTS)

struct pieces {
        uint8_t *_Atomic *pieces; /* PIECES_MAX of them; of the pointers, too, only what is used takes memory */
        size_t element_bytes;
        uint64_t n; /* the writer's */
        struct budget *budget;
        const char *what; /* for messages about memory */
};

/* `budget` pays for the pieces, and outlives them; NULL: they are not counted. `what` is static text. -ENOMEM. */
int pieces_init(struct pieces *pieces, size_t element_bytes, struct budget *budget, const char *what);

/* Takes a struct of zeroes. */
void pieces_fini(struct pieces *pieces);

/* Appends an element of zeroes and returns it, to be filled in before it is published. NULL with `why`: no memory, or
 * DLP_STREAM_MAX elements. The array is then unchanged. */
void *pieces_append(struct pieces *pieces, struct why *why);

/* Removes the elements from number `n` on, none of which was published. Keeps their memory. */
void pieces_cut(struct pieces *pieces, uint64_t n);

/* An element that was published. Any thread. */
static inline void *pieces_at(const struct pieces *pieces, uint64_t i) {
        uint8_t *piece = atomic_load_explicit(&pieces->pieces[i / PIECE_ELEMENTS], memory_order_relaxed);

        return piece + i % PIECE_ELEMENTS * pieces->element_bytes;
}

/* ---- texts ----------------------------------------------------------------------------------------------------- */

/* Texts that never move, either. One thread adds. */
struct text_pool {
        struct text_pool_block *blocks;
        struct budget *budget;
        const char *what;
};

void text_pool_init(struct text_pool *texts, struct budget *budget, const char *what);
void text_pool_fini(struct text_pool *texts);

/* Where the texts end now; and back to there: what was added after it is not used any more. */
struct text_pool_mark {
        struct text_pool_block *block;
        size_t n_used;
};
struct text_pool_mark text_pool_mark(const struct text_pool *texts);
void text_pool_rewind(struct text_pool *texts, const struct text_pool_mark *mark);

/* A copy of `n` < PATH_MAX bytes, with a NUL. NULL with `why`: no memory. */
const char *text_pool_add(struct text_pool *texts, const char *text, size_t n, struct why *why);
