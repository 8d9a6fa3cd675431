#include "client/dlctl/top/look/glance.h"

#include <stdlib.h>
#include <string.h>

#include "client/dlctl/top/room.h"

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
        free(glance);
}

/* A list of pointers with n more. */
static void *glance_longer(void *list, size_t n_old, size_t n_more) {
        return n_more > 0 ? room_or_end(realloc(list, (n_old + n_more) * sizeof(void *))) : list;
}

void glance_add(struct glance *glance, Dlp__Reply *reply) {
        glance->replies = glance_longer(glance->replies, glance->n_replies, 1);
        glance->replies[glance->n_replies++] = reply;
        if (reply->body_case == DLP__REPLY__BODY_STATUS) {
                glance->status = reply->status;
        } else if (reply->body_case == DLP__REPLY__BODY_JOBS) {
                glance->jobs = glance_longer(glance->jobs, glance->n_jobs, reply->jobs->n_jobs);
                for (size_t i = 0; i < reply->jobs->n_jobs; i++)
                        glance->jobs[glance->n_jobs++] = reply->jobs->jobs[i];
                if (!glance->node)
                        glance->node = reply->jobs->node;
        } else if (reply->body_case == DLP__REPLY__BODY_DATASETS) {
                glance->datasets = glance_longer(glance->datasets, glance->n_datasets, reply->datasets->n_datasets);
                for (size_t i = 0; i < reply->datasets->n_datasets; i++)
                        glance->datasets[glance->n_datasets++] = reply->datasets->datasets[i];
        }
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

const Dlp__Job *glance_find_job(const struct glance *glance, const Dlp__Job *job, size_t hint) {
        if (hint < glance->n_jobs && is_same_job(glance->jobs[hint], job))
                return glance->jobs[hint];
        for (size_t i = 0; i < glance->n_jobs; i++)
                if (is_same_job(glance->jobs[i], job))
                        return glance->jobs[i];
        return NULL;
}

static bool is_same_rank(const Dlp__Rank *earlier, const Dlp__Rank *rank) {
        return earlier->rank == rank->rank && earlier->pid == rank->pid && earlier->age_ns <= rank->age_ns &&
               earlier->n_samples <= rank->n_samples && earlier->n_batches <= rank->n_batches;
}

const Dlp__Rank *job_find_rank(const Dlp__Job *earlier, const Dlp__Rank *rank, size_t hint) {
        if (hint < earlier->n_ranks && is_same_rank(earlier->ranks[hint], rank))
                return earlier->ranks[hint];
        for (size_t i = 0; i < earlier->n_ranks; i++)
                if (is_same_rank(earlier->ranks[i], rank))
                        return earlier->ranks[i];
        return NULL;
}
