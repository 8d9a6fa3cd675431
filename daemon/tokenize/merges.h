/* tokenize/merges.h: which two tokens become one, and which pair comes first. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/tokenize/vocabulary.h"

#define RANK_NONE UINT32_MAX

struct merge {
        uint64_t pair; /* left << 32 | right; UINT64_MAX: an empty slot */
        uint32_t rank; /* the lower comes first */
        uint32_t token;
};

struct merges {
        struct merge *slots; /* a power of two, at most half of them used */
        uint32_t n_slots;
};

/* Reads "merges": "a b", or ["a", "b"]. Errors as in json_node.h; merges_fini() frees in any case. `ret_cuts`: no pair
 * joins something that does not end with `mark` with something that begins with it. */
int merges_read(const struct json_node *node, const struct vocabulary *vocabulary, const uint8_t *mark, size_t n_mark,
                struct merges *merges, bool *ret_cuts, struct why *why);
void merges_fini(struct merges *merges);

/* NULL: these two stay apart. */
static inline const struct merge *merges_find(const struct merges *merges, uint32_t left, uint32_t right) {
        uint64_t pair = (uint64_t)left << 32 | right, hash = pair * UINT64_C(0x9e3779b97f4a7c15);
        uint32_t at = (uint32_t)(hash >> 33) & (merges->n_slots - 1);

        for (;; at = (at + 1) & (merges->n_slots - 1)) {
                if (merges->slots[at].pair == pair)
                        return &merges->slots[at];
                if (merges->slots[at].pair == UINT64_MAX)
                        return NULL;
        }
}
