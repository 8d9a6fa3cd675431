#include "client/dlctl/dlctl_options.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX  40u
#define FIRST_ROW 1000 /* getopt's value for row 0: above all characters, which it returns for mistakes */

struct table {
        struct option_row rows[ROWS_MAX];
        struct option longs[ROWS_MAX + 1];
        char letters[2 * ROWS_MAX + 2]; /* as getopt wants them */
        size_t n;
};

static bool help_wanted;

static void table_add(struct table *table, const struct option_row *row) {
        table->rows[table->n] = *row;
        table->longs[table->n] = (struct option){
                .name = row->name,
                .has_arg = row->argument ? required_argument : no_argument,
                .val = FIRST_ROW + (int)table->n,
        };
        table->n++;
        if (row->letter) {
                size_t n = strlen(table->letters);

                table->letters[n] = row->letter;
                table->letters[n + 1] = row->argument ? ':' : '\0';
        }
}

/* The row for getopt's return value, or NULL for a mistake. */
static const struct option_row *table_find(const struct table *table, int value) {
        if (value >= FIRST_ROW)
                return &table->rows[value - FIRST_ROW];
        for (size_t i = 0; i < table->n; i++)
                if (table->rows[i].letter && table->rows[i].letter == value)
                        return &table->rows[i];
        return NULL;
}

static void table_make(struct table *table, struct context *context, const struct option_row *rows, size_t n_rows) {
        const struct option_row common[] = {
                { "socket", OPTION_TEXT, &context->socket, "PATH",
                  "the daemon's socket (default: DATALOADERD_SOCKET, else that of the node's daemon, else that of the "
                  "private one)" },
                { "private", OPTION_FLAG, &context->is_private, NULL, "ask this user's private daemon" },
                { "format", OPTION_FORMAT, &context->format, "text|json", "json: one object a line" },
                { "help", OPTION_FLAG, &help_wanted, NULL, "print this and exit" },
        };

        *table = (struct table){ .letters = ":" };
        for (size_t i = 0; i < n_rows; i++)
                table_add(table, &rows[i]);
        for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
                table_add(table, &common[i]);
}

#define HELP_COLUMNS 80u
#define HELP_INDENT  25u /* where an option's text begins */

/* Prints as many words as fit into a line; the first line begins at column `at`, the others at `indent`. */
static void print_wrapped(const char *text, size_t at, size_t indent) {
        const char *gap = "";

        while (*text) {
                size_t n = strcspn(text, " ");

                if (*gap && at + 1 + n > HELP_COLUMNS) {
                        printf("\n%*s", (int)indent, "");
                        at = indent;
                        gap = "";
                }
                printf("%s%.*s", gap, (int)n, text);
                at += strlen(gap) + n;
                gap = " ";
                text += n + (text[n] == ' ');
        }
        putchar('\n');
}

static void dlctl_options_print_help(const struct command *command, const struct table *table) {
        printf("Usage: dlctl %s [OPTION]...%s%s\n", command->name, *command->operands ? " " : "", command->operands);
        print_wrapped(command->text, 0, 0);
        putchar('\n');
        for (size_t i = 0; i < table->n; i++) {
                const struct option_row *row = &table->rows[i];
                char head[48], letter[8] = "";

                if (row->letter)
                        snprintf(letter, sizeof(letter), "-%c, ", row->letter);
                snprintf(head, sizeof(head), "%s--%s%s%s", letter, row->name, row->argument ? " " : "",
                         row->argument ? row->argument : "");
                if (strlen(head) > HELP_INDENT - 3) /* too long for the same line */
                        printf("  %s\n%*s", head, (int)HELP_INDENT, "");
                else
                        printf("  %-22s ", head);
                print_wrapped(row->help, HELP_INDENT, HELP_INDENT);
        }
}

static int dlctl_options_usage(const struct command *command) {
        fprintf(stderr, "Try 'dlctl %s --help'.\n", command->name);
        return EXIT_USAGE;
}

static int dlctl_options_parse_number(const struct command *command, const struct option_row *row, const char *text,
                                      uint64_t limit, uint64_t *ret_number) {
        unsigned long long number;
        char *end;

        errno = 0;
        number = strtoull(text, &end, 10);
        if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && number <= limit) {
                *ret_number = number;
                return 0;
        }
        fail(EXIT_USAGE, "%s: --%s: \"%s\" is not allowed; write a whole number from 0 to %llu", command->name,
             row->name, text, (unsigned long long)limit);
        return dlctl_options_usage(command);
}

