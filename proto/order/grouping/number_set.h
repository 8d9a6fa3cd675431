/* order/grouping/number_set.h: a set of whole numbers below a bound, which finds the nearest member at once.
 *
 * A bit for each number, and above it levels of bits that say which 64 bits below have any: so each search looks at
 * two words a level, and four levels are enough for 2^24 numbers. Plain memory of the caller, which begins as zeroes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DLP_NUMBER_SET_LEVELS 4u
#define DLP_NUMBER_SET_MAX    (1u << 24)
#define DLP_NUMBER_NONE       UINT32_MAX

struct dlp_number_set {
        uint64_t *words[DLP_NUMBER_SET_LEVELS];
        uint32_t n_words[DLP_NUMBER_SET_LEVELS];
};

/* Sizes for the numbers 0 .. n - 1, n at most DLP_NUMBER_SET_MAX + 1. Returns how many words of 64 bits it needs. */
uint64_t dlp_number_set_plan(struct dlp_number_set *set, uint64_t n);

/* Sets it up over that many zeroed words. */
void dlp_number_set_init(struct dlp_number_set *set, uint64_t n, uint64_t *words);

static inline bool dlp_number_set_has(const struct dlp_number_set *set, uint32_t number) {
        return set->words[0][number >> 6] >> (number & 63) & 1;
}

static inline void dlp_number_set_add(const struct dlp_number_set *set, uint32_t number) {
        for (uint32_t level = 0; level < DLP_NUMBER_SET_LEVELS; level++) {
                uint64_t *word = &set->words[level][number >> 6], before = *word;

                *word = before | 1ull << (number & 63);
                if (before != 0)
                        break;
                number >>= 6;
        }
}

static inline void dlp_number_set_remove(const struct dlp_number_set *set, uint32_t number) {
        for (uint32_t level = 0; level < DLP_NUMBER_SET_LEVELS; level++) {
                uint64_t *word = &set->words[level][number >> 6];

                *word &= ~(1ull << (number & 63));
                if (*word != 0)
                        break;
                number >>= 6;
        }
}

/* The smallest member that is at least `number`; DLP_NUMBER_NONE: there is none. */
static inline uint32_t dlp_number_set_at_least(const struct dlp_number_set *set, uint32_t number) {
        for (uint32_t level = 0; level < DLP_NUMBER_SET_LEVELS && number >> 6 < set->n_words[level]; level++) {
                uint64_t word = set->words[level][number >> 6] & ~0ull << (number & 63);

                if (word != 0) {
                        number = (number & ~63u) | (uint32_t)__builtin_ctzll(word);
                        while (level-- > 0)
                                number = number << 6 | (uint32_t)__builtin_ctzll(set->words[level][number]);
                        return number;
                }
                number = (number >> 6) + 1;
        }
        return DLP_NUMBER_NONE;
}

/* The largest member that is at most `number`. */
static inline uint32_t dlp_number_set_at_most(const struct dlp_number_set *set, uint32_t number) {
        for (uint32_t level = 0; level < DLP_NUMBER_SET_LEVELS; level++) {
                uint64_t word = set->words[level][number >> 6] & ~0ull >> (63 - (number & 63));

                if (word != 0) {
                        number = (number & ~63u) | (63 - (uint32_t)__builtin_clzll(word));
                        while (level-- > 0)
                                number = number << 6 | (63 - (uint32_t)__builtin_clzll(set->words[level][number]));
                        return number;
                }
                if (number >> 6 == 0)
                        break;
                number = (number >> 6) - 1;
        }
        return DLP_NUMBER_NONE;
}
