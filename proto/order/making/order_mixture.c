#include "proto/order/making/order_mixture.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "proto/order/making/order_draws.h"

/* ---- parts ----------------------------------------------------------------------------------------------------- */

static int refuse_part(const struct dlp_making_terms *terms, const char *name, struct why *why) {
        char names[256] = "";
        size_t length = 0;

        for (uint32_t i = 0; i < terms->n_parts && length < sizeof(names); i++)
                length += (size_t)snprintf(names + length, sizeof(names) - length, " %s", terms->parts[i].name);
        return why_set(why, -EINVAL, "mix: there is no part \"%s\"; the parts are:%s", name, names);
}

/* A part that was named by its path is called by the last word of the path: "b" of `/a/b {split="0:90%"}`. */
static bool is_last_word(const char *path, const char *name) {
        const char *options = strstr(path, " {"), *end = options ? options : path + strlen(path);
        size_t n = strlen(name);

        if (path[0] != '/')
                return false;
        while (end > path && end[-1] == '/')
                end--;
        return (size_t)(end - path) > n && end[-(ptrdiff_t)n - 1] == '/' && strncmp(end - n, name, n) == 0;
}

static int order_mixture_find_part(const struct dlp_making_terms *terms, const char *name, struct dlp_part *ret_part,
                                   struct why *why) {
        const struct dlp_part *found = NULL;

        for (uint32_t i = 0; i < terms->n_parts; i++) {
                const struct dlp_part *part = &terms->parts[i];

                if (strcmp(part->name, name) == 0) {
                        *ret_part = *part;
                        return 0;
                }
                if (!is_last_word(part->name, name))
                        continue;
                if (found)
                        return why_set(why, -EINVAL,
                                       "mix: two parts end in \"%s\": %s and %s; make links of other names", name,
                                       found->name, part->name);
                found = part;
        }
        if (!found)
                return refuse_part(terms, name, why);
        *ret_part = *found;
        return 0;
}

static int order_mixture_find_parts(const struct dlp_mixture_terms *mixing, const struct dlp_making_terms *terms,
                                    struct dlp_mixture *mixture, struct why *why) {
        int r = 0;

        if (terms->n_parts == 0)
                return why_set(why, -EINVAL, "mix: the dataset is not made of several; there are no parts to mix");
        if (!mixing->weights->is_set && terms->n_parts > KIND_LIST_MAX)
                return why_set(why, -EINVAL, "mix: %u parts; at most %u are allowed", terms->n_parts, KIND_LIST_MAX);
        mixture->n_parts = mixing->weights->is_set ? mixing->weights->n_list : terms->n_parts;
        for (uint32_t i = 0; r == 0 && i < mixture->n_parts; i++)
                if (mixing->weights->is_set)
                        r = order_mixture_find_part(terms, mixing->weights->names[i], &mixture->parts[i], why);
                else
                        mixture->parts[i] = terms->parts[i];
        return r;
}

/* ---- weights --------------------------------------------------------------------------------------------------- */

/* Weight i at knot k: 0 is what the text begins with, at epoch 0. */
static double weight_at(const struct dlp_mixture_terms *mixing, const struct dlp_mixture *mixture, uint32_t knot,
                        uint32_t i) {
        if (knot > 0)
                return mixing->to->list[(knot - 1) * mixture->n_parts + i];
        return mixing->weights->is_set ? mixing->weights->list[i] : (double)mixture->parts[i].n_samples;
}

static double order_mixture_weight_of(const struct dlp_mixture_terms *mixing, const struct dlp_mixture *mixture,
                                      uint64_t epoch, uint32_t i) {
        double before = 0;

        for (uint32_t knot = 0; knot < mixing->at->n_list; knot++) {
                double end = mixing->at->list[knot];

                if ((double)epoch < end) {
                        double way = ((double)epoch - before) / (end - before);

                        return weight_at(mixing, mixture, knot, i) * (1 - way) +
                               weight_at(mixing, mixture, knot + 1, i) * way;
                }
                before = end;
        }
        return weight_at(mixing, mixture, mixing->at->n_list, i);
}

