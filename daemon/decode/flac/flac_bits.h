/* decode/flac/flac_bits.h: the next bits of a block, the highest of a byte first. Private to this folder.
 *
 * After the last byte come zeroes; bits_are_over() tells. So no read needs a check of its own, and a loop that waits
 * for a 1 is bounded by n_bits. */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BITS_AT_LEAST 56u /* after flac_bits_refill() */

struct flac_bits {
        uint64_t next;   /* the bits, the first one topmost */
        uint32_t n_bits; /* of them that count; below them there may be more of the file's bits, never other ones */
        const uint8_t *at, *end;
        uint32_t n_beyond; /* bits that were made up after the last byte */
};

static inline void bits_init(struct flac_bits *bits, const uint8_t *bytes, const uint8_t *end) {
        *bits = (struct flac_bits){ .at = bytes, .end = end };
}

static inline void bits_refill_slowly(struct flac_bits *bits) {
        for (; bits->n_bits <= BITS_AT_LEAST; bits->n_bits += 8) {
                if (bits->at < bits->end)
                        bits->next |= (uint64_t)*bits->at++ << (BITS_AT_LEAST - bits->n_bits);
                else
                        bits->n_beyond += 8;
        }
}

static inline void flac_bits_refill(struct flac_bits *bits) {
        uint64_t eight;

        if (bits->end - bits->at < 8) {
                bits_refill_slowly(bits);
                return;
        }
        memcpy(&eight, bits->at, sizeof(eight));
        bits->next |= be64toh(eight) >> bits->n_bits;
        bits->at += (63 - bits->n_bits) >> 3;
        bits->n_bits |= BITS_AT_LEAST;
}

/* 1 to 57 of the bits that are there; the caller has refilled. */
static inline uint64_t bits_take(struct flac_bits *bits, uint32_t n) {
        uint64_t value = bits->next >> (64 - n);

        bits->next <<= n;
        bits->n_bits -= n;
        return value;
}

/* The next n bits, 0 to 32. */
static inline uint32_t bits_get(struct flac_bits *bits, uint32_t n) {
        if (n == 0)
                return 0;
        flac_bits_refill(bits);
        return (uint32_t)bits_take(bits, n);
}

/* The next n bits as a number with a sign, 1 to 32. */
static inline int32_t bits_get_signed(struct flac_bits *bits, uint32_t n) {
        return (int32_t)(bits_get(bits, n) << (32 - n)) >> (32 - n);
}

/* How many zeroes stand before the next 1, which is taken, too. -1: more than `max`, or the bytes are over. */
static inline int64_t bits_get_unary(struct flac_bits *bits, uint32_t max) {
        for (uint32_t n = 0; n <= max && bits->n_beyond < 64;) {
                uint32_t n_zeroes;

                flac_bits_refill(bits);
                if (bits->next >> (64 - BITS_AT_LEAST) == 0) {
                        (void)bits_take(bits, BITS_AT_LEAST);
                        n += BITS_AT_LEAST;
                        continue;
                }
                n_zeroes = (uint32_t)__builtin_clzll(bits->next);
                (void)bits_take(bits, n_zeroes + 1);
                return n + n_zeroes <= max ? (int64_t)n + n_zeroes : -1;
        }
        return -1;
}

/* Were more bits read than there are? */
static inline bool bits_are_over(const struct flac_bits *bits) {
        return bits->n_beyond > bits->n_bits;
}

/* The first byte of which no bit was read. */
static inline const uint8_t *bits_byte(const struct flac_bits *bits) {
        return bits->at - (bits->n_bits - bits->n_beyond) / 8;
}
