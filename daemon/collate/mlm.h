/* collate/mlm.h: tokens that are hidden so that a model predicts them: masked language modelling, as BERT's.
 *
 * Each token of a sample is chosen with probability p, unless it is special. A chosen one is a label; in the tokens it
 * becomes `mask` (80 % of them), any token of the vocabulary (10 %), or stays. The draws depend on seed, epoch, sample
 * and the token's place and on nothing else, three words a token whatever becomes of it: p, what becomes of it, and
 * which token. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/layout.h"

#define MLM_SPECIAL_MAX 16u

struct mlm_terms {
        uint32_t mask, vocab; /* tokens below vocab */
        double p, masked, random;
        uint32_t n_special, special[MLM_SPECIAL_MAX];
};

/* Hides some of the n tokens and writes n labels: the token that was there, or LABEL_IGNORED. `seed` is that of the
 * part of the pipeline. */
void mlm_hide(const struct mlm_terms *terms, uint64_t seed, uint32_t epoch, uint64_t sample, enum dlp_dtype dtype,
              uint8_t *tokens, uint64_t n, int64_t *labels);
