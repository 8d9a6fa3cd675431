/* dlctl stage: a dataset of a URL is fetched by the daemon, into its cache. For one with an `origin`, dlctl replaces
 * itself by the staging program. That is a separate program because only it needs MPI. It does not talk to the daemon,
 * which finds staged datasets by itself. */

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/staging/stage_cache.h"

#define PROGRAM       "dataloaderd-stage"
#define ARGUMENTS_MAX 10

/* The folder of the dlctl program, without a slash at its end; "" if it is unknown. */
static void own_folder(char folder[PATH_MAX]) {
        ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
        char *slash;

        folder[n > 0 ? n : 0] = '\0';
        slash = strrchr(folder, '/');
        if (slash)
                *slash = '\0';
}

/* Returns only if there is no such program or it cannot be run, with the errno. */
static int stage_exec(const char *folder, const char *below, char *const *arguments) {
        char path[2 * PATH_MAX];

        snprintf(path, sizeof(path), "%s%s/" PROGRAM, folder, below);
        execv(path, arguments);
        return errno;
}

/* Tries three places: beside dlctl, as in a build folder; where `make install` puts it; the shell's PATH. */
static int run_somewhere(char *const *arguments) {
        static const char *const FOLDERS[] = { "/usr/local/sbin", "/usr/sbin" };
        char folder[PATH_MAX];
        int error;

        own_folder(folder);
        error = stage_exec(folder, "", arguments);
        if (error == ENOENT)
                error = stage_exec(folder, "/../sbin", arguments);
        if (error == ENOENT) {
                execvp(PROGRAM, arguments);
                error = errno;
        }
        for (size_t i = 0; i < sizeof(FOLDERS) / sizeof(FOLDERS[0]) && error == ENOENT; i++)
                error = stage_exec(FOLDERS[i], "", arguments);
        if (error != ENOENT)
                return fail(EXIT_REFUSED, PROGRAM ": cannot be run: %s", strerror(error));
        return fail(EXIT_REFUSED, PROGRAM " is not installed: it is neither in %s nor in ../sbin, PATH or /usr/sbin",
                    folder);
}

int stage_run(struct context *context, const struct command *command, int argc, char **argv) {
        const char *config = NULL;
        bool verify = false, dry_run = false;
        const struct option_row rows[] = {
                { "config", OPTION_TEXT, &config, "FILE",
                  "the daemon's configuration (default: /etc/dataloaderd/dataloaderd.conf)", 'c' },
                { "verify", OPTION_FLAG, &verify, NULL,
                  "read everything again that is there, and fetch what is damaged" },
                { "dry-run", OPTION_FLAG, &dry_run, NULL, "print what would be fetched, and fetch nothing" },
        };
        char *arguments[ARGUMENTS_MAX];
        size_t n = 0;
        int r;

        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 1, argc, argv);
        if (r >= 0)
                return r;
        if (!config && (strchr(argv[optind], '/') || stage_is_of_cache(context, argv[optind]))) {
                if (!verify && !dry_run)
                        return stage_cache(context, argv[optind]);
                return fail(EXIT_USAGE, "stage: --verify and --dry-run are for a dataset that has an origin in the "
                                        "configuration; what a URL would take, dlctl plan tells");
        }
        arguments[n++] = (char *)(uintptr_t)PROGRAM;
        if (config) {
                arguments[n++] = (char *)(uintptr_t) "--config";
                arguments[n++] = (char *)(uintptr_t)config;
        }
        if (verify)
                arguments[n++] = (char *)(uintptr_t) "--verify";
        if (dry_run)
                arguments[n++] = (char *)(uintptr_t) "--dry-run";
        if (context->format == OUTPUT_JSON) {
                arguments[n++] = (char *)(uintptr_t) "--format";
                arguments[n++] = (char *)(uintptr_t) "json";
        }
        arguments[n++] = (char *)(uintptr_t) "--"; /* a dataset may be called "-c" */
        arguments[n++] = argv[optind];
        arguments[n] = NULL;
        signal(SIGPIPE, SIG_DFL); /* main() ignores SIGPIPE, and the new program would inherit that */
        return run_somewhere(arguments);
}
