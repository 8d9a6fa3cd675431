/* augment/operations/levels.c: what changes each level of a channel to another one, whatever is beside it: Pillow's
 * ImageOps. Each is a table of 256 levels for each channel; autocontrast and equalize make theirs from the levels that
 * the picture has now, each channel by itself. */
#include "daemon/augment/operation.h"
#include "daemon/augment/operations/pixel_tables.h"
#include "daemon/augment/operations/wide.h"

#include <string.h>

static uint8_t levels_clamped(int64_t level) {
        return level < 0 ? 0 : level > 255 ? 255 : (uint8_t)level;
}

/* ---- the same change of all levels ------------------------------------------------------------------------------ */

static ALWAYS_INLINE void invert_row_loop(uint8_t *row, size_t n, int lowest) {
        for (size_t i = 0; i < n; i++)
                row[i] = row[i] < lowest ? row[i] : (uint8_t)~row[i];
}

WIDE(invert_row, (uint8_t * row, size_t n, int lowest), (row, n, lowest))

/* Levels from `lowest` on become 255 minus themselves. */
static void invert_from(const struct canvas *canvas, int lowest) {
        for (uint32_t y = 0; y < canvas->height; y++)
                invert_row(canvas_at(canvas, 0, y), (size_t)canvas->width * PIXEL_BYTES, lowest);
}

static void run_invert(const struct operation *operation, const struct canvas *canvas) {
        (void)operation;
        invert_from(canvas, 0);
}

static void run_solarize(const struct operation *operation, const struct canvas *canvas) {
        invert_from(canvas, (int)operation->amount);
}

static ALWAYS_INLINE void lighten_row_loop(uint8_t *row, size_t n, int added) {
        for (size_t i = 0; i < n; i++) {
                int level = row[i] < 128 ? row[i] + added : row[i];

                row[i] = (uint8_t)(level > 255 ? 255 : level);
        }
}

WIDE(lighten_row, (uint8_t * row, size_t n, int added), (row, n, added))

/* timm's solarize_add(). */
static void run_solarize_add(const struct operation *operation, const struct canvas *canvas) {
        for (uint32_t y = 0; y < canvas->height; y++)
                lighten_row(canvas_at(canvas, 0, y), (size_t)canvas->width * PIXEL_BYTES, (int)operation->amount);
}

static ALWAYS_INLINE void keep_bits_loop(uint8_t *row, size_t n, uint8_t kept) {
        for (size_t i = 0; i < n; i++)
                row[i] &= kept;
}

WIDE(keep_bits, (uint8_t * row, size_t n, uint8_t kept), (row, n, kept))

static void run_posterize(const struct operation *operation, const struct canvas *canvas) {
        uint8_t lost = (uint8_t)((1u << (8 - (unsigned)operation->amount)) - 1);

        for (uint32_t y = 0; y < canvas->height; y++)
                keep_bits(canvas_at(canvas, 0, y), (size_t)canvas->width * PIXEL_BYTES, (uint8_t)~lost);
}

/* ---- a table from the channel's own levels ------------------------------------------------------------------- */

static void levels_leave(uint8_t *table) {
        for (int i = 0; i < N_LEVELS; i++)
                table[i] = (uint8_t)i;
}

/* The lowest level becomes 0 and the highest 255; in float64, truncated as Python's int() does. */
static void stretch(int lowest, int highest, uint8_t *table) {
        double scale, offset;

        if (highest <= lowest) { /* a flat channel */
                levels_leave(table);
                return;
        }
        scale = 255.0 / (highest - lowest);
        offset = -lowest * scale;
        for (int i = 0; i < N_LEVELS; i++)
                table[i] = levels_clamped((int64_t)(i * scale + offset));
}

/* Each level becomes the share of pixels that are darker. The step is a 255th of all pixels without those of the
 * highest level; what is lost by that division can make a level greater than 255. */
static void spread(const uint32_t *counts, uint8_t *table) {
        int highest = level_counts_highest(counts);
        int64_t n_below = 0, step, n;

        for (int i = 0; i < highest; i++)
                n_below += counts[i];
        step = n_below / 255;
        if (step == 0) { /* also of a flat channel */
                levels_leave(table);
                return;
        }
        n = step / 2;
        for (int i = 0; i < N_LEVELS; i++) {
                table[i] = levels_clamped(n / step);
                n += counts[i];
        }
}

static void run_autocontrast(const struct operation *operation, const struct canvas *canvas) {
        struct level_range range;
        struct pixel_tables tables;

        (void)operation;
        level_range_take(canvas, &range);
        for (unsigned channel = 0; channel < PIXEL_BYTES; channel++)
                stretch(range.lowest[channel], range.highest[channel], tables.of[channel]);
        tables_look_up(&tables, canvas);
}

static void run_equalize(const struct operation *operation, const struct canvas *canvas) {
        struct level_counts counts;
        struct pixel_tables tables;

        (void)operation;
        level_counts_take(canvas, &counts);
        for (unsigned channel = 0; channel < PIXEL_BYTES; channel++)
                spread(counts.of[channel], tables.of[channel]);
        tables_look_up(&tables, canvas);
}

const struct operation_type operation_invert = {
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run_invert,
};

const struct operation_type operation_solarize_add = {
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run_solarize_add,
};

const struct operation_type operation_posterize = {
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run_posterize,
};

const struct operation_type operation_solarize = {
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run_solarize,
};

const struct operation_type operation_autocontrast = {
        .moves_with_flip = true,
        .moves_with_crop = false, /* the levels are those of the whole picture; here as well: */
        .run = run_autocontrast,
};

const struct operation_type operation_equalize = {
        .moves_with_flip = true,
        .moves_with_crop = false,
        .run = run_equalize,
};
