/* augment/border.h: what lies around a picture that is pasted onto a larger canvas. Private to this floor.
 *
 * torchvision's padding modes: a colour; the outermost pixel again and again; or the picture mirrored, with its
 * outermost pixel repeated (symmetric) or not (reflect), and mirrored again where the border is wider than it. */
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

/* Would the two draw the same colour, wherever? */
bool border_is_same_colour(const struct border *a, const struct border *b);

/* Writes all of the canvas but the pixels of `picture`, which lies within it. Modes other than BORDER_CONSTANT read
 * those: they are to be there, and not empty. */
void border_draw(const struct border *border, const struct box *picture, const struct canvas *canvas);
