/* dlctl/glance.h: what the daemon has said at one moment. Rates and verdicts come from two such looks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/dlctl/question.h"
#include "client/lib/diagnose/verdict.h"

#define GLANCE_JOBS_MAX     1024u /* of more, the first ones are shown */
#define GLANCE_DATASETS_MAX 4096u
#define GLANCE_ERRORS_MAX   1000u

/* All pointers lead into the replies. Tests make glances of messages of their own. */
struct glance {
        const Dlp__StatusReply *status;
        const Dlp__Node *node; /* NULL: an old daemon does not say */
        struct look *jobs;     /* each with the node at its own moment */
        size_t n_jobs;
        const Dlp__Dataset **datasets;
        size_t n_datasets;
        const Dlp__SampleError **errors;
        size_t n_errors;
        bool has_more_errors; /* than these */

        Dlp__Reply **replies; /* that it owns */
        size_t n_replies;
};

/* A look without anything. Ends the program if there is no memory. */
struct glance *glance_new(void);
void glance_free(struct glance *glance); /* takes NULL */

/* Adds a page of any kind, and takes it over. Returns whether there is room for more. */
bool glance_add(struct glance *glance, Dlp__Reply *reply);

/* Asks for what is wanted, and waits for it. On success to be freed; else an error has been printed.
 * Returns an exit code. */
int glance_ask(struct control *control, const bool wanted[N_QUESTIONS], struct glance **ret_glance);

/* The same for the jobs that the caller may see. */
int glance_ask_jobs(struct control *control, struct glance **ret_glance);

/* The job that `job` is a later or earlier look at: of the same name and user. Returns false if there is none. */
bool glance_find(const struct glance *glance, const Dlp__Job *job, struct look *ret_look);

/* The same of a later look, if no counter has gone back, as it would if another job has the name now. `hint` is where
 * it probably stands. NULL: it was not there. */
const Dlp__Job *glance_find_job(const struct glance *glance, const Dlp__Job *job, size_t hint);

/* The rank of an earlier look that is `rank` of a later one. NULL: it was not there, or has attached again since. */
const Dlp__Rank *glance_find_rank(const Dlp__Job *earlier, const Dlp__Rank *rank, size_t hint);
