/* decode/jpeg/jpeg_block.h: the coefficients of one block. Private to entropy.c, which compiles it more than once.
 *
 * All lookups of a block form one chain: which bits come next is known when the ones before are. So the chain is kept
 * short (index, load of a step, shift), the values are loaded in parallel, and there are two lookups between refills. A
 * lookup first writes its second coefficient, then its first: if there is no second one, the first overwrites it.
 *
 * The bits live in registers; functions that are not inlined get a copy, otherwise the compiler would keep the bits in
 * memory. */
#pragma once

#include "daemon/decode/jpeg/entropy.h"

#define INLINE      static inline __attribute__((always_inline))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define POSITION_LAST (JPEG_COEFFICIENTS - 1)

/* The value of `size` bits (1 to 15) that comes next. */
INLINE int block_value(const struct jpeg_bits *bits, unsigned size) {
        int value = (int)(bits->next >> (64 - size));

        return value >> (size - 1) ? value : value - ((1 << size) - 1);
}

/* The symbol of a code of any length, which is dropped from the bits; -1: there is no such code. */
static __attribute__((noinline)) int block_symbol(struct jpeg_bits *bits, const struct huffman_codes *codes) {
        for (unsigned length = 1; length <= HUFFMAN_LENGTHS; length++) {
                int32_t code = (int32_t)(bits->next >> (64 - length));

                if (code <= codes->max_code[length]) {
                        bits_drop(bits, length);
                        return codes->symbols[(code + codes->first[length]) & 255];
                }
        }
        return -1;
}

/* ---- DC -------------------------------------------------------------------------------------------------------- */

/* Needs 27 bits. 0, or -1: no such code. */
INLINE int block_read_dc(struct jpeg_bits *bits, const struct huffman_dc *table, int *ret_difference) {
        const struct huffman_dc_entry *entry = &table->entries[bits->next >> (64 - HUFFMAN_DC_BITS)];
        int size;

        if (UNLIKELY(entry->n_bits == 0)) {
                struct jpeg_bits copy = *bits;

                size = block_symbol(&copy, &table->codes);
                *bits = copy;
                if (size < 0)
                        return -1;
                *ret_difference = size > 0 ? block_value(bits, (unsigned)size) : 0;
                bits_drop(bits, (unsigned)size);
                return 0;
        }
        *ret_difference = (int16_t)(uint16_t)((uint64_t)entry->correction + (bits->next >> (entry->shift & 63)));
        bits_drop(bits, entry->n_bits);
        return 0;
}

/* ---- AC -------------------------------------------------------------------------------------------------------- */

/* A symbol whose code is too long for the tables. Returns the new position; at the end of the block, the old one plus
 * HUFFMAN_END; or -1. `block`: NULL if nothing is stored. */
static __attribute__((noinline)) int block_slow_ac(struct jpeg_bits *bits, const struct huffman_ac *table,
                                                   const uint8_t *place, int16_t *block, int position) {
        int symbol, run, size;

        bits_refill(bits);
        symbol = block_symbol(bits, &table->codes);
        if (symbol < 0)
                return -1;
        run = symbol >> 4;
        size = symbol & 15;
        if (size == 0 && run == 0)
                return position + (int)HUFFMAN_END;
        if (size == 0 && run != 15)
                return -1;
        position += run + 1;
        if (position > (int)POSITION_LAST)
                return -1;
        if (size > 0 && block)
                block[place[position]] = (int16_t)block_value(bits, (unsigned)size);
        if (size > 0)
                bits_drop(bits, (unsigned)size);
        return position;
}

/* One lookup. The state before it is kept, because the rare cases start again from there. */
struct huffman_lookup {
        const struct huffman_ac_entry *entry;
        uint64_t bits_before, position_before;
};

INLINE void block_step(struct jpeg_bits *bits, const struct huffman_ac *table, const uint8_t *place, int16_t *block,
                       uint64_t *position, struct huffman_lookup *lookup) {
        uint64_t before = bits->next, idx = before >> (64 - HUFFMAN_AC_BITS), step = table->steps[idx];
        const struct huffman_ac_entry *entry = &table->entries[idx];
        int first = (int)((uint64_t)entry->correction + (before >> (entry->shift & 63)));
        uint64_t at_first = *position + entry->first_at;

        lookup->entry = entry;
        lookup->bits_before = before;
        lookup->position_before = *position;
        bits_drop(bits, step);
        *position += step >> HUFFMAN_STEP_SHIFT;
        block[place[*position]] = entry->second;
        block[place[at_first]] = (int16_t)first;
}

/* Handles a lookup that led beyond the last position. Returns the position of the block's last coefficient, -1, or,
 * with ret_goes_on set, the position from which to continue. */
