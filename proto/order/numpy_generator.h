/* order/numpy_generator.h: numpy.random.default_rng(seed), bit for bit, as far as orders of other programs need it.
 *
 * Its generator is PCG64 (XSL-RR: 128 bits of state, 64 bits a draw), whose state comes from the seed through numpy's
 * SeedSequence. It is another one than that of RandomState (order/numpy_random.h). libc only, no allocation, no locks;
 * a generator belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct dlp_numpy_generator {
        unsigned __int128 state, increment;
        uint32_t high; /* half of a draw of which only the low half was used */
        bool has_high;
};

/* numpy.random.default_rng(seed), 0 <= seed < 2^64. */
void dlp_numpy_generator_seed(struct dlp_numpy_generator *generator, uint64_t seed);

/* A draw of 64 bits; one of 32 bits, of which a draw of 64 has two. */
uint64_t dlp_numpy_generator_u64(struct dlp_numpy_generator *generator);
uint32_t dlp_numpy_generator_u32(struct dlp_numpy_generator *generator);

/* A number from 0 to `most`, as Generator.shuffle() and permutation() draw it: masked, and drawn again until it fits.
 */
uint64_t dlp_numpy_generator_at_most(struct dlp_numpy_generator *generator, uint64_t most);
