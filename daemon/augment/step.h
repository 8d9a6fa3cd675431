/* augment/step.h: what a step of a pipeline is. Private to this floor.
 *
 * A step is a file steps/NAME.c (a group of steps: groups/NAME.c) with one struct step_type, which the build finds
 * (proto/text/kinds.h). A step that moves pixels only tells the fold (fold.h) how, and never touches a pixel. A step
 * that changes pixels in place has an operation (operation.h), which lies in operations/ if other steps have it too.
 *
 * Each step's file says which numbers it draws and in which sequence, so that a test can draw the same numbers and
 * compare with torchvision. The draws depend at most on the arguments and the picture's size (of
 * random_iou_crop also on boxes), never on pixels. */
#pragma once

#include "daemon/augment/crop.h"
#include "daemon/augment/fold.h"
#include "daemon/augment/resize/resample.h"
#include "proto/text/kinds.h"
#include "proto/text/step_values.h"

#define ARGUMENTS_MAX 8u
#define LIST_MAX      31u /* branches of a group: all steps of a recipe but itself */

/* torchvision's padding and fill, read by padding_of() and border_of(). */
#define ARGUMENT_PADDING(initial)                                                                                      \
        {                                                                                                              \
                ARGUMENT_LIST, "padding", initial, 0, RECIPE_PADDING_MAX, .counts = 1u << 1 | 1u << 2 | 1u << 4,       \
                                                                          .is_whole = true,                            \
                                                                          .form = "N, X:Y or LEFT:TOP:RIGHT:BOTTOM"    \
        }
#define ARGUMENT_FILL                                                                                                  \
        { ARGUMENT_LIST, "fill", "0", 0, 255, .counts = 1u << 1 | 1u << 3, .is_whole = true, .form = "N or R:G:B" }
#define ARGUMENT_PADDING_MODE                                                                                          \
        { ARGUMENT_CHOICE, "padding_mode", "constant", .choices = BORDER_MODE_NAMES, .n_choices = N_BORDER_MODES }

/* Of groups (group.h): their steps, the first argument, and how often each branch runs, compared with the others. */
#define ARGUMENT_INSIDE                                                                                                \
        { ARGUMENT_STEPS, "steps", NULL, .other_name = "transforms" }
#define ARGUMENT_BRANCH_WEIGHTS(name)                                                                                  \
        { ARGUMENT_LIST, name, NULL, 0, 1e6, .counts = ~1u, .form = "W:W", .is_optional = true }

/* The filters of resize/resample.h. */
#define ARGUMENT_INTERPOLATION                                                                                         \
        { ARGUMENT_CHOICE, "interpolation", "bilinear", .choices = RESIZE_FILTER_NAMES, .n_choices = N_RESIZE_FILTERS }

struct group;

struct step_type {
        struct kind kind; /* comes first */

        enum stage_id stage; /* whose time its work is; 0: it costs nothing alone */

        const struct group *group; /* which of its steps run; NULL: the step is not a group. Then only the name, the
                                    * example and the arguments are set */

        /* Draws, and tells the fold. NULL: the step does not touch pixels, and only steps of this kind may follow. */
        int (*plan)(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why);

        /* The size after the step, given the size before; 0 x 0 means "depends on the picture". NULL: unchanged. */
        void (*output)(const struct value *values, uint32_t *height, uint32_t *width);

        /* The size that no picture exceeds after the step, given that before it; 0 x 0 means "there is none". NULL: as
         * `output` says; if that depends on the picture, there is none. */
        void (*bound)(const struct value *values, uint32_t *height, uint32_t *width);

        /* Called once, when the text is read: checks arguments that depend on each other, and sets the step's part of
         * the conversion, the form in which all samples leave. -EINVAL if that is impossible, with what is expected.
         * NULL: nothing to check, no effect on the conversion. */
        int (*convert)(const struct value *values, struct conversion *conversion, struct why *why);

        bool drops_boxes; /* recipe_drops_boxes() */

        bool needs_boxes; /* its plan reads those of fold->geometry, and fold->motions is there for it */

        /* It makes that many pictures of each sample: they are views with the same draws, and its plan finds in
         * fold->view which one it is. 0: it makes one. Not in a group, and once in a recipe. */
        uint32_t n_views;

        /* May it follow steps that set the form of the result? Then, if these make floats of the levels, its plan finds
         * fold->is_formed, and what it does is done to the numbers of the result. */
        bool may_follow_form;

        /* May it be left to the client (recipe_leave_operations()) if only such steps follow? It then changes colours
         * by this many operations at most, and else only flips. NULL: no. */
        bool (*can_be_left)(const struct value *values, uint32_t *ret_n_operations);
};

/* All of them: each is the kind of a struct step_type. */
extern const struct kind_family picture_steps;

/* `raw` and `decode`, which say what is delivered and do nothing to pixels, only as the first step. */
extern const struct step_type step_raw, step_decode;

/* What people write in place of these and their values: recipe/names.c. */
extern const struct step_type step_normalize, step_to, step_layout;

/* can_be_left() of steps that are left in any case: with no operations, or one. */
bool step_leaves_none(const struct value *values, uint32_t *ret_n_operations);
bool step_leaves_one(const struct value *values, uint32_t *ret_n_operations);

struct padding padding_of(const struct value *value);
struct border border_of(const struct value *fill, const struct value *mode);

/* Refuses a colour if the picture does not have three channels: -EINVAL. */
int fill_check(const struct value *fill, const struct conversion *conversion, struct why *why);

/* Refuses a step for pictures of some modes, bit i of `modes` for mode i: -EINVAL with what is `expected` instead. */
int mode_check(const struct conversion *conversion, unsigned modes, const char *expected, struct why *why);

/* The same, as convert() of a step that changes levels: Pillow does that with RGB and L alone. */
int levels_check(const struct value *values, struct conversion *conversion, struct why *why);

/* Draws one f32, whatever the probability is, as torchvision draws for 0 and 1, too: below it means yes. */
bool step_happens(const struct value *probability, struct dlp_philox *philox);

/* A number of the range that a list of one or two numbers gives: from + (to - from) * u, in float64, rounded to
 * float32, with one f32 u. */
float number_between(const struct value *value, struct dlp_philox *philox);

/* A sequence of the three channels, from two words. */
void channels_draw(struct dlp_philox *philox, uint8_t ret_channels[PIXEL_BYTES]);

/* Refuses a filter that mixes pixels of 16 bits: -EINVAL. */
int filter_check(const struct value *filter, const struct conversion *conversion, struct why *why);
