#include "daemon/augment/operations/pixel_tables.h"

#include "daemon/augment/operations/wide.h"

#include <string.h>

void tables_look_up(const struct pixel_tables *tables, const struct canvas *canvas) {
        for (uint32_t y = 0; y < canvas->height; y++) {
                uint8_t *row = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x < canvas->width; x++, row += PIXEL_BYTES)
                        for (unsigned channel = 0; channel < PIXEL_BYTES; channel++)
                                row[channel] = tables->of[channel][row[channel]];
        }
}

/* ---- ranges ---------------------------------------------------------------------------------------------------- */

/* Whole vectors, and whole pixels. */
#define AT_ONCE 96u

static ALWAYS_INLINE void widen_loop(const uint8_t *levels, size_t n, uint8_t *restrict lowest,
                                     uint8_t *restrict highest) {
        for (size_t at = 0; at + AT_ONCE <= n; at += AT_ONCE)
                for (size_t i = 0; i < AT_ONCE; i++) {
                        uint8_t level = levels[at + i];

                        lowest[i] = level < lowest[i] ? level : lowest[i];
                        highest[i] = level > highest[i] ? level : highest[i];
                }
        for (size_t i = 0, at = n / AT_ONCE * AT_ONCE; at + i < n; i++) {
                uint8_t level = levels[at + i];

                lowest[i] = level < lowest[i] ? level : lowest[i];
                highest[i] = level > highest[i] ? level : highest[i];
        }
}

WIDE(widen, (const uint8_t *levels, size_t n, uint8_t *lowest, uint8_t *highest), (levels, n, lowest, highest))

void level_range_take(const struct canvas *canvas, struct level_range *ret_range) {
        uint8_t lowest[AT_ONCE], highest[AT_ONCE] = { 0 };
        size_t n = (size_t)canvas->width * PIXEL_BYTES;

        memset(lowest, N_LEVELS - 1, sizeof(lowest));
        for (uint32_t y = 0; y < canvas->height; y++)
                widen(canvas_at(canvas, 0, y), n, lowest, highest);
        for (unsigned i = PIXEL_BYTES; i < AT_ONCE; i++) {
                unsigned channel = i % PIXEL_BYTES;

                lowest[channel] = lowest[i] < lowest[channel] ? lowest[i] : lowest[channel];
                highest[channel] = highest[i] > highest[channel] ? highest[i] : highest[channel];
        }
        memcpy(ret_range->lowest, lowest, PIXEL_BYTES);
        memcpy(ret_range->highest, highest, PIXEL_BYTES);
}

/* ---- counts ---------------------------------------------------------------------------------------------------- */

/* Neighbours are often alike, so each second pixel is counted elsewhere: adding to the same number twice in a row would
 * wait for the first sum. */
void level_counts_take(const struct canvas *canvas, struct level_counts *ret_counts) {
        struct level_counts odd = { 0 };

        memset(ret_counts, 0, sizeof(*ret_counts));
        for (uint32_t y = 0; y < canvas->height; y++) {
                const uint8_t *row = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x + 1 < canvas->width; x += 2, row += 2 * PIXEL_BYTES)
                        for (unsigned channel = 0; channel < PIXEL_BYTES; channel++) {
                                ret_counts->of[channel][row[channel]]++;
                                odd.of[channel][row[PIXEL_BYTES + channel]]++;
                        }
                for (unsigned channel = 0; channel < PIXEL_BYTES && canvas->width % 2; channel++)
                        ret_counts->of[channel][row[channel]]++;
        }
        for (unsigned channel = 0; channel < PIXEL_BYTES; channel++)
                for (unsigned level = 0; level < N_LEVELS; level++)
                        ret_counts->of[channel][level] += odd.of[channel][level];
}

int level_counts_highest(const uint32_t *counts) {
        int level = N_LEVELS - 1;

        while (level > 0 && counts[level] == 0)
                level--;
        return level;
}
