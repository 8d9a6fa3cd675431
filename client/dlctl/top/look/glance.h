/* top/look/glance.h: what the daemon has said at one moment. Rates come from two such looks (rates.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/frame.h"

#define GLANCE_JOBS_MAX     1024u /* of more, the first ones are shown */
#define GLANCE_DATASETS_MAX 4096u

/* All pointers lead into the replies. Tests make glances of messages of their own. */
struct glance {
        const Dlp__StatusReply *status;
        const Dlp__Node *node; /* NULL: an old daemon does not say */
        const Dlp__Job **jobs;
        size_t n_jobs;
        const Dlp__Dataset **datasets;
        size_t n_datasets;

        Dlp__Reply **replies; /* that it owns */
        size_t n_replies;
};

/* A look without anything. Ends the program if there is no memory. */
struct glance *glance_new(void);
void glance_free(struct glance *glance); /* takes NULL */

/* Adds a page of any of the three kinds, and takes it over. */
void glance_add(struct glance *glance, Dlp__Reply *reply);

/* The job of an earlier look that is `job` of a later one: the same name and user, and no counter has gone back, as it
 * would if another job has the name now. `hint` is where it probably stands. NULL: it was not there. */
const Dlp__Job *glance_find_job(const struct glance *glance, const Dlp__Job *job, size_t hint);

/* The rank of an earlier look that is `rank` of a later one. NULL: it was not there, or has attached again since. */
const Dlp__Rank *job_find_rank(const Dlp__Job *earlier, const Dlp__Rank *rank, size_t hint);
