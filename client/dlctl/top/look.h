/* top/look.h: what the daemon has said at one moment: a look. Rates come from two looks (rates.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/frame.h"

#define LOOK_JOBS_MAX     1024u /* of more, the first ones are shown */
#define LOOK_DATASETS_MAX 4096u

/* All pointers lead into the replies. Tests make looks of messages of their own. */
struct look {
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
struct look *look_new(void);
void look_free(struct look *look); /* takes NULL */

/* Adds a page of any of the three kinds, and takes it over. */
void look_add(struct look *look, Dlp__Reply *reply);

/* The job of an earlier look that is `job` of a later one: the same name and user, and no counter has gone back, as it
 * would if another job has the name now. `hint` is where it probably stands. NULL: it was not there. */
const Dlp__Job *look_find_job(const struct look *look, const Dlp__Job *job, size_t hint);

/* The rank of an earlier look that is `rank` of a later one. NULL: it was not there, or has attached again since. */
const Dlp__Rank *job_find_rank(const Dlp__Job *earlier, const Dlp__Rank *rank, size_t hint);
