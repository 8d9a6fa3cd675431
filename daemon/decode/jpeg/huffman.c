/* decode/jpeg/huffman.c: building the tables.
 *
 * Photographs often carry codes of their own, so tables are built as often as pictures come: runs of equal entries are
 * filled, and second coefficients are added in runs. The symbols that may follow a first symbol of n bits do not depend
 * on that symbol, so they are looked up once for each n. */
#include "daemon/decode/jpeg/huffman.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define N      HUFFMAN_AC_BITS
#define MAX_DC 11u /* bits of a DC difference with samples of 8 bits */
/* The furthest that a skip may lead: from 62 to below HUFFMAN_END, and with an end to below 256. */
#define FURTHEST 62u

/* A symbol with its code, in the order of the codes. */
struct symbol {
        uint32_t code;
        unsigned length; /* of the code */
        unsigned run, size;
};

/* ---- codes of any length --------------------------------------------------------------------------------------- */

/* Canonical codes: counted up within a length, doubled from one to the next. The code of all ones must stay free. */
static int codes_build(struct huffman_codes *codes, const struct huffman_definition *definition) {
        const uint8_t *n_of_length = definition->bytes;
        int32_t code = 0, idx = 0;

        memset(codes->symbols, 0, sizeof(codes->symbols));
        memcpy(codes->symbols, definition->bytes + HUFFMAN_LENGTHS, definition->n - HUFFMAN_LENGTHS);
        for (unsigned length = 1; length <= HUFFMAN_LENGTHS; length++, code <<= 1) {
                int32_t n = n_of_length[length - 1];

                codes->first[length] = idx - code;
                code += n;
                idx += n;
                if (n > 0 && code >= 1 << length)
                        return HUFFMAN_INVALID;
                codes->max_code[length] = n > 0 ? code - 1 : -1;
        }
        return 0;
}

typedef void (*symbol_fn)(void *table, const struct symbol *symbol);

/* Calls `fn` for each symbol whose code has at most `n_bits`, in the sequence of the codes. Returns the first index of
 * `n_bits` that has none. */
static uint32_t each_symbol(const struct huffman_definition *definition, unsigned n_bits, symbol_fn fn, void *table) {
        const uint8_t *symbols = definition->bytes + HUFFMAN_LENGTHS;
        uint32_t code = 0;

        for (unsigned length = 1; length <= n_bits; length++) {
                for (unsigned i = 0; i < definition->bytes[length - 1]; i++, code++, symbols++)
                        fn(table, &(struct symbol){ code, length, *symbols >> 4, *symbols & 15 });
                code <<= 1;
        }
        return code >> 1;
}

/* See the header: the value of a symbol whose size is not 0. */
static int16_t correction_of(const struct symbol *symbol, bool is_positive) {
        uint32_t code = symbol->code << symbol->size;

        code += is_positive ? 0 : (1u << symbol->size) - 1;
        return (int16_t)(uint16_t)(0u - code);
}

/* ---- DC -------------------------------------------------------------------------------------------------------- */

static void dc_fill(struct huffman_dc_entry *entries, uint32_t n, struct huffman_dc_entry entry) {
        for (uint32_t i = 0; i < n; i++)
                entries[i] = entry;
}

static void dc_symbol(void *opaque, const struct symbol *symbol) {
        struct huffman_dc_entry *entries = opaque;
        unsigned n_free = HUFFMAN_DC_BITS - symbol->length;
        uint32_t at = symbol->code << n_free, n = 1u << n_free;
        struct huffman_dc_entry entry = { .n_bits = (uint8_t)(symbol->length + symbol->size) };

        if (symbol->size == 0) { /* no value: bits >> 63 is the first bit of the code */
                entry.shift = 63;
                entry.correction = (int16_t) - (int)(symbol->code >> (symbol->length - 1));
                dc_fill(entries + at, n, entry);
        } else if (n_free > 0) { /* otherwise the sign is not in the index */
                entry.shift = (uint8_t)(64 - entry.n_bits);
                entry.correction = correction_of(symbol, false);
                dc_fill(entries + at, n / 2, entry);
                entry.correction = correction_of(symbol, true);
                dc_fill(entries + at + n / 2, n / 2, entry);
        }
}

