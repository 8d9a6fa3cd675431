/* augment/crop.h: the rectangles of torchvision's transforms. Arithmetic only, no pixels. */
#pragma once

#include "daemon/base/box.h"
#include "proto/order/philox.h"
#include "proto/text/step_values.h"

#include <stdint.h>

/* RandomResizedCrop's box: `scale` is the fraction of the picture's area, `ratio` is width divided by height. Makes ten
 * attempts to draw a box that fits, then takes the central crop that comes nearest. torchvision's algorithm in float64,
 * with the stream's numbers instead of torch's. The box is never empty. */
void crop_random_resized(struct dlp_philox *philox, uint32_t width, uint32_t height, struct range scale,
                         struct range ratio, struct box *ret_box);

/* Resize(size): the short side becomes `size`, the long one keeps the aspect ratio, truncated to whole pixels. A strip
 * of 1 x 100,000 pixels gets a long side of millions, hence 64 bits. */
void crop_resize_short(uint32_t width, uint32_t height, uint32_t size, uint64_t *ret_width, uint64_t *ret_height);

/* Resize's max_size: a longer long side becomes `max`, and the short one, at most RECIPE_SIZE_MAX, keeps the aspect
 * ratio, truncated to whole pixels; to 0 for a narrow strip. */
void crop_limit_long(uint32_t max, uint64_t *width, uint64_t *height);

/* CenterCrop along one axis: where the crop of `target` pixels begins in `length` (>= target) pixels; half to even. */
uint32_t crop_center_offset(uint32_t length, uint32_t target);

/* If the picture is smaller than the crop (`length` < `target`), CenterCrop first pads with zeros: how many before and
 * after. */
void crop_center_padding(uint32_t length, uint32_t target, uint32_t *ret_before, uint32_t *ret_behind);
