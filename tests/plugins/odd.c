/* Plug-ins that cannot be loaded, each for another reason: -DKIND=... */
#define _GNU_SOURCE
#include <dlplugin.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
        NO_SYMBOL = 1,
        FUTURE,
        WRONG_SIZE,
        SMALL,
        OTHER_NAME,
        NO_THREADS,
        BAD_STEP,
        TWICE,
        FAILS,
        CRASHES,
        HANGS,
        NO_RUN,
        BAD_DEFAULT,
        NO_VERSION,
        NO_COLLATE,
        NOWHERE,
        CHANGES
};

#if KIND == 11
static void __attribute__((constructor)) hang(void) {
        for (;;)
                pause();
}
#endif

#if KIND == 17 /* as if it were replaced just now; the loader does not look behind the end */
static void __attribute__((constructor)) change(void) {
        Dl_info info;
        FILE *file = dladdr((void *)(uintptr_t)change, &info) ? fopen(info.dli_fname, "ae") : NULL;

        if (!file || fputc(0, file) < 0 || fclose(file) != 0)
                abort();
}
#endif

static int run(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
               const struct dlplugin_form *output_form, void *output) {
        (void)form, (void)input, (void)output_form, (void)output;
        return call->fail(call, "is never run");
}

static int begin(struct dlplugin_call *call, void **plugin) {
        (void)plugin;
        if (KIND == CRASHES)
                abort();
        return KIND == FAILS ? call->fail(call, "the licence of %d has run out", 1999) : 0;
}

static const struct dlplugin_argument ARGUMENTS[] = {
        { .name = "size",
          .kind = DLPLUGIN_WHOLE,
          .by_default = KIND == BAD_DEFAULT ? "many" : "1",
          .minimum = 1,
          .maximum = 9 },
};

static const struct dlplugin_step STEPS[] = {
        { .name = KIND == BAD_STEP ? "no name" : "step",
          .run = KIND == NO_RUN ? NULL : run,
          .arguments = ARGUMENTS,
          .n_arguments = 1 },
        { .name = KIND == TWICE ? "step" : "other", .run = run },
};

static const struct dlplugin_collation COLLATIONS[] = { { .name = "batch",
                                                          .collate = KIND == NO_COLLATE ? NULL : run } };

#if KIND == 4
DLPLUGIN_EXPORT const uint32_t dlplugin_small[2] = { DLPLUGIN_VERSION, sizeof(struct dlplugin) };
__asm__(".globl dlplugin\n.set dlplugin, dlplugin_small\n.type dlplugin, @object\n.size dlplugin, 8");
#else
#if KIND == 1
#define VARIABLE another
#else
#define VARIABLE dlplugin
#endif
DLPLUGIN_EXPORT const struct dlplugin VARIABLE = {
        .version = KIND == FUTURE       ? DLPLUGIN_VERSION + 5
                   : KIND == NO_VERSION ? 0
                                        : DLPLUGIN_VERSION,
        .size = sizeof(struct dlplugin) + (KIND == WRONG_SIZE ? 8 : 0),
        .name = KIND == OTHER_NAME ? "somebody" : "odd",
        .threads = KIND == NO_THREADS ? 0 : DLPLUGIN_PARALLEL,
        .open = begin,
        .steps = STEPS,
        .n_steps = 2,
        .collations = KIND == NOWHERE ? NULL : COLLATIONS,
        .n_collations = 1,
};
#endif
