/* augment/fold.h: folds what the steps do to a picture's geometry into as few stages as possible with the same pixels.
 * Private to this floor.
 *
 * Crops, padding with one colour and mirroring may change places if their numbers are adjusted, and a crop after a
 * resize is a window of it. These begin a new stage instead: a second resize (each one rounds), a resize after padding
 * or mirroring, a padding of another kind, and a crop after a border that is made of the picture. Operations are last
 * in a stage; a step after them is folded into the stage only if it gives the same result before them. A warp is the
 * only move of its stage. */
#pragma once

#include "daemon/augment/motions.h"
#include "daemon/augment/recipe.h"

struct fold {
        struct geometry *geometry; /* being written; the last stage in it is the current one */
        struct motions *motions;   /* what is done to coordinates; NULL: nobody asked */
        uint32_t view;             /* of the sample: step_type.n_views */
        enum stage_id step;        /* whose time the next change takes */
        bool is_mask;              /* pixels are numbers of classes: they are moved, never mixed or changed */
        bool is_left;              /* the next change is left to the client: it is noted in geometry->left, no more */
        bool is_formed;            /* levels are floats by now: erasing is noted in geometry->erasures */
        bool is_grey;              /* of one channel, of which a stage has three equal ones */
};

/* How the stage's window is resampled out of its source. */
struct resize_job stage_resize_job(const struct stage *stage);

/* Begins with the unchanged picture; motions are not noted. */
void fold_init(struct fold *fold, struct geometry *geometry, uint32_t width, uint32_t height,
               const struct conversion *conversion);

/* Size of the picture before the next step. */
uint32_t fold_width(const struct fold *fold);
uint32_t fold_height(const struct fold *fold);

/* Keeps a box of the picture; the box is within the picture and not empty (asserted). -EFBIG. */
int fold_crop(struct fold *fold, const struct box *box, struct why *why);

/* Pixels on each side, at most RECIPE_PADDING_MAX. */
struct padding {
        uint32_t left, top, right, bottom;
};

/* Adds padding to the picture. -EFBIG. */
int fold_pad(struct fold *fold, const struct padding *padding, const struct border *border, struct why *why);

/* Resamples the picture to width x height; does nothing if it has that size. -EFBIG above the limits of recipe.h. */
int fold_resize(struct fold *fold, uint64_t width, uint64_t height, enum resize_filter filter, struct why *why);

/* Mirrors the picture left to right, or top to bottom. -EFBIG. */
int fold_flip(struct fold *fold, struct why *why);
int fold_vflip(struct fold *fold, struct why *why);

/* Makes a canvas of width x height that shows the picture as the warp says. Numbers that are never mixed are chosen,
 * whatever filter it has. Notes nothing for coordinates: warp/warp_moves.h does. Always begins a stage, and a move
 * after it begins another. -EFBIG; -EINVAL if a mask would be filled with a colour. */
int fold_warp(struct fold *fold, const struct warp *warp, uint32_t width, uint32_t height, struct why *why);

/* -EFBIG if the picture is too large for what needs all of its pixels. */
int fold_check(const struct fold *fold, struct why *why);

/* Changes pixels in place. At most STEP_OPERATIONS_MAX times for each step (asserted). */
void fold_operate(struct fold *fold, const struct operation *operation);

/* Erases a box of the result, which is within the picture: with one number, or one for each channel; with none, noise
 * of this seed. At most once for each step (asserted). */
void fold_erase(struct fold *fold, const struct box *box, const double *numbers, uint32_t n_numbers, uint64_t seed);

/* Completes the geometry. -EFBIG. */
int fold_finish(struct fold *fold, struct why *why);
