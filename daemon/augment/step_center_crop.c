/* augment/step_center_crop.c: torchvision's CenterCrop: a picture that is too small gets a black border first. */
#include "daemon/augment/step.h"

enum {
        SIZE
};

static uint32_t larger(uint32_t a, uint32_t b) {
        return a > b ? a : b;
}

static int plan(const struct value *values, struct dlp_philox *philox, struct planner *planner, struct why *why) {
        struct box box = { .width = values[SIZE].width, .height = values[SIZE].height };
        uint32_t width = planner_width(planner), height = planner_height(planner);

        (void)philox; /* draws nothing */
        (void)why;
        planner_pad(planner, larger(width, box.width), larger(height, box.height),
                    crop_center_padding(width, box.width), crop_center_padding(height, box.height));
        box.x = crop_center_offset(planner_width(planner), box.width);
        box.y = crop_center_offset(planner_height(planner), box.height);
        planner_crop(planner, &box);
        return 0;
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        *height = values[SIZE].height;
        *width = values[SIZE].width;
}

const struct step_type step_center_crop = {
        .name = "center_crop",
        .example = "center_crop(224)",
        .arguments = { [SIZE] = { ARGUMENT_SIZE, "size", NULL } },
        .plan = plan,
        .output = output,
};
