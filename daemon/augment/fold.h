/* augment/fold.h: folds what the steps do to a picture's geometry into as few stages as give the same pixels.
 * Private to this floor.
 *
 * Crops, padding with one colour and mirroring commute with each other if their numbers are adjusted, and a crop after
 * a resize is a window of it. Two resizes do not fold (each rounds), nor does a resize after padding or mirroring, nor
 * paddings of two kinds, nor a crop after a border that is made of the picture: they begin a new stage. Operations
 * come last in a stage; what follows them is folded into the stage only if it would do the same before them. */
#pragma once

#include "daemon/augment/recipe.h"

struct fold {
        struct geometry *geometry; /* being written; its last stage is the current one */
};

/* How the stage's window is resampled out of its source. */
struct resize_job stage_resize_job(const struct stage *stage);

/* Begins with the picture as it is. */
void fold_init(struct fold *fold, struct geometry *geometry, uint32_t width, uint32_t height,
               const struct conversion *conversion);

/* Size of the picture as the next step sees it. */
uint32_t fold_width(const struct fold *fold);
uint32_t fold_height(const struct fold *fold);

/* Keeps a box of it; within it and not empty (asserted). -EFBIG. */
int fold_crop(struct fold *fold, const struct box *box, struct why *why);

/* Pixels on each side, RECIPE_PADDING_MAX at most. */
struct padding {
        uint32_t left, top, right, bottom;
};

/* Makes it larger. -EFBIG. */
int fold_pad(struct fold *fold, const struct padding *padding, const struct border *border, struct why *why);

/* Resamples it to width x height; nothing if it has that size. -EFBIG above the limits of recipe.h. */
int fold_resize(struct fold *fold, uint64_t width, uint64_t height, enum resize_filter filter, struct why *why);

/* Mirrors it left to right, or top to bottom. -EFBIG. */
int fold_flip(struct fold *fold, struct why *why);
int fold_vflip(struct fold *fold, struct why *why);

/* Changes the pixels where they are. STEP_OPERATIONS_MAX times a step at most (asserted). */
void fold_operate(struct fold *fold, const struct operation *operation);

/* Completes the geometry. -EFBIG. */
int fold_finish(struct fold *fold, struct why *why);
