/* augment/steps/step_raw.c: the encoded bytes, untouched. */
#include "daemon/augment/step.h"

const struct step_type step_raw = {
        .kind = { .name = "raw",
                  .doc = "Delivers the bytes of the file, unchanged and unchecked. No other step may "
                         "be used with it.",
                  .example = "raw" },
};
