/* augment/warp/turn.c: turns by quarters, which only move pixels. */
#include <string.h>

#include "daemon/augment/warp/warp_rows.h"

#define TILE 16u /* pixels a side: rows of both pictures stay in the cache */

/* The source's pixel that is shown at (x, y). */
static const uint8_t *shown_at(enum warp_kind kind, const struct view *source, uint32_t x, uint32_t y) {
        if (kind == WARP_TURN_LEFT)
                return source_at(source, source->width - 1 - y, x);
        if (kind == WARP_TURN_RIGHT)
                return source_at(source, y, source->height - 1 - x);
        return source_at(source, source->width - 1 - x, source->height - 1 - y);
}

static void turn_tile(enum warp_kind kind, const struct view *source, const struct canvas *canvas, uint32_t x,
                      uint32_t y) {
        uint32_t end_x = x + TILE < canvas->width ? x + TILE : canvas->width;
        uint32_t end_y = y + TILE < canvas->height ? y + TILE : canvas->height;

        for (uint32_t row = y; row < end_y; row++)
                for (uint32_t column = x; column < end_x; column++)
                        memcpy(canvas_at(canvas, column, row), shown_at(kind, source, column, row), PIXEL_BYTES);
}

void warp_turn(const struct warp *warp, const struct view *source, const struct canvas *canvas) {
        for (uint32_t y = 0; y < canvas->height; y += TILE)
                for (uint32_t x = 0; x < canvas->width; x += TILE)
                        turn_tile(warp->kind, source, canvas, x, y);
}
