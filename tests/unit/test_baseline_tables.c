/* unit/test_baseline_tables.c: what a table says of some bits is what reading them bit by bit says.
 *
 * Definitions are drawn, with short and long codes for any symbol, so that what no encoder writes is looked up too. */
#include "daemon/decode/jpeg/huffman.h"
#include "tests/support/jpegs.h"
#include "tests/support/suite.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_DEFINITIONS 100
#define BITS          HUFFMAN_AC_BITS

/* For what is checked millions of times: Check's own asserts write a message each. */
#define REQUIRE(condition)                                                                                             \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        ck_abort_msg("not so: %s", #condition);                                                        \
        } while (0)

/* ---- definitions ----------------------------------------------------------------------------------------------- */

/* Up to n_symbols different ones below `n_values`, with lengths drawn so that no code consists of ones only. */
static struct huffman_definition draw(uint64_t *random, uint8_t bytes[HUFFMAN_DEFINITION_MAX], uint32_t n_values) {
        uint32_t n_left = 1 + jpegs_random(random, n_values), n_free = 1, n = 0;
        uint8_t *symbols = bytes + HUFFMAN_LENGTHS;

        for (uint32_t i = 0; i < n_values; i++) {
                uint32_t j = jpegs_random(random, i + 1);

                symbols[i] = symbols[j];
                symbols[j] = (uint8_t)i;
        }
        for (uint32_t length = 0; length < HUFFMAN_LENGTHS; length++) {
                uint32_t most;

                n_free *= 2;
                most = n_free - 1 < n_left ? n_free - 1 : n_left;
                bytes[length] = (uint8_t)(most > 0 ? jpegs_random(random, (most < 200 ? most : 200) + 1) : 0);
                n += bytes[length];
                n_left -= bytes[length];
                n_free -= bytes[length];
        }
        return (struct huffman_definition){ bytes, HUFFMAN_LENGTHS + n };
}

/* ---- bit by bit ------------------------------------------------------------------------------------------------ */

/* One symbol, with its value. */
struct read {
        bool is_code;
        unsigned length, run, size; /* of the code; of the symbol */
        int value;                  /* if it lies within the bits */
};

/* `bits`: n of them. */
static struct read read_symbol(const struct huffman_definition *definition, uint32_t bits, unsigned n) {
        const uint8_t *symbols = definition->bytes + HUFFMAN_LENGTHS;
        struct read read = { 0 };
        uint32_t code = 0;

        for (unsigned length = 1; length <= n && length <= HUFFMAN_LENGTHS; length++, code <<= 1) {
                uint32_t n_codes = definition->bytes[length - 1], at = bits >> (n - length);

                if (at < code + n_codes) {
                        uint8_t symbol = symbols[at - code];

                        read = (struct read){ true, length, symbol >> 4, symbol & 15, 0 };
                        break;
                }
                symbols += n_codes;
                code += n_codes;
        }
        if (read.is_code && read.size > 0 && read.length + read.size <= n) {
                read.value = (int)(bits >> (n - read.length - read.size) & ((1u << read.size) - 1));
                if (read.value < 1 << (read.size - 1))
                        read.value -= (1 << read.size) - 1;
        }
        return read;
}

static unsigned n_bits_of(const struct read *read) {
        return read->length + read->size;
}

/* HUFFMAN_SLOW for what means nothing. */
static unsigned move_of(const struct read *read) {
        if (read->size > 0 || read->run == 15)
                return read->run + 1;
        return read->run == 0 ? HUFFMAN_END : HUFFMAN_SLOW;
}

/* ---- tests ----------------------------------------------------------------------------------------------------- */

static struct huffman_ac ac;
static struct huffman_dc dc;

static void check_entry(const struct huffman_definition *definition, uint32_t idx) {
        const struct huffman_ac_entry *entry = &ac.entries[idx];
        struct read first = read_symbol(definition, idx, BITS), second;
        uint64_t bits = (uint64_t)idx << (64 - BITS);
        unsigned n_left;

        REQUIRE(ac.steps[idx] == entry->step);
        if (!first.is_code || move_of(&first) == HUFFMAN_SLOW || (first.size > 0 && first.length == BITS)) {
                REQUIRE(entry->step == HUFFMAN_SLOW << HUFFMAN_STEP_SHIFT);
                return;
        }
        REQUIRE(entry->n_first == n_bits_of(&first));
        REQUIRE(entry->first_at == move_of(&first));
        if (n_bits_of(&first) <= BITS)
                REQUIRE((int16_t)(uint16_t)((uint64_t)entry->correction + (bits >> entry->shift)) == first.value);
        if (entry->step == (entry->n_first | entry->first_at << HUFFMAN_STEP_SHIFT))
                return;

        n_left = BITS - n_bits_of(&first);
        second = read_symbol(definition, idx & ((1u << n_left) - 1), n_left);
        REQUIRE(move_of(&first) < HUFFMAN_END && second.is_code && n_bits_of(&second) <= n_left);
        REQUIRE((entry->step & 255) == n_bits_of(&first) + n_bits_of(&second));
        REQUIRE(entry->step >> HUFFMAN_STEP_SHIFT == move_of(&first) + move_of(&second));
        REQUIRE(entry->second == second.value);
}

