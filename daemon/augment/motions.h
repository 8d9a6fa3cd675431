/* augment/motions.h: what a recipe does to coordinates, for boxes that move with their picture.
 *
 * The steps of a plan tell the fold how they move pixels; the same calls are noted here, in their sequence and
 * unfolded, because each of them rounds (float32) and clamps as torchvision's functions for bounding boxes do. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/augment/warp/displace.h"
#include "proto/limits.h"

#define MOTIONS_MAX (4u * DLP_STEPS_MAX) /* one step makes at most three paddings and a crop */

enum motion_kind {
        MOTION_SCALE,  /* by x and y */
        MOTION_SHIFT,  /* by x and y, then clamped to the picture of width x height that results */
        MOTION_HFLIP,  /* within `width` */
        MOTION_VFLIP,  /* within `height` */
        MOTION_AFFINE, /* by the matrix, then less x and y, then clamped to the picture of width x height that results
                        */
        MOTION_PERSPECTIVE, /* by the matrix, then clamped to the picture of width x height */
        MOTION_DISPLACE,    /* each corner by its own displacement, then clamped to the picture of width x height */
        MOTION_WITHIN,      /* empties boxes whose center is not in x, y, width (right), height (bottom) */
        MOTION_SANITIZE, /* drops boxes that are narrower or lower than x, have an area below y, or leave the picture */
};

struct motion {
        enum motion_kind kind;
        float x, y;
        float width, height;
        float matrix[8]; /* (m0 x + m1 y + m2, m3 x + m4 y + m5), by m6 x + m7 y + 1 for a perspective */
        struct displacement displacement; /* of MOTION_DISPLACE */
};

struct motions {
        uint32_t n;
        struct motion motions[MOTIONS_MAX];
};

/* Notes a motion. Takes NULL: nobody asked. A crop is a shift by -x, also by -0: so the sign of a zero is torch's. */
void motions_scale(struct motions *motions, uint32_t width, uint32_t height, uint64_t new_width, uint64_t new_height);
void motions_shift(struct motions *motions, float x, float y, uint64_t new_width, uint64_t new_height);
void motions_hflip(struct motions *motions, uint32_t width);
void motions_vflip(struct motions *motions, uint32_t height);

/* `expand`: onto a canvas whose top left corner is that of the box around the picture. */
void motions_affine(struct motions *motions, const float matrix[6], bool expand, uint32_t width, uint32_t height,
                    uint32_t new_width, uint32_t new_height);
void motions_perspective(struct motions *motions, const float matrix[8], uint32_t width, uint32_t height);

void motions_displace(struct motions *motions, const struct displacement *displacement, uint32_t width,
                      uint32_t height);
/* Empties boxes whose center does not lie in this crop, which is noted next, as 0, 0, 0, 0. */
void motions_within(struct motions *motions, float left, float top, float right, float bottom);

/* Does the box's center lie in the crop? Both are left, top, right, bottom. */
bool motions_is_within(const float *box, const float *crop);

void motions_sanitize(struct motions *motions, float min_size, float min_area, uint32_t width, uint32_t height);

/* Moves n boxes: left, top, right, bottom, each float32, one after the other. Need not be aligned. Sets bit i % 8 of
 * kept[i / 8] if box i stays, and clears it if it is dropped; it is moved nevertheless. NULL: nobody asks. */
void motions_apply(const struct motions *motions, uint8_t *boxes, size_t n, uint8_t *kept);

/* Moves n points: x and y, each float32. As in torchvision, nothing clamps them, and a flip counts from the centres of
 * the outermost pixels. */
void motions_apply_points(const struct motions *motions, uint8_t *points, size_t n);
