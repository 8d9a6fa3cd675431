#include "proto/order/torch_samplers.h"

/* As observed in torch: tests/vectors/random_sampler.jsonl. */

#include <assert.h>
#include <string.h>

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
