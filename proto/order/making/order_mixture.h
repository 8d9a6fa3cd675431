/* order/making/order_mixture.h: how many samples of each part of a dataset an epoch of mix(...) has.
 *
 * A pure function of the step's arguments, the parts' sizes and the epoch. Shares are of the weights of this epoch:
 * between two epochs for which weights are given they change linearly. Numbers of samples are the shares of n, rounded
 * down; what is left goes to those of whom most was cut off, one each. */
#pragma once

#include "proto/order/steps/sampler_step.h"

enum dlp_mixture_how {
        DLP_MIXTURE_PROPORTION, /* weights are shares of the epoch */
        DLP_MIXTURE_REPEAT,     /* how often the part comes in an epoch */
        DLP_MIXTURE_CHOOSE,     /* how many samples of it an epoch has */
        DLP_MIXTURE_BLEND,      /* shares, in Megatron's sequence */
};

enum dlp_mixture_until {
        DLP_MIXTURE_FIRST, /* the epoch ends before a part would come a second time */
        DLP_MIXTURE_ALL,   /* when all parts have come once */
};

/* The values of a step's arguments. */
struct dlp_mixture_terms {
        const struct value *weights; /* unset: all parts, by their sizes */
        const struct value *n, *until;
        const struct value *to, *at; /* weights from epoch at[k] on: to[k * parts ...] */
        enum dlp_mixture_how how;
        double temperature;
};

struct dlp_mixture {
        uint32_t n_parts;
        struct dlp_part parts[KIND_LIST_MAX];
        double shares[KIND_LIST_MAX]; /* of this epoch; they add up to 1 */
        uint64_t counts[KIND_LIST_MAX];
        uint64_t n; /* the sum of the counts */
};

/* The parts and the counts of an epoch. -EINVAL: there are no such parts, some are empty, all weights are 0. `why` may
 * be NULL. */
int dlp_mixture_make(const struct dlp_mixture_terms *mixing, const struct dlp_making_terms *terms, uint64_t epoch,
                     struct dlp_mixture *ret_mixture, struct why *why);

/* How many samples of each part the epochs before this one had, modulo 2^64 passes over the part: whole passes and the
 * samples after them. */
void dlp_mixture_before(const struct dlp_mixture_terms *mixing, const struct dlp_making_terms *terms,
                        const struct dlp_mixture *mixture, uint64_t ret_passes[KIND_LIST_MAX],
                        uint64_t ret_samples[KIND_LIST_MAX]);