INLINE int block_end_ac(struct jpeg_bits *bits, const struct huffman_ac *table, const uint8_t *place, int16_t *block,
                        uint64_t position, const struct huffman_lookup *lookup, bool *ret_goes_on) {
        const struct huffman_ac_entry *entry = lookup->entry;
        int last;

        if (UNLIKELY(entry->step >> HUFFMAN_STEP_SHIFT == HUFFMAN_SLOW)) {
                struct jpeg_bits copy = *bits; /* the lookup dropped no bits */

                last = block_slow_ac(&copy, table, place, block, (int)lookup->position_before);
                *bits = copy;
                if (last > (int)POSITION_LAST)
                        return last - (int)HUFFMAN_END;
                *ret_goes_on = last >= 0 && last < (int)POSITION_LAST;
                return last;
        }
        if (lookup->position_before + entry->first_at == POSITION_LAST) { /* the second symbol is the next block's */
                bits->next = lookup->bits_before << entry->n_first;
                bits->n_bits += (entry->step & ((1u << HUFFMAN_STEP_SHIFT) - 1)) - entry->n_first;
                return POSITION_LAST;
        }
        last = (int)position - (int)HUFFMAN_END; /* negative: it went too far without an end */
        return last <= (int)POSITION_LAST ? last : -1;
}

/* Needs 27 bits. Returns the position of the last coefficient (which may be zero, if the file says so), or -1. */
INLINE int block_read_ac(struct jpeg_bits *bits, const struct huffman_ac *table, const uint8_t *place, int16_t *block) {
        uint64_t position = 0;
        struct huffman_lookup lookup;
        bool goes_on = false;
        int last;

        block_step(bits, table, place, block, &position, &lookup);
        for (;;) {
                while (position < POSITION_LAST) {
                        bits_refill(bits);
                        block_step(bits, table, place, block, &position, &lookup);
                        if (position >= POSITION_LAST)
                                break;
                        block_step(bits, table, place, block, &position, &lookup);
                }
                if (position == POSITION_LAST)
                        return POSITION_LAST;
                last = block_end_ac(bits, table, place, block, position, &lookup, &goes_on);
                if (!goes_on)
                        return last;
                goes_on = false;
                position = (uint64_t)last;
        }
}

/* ---- AC, without storing --------------------------------------------------------------------------------------- */

/* Continues two symbols at a time, from where a step over several symbols left the block or met a slow code. */
INLINE int block_skip_rest(struct jpeg_bits *bits, const struct huffman_ac *table, uint64_t position) {
        struct huffman_lookup lookup;
        bool goes_on;
        int last;

        do {
                goes_on = false;
                do {
                        uint64_t idx;

                        bits_refill(bits);
                        idx = bits->next >> (64 - HUFFMAN_AC_BITS);
                        lookup = (struct huffman_lookup){ &table->entries[idx], bits->next, position };
                        bits_drop(bits, table->steps[idx]);
                        position += table->steps[idx] >> HUFFMAN_STEP_SHIFT;
                } while (position < POSITION_LAST);
                if (position == POSITION_LAST)
                        return POSITION_LAST;
                last = block_end_ac(bits, table, NULL, NULL, position, &lookup, &goes_on);
                position = (uint64_t)last;
        } while (goes_on);
        return last;
}

/* The end of a skip, and the beginning of its last step. */
struct skip {
        uint64_t step, bits_before, position, position_before;
};

INLINE void block_skip_step(struct jpeg_bits *bits, const uint16_t *skips, struct skip *skip) {
        uint64_t step = skips[bits->next >> (64 - HUFFMAN_AC_BITS)];

        skip->step = step;
        skip->bits_before = bits->next;
        skip->position_before = skip->position;
        bits_drop(bits, step);
        skip->position += step >> HUFFMAN_STEP_SHIFT;
}

/* Like block_read_ac(). `skips`: huffman_ac_skips(), or the table's own steps. */
INLINE int block_skip_ac(struct jpeg_bits *bits, const struct huffman_ac *table, const uint16_t *skips) {
        struct skip skip = { 0 };

        for (;;) {
                block_skip_step(bits, skips, &skip);
                if (skip.position >= POSITION_LAST)
                        break;
                bits_refill(bits);
                block_skip_step(bits, skips, &skip);
                if (skip.position >= POSITION_LAST)
                        break;
        }
        if (skip.position - HUFFMAN_END < POSITION_LAST)
                return (int)(skip.position - HUFFMAN_END);

        bits->next = skip.bits_before;
        bits->n_bits += skip.step & ((1u << HUFFMAN_STEP_SHIFT) - 1);
        return block_skip_rest(bits, table, skip.position_before);
}
