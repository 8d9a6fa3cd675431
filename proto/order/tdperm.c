#include "proto/order/tdperm.h"

#include "proto/order/philox.h"

#define STEP_OF_ORDER 0xffffu /* the step number for the counter of an order's draws; no step of a pipeline has it */
#define BITS_MIN      8u      /* so halves have four bits at least: with fewer, the rounds mix too little */

/* Multipliers of the round function. */
#define MULTIPLIER_1 0x9e3779b97f4a7c15ull
#define MULTIPLIER_2 0xd6e8feb86659fd93ull

static uint64_t tdperm_round_of(uint64_t half, uint64_t key, uint32_t n_bits) {
        uint64_t mixed = (half ^ key) * MULTIPLIER_1;

        mixed ^= mixed >> 32;
        mixed *= MULTIPLIER_2;
        mixed ^= mixed >> 32;
        mixed *= MULTIPLIER_2;
        return mixed >> (64 - n_bits);
}

static uint64_t forth(const struct dlp_tdperm *tdperm, uint64_t value) {
        uint64_t high = value >> tdperm->low_bits, low = value & ((1ull << tdperm->low_bits) - 1);

        for (unsigned i = 0; i < DLP_TDPERM_ROUNDS; i += 2) {
                high ^= tdperm_round_of(low, tdperm->keys[i], tdperm->high_bits);
                low ^= tdperm_round_of(high, tdperm->keys[i + 1], tdperm->low_bits);
        }
        return high << tdperm->low_bits | low;
}

static uint32_t bits_for(uint64_t n) {
        uint32_t n_bits = BITS_MIN;

        while (1ull << n_bits < n)
                n_bits++;
        return n_bits;
}

void dlp_tdperm_init(struct dlp_tdperm *tdperm, uint64_t seed, uint64_t epoch, uint64_t stream, uint64_t n) {
        uint32_t n_bits = bits_for(n);
        struct dlp_philox philox;

        *tdperm = (struct dlp_tdperm){ .n = n, .high_bits = n_bits / 2, .low_bits = n_bits - n_bits / 2 };
        dlp_philox_init(&philox, seed, (uint32_t)epoch, stream, STEP_OF_ORDER);
        for (unsigned i = 0; i < DLP_TDPERM_ROUNDS; i++) {
                uint64_t low = dlp_philox_u32(&philox);

                tdperm->keys[i] = (uint64_t)dlp_philox_u32(&philox) << 32 | low;
        }
        tdperm->flip = n >= 2 ? dlp_philox_u32(&philox) & 1 : 0;
}

uint64_t dlp_tdperm_at(const struct dlp_tdperm *tdperm, uint64_t position) {
        uint64_t index = position;

        do
                index = forth(tdperm, index);
        while (index >= tdperm->n);
        return index < 2 ? index ^ tdperm->flip : index;
}
