#include "proto/order/grouping/number_set.h"

uint64_t dlp_number_set_plan(struct dlp_number_set *set, uint64_t n) {
        uint64_t n_words = 0;

        for (uint32_t level = 0; level < DLP_NUMBER_SET_LEVELS; level++) {
                n = (n + 63) / 64;
                set->n_words[level] = (uint32_t)n;
                n_words += n;
        }
        return n_words;
}

void dlp_number_set_init(struct dlp_number_set *set, uint64_t n, uint64_t *words) {
        dlp_number_set_plan(set, n);
        for (uint32_t level = 0; level < DLP_NUMBER_SET_LEVELS; level++) {
                set->words[level] = words;
                words += set->n_words[level];
        }
}
