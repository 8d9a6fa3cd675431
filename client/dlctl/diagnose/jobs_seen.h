/* dlctl/diagnose/jobs_seen.h: the jobs that the caller may see, as the daemon describes them at one moment. */
#pragma once

#include "client/dlctl/control.h"
#include "client/lib/diagnose/verdict.h"

struct jobs_seen {
        Dlp__Reply **pages;
        size_t n_pages;
};

/* Asks for all of them. On success to be freed with jobs_seen_free(); else an error has been printed. Returns an exit
 * code. */
int jobs_seen_ask(struct control *control, struct jobs_seen *ret_jobs);
/* Takes over a reply with some of them. The same. */
int jobs_seen_add(struct jobs_seen *jobs, Dlp__Reply *page);
void jobs_seen_free(struct jobs_seen *jobs);

size_t jobs_seen_count(const struct jobs_seen *jobs);

/* Job `idx` of those. It belongs to `jobs`. */
struct look jobs_seen_at(const struct jobs_seen *jobs, size_t idx);

/* The job that `job` is a later or earlier look at: of the same name and user. Returns false if there is none. */
bool jobs_seen_find(const struct jobs_seen *jobs, const Dlp__Job *job, struct look *ret_look);
