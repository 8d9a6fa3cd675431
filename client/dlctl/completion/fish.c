/* The script for fish: a line for each command and for each of its options. */
#include "client/dlctl/completion/completion.h"

#include <stdio.h>

static void fish_begin(const struct command *commands, size_t n) {
        printf("# fish completion for dlctl; made by: dlctl completion fish\n"
               "function __dlctl_names\n"
               "    dlctl --format json $argv 2>/dev/null | string match -rg '^\\{\"name\":\"([^\"\\\\\\\\]*)\"'\n"
               "end\n"
               "function __dlctl_steps\n"
               "    set -l begin (commandline -ct | string replace -r '[a-z0-9_]*$' '' | string replace -r '^[\\'\"]' '')\n"
               "    printf '%%s\\n' \"$begin\"$argv\n"
               "end\n"
               "complete -c dlctl -f\n"
               "complete -c dlctl -n __fish_use_subcommand -l socket -r -F -d 'the socket of the daemon'\n"
               "complete -c dlctl -n __fish_use_subcommand -l format -x -a 'text json' -d 'json: one object a line'\n"
               "complete -c dlctl -n __fish_use_subcommand -l version -d 'print the version and exit'\n"
               "complete -c dlctl -n __fish_use_subcommand -l help -d 'print help and exit'\n");
        for (size_t i = 0; i < n; i++) {
                printf("complete -c dlctl -n __fish_use_subcommand -a %s -d ", commands[i].name);
                completion_quote(commands[i].summary);
                putchar('\n');
        }
}

static void fish_print_choices(const char *choices) {
        printf(" -a '");
        for (; *choices; choices++)
                putchar(*choices == '|' ? ' ' : *choices);
        putchar('\'');
}

static void fish_print_command(const struct command *command, const struct option_row *rows, size_t n_rows) {
        for (size_t i = 0; i < n_rows; i++) {
                enum completion_kind kind = completion_of_option(&rows[i]);

                printf("complete -c dlctl -n '__fish_seen_subcommand_from %s' -l %s", command->name, rows[i].name);
                if (rows[i].letter)
                        printf(" -s %c", rows[i].letter);
                if (kind == COMPLETE_FILE)
                        printf(" -r -F");
                else if (kind != COMPLETE_NONE)
                        printf(" -x");
                if (kind == COMPLETE_CHOICE)
                        fish_print_choices(rows[i].argument);
                if (kind == COMPLETE_STEPS || kind == COMPLETE_SAMPLER) {
                        printf(" -a '(__dlctl_steps");
                        completion_print_names(kind);
                        printf(")'");
                }
                printf(" -d ");
                completion_quote(rows[i].help);
                putchar('\n');
        }
        switch (completion_of_operand(command)) {
        case COMPLETE_DATASET:
                printf("complete -c dlctl -n '__fish_seen_subcommand_from %s' -a '(__dlctl_names datasets)'\n",
                       command->name);
                break;
        case COMPLETE_JOB:
                printf("complete -c dlctl -n '__fish_seen_subcommand_from %s' -a '(__dlctl_names jobs)'\n",
                       command->name);
                break;
        case COMPLETE_CHOICE:
                printf("complete -c dlctl -n '__fish_seen_subcommand_from %s'", command->name);
                fish_print_choices(command->operands);
                putchar('\n');
                break;
        case COMPLETE_HELP:
                printf("complete -c dlctl -n '__fish_seen_subcommand_from %s' -a '", command->name);
                completion_print_names(COMPLETE_HELP);
                printf("'\n");
                break;
        case COMPLETE_COMMAND:
                printf("complete -c dlctl -n '__fish_seen_subcommand_from %s' -a '(__fish_complete_command)'\n",
                       command->name);
                break;
        default:
                break;
        }
}

static void fish_end(const struct command *commands, size_t n) {
}

const struct completion_shell completion_fish = { "fish", fish_begin, fish_print_command, fish_end };
