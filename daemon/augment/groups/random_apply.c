/* augment/groups/random_apply.c: torchvision's RandomApply: all of its steps, or none. Draws one f32: below p means all.
 */
#include "daemon/augment/group.h"
#include "daemon/augment/step.h"

enum {
        INSIDE,
        PROBABILITY
};

static double chance(const struct value *values) {
        return values[PROBABILITY].number;
}

static uint32_t draw(const struct value *values, uint32_t n, struct dlp_philox *philox, uint32_t *ret_sequence) {
        (void)n; /* one */
        ret_sequence[0] = 0;
        return step_happens(&values[PROBABILITY], philox) ? 1 : 0;
}

static const struct group GROUP = {
        .is_sequence = true,
        .runs_all = true,
        .chance = chance,
        .draw = draw,
};

const struct step_type step_random_apply = {
        .kind = { .name = "random_apply",
                  .doc = "Does all of its steps, one after the other, or none of them.",
                  .like = "torchvision.transforms.v2.RandomApply",
                  .example = "random_apply([hflip(1), vflip(1)], p=0.3)",
                  .arguments = ARGUMENTS([INSIDE] = ARGUMENT_INSIDE, [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0,
                                                                                       1 }) },
        .group = &GROUP,
};
