/* augment/operations/lab.h: sRGB to CIE L*a*b* of 8 bits and back, in place, with the bits of OpenCV's cvtColor().
 *
 * L is 0 to 255 for 0 to 100; 128 is added to a and b. White is D65. */
#pragma once

#include "daemon/augment/canvas.h"

void lab_from_rgb(const struct canvas *canvas);
void lab_to_rgb(const struct canvas *canvas);
