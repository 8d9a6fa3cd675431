#include "daemon/augment/operations/tables.h"

#include <string.h>

void tables_look_up(const struct tables *tables, const struct canvas *canvas) {
        for (uint32_t y = 0; y < canvas->height; y++) {
                uint8_t *row = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x < canvas->width; x++, row += PIXEL_BYTES)
                        for (unsigned channel = 0; channel < PIXEL_BYTES; channel++)
                                row[channel] = tables->of[channel][row[channel]];
        }
}

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

int level_counts_lowest(const uint32_t *counts) {
        int level = 0;

        while (level < N_LEVELS - 1 && counts[level] == 0)
                level++;
        return level;
}

int level_counts_highest(const uint32_t *counts) {
        int level = N_LEVELS - 1;

        while (level > 0 && counts[level] == 0)
                level--;
        return level;
}
