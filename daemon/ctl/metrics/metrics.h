/* ctl/metrics/metrics.h: all numbers at one moment, and their text.
 *
 * metrics_collect() copies them while the main thread holds still; metrics_write() is a pure function of what was
 * copied. The text is Prometheus' exposition format 0.0.4. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/ctl/number_values.h"

#define METRIC_LABEL_MAX 512u /* bytes of a label's value: of a longer one the beginning and a digest */

struct session;

/* In each of these the labels come first: metrics_write() counts on it. */
struct dataset_metrics {
        char *labels; /* dataset="photos" */
        struct dataset_numbers numbers;
        struct staging_numbers staging;
};

struct job_metrics {
        char *labels; /* dataset="photos",job="train",user="ann" */
        struct job_numbers numbers;
        struct stage_total stages[N_STAGES];
        const struct job *job; /* used while collecting; may be gone later */
};

struct rank_metrics {
        char *labels; /* those of the job, and rank="3" */
        struct rank_numbers numbers;
        struct dlp_meter meter;
};

struct metrics {
        const char *version;
        struct process_numbers process;
        struct node_numbers node;
        struct dataset_metrics *datasets;
        struct job_metrics *jobs;
        struct rank_metrics *ranks;
        size_t n_datasets, n_jobs, n_ranks;
};

/* What `viewer` may see, as dlctl's lists have it; NULL: everything. Returns 0 or -ENOMEM; the metrics are to be freed
 * in any case. Main thread. */
int metrics_collect(struct server *server, const struct session *viewer, struct metrics *ret_metrics);
void metrics_free(struct metrics *metrics);

/* The text, the caller's (free), of *ret_n bytes. Returns 0 or -ENOMEM. */
int metrics_write(const struct metrics *metrics, char **ret_text, size_t *ret_n);

/* A label with its value, quoted and escaped: what is not UTF-8 becomes \xNN, since one such byte would spoil the whole
 * scrape, and so does what is not printable, since people read it in terminals and dashboards. `before` (may be NULL)
 * is copied in front, with a comma. The caller's (free); NULL: no memory. */
char *metrics_label(const char *before, const char *name, const char *value);
