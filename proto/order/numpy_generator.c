#include "proto/order/numpy_generator.h"

/* ---- SeedSequence: 128 bits of entropy, mixed, and 256 bits made of them ------------------------------------------
 */

#define POOL 4u /* words */

static uint32_t hash_in(uint32_t value, uint32_t *constant) {
        value ^= *constant;
        *constant *= 0x931e8875u;
        value *= *constant;
        return value ^ value >> 16;
}

static uint32_t hash_out(uint32_t value, uint32_t *constant) {
        value ^= *constant;
        *constant *= 0x58f38dedu;
        value *= *constant;
        return value ^ value >> 16;
}

static uint32_t numpy_generator_mix(uint32_t x, uint32_t y) {
        uint32_t result = x * 0xca01f9ddu - y * 0x4973f715u;

        return result ^ result >> 16;
}

/* The entropy is the seed's 32-bit words, the lower one first; missing ones count as 0. */
static void expand_seed(uint64_t seed, uint64_t ret_words[4]) {
        const uint32_t entropy[POOL] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
        uint32_t pool[POOL], in = 0x43b0d7e5u, out = 0x8b51f9ddu, halves[8];

        for (uint32_t i = 0; i < POOL; i++)
                pool[i] = hash_in(entropy[i], &in);
        for (uint32_t from = 0; from < POOL; from++)
                for (uint32_t to = 0; to < POOL; to++)
                        if (from != to)
                                pool[to] = numpy_generator_mix(pool[to], hash_in(pool[from], &in));
        for (uint32_t i = 0; i < 8; i++)
                halves[i] = hash_out(pool[i % POOL], &out);
        for (uint32_t i = 0; i < 4; i++)
                ret_words[i] = (uint64_t)halves[2 * i + 1] << 32 | halves[2 * i];
}

/* ---- PCG64 ----------------------------------------------------------------------------------------------------- */

static void numpy_generator_step(struct dlp_numpy_generator *generator) {
        const unsigned __int128 multiplier = (unsigned __int128)0x2360ed051fc65da4ull << 64 | 0x4385df649fccf645ull;

        generator->state = generator->state * multiplier + generator->increment;
}

void dlp_numpy_generator_seed(struct dlp_numpy_generator *generator, uint64_t seed) {
        uint64_t words[4];

        expand_seed(seed, words);
        *generator = (struct dlp_numpy_generator){
                .increment = ((unsigned __int128)words[2] << 64 | words[3]) << 1 | 1,
        };
        numpy_generator_step(generator);
        generator->state += (unsigned __int128)words[0] << 64 | words[1];
        numpy_generator_step(generator);
}

uint64_t dlp_numpy_generator_u64(struct dlp_numpy_generator *generator) {
        uint64_t high, low, folded;
        unsigned turn;

        numpy_generator_step(generator);
        high = (uint64_t)(generator->state >> 64);
        low = (uint64_t)generator->state;
        folded = high ^ low;
        turn = (unsigned)(high >> 58);
        return folded >> turn | folded << (-turn & 63);
}

uint32_t dlp_numpy_generator_u32(struct dlp_numpy_generator *generator) {
        uint64_t word;

        if (generator->has_high) {
                generator->has_high = false;
                return generator->high;
        }
        word = dlp_numpy_generator_u64(generator);
        generator->high = (uint32_t)(word >> 32);
        generator->has_high = true;
        return (uint32_t)word;
}

uint64_t dlp_numpy_generator_at_most(struct dlp_numpy_generator *generator, uint64_t most) {
        uint64_t mask = most, value;

        if (most == 0)
                return 0;
        for (unsigned shift = 1; shift < 64; shift *= 2)
                mask |= mask >> shift;
        do
                value = (most <= UINT32_MAX ? dlp_numpy_generator_u32(generator) : dlp_numpy_generator_u64(generator)) &
                        mask;
        while (value > most);
        return value;
}
