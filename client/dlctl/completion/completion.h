/* dlctl/completion/completion.h: what a shell may offer after "dlctl", out of the tables of commands and options.
 *
 * Each command is asked for its options with a `describe` in the context (options_parse() hands them over and ends), so
 * that a script knows every option as soon as its table has it. */
#pragma once

#include "client/dlctl/dlctl_options.h"

/* What an argument is completed with. */
enum completion_kind {
        COMPLETE_NONE,    /* the option has no argument */
        COMPLETE_ANY,     /* nothing can be offered */
        COMPLETE_FILE,    /* files and folders */
        COMPLETE_CHOICE,  /* the words of its description: "text|json" */
        COMPLETE_DATASET, /* the names that the daemon knows */
        COMPLETE_JOB,     /* those that run */
        COMPLETE_COMMAND, /* programs */
        COMPLETE_STEPS,   /* the last name in a text of a pipeline's steps */
        COMPLETE_SAMPLER, /* the last name in a text of a sampler's steps */
        COMPLETE_HELP,    /* what `dlctl help` explains */
};

enum completion_kind completion_of_option(const struct option_row *row);
enum completion_kind completion_of_operand(const struct command *command);

/* Prints the names that may stand in such a text, each with a blank before it. COMPLETE_HELP: all kinds' and commands'.
 */
void completion_print_names(enum completion_kind kind);

/* Prints a text between single quotes, as all three shells read it. */
void completion_quote(const char *text);

struct completion_shell {
        const char *name;
        void (*begin)(const struct command *commands, size_t n);
        void (*command)(const struct command *command, const struct option_row *rows, size_t n_rows);
        void (*end)(const struct command *commands, size_t n);
};

extern const struct completion_shell completion_bash, completion_zsh, completion_fish;
