#include "daemon/augment/motions.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void motions_add(struct motions *motions, const struct motion *motion) {
        assert(motions->n < MOTIONS_MAX);
        motions->motions[motions->n++] = *motion;
}

void motions_scale(struct motions *motions, uint32_t width, uint32_t height, uint64_t new_width, uint64_t new_height) {
        if (motions)
                motions_add(motions, &(struct motion){ .kind = MOTION_SCALE,
                                                       .x = (float)((double)new_width / width),
                                                       .y = (float)((double)new_height / height) });
}

void motions_shift(struct motions *motions, float x, float y, uint64_t new_width, uint64_t new_height) {
        if (motions)
                motions_add(motions, &(struct motion){ .kind = MOTION_SHIFT,
                                                       .x = x,
                                                       .y = y,
                                                       .width = (float)new_width,
                                                       .height = (float)new_height });
}

void motions_hflip(struct motions *motions, uint32_t width) {
        if (motions)
                motions_add(motions, &(struct motion){ .kind = MOTION_HFLIP, .width = (float)width });
}

void motions_vflip(struct motions *motions, uint32_t height) {
        if (motions)
                motions_add(motions, &(struct motion){ .kind = MOTION_VFLIP, .height = (float)height });
}

/* By a matrix of two rows. Each operation rounds, in torch's sequence. */
static void motions_multiply(const float *matrix, float x, float y, float *ret_x, float *ret_y) {
        *ret_x = x * matrix[0] + y * matrix[1] + matrix[2];
        *ret_y = x * matrix[3] + y * matrix[4] + matrix[5];
}

void motions_affine(struct motions *motions, const float matrix[6], bool expand, uint32_t width, uint32_t height,
                    uint32_t new_width, uint32_t new_height) {
        struct motion motion = { .kind = MOTION_AFFINE, .width = (float)new_width, .height = (float)new_height };
        float xs[] = { 0, 0, (float)width, (float)width }, ys[] = { 0, (float)height, (float)height, 0 };

        if (!motions)
                return;
        memcpy(motion.matrix, matrix, 6 * sizeof(float));
        for (unsigned i = 0; i < 4 && expand; i++) {
                float x, y;

                motions_multiply(matrix, xs[i], ys[i], &x, &y);
                motion.x = i == 0 || x < motion.x ? x : motion.x;
                motion.y = i == 0 || y < motion.y ? y : motion.y;
        }
        motions_add(motions, &motion);
}

void motions_perspective(struct motions *motions, const float matrix[8], uint32_t width, uint32_t height) {
        struct motion motion = { .kind = MOTION_PERSPECTIVE, .width = (float)width, .height = (float)height };

        memcpy(motion.matrix, matrix, sizeof(motion.matrix));
        if (motions)
                motions_add(motions, &motion);
}

void motions_displace(struct motions *motions, const struct displacement *displacement, uint32_t width,
                      uint32_t height) {
        if (motions)
                motions_add(motions, &(struct motion){ .kind = MOTION_DISPLACE,
                                                       .width = (float)width,
                                                       .height = (float)height,
                                                       .displacement = *displacement });
}

void motions_within(struct motions *motions, float left, float top, float right, float bottom) {
        if (motions)
                motions_add(motions,
                            &(struct motion){
                                    .kind = MOTION_WITHIN, .x = left, .y = top, .width = right, .height = bottom });
}

bool motions_is_within(const float *box, const float *crop) {
        float x = 0.5f * (box[0] + box[2]), y = 0.5f * (box[1] + box[3]);

        return crop[0] < x && x < crop[2] && crop[1] < y && y < crop[3];
}

/* The crop that follows leaves zeroes where they are. */
static void empty_outside(const struct motion *motion, float *box) {
        const float crop[] = { motion->x, motion->y, motion->width, motion->height };

        if (!motions_is_within(box, crop))
                memset(box, 0, 4 * sizeof(*box));
}

void motions_sanitize(struct motions *motions, float min_size, float min_area, uint32_t width, uint32_t height) {
        if (motions)
                motions_add(motions, &(struct motion){ .kind = MOTION_SANITIZE,
                                                       .x = min_size,
                                                       .y = min_area,
                                                       .width = (float)width,
                                                       .height = (float)height });
}

/* NaN stays NaN. */
static float motions_clamped(float value, float limit) {
        return value < 0 ? 0 : value > limit ? limit : value;
}

/* The new `low` is the old `high`. */
static void flip(float *low, float *high, float length) {
        float old_low = *low;

        *low = -(*high - length);
        *high = -(old_low - length);
}

static void move_point(const struct motion *motion, float *x, float *y) {
        const float *matrix = motion->matrix;
        float distance = *x * matrix[6] + *y * matrix[7] + 1.0f;

        motions_multiply(matrix, *x, *y, x, y);
        if (motion->kind == MOTION_PERSPECTIVE) {
                *x /= distance;
                *y /= distance;
        }
}