int huffman_dc_build(struct huffman_dc *table, const struct huffman_definition *definition) {
        for (size_t i = HUFFMAN_LENGTHS; i < definition->n; i++)
                if (definition->bytes[i] > MAX_DC)
                        return HUFFMAN_INVALID;
        if (codes_build(&table->codes, definition) != 0)
                return HUFFMAN_INVALID;

        memset(table->entries, 0, sizeof(table->entries));
        each_symbol(definition, HUFFMAN_DC_BITS, dc_symbol, table->entries);
        return 0;
}

/* ---- AC: single symbols ---------------------------------------------------------------------------------------- */

static const struct huffman_ac_entry TOO_LONG = {
        .shift = 63,
        .first_at = HUFFMAN_SLOW,
        .step = HUFFMAN_SLOW << HUFFMAN_STEP_SHIFT,
};

static uint16_t huffman_step_of(unsigned n_bits, unsigned move) {
        return (uint16_t)(n_bits | move << HUFFMAN_STEP_SHIFT);
}

/* As integers: the compiler then uses wide stores. */
static void ac_fill(struct huffman_ac_entry *entries, uint32_t n, struct huffman_ac_entry entry) {
        uint64_t one;

        memcpy(&one, &entry, sizeof(one));
        for (uint32_t i = 0; i < n; i++)
                memcpy(&entries[i], &one, sizeof(one));
}

static unsigned move_of(const struct symbol *symbol) {
        if (symbol->size > 0)
                return symbol->run + 1;
        if (symbol->run == 0)
                return HUFFMAN_END;
        return symbol->run == 15 ? 16 : HUFFMAN_SLOW; /* other runs without a value have no meaning */
}

static void ac_symbol(void *table, const struct symbol *symbol) {
        unsigned n_free = N - symbol->length, move = move_of(symbol), n_first = symbol->length + symbol->size;
        struct huffman_ac_entry *entries = (struct huffman_ac_entry *)table + (symbol->code << n_free);
        struct huffman_ac_entry entry = {
                .n_first = (uint8_t)n_first,
                .first_at = (uint8_t)move,
                .step = huffman_step_of(n_first, move),
        };
        uint32_t n = 1u << n_free;

        if (move == HUFFMAN_SLOW || (symbol->size > 0 && n_free == 0)) {
                ac_fill(entries, n, TOO_LONG);
        } else if (symbol->size == 0) { /* as for DC */
                entry.shift = 63;
                entry.correction = (int16_t) - (int)(symbol->code >> (symbol->length - 1));
                ac_fill(entries, n, entry);
        } else {
                entry.shift = (uint8_t)(64 - n_first);
                entry.correction = correction_of(symbol, false);
                ac_fill(entries, n / 2, entry);
                entry.correction = correction_of(symbol, true);
                ac_fill(entries + n / 2, n / 2, entry);
        }
}

/* ---- AC: two symbols in one look-up ---------------------------------------------------------------------------- */

/* What a second symbol adds to an entry, for each number of bits that are left for it: N - n if the first symbol has n
 * bits. Those for m bits begin at 2^m. */
struct seconds {
        struct huffman_ac_entry of[HUFFMAN_AC_ENTRIES];
        bool is_found[N + 1]; /* by n */
        struct huffman_ac_entry *entries;
};

static int huffman_value_of(const struct huffman_ac_entry *entry, uint32_t idx) {
        uint64_t bits = (uint64_t)idx << (64 - N);

        return (int16_t)(uint16_t)((uint32_t)entry->correction + (uint32_t)(bits >> entry->shift));
}

/* Only reads the entries' fields for their first symbol, which adding seconds does not change. */
static void find_seconds(struct seconds *seconds, unsigned n_first) {
        uint32_t n = 1u << (N - n_first);

        for (uint32_t i = 0; i < n; i++) {
                uint32_t idx = i << n_first;
                const struct huffman_ac_entry *single = &seconds->entries[idx];
                struct huffman_ac_entry second = { 0 };
                int value = huffman_value_of(single, idx);

                if (single->first_at != HUFFMAN_SLOW && single->n_first <= N - n_first && value >= INT8_MIN &&
                    value <= INT8_MAX) {
                        second.second = (int8_t)value;
                        second.step = huffman_step_of(single->n_first, single->first_at);
                }
                seconds->of[n + i] = second;
        }
        seconds->is_found[n_first] = true;
}

