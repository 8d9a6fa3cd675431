/* augment/recipe.h: the text of a pipeline, and what it does to a picture.
 *
 *      random_resized_crop(224, scale=0.08:1) hflip(0.5) to(float16) layout(nchw)
 *
 * Steps are written one after the other, separated by blanks; each is name(argument, key=value), with torchvision's
 * meaning and defaults. `raw` alone gives the encoded bytes, `decode` alone the unchanged pixels; `decode` may also be
 * written before other steps, for its arguments. Each step is a file in steps/; what they share is in recipe/.
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
#include "daemon/augment/motions.h"
#include "daemon/augment/operation.h"
#include "daemon/augment/resize/resample.h"
#include "daemon/augment/warp/warp.h"
#include "daemon/base/box.h"
#include "daemon/base/stage_clock.h"
#include "proto/base/why.h"
#include "proto/left.h"
#include "proto/limits.h"
#include "proto/text/grammar.h"
#include "proto/text/kinds.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECIPE_SIZE_MAX           KIND_SIDE_MAX /* pixels on a side that may be asked for */
#define RECIPE_PADDING_MAX        16384u        /* pixels on one side of a picture: sums of 32 steps stay in 32 bits */
#define RECIPE_RESAMPLED_SIDE_MAX (1u << 20)    /* pixels on a side of a resize's input or output: bounds its tables */
#define RECIPE_BETWEEN_PIXELS_MAX (1ull << 26)  /* pixels between two stages: 192 MiB of a worker's memory */

enum recipe_kind {
        RECIPE_RAW, /* the encoded bytes, untouched: nothing to plan */
        RECIPE_PIXELS,
};

struct geometry;
struct recipe;

/* Steps of a text; `goes_on`: with pictures of this mode which somebody else has made, so that nothing is decoded and
 * the text does not say the mode; else NULL. -EINVAL, with the column (from 1), the wrong word and what was expected;
 * -ENOMEM. The grammar is not needed afterwards. */
int recipe_read(struct grammar *grammar, struct grammar_steps steps, const enum pixel_mode *goes_on,
                struct recipe **ret_recipe, struct why *why);

/* All of a text. */
int recipe_parse(const char *text, struct recipe **ret_recipe, struct why *why);

/* Is this word the name of a step? `decode` and `raw` count as steps. */
bool recipe_is_step(struct grammar_word word);

/* Is it the name of a step for pictures, or of a class of torchvision that stands for one? */
bool recipe_has(struct grammar_word name);

#define RECIPE_MEANT_MAX 160u /* bytes with NUL */

/* What to write for a word that is not a step, but nearly one: "to(float16)" for fp16,
 * "random_resized_crop(224)" for random-resized-crop. False: nothing is known to be meant. */
bool recipe_means(struct grammar_word word, char ret_text[RECIPE_MEANT_MAX]);

/* Takes NULL. */
void recipe_free(struct recipe *recipe);
void recipe_freep(struct recipe **recipe);

enum recipe_kind recipe_kind(const struct recipe *recipe);

/* The recipe in its one normal spelling, with all defaults written out. Recipes with equal texts do the same. Owned by
 * the recipe. */
const char *recipe_text(const struct recipe *recipe);

/* The size of every sample at the end of the recipe. Returns 0; RECIPE_VARIES (positive) if it depends on the
 * picture. */
#define RECIPE_VARIES 1
int recipe_output(const struct recipe *recipe, uint32_t *ret_height, uint32_t *ret_width);

/* The same for pictures of this size. */
int recipe_output_from(const struct recipe *recipe, uint32_t height, uint32_t width, uint32_t *ret_height,
                       uint32_t *ret_width);

/* Does it leave each pixel where it is: do its steps set the form of the pixels alone (to, normalize, layout, erasing)?
 */
bool recipe_keeps_places(const struct recipe *recipe);

/* The size that no sample exceeds at the end of the recipe. Returns false if there is none: any picture may come. */
bool recipe_bound(const struct recipe *recipe, uint32_t *ret_height, uint32_t *ret_width);

/* What the steps of a sample cost, counted in pixels: for each step, those of the picture after it. */
struct recipe_work {
        uint64_t most; /* that are allowed */
        uint64_t n_pixels;
        const char *passing; /* the step at which they passed that; NULL: they did not */
};

/* Adds the steps of this recipe whose sizes are known or bounded before a picture comes; of branches the dearest. */
void recipe_add_work(const struct recipe *recipe, struct recipe_work *work);

/* For a recipe whose result varies: the most pixels of a sample at the end, as given by `decode(max_pixels=N)`; 0: not
 * given. */
#define RECIPE_MAX_PIXELS_MAX 4294967295u
#define RECIPE_BANDS_MAX      1024u
uint64_t recipe_max_pixels(const struct recipe *recipe);

