/* dlctl/command.h: a command of dlctl: a row in the table of dlctl_main.c, with a file of its own. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "client/dlctl/output.h"

/* How dlctl ends; scripts rely on them. */
enum exit_code {
        EXIT_DONE = 0,
        EXIT_REFUSED = 1, /* or a check failed */
        EXIT_USAGE = 2,
        EXIT_UNREACHABLE = 3, /* no daemon, or it is gone */
        EXIT_TIMEOUT = 124,   /* as timeout(1) has it */
        EXIT_INTERRUPTED = 130,
};

struct command;
struct option_row;

/* Options that may stand before the command or among its own options. */
struct context {
        const char *socket; /* NULL: the one that is found */
        bool is_private;    /* the private daemon of this user, and no other */
        enum output_format format;
        /* Not NULL: a command hands its options to this, with describe_data, and does nothing else (completion). */
        void (*describe)(const void *data, const struct command *command, const struct option_row *rows, size_t n_rows);
        const void *describe_data;
};

struct command {
        const char *name;
        const char *operands; /* for the usage line: "DATASET", "[DATASET]" if it may be left out, or "" */
        const char *summary;  /* a line for `dlctl --help` */
        const char *text;     /* paragraphs for `dlctl COMMAND --help` */
        int (*run)(struct context *context, const struct command *command, int argc, char **argv); /* an exit code */
};

int status_run(struct context *context, const struct command *command, int argc, char **argv);
int datasets_run(struct context *context, const struct command *command, int argc, char **argv);
int jobs_run(struct context *context, const struct command *command, int argc, char **argv);
int errors_run(struct context *context, const struct command *command, int argc, char **argv);
int metrics_run(struct context *context, const struct command *command, int argc, char **argv);
int workers_run(struct context *context, const struct command *command, int argc, char **argv);
int order_run(struct context *context, const struct command *command, int argc, char **argv);
int plan_run(struct context *context, const struct command *command, int argc, char **argv);
int index_run(struct context *context, const struct command *command, int argc, char **argv);
int stage_run(struct context *context, const struct command *command, int argc, char **argv);
int read_run(struct context *context, const struct command *command, int argc, char **argv);
int check_steps_run(struct context *context, const struct command *command, int argc, char **argv);
int look_run(struct context *context, const struct command *command, int argc, char **argv);
int diagnose_run(struct context *context, const struct command *command, int argc, char **argv);
int bench_run(struct context *context, const struct command *command, int argc, char **argv);
int top_run(struct context *context, const struct command *command, int argc, char **argv);
int web_run(struct context *context, const struct command *command, int argc, char **argv);
int completion_run(struct context *context, const struct command *command, int argc, char **argv);
int trace_run(struct context *context, const struct command *command, int argc, char **argv);
int stop_run(struct context *context, const struct command *command, int argc, char **argv);
int help_run(struct context *context, const struct command *command, int argc, char **argv);
int once_run(struct context *context, const struct command *command, int argc, char **argv);

/* All commands, in the order of the help. Static. */
const struct command *commands_table(size_t *ret_n);

/* Prints "dlctl: ..." to stderr. Returns `code`, so that a command can end with it. */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
