/* order/making/sorting.h: samples sorted by a key. Stable, in time that grows with the number of samples alone. */
#pragma once

#include "proto/order/making/making.h"

/* Sorts an order without starts and pieces by keys[0 .. n_positions - 1], the smallest first; equal ones keep their
 * sequence. The keys move with the samples. Takes as much memory again as both have. -ENOMEM, -ECANCELED. */
int dlp_making_sort(struct dlp_making *making, uint64_t *keys, struct dlp_order *order);

/* Sorts n words by their bits from `shift` on; equal ones keep their sequence. `others` has room for n. Returns where
 * the result is: in `words` or in `others`. */
uint64_t *dlp_sort_words(uint64_t *words, uint64_t *others, uint64_t n, unsigned shift);

/* A key that sorts as the number does, which must not be NaN. */
uint64_t dlp_key_of_real(double number);
uint64_t dlp_key_of_whole(int64_t number);
