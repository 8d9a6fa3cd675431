/* augment/step.h: what a step of a pipeline is. Private to this floor.
 *
 * A step is a file steps/NAME.c (a group of steps: groups/NAME.c) with one struct step_type, and a row of table.h. It
 * declares its arguments; arguments.c reads, checks and prints them in the same way for all steps. A step that moves
 * pixels only tells the fold (fold.h) how, and never touches a pixel. A step that changes pixels in place is an
 * operation (operation.h), in a file of its own.
 *
 * Each step's file says which numbers it draws and in which sequence, so that a test can draw the same numbers and
 * compare with torchvision. The draws depend at most on the arguments and the picture's size (of
 * random_iou_crop also on boxes), never on pixels. */
#pragma once

#include "daemon/augment/crop.h"
#include "daemon/augment/fold.h"
#include "daemon/augment/resize/resample.h"
#include "daemon/augment/table.h"

#define ARGUMENTS_MAX 8u
#define LIST_MAX      31u /* numbers in one argument: left:top:right:bottom; weights of all steps but their group */

enum argument_kind {
        ARGUMENT_END,        /* after the last argument */
        ARGUMENT_SIZE,       /* 224 = 224:224, or height:width */
        ARGUMENT_SIZE_SHORT, /* 224 = the short side, and the width is then 0; or height:width */
        ARGUMENT_RANGE,      /* from:to */
        ARGUMENT_AROUND,     /* 0.4 = from center - 0.4 to center + 0.4, not below `minimum`; or from:to */
        ARGUMENT_NUMBER,
        ARGUMENT_LIST,   /* numbers with ":" between them, as many as `counts` allows */
        ARGUMENT_CHOICE, /* one of the names in `choices` */
        ARGUMENT_STEPS,  /* [STEP, STEP]: the steps of a group, which have no value here */
};

struct argument {
        enum argument_kind kind;
        const char *name;
        const char *by_default;     /* as text; NULL: must be given */
        double minimum, maximum;    /* of all numbers, both included */
        double center;              /* of ARGUMENT_AROUND */
        const char *const *choices; /* of ARGUMENT_CHOICE */
        uint32_t n_choices;
        uint32_t counts;        /* of ARGUMENT_LIST: bit n is set where n numbers are allowed */
        bool is_whole;          /* of ARGUMENT_LIST: no fractions */
        bool is_odd;            /* of ARGUMENT_LIST: odd numbers only */
        bool is_range;          /* of ARGUMENT_LIST: the second number is not below the first */
        const char *word;       /* of ARGUMENT_LIST: may stand in place of the numbers, of which there are none then */
        const char *form;       /* of ARGUMENT_LIST, for messages: "N or R:G:B" */
        const char *other_name; /* that the text may use instead; NULL: none */
        bool is_optional;       /* if it is not given, its value is all zeroes, and the normal text does not show it */
};

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
#define ARGUMENT_WEIGHTS(name)                                                                                         \
        { ARGUMENT_LIST, name, NULL, 0, 1e6, .counts = ~1u, .form = "W:W", .is_optional = true }

/* The filters of resize/resample.h. */
#define ARGUMENT_INTERPOLATION                                                                                         \
        { ARGUMENT_CHOICE, "interpolation", "bilinear", .choices = RESIZE_FILTER_NAMES, .n_choices = N_RESIZE_FILTERS }

struct group;

struct value {
        uint32_t height, width;
        struct range range;
        double number;
        uint32_t choice; /* index into argument.choices */
        double list[LIST_MAX];
        uint32_t n_list;
};

struct step_type {
        const char *name;
        const char *example;                          /* for messages: "random_resized_crop(224)" */
        struct argument arguments[ARGUMENTS_MAX + 1]; /* positional ones in this sequence */

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

#define ROW(name) extern const struct step_type step_##name;
STEPS(ROW)
#undef ROW

/* can_be_left() of steps that are left in any case: with no operations, or one. */
bool step_leaves_none(const struct value *values, uint32_t *ret_n_operations);
bool step_leaves_one(const struct value *values, uint32_t *ret_n_operations);

/* Reads one value from `text`; the value ends before any of ",) \t\n" or at the end. Returns the number of bytes read,
 * at least one; -EINVAL with what is allowed. */
int argument_parse(const struct argument *argument, const char *text, struct value *ret_value, struct why *why);

/* Writes a value in the form that argument_parse() reads: the shortest text that gives the same value. */
void argument_print(const struct argument *argument, const struct value *value, char *text, size_t size);

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
