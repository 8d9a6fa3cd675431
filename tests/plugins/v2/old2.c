/* A plug-in as it was written for version 2 of dlplugin.h, with a codec beside a step. It must go on to run as it is.
 */
#include "dlplugin.h"

#include <string.h>

static int run(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
               const struct dlplugin_form *output_form, void *output) {
        const uint8_t *from = input;
        uint8_t *to = output;

        (void)output_form;
        for (size_t i = 0; i < dlplugin_elements(form); i++)
                to[i] = from[i] ^ (uint8_t)call->values[0].number;
        return call->version >= 2 ? 0 : call->fail(call, "has no version");
}

/* The length of the file, n times. */
static int settle(struct dlplugin_call *call, struct dlplugin_form *output, void **state) {
        (void)state;
        *output = (struct dlplugin_form){ DLPLUGIN_UINT32, 1, { (int64_t)call->values[0].number } };
        return 0;
}

static int decode(struct dlplugin_call *call, const void *bytes, size_t n_bytes, const struct dlplugin_form *form,
                  void *output) {
        uint32_t length = (uint32_t)n_bytes;

        (void)bytes;
        for (size_t i = 0; i < dlplugin_elements(form); i++)
                memcpy((uint8_t *)output + i * sizeof(length), &length, sizeof(length));
        return call->version >= 2 ? 0 : call->fail(call, "has no version");
}

static const struct dlplugin_argument BY[] = {
        { .name = "by", .kind = DLPLUGIN_WHOLE, .by_default = "255", .minimum = 0, .maximum = 255 },
};
static const struct dlplugin_argument N[] = {
        { .name = "n", .kind = DLPLUGIN_WHOLE, .by_default = "1", .minimum = 1, .maximum = 64 },
};

static const struct dlplugin_step STEPS[] = {
        { .name = "exclusive", .about = "bits are turned over", .arguments = BY, .n_arguments = 1, .run = run },
};
static const struct dlplugin_codec CODECS[] = {
        { .name = "lengths",
          .about = "how long the file is",
          .arguments = N,
          .n_arguments = 1,
          .settle = settle,
          .decode = decode },
};

DLPLUGIN_EXPORT const struct dlplugin dlplugin = {
        DLPLUGIN_HEAD,  .name = "old2", .about = "Of version 2.", .threads = DLPLUGIN_PARALLEL,
        .steps = STEPS, .n_steps = 1,   .codecs = CODECS,         .n_codecs = 1,
};
