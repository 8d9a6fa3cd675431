/* augment/operations/aug_mix/tensors.h: torchvision's functions of transforms.v2 on uint8 tensors, where their results
 * are not those on Pillow's pictures. Private to this folder.
 *
 * They compute in float32 and truncate, as torch does on CPUs with vectors: what is fused there is fused here. The
 * factor 1 is the unchanged picture. */
#pragma once

#include <stdbool.h>

#include "daemon/augment/canvas.h"

void tensor_autocontrast(const struct canvas *canvas);

/* Of one channel, the picture's own levels are its greys. The same bits as torch's while the sum of all greys is below
 * 2^24 (65,000 white pixels); of larger pictures torch's sum, and so a level in a million, depends on the machine. */
void tensor_contrast(const struct canvas *canvas, double factor, bool is_grey);

void tensor_saturation(const struct canvas *canvas, double factor);

/* Writes all of `out`, which is another canvas of the same size. */
void tensor_sharpness(const struct canvas *canvas, double factor, const struct canvas *out);
