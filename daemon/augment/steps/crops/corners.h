/* augment/steps/crops/corners.h: what five_crop and ten_crop have in common. Private to this floor. */
#pragma once

#include "daemon/augment/step.h"

#define N_CORNERS 5u /* with the center */

/* Crops to corner number `corner`. -ERANGE if the picture is smaller than that, with the step's name. */
int corners_crop(struct fold *fold, const char *step, const struct value *size, uint32_t corner, struct why *why);

/* The crops' size, which is the first argument. */
void corners_output(const struct value *values, uint32_t *height, uint32_t *width);
