/* decode/jpeg/huffman.h: Huffman codes as tables that are looked up with the next bits. Private to this floor.
 *
 * One lookup of an AC table gives up to two coefficients: runs, sizes and magnitude bits together. The data that the
 * next lookup depends on (how many bits to drop, how far to move) are stored apart from the values, two bytes for each
 * entry, so that they stay in the first-level cache.
 *
 * Tables are kept and shared: most files carry the same ones. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HUFFMAN_LENGTHS        16u /* bits of the longest code */
#define HUFFMAN_DEFINITION_MAX (HUFFMAN_LENGTHS + 256u)
#define HUFFMAN_AC_BITS        12u /* index bits; more do not stay in the first-level cache, fewer give single symbols */
#define HUFFMAN_DC_BITS        9u

#define HUFFMAN_AC_ENTRIES (1u << HUFFMAN_AC_BITS)
#define HUFFMAN_DC_ENTRIES (1u << HUFFMAN_DC_BITS)

#define HUFFMAN_INVALID 1

/* As in the file: the number of codes of each length, then the symbols. */
struct huffman_definition {
        const uint8_t *bytes; /* NULL: not there */
        size_t n;
};

/* For codes that are longer than an index: the symbol of a code c of `length` bits, where c <= max_code[length], is
 * symbols[c + first[length]]. */
struct huffman_codes {
        int32_t max_code[HUFFMAN_LENGTHS + 1]; /* -1: no code has this length */
        int32_t first[HUFFMAN_LENGTHS + 1];
        uint8_t symbols[256];
};

/* A value of n bits follows its code. It begins with 1 if it is positive; otherwise 2^n - 1 must be subtracted. If
 * `shift` is such that (bits >> shift) ends with the value's last bit, (bits >> shift) + correction is the value, in 16
 * bits: the correction removes the code as well. `correction` and `shift` are the same for all values of one sign. */

/* A DC difference. */
struct huffman_dc_entry {
        int16_t correction;
        uint8_t shift;
        uint8_t n_bits; /* of code and value; 0: the code is too long for the index, or there is no such code */
};

struct huffman_dc {
        struct huffman_dc_entry entries[HUFFMAN_DC_ENTRIES];
        struct huffman_codes codes;
};

/* Result of a lookup: the position moves by up to 16 for a coefficient or a run of zeros. A lookup from a position of
 * at most 62 that leads to 63 or more is a special case: the block is full, or ends, or the code is slow. */
#define HUFFMAN_END  129u /* the block ends here: the last coefficient is at the position minus this */
#define HUFFMAN_SLOW 192u /* the code is too long for the index, or there is no such code */

/* The data that the next lookup depends on: bits to drop | how far to move << 8. */
#define HUFFMAN_STEP_SHIFT 8u

/* The first coefficient, and the second if its code and value fit into the index as well; otherwise the second repeats
 * the first. */
struct huffman_ac_entry {
        int16_t correction; /* of the first */
        int8_t second;      /* value */
        uint8_t shift;      /* of the first */
        uint8_t n_first;    /* bits of its code and value */
        uint8_t first_at;   /* how far the position moves to it */
        uint16_t step;      /* of both together */
};

struct huffman_ac {
        uint16_t steps[HUFFMAN_AC_ENTRIES]; /* those of the entries */
        struct huffman_ac_entry entries[HUFFMAN_AC_ENTRIES];
        struct huffman_codes codes;
        _Atomic(uint16_t *) skips; /* steps over as many symbols as fit; made at the first use, then never changed */
};

/* 0, or HUFFMAN_INVALID: libjpeg-turbo would refuse it, or could meet a DC difference of more than 11 bits. */
int huffman_dc_build(struct huffman_dc *table, const struct huffman_definition *definition);
int huffman_ac_build(struct huffman_ac *table, const struct huffman_definition *definition);

/* Steps for skipping coefficients, made at the first call. If there is no memory for them, returns `steps`, which work
 * too. */
const uint16_t *huffman_ac_skips(struct huffman_ac *table);
