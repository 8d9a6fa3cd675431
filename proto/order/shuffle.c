#include "proto/order/shuffle.h"

/* Branch limits and rules are those of torch.randperm, as observed. */

uint32_t dlp_order_seed(uint64_t seed, uint64_t epoch) {
        return (uint32_t)(seed + epoch);
}

size_t dlp_shuffle_element_bytes(uint64_t n) {
        return n <= 1ull << 32 ? sizeof(uint32_t) : sizeof(uint64_t);
}

void dlp_shuffle_init(struct dlp_shuffle *shuffle, struct dlp_torch_random *random, void *table, uint64_t n,
                      enum dlp_torch_compat compat) {
        *shuffle = (struct dlp_shuffle){
                .random = random,
                .n = n,
                .inside_out = compat != DLP_TORCH_BEFORE_2_6 && n >= DLP_SHUFFLE_WIDE_FROM,
                .elements_are_wide = dlp_shuffle_element_bytes(n) == sizeof(uint64_t),
        };
        if (shuffle->elements_are_wide)
                shuffle->table.u64 = table;
        else
                shuffle->table.u32 = table;
}

/* The usual algorithm: for each i, swap with a random j of i .. n-1.
 *
 * Element k, while it is not final, holds its value XOR k. So zeroed memory already is the identity, and a table of
 * gigabytes costs nothing before its first element is known. The jumps of a stretch are drawn before its swaps: they do
 * not depend on the swaps, and the cache misses of the swaps can then overlap. */
#define STRETCH 32u

static void swap_steps_u32(struct dlp_shuffle *shuffle, uint64_t end) {
        struct dlp_torch_random *random = shuffle->random;
        uint32_t *table = shuffle->table.u32;
        uint64_t i = shuffle->n_steps;
        uint32_t jumps[STRETCH];

        while (i < end) {
                uint32_t n_jumps = end - i < STRETCH ? (uint32_t)(end - i) : STRETCH;

                for (uint32_t k = 0; k < n_jumps; k++) {
                        uint64_t n_left = shuffle->n - i - k;
                        uint32_t word = dlp_torch_u32(random);

                        /* n_left = 2^32 leaves the word as it is; a 32-bit division is twice as fast as a 64-bit one */
                        jumps[k] = n_left > UINT32_MAX ? word : word % (uint32_t)n_left;
                        __builtin_prefetch(&table[i + k + jumps[k]], 1);
                }
                for (uint32_t k = 0; k < n_jumps; k++, i++) {
                        uint64_t j = i + jumps[k];
                        uint32_t here = table[i] ^ (uint32_t)i, there = table[j] ^ (uint32_t)j;

                        table[j] = here ^ (uint32_t)j;
                        table[i] = there; /* last: j may be i */
                }
        }
}

static void swap_steps_u64(struct dlp_shuffle *shuffle, uint64_t end) {
        uint64_t *table = shuffle->table.u64;

        for (uint64_t i = shuffle->n_steps; i < end; i++) {
                uint64_t j = i + dlp_torch_u32(shuffle->random) % (shuffle->n - i);
                uint64_t here = table[i] ^ i, there = table[j] ^ j;

                table[j] = here ^ j;
                table[i] = there;
        }
}

/* The last element needs no draw. */
static void swap_steps(struct dlp_shuffle *shuffle, uint64_t end) {
        bool last = end == shuffle->n;

        if (shuffle->elements_are_wide)
                swap_steps_u64(shuffle, end - last);
        else
                swap_steps_u32(shuffle, end - last);

        if (last && shuffle->elements_are_wide)
                shuffle->table.u64[end - 1] ^= end - 1;
        else if (last)
                shuffle->table.u32[end - 1] ^= (uint32_t)(end - 1);
        shuffle->n_final = end;
}

/* The algorithm of torch >= 2.6 at large n: the permutation grows by one element a step, anywhere inside. */
static void inside_out_steps(struct dlp_shuffle *shuffle, uint64_t end) {
        for (uint64_t i = shuffle->n_steps; i < end; i++) {
                uint64_t j = dlp_torch_u64(shuffle->random) % (i + 1);

                if (shuffle->elements_are_wide) {
                        shuffle->table.u64[i] = shuffle->table.u64[j];
                        shuffle->table.u64[j] = i; /* last: j may be i */
                } else {
                        shuffle->table.u32[i] = shuffle->table.u32[j];
                        shuffle->table.u32[j] = (uint32_t)i;
                }
        }
        if (end == shuffle->n)
                shuffle->n_final = end;
}

uint64_t dlp_shuffle_advance(struct dlp_shuffle *shuffle, uint64_t n_steps) {
        uint64_t n_left = shuffle->n - shuffle->n_steps;
        uint64_t end = shuffle->n_steps + (n_steps < n_left ? n_steps : n_left);

        if (end == shuffle->n_steps)
                return shuffle->n_final;

        if (shuffle->inside_out)
                inside_out_steps(shuffle, end);
        else
                swap_steps(shuffle, end);
        shuffle->n_steps = end;
        return shuffle->n_final;
}
