/* transpose: time comes first, [column][row], as ragged batches and models of sequences want it. The last step. */

#include "daemon/sound/sound_step.h"

static int settle(struct sound_step *step, struct sound_state *state, struct why *why) {
        (void)step;
        (void)why;
        state->is_turned = true;
        return 0;
}

const struct sound_step_type sound_step_transpose = {
        .kind = { .name = "transpose",
                  .doc = "[column][row], time first. The last step.",
                  .example = "transpose",
                  .needs = "features" },
        .forms = SOUND_IN(SOUND_POWERS) | SOUND_IN(SOUND_FEATURES),
        .settle = settle,
};
