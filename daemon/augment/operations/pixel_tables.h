/* augment/operations/pixel_tables.h: changes of levels as tables, 256 levels for each channel, and how often a picture has
 * each level. Private to this floor. */
#pragma once

#include "daemon/augment/canvas.h"

#define N_LEVELS 256

struct pixel_tables {
        uint8_t of[PIXEL_BYTES][N_LEVELS];
};

/* Changes each level of the canvas to the one that its channel's table says. */
void tables_look_up(const struct pixel_tables *tables, const struct canvas *canvas);

/* The lowest and the highest level of each channel. */
struct level_range {
        uint8_t lowest[PIXEL_BYTES], highest[PIXEL_BYTES];
};

void level_range_take(const struct canvas *canvas, struct level_range *ret_range);

/* How many pixels have each level: RECIPE_BETWEEN_PIXELS_MAX of them fit. */
struct level_counts {
        uint32_t of[PIXEL_BYTES][N_LEVELS];
};

void level_counts_take(const struct canvas *canvas, struct level_counts *ret_counts);

/* Of one channel, which has pixels. */
int level_counts_highest(const uint32_t *counts);