/* As integers: no field overflows into the next. */
static void add_entries(struct huffman_ac_entry *entries, const struct huffman_ac_entry *more, uint32_t n) {
        _Static_assert(sizeof(*entries) == sizeof(uint64_t), "an entry is one integer");

        for (uint32_t i = 0; i < n; i++) {
                uint64_t sum, one;

                memcpy(&sum, &entries[i], sizeof(sum));
                memcpy(&one, &more[i], sizeof(one));
                sum += one;
                memcpy(&entries[i], &sum, sizeof(sum));
        }
}

static void add_seconds(void *opaque, const struct symbol *symbol) {
        struct seconds *seconds = opaque;
        unsigned n_first = symbol->length + symbol->size;
        struct huffman_ac_entry *at = seconds->entries + (symbol->code << (N - symbol->length));
        uint32_t n;

        if (n_first >= N || move_of(symbol) >= HUFFMAN_END)
                return;
        if (!seconds->is_found[n_first])
                find_seconds(seconds, n_first);

        n = 1u << (N - n_first);
        for (uint32_t value = 0; value < 1u << symbol->size; value++, at += n) /* each value of the first */
                add_entries(at, seconds->of + n, n);
}

int huffman_ac_build(struct huffman_ac *table, const struct huffman_definition *definition) {
        struct seconds seconds;
        uint32_t n_used;

        if (codes_build(&table->codes, definition) != 0)
                return HUFFMAN_INVALID;

        n_used = each_symbol(definition, N, ac_symbol, table->entries);
        ac_fill(table->entries + n_used, HUFFMAN_AC_ENTRIES - n_used, TOO_LONG);

        seconds.entries = table->entries;
        memset(seconds.is_found, 0, sizeof(seconds.is_found));
        each_symbol(definition, N, add_seconds, &seconds);
        for (uint32_t i = 0; i < HUFFMAN_AC_ENTRIES; i++)
                table->steps[i] = table->entries[i].step;
        return 0;
}

/* ---- AC: skipping ---------------------------------------------------------------------------------------------- */

/* Joins a symbol and the ones after it, if the resulting position is still unambiguous. */
static uint16_t join_steps(uint16_t first, uint16_t rest) {
        unsigned move = (first >> HUFFMAN_STEP_SHIFT) + (rest >> HUFFMAN_STEP_SHIFT);
        unsigned furthest = move >= HUFFMAN_END ? HUFFMAN_END + FURTHEST : FURTHEST;

        return move <= furthest ? (uint16_t)(first + rest) : first;
}

/* As many symbols as fit completely into m bits, for m from 1 to N. Those for m bits begin at 2^m. */
static void find_skips(const struct huffman_ac *table, uint16_t *skips) {
        for (unsigned m = 1; m <= N; m++) {
                for (uint32_t i = 0; i < 1u << m; i++) {
                        const struct huffman_ac_entry *single = &table->entries[i << (N - m)];
                        unsigned n_first = single->n_first;
                        uint16_t first = huffman_step_of(single->n_first, single->first_at), rest = 0;

                        if (single->first_at == HUFFMAN_SLOW || n_first > m)
                                first = 0;
                        else if (single->first_at < HUFFMAN_END && n_first < m)
                                rest = skips[(1u << (m - n_first)) + (i & ((1u << (m - n_first)) - 1))];
                        skips[(1u << m) + i] = join_steps(first, rest);
                }
        }
}

const uint16_t *huffman_ac_skips(struct huffman_ac *table) {
        uint16_t *skips = atomic_load_explicit(&table->skips, memory_order_acquire), *made, *none = NULL;
        uint16_t work[2 * HUFFMAN_AC_ENTRIES];

        if (skips)
                return skips;
        made = malloc(sizeof(*made) * HUFFMAN_AC_ENTRIES);
        if (!made)
                return table->steps;

        find_skips(table, work);
        for (uint32_t i = 0; i < HUFFMAN_AC_ENTRIES;
             i++) { /* if the first symbol is longer than the index, only that one */
                uint16_t step = work[HUFFMAN_AC_ENTRIES + i];

                made[i] = step != 0 ? step : huffman_step_of(table->entries[i].n_first, table->entries[i].first_at);
        }
        if (atomic_compare_exchange_strong_explicit(&table->skips, &none, made, memory_order_acq_rel,
                                                    memory_order_acquire))
                return made;
        free(made); /* another thread was quicker */
        return none;
}
