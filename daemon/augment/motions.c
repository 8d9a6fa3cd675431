#include "daemon/augment/motions.h"

#include <assert.h>
#include <string.h>

static void add(struct motions *motions, const struct motion *motion) {
        assert(motions->n < MOTIONS_MAX);
        motions->motions[motions->n++] = *motion;
}

void motions_scale(struct motions *motions, uint32_t width, uint32_t height, uint64_t new_width, uint64_t new_height) {
        if (motions)
                add(motions, &(struct motion){ .kind = MOTION_SCALE,
                                               .x = (float)((double)new_width / width),
                                               .y = (float)((double)new_height / height) });
}

void motions_shift(struct motions *motions, float x, float y, uint64_t new_width, uint64_t new_height) {
        if (motions)
                add(motions, &(struct motion){ .kind = MOTION_SHIFT,
                                               .x = x,
                                               .y = y,
                                               .width = (float)new_width,
                                               .height = (float)new_height });
}

void motions_hflip(struct motions *motions, uint32_t width) {
        if (motions)
                add(motions, &(struct motion){ .kind = MOTION_HFLIP, .width = (float)width });
}

void motions_vflip(struct motions *motions, uint32_t height) {
        if (motions)
                add(motions, &(struct motion){ .kind = MOTION_VFLIP, .height = (float)height });
}

/* NaN stays NaN. */
static float clamped(float value, float limit) {
        return value < 0 ? 0 : value > limit ? limit : value;
}

/* The new `low` is the old `high`. */
static void flip(float *low, float *high, float length) {
        float old_low = *low;

        *low = -(*high - length);
        *high = -(old_low - length);
}

static void apply(const struct motion *motion, float *box) {
        switch (motion->kind) {
        case MOTION_SCALE:
                for (unsigned i = 0; i < 4; i++)
                        box[i] *= i % 2 ? motion->y : motion->x;
                return;
        case MOTION_SHIFT:
                for (unsigned i = 0; i < 4; i++)
                        box[i] = clamped(box[i] + (i % 2 ? motion->y : motion->x),
                                         i % 2 ? motion->height : motion->width);
                return;
        case MOTION_HFLIP:
                flip(&box[0], &box[2], motion->width);
                return;
        case MOTION_VFLIP:
                flip(&box[1], &box[3], motion->height);
                return;
        }
}

void motions_apply(const struct motions *motions, uint8_t *boxes, size_t n) {
        for (size_t i = 0; i < n; i++) {
                float box[4];

                memcpy(box, boxes + i * sizeof(box), sizeof(box));
                for (uint32_t k = 0; k < motions->n; k++)
                        apply(&motions->motions[k], box);
                memcpy(boxes + i * sizeof(box), box, sizeof(box));
        }
}