START_TEST(an_ac_lookup_is_one_or_two_symbols) {
        uint8_t bytes[HUFFMAN_DEFINITION_MAX];
        uint64_t random = 3;

        for (unsigned i = 0; i < N_DEFINITIONS; i++) {
                struct huffman_definition definition = draw(&random, bytes, 256);

                REQUIRE(huffman_ac_build(&ac, &definition) == 0);
                for (uint32_t idx = 0; idx < HUFFMAN_AC_ENTRIES; idx++)
                        check_entry(&definition, idx);
        }
}
END_TEST

/* Wherever it starts from, a skip leads to where single steps lead, or to where it is seen that it does not. */
static void check_skip(const struct huffman_definition *definition, uint16_t step, uint32_t idx) {
        unsigned n_bits = step & 255, move = step >> HUFFMAN_STEP_SHIFT, moved = 0, n_read = 0;

        while (n_read < n_bits) {
                unsigned n_left = BITS - n_read;
                struct read read = read_symbol(definition, idx & ((1u << n_left) - 1), n_left);

                REQUIRE(read.is_code && moved < HUFFMAN_END && move_of(&read) != HUFFMAN_SLOW);
                n_read += n_bits_of(&read);
                moved += move_of(&read);
        }
        REQUIRE(n_read == n_bits);
        if (n_bits == 0)
                REQUIRE(move == HUFFMAN_SLOW);
        else
                REQUIRE(move == moved);
        /* from 62 on without an end it stays below HUFFMAN_END, and with one does not begin anew */
        REQUIRE(n_bits == 0 || moved <= 62 || (moved >= HUFFMAN_END && moved <= HUFFMAN_END + 62));
}

START_TEST(a_skip_is_some_whole_symbols) {
        uint8_t bytes[HUFFMAN_DEFINITION_MAX];
        uint64_t random = 5;
        unsigned n_long = 0;

        for (unsigned i = 0; i < N_DEFINITIONS; i++) {
                struct huffman_definition definition = draw(&random, bytes, 256);
                const uint16_t *skips;

                REQUIRE(huffman_ac_build(&ac, &definition) == 0);
                atomic_init(&ac.skips, NULL);
                skips = huffman_ac_skips(&ac);
                for (uint32_t idx = 0; idx < HUFFMAN_AC_ENTRIES; idx++) {
                        check_skip(&definition, skips[idx], idx);
                        n_long += skips[idx] > ac.steps[idx];
                }
                ck_assert_ptr_eq(huffman_ac_skips(&ac), skips);
                free(atomic_load(&ac.skips));
        }
        ck_assert_uint_gt(n_long, 0);
}
END_TEST

START_TEST(a_dc_lookup_is_a_difference) {
        uint8_t bytes[HUFFMAN_DEFINITION_MAX];
        uint64_t random = 7;

        for (unsigned i = 0; i < N_DEFINITIONS; i++) {
                struct huffman_definition definition = draw(&random, bytes, 12);

                REQUIRE(huffman_dc_build(&dc, &definition) == 0);
                for (uint32_t bits = 0; bits < 1u << 24; bits += 1 + jpegs_random(&random, 5000)) {
                        const struct huffman_dc_entry *entry = &dc.entries[bits >> (24 - HUFFMAN_DC_BITS)];
                        struct read read = read_symbol(&definition, bits, 24);
                        uint64_t next = (uint64_t)bits << 40;

                        if (entry->n_bits == 0) { /* else the entry has the sign */
                                REQUIRE(!read.is_code || read.length >= HUFFMAN_DC_BITS);
                                continue;
                        }
                        REQUIRE(entry->n_bits == n_bits_of(&read));
                        REQUIRE((int16_t)(uint16_t)((uint64_t)entry->correction + (next >> entry->shift)) ==
                                read.value);
                }
        }
}
END_TEST

START_TEST(what_is_no_table_is_refused) {
        uint8_t full[HUFFMAN_LENGTHS + 2] = { 2 }, many[HUFFMAN_LENGTHS + 5] = { 0, 5 };
        uint8_t far[HUFFMAN_LENGTHS + 1] = { 1, [HUFFMAN_LENGTHS] = 12 };

        ck_assert_int_eq(huffman_ac_build(&ac, &(struct huffman_definition){ full, sizeof(full) }), HUFFMAN_INVALID);
        ck_assert_int_eq(huffman_ac_build(&ac, &(struct huffman_definition){ many, sizeof(many) }), HUFFMAN_INVALID);
        ck_assert_int_eq(huffman_dc_build(&dc, &(struct huffman_definition){ far, sizeof(far) }), HUFFMAN_INVALID);
        ck_assert_int_eq(huffman_ac_build(&ac, &(struct huffman_definition){ far, sizeof(far) }), 0);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "tables", an_ac_lookup_is_one_or_two_symbols, 0 },
                { "tables", a_skip_is_some_whole_symbols, 0 },
                { "tables", a_dc_lookup_is_a_difference, 0 },
                { "tables", what_is_no_table_is_refused, 0 },
        };

        return suite_run("baseline_tables", rows, sizeof(rows) / sizeof(rows[0]));
}
