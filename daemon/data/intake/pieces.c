#include "daemon/data/intake/pieces.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS_BYTES (64u << 10)

int pieces_init(struct pieces *pieces, size_t element_bytes, struct budget *budget, const char *what) {
        *pieces = (struct pieces){ .element_bytes = element_bytes, .budget = budget, .what = what };
        pieces->pieces = calloc(PIECES_MAX, sizeof(*pieces->pieces)); /* half a MiB of zero pages, used one by one */
        return pieces->pieces ? 0 : -ENOMEM;
}

void pieces_fini(struct pieces *pieces) {
        uint64_t n_bytes = pieces->element_bytes * PIECE_ELEMENTS;

        for (uint64_t i = 0; pieces->pieces && i < PIECES_MAX && pieces->pieces[i]; i++) {
                free(pieces->pieces[i]);
                if (pieces->budget)
                        budget_release(pieces->budget, n_bytes);
        }
        free(pieces->pieces);
        *pieces = (struct pieces){ 0 };
}

static int pieces_add_piece(struct pieces *pieces, uint64_t idx, struct why *why) {
        uint64_t n_bytes = pieces->element_bytes * PIECE_ELEMENTS;
        uint8_t *piece;
        int r;

        if (idx == PIECES_MAX)
                return why_set(why, -EOVERFLOW, "%s: %llu are the most that a stream can have", pieces->what,
                               (unsigned long long)DLP_STREAM_MAX);
        r = pieces->budget ? budget_reserve(pieces->budget, n_bytes, pieces->what, why) : 0;
        if (r < 0)
                return r;
        piece = malloc(n_bytes);
        if (!piece) {
                if (pieces->budget)
                        budget_release(pieces->budget, n_bytes);
                return why_errno(why, -ENOMEM, "%s", pieces->what);
        }
        atomic_store_explicit(&pieces->pieces[idx], piece, memory_order_relaxed); /* its elements are published later */
        return 0;
}

void *pieces_append(struct pieces *pieces, struct why *why) {
        uint64_t idx = pieces->n / PIECE_ELEMENTS;

        if (idx == PIECES_MAX || !pieces->pieces[idx])
                if (pieces_add_piece(pieces, idx, why) < 0)
                        return NULL;
        return memset(pieces_at(pieces, pieces->n++), 0, pieces->element_bytes);
}

void pieces_cut(struct pieces *pieces, uint64_t n) {
        assert(n <= pieces->n);
        pieces->n = n;
}

/* ---- texts ----------------------------------------------------------------------------------------------------- */

struct text_pool_block {
        struct text_pool_block *older;
        size_t n_used;
        char bytes[TEXTS_BYTES - sizeof(void *) - sizeof(size_t)];
};

_Static_assert(sizeof(((struct text_pool_block *)0)->bytes) >= PATH_MAX, "any text fits into a block");

void text_pool_init(struct text_pool *texts, struct budget *budget, const char *what) {
        *texts = (struct text_pool){ .budget = budget, .what = what };
}

static void drop_block(struct text_pool *texts) {
        struct text_pool_block *block = texts->blocks;

        texts->blocks = block->older;
        free(block);
        if (texts->budget)
                budget_release(texts->budget, sizeof(*block));
}

void text_pool_fini(struct text_pool *texts) {
        while (texts->blocks)
                drop_block(texts);
}

struct text_pool_mark text_pool_mark(const struct text_pool *texts) {
        return (struct text_pool_mark){ .block = texts->blocks, .n_used = texts->blocks ? texts->blocks->n_used : 0 };
}

void text_pool_rewind(struct text_pool *texts, const struct text_pool_mark *mark) {
        while (texts->blocks != mark->block)
                drop_block(texts);
        if (texts->blocks)
                texts->blocks->n_used = mark->n_used;
}

static struct text_pool_block *pieces_add_block(struct text_pool *texts, struct why *why) {
        struct text_pool_block *block;

        if (texts->budget && budget_reserve(texts->budget, sizeof(*block), texts->what, why) < 0)
                return NULL;
        block = malloc(sizeof(*block));
        if (!block) {
                if (texts->budget)
                        budget_release(texts->budget, sizeof(*block));
                why_errno(why, -ENOMEM, "%s", texts->what);
                return NULL;
        }
        block->older = texts->blocks;
        block->n_used = 0;
        texts->blocks = block;
        return block;
}

const char *text_pool_add(struct text_pool *texts, const char *text, size_t n, struct why *why) {
        struct text_pool_block *block = texts->blocks;
        char *copy;

        assert(n < PATH_MAX);
        if (!block || sizeof(block->bytes) - block->n_used < n + 1)
                block = pieces_add_block(texts, why);
        if (!block)
                return NULL;
        copy = memcpy(block->bytes + block->n_used, text, n);
        copy[n] = '\0';
        block->n_used += n + 1;
        return copy;
}
