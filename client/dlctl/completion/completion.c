/* dlctl completion SHELL: prints the script that a shell reads. */
#include "client/dlctl/completion/completion.h"

#include <stdio.h>
#include <string.h>

static const struct completion_shell *const SHELLS[] = { &completion_bash, &completion_zsh, &completion_fish };
#define N_SHELLS (sizeof(SHELLS) / sizeof(SHELLS[0]))

static bool completion_is_one_of(const char *word, const char *const *words) {
        for (; *words; words++)
                if (strcmp(word, *words) == 0)
                        return true;
        return false;
}

enum argument_kind completion_of_option(const struct option_row *row) {
        static const char *const FILES[] = { "FILE", "PATH", "DIR", "FOLDER", NULL };

        if (!row->argument)
                return ARGUMENT_NONE;
        if (strchr(row->argument, '|'))
                return ARGUMENT_CHOICE;
        return completion_is_one_of(row->argument, FILES) ? ARGUMENT_FILE : ARGUMENT_ANY;
}

enum argument_kind completion_of_operand(const struct command *command) {
        static const char *const DATASETS[] = { "DATASET", "[DATASET]", "[NAME]", "DATASET [INDEX...]", NULL };

        if (strcmp(command->operands, "COMMAND...") == 0)
                return ARGUMENT_COMMAND;
        if (strcmp(command->operands, "[JOB]") == 0)
                return ARGUMENT_JOB;
        if (strchr(command->operands, '|'))
                return ARGUMENT_CHOICE;
        return completion_is_one_of(command->operands, DATASETS) ? ARGUMENT_DATASET : ARGUMENT_NONE;
}

void completion_quote(const char *text) {
        putchar('\'');
        for (; *text; text++)
                if (*text == '\'')
                        fputs("'\\''", stdout);
                else
                        putchar(*text);
        putchar('\'');
}

static void describe(const void *shell, const struct command *command, const struct option_row *rows, size_t n_rows) {
        ((const struct completion_shell *)shell)->command(command, rows, n_rows);
}

int completion_run(struct context *context, const struct command *command, int argc, char **argv) {
        const struct command *commands;
        const char *name;
        size_t n;
        int r = options_parse(context, command, NULL, 0, 1, argc, argv);

        if (r >= 0)
                return r;
        name = argv[optind];
        commands = commands_table(&n);
        for (size_t i = 0; i < N_SHELLS; i++)
                if (strcmp(SHELLS[i]->name, name) == 0) {
                        struct context asked = { .describe = describe, .describe_data = SHELLS[i] };

                        SHELLS[i]->begin(commands, n);
                        for (size_t k = 0; k < n; k++) {
                                char *arguments[] = { (char *)(uintptr_t)commands[k].name, NULL };

                                commands[k].run(&asked, &commands[k], 1, arguments);
                        }
                        SHELLS[i]->end(commands, n);
                        return EXIT_DONE;
                }
        return refuse_choice(EXIT_USAGE, "completion", name, "bash zsh fish");
}
