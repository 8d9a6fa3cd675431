/* augment/groups/one_of.c: Albumentations' OneOf: one of its steps, or none. Draws two f32: below p means one, and
 * group_choose() makes the choice from the second, which is drawn in any case. There the probability of each step is
 * its weight, and the chosen one is certain to run; here the weights are an argument, and steps keep their
 * probabilities. */
#include "daemon/augment/group.h"
#include "daemon/augment/step.h"

enum {
        INSIDE,
        WEIGHTS,
        PROBABILITY
};

static double chance(const struct value *values) {
        return values[PROBABILITY].number;
}

static uint32_t draw(const struct value *values, uint32_t n, struct dlp_philox *philox, uint32_t *ret_sequence) {
        bool happens = step_happens(&values[PROBABILITY], philox);

        ret_sequence[0] = group_choose(&values[WEIGHTS], n, philox);
        return happens ? 1 : 0;
}

static const struct group GROUP = {
        .idx_weights = WEIGHTS,
        .chance = chance,
        .draw = draw,
};

const struct step_type step_one_of = {
        .kind = { .name = "one_of",
                  .doc = "Does one of its steps or, with probability 1-p, none. There the `p` of each step is its "
                         "weight, and a step that was chosen is certain to run; here the weights are `weights`, and "
                         "the chosen step keeps its own `p`: write `one_of([hflip(1), vflip(1)], weights=0.3:0.7)`.",
                  .like = "albumentations.OneOf",
                  .example = "one_of([hflip(1), vflip(1)], weights=0.3:0.7, p=0.5)",
                  .arguments = ARGUMENTS([INSIDE] = ARGUMENT_INSIDE, [WEIGHTS] = ARGUMENT_BRANCH_WEIGHTS("weights"),
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .group = &GROUP,
};
