/* dlctl completion SHELL: prints the script that a shell reads. */
#include "client/dlctl/completion/completion.h"

#include <stdio.h>
#include <string.h>

#include "client/dlctl/kinds/kinds_help.h"

static const struct completion_shell *const SHELLS[] = { &completion_bash, &completion_zsh, &completion_fish };
#define N_SHELLS (sizeof(SHELLS) / sizeof(SHELLS[0]))

static bool completion_is_one_of(const char *word, const char *const *words) {
        for (; *words; words++)
                if (strcmp(word, *words) == 0)
                        return true;
        return false;
}

enum completion_kind completion_of_option(const struct option_row *row) {
        static const char *const FILES[] = { "FILE", "PATH", "DIR", "FOLDER", NULL };

        if (!row->argument)
                return COMPLETE_NONE;
        if (strchr(row->argument, '|'))
                return COMPLETE_CHOICE;
        if (strcmp(row->argument, "STEPS") == 0)
                return COMPLETE_STEPS;
        if (strcmp(row->argument, "SAMPLER") == 0)
                return COMPLETE_SAMPLER;
        return completion_is_one_of(row->argument, FILES) ? COMPLETE_FILE : COMPLETE_ANY;
}

enum completion_kind completion_of_operand(const struct command *command) {
        static const char *const DATASETS[] = { "DATASET", "[DATASET]", "[NAME]", "DATASET [INDEX...]", NULL };

        if (strcmp(command->operands, "COMMAND...") == 0)
                return COMPLETE_COMMAND;
        if (strcmp(command->operands, "[JOB]") == 0)
                return COMPLETE_JOB;
        if (strcmp(command->operands, "[WORD]") == 0)
                return COMPLETE_HELP;
        if (strchr(command->operands, '|'))
                return COMPLETE_CHOICE;
        return completion_is_one_of(command->operands, DATASETS) ? COMPLETE_DATASET : COMPLETE_NONE;
}

static bool completion_has(enum completion_kind kind, enum kind_of of) {
        if (kind == COMPLETE_SAMPLER)
                return of == KIND_OF_samplers;
        return kind == COMPLETE_HELP || of == KIND_OF_pictures || of == KIND_OF_sounds || of == KIND_OF_fields ||
               of == KIND_OF_collations;
}

void completion_print_names(enum completion_kind kind) {
        const struct command *commands;
        const struct kind_help *rows;
        size_t n;

        rows = kinds_help_table(&n);
        for (size_t i = 0; i < n; i++)
                if (completion_has(kind, rows[i].of))
                        printf(" %s", rows[i].name);
        commands = commands_table(&n);
        for (size_t i = 0; kind == COMPLETE_HELP && i < n; i++)
                printf(" %s", commands[i].name);
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
