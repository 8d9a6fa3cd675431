/* dlctl/listing.h: a command that is a table of what the daemon knows, asked for page by page. */
#pragma once

#include "client/dlctl/control.h"

struct listing {
        const char *name;           /* of the list in JSON */
        const char *const *columns; /* of the table, NULL-terminated */
        const char *empty;          /* said when there is nothing */

        /* Asks for one page and adds its records; *ret_next is where the next one begins, 0 after the last. `operand`
         * is what the command line narrows the list to, or NULL. Returns an exit code; an error has been printed. */
        int (*ask_page)(struct control *control, const char *operand, uint64_t first, cJSON *list, uint64_t *ret_next);
};

/* Runs such a command: it takes no options of its own, and an operand only if it may also be left out. Returns an exit
 * code. */
int listing_run(const struct listing *listing, struct context *context, const struct command *command, int argc,
                char **argv);
