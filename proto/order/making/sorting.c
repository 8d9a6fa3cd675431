#include "proto/order/making/sorting.h"

#include <errno.h>
#include <string.h>

#define DIGIT_BITS 8u
#define N_DIGITS   (64 / DIGIT_BITS)
#define N_VALUES   (1u << DIGIT_BITS)
#define CHUNK      65536u

uint64_t dlp_key_of_real(double number) {
        uint64_t bits;

        number += 0.0; /* -0 is 0 */
        memcpy(&bits, &number, sizeof(bits));
        return bits >> 63 ? ~bits : bits | 1ull << 63;
}

uint64_t dlp_key_of_whole(int64_t number) {
        return (uint64_t)number ^ 1ull << 63;
}

static unsigned sorting_digit_of(uint64_t key, unsigned digit) {
        return (unsigned)(key >> digit * DIGIT_BITS) % N_VALUES;
}

/* How often each value of a digit occurs becomes where the first of it goes. False: all have the same. */
static bool make_places(uint64_t places[N_VALUES], uint64_t n) {
        uint64_t sum = 0;

        for (unsigned i = 0; i < N_VALUES; i++) {
                uint64_t count = places[i];

                if (count == n)
                        return false;
                places[i] = sum;
                sum += count;
        }
        return true;
}

uint64_t *dlp_sort_words(uint64_t *words, uint64_t *others, uint64_t n, unsigned shift) {
        for (unsigned at = shift; at < 64; at += DIGIT_BITS) {
                uint64_t places[N_VALUES] = { 0 }, *swap, rest = 0;

                for (uint64_t i = 0; i < n; i++) {
                        places[words[i] >> at & (N_VALUES - 1)]++;
                        rest |= words[i] >> at;
                }
                if (rest == 0)
                        break;
                if (!make_places(places, n))
                        continue;
                for (uint64_t i = 0; i < n; i++)
                        others[places[words[i] >> at & (N_VALUES - 1)]++] = words[i];
                swap = words;
                words = others;
                others = swap;
        }
        return words;
}

/* ---- keys and samples ------------------------------------------------------------------------------------------ */

struct side {
        uint64_t *keys;
        struct dlp_order order;
};

static int sorting_count(struct dlp_making *making, const uint64_t *keys, uint64_t n,
                         uint64_t places[N_DIGITS][N_VALUES]) {
        for (uint64_t i = 0; i < n; i++) {
                for (unsigned digit = 0; digit < N_DIGITS; digit++)
                        places[digit][sorting_digit_of(keys[i], digit)]++;
                if (i % CHUNK == CHUNK - 1 && !making->go_on(making, 0, n))
                        return -ECANCELED;
        }
        return 0;
}

static int sorting_move(struct dlp_making *making, const struct side *from, const struct side *to, unsigned digit,
                        uint64_t places[N_VALUES]) {
        for (uint64_t i = 0; i < from->order.n_positions; i++) {
                uint64_t place = places[sorting_digit_of(from->keys[i], digit)]++;

                to->keys[place] = from->keys[i];
                dlp_order_set_sample(&to->order, place, dlp_order_sample(&from->order, i));
                if (i % CHUNK == CHUNK - 1 && !making->go_on(making, 0, from->order.n_positions))
                        return -ECANCELED;
        }
        return 0;
}

static int sorting_sort(struct dlp_making *making, struct side *from, struct side *to) {
        uint64_t places[N_DIGITS][N_VALUES] = { 0 }, n = from->order.n_positions;
        int r = sorting_count(making, from->keys, n, places);

        for (unsigned digit = 0; r == 0 && digit < N_DIGITS; digit++) {
                struct side swap = *from;

                if (!make_places(places[digit], n))
                        continue;
                r = sorting_move(making, from, to, digit, places[digit]);
                *from = *to;
                *to = swap;
        }
        return r;
}

int dlp_making_sort(struct dlp_making *making, uint64_t *keys, struct dlp_order *order) {
        struct side from = { .keys = keys, .order = *order }, to = { 0 };
        uint64_t n = order->n_positions, *others;
        int r;

        r = dlp_making_allocate(making, n, sizeof(*others), &others);
        if (r < 0)
                return r;
        to.keys = others;
        r = dlp_making_samples(making, n, &to.order);
        if (r == 0) {
                r = sorting_sort(making, &from, &to);
                if (from.keys != keys)
                        memcpy(keys, others, n * sizeof(*keys));
                *order = from.order;
                dlp_making_free(making, &to.order);
        }
        making->release(making, others, n * sizeof(*others));
        return r;
}
