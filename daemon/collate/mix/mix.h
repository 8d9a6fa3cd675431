/* collate/mix/mix.h: what is drawn for a batch whose samples are mixed with one another: mixup and cutmix.
 *
 *      mixup    sample * lam + partner * (1 - lam)
 *      cutmix   a box of the partner is put in place of the sample's; lam is the share that is still the sample's
 *
 * and in both the labels are label * lam + the partner's * (1 - lam). As torchvision's MixUp and CutMix, and timm's
 * Mixup (1.0.31), do it: with the same lam and box their results are the same to the bit.
 *
 * What is drawn depends on the seed, the epoch, and the position (of the epoch's order) at which the first sample of
 * the batch stands: not on workers or time, and a run that is resumed draws the same. The whole batch is one unit, or
 * each of its samples or pairs is one. A unit draws nine words, whatever the arguments are and whatever becomes of it:
 *
 *      1     whether it is mixed                            24 bits, below p
 *      2     whether it is cut, where both are possible     24 bits, below switch_p
 *      3-5   lam, from Beta(alpha, alpha)                   U, V and the sign: below
 *      6-9   the box: the middle's column and row; or, with minmax, height, width, top and left
 *
 * Unit u (0: the whole batch; 1 + i: sample or pair i) has the seed dlp_philox_seed(seed, u) and the step number 1.
 *
 * lam: with a Student's t variate T of 2 alpha degrees of freedom, (1 + T / sqrt(2 alpha + T^2)) / 2 is Beta(alpha,
 * alpha), and T is sqrt(2 alpha (U^(-1 / alpha) - 1)) cos(2 pi V) (Bailey: "Polar generation of random variates with
 * the t-distribution", 1994). So two uniform numbers and a sign are enough for any alpha, and none is rejected. Only
 * additions, multiplications, divisions and square roots take part: lam is the same on all machines. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum mix_mode {
        MIX_BATCH, /* one lam, and one box, for all samples */
        MIX_PAIR,  /* sample i and its mirror image in the batch share theirs */
        MIX_ELEM,  /* each sample has its own */
};

/* Also whose boxes they are: a side of odd length keeps its last row or column with timm and loses it with torchvision.
 */
enum mix_partner {
        MIX_MIRRORED, /* sample i is mixed with sample n - 1 - i: timm's flip(0) */
        MIX_PREVIOUS, /* with sample i - 1, the first one with the last: torchvision's roll(1) */
};

/* What the text says. All zero: nothing is mixed. */
struct mix_terms {
        double mixup, cutmix; /* alpha of each; 0: never */
        double p, switch_p;   /* that a unit is mixed; that it is cut rather than mixed */
        double minmax[2];     /* of a box's sides, as parts of the picture's, and alpha is 1; 0, 0: not given */
        double smoothing;     /* of labels */
        uint32_t n_classes;   /* of labels that are numbers of classes; 0: there are none */
        uint32_t mode;        /* enum mix_mode */
        uint32_t partner;     /* enum mix_partner */
        uint32_t keeps_lam;   /* 1: lam of a cut is as drawn; 0: it is corrected to the real area of the box */
};

struct mix_box {
        uint32_t top, bottom, left, right; /* bottom and right are outside */
};

struct mix_draw {
        double lam; /* 1: the sample stays as it is */
        bool is_cut;
        struct mix_box box; /* if it is cut */
};

/* The alpha of cutmix; 0: nothing is cut. */
static inline double mix_cuts(const struct mix_terms *terms) {
        return terms->minmax[1] > 0 ? 1 : terms->cutmix;
}

static inline bool mix_is_some(const struct mix_terms *terms) {
        return terms->mixup > 0 || mix_cuts(terms) > 0;
}

/* What sample i of n draws. `seed` is that of the part of the pipeline; height and width are those of its pictures; 0
 * where there are none, and then nothing is cut. */
void mix_draw(const struct mix_terms *terms, uint64_t seed, uint32_t epoch, uint64_t position, uint32_t i, uint32_t n,
              uint32_t height, uint32_t width, struct mix_draw *ret_draw);

/* Beta(alpha, alpha) of three words. */
double mix_beta(double alpha, const uint32_t words[3]);
