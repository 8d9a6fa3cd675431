#include "daemon/tokenize/characters/characters.h"

#include <string.h>

#define HANGUL_S   0xac00u
#define HANGUL_L   0x1100u
#define HANGUL_V   0x1161u
#define HANGUL_T   0x11a7u
#define HANGUL_N_L 19u
#define HANGUL_N_V 21u
#define HANGUL_N_T 28u
#define HANGUL_N   (HANGUL_N_L * HANGUL_N_V * HANGUL_N_T)

size_t character_write(uint32_t point, uint8_t *into) {
        if (point < 0x80) {
                into[0] = (uint8_t)point;
                return 1;
        }
        if (point < 0x800) {
                into[0] = (uint8_t)(0xc0 | point >> 6);
                into[1] = (uint8_t)(0x80 | (point & 0x3f));
                return 2;
        }
        if (point < 0x10000) {
                into[0] = (uint8_t)(0xe0 | point >> 12);
                into[1] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
                into[2] = (uint8_t)(0x80 | (point & 0x3f));
                return 3;
        }
        into[0] = (uint8_t)(0xf0 | point >> 18);
        into[1] = (uint8_t)(0x80 | (point >> 12 & 0x3f));
        into[2] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
        into[3] = (uint8_t)(0x80 | (point & 0x3f));
        return 4;
}

/* 0: the map does not have it. */
static size_t characters_look_up(const struct character_map *map, uint32_t point, uint32_t *into) {
        size_t low = 0, high = map->n_rows;

        while (low < high) {
                size_t middle = (low + high) / 2;
                const struct character_row *row = &map->rows[middle];

                if (row->point == point) {
                        memcpy(into, map->points + row->begin, row->n * sizeof(*into));
                        return row->n;
                }
                if (row->point < point)
                        low = middle + 1;
                else
                        high = middle;
        }
        return 0;
}

size_t character_lower(uint32_t point, uint32_t into[CHARACTER_PARTS_MAX]) {
        size_t n = 0;

        if (point < 0x80) {
                into[0] = point >= 'A' && point <= 'Z' ? point + 32 : point;
                return 1;
        }
        if (character_class(point) & CHARACTER_LOWERS)
                n = characters_look_up(&CHARACTER_LOWERED, point, into);
        if (n > 0)
                return n;
        into[0] = point;
        return 1;
}

static size_t decompose_hangul(uint32_t point, uint32_t *into) {
        uint32_t s = point - HANGUL_S;

        into[0] = HANGUL_L + s / (HANGUL_N_V * HANGUL_N_T);
        into[1] = HANGUL_V + s % (HANGUL_N_V * HANGUL_N_T) / HANGUL_N_T;
        if (s % HANGUL_N_T == 0)
                return 2;
        into[2] = HANGUL_T + s % HANGUL_N_T;
        return 3;
}

size_t character_decompose(uint32_t point, bool more, uint32_t into[CHARACTER_PARTS_MAX]) {
        uint32_t class = character_class(point);
        size_t n = 0;

        if (!(class & (more ? CHARACTER_DECOMPOSES_MORE : CHARACTER_DECOMPOSES))) {
                into[0] = point;
                return 1;
        }
        if (point - HANGUL_S < HANGUL_N)
                return decompose_hangul(point, into);
        if (more)
                n = characters_look_up(&CHARACTER_DECOMPOSED_MORE, point, into);
        if (n == 0)
                n = characters_look_up(&CHARACTER_DECOMPOSED, point, into);
        if (n > 0)
                return n;
        into[0] = point;
        return 1;
}

/* The first pair that begins with this character or a later one. */
static const struct character_pair *characters_first_pair(uint32_t first) {
        size_t low = 0, high = N_CHARACTER_PAIRS;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (CHARACTER_PAIRS[middle].first < first)
                        low = middle + 1;
                else
                        high = middle;
        }
        return CHARACTER_PAIRS + low;
}

uint32_t character_compose(uint32_t first, uint32_t second) {
        const struct character_pair *end = CHARACTER_PAIRS + N_CHARACTER_PAIRS;

        if (first - HANGUL_L < HANGUL_N_L && second - HANGUL_V < HANGUL_N_V)
                return HANGUL_S + ((first - HANGUL_L) * HANGUL_N_V + (second - HANGUL_V)) * HANGUL_N_T;
        if (first - HANGUL_S < HANGUL_N && (first - HANGUL_S) % HANGUL_N_T == 0 &&
            second - HANGUL_T - 1 < HANGUL_N_T - 1)
                return first + (second - HANGUL_T);
        for (const struct character_pair *pair = characters_first_pair(first); pair < end && pair->first == first;
             pair++)
                if (pair->second == second)
                        return pair->composed;
        return 0;
}
