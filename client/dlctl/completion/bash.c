/* The script for bash: one function, with a case for each command and for each option that has an argument. */
#include "client/dlctl/completion/completion.h"

#include <stdio.h>
#include <string.h>

/* Prints the words of "a|b", or "BASH|ZSH" without brackets, with blanks between them. */
static void bash_print_choices(const char *choices) {
        for (; *choices; choices++)
                putchar(*choices == '|' ? ' ' : *choices);
}

static void bash_begin(const struct command *commands, size_t n) {
        printf("# bash completion for dlctl; made by: dlctl completion bash\n"
               "_dlctl() {\n"
               "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= i\n"
               "    COMPREPLY=()\n"
               "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
               "        case ${COMP_WORDS[i]} in\n"
               "        --socket|--format) ((i++)) ;;\n"
               "        -*) ;;\n"
               "        *) command=${COMP_WORDS[i]}; break ;;\n"
               "        esac\n"
               "    done\n"
               "    case $command in\n"
               "    '')\n"
               "        case $previous in\n"
               "        --socket) COMPREPLY=($(compgen -f -- \"$current\")); compopt -o filenames ;;\n"
               "        --format) COMPREPLY=($(compgen -W 'text json' -- \"$current\")) ;;\n"
               "        *) COMPREPLY=($(compgen -W '--socket --format --version --help");
        for (size_t i = 0; i < n; i++)
                printf(" %s", commands[i].name);
        printf("' -- \"$current\")) ;;\n        esac ;;\n");
}

static void bash_print_argument(const struct option_row *row) {
        enum completion_kind kind = completion_of_option(row);

        if (kind == COMPLETE_NONE)
                return;
        printf("        --%s", row->name);
        if (row->letter)
                printf("|-%c", row->letter);
        if (kind == COMPLETE_CHOICE) {
                printf(") COMPREPLY=($(compgen -W '");
                bash_print_choices(row->argument);
                printf("' -- \"$current\")); return ;;\n");
        } else if (kind == COMPLETE_FILE) {
                printf(") COMPREPLY=($(compgen -f -- \"$current\")); compopt -o filenames; return ;;\n");
        } else if (kind == COMPLETE_STEPS || kind == COMPLETE_SAMPLER) {
                printf(") _dlctl_steps '");
                completion_print_names(kind);
                printf("'; return ;;\n");
        } else {
                printf(") return ;;\n");
        }
}

static void print_operand(const struct command *command) {
        switch (completion_of_operand(command)) {
        case COMPLETE_DATASET:
                printf(" COMPREPLY=($(compgen -W \"$(_dlctl_names datasets)\" -- \"$current\")) ;;\n");
                break;
        case COMPLETE_JOB:
                printf(" COMPREPLY=($(compgen -W \"$(_dlctl_names jobs)\" -- \"$current\")) ;;\n");
                break;
        case COMPLETE_CHOICE:
                printf(" COMPREPLY=($(compgen -W '");
                bash_print_choices(command->operands);
                printf("' -- \"$current\")) ;;\n");
                break;
        case COMPLETE_COMMAND:
                printf(" COMPREPLY=($(compgen -c -- \"$current\")) ;;\n");
                break;
        case COMPLETE_HELP:
                printf(" COMPREPLY=($(compgen -W '");
                completion_print_names(COMPLETE_HELP);
                printf("' -- \"$current\")) ;;\n");
                break;
        default:
                printf(" ;;\n");
        }
}

static void bash_print_command(const struct command *command, const struct option_row *rows, size_t n_rows) {
        printf("    %s)\n        case $previous in\n", command->name);
        for (size_t i = 0; i < n_rows; i++)
                bash_print_argument(&rows[i]);
        printf("        esac\n        case $current in\n        -*) COMPREPLY=($(compgen -W '");
        for (size_t i = 0; i < n_rows; i++)
                printf("%s--%s", i > 0 ? " " : "", rows[i].name);
        printf("' -- \"$current\")) ;;\n        *)");
        print_operand(command);
        printf("        esac ;;\n");
}

static void bash_end(const struct command *commands, size_t n) {
        printf("    esac\n}\n"
               "_dlctl_names() {\n"
               "    dlctl --format json \"$1\" 2>/dev/null | sed -n 's/^{\"name\":\"\\([^\"\\\\]*\\)\".*/\\1/p'\n"
               "}\n"
               /* Two that differ at their end: for one alone, readline would close the quotes. */
               "_dlctl_steps() {\n"
               "    local last=${current##*[^a-z0-9_]} begin\n"
               "    begin=${current%%\"$last\"} begin=${begin#[\\'\\\"]}\n"
               "    mapfile -t COMPREPLY < <(compgen -P \"$begin\" -W \"$1\" -- \"$last\")\n"
               "    [[ ${#COMPREPLY[@]} == 1 ]] && COMPREPLY+=(\"${COMPREPLY[0]}(\")\n"
               "    compopt -o nospace\n"
               "}\n"
               "complete -F _dlctl dlctl\n");
}

const struct completion_shell completion_bash = { "bash", bash_begin, bash_print_command, bash_end };
