/* Steps that do what a plug-in must not do, to the sample whose pixels begin with a certain number. */
#include <dlplugin.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct dlplugin_argument ARGUMENTS[] = {
        { .name = "does",
          .kind = DLPLUGIN_CHOICE,
          .by_default = "nothing",
          .choices = "nothing crash hang exit fails silent forks prints scribbles hangs_up killed_once orphans" },
        { .name = "sample", .kind = DLPLUGIN_WHOLE, .by_default = "3" },
};

enum {
        NOTHING,
        CRASH,
        HANG,
        EXIT,
        FAILS,
        SILENT,
        FORKS,
        PRINTS,
        SCRIBBLES,
        HANGS_UP,
        KILLED_ONCE,
        ORPHANS
};

static void print_much(void) {
        char line[1024];

        memset(line, 'x', sizeof(line));
        for (int i = 0; i < 100000; i++)
                if (write(1, line, sizeof(line)) < 0)
                        return;
}

static void note(pid_t pid) {
        FILE *file = fopen(getenv("PLUGIN_MARK"), "a");

        fprintf(file, "%d\n", (int)pid);
        fclose(file);
}

static int is_first(void) {
        const char *path = getenv("PLUGIN_MARK");

        if (access(path, F_OK) == 0)
                return 0;
        fclose(fopen(path, "w"));
        return 1;
}

static int misbehave(struct dlplugin_call *call, const void *input) {
        pid_t child;

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
                return call->fail(call, "has %d corners, %s are needed", 3, "four");
        case SILENT:
                return -1;
        case FORKS:
                child = fork();
                if (child == 0)
                        _exit(0);
                waitpid(child, NULL, 0);
                return 0;
        case PRINTS:
                print_much();
                return 0;
        case SCRIBBLES: /* on what it may only read */
                memset((void *)(uintptr_t)input, 0, 1);
                return 0;
        case HANGS_UP:
                close(3);
                pause();
                return 0;
        case ORPHANS: /* leaves somebody who holds all that it had open */
                child = fork();
                if (child > 0) {
                        note(child);
                        _exit(5);
                }
                for (;;)
                        pause();
        case KILLED_ONCE:
                if (is_first())
                        raise(SIGKILL);
                return 0;
        default:
                return 0;
        }
}

static int run(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
               const struct dlplugin_form *output_form, void *output) {
        (void)output_form;
        memcpy(output, input, dlplugin_elements(form));
        return (double)call->sample == call->values[1].number ? misbehave(call, input) : 0;
}

/* ---- forms ---------------------------------------------------------------------------------------------------------
 */

static const struct dlplugin_argument WHICH[] = {
        { .name = "form",
          .kind = DLPLUGIN_CHOICE,
          .by_default = "negative",
          .choices = "negative huge unknown dims crash hang none refuses" },
};

static int settle_oddly(struct dlplugin_call *call, const struct dlplugin_form *input, struct dlplugin_form *output,
                        void **state) {
        (void)input;
        (void)state;
        switch ((int)call->values[0].number) {
        case 0:
                output->shape[0] = -1;
                return 0;
        case 1:
                output->shape[0] = output->shape[1] = INT64_C(1) << 40;
                return 0;
        case 2:
                output->dtype = 99;
                return 0;
        case 3:
                output->n_dims = 8;
                return 0;
        case 4:
                abort();
        case 5:
                for (;;)
                        pause();
        case 6:
                output->shape[1] = 0;
                return 0;
        default:
                return call->fail(call, "does not like this input");
        }
}

static const struct dlplugin_step STEPS[] = {
        { .name = "step", .arguments = ARGUMENTS, .n_arguments = 2, .run = run },
        { .name = "odd", .arguments = WHICH, .n_arguments = 1, .settle = settle_oddly, .run = run },
};

DLPLUGIN_EXPORT const struct dlplugin dlplugin = {
        DLPLUGIN_HEAD,  .name = "bad", .about = "Does what a plug-in must not do.", .threads = DLPLUGIN_PARALLEL,
        .steps = STEPS, .n_steps = 2,
};
