/* augment/steps/pixels/random_channel_permutation.c: torchvision's RandomChannelPermutation.
 *
 * Draws two words: for i = 0, 1 the channel at place i is exchanged with the one at place i + below(3 - i). */
#include "daemon/augment/step.h"

void channels_draw(struct dlp_philox *philox, uint8_t ret_channels[PIXEL_BYTES]) {
        for (uint32_t i = 0; i < PIXEL_BYTES; i++)
                ret_channels[i] = (uint8_t)i;
        for (uint32_t i = 0; i + 1 < PIXEL_BYTES; i++) {
                uint32_t other = i + dlp_philox_below(philox, PIXEL_BYTES - i);
                uint8_t kept = ret_channels[i];

                ret_channels[i] = ret_channels[other];
                ret_channels[other] = kept;
        }
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        struct operation operation = { .type = &operation_permute };

        (void)values;
        (void)why;
        channels_draw(philox, operation.color);
        fold_operate(fold, &operation);
        return 0;
}

const struct step_type step_random_channel_permutation = {
        .kind = { .name = "random_channel_permutation",
                  .doc = "Puts the three channels into a random sequence.",
                  .like = "torchvision.transforms.v2.RandomChannelPermutation",
                  .example = "random_channel_permutation()" },
        .stage = STAGE_RANDOM_CHANNEL_PERMUTATION,
        .plan = plan,
        .convert = levels_check,
};
