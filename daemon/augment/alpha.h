/* augment/alpha.h: colours that are multiplied with their alpha, as Pillow's modes RGBa and La. Private to this floor.
 *
 * Pixels that are mixed must weigh as much as they are opaque, so Pillow resizes such colours and divides afterwards.
 * Both canvases have the same size; alpha is in the first byte of its pixels. */
#pragma once

#include "daemon/augment/canvas.h"

void alpha_multiply(const struct canvas *colors, const struct canvas *alpha);
void alpha_divide(const struct canvas *colors, const struct canvas *alpha);