/* torchvision takes the pixel to the right and below of a box's corner, and that in which a point is. */
static void move_displaced(const struct motion *motion, bool is_corner, float *x, float *y) {
        *x = is_corner ? ceilf(*x) : *x;
        *y = is_corner ? ceilf(*y) : *y;
        displace_point(&motion->displacement, (uint32_t)motion->width, (uint32_t)motion->height, x, y);
}

static float motions_less(float a, float b) {
        return b < a || b != b ? b : a; /* NaN wins, as in torch */
}

/* The box around the four corners. */
static void warp_box(const struct motion *motion, float *box) {
        float xs[] = { box[0], box[2], box[2], box[0] }, ys[] = { box[1], box[1], box[3], box[3] };

        for (unsigned i = 0; i < 4; i++)
                if (motion->kind == MOTION_DISPLACE)
                        move_displaced(motion, true, &xs[i], &ys[i]);
                else
                        move_point(motion, &xs[i], &ys[i]);
        box[0] = motions_less(motions_less(xs[0], xs[1]), motions_less(xs[2], xs[3]));
        box[1] = motions_less(motions_less(ys[0], ys[1]), motions_less(ys[2], ys[3]));
        box[2] = -motions_less(motions_less(-xs[0], -xs[1]), motions_less(-xs[2], -xs[3]));
        box[3] = -motions_less(motions_less(-ys[0], -ys[1]), motions_less(-ys[2], -ys[3]));
        for (unsigned i = 0; i < 4; i++)
                box[i] = motions_clamped(box[i] - (i % 2 ? motion->y : motion->x),
                                         i % 2 ? motion->height : motion->width);
}

/* torchvision's SanitizeBoundingBoxes. A box with NaN is dropped. */
static bool is_sane(const struct motion *motion, const float *box) {
        float width = box[2] - box[0], height = box[3] - box[1];

        return width >= motion->x && height >= motion->x && width * height >= motion->y && box[0] >= 0 && box[1] >= 0 &&
               box[2] >= 0 && box[3] >= 0 && box[0] <= motion->width && box[2] <= motion->width &&
               box[1] <= motion->height && box[3] <= motion->height;
}

/* Returns whether the box stays. */
static bool motion_apply(const struct motion *motion, float *box) {
        switch (motion->kind) {
        case MOTION_SCALE:
                for (unsigned i = 0; i < 4; i++)
                        box[i] *= i % 2 ? motion->y : motion->x;
                break;
        case MOTION_SHIFT:
                for (unsigned i = 0; i < 4; i++)
                        box[i] = motions_clamped(box[i] + (i % 2 ? motion->y : motion->x),
                                                 i % 2 ? motion->height : motion->width);
                break;
        case MOTION_HFLIP:
                flip(&box[0], &box[2], motion->width);
                break;
        case MOTION_VFLIP:
                flip(&box[1], &box[3], motion->height);
                break;
        case MOTION_AFFINE:
        case MOTION_PERSPECTIVE:
        case MOTION_DISPLACE:
                warp_box(motion, box);
                break;
        case MOTION_WITHIN:
                empty_outside(motion, box);
                break;
        case MOTION_SANITIZE:
                return is_sane(motion, box);
        }
        return true;
}

void motions_apply(const struct motions *motions, uint8_t *boxes, size_t n, uint8_t *kept) {
        for (size_t i = 0; i < n; i++) {
                bool stays = true;
                float box[4];

                memcpy(box, boxes + i * sizeof(box), sizeof(box));
                for (uint32_t k = 0; k < motions->n; k++)
                        stays = motion_apply(&motions->motions[k], box) && stays;
                memcpy(boxes + i * sizeof(box), box, sizeof(box));
                if (kept)
                        kept[i / 8] = (uint8_t)((kept[i / 8] & ~(1u << i % 8)) | (unsigned)stays << i % 8);
        }
}

static void apply_to_point(const struct motion *motion, float *point) {
        switch (motion->kind) {
        case MOTION_SCALE:
                point[0] *= motion->x;
                point[1] *= motion->y;
                return;
        case MOTION_SHIFT:
                point[0] += motion->x;
                point[1] += motion->y;
                return;
        case MOTION_HFLIP:
                point[0] = -(point[0] - (motion->width - 1));
                return;
        case MOTION_VFLIP:
                point[1] = -(point[1] - (motion->height - 1));
                return;
        case MOTION_AFFINE:
        case MOTION_PERSPECTIVE:
                move_point(motion, &point[0], &point[1]);
                point[0] -= motion->x;
                point[1] -= motion->y;
                return;
        case MOTION_DISPLACE:
                move_displaced(motion, false, &point[0], &point[1]);
                return;
        case MOTION_WITHIN:
        case MOTION_SANITIZE:
                return;
        }
}

void motions_apply_points(const struct motions *motions, uint8_t *points, size_t n) {
        for (size_t i = 0; i < n; i++) {
                float point[2];

                memcpy(point, points + i * sizeof(point), sizeof(point));
                for (uint32_t k = 0; k < motions->n; k++)
                        apply_to_point(&motions->motions[k], point);
                memcpy(points + i * sizeof(point), point, sizeof(point));
        }
}
