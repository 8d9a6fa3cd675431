/* tokenize/generated/character_tables.h: what characters are to Hugging Face's tokenizers, made by
 * tests/support/make_character_tables.py. Private to characters.c and .h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define N_CHARACTER_BLOCKS (0x110000 / 128)

/* What a character becomes: n points of the map's pool. */
struct character_row {
        uint32_t point;
        uint16_t begin;
        uint16_t n;
};

/* By point, ascending. */
struct character_map {
        const struct character_row *rows;
        size_t n_rows;
        const uint32_t *points;
};

/* First and second are one character; by the first, then the second, ascending. */
struct character_pair {
        uint32_t first, second, composed;
};

extern const uint32_t CHARACTER_CLASSES[];
extern const uint16_t CHARACTER_BLOCKS[N_CHARACTER_BLOCKS];
extern const uint8_t CHARACTER_PLACES[][128];
extern const struct character_map CHARACTER_DECOMPOSED;      /* NFD; without Hangul */
extern const struct character_map CHARACTER_DECOMPOSED_MORE; /* NFKD, where it differs from NFD */
extern const struct character_map CHARACTER_LOWERED;
extern const struct character_pair CHARACTER_PAIRS[];
extern const size_t N_CHARACTER_PAIRS;
