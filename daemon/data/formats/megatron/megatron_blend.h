/* data/formats/megatron/megatron_blend.h: several token files mixed by weight, exactly as Megatron-core's BlendedDataset does.
 *
 * Blend step k takes the next sample of the file that is furthest behind its share. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

#define BLEND_MAX 1024u /* files */

struct blend {
        uint64_t n_samples;
        uint16_t *files;   /* of each sample */
        uint32_t *samples; /* which sample of that file */
};

/* Python's normalize(): w / numpy.sum(w), with numpy's sequence of additions. */
void blend_normalize(double *weights, uint32_t n);

/* How many samples file `weight` has to give for a blend of n_wanted, and how many of them have to be made: some more,
 * since the shares are met only approximately. */
uint64_t blend_share(uint64_t n_wanted, double weight);
uint64_t blend_share_made(uint64_t n_wanted, double weight);

/* Makes a blend of n_samples of `n` files, of which file i has sizes[i]. `weights` are normalized; NULL: exactly
 * sizes[i] samples of each file, and n_samples is their sum. Returns 0; -EINVAL with `why` if a file has too few
 * samples; -ENOMEM; -ECANCELED. */
int blend_make(const double *weights, const uint64_t *sizes, uint32_t n, uint64_t n_samples, const atomic_bool *cancel,
               struct blend *ret_blend, struct why *why);

/* Takes a struct of zeroes. */
void blend_fini(struct blend *blend);
