/* augment/border.h: the border around a picture that is pasted onto a larger canvas. Private to this floor.
 *
 * torchvision's padding modes: a colour; the outermost pixel repeated; or the picture mirrored, with its outermost
 * pixel repeated (symmetric) or not (reflect), and mirrored again if the border is wider than the picture. */
#pragma once

#include "daemon/augment/canvas.h"

#include <stdbool.h>

enum border_mode {
        BORDER_CONSTANT,
        BORDER_EDGE,
        BORDER_REFLECT,
        BORDER_SYMMETRIC,
        N_BORDER_MODES,
};

/* torchvision's names: index = enum border_mode. */
extern const char *const BORDER_MODE_NAMES[N_BORDER_MODES];

struct border {
        enum border_mode mode;
        uint8_t fill[PIXEL_BYTES]; /* of BORDER_CONSTANT; else zeros */
};

/* Do both draw the same colour everywhere? */
bool border_is_same_colour(const struct border *a, const struct border *b);

/* Writes the whole canvas except the pixels of `picture`, which lies within it. Modes other than BORDER_CONSTANT read
 * those pixels: they must be there already, at least one. */
void border_draw(const struct border *border, const struct box *picture, const struct canvas *canvas);
