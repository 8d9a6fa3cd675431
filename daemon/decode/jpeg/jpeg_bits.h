/* decode/jpeg/jpeg_bits.h: the next bits of a scan. Private to this floor.
 *
 * The bytes are read eight at a time, without a check for their end: the caller makes sure that there are enough
 * (jpeg_scan.h). So a refill is a load, a shift and two small sums, without a branch. */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

struct jpeg_bits {
        uint64_t next;   /* the bits, the first one topmost */
        uint64_t n_bits; /* of them, in the low six bits; the others are rubbish, so that it may be counted down by more
                          */
        const uint8_t *at; /* the first byte that is not, or not wholly, in `next` */
};

/* Afterwards there are at least 56 bits. */
static inline void bits_refill(struct jpeg_bits *bits) {
        uint64_t eight;

        memcpy(&eight, bits->at, sizeof(eight));
        bits->next |= be64toh(eight) >> (bits->n_bits & 63);
        bits->at += ((bits->n_bits & 63) ^ 63) >> 3;
        bits->n_bits |= 56;
}

/* Uses only the low six bits of n. */
static inline void bits_drop(struct jpeg_bits *bits, uint64_t n) {
        bits->next <<= n & 63;
        bits->n_bits -= n;
}

/* How many bits are left before `end`; negative: more were read than there are. */
static inline int64_t bits_left(const struct jpeg_bits *bits, const uint8_t *end) {
        return (end - bits->at) * 8 + (int64_t)(bits->n_bits & 63);
}
