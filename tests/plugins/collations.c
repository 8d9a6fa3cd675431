/* Collations that show what they were given, and that do what a plug-in must not do, to the batch that begins at a
 * certain place of its epoch. -DTHREADS=... */
#include <dlplugin.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- shows: uint32 [6] of each sample ---------------------------------------------------------------------------- */

static int settle_shows(struct dlplugin_call *call, const struct dlplugin_form *sample, struct dlplugin_form *row,
                        void **state) {
        uint32_t *kept = malloc(sizeof(*kept));

        (void)sample;
        (void)call->random_bits(call); /* must not change what collate() draws */
        *kept = (uint32_t)call->values[0].number;
        *state = kept;
        row->dtype = DLPLUGIN_UINT32;
        row->n_dims = 1;
        row->shape[0] = 6;
        return 0;
}

static int shows(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
                 const struct dlplugin_form *output_form, void *output) {
        size_t n = (size_t)form->shape[0], n_bytes = dlplugin_elements(form) / n;
        uint32_t bits = call->random_bits(call), *row = output;

        if (output_form->n_dims != 2 || (size_t)output_form->shape[0] != n || output_form->shape[1] != 6)
                return call->fail(call, "gets another form of its output than it has said");
        for (size_t i = 0; i < n; i++, row += 6) {
                row[0] = (uint32_t)n;
                row[1] = (uint32_t)call->sample;
                row[2] = call->epoch;
                row[3] = bits;
                row[4] = *(const uint32_t *)call->state;
                row[5] = ((const uint8_t *)input)[i * n_bytes];
        }
        return 0;
}

/* ---- bad -----------------------------------------------------------------------------------------------------------
 */

enum {
        NOTHING,
        CRASH,
        HANG,
        EXIT,
        FAILS,
        SILENT,
        SCRIBBLES,
        BEYOND,
        KILLED_ONCE
};

static int is_first(void) {
        const char *path = getenv("PLUGIN_MARK");

        return access(path, F_OK) != 0 && symlink("x", path) == 0;
}

static int bad(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
               const struct dlplugin_form *output_form, void *output) {
        (void)output_form;
        memcpy(output, input, dlplugin_elements(form));
        if ((double)call->sample != call->values[1].number)
                return 0;
        switch ((int)call->values[0].number) {
        case CRASH:
                raise(SIGSEGV);
                return 0;
        case HANG:
                for (;;)
                        pause();
        case EXIT:
                exit(7);
        case FAILS:
                return call->fail(call, "has %d pictures, %s are needed", (int)form->shape[0], "more");
        case SILENT:
                return -1;
        case SCRIBBLES: /* on what it may only read */
                memset((void *)(uintptr_t)input, 0, 1);
                return 0;
        case BEYOND:
                for (size_t i = 0; i < 1u << 24; i++)
                        ((volatile uint8_t *)output)[dlplugin_elements(form) + i] = 7;
                return 0;
        case KILLED_ONCE:
                if (is_first())
                        raise(SIGKILL);
                return 0;
        default:
                return 0;
        }
}

/* ---- forms that are impossible -------------------------------------------------------------------------------------
 */

static int settle_oddly(struct dlplugin_call *call, const struct dlplugin_form *sample, struct dlplugin_form *row,
                        void **state) {
        (void)sample;
        (void)state;
        switch ((int)call->values[0].number) {
        case 0:
                row->shape[0] = -1;
                return 0;
        case 1:
                row->shape[0] = row->shape[1] = INT64_C(1) << 40;
                return 0;
        case 2:
                row->dtype = 99;
                return 0;
        case 3:
                row->n_dims = 8;
                return 0;
        case 4:
                row->shape[0] = INT64_C(1) << 25; /* too much for a batch */
                return 0;
        case 5:
                abort();
        case 6:
                for (;;)
                        pause();
        default:
                return call->fail(call, "does not like these samples");
        }
}

/* ---- the plug-in ---------------------------------------------------------------------------------------------------
 */

static const struct dlplugin_argument KEPT[] = { { .name = "kept", .kind = DLPLUGIN_WHOLE, .by_default = "1" } };

static const struct dlplugin_argument DOES[] = {
        { .name = "does",
          .kind = DLPLUGIN_CHOICE,
          .by_default = "nothing",
          .choices = "nothing crash hang exit fails silent scribbles beyond killed_once" },
        { .name = "at", .kind = DLPLUGIN_WHOLE, .by_default = "4" },
};

static const struct dlplugin_argument WHICH[] = {
        { .name = "form",
          .kind = DLPLUGIN_CHOICE,
          .by_default = "negative",
          .choices = "negative huge unknown dims large crash hang refuses" },
};

static const struct dlplugin_collation COLLATIONS[] = {
        { .name = "shows",
          .arguments = KEPT,
          .n_arguments = 1,
          .settle = settle_shows,
          .forget = free,
          .collate = shows },
        { .name = "bad", .arguments = DOES, .n_arguments = 2, .collate = bad },
        { .name = "odd", .arguments = WHICH, .n_arguments = 1, .settle = settle_oddly, .collate = bad },
};

DLPLUGIN_EXPORT const struct dlplugin dlplugin = {
        DLPLUGIN_HEAD,      .name = "collations",     .about = "Shows what it is given, and does what it must not.",
        .threads = THREADS, .collations = COLLATIONS, .n_collations = 3,
};