/* Are pictures turned as EXIF says before the first step, `decode(exif=transpose)`? Then recipe_plan() gets the upright
 * size. */
bool recipe_is_upright(const struct recipe *recipe);

/* The dtype that masks get, `decode(mask=uint16)`: uint8, uint16, int32 or int64. Returns false if it is not given. */
bool recipe_mask_dtype(const struct recipe *recipe, enum dlp_dtype *ret_dtype);

/* Does its plan depend on boxes (`random_iou_crop`)? */
bool recipe_needs_boxes(const struct recipe *recipe);

/* How many pictures the step with this name, also as torchvision calls it, makes of each sample: 5 for `five_crop`, 0
 * for all steps that make one, and for other words. */
uint32_t recipe_word_views(struct grammar_word word);

/* Which of them recipe_plan() plans; without it the first. While one thread alone knows the recipe. */
void recipe_set_view(struct recipe *recipe, uint32_t view);

/* Does it drop boxes (`sanitize`)? */
bool recipe_drops_boxes(const struct recipe *recipe);

/* Type and layout of its samples. Owned by the recipe; for RECIPE_PIXELS. */
const struct pixel_format *recipe_format(const struct recipe *recipe);

/* How a picture's pixels become the elements of its tensor: what the last steps (to, normalize, layout) ask for. */
struct picture_form {
        enum dlp_dtype dtype;
        uint32_t n_channels;
        bool channels_first;
        const void *table; /* n_channels tables of 256 elements of the dtype: what a level becomes */
        size_t table_bytes;
        uint64_t operations_at; /* where a sample has its struct dlp_left_operations; 0: none */
};

/* Leaves these steps to whoever gets the pictures: from now on the recipe makes uint8 height x width x channels, and
 * its text stays as it is. Only if recipe_can_leave_form(): there is something to leave, and the channels are plain
 * numbers of 8 bits; and while one thread alone knows the recipe. */
bool recipe_can_leave_form(const struct recipe *recipe);
void recipe_leave_form(struct recipe *recipe);

/* Leaves flips and changes of colours to them as well, as many steps as the pipeline ends with: what is drawn for a
 * sample is then in geometry->left. Does what recipe_leave_form() does, also if there is no such step. Only if
 * recipe_can_leave_operations(): there is such a step, all samples have one size, and their channels are plain. */
bool recipe_can_leave_operations(const struct recipe *recipe);
void recipe_leave_operations(struct recipe *recipe);

/* Bytes of a sample after its pixels: for the operations, and so that the next one is aligned. 0: none were left. */
uint64_t recipe_left_bytes(const struct recipe *recipe);

/* Writes them. `bytes` is where the pixels end. */
void recipe_write_left(const struct recipe *recipe, const struct geometry *geometry, uint8_t *bytes);

/* What was left. The table belongs to the recipe. False: nothing was. */
bool recipe_left_form(const struct recipe *recipe, struct picture_form *ret_form);

/* ---- phase one ----------------------------------------------------------------------------------------------- */

/* Source box -> resampled to width x height -> window of that -> pasted onto a canvas with a border -> mirrored ->
 * operations on the canvas. Most stages use only some of these. Or source box -> warped -> operations. */
struct stage {
        struct box source;      /* within the result of the stage before (the first stage: within the picture) */
        uint32_t width, height; /* equal to the source box's: no resampling */
        enum resize_filter filter;
        enum stage_id drawn_by; /* the step whose time drawing the window takes */
        struct box window;      /* empty if all of it was cropped away: then the whole canvas is border */
        uint32_t canvas_width, canvas_height;
        uint32_t paste_x, paste_y; /* the window's corner on the canvas, before mirroring */
        struct border border;
        struct warp warp; /* WARP_NONE: the stage resamples; never of the first stage, whose source comes in rows */
        bool flip;        /* left to right */
        bool vflip;       /* top to bottom */
        uint32_t first_operation, n_operations; /* of the geometry's */
};

#define STAGES_MAX (4u * DLP_STEPS_MAX + 1u) /* one step begins at most four stages: three paddings and a crop */

/* Boxes of the picture before the first step: left, top, right, bottom, each float32. Need not be aligned. */
struct recipe_boxes {
        const uint8_t *bytes;
        size_t n;
};

