/* tests/fuzz/damage.h: makes a damaged file out of a good one, the same way for the same numbers.
 *
 * It knows what a JPEG is made of, so that most damage lies where decoders decide something: segments are swapped and
 * doubled, fields of headers changed, markers put into the scan. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct random {
        uint64_t state;
};

/* Numbers of a round depend on the seed and the round alone. */
struct random random_of(uint64_t seed, uint64_t round);

/* 0 .. n-1; n is at least 1. */
uint32_t draw(struct random *random, uint32_t n);

/* Bytes that may grow up to their room. */
struct bytes {
        uint8_t *at;
        size_t n, room;
};

/* Damages `file` in up to a few places. Parts may be taken from `other`. */
void damage(struct bytes *file, const struct bytes *other, struct random *random);
