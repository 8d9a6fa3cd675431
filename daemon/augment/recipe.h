/* augment/recipe.h: the text of a pipeline, and what it does to a picture.
 *
 *      random_resized_crop(224, scale=0.08:1) hflip(0.5) to(float16) layout(nchw)
 *
 * Steps are written one after the other, separated by blanks; each is name(argument, key=value), with torchvision's
 * meaning and defaults. Lone `raw` hands out the encoded bytes, lone `decode` the pixels as they are; `decode` may also
 * be written in front of other steps, where it says nothing. The steps and their arguments are the table in recipe.c.
 *
 * A sample goes through a recipe in two phases, because a crop is drawn from the size in the header, before anything is
 * decoded:
 *
 *      recipe_plan()       draws, and folds all steps into a few stages: crop, resample, window, padding, flips,
 *                          and what is then done to the pixels where they are
 *      (decode geometry.source, or straight to the output if geometry.is_copy)
 *      recipe_begin(), recipe_feed(), recipe_end()
 *                          execute the stages while the rows of the source come; the last one writes the output's own
 *                          memory, or is converted to it
 *
 * A recipe does not change once it is parsed: any number of threads may use it. */
#pragma once

#include "daemon/augment/border.h"
#include "daemon/augment/conversion.h"
#include "daemon/augment/operation.h"
#include "daemon/augment/resize/resize.h"
#include "daemon/base/box.h"
#include "proto/base/why.h"
#include "proto/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECIPE_SIZE_MAX           16384u       /* pixels a side that may be asked for: above any network's input */
#define RECIPE_PADDING_MAX        16384u       /* pixels on one side of a picture: sums of 32 steps stay in 32 bits */
#define RECIPE_RESAMPLED_SIDE_MAX (1u << 20)   /* pixels a side of what a resize reads or makes: bounds its tables */
#define RECIPE_BETWEEN_PIXELS_MAX (1ull << 26) /* pixels between two stages: 192 MiB of a worker's memory */

enum recipe_kind {
        RECIPE_RAW, /* the encoded bytes, untouched: nothing to plan */
        RECIPE_PIXELS,
};

struct recipe;

/* -EINVAL, with column (from 1), the word that is wrong and what was expected; -ENOMEM. */
int recipe_parse(const char *text, struct recipe **ret_recipe, struct why *why);

/* Takes NULL. */
void recipe_free(struct recipe *recipe);
void recipe_freep(struct recipe **recipe);

enum recipe_kind recipe_kind(const struct recipe *recipe);

/* The recipe in its one normal spelling, with all defaults written out. Equal texts do equal things. Owned by the
 * recipe. */
const char *recipe_text(const struct recipe *recipe);

/* The size that every sample has in the end. Returns 0; RECIPE_VARIES (positive) if it depends on the picture. */
#define RECIPE_VARIES 1
int recipe_output(const struct recipe *recipe, uint32_t *ret_height, uint32_t *ret_width);

/* Of a recipe whose result varies: the most pixels that a sample has in the end, as `decode(max_pixels=N)` says; 0: it
 * does not say. */
#define RECIPE_MAX_PIXELS_MAX 4294967295u
uint64_t recipe_max_pixels(const struct recipe *recipe);

/* What its samples are made of. Owned by the recipe; for RECIPE_PIXELS. */
const struct pixel_format *recipe_format(const struct recipe *recipe);

/* ---- phase one ----------------------------------------------------------------------------------------------- */

/* Source box -> resampled to width x height -> window of that -> pasted onto a canvas with a border -> mirrored ->
 * operations on the canvas. Most stages leave out most of it. */
struct stage {
        struct box source;      /* within what the stage before made (the first: within the picture) */
        uint32_t width, height; /* equal to the source box's: no resampling */
        enum resize_filter filter;
        struct box window; /* empty if all of it was cropped away: then the canvas is all border */
        uint32_t canvas_width, canvas_height;
        uint32_t paste_x, paste_y; /* the window's corner on the canvas, before mirroring */
        struct border border;
        bool flip;                              /* left to right */
        bool vflip;                             /* top to bottom */
        uint32_t first_operation, n_operations; /* of the geometry's */
};

#define STAGES_MAX (4u * DLP_STEPS_MAX + 1u) /* the most that a step begins is four: three paddings and a crop */

struct geometry {
        struct box source;      /* what the decoder has to give: what is needed of the first stage's source */
        uint32_t width, height; /* of the result */
        bool is_copy;           /* the whole picture unchanged: the decoder may write the result itself */
        bool is_direct;         /* the last stage writes the output as it goes and never reads it again */
        uint32_t n_stages;
        struct stage stages[STAGES_MAX];
        uint32_t n_operations;
        struct operation operations[DLP_STEPS_MAX * STEP_OPERATIONS_MAX];
        const struct conversion *conversion; /* the recipe's */
};

/* Draws and plans for a picture of this size (at least 1 x 1). What is drawn depends on seed, epoch, sample and the
 * place of the step in the text, on nothing else. -EFBIG if a resize would make or read more than the limits above;
 * -ERANGE if the picture is smaller than what is to be cropped out of it. */
int recipe_plan(const struct recipe *recipe, uint32_t width, uint32_t height, uint64_t seed, uint32_t epoch,
                uint64_t sample, struct geometry *ret_geometry, struct why *why);

/* ---- phase two ----------------------------------------------------------------------------------------------- */

/* What a worker needs to apply recipes: a resizer and the pixels between stages, kept from sample to sample. Of one
 * thread at a time. */
struct workspace;

int workspace_new(enum resize_code code, struct workspace **ret_workspace, struct why *why);

/* Takes NULL. */
void workspace_free(struct workspace *workspace);
void workspace_freep(struct workspace **workspace);

/* What it holds at present, for accounting. */
size_t workspace_bytes(const struct workspace *workspace);

/* Gives all of it back. Not between recipe_begin() and recipe_end(). */
void workspace_trim(struct workspace *workspace);

/* The most that a workspace which holds nothing may take for this plan, in bytes. */
uint64_t recipe_bytes_needed(const struct geometry *geometry);

/* Executes a plan while rows come; its recipe is still needed. Writes geometry->height rows of geometry->width pixels
 * (with channels first: that for each channel, one after the other), `stride` bytes apart, and not a byte between or
 * beside them. `out` and `stride` are aligned for the format's type. Begins; forgets a sample that was not ended.
 * `geometry` stays until recipe_end(). -ENOMEM; else 0. */
int recipe_begin(struct workspace *workspace, const struct geometry *geometry, uint8_t *out, size_t stride,
                 struct why *why);

/* The next rows of geometry->source, in any portions: base/rows.h. They need to live only as long as the call. */
void recipe_feed(struct workspace *workspace, const struct view *rows);

/* All rows have come: does what needs the whole picture. -ENOMEM; else 0. */
int recipe_end(struct workspace *workspace, struct why *why);
