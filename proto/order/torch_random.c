#include "proto/order/torch_random.h"

/* MT19937 (Matsumoto and Nishimura, 1998) with torch's rules for making values of its words. */

#include <assert.h>

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

/* Three stretches instead of indices modulo N: each reads only words that it may already, or not yet, have replaced. */
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

int64_t dlp_torch_random63(struct dlp_torch_random *random) {
        return (int64_t)(dlp_torch_u64(random) & 0x7fffffffffffffffull);
}

float dlp_torch_f32(struct dlp_torch_random *random) {
        return (float)(dlp_torch_u32(random) & 0xffffffu) * 0x1p-24f;
}

double dlp_torch_f64(struct dlp_torch_random *random) {
        return (double)(dlp_torch_u64(random) & ((1ull << 53) - 1)) * 0x1p-53;
}

int64_t dlp_torch_randint(struct dlp_torch_random *random, int64_t low, int64_t high, enum dlp_torch_compat compat) {
        uint64_t wide_from = compat == DLP_TORCH_2_7 ? 1ull << 28 : 1ull << 32;
        uint64_t range = (uint64_t)high - (uint64_t)low;
        uint64_t value;

        assert(low < high);
        value = range >= wide_from ? dlp_torch_u64(random) : dlp_torch_u32(random);
        return (int64_t)((uint64_t)low + value % range); /* the bias of the modulo is part of the contract */
}