/* numpy.sum(): eight sums side by side from eight elements on. */
static double order_mixture_sum_of(const double *numbers, uint32_t n) {
        double sum = 0, sums[8];
        uint32_t i = 0;

        if (n >= 8) {
                for (; i < 8; i++)
                        sums[i] = numbers[i];
                for (; i + 8 <= n; i += 8)
                        for (uint32_t k = 0; k < 8; k++)
                                sums[k] += numbers[i + k];
                sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
        }
        for (; i < n; i++)
                sum += numbers[i];
        return sum;
}

static void normalise(double *shares, uint32_t n) {
        double sum = order_mixture_sum_of(shares, n);

        for (uint32_t i = 0; i < n; i++)
                shares[i] /= sum;
}

static int make_shares(const struct dlp_mixture_terms *mixing, uint64_t epoch, struct dlp_mixture *mixture,
                       struct why *why) {
        double sum = 0, largest = 0;

        for (uint32_t i = 0; i < mixture->n_parts; i++) {
                mixture->shares[i] = order_mixture_weight_of(mixing, mixture, epoch, i);
                sum += mixture->shares[i];
                largest = fmax(largest, mixture->shares[i]);
                if (mixture->shares[i] > 0 && mixture->parts[i].n_samples == 0)
                        return why_set(why, -EINVAL,
                                       "mix: part \"%s\" has no samples, but the weight %g; give it the weight 0",
                                       mixture->parts[i].name, mixture->shares[i]);
        }
        if (!(sum > 0) || !isfinite(sum))
                return why_set(why, -EINVAL, "mix: the weights add up to %g in epoch %llu; some must be above 0", sum,
                               (unsigned long long)epoch);
        for (uint32_t i = 0; mixing->temperature != 1 && i < mixture->n_parts; i++)
                if (mixture->shares[i] > 0)
                        mixture->shares[i] = dlp_exponential(
                                fmax(dlp_logarithm(mixture->shares[i] / largest) / mixing->temperature, -700));
        normalise(mixture->shares, mixture->n_parts);
        normalise(mixture->shares, mixture->n_parts); /* Megatron does it twice, and the last bits may differ */
        return 0;
}

/* ---- numbers of samples ---------------------------------------------------------------------------------------- */

/* Shares of n, rounded so that they add up to n. */
static void share_out(struct dlp_mixture *mixture, uint64_t n) {
        double rests[KIND_LIST_MAX];
        uint64_t n_left = n;

        for (uint32_t i = 0; i < mixture->n_parts; i++) {
                double exact = (double)n * mixture->shares[i], whole = floor(exact);

                mixture->counts[i] = (uint64_t)whole < n_left ? (uint64_t)whole : n_left;
                rests[i] = mixture->shares[i] > 0 ? exact - whole : -1;
                n_left -= mixture->counts[i];
        }
        for (; n_left > 0; n_left--) {
                uint32_t first = 0;

                for (uint32_t i = 1; i < mixture->n_parts; i++)
                        if (rests[i] > rests[first])
                                first = i;
                mixture->counts[first]++;
                rests[first]--;
        }
        mixture->n = n;
}

static uint64_t n_samples_of(const struct dlp_mixture *mixture) {
        uint64_t n = 0;

        for (uint32_t i = 0; i < mixture->n_parts; i++)
                n += mixture->parts[i].n_samples;
        return n;
}

/* Has every part come at least once, or (`first`) none more than once? */
static bool is_until(const struct dlp_mixture *mixture, bool first) {
        for (uint32_t i = 0; i < mixture->n_parts; i++)
                if (mixture->shares[i] > 0 && (first ? mixture->counts[i] > mixture->parts[i].n_samples
                                                     : mixture->counts[i] < mixture->parts[i].n_samples))
                        return false;
        return true;
}

