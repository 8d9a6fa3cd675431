/* augment/groups/random_order.c: torchvision's RandomOrder: all of its steps, in a sequence that is drawn. Of n steps it
 * draws n - 1 words: for i = 0 to n - 2 the step at index i is swapped with the one at index i + below(n - i). */
#include "daemon/augment/group.h"
#include "daemon/augment/step.h"

enum {
        INSIDE
};

static uint32_t draw(const struct value *values, uint32_t n, struct dlp_philox *philox, uint32_t *ret_sequence) {
        (void)values;
        for (uint32_t i = 0; i < n; i++)
                ret_sequence[i] = i;
        for (uint32_t i = 0; i + 1 < n; i++) {
                uint32_t other = i + dlp_philox_below(philox, n - i), kept = ret_sequence[i];

                ret_sequence[i] = ret_sequence[other];
                ret_sequence[other] = kept;
        }
        return n;
}

static const struct group GROUP = {
        .runs_all = true,
        .draw = draw,
};

const struct step_type step_random_order = {
        .kind = { .name = "random_order",
                  .doc = "Does all of its steps, in a sequence that is drawn for each sample.",
                  .like = "torchvision.transforms.v2.RandomOrder",
                  .example = "random_order([invert(0.1), equalize(0.1)])",
                  .arguments = ARGUMENTS([INSIDE] = ARGUMENT_INSIDE) },
        .group = &GROUP,
};
