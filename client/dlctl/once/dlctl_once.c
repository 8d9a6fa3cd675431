/* dlctl once: of many processes that give the same command, one runs it. */

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "client/dlctl/once/once_command.h"
#include "client/dlctl/once/once_key.h"
#include "client/include/dlclient.h"

struct wish {
        struct dlc_once_options once;
        struct option_list inputs;
        const char *key;
        int timeout_s;
};

static void dlctl_once_show_progress(void *userdata, const char *text) {
        fprintf(stderr, "dlctl: %s\n", text);
}

/* Continues to wait after signals that do not end it (SIGCONT). */
static int dlctl_once_wait_for(struct dlc_once *once, int timeout_s) {
        struct timespec now;
        int64_t end_ms = 0, left_ms = -1;
        int r;

        clock_gettime(CLOCK_MONOTONIC, &now);
        end_ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000 + timeout_s * 1000LL;
        do {
                if (timeout_s >= 0) {
                        clock_gettime(CLOCK_MONOTONIC, &now);
                        left_ms = end_ms - (now.tv_sec * 1000LL + now.tv_nsec / 1000000);
                        left_ms = left_ms < 0 ? 0 : left_ms > INT_MAX ? INT_MAX : left_ms;
                }
                r = dlc_once_wait(once, (int)left_ms);
        } while (r == -EINTR || (r == -ETIMEDOUT && left_ms == INT_MAX));
        return r;
}

/* Prints the last lines of the failed command's stderr, which this process has seen only if it ran the command
 * itself. */
static int tell_failure(const char *name, const struct dlc_once_info *info) {
        size_t n = strlen(info->text);

        fail(info->status, "%s: attempt %llu, of pid %lld on %s, failed with status %d%s", name,
             (unsigned long long)info->attempt, (long long)info->pid, info->host, info->status, n > 0 ? ":" : "");
        fputs(info->text, stderr);
        if (n > 0 && info->text[n - 1] != '\n')
                fputc('\n', stderr);
        return info->status > 0 && info->status < 256 ? info->status : EXIT_REFUSED;
}

/* This process runs the command. */
static int dlctl_once_run(struct dlc_once *once, const char *name, char *const *arguments) {
        const struct dlc_once_info *info = dlc_once_get_info(once);
        struct command_end end;
        int r;

        if (*info->remark)
                fprintf(stderr, "dlctl: %s: %s\n", name, info->remark);
        r = command_run(arguments, &end);
        if (r < 0)
                return fail(EXIT_REFUSED, "%s: it is unknown how the command ended (%s): another process runs it again",
                            name, strerror(-r));
        /* The command was interrupted, it did not fail: a process that waits runs it instead. */
        if (end.interrupted && end.status != 0)
                return fail(128 + end.interrupted, "%s: interrupted", name);
        r = dlc_once_end(once, end.status == 0 ? DLC_ONCE_DONE : DLC_ONCE_FAILED, end.status, end.tail, NULL);
        if (r < 0)
                return fail(end.status ? end.status : EXIT_REFUSED, "%s: %s", name, dlc_last_error());
        return end.status;
}

static int once_with(const struct wish *wish, char *const *arguments) {
        struct dlc_once *once;
        int r = dlc_once_open(&wish->once, &once);

        if (r < 0)
                return fail(r == -EINVAL ? EXIT_USAGE : EXIT_REFUSED, "once: %s", dlc_last_error());
        r = dlctl_once_wait_for(once, wish->timeout_s);
        if (r == DLC_ONCE_RUN)
                r = dlctl_once_run(once, wish->once.name, arguments);
        else if (r == DLC_ONCE_FAILED)
                r = tell_failure(wish->once.name, dlc_once_get_info(once));
        else if (r == DLC_ONCE_DONE)
                r = EXIT_DONE;
        else
                r = fail(r == -ETIMEDOUT ? EXIT_TIMEOUT : EXIT_REFUSED, "once: %s", dlc_last_error());
        dlc_once_close(once);
        return r;
}

int once_run(struct context *context, const struct command *command, int argc, char **argv) {
        struct wish wish = { .once = DLC_ONCE_OPTIONS_INIT, .timeout_s = -1 };
        const struct option_row rows[] = {
                { "name", OPTION_TEXT, &wish.once.name, "N", "name of the work; mandatory" },
                { "scope", OPTION_TEXT, &wish.once.scope, "node|cluster",
                  "once per node (default; forgotten when it boots) or per cluster" },
                { "dir", OPTION_TEXT, &wish.once.dir, "DIR",
                  "where it is remembered; cluster: a folder that all nodes see (or DATALOADERD_ONCE_DIR)" },
                { "key", OPTION_TEXT, &wish.key, "K", "a text on which the work depends, such as a version" },
                { "input", OPTION_LIST, &wish.inputs, "FILE",
                  "the work depends on its content; may be given several times" },
                { "timeout", OPTION_COUNT, &wish.timeout_s, "S", "how long to wait for others, seconds" },
                { "again", OPTION_FLAG, &wish.once.again, NULL, "run it even if it is remembered as done" },
        };
        char key[ONCE_KEY_SIZE];
        int r;

        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 1, argc, argv);
        if (r >= 0)
                return r;
        if (!wish.once.name)
                return fail(EXIT_USAGE, "once: --name is missing");
        r = once_key(argv + optind, wish.key, &wish.inputs, key);
        if (r != 0)
                return r;
        wish.once.key = key;
        wish.once.on_progress = dlctl_once_show_progress;
        return once_with(&wish, argv + optind);
}
