/* dlctl/dlctl_options.h: options of a command, each described once, for parsing and for --help. */
#pragma once

#include <getopt.h>

#include "client/dlctl/command.h"
#include "proto/base/nearest.h"

enum option_kind {
        OPTION_FLAG,     /* bool *: set to true */
        OPTION_FLAG_OFF, /* bool *: set to false */
        OPTION_TEXT,     /* const char ** */
        OPTION_NUMBER,   /* uint64_t *: 0 .. 2^64-1 */
        OPTION_COUNT,    /* int *: 0 .. 2^31-1 */
        OPTION_REAL,     /* double *; the daemon checks the value */
        OPTION_FORMAT,   /* enum output_format * */
        OPTION_LIST,     /* struct option_list *: may be given several times */
};

#define OPTION_LIST_MAX 64u

struct option_list {
        const char *values[OPTION_LIST_MAX];
        size_t n;
};

struct option_row {
        const char *name; /* without the dashes */
        enum option_kind kind;
        void *target;         /* untouched unless the option is given */
        const char *argument; /* "N" for the help, NULL for flags */
        const char *help;
        char letter; /* its short form; 0: none */
};

/* Parses a command's arguments (argv[0] is the command); every command has --help, --socket and --format. The number of
 * operands must be n_operands, or one more if the command's operands are in brackets, or any number more if they end in
 * "...]" or in "...": after the first operand of the latter, options are not ours. The operands are in argv[optind] and
 * after it. Returns -1 to continue, else the exit code with which to exit at once. */
int options_parse(struct context *context, const struct command *command, const struct option_row *rows, size_t n_rows,
                  int n_operands, int argc, char **argv);

/* For messages: the one of n options that is nearest to what was typed, as nearest_hint() says it. */
const char *option_hint(struct nearest *nearest, const char *typed, const struct option *longs, size_t n);

/* Refuses a name that is not one of `choices`, which have blanks between them. Returns `code`. */
int refuse_choice(int code, const char *option, const char *value, const char *choices);
