#include "daemon/data/formats/megatron/megatron_mixture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/data/formats/megatron/gpt_split.h"
#include "proto/base/cleanup.h"

void mixture_fini(struct mixture *mixture) {
        for (uint32_t i = 0; i < mixture->n_files; i++)
                gpt_samples_fini(&mixture->files[i]);
        free(mixture->files);
        blend_fini(&mixture->blend);
        if (mixture->budget)
                budget_release(mixture->budget, mixture->reserved_bytes);
        *mixture = (struct mixture){ 0 };
}

static int megatron_mixture_reserve(struct mixture *mixture, struct budget *budget, uint64_t n_bytes, struct why *why) {
        int r = budget ? budget_reserve(budget, n_bytes, "the order of GPT samples", why) : 0;

        if (r == 0 && budget) {
                mixture->budget = budget;
                mixture->reserved_bytes += n_bytes;
        }
        return r;
}

/* How many samples file `i` is to give: some more than the blend takes of it. Without weights one epoch is made. */
static uint64_t n_wanted_of(const struct mixture_terms *terms, const struct prefixes *prefixes, const double *weights,
                            uint32_t i) {
        if (prefixes->has_weights)
                return blend_share_made(terms->n_wanted, weights[i]);
        return prefixes->n == 1 ? terms->n_wanted : 0;
}

static int megatron_mixture_make_file(struct mixture *mixture, uint32_t i, const struct mixture_terms *terms,
                                      uint64_t n_wanted, const struct token_file *file, const atomic_bool *cancel,
                                      struct budget *budget, struct why *why) {
        struct gpt_terms gpt = {
                .sequence_length = terms->sequence_length,
                .n_wanted = n_wanted,
                .seed = terms->seed,
                .lengths = file->index.lengths,
                .cancel = cancel,
        };
        struct gpt_size size;
        struct why detail;
        int r = gpt_split(terms->splits, terms->part, file->index.n_sequences, &gpt.first, &gpt.n, &detail);

        if (r == 0)
                r = gpt_samples_size(&gpt, &size, &detail);
        if (r == 0)
                r = megatron_mixture_reserve(mixture, budget, size.memory_bytes, &detail);
        if (r == 0)
                r = gpt_samples_make(&gpt, &size, &mixture->files[i], &detail);
        return r < 0 ? why_set(why, r, "%s: %s", file->bin_name, detail.text) : 0;
}

/* `weights`: normalized once. Megatron normalizes them again for the order, which may change their last bits. */
static int make_blend(struct mixture *mixture, const struct mixture_terms *terms, const struct prefixes *prefixes,
                      double *weights, const atomic_bool *cancel, struct budget *budget, struct why *why) {
        _cleanup_(freep) uint64_t *sizes = calloc(mixture->n_files, sizeof(*sizes));
        bool is_weighed = prefixes->has_weights || terms->n_wanted > 0;
        uint64_t n = 0;
        int r;

        if (!sizes)
                return why_set(why, -ENOMEM, "no memory for a blend");
        for (uint32_t i = 0; i < mixture->n_files; i++) {
                sizes[i] = mixture->files[i].n_samples;
                n += prefixes->has_weights ? blend_share(terms->n_wanted, weights[i]) : sizes[i];
                weights[i] = prefixes->has_weights ? weights[i] : (double)sizes[i];
        }
        if (!prefixes->has_weights && terms->n_wanted > 0 && terms->n_wanted < n)
                n = terms->n_wanted;
        if (is_weighed)
                blend_normalize(weights, mixture->n_files);
        r = megatron_mixture_reserve(mixture, budget,
                                     n * (sizeof(*mixture->blend.files) + sizeof(*mixture->blend.samples)), why);
        if (r == 0)
                r = blend_make(is_weighed ? weights : NULL, sizes, mixture->n_files, n, cancel, &mixture->blend, why);
        mixture->n_samples = n;
        return r;
}

int mixture_make(struct mixture *mixture, const struct mixture_terms *terms, const struct prefixes *prefixes,
                 const struct token_file *files, const atomic_bool *cancel, struct budget *budget, struct why *why) {
        double weights[BLEND_MAX];
        int r = 0;

        if (prefixes->has_weights && terms->n_wanted == 0)
                return why_set(why, -EINVAL,
                               "blend: has weights, so num_samples must say how many samples they share; or leave the "
                               "weights out");
        for (uint32_t i = 0; i < prefixes->n; i++)
                weights[i] = prefixes->weights[i];
        if (prefixes->has_weights)
                blend_normalize(weights, prefixes->n);
        mixture->files = calloc(prefixes->n, sizeof(*mixture->files));
        if (!mixture->files)
                return why_set(why, -ENOMEM, "no memory for %u files", prefixes->n);
        mixture->n_files = prefixes->n;
        for (uint32_t i = 0; i < prefixes->n && r == 0; i++)
                r = megatron_mixture_make_file(mixture, i, terms, n_wanted_of(terms, prefixes, weights, i), &files[i],
                                               cancel, budget, why);
        if (r < 0)
                return r;
        if (prefixes->n == 1 && !prefixes->has_weights) {
                mixture->n_samples = mixture->files[0].n_samples;
                return 0;
        }
        return make_blend(mixture, terms, prefixes, weights, cancel, budget, why);
}
