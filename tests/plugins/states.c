/* Steps that show what they were given: the states of the plug-in, of its worker and of the step, and what they draw.
 * -DTHREADS=... says how many threads may be in it; it notices if there are more. */
#include <dlplugin.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int n_inside, n_most;

static int begin(struct dlplugin_call *call, void **plugin) {
        (void)call;
        *plugin = strdup("plugin");
        return 0;
}

static int begin_worker(struct dlplugin_call *call, void **worker) {
        if (!call->plugin || strcmp(call->plugin, "plugin") != 0)
                return call->fail(call, "open() was not called before");
        *worker = calloc(1, sizeof(int));
        return 0;
}

static int settle(struct dlplugin_call *call, const struct dlplugin_form *input, struct dlplugin_form *output,
                  void **state) {
        uint8_t *table = malloc(256);

        (void)input;
        (void)output;
        (void)call->random_bits(call); /* must not change what run() draws */
        for (int i = 0; i < 256; i++)
                table[i] = (uint8_t)(i + (int)call->values[0].number);
        *state = table;
        return 0;
}

/* Elements are moved by the table; the first eight say what the call knows. */
static int run(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
               const struct dlplugin_form *output_form, void *output) {
        int inside = atomic_fetch_add(&n_inside, 1) + 1, most = atomic_load(&n_most);
        const uint8_t *from = input, *table = call->state;
        uint8_t *to = output;
        uint32_t bits = call->random_bits(call);

        (void)output_form;
        if (inside > most)
                atomic_store(&n_most, inside);
        usleep(THREADS == DLPLUGIN_SERIAL ? 500 : 0);
        for (size_t i = 0; i < dlplugin_elements(form); i++)
                to[i] = table[from[i]];
        memcpy(to, &bits, sizeof(bits));
        to[4] = (uint8_t)call->sample;
        to[5] = (uint8_t)call->epoch;
        to[6] = (uint8_t)(call->worker != NULL && call->plugin != NULL);
        to[7] = (uint8_t)(THREADS != DLPLUGIN_SERIAL || atomic_load(&n_most) == 1);
        atomic_fetch_sub(&n_inside, 1);
        return 0;
}

static const struct dlplugin_argument ARGUMENTS[] = { { .name = "by", .kind = DLPLUGIN_WHOLE, .by_default = "1" } };

static const struct dlplugin_step STEPS[] = {
        { .name = "shift", .arguments = ARGUMENTS, .n_arguments = 1, .settle = settle, .forget = free, .run = run },
};

DLPLUGIN_EXPORT const struct dlplugin dlplugin = {
        DLPLUGIN_HEAD,        .name = NAME,   .about = "Shows what it is given.",
        .threads = THREADS,   .steps = STEPS, .n_steps = 1,
        .open = begin,        .close = free,  .worker_open = begin_worker,
        .worker_close = free,
};
