#include "client/dlctl/glance.h"

#include <stdlib.h>
#include <string.h>

#include "client/dlctl/command.h"
#include "client/dlctl/room.h"

struct glance *glance_new(void) {
        return room_for(1, sizeof(struct glance));
}

void glance_free(struct glance *glance) {
        if (!glance)
                return;
        for (size_t i = 0; i < glance->n_replies; i++)
                dlp__reply__free_unpacked(glance->replies[i], NULL);
        free(glance->replies);
        free(glance->jobs);
        free(glance->datasets);
        free(glance->errors);
        free(glance);
}

/* A list with n more. */
static void *longer(void *list, size_t n_old, size_t n_more, size_t size) {
        return n_more > 0 ? room_or_end(realloc(list, (n_old + n_more) * size)) : list;
}

bool glance_add(struct glance *glance, Dlp__Reply *reply) {
        glance->replies = longer(glance->replies, glance->n_replies, 1, sizeof(*glance->replies));
        glance->replies[glance->n_replies++] = reply;
        if (reply->body_case == DLP__REPLY__BODY_STATUS) {
                glance->status = reply->status;
        } else if (reply->body_case == DLP__REPLY__BODY_JOBS) {
                glance->jobs = longer(glance->jobs, glance->n_jobs, reply->jobs->n_jobs, sizeof(*glance->jobs));
                for (size_t i = 0; i < reply->jobs->n_jobs; i++)
                        glance->jobs[glance->n_jobs++] = (struct look){ reply->jobs->jobs[i], reply->jobs->node };
                if (!glance->node)
                        glance->node = reply->jobs->node;
                return glance->n_jobs < GLANCE_JOBS_MAX;
        } else if (reply->body_case == DLP__REPLY__BODY_DATASETS) {
                glance->datasets = longer(glance->datasets, glance->n_datasets, reply->datasets->n_datasets,
                                          sizeof(*glance->datasets));
                for (size_t i = 0; i < reply->datasets->n_datasets; i++)
                        glance->datasets[glance->n_datasets++] = reply->datasets->datasets[i];
                return glance->n_datasets < GLANCE_DATASETS_MAX;
        } else if (reply->body_case == DLP__REPLY__BODY_ERRORS) {
                glance->errors = longer(glance->errors, glance->n_errors, reply->errors->n_errors,
                                        sizeof(*glance->errors));
                for (size_t i = 0; i < reply->errors->n_errors; i++)
                        glance->errors[glance->n_errors++] = reply->errors->errors[i];
                glance->has_more_errors = glance->n_errors >= GLANCE_ERRORS_MAX && reply->errors->next > 0;
                return glance->n_errors < GLANCE_ERRORS_MAX;
        }
        return true;
}

static bool glance_take(void *glance, Dlp__Reply *reply) {
        return glance_add(glance, reply);
}

int glance_ask(struct control *control, const bool wanted[N_QUESTIONS], struct glance **ret_glance) {
        struct glance *glance = glance_new();
        int r = EXIT_DONE;

        for (enum question question = ASK_STATUS; question < N_QUESTIONS && r == EXIT_DONE; question++)
                if (wanted[question])
                        r = question_ask(control, question, "", glance_take, glance);
        if (r == EXIT_DONE)
                *ret_glance = glance;
        else
                glance_free(glance);
        return r;
}

int glance_ask_jobs(struct control *control, struct glance **ret_glance) {
        return glance_ask(control, (const bool[N_QUESTIONS]){ [ASK_JOBS] = true }, ret_glance);
}

/* ---- the same thing in two glances ----------------------------------------------------------------------------- */

/* A job whose ranks are all away has no user. */
static bool is_same_user(const char *a, const char *b) {
        return !*a || !*b || strcmp(a, b) == 0;
}

static bool is_same_job(const Dlp__Job *earlier, const Dlp__Job *job) {
        return strcmp(earlier->name, job->name) == 0 && is_same_user(earlier->user, job->user) &&
               earlier->n_samples <= job->n_samples && earlier->worker_ns <= job->worker_ns &&
               earlier->n_bytes_read <= job->n_bytes_read;
}

bool glance_find(const struct glance *glance, const Dlp__Job *job, struct look *ret_look) {
        for (size_t i = 0; i < glance->n_jobs; i++)
                if (strcmp(glance->jobs[i].job->name, job->name) == 0 &&
                    strcmp(glance->jobs[i].job->user, job->user) == 0) {
                        *ret_look = glance->jobs[i];
                        return true;
                }
        return false;
}

const Dlp__Job *glance_find_job(const struct glance *glance, const Dlp__Job *job, size_t hint) {
        if (hint < glance->n_jobs && is_same_job(glance->jobs[hint].job, job))
                return glance->jobs[hint].job;
        for (size_t i = 0; i < glance->n_jobs; i++)
                if (is_same_job(glance->jobs[i].job, job))
                        return glance->jobs[i].job;
        return NULL;
}

static bool is_same_rank(const Dlp__Rank *earlier, const Dlp__Rank *rank) {
        return earlier->rank == rank->rank && earlier->pid == rank->pid && earlier->age_ns <= rank->age_ns &&
               earlier->n_samples <= rank->n_samples && earlier->n_batches <= rank->n_batches;
}

const Dlp__Rank *glance_find_rank(const Dlp__Job *earlier, const Dlp__Rank *rank, size_t hint) {
        if (hint < earlier->n_ranks && is_same_rank(earlier->ranks[hint], rank))
                return earlier->ranks[hint];
        for (size_t i = 0; i < earlier->n_ranks; i++)
                if (is_same_rank(earlier->ranks[i], rank))
                        return earlier->ranks[i];
        return NULL;
}
