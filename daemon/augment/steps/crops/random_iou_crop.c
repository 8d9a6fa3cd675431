/* augment/steps/crops/random_iou_crop.c: torchvision v2's RandomIoUCrop: a crop that holds the center of at least one
 * box, and overlaps one of these by a drawn amount; boxes whose center is outside become empty. The only step whose
 * draws depend on more than the picture's size: on the boxes, as the steps before it have moved them.
 *
 * Draws an option, one word below their number. 1 or more: the picture stays as it is. Else up to `trials` times: two
 * f32, of width and height; and if their ratio is allowed two f32, of left and top. If no trial succeeds, it begins
 * again, ROUNDS times at most: torchvision goes on for ever. Numbers are float32, as torch's. */
#include "daemon/augment/step.h"

#include <errno.h>
#include <string.h>

#define ROUNDS 100u

enum {
        MIN_SCALE,
        MAX_SCALE,
        MIN_RATIO,
        MAX_RATIO,
        OPTIONS,
        TRIALS
};

static float random_iou_crop_larger(float a, float b) {
        return a > b ? a : b;
}

static float random_iou_crop_smaller(float a, float b) {
        return a < b ? a : b;
}

/* How much of the union of both is in both. */
static float overlap(const float *box, const float *crop) {
        float width = random_iou_crop_larger(
                random_iou_crop_smaller(box[2], crop[2]) - random_iou_crop_larger(box[0], crop[0]), 0);
        float height = random_iou_crop_larger(
                random_iou_crop_smaller(box[3], crop[3]) - random_iou_crop_larger(box[1], crop[1]), 0);
        float shared = width * height;

        return shared / ((box[2] - box[0]) * (box[3] - box[1]) + (crop[2] - crop[0]) * (crop[3] - crop[1]) - shared);
}

/* Does one of the boxes with a center in the crop overlap it by `wanted`? */
static bool random_iou_crop_suits(const struct fold *fold, const struct box *box, float wanted) {
        const struct recipe_boxes *boxes = fold->geometry->boxes;
        float crop[] = { (float)box->x, (float)box->y, (float)(box->x + box->width), (float)(box->y + box->height) };

        for (size_t i = 0; i < boxes->n; i++) {
                float moved[4];

                memcpy(moved, boxes->bytes + i * sizeof(moved), sizeof(moved));
                motions_apply(fold->motions, (uint8_t *)moved, 1, NULL);
                if (motions_is_within(moved, crop) && overlap(moved, crop) >= wanted)
                        return true;
        }
        return false;
}

/* Draws a crop. False: it is none. */
static bool random_iou_crop_draw(const struct value *values, struct dlp_philox *philox, const struct fold *fold,
                                 struct box *ret_box) {
        float least = (float)values[MIN_SCALE].number;
        float range = (float)(values[MAX_SCALE].number - values[MIN_SCALE].number);
        uint32_t width = fold_width(fold), height = fold_height(fold);
        float x = least + range * dlp_philox_f32(philox), y = least + range * dlp_philox_f32(philox);
        struct box box = { .width = (uint32_t)((float)width * x), .height = (uint32_t)((float)height * y) };
        double ratio = (double)box.width / (double)box.height;

        if (box.width == 0 || box.height == 0 || ratio < values[MIN_RATIO].number || ratio > values[MAX_RATIO].number)
                return false;
        box.x = (uint32_t)((float)(width - box.width) * dlp_philox_f32(philox));
        box.y = (uint32_t)((float)(height - box.height) * dlp_philox_f32(philox));
        *ret_box = box;
        return true;
}

/* Returns false if the picture stays as it is. */
static bool random_iou_crop_choose(const struct value *values, struct dlp_philox *philox, const struct fold *fold,
                                   struct box *ret_box) {
        const struct value *options = &values[OPTIONS];

        for (uint32_t round = 0; round < ROUNDS; round++) {
                double wanted = options->list[dlp_philox_below(philox, options->n_list)];

                if (wanted >= 1)
                        return false;
                for (double trial = 0; trial < values[TRIALS].list[0]; trial++)
                        if (random_iou_crop_draw(values, philox, fold, ret_box) &&
                            random_iou_crop_suits(fold, ret_box, (float)wanted))
                                return true;
        }
        return false;
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        struct box box;

        if (!random_iou_crop_choose(values, philox, fold, &box))
                return 0;
        motions_within(fold->motions, (float)box.x, (float)box.y, (float)(box.x + box.width),
                       (float)(box.y + box.height));
        return fold_crop(fold, &box, why);
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        (void)values;
        *height = *width = 0;
}

/* No side becomes longer. */
static void bound(const struct value *values, uint32_t *height, uint32_t *width) {
        (void)values;
        (void)height;
        (void)width;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        (void)conversion;
        if (values[MIN_SCALE].number > values[MAX_SCALE].number)
                return why_set(why, -EINVAL, "min_scale %g is above max_scale %g", values[MIN_SCALE].number,
                               values[MAX_SCALE].number);
        if (values[MIN_RATIO].number > values[MAX_RATIO].number)
                return why_set(why, -EINVAL, "min_aspect_ratio %g is above max_aspect_ratio %g",
                               values[MIN_RATIO].number, values[MAX_RATIO].number);
        return 0;
}

const struct step_type step_random_iou_crop = {
        .kind = { .name = "random_iou_crop",
                  .doc = "Draws one of `sampler_options` and then crops until one holds the center of a box, and "
                         "overlaps such a box (intersection over union) by the option at least; with an option of 1 "
                         "or more the picture stays as it is. Boxes whose center is outside become empty; a "
                         "`sanitize` later in the part drops them. The part names one field of boxes with the "
                         "picture, which have to be in the index (COCO) or come with the same read as the picture, as "
                         "in an archive or a table; boxes in another file than the picture's make the sample damaged. "
                         "Without success in 100 times `trials` the picture stays as it is, where torchvision would "
                         "go on for ever.",
                  .like = "torchvision.transforms.v2.RandomIoUCrop",
                  .example = "random_iou_crop()",
                  .arguments = ARGUMENTS([MIN_SCALE] = { ARGUMENT_NUMBER, "min_scale", "0.3", 0.01, 1 },
                                         [MAX_SCALE] = { ARGUMENT_NUMBER, "max_scale", "1", 0.01, 1 },
                                         [MIN_RATIO] = { ARGUMENT_NUMBER, "min_aspect_ratio", "0.5", 0, 1000 },
                                         [MAX_RATIO] = { ARGUMENT_NUMBER, "max_aspect_ratio", "2", 0, 1000 },
                                         [OPTIONS] = { ARGUMENT_LIST, "sampler_options", "0:0.1:0.3:0.5:0.7:0.9:1", 0,
                                                       2, .counts = ~1u, .form = "N:N", .attribute = "options" },
                                         [TRIALS] = { ARGUMENT_LIST, "trials", "40", 1, 1000, .counts = 1u << 1,
                                                      .is_whole = true, .form = "N" }) },
        .plan = plan,
        .output = output,
        .bound = bound,
        .convert = convert,
        .needs_boxes = true,
};
