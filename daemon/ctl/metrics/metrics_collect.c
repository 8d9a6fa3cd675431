#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/ctl/metrics/metrics.h"
#include "daemon/ctl/users/access.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/ring.h"

#define RANK_MAX 16u /* bytes of a number as text */

static int collect_datasets(struct server *server, const struct session *viewer, struct metrics *metrics) {
        struct catalog_entry *entry;
        size_t n = 0;

        TAILQ_FOREACH(entry, &server->options.catalog->entries, entry)
                n++;
        metrics->datasets = calloc(n ? n : 1, sizeof(*metrics->datasets));
        if (!metrics->datasets)
                return -ENOMEM;
        TAILQ_FOREACH(entry, &server->options.catalog->entries, entry) {
                struct dataset_metrics *dataset = &metrics->datasets[metrics->n_datasets];

                if (viewer && !access_dataset(viewer, entry))
                        continue;
                dataset->labels = metrics_label(NULL, "dataset", entry->name);
                if (!dataset->labels)
                        return -ENOMEM;
                metrics->n_datasets++;
                number_values_of_dataset(entry, &dataset->numbers);
                number_values_of_staging(entry, &dataset->staging);
        }
        return 0;
}

/* ---- jobs ------------------------------------------------------------------------------------------------------ */

/* Two users may have jobs of one name, so the user is one of them. */
static char *job_labels(struct server *server, const struct job *job) {
        _cleanup_(freep) char *dataset = metrics_label(NULL, "dataset", job->terms.dataset);
        _cleanup_(freep) char *name = dataset ? metrics_label(dataset, "job", job->name) : NULL;
        char user[USER_NAME_SIZE];

        return name ? metrics_label(name, "user", user_name(server->names, job->uid, user)) : NULL;
}

static int collect_jobs(struct server *server, const struct session *viewer, struct metrics *metrics) {
        struct job *job;
        size_t n = 0;

        LIST_FOREACH(job, &server->jobs, entry)
                n++;
        metrics->jobs = calloc(n ? n : 1, sizeof(*metrics->jobs));
        if (!metrics->jobs)
                return -ENOMEM;
        LIST_FOREACH(job, &server->jobs, entry) {
                struct job_metrics *at = &metrics->jobs[metrics->n_jobs];

                if (viewer && !access_job(viewer, job))
                        continue;
                at->labels = job_labels(server, job);
                if (!at->labels)
                        return -ENOMEM;
                metrics->n_jobs++;
                at->job = job;
                number_values_of_job(job, &at->numbers, at->stages);
        }
        return 0;
}

/* ---- ranks ----------------------------------------------------------------------------------------------------- */

static struct job_metrics *collect_job_of(const struct metrics *metrics, const struct job *job) {
        for (size_t i = 0; i < metrics->n_jobs; i++)
                if (metrics->jobs[i].job == job)
                        return &metrics->jobs[i];
        return NULL;
}

static int collect_ranks(struct server *server, struct metrics *metrics) {
        uint64_t now_ns = clock_now_ns();
        struct session *session;

        metrics->ranks = calloc(server->n_sessions ? server->n_sessions : 1, sizeof(*metrics->ranks));
        if (!metrics->ranks)
                return -ENOMEM;
        TAILQ_FOREACH(session, &server->sessions, entry) {
                struct job_metrics *job = session->feed ? collect_job_of(metrics, session->job) : NULL;
                struct rank_metrics *rank = &metrics->ranks[metrics->n_ranks];
                char number[RANK_MAX];
                struct dlp_wait wait;

                if (!job)
                        continue;
                snprintf(number, sizeof(number), "%u", session->feed->rank);
                rank->labels = metrics_label(job->labels, "rank", number);
                if (!rank->labels)
                        return -ENOMEM;
                metrics->n_ranks++;
                job->numbers.n_ranks++;
                job->numbers.is_on_hold |= dlp_ring_waits(session->feed->ring->control, &wait);
                number_values_of_rank(session->feed, now_ns, &rank->numbers, &rank->meter);
        }
        return 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */

int metrics_collect(struct server *server, const struct session *viewer, struct metrics *ret_metrics) {
        int r;

        *ret_metrics = (struct metrics){ .version = server->options.version };
        number_values_of_process(server, &ret_metrics->process);
        number_values_of_node(server, &ret_metrics->node);
        r = collect_datasets(server, viewer, ret_metrics);
        if (r == 0)
                r = collect_jobs(server, viewer, ret_metrics);
        return r == 0 ? collect_ranks(server, ret_metrics) : r;
}

void metrics_free(struct metrics *metrics) {
        for (size_t i = 0; i < metrics->n_datasets; i++)
                free(metrics->datasets[i].labels);
        for (size_t i = 0; i < metrics->n_jobs; i++)
                free(metrics->jobs[i].labels);
        for (size_t i = 0; i < metrics->n_ranks; i++)
                free(metrics->ranks[i].labels);
        free(metrics->datasets);
        free(metrics->jobs);
        free(metrics->ranks);
        *metrics = (struct metrics){ .version = NULL };
}
