#include "daemon/augment/crop.h"

#include <math.h>

#define N_ATTEMPTS 10u /* torchvision's */

static uint32_t clamp_length(double length, uint32_t limit) {
        if (!(length >= 1)) /* a strip and an extreme ratio: torchvision would get no pixels at all */
                return 1;
        return length < limit ? (uint32_t)length : limit;
}

/* The largest central box whose aspect ratio is within `ratio`. Draws nothing. */
static void crop_fallback(uint32_t width, uint32_t height, struct range ratio, struct box *ret_box) {
        double shape = (double)width / (double)height;
        struct box box = { .width = width, .height = height };

        if (shape < ratio.from)
                box.height = clamp_length(rint((double)width / ratio.from), height);
        else if (shape > ratio.to)
                box.width = clamp_length(rint((double)height * ratio.to), width);

        box.x = (width - box.width) / 2;
        box.y = (height - box.height) / 2;
        *ret_box = box;
}

void crop_random_resized(struct dlp_philox *philox, uint32_t width, uint32_t height, struct range scale,
                         struct range ratio, struct box *ret_box) {
        double area = (double)((uint64_t)width * height);
        struct range log_ratio = { log(ratio.from), log(ratio.to) };

        for (unsigned attempt = 0; attempt < N_ATTEMPTS; attempt++) {
                double target = area * (scale.from + (scale.to - scale.from) * dlp_philox_f64(philox));
                double shape = exp(log_ratio.from + (log_ratio.to - log_ratio.from) * dlp_philox_f64(philox));
                double crop_width = rint(sqrt(target * shape)); /* half to even, as Python's round() */
                double crop_height = rint(sqrt(target / shape));

                if (crop_width < 1 || crop_width > width || crop_height < 1 || crop_height > height)
                        continue;
                ret_box->width = (uint32_t)crop_width;
                ret_box->height = (uint32_t)crop_height;
                ret_box->y = dlp_philox_below(philox,
                                              height - ret_box->height + 1); /* row first, as torchvision draws */
                ret_box->x = dlp_philox_below(philox, width - ret_box->width + 1);
                return;
        }
        crop_fallback(width, height, ratio, ret_box);
}

void crop_resize_short(uint32_t width, uint32_t height, uint32_t size, uint64_t *ret_width, uint64_t *ret_height) {
        uint64_t shorter = width <= height ? width : height;
        uint64_t longer = width <= height ? height : width;
        uint64_t new_longer = (uint64_t)((double)(size * longer) / (double)shorter);

        *ret_width = width <= height ? size : new_longer;
        *ret_height = width <= height ? new_longer : size;
}

void crop_limit_long(uint32_t max, uint64_t *width, uint64_t *height) {
        uint64_t *shorter = *width <= *height ? width : height, *longer = *width <= *height ? height : width;

        if (*longer <= max)
                return;
        *shorter = max * *shorter / *longer;
        *longer = max;
}

uint32_t crop_center_offset(uint32_t length, uint32_t target) {
        return (uint32_t)rint((double)(length - target) / 2.0);
}

void crop_center_padding(uint32_t length, uint32_t target, uint32_t *ret_before, uint32_t *ret_behind) {
        uint32_t missing = length < target ? target - length : 0;

        *ret_before = missing / 2;
        *ret_behind = missing - missing / 2;
}
