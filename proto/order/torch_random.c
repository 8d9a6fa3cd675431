#include "proto/order/torch_random.h"

/* MT19937 (Matsumoto and Nishimura, 1998) with torch's rules for making values from its words. */

#define N DLP_TORCH_BLOCK_WORDS
#define M 397u

void dlp_torch_seed(struct dlp_torch_random *random, uint64_t seed) {
        uint32_t word = (uint32_t)seed;

        random->state[0] = word;
        for (uint32_t i = 1; i < N; i++) {
                word = 1812433253u * (word ^ word >> 30) + i;
                random->state[i] = word;
        }
        random->n_used = N;
}

/* One step of the recurrence: the high bit of `current`, the low 31 bits of `next`. */
static inline uint32_t twist(uint32_t far, uint32_t current, uint32_t next) {
        uint32_t joined = (current & 0x80000000u) | (next & 0x7fffffffu);

        return far ^ joined >> 1 ^ ((0u - (joined & 1u)) & 0x9908b0dfu);
}

static inline uint32_t temper(uint32_t word) {
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c5680u;
        word ^= word << 15 & 0xefc60000u;
        return word ^ word >> 18;
}

/* Three loops instead of indices modulo N: each loop reads only words that are already replaced, or still old, as the
 * recurrence needs them. */
void dlp_torch_refill(struct dlp_torch_random *random) {
        uint32_t *state = random->state;

        for (uint32_t i = 0; i < N - M; i++)
                state[i] = twist(state[i + M], state[i], state[i + 1]);
        for (uint32_t i = N - M; i < N - 1; i++)
                state[i] = twist(state[i + M - N], state[i], state[i + 1]);
        state[N - 1] = twist(state[M - 1], state[N - 1], state[0]);

        for (uint32_t i = 0; i < N; i++)
                random->words[i] = temper(state[i]);
        random->n_used = 0;
}
