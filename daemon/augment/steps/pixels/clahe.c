/* augment/steps/pixels/clahe.c: Albumentations' CLAHE. Draws two f32: below p means yes; and the limit. */
#include "daemon/augment/step.h"

enum {
        CLIP_LIMIT,
        TILE_GRID_SIZE,
        PROBABILITY
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        const struct value *tiles = &values[TILE_GRID_SIZE];
        struct operation operation = { .type = &operation_clahe };
        bool happens = step_happens(&values[PROBABILITY], philox);
        struct value limit = values[CLIP_LIMIT];
        const double up_to[] = { 1, limit.list[0] };

        (void)why;
        if (limit.n_list == 1) { /* the largest one */
                limit.list = up_to;
                limit.n_list = 2;
        }
        operation.amount = number_between(&limit, philox);
        operation.box.width = (uint32_t)tiles->list[0];
        operation.box.height = (uint32_t)tiles->list[tiles->n_list - 1];
        if (happens)
                fold_operate(fold, &operation);
        return 0;
}

const struct step_type step_clahe = {
        .kind = { .name = "clahe",
                  .doc = "Makes the levels of each of WIDTH:HEIGHT tiles (1 to 64) nearly equally frequent, where no "
                         "level counts more than `clip_limit` times as often as it would on average (FROM:TO, of "
                         "which one number is the last; 1 to 10000). Of colours it changes the lightness L of CIE "
                         "L*a*b*. The bits are those of OpenCV.",
                  .like = "albumentations.CLAHE",
                  .example = "clahe(4)",
                  .arguments = ARGUMENTS([CLIP_LIMIT] = { ARGUMENT_LIST, "clip_limit", "4", 1, 10000,
                                                          .counts = 1u << 1 | 1u << 2, .is_range = true,
                                                          .form = "TO or FROM:TO" },
                                         [TILE_GRID_SIZE] = { ARGUMENT_LIST, "tile_grid_size", "8", 1, 64,
                                                              .counts = 1u << 1 | 1u << 2, .is_whole = true,
                                                              .form = "N or WIDTH:HEIGHT" },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_CLAHE,
        .plan = plan,
        .convert = levels_check,
};
