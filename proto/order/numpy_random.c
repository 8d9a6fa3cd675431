#include "proto/order/numpy_random.h"

/* Rules as numpy's legacy generator has them; its documentation promises that they never change. */

#define STRETCH 32u

void dlp_numpy_seed(struct dlp_torch_random *random, uint32_t seed) {
        dlp_torch_seed(random, seed);
}

/* The smallest 2^k - 1 that is at least `most`. */
static uint32_t numpy_random_mask_of(uint32_t most) {
        uint32_t mask = most;

        for (uint32_t shift = 1; shift < 32; shift *= 2)
                mask |= mask >> shift;
        return mask;
}

static uint32_t numpy_random_at_most(struct dlp_torch_random *random, uint32_t most) {
        uint32_t mask = numpy_random_mask_of(most), word;

        do
                word = dlp_torch_u32(random) & mask;
        while (word > most);
        return word;
}

/* The draws of a stretch are made before its swaps: they do not depend on the swaps, and the cache misses of the swaps
 * can then overlap. Returns how many elements from i - 1 downward the stretch is for. */
static uint32_t draw_stretch(struct dlp_torch_random *random, uint64_t i, uint64_t last, uint32_t ret_others[STRETCH]) {
        uint32_t n = i - last < STRETCH ? (uint32_t)(i - last) : STRETCH;

        for (uint32_t k = 0; k < n; k++)
                ret_others[k] = numpy_random_at_most(random, (uint32_t)(i - 1 - k));
        return n;
}

#define SHUFFLE(type)                                                                                                  \
        do {                                                                                                           \
                uint64_t i = end, last = begin > 0 ? begin : 1; /* element 0 is where it is by then */                 \
                uint32_t others[STRETCH];                                                                              \
                                                                                                                       \
                while (i > last) {                                                                                     \
                        uint32_t n = draw_stretch(random, i, last, others);                                            \
                                                                                                                       \
                        for (uint32_t k = 0; k < n; k++)                                                               \
                                __builtin_prefetch(&table[others[k]], 1);                                              \
                        for (uint32_t k = 0; k < n; k++) {                                                             \
                                type *here = &table[i - 1 - k], *there = &table[others[k]], value = *here;             \
                                                                                                                       \
                                *here = *there;                                                                        \
                                *there = value;                                                                        \
                        }                                                                                              \
                        i -= n;                                                                                        \
                }                                                                                                      \
        } while (0)

void dlp_numpy_shuffle(struct dlp_torch_random *random, uint32_t *table, uint64_t begin, uint64_t end) {
        SHUFFLE(uint32_t);
}

void dlp_numpy_shuffle_wide(struct dlp_torch_random *random, uint64_t *table, uint64_t begin, uint64_t end) {
        SHUFFLE(uint64_t);
}
