#include "daemon/augment/steps/crops/corners.h"

#include <errno.h>
#include <inttypes.h>

int corners_crop(struct fold *fold, const char *step, const struct value *size, uint32_t corner, struct why *why) {
        struct box box = { .width = size->width, .height = size->height };
        uint32_t width = fold_width(fold), height = fold_height(fold);

        if (width < box.width || height < box.height)
                return why_set(why, -ERANGE,
                               "%s: crops of %" PRIu32 " x %" PRIu32 " pixels do not fit into %" PRIu32 " x %" PRIu32
                               "; a resize before it would enlarge the picture",
                               step, box.width, box.height, width, height);
        if (corner == N_CORNERS - 1) {
                box.x = crop_center_offset(width, box.width);
                box.y = crop_center_offset(height, box.height);
        } else {
                box.x = corner % 2 ? width - box.width : 0;
                box.y = corner / 2 ? height - box.height : 0;
        }
        return fold_crop(fold, &box, why);
}

void corners_output(const struct value *values, uint32_t *height, uint32_t *width) {
        *height = values[0].height;
        *width = values[0].width;
}
