#include "proto/order/shuffle.h"

/* Branch numbers and rules: torch.randperm, DistributedSampler, RandomSampler, SubsetRandomSampler as observed. */

#include <assert.h>
#include <errno.h>
#include <string.h>

/* ---- kind ---------------------------------------------------------------------------------------------------- */

static const char *const KINDS[] = {
        [DLP_ORDER_TORCH] = "torch",
        [DLP_ORDER_TDPERM] = "tdperm",
};
#define N_KINDS (sizeof(KINDS) / sizeof(KINDS[0]))

const char *dlp_order_kind_name(enum dlp_order_kind kind) {
        return (unsigned)kind < N_KINDS ? KINDS[kind] : NULL;
}

int dlp_order_kind_from_name(const char *name, enum dlp_order_kind *ret_kind) {
        for (size_t i = 0; i < N_KINDS; i++)
                if (strcmp(name, KINDS[i]) == 0) {
                        *ret_kind = (enum dlp_order_kind)i;
                        return 0;
                }
        return -EINVAL;
}

/* ---- partition ----------------------------------------------------------------------------------------------- */

static const char *const PARTITIONS[] = {
        [DLP_PARTITION_PAD] = "pad",
        [DLP_PARTITION_DROP] = "drop",
        [DLP_PARTITION_EXACT] = "exact",
};
#define N_PARTITIONS (sizeof(PARTITIONS) / sizeof(PARTITIONS[0]))

const char *dlp_partition_name(enum dlp_partition partition) {
        return (unsigned)partition < N_PARTITIONS ? PARTITIONS[partition] : NULL;
}

int dlp_partition_from_name(const char *name, enum dlp_partition *ret_partition) {
        for (size_t i = 0; i < N_PARTITIONS; i++)
                if (strcmp(name, PARTITIONS[i]) == 0) {
                        *ret_partition = (enum dlp_partition)i;
                        return 0;
                }
        return -EINVAL;
}

uint64_t dlp_order_rank_samples(uint64_t n, uint32_t world, uint32_t rank, enum dlp_partition partition) {
        uint64_t each, rest;

        if (rank >= world)
                return 0;

        each = n / world;
        rest = n % world;
        switch (partition) {
        case DLP_PARTITION_PAD:
                return each + (rest > 0);
        case DLP_PARTITION_DROP:
                return each;
        case DLP_PARTITION_EXACT:
                return each + (rank < rest);
        }
        return 0;
}

uint64_t dlp_order_rank_batches(uint64_t samples, uint32_t batch, bool drop_last) {
        if (batch == 0)
                return 0;
        return samples / batch + (!drop_last && samples % batch > 0);
}

uint64_t dlp_order_position(uint64_t step_in_rank, uint32_t world, uint32_t rank) {
        return step_in_rank * world + rank;
}

/* ---- randperm ------------------------------------------------------------------------------------------------ */

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
 * Element k that is not final holds its value XOR k. So the zeroes of fresh memory already are the identity, and a
 * table of gigabytes costs nothing before its first element is known. The jumps of a stretch are drawn before its
 * swaps: they do not depend on them, and the cache misses of the swaps then overlap. */
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

/* The last element takes no draw. */
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

/* ---- samplers ------------------------------------------------------------------------------------------------ */

static void whole_permutation(struct dlp_torch_random *random, void *table, uint64_t n, enum dlp_torch_compat compat) {
        struct dlp_shuffle shuffle;

        if (n == 0)
                return;
        memset(table, 0, n * dlp_shuffle_element_bytes(n));
        dlp_shuffle_init(&shuffle, random, table, n, compat);
        dlp_shuffle_advance(&shuffle, n);
}

/* Without replacement torch draws one permutation more than it uses up, even if nothing of it is used. */
void dlp_random_sampler(struct dlp_torch_random *random, uint64_t n, uint64_t n_samples, bool replacement,
                        enum dlp_torch_compat compat, void *table, uint64_t *ret_indices) {
        uint64_t n_done = 0;

        assert(n > 0 || n_samples == 0);
        if (replacement) {
                for (; n_done < n_samples; n_done++)
                        ret_indices[n_done] = (uint64_t)dlp_torch_randint(random, 0, (int64_t)n, compat);
                return;
        }
        if (n == 0)
                return;

        for (bool last = false; !last;) {
                uint64_t n_wanted = n_samples - n_done < n ? n_samples - n_done : n;

                last = n_wanted < n;
                whole_permutation(random, table, n, compat);
                for (uint64_t i = 0; i < n_wanted; i++)
                        ret_indices[n_done++] = dlp_shuffle_element(table, n, i);
        }
}

void dlp_subset_random_sampler(struct dlp_torch_random *random, const uint64_t *subset, uint64_t n,
                               enum dlp_torch_compat compat, void *table, uint64_t *ret_indices) {
        whole_permutation(random, table, n, compat);
        for (uint64_t i = 0; i < n; i++)
                ret_indices[i] = subset[dlp_shuffle_element(table, n, i)];
}
