/* dlctl top: who is served how fast, and who waits, live. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/top/top.h"
#include "client/dlctl/top/top_state.h"

/* "job|user|dataset..." Static. */
static char *sort_choices(void) {
        static char choices[128];
        size_t n = 0;

        for (size_t i = 0; i < N_COLUMNS; i++)
                if (TOP_COLUMNS[i].name)
                        n += (size_t)snprintf(choices + n, sizeof(choices) - n, "%s%s", i ? "|" : "",
                                              TOP_COLUMNS[i].name);
        return choices;
}

static int top_choose(struct context *context, const struct command *command, int argc, char **argv,
                      struct top_terms *terms) {
        char *choices = sort_choices();
        const char *sort = NULL;
        const struct option_row rows[] = {
                { "once", OPTION_FLAG, &terms->once, NULL, "print once, as text, and end", 0 },
                { "delay", OPTION_REAL, &terms->delay, "SECONDS", "between two glances, from 0.1 (default: 1)", 'd' },
                { "sort", OPTION_TEXT, &sort, choices, "what stands first (default: wait, the longest)", 's' },
                { "reverse", OPTION_FLAG, &terms->sorting.inverted, NULL, "what would stand last stands first", 0 },
                { "filter", OPTION_TEXT, &terms->filter, "TEXT", "only jobs whose name, user or dataset has it in it",
                  'F' },
                { "ranks", OPTION_FLAG, &terms->ranks, NULL, "with the ranks of each job", 't' },
        };
        int r;

        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 0, argc, argv);
        if (r >= 0)
                return r;
        if (!(terms->delay >= DELAY_LEAST && terms->delay <= DELAY_MOST))
                return fail(EXIT_USAGE, "top: --delay: %g is not allowed; choose a number from %g to %g seconds",
                            terms->delay, DELAY_LEAST, DELAY_MOST);
        if (!sort || column_from_name(sort, &terms->sorting.column) == 0)
                return -1;
        for (char *c = choices; *c; c++)
                *c = *c == '|' ? ' ' : *c;
        return refuse_choice(EXIT_USAGE, "top: --sort", sort, choices);
}

int top_run(struct context *context, const struct command *command, int argc, char **argv) {
        struct top_terms terms = { .delay = 1, .sorting = { .column = COLUMN_WAIT }, .filter = "" };
        int r = top_choose(context, command, argc, argv, &terms);

        if (r >= 0)
                return r;
        return terms.once ? top_once(context, &terms) : top_live(context, &terms);
}
