/* augment/groups/random_choice.c: torchvision's RandomChoice: one of its steps. Draws one f32, from which
 * group_choose() makes the choice. */
#include "daemon/augment/group.h"
#include "daemon/augment/step.h"

enum {
        INSIDE,
        WEIGHTS
};

static double random_choice_weight_of(const struct value *weights, uint32_t branch) {
        return weights->n_list > 0 ? weights->list[branch] : 1;
}

uint32_t group_choose(const struct value *weights, uint32_t n, struct dlp_philox *philox) {
        double sum = 0, end = 0, place;
        uint32_t chosen = 0;

        for (uint32_t i = 0; i < n; i++)
                sum += random_choice_weight_of(weights, i);
        place = sum * (double)dlp_philox_f32(philox);
        for (uint32_t i = 0; i < n && end <= place; i++) {
                end += random_choice_weight_of(weights, i);
                if (random_choice_weight_of(weights, i) > 0)
                        chosen = i;
        }
        return chosen;
}

static uint32_t draw(const struct value *values, uint32_t n, struct dlp_philox *philox, uint32_t *ret_sequence) {
        ret_sequence[0] = group_choose(&values[WEIGHTS], n, philox);
        return 1;
}

static const struct group GROUP = {
        .idx_weights = WEIGHTS,
        .draw = draw,
};

const struct step_type step_random_choice = {
        .kind = { .name = "random_choice",
                  .doc = "Does one of its steps. `p` has a weight for each of them, from 0 to 1000000; the chances "
                         "are these divided by their sum, and if it is left out, equal. To choose between sequences "
                         "of steps, put each into `random_apply([...], p=1)`.",
                  .like = "torchvision.transforms.v2.RandomChoice",
                  .example = "random_choice([hflip(1), vflip(1)], p=0.3:0.7)",
                  .arguments = ARGUMENTS([INSIDE] = ARGUMENT_INSIDE, [WEIGHTS] = ARGUMENT_BRANCH_WEIGHTS("p")) },
        .group = &GROUP,
};