/* From the sizes and shares, and then a step or two: shares are rounded, and so are the numbers of samples. */
static int share_out_until(struct dlp_mixture *mixture, bool first, struct why *why) {
        double n = first ? INFINITY : 0;
        uint64_t n_whole;

        for (uint32_t i = 0; i < mixture->n_parts; i++)
                if (mixture->shares[i] > 0) {
                        double n_part = (double)mixture->parts[i].n_samples / mixture->shares[i];

                        n = first ? fmin(n, n_part) : fmax(n, n_part);
                }
        if (n > (double)DLP_SAMPLES_MAX)
                return why_set(
                        why, -EINVAL,
                        "mix: all parts come once in %.4g samples, at most %llu are allowed; give larger weights "
                        "to the large parts",
                        n, DLP_SAMPLES_MAX);
        n_whole = first ? (uint64_t)floor(n) : (uint64_t)ceil(n);
        share_out(mixture, n_whole);
        while (!is_until(mixture, first))
                share_out(mixture, first ? --n_whole : ++n_whole);
        if (n_whole == 0)
                return why_set(why, -EINVAL, "mix: a part comes a second time before any sample; give until=all");
        return 0;
}

static int count_each(const struct dlp_mixture_terms *mixing, uint64_t epoch, struct dlp_mixture *mixture,
                      struct why *why) {
        double sum = 0;

        for (uint32_t i = 0; i < mixture->n_parts; i++) {
                double weight = order_mixture_weight_of(mixing, mixture, epoch, i);

                weight = floor(mixing->how == DLP_MIXTURE_REPEAT ? weight * (double)mixture->parts[i].n_samples
                                                                 : weight);
                sum += weight;
                if (!(sum <= (double)DLP_SAMPLES_MAX))
                        return why_set(why, -EINVAL, "mix: %.4g samples an epoch; at most %llu are allowed", sum,
                                       DLP_SAMPLES_MAX);
                mixture->counts[i] = (uint64_t)weight;
        }
        mixture->n = (uint64_t)sum;
        if (mixture->n == 0)
                return why_set(why, -EINVAL, "mix: the weights leave no sample of %llu in epoch %llu",
                               (unsigned long long)n_samples_of(mixture), (unsigned long long)epoch);
        return 0;
}

static int order_mixture_count(const struct dlp_mixture_terms *mixing, uint64_t epoch, struct dlp_mixture *mixture,
                               struct why *why) {
        int r = make_shares(mixing, epoch, mixture, why);

        if (r < 0)
                return r;
        if (mixing->how == DLP_MIXTURE_REPEAT || mixing->how == DLP_MIXTURE_CHOOSE)
                return count_each(mixing, epoch, mixture, why);
        if (mixing->until->is_set)
                return share_out_until(mixture, mixing->until->choice == DLP_MIXTURE_FIRST, why);
        share_out(mixture, mixing->n->is_set ? mixing->n->whole : n_samples_of(mixture));
        return 0;
}

int dlp_mixture_make(const struct dlp_mixture_terms *mixing, const struct dlp_making_terms *terms, uint64_t epoch,
                     struct dlp_mixture *ret_mixture, struct why *why) {
        int r = order_mixture_find_parts(mixing, terms, ret_mixture, why);

        return r < 0 ? r : order_mixture_count(mixing, epoch, ret_mixture, why);
}

/* ---- over epochs ----------------------------------------------------------------------------------------------- */

void dlp_mixture_before(const struct dlp_mixture_terms *mixing, const struct dlp_making_terms *terms,
                        const struct dlp_mixture *mixture, uint64_t ret_passes[KIND_LIST_MAX],
                        uint64_t ret_samples[KIND_LIST_MAX]) {
        uint64_t epoch = terms->base.epoch;
        uint64_t n_changing = mixing->at->n_list > 0 ? (uint64_t)mixing->at->list[mixing->at->n_list - 1] : 0;
        unsigned __int128 sums[KIND_LIST_MAX] = { 0 };
        struct dlp_mixture past = *mixture;

        for (uint64_t i = 0; i < n_changing && i < epoch; i++) {
                if (order_mixture_count(mixing, i, &past, NULL) < 0)
                        continue; /* this epoch was refused */
                for (uint32_t k = 0; k < past.n_parts; k++)
                        sums[k] += past.counts[k];
        }
        for (uint32_t k = 0; k < mixture->n_parts; k++) {
                uint64_t size = mixture->parts[k].n_samples;

                if (epoch > n_changing) /* all of them as this one */
                        sums[k] += (unsigned __int128)mixture->counts[k] * (epoch - n_changing);
                ret_passes[k] = size > 0 ? (uint64_t)(sums[k] / size) : 0;
                ret_samples[k] = size > 0 ? (uint64_t)(sums[k] % size) : 0;
        }
}
