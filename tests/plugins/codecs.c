/* Codecs: one for arrays, and one for pictures that does what it must not when the file says so. */
#include <dlplugin.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct dlplugin_argument ARGUMENTS[] = {
        { .name = "n", .kind = DLPLUGIN_WHOLE, .by_default = "4", .minimum = 1, .maximum = 1000 }
};

static int settle(struct dlplugin_call *call, struct dlplugin_form *output, void **state) {
        (void)state;
        output->dtype = DLPLUGIN_UINT16;
        output->n_dims = 2;
        output->shape[0] = (int64_t)call->values[0].number;
        output->shape[1] = 2;
        return 0;
}

/* Each element is the number of bytes in the file. */
static int count(struct dlplugin_call *call, const void *bytes, size_t n_bytes, const struct dlplugin_form *form,
                 void *output) {
        uint16_t *to = output;

        (void)call;
        (void)bytes;
        for (size_t i = 0; i < dlplugin_elements(form); i++)
                to[i] = (uint16_t)n_bytes;
        return 0;
}

static int measure(struct dlplugin_call *call, const void *bytes, size_t n_bytes, uint32_t *height, uint32_t *width) {
        (void)call;
        *height = *width = 4;
        if (n_bytes >= 5 && memcmp(bytes, "empty", 5) == 0)
                *height = 0;
        if (n_bytes >= 4 && memcmp(bytes, "huge", 4) == 0)
                *height = *width = 4000000000u;
        if (n_bytes >= 5 && memcmp(bytes, "crash", 5) == 0)
                raise(SIGBUS);
        return 0;
}

static int decode(struct dlplugin_call *call, const void *bytes, size_t n_bytes, const struct dlplugin_form *form,
                  void *output) {
        if (n_bytes >= 5 && memcmp(bytes, "abort", 5) == 0)
                abort();
        if (n_bytes >= 3 && memcmp(bytes, "bad", 3) == 0)
                return call->fail(call, "is bad");
        memset(output, (int)n_bytes, dlplugin_elements(form));
        return 0;
}

static const struct dlplugin_codec CODECS[] = {
        { .name = "count", .arguments = ARGUMENTS, .n_arguments = 1, .settle = settle, .decode = count },
        { .name = "squares", .measure = measure, .decode = decode },
};

DLPLUGIN_EXPORT const struct dlplugin dlplugin = {
        DLPLUGIN_HEAD, .name = "codecs", .about = "Codecs.", .threads = THREADS, .codecs = CODECS, .n_codecs = 2,
};
