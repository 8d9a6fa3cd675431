#include "daemon/codec/turned.h"

#include <stdbool.h>

#define BAND_ROWS 16u

/* A pixel of the upright picture at column x of row y is the stored one at row (is_sideways ? x : y) and column
 * (is_sideways ? y : x), both counted from the other end where the axis is flipped. */
struct turn {
        bool is_sideways, flips_rows, flips_columns;
};

static const struct turn TURNS[9] = {
        [2] = { false, false, true }, [3] = { false, true, true }, [4] = { false, true, false },
        [5] = { true, false, false }, [6] = { true, true, false }, [7] = { true, true, true },
        [8] = { true, false, true },
};

void turned_size(uint32_t orientation, uint32_t *width, uint32_t *height) {
        uint32_t stored_width = *width;

        if (!TURNS[orientation].is_sideways)
                return;
        *width = *height;
        *height = stored_width;
}

struct box turned_source(uint32_t orientation, uint32_t width, uint32_t height, const struct box *box) {
        const struct turn *turn = &TURNS[orientation];
        struct box source = *box;

        if (turn->is_sideways)
                source = (struct box){ .x = box->y, .y = box->x, .width = box->height, .height = box->width };
        if (turn->flips_rows)
                source.y = height - source.y - source.height;
        if (turn->flips_columns)
                source.x = width - source.x - source.width;
        return source;
}

uint64_t turned_need(const struct geometry *geometry) {
        const struct box *box = &geometry->source;

        return ((uint64_t)box->height + BAND_ROWS) * box->width * PIXEL_BYTES;
}

/* ---- upright rows ------------------------------------------------------------------------------------------------ */

/* Row y of what is needed of the upright picture. */
static void turned_turn_row(const struct view *stored, const struct turn *turn, uint32_t y, uint32_t width,
                            uint8_t *out) {
        uint32_t last_row = stored->height - 1, last_column = stored->width - 1;

        for (uint32_t x = 0; x < width; x++, out += PIXEL_BYTES) {
                uint32_t row = turn->is_sideways ? x : y, column = turn->is_sideways ? y : x;
                const uint8_t *from = stored->pixels + (turn->flips_rows ? last_row - row : row) * stored->stride +
                                      (size_t)(turn->flips_columns ? last_column - column : column) * PIXEL_BYTES;

                out[0] = from[0];
                out[1] = from[1];
                out[2] = from[2];
        }
}

/* Through the pipeline, some rows at a time. */
static int turned_feed(struct codec_tools *tools, const struct view *stored, const struct turn *turn, uint8_t *band,
                       uint8_t *out, size_t stride, struct why *why) {
        const struct box *box = &tools->geometry.source;
        size_t row_bytes = (size_t)box->width * PIXEL_BYTES;
        int r = recipe_begin(tools->workspace, &tools->geometry, out, stride, why);

        for (uint32_t first = 0; first < box->height && r == 0; first += BAND_ROWS) {
                uint32_t n = box->height - first < BAND_ROWS ? box->height - first : BAND_ROWS;

                for (uint32_t i = 0; i < n; i++)
                        turned_turn_row(stored, turn, first + i, box->width, band + i * row_bytes);
                recipe_feed(tools->workspace,
                            &(struct view){ .pixels = band, .stride = row_bytes, .width = box->width, .height = n });
        }
        return r < 0 ? r : recipe_end(tools->workspace, why);
}

static int turned_rows(struct codec_tools *tools, uint32_t orientation, const struct view *stored, uint8_t *band,
                       uint8_t *out, size_t stride, struct why *why) {
        const struct geometry *geometry = &tools->geometry;
        const struct turn *turn = &TURNS[orientation];

        if (!geometry->is_copy)
                return turned_feed(tools, stored, turn, band, out, stride, why);
        for (uint32_t y = 0; y < geometry->height; y++)
                turned_turn_row(stored, turn, y, geometry->width, out + y * stride);
        return 0;
}

int turned_run(struct codec_tools *tools, uint32_t orientation, const struct view *stored, uint8_t *out, size_t stride,
               struct why *why) {
        int r = codec_memory_reserve(&tools->rows, (size_t)turned_need(&tools->geometry), why);

        return r < 0 ? r : turned_rows(tools, orientation, stored, tools->rows.bytes, out, stride, why);
}

int turned_render(struct codec_tools *tools, uint32_t orientation, uint8_t *out, size_t stride, struct why *why) {
        struct box source = turned_source(orientation, tools->info.width, tools->info.height, &tools->geometry.source);
        size_t row_bytes = (size_t)source.width * PIXEL_BYTES;
        struct view stored = { .stride = row_bytes, .width = source.width, .height = source.height };
        int r = codec_memory_reserve(&tools->rows, (size_t)turned_need(&tools->geometry), why);

        if (r < 0)
                return r;
        stored.pixels = tools->rows.bytes;
        r = decoder_read_box(tools->decoder, &source, tools->rows.bytes, row_bytes, why);
        if (r < 0)
                return r;
        return turned_rows(tools, orientation, &stored, tools->rows.bytes + row_bytes * source.height, out, stride,
                           why);
}

void turned_copy(uint32_t orientation, const uint8_t *pixels, uint32_t width, uint32_t height, uint8_t *out) {
        struct view stored = {
                .pixels = pixels, .stride = (size_t)width * PIXEL_BYTES, .width = width, .height = height
        };

        turned_size(orientation, &width, &height);
        for (uint32_t y = 0; y < height; y++)
                turned_turn_row(&stored, &TURNS[orientation], y, width, out + (size_t)y * width * PIXEL_BYTES);
}