static int parse_real(const struct command *command, const struct option_row *row, const char *text,
                      double *ret_number) {
        char *end;
        double number = strtod(text, &end);

        if (end != text && *end == '\0') {
                *ret_number = number;
                return 0;
        }
        fail(EXIT_USAGE, "%s: --%s: \"%s\" is not allowed; write a number such as 10 or 0.01", command->name, row->name,
             text);
        return dlctl_options_usage(command);
}

static int dlctl_options_add(const struct command *command, const struct option_row *row, const char *text) {
        struct option_list *list = row->target;

        if (list->n == OPTION_LIST_MAX)
                return fail(EXIT_USAGE, "%s: --%s: given more than %u times", command->name, row->name,
                            OPTION_LIST_MAX);
        list->values[list->n++] = text;
        return 0;
}

/* Returns 0 or an exit code. */
static int dlctl_options_set(const struct command *command, const struct option_row *row, const char *text) {
        uint64_t number;
        int r = 0;

        switch (row->kind) {
        case OPTION_FLAG:
        case OPTION_FLAG_OFF:
                *(bool *)row->target = row->kind == OPTION_FLAG;
                return 0;
        case OPTION_TEXT:
                *(const char **)row->target = text;
                return 0;
        case OPTION_NUMBER:
                return dlctl_options_parse_number(command, row, text, UINT64_MAX, row->target);
        case OPTION_COUNT:
                r = dlctl_options_parse_number(command, row, text, INT_MAX, &number);
                if (r == 0)
                        *(int *)row->target = (int)number;
                return r;
        case OPTION_REAL:
                return parse_real(command, row, text, row->target);
        case OPTION_FORMAT:
                if (output_format_from_name(text, row->target) == 0)
                        return 0;
                fail(EXIT_USAGE, "--format: \"%s\" is not allowed; choose one of: text json", text);
                return dlctl_options_usage(command);
        case OPTION_LIST:
                return dlctl_options_add(command, row, text);
        }
        return 0;
}

const char *option_hint(struct nearest *nearest, const char *typed, const struct option *longs, size_t n) {
        if (strncmp(typed, "--", 2) != 0)
                return "";
        typed += 2;
        nearest_begin(nearest, typed, strcspn(typed, "="));
        for (size_t i = 0; i < n; i++)
                nearest_offer(nearest, longs[i].name);
        return nearest_hint(nearest);
}

int refuse_choice(int code, const char *option, const char *value, const char *choices) {
        struct nearest nearest;

        return fail(code, "%s: \"%s\" is not known%s; choose one of: %s", option, value,
                    nearest_in(&nearest, value, strlen(value), choices), choices);
}

/* Reports an option that getopt refused; getopt left it before optind. */
static int complain(const struct command *command, int mistake, const struct table *table, char **argv) {
        const char *option = argv[optind - 1];
        struct nearest nearest;

        if (mistake == ':')
                fail(EXIT_USAGE, "%s: %s needs an argument", command->name, option);
        else
                fail(EXIT_USAGE, "%s: unknown option %s%s", command->name, option,
                     option_hint(&nearest, option, table->longs, table->n));
        return dlctl_options_usage(command);
}

int options_parse(struct context *context, const struct command *command, const struct option_row *rows, size_t n_rows,
                  int n_operands, int argc, char **argv) {
        size_t n_letters = strlen(command->operands);
        bool is_open = n_letters > 3 && strcmp(command->operands + n_letters - 3, "...") == 0;
        bool is_many = n_letters > 4 && strcmp(command->operands + n_letters - 4, "...]") == 0;
        const struct option_row *row;
        struct table table;
        int value, n_optional, r;

        table_make(&table, context, rows, n_rows);
        if (context->describe) {
                context->describe(context->describe_data, command, table.rows, table.n);
                return EXIT_DONE;
        }
        optind = 0; /* glibc: begin again; main() has parsed the options before the command */
        opterr = 0;
        /* After an open operand, everything belongs to another command: "+" ends the options there. */
        while ((value = getopt_long(argc, argv, is_open ? "+:" : table.letters, table.longs, NULL)) != -1) {
                row = table_find(&table, value);
                if (!row)
                        return complain(command, value, &table, argv);
                r = dlctl_options_set(command, row, optarg);
                if (r != 0)
                        return r;
                if (help_wanted) {
                        dlctl_options_print_help(command, &table);
                        return EXIT_DONE;
                }
        }
        n_optional = is_open || is_many ? argc : command->operands[0] == '[';
        if (argc - optind >= n_operands && argc - optind <= n_operands + n_optional)
                return -1;
        if (argc - optind > n_operands)
                fail(EXIT_USAGE, "%s: unexpected argument \"%s\"", command->name,
                     argv[optind + n_operands + n_optional]);
        else
                fail(EXIT_USAGE, "%s: %s is missing", command->name, command->operands);
        return dlctl_options_usage(command);
}
