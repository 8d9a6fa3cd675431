/* data/formats/megatron/megatron_mixture.h: the samples of a dataset of token files: which sample of which file sample i is.
 *
 * As Megatron-core's builder: one file alone gives its own samples in their sequence; several, or one with a weight,
 * are blended. */
#pragma once

#include "daemon/base/budget.h"
#include "daemon/data/formats/megatron/gpt_samples.h"
#include "daemon/data/formats/megatron/prefixes.h"
#include "daemon/data/formats/megatron/token_file.h"

/* What the configuration says. */
struct mixture_terms {
        uint32_t sequence_length;
        uint64_t n_wanted; /* 0: not said */
        uint32_t seed;
        const char *splits, *part; /* gpt_split() */
};

struct mixture {
        uint32_t n_files;
        struct gpt_samples *files; /* of each token file */
        struct blend blend;        /* `files` NULL: one file alone */
        uint64_t n_samples;

        struct budget *budget;
        uint64_t reserved_bytes;
};

/* Makes the tables; their memory is counted in `budget` (NULL: it is not). `files` are those of `prefixes`, and outlive
 * the mixture. Returns 0 or an errno with `why`. What was made is to be given back in either case. Blocks: about 20 ns
 * for each sample and sequence; ends soon with -ECANCELED once `cancel` (may be NULL) is true. */
int mixture_make(struct mixture *mixture, const struct mixture_terms *terms, const struct prefixes *prefixes,
                 const struct token_file *files, const atomic_bool *cancel, struct budget *budget, struct why *why);

/* Takes a struct of zeroes. */
void mixture_fini(struct mixture *mixture);

/* The file of a sample (< n_samples), and its number among the samples of that file. */
static inline uint32_t mixture_file(const struct mixture *mixture, uint64_t sample, uint64_t *ret_sample) {
        if (!mixture->blend.files) {
                *ret_sample = sample;
                return 0;
        }
        *ret_sample = mixture->blend.samples[sample];
        return mixture->blend.files[sample];
}
