/* dlctl help: what a command does, or a step, a sampler's step, a collation, a format. Without a name, which there are.
 */
#include <stdio.h>
#include <string.h>

#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/kinds/kinds_help.h"

#define WIDTH 79 /* of a terminal's line */

static void help_list(void) {
        const struct kind_help *rows;
        size_t n, column = WIDTH;

        rows = kinds_help_table(&n);
        printf("dlctl help WORD says what a command does ('dlctl --help' lists them), or one of these:\n");
        for (size_t i = 0; i < n; i++) {
                if (i == 0 || rows[i].of != rows[i - 1].of) {
                        printf("%s\n%s\n", i > 0 ? "\n" : "", kinds_help_title(rows[i].of));
                        column = 0;
                }
                if (column + 2 + strlen(rows[i].name) > WIDTH) {
                        putchar('\n');
                        column = 0;
                }
                column += (size_t)printf("  %s", rows[i].name);
        }
        putchar('\n');
}

static void help_print(enum output_format format, const struct kind_help *row) {
        cJSON *record;

        if (format == OUTPUT_TEXT) {
                printf("%s\n\n%s", kinds_help_title(row->of), row->text);
                return;
        }
        record = record_new();
        record_text(record, "name", row->name);
        record_text(record, "of", kinds_help_title(row->of));
        record_text(record, "text", row->text);
        output_record(format, record);
        cJSON_Delete(record);
}

/* Prints what there is under this name in all families. Returns how many there are. */
static unsigned help_kinds(enum output_format format, const char *name) {
        const struct kind_help *rows;
        unsigned n_found = 0;
        size_t n;

        rows = kinds_help_table(&n);
        for (size_t i = 0; i < n; i++)
                if (strcmp(rows[i].name, name) == 0) {
                        if (n_found++ > 0 && format == OUTPUT_TEXT)
                                putchar('\n');
                        help_print(format, &rows[i]);
                }
        return n_found;
}

static int help_unknown(const char *name, const struct command *commands, size_t n_commands) {
        const struct kind_help *rows;
        struct nearest nearest;
        size_t n;

        rows = kinds_help_table(&n);
        nearest_begin(&nearest, name, strlen(name));
        for (size_t i = 0; i < n_commands; i++)
                nearest_offer(&nearest, commands[i].name);
        for (size_t i = 0; i < n; i++)
                nearest_offer(&nearest, rows[i].name);
        return fail(EXIT_REFUSED, "there is no command, step or format \"%s\"%s; 'dlctl help' lists them", name,
                    nearest_hint(&nearest));
}

int help_run(struct context *context, const struct command *command, int argc, char **argv) {
        const struct command *commands;
        const char *name;
        size_t n;
        int r = options_parse(context, command, NULL, 0, 0, argc, argv);

        if (r >= 0)
                return r;
        if (!argv[optind]) {
                help_list();
                return EXIT_DONE;
        }
        name = argv[optind];
        commands = commands_table(&n);
        for (size_t i = 0; i < n; i++)
                if (strcmp(commands[i].name, name) == 0) {
                        char *arguments[] = { (char *)(uintptr_t)name, (char *)(uintptr_t) "--help", NULL };

                        optind = 1; /* the command parses anew */
                        return commands[i].run(context, &commands[i], 2, arguments);
                }
        if (help_kinds(context->format, name) > 0)
                return EXIT_DONE;
        return help_unknown(name, commands, n);
}
