/* The script for zsh: a function that lists the commands, and a case with _arguments for each of them. */
#include "client/dlctl/completion/completion.h"

#include <stdio.h>
#include <string.h>

/* A text inside single quotes, where _arguments and _describe give a meaning to brackets and colons. */
static void zsh_print_text(const char *text) {
        for (; *text; text++) {
                if (strchr("[]:\\", *text))
                        putchar('\\');
                if (*text == '\'')
                        fputs("'\\''", stdout);
                else
                        putchar(*text);
        }
}

static void zsh_print_choices(const char *choices) {
        putchar('(');
        for (; *choices; choices++)
                putchar(*choices == '|' ? ' ' : *choices);
        putchar(')');
}

static void zsh_begin(const struct command *commands, size_t n) {
        printf("#compdef dlctl\n"
               "# zsh completion for dlctl; made by: dlctl completion zsh\n"
               "_dlctl_names() {\n"
               "    local -a names\n"
               "    names=(${(f)\"$(dlctl --format json $1 2>/dev/null | sed -n 's/^{\"name\":\"\\([^\"\\\\]*\\)\".*/\\1/p')\"})\n"
               "    compadd -a names\n"
               "}\n"
               "_dlctl_datasets() { _dlctl_names datasets }\n"
               "_dlctl_jobs() { _dlctl_names jobs }\n"
               "_dlctl_last() { compset -P '*[^a-z0-9_]'; compadd -S '' -- \"$@\" }\n"
               "_dlctl_steps() { _dlctl_last");
        completion_print_names(COMPLETE_STEPS);
        printf(" }\n"
               "_dlctl_samplers() { _dlctl_last");
        completion_print_names(COMPLETE_SAMPLER);
        printf(" }\n"
               "_dlctl_commands() {\n"
               "    local -a commands\n"
               "    commands=(\n");
        for (size_t i = 0; i < n; i++) {
                printf("        '%s:", commands[i].name);
                zsh_print_text(commands[i].summary);
                printf("'\n");
        }
        printf("    )\n"
               "    _describe command commands\n"
               "}\n"
               "_dlctl() {\n"
               "    local context state state_descr line\n"
               "    typeset -A opt_args\n"
               "    _arguments -C '--socket[the socket of the daemon]:path:_files' "
               "'--format[json\\: one object a line]:format:(text json)' \\\n"
               "        '--version[print the version and exit]' '--help[print help and exit]' "
               "'1:command:_dlctl_commands' '*::argument:->rest'\n"
               "    [[ $state == rest ]] || return\n"
               "    case $words[1] in\n");
}

static void print_option(const struct option_row *row) {
        enum completion_kind kind = completion_of_option(row);

        if (row->letter)
                printf(" \\\n        '(-%c --%s)'{-%c,--%s}'[", row->letter, row->name, row->letter, row->name);
        else
                printf(" \\\n        '%s--%s[", row->kind == OPTION_LIST ? "*" : "", row->name);
        zsh_print_text(row->help);
        putchar(']');
        if (kind != COMPLETE_NONE) {
                putchar(':');
                zsh_print_text(row->argument);
                putchar(':');
        }
        if (kind == COMPLETE_FILE)
                printf("_files");
        if (kind == COMPLETE_STEPS || kind == COMPLETE_SAMPLER)
                printf(kind == COMPLETE_STEPS ? "_dlctl_steps" : "_dlctl_samplers");
        if (kind == COMPLETE_CHOICE)
                zsh_print_choices(row->argument);
        putchar('\'');
}

static void zsh_print_command(const struct command *command, const struct option_row *rows, size_t n_rows) {
        printf("    %s)\n        _arguments", command->name);
        for (size_t i = 0; i < n_rows; i++)
                print_option(&rows[i]);
        switch (completion_of_operand(command)) {
        case COMPLETE_DATASET:
                printf(" \\\n        '1:dataset:_dlctl_datasets'");
                break;
        case COMPLETE_JOB:
                printf(" \\\n        '1:job:_dlctl_jobs'");
                break;
        case COMPLETE_CHOICE:
                printf(" \\\n        '1:word:");
                zsh_print_choices(command->operands);
                putchar('\'');
                break;
        case COMPLETE_HELP:
                printf(" \\\n        '1:word:(");
                completion_print_names(COMPLETE_HELP);
                printf(")'");
                break;
        case COMPLETE_COMMAND:
                printf(" \\\n        '*::command:_normal'");
                break;
        default:
                break;
        }
        printf(" ;;\n");
}

static void zsh_end(const struct command *commands, size_t n) {
        printf("    esac\n}\n"
               "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _dlctl \"$@\"; else compdef _dlctl dlctl; fi\n");
}

const struct completion_shell completion_zsh = { "zsh", zsh_begin, zsh_print_command, zsh_end };
