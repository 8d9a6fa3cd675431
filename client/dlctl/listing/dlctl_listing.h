/* dlctl/listing/dlctl_listing.h: a command that prints a table of the daemon's records, fetched page by page. */
#pragma once

#include "client/dlctl/control.h"
#include "client/dlctl/question.h"

struct listing {
        const char *name;           /* of the list in JSON */
        const char *const *columns; /* of the table, NULL-terminated */
        const char *empty;          /* said when there is nothing */

        enum question question;                            /* that is asked, of the operand if there is one, */
        void (*add)(cJSON *list, const Dlp__Reply *reply); /* and adds the records of a page */

        const char *apart; /* a list within the records, whose own records are lines after them as JSON; NULL: none */

        /* With an operand: the exit code that the list means, after it was printed. NULL: EXIT_DONE. */
        int (*check)(const cJSON *list);
};

/* Runs such a command: it has no options of its own, and takes an operand only if the operand is optional. Returns an
 * exit code. */
int listing_run(const struct listing *listing, struct context *context, const struct command *command, int argc,
                char **argv);

/* What dlctl shows of each thing that the daemon lists; the page of `dlctl web` has the same records. */
void job_record(cJSON *list, const Dlp__Job *job, const Dlp__Node *node); /* node: NULL if it is not known */
void dataset_record(cJSON *list, const Dlp__Dataset *dataset);
void error_record(cJSON *list, const Dlp__SampleError *error);

cJSON *status_record(const Dlp__StatusReply *status); /* a new record */
