/* augment/steps/warps/warps.h: arguments that the steps of this folder share. */
#pragma once

#include "daemon/augment/step.h"
#include "daemon/augment/warp/warp_moves.h"

#define ARGUMENT_WARP_FILTER(initial)                                                                                  \
        { ARGUMENT_CHOICE, "interpolation", initial, .choices = WARP_FILTER_NAMES, .n_choices = N_WARP_FILTERS }
#define ARGUMENT_CENTER                                                                                                \
        {                                                                                                              \
                ARGUMENT_LIST, "center", NULL, -(double)RECIPE_SIZE_MAX, RECIPE_SIZE_MAX,                              \
                        .counts = 1u << 2, .form = "X:Y", .is_optional = true                                          \
        }

struct warp_look warp_look_of(const struct value *filter, const struct value *fill);
struct warp_center warp_center_of(const struct value *value);

/* A number of the range: f32 of the stream, in float64, rounded to float32 as torch's numbers are. */
double warp_draw(struct dlp_philox *philox, double from, double to);

/* convert() of a step that warps: refuses a fill or a filter that is not for the picture's mode. -EINVAL. */
int warp_check(const struct value *filter, const struct value *fill, const struct conversion *conversion,
               struct why *why);
