#include "proto/order/philox.h"

/* Multipliers and key increments of the paper. */
#define MULTIPLIER_0 0xd2511f53u
#define MULTIPLIER_1 0xcd9e8d57u
#define WEYL_0       0x9e3779b9u
#define WEYL_1       0xbb67ae85u
#define N_ROUNDS     10u

void dlp_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_words[4]) {
        uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
        uint32_t key_0 = key[0], key_1 = key[1];

        for (unsigned round = 0; round < N_ROUNDS; round++) {
                uint64_t product_0 = (uint64_t)MULTIPLIER_0 * a;
                uint64_t product_1 = (uint64_t)MULTIPLIER_1 * c;

                a = (uint32_t)(product_1 >> 32) ^ b ^ key_0;
                b = (uint32_t)product_1;
                c = (uint32_t)(product_0 >> 32) ^ d ^ key_1;
                d = (uint32_t)product_0;
                key_0 += WEYL_0;
                key_1 += WEYL_1;
        }
        ret_words[0] = a;
        ret_words[1] = b;
        ret_words[2] = c;
        ret_words[3] = d;
}

void dlp_philox_init(struct dlp_philox *philox, uint64_t seed, uint32_t epoch, uint64_t sample, uint16_t step) {
        *philox = (struct dlp_philox){
                .key = { (uint32_t)seed, (uint32_t)(seed >> 32) },
                .counter = { (uint32_t)step << 16, epoch, (uint32_t)sample, (uint32_t)(sample >> 32) },
        };
}

uint64_t dlp_philox_seed(uint64_t seed, uint64_t draws) {
        uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) }, words[4];
        uint32_t counter[4] = { (uint32_t)draws, (uint32_t)(draws >> 32), 0, 0 };

        if (draws == 0)
                return seed;
        dlp_philox_block(counter, key, words);
        return (uint64_t)words[1] << 32 | words[0];
}

uint32_t dlp_philox_u32(struct dlp_philox *philox) {
        if (philox->n_left == 0) {
                dlp_philox_block(philox->counter, philox->key, philox->words);
                philox->counter[0]++; /* 65,536 blocks a step; the most that a step draws is 12 */
                philox->n_left = 4;
        }
        return philox->words[4 - philox->n_left--];
}

float dlp_philox_f32(struct dlp_philox *philox) {
        return (float)(dlp_philox_u32(philox) >> 8) * 0x1p-24f;
}

double dlp_philox_f64(struct dlp_philox *philox) {
        uint64_t high = dlp_philox_u32(philox);
        uint64_t bits = high << 32 | dlp_philox_u32(philox);

        return (double)(bits >> 11) * 0x1p-53;
}

uint32_t dlp_philox_below(struct dlp_philox *philox, uint32_t n) {
        return (uint32_t)((uint64_t)dlp_philox_u32(philox) * n >> 32);
}