struct geometry {
        const struct recipe_boxes *boxes; /* of a recipe that needs them; set by who plans, before that */
        struct box source;      /* what the decoder has to deliver: the needed part of the first stage's source */
        uint32_t width, height; /* of the result */
        bool is_copy;           /* the whole picture, unchanged: the decoder may write the result itself */
        size_t plane_stride; /* with channels first: from plane to plane; 0: they follow one another. Set by who renders
                              */
        bool is_direct;      /* the last stage writes the output directly and never reads it again */
        uint32_t n_stages;
        struct stage stages[STAGES_MAX];
        uint32_t n_operations;
        struct operation operations[DLP_STEPS_MAX * STEP_OPERATIONS_MAX];
        const struct conversion *conversion; /* the recipe's */
        uint32_t n_erasures;
        struct erasure erasures[DLP_STEPS_MAX]; /* of the result */
        struct dlp_left_operations left;        /* to the client */
};

/* Draws and plans for a picture of this size (at least 1 x 1). The draws depend only on seed, epoch, sample and the
 * position of the step in the text. -EFBIG if a resize would make or read more than the limits above; -ERANGE if the
 * picture is smaller than the crop. */
int recipe_plan(const struct recipe *recipe, uint32_t width, uint32_t height, uint64_t seed, uint32_t epoch,
                uint64_t sample, struct geometry *ret_geometry, struct why *why);

/* The same plan, and what it does to coordinates. */
int recipe_plan_motions(const struct recipe *recipe, uint32_t width, uint32_t height, uint64_t seed, uint32_t epoch,
                        uint64_t sample, struct geometry *ret_geometry, struct motions *ret_motions, struct why *why);

/* The same plan for a mask that belongs to a picture of this size: it is moved as the picture is, but its pixels are
 * never mixed or changed, and leave as uint8 height x width x 3. If it is wide, a pixel is a number: low byte, high
 * byte, 0; they leave as uint16 height x width. -EINVAL if it were padded with a colour. */
int recipe_plan_mask(const struct recipe *recipe, uint32_t width, uint32_t height, bool is_wide, uint64_t seed,
                     uint32_t epoch, uint64_t sample, struct geometry *ret_geometry, struct why *why);

/* The same number for this sample. */
uint64_t recipe_work_of(const struct geometry *geometry);

/* ---- phase two ----------------------------------------------------------------------------------------------- */

/* What a worker needs to apply recipes: a resizer and the pixels between stages, kept from sample to sample. One thread
 * at a time. */
struct workspace;

int workspace_new(enum resize_code code, struct workspace **ret_workspace, struct why *why);

/* From now on it marks on this clock what it does; NULL: it does not. The clock outlives it. */
void workspace_set_clock(struct workspace *workspace, struct stage_clock *clock);

/* Whoever is meant to get a sample may have left before it is made, and a long recipe takes seconds. From now on the
 * workspace asks between operations, and within long ones after about a megapixel; if the answer is no, whatever runs
 * ends with -ECANCELED. NULL: it does not ask. */
void workspace_set_wanted(struct workspace *workspace, wanted_fn is_wanted, const void *userdata);

/* The same question for whoever feeds it: 0 or -ECANCELED. */
int workspace_ask(struct workspace *workspace, struct why *why);

/* Takes NULL. */
void workspace_free(struct workspace *workspace);
void workspace_freep(struct workspace **workspace);

/* The memory that it holds now, for accounting. */
size_t workspace_bytes(const struct workspace *workspace);

/* Frees that memory. Not between recipe_begin() and recipe_end(). */
void workspace_trim(struct workspace *workspace);

/* The most memory that an empty workspace may allocate for this plan, in bytes. */
uint64_t recipe_bytes_needed(const struct geometry *geometry);

/* Begins to execute a plan as rows come; the plan's recipe must stay valid. Writes geometry->height rows of
 * geometry->width pixels (with channels first: the rows of each channel, one channel after the other), `stride` bytes
 * apart, and no byte between or beside them. `out` and `stride` are aligned for the format's type. Discards a sample
 * that was not ended. `geometry` must stay valid until recipe_end(). -ENOMEM; else 0. */
int recipe_begin(struct workspace *workspace, const struct geometry *geometry, uint8_t *out, size_t stride,
                 struct why *why);

/* Takes the next rows of geometry->source, any number at a time: base/rows.h. They need to stay valid only during the
 * call. */
void recipe_feed(struct workspace *workspace, const struct view *rows);

/* All rows have come: executes the stages that need the whole picture. -ENOMEM, -ECANCELED; else 0. */
int recipe_end(struct workspace *workspace, struct why *why);

/* In place of these three if all of geometry->source is in memory. */
int recipe_run(struct workspace *workspace, const struct geometry *geometry, const struct view *source, uint8_t *out,
               size_t stride, struct why *why);

/* In place of these three for a picture with alpha: executes the plan for colours and alpha, which are all of
 * geometry->source, one pixel after the other; both are overwritten. */
int recipe_run_alpha(struct workspace *workspace, const struct geometry *geometry, uint8_t *colors, uint8_t *alpha,
                     uint8_t *out, size_t stride, struct why *why);
