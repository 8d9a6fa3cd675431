/* A plug-in as it was written for version 1 of dlplugin.h. It must go on to run as it is. */
#include "dlplugin.h"

static const struct dlplugin_argument ARGUMENTS[] = {
        { .name = "by", .kind = DLPLUGIN_WHOLE, .by_default = "255", .minimum = 0, .maximum = 255 },
};

static int run(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
               const struct dlplugin_form *output_form, void *output) {
        const uint8_t *from = input;
        uint8_t *to = output;

        (void)output_form;
        for (size_t i = 0; i < dlplugin_elements(form); i++)
                to[i] = from[i] ^ (uint8_t)call->values[0].number;
        return call->version >= 1 ? 0 : call->fail(call, "has no version");
}

static const struct dlplugin_step STEPS[] = {
        { .name = "exclusive", .about = "bits are turned over", .arguments = ARGUMENTS, .n_arguments = 1, .run = run },
};

DLPLUGIN_EXPORT const struct dlplugin dlplugin = {
        DLPLUGIN_HEAD,  .name = "old", .about = "Of version 1.", .threads = DLPLUGIN_PARALLEL,
        .steps = STEPS, .n_steps = 1,
};
