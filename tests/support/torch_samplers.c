#include "tests/support/torch_samplers.h"

/* As observed in torch: tests/vectors/random_sampler.jsonl, rng.jsonl. */

#include <assert.h>
#include <string.h>

/* ---- draws ----------------------------------------------------------------------------------------------------- */

int64_t dlp_torch_random63(struct dlp_torch_random *random) {
        return (int64_t)(dlp_torch_u64(random) & 0x7fffffffffffffffull);
}

float dlp_torch_f32(struct dlp_torch_random *random) {
        return (float)(dlp_torch_u32(random) & 0xffffffu) * 0x1p-24f;
}

double dlp_torch_f64(struct dlp_torch_random *random) {
        return (double)(dlp_torch_u64(random) & ((1ull << 53) - 1)) * 0x1p-53;
}

int64_t dlp_torch_randint(struct dlp_torch_random *random, int64_t low, int64_t high, enum dlp_torch_compat compat) {
        uint64_t wide_from = compat == DLP_TORCH_2_7 ? 1ull << 28 : 1ull << 32;
        uint64_t range = (uint64_t)high - (uint64_t)low;
        uint64_t value;

        assert(low < high);
        value = range >= wide_from ? dlp_torch_u64(random) : dlp_torch_u32(random);
        return (int64_t)((uint64_t)low + value % range); /* the bias of the modulo is part of the contract */
}

/* ---- samplers -------------------------------------------------------------------------------------------------- */

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
