#include "client/dlctl/top/shown.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/dlctl/room.h"

/* clang-format off */
const struct top_column TOP_COLUMNS[N_COLUMNS] = {
        [COLUMN_JOB]     = { "job", "JOB", NULL, 8, 32, 0, false, true },
        [COLUMN_USER]    = { "user", "USER", NULL, 6, 12, 11, false, true },
        [COLUMN_DATASET] = { "dataset", "DATASET", NULL, 8, 40, 5, false, true },
        [COLUMN_RANKS]   = { "ranks", "RANKS", "on this node, of all ranks of the job",
                             5, 9, 7, true, false, RATE_n_ranks },
        [COLUMN_SAMPLES] = { "samples", "SAMPLES/S", "decoded or copied a second",
                             9, 9, 2, true, true, RATE_samples, rate_text },
        [COLUMN_WAIT]    = { "wait", "WAIT%", "share of its time that the trainer waited for batches; of a job: of the rank that waits most",
                             5, 5, 1, true, true, RATE_wait, percent_text, true },
        [COLUMN_READY]   = { "ready", "READY%", "share of the time in which a batch was ready; of a job: of the rank that has the least",
                             6, 6, 6, true, true, RATE_ready, percent_text, true },
        [COLUMN_SLOTS]   = { "slots", "SLOTS", "batches that are ready now, of the slots of all rings",
                             7, 7, 8, true, true, RATE_ready_slots },
        [COLUMN_WORKERS] = { "workers", "WORK%", "of the time of one worker",
                             5, 5, 4, true, false, RATE_workers, workers_text, true },
        [COLUMN_READ]    = { "read", "READ", "bytes read a second",
                             12, 12, 10, true, false, RATE_bytes, byte_rate_text },
        [COLUMN_RING]    = { "ring", "MEMORY", "shared memory of the rings",
                             10, 10, 12, true, true, RATE_ring_bytes, bytes_text },
        [COLUMN_DAMAGED] = { "damaged", "DAMAGED", "damaged samples that the job met",
                             7, 7, 9, true, false, RATE_n_errors, number_text },
        [COLUMN_STATUS]  = { NULL, "STATUS", NULL, 14, 200, 3, false, true },
};
/* clang-format on */

int column_from_name(const char *name, enum column *ret_column) {
        for (unsigned i = 0; i < N_COLUMNS; i++)
                if (TOP_COLUMNS[i].name && strcmp(TOP_COLUMNS[i].name, name) == 0) {
                        *ret_column = (enum column)i;
                        return 0;
                }
        return -EINVAL;
}

/* ---- keys ---------------------------------------------------------------------------------------------------- */

/* FNV-1a. */
static uint64_t shown_digest(uint64_t begin, const char *text) {
        for (; *text; text++)
                begin = (begin ^ (unsigned char)*text) * 0x100000001b3u;
        return (begin ^ 0xff) * 0x100000001b3u;
}

struct item_key key_of(const struct job_rates *job, const struct rank_rates *rank) {
        uint64_t of_job = shown_digest(shown_digest(0xcbf29ce484222325u, job->job->user), job->job->name);

        return (struct item_key){ of_job ? of_job : 1, rank ? rank->rank->rank + 1 : 0 };
}

bool key_equal(struct item_key a, struct item_key b) {
        return a.job == b.job && a.rank == b.rank;
}

/* ---- sequence ------------------------------------------------------------------------------------------------ */

static double shown_number_of(const struct job_rates *job, enum column column) {
        double rate = job->rates[TOP_COLUMNS[column].rate];

        return TOP_COLUMNS[column].is_rounded ? round(rate * 100) : rate;
}

static int compare_column(const struct job_rates *a, const struct job_rates *b, enum column column) {
        double first, second;

        switch (column) {
        case COLUMN_JOB:
                return strcmp(a->job->name, b->job->name);
        case COLUMN_USER:
                return strcmp(a->job->user, b->job->user);
        case COLUMN_DATASET:
                return strcmp(a->job->dataset, b->job->dataset);
        default:
                first = shown_number_of(a, column);
                second = shown_number_of(b, column);
                return first < second ? 1 : first > second ? -1 : 0;
        }
}

static int compare_jobs(const void *a, const void *b, void *arg) {
        const struct job_rates *first = *(const struct job_rates *const *)a,
                               *second = *(const struct job_rates *const *)b;
        const struct sorting *sorting = arg;
        int order = compare_column(first, second, sorting->column);

        if (order != 0)
                return sorting->inverted ? -order : order;
        order = strcmp(first->job->name, second->job->name);
        return order != 0 ? order : first < second ? -1 : first > second; /* as the daemon lists them */
}

static int compare_ranks(const void *a, const void *b) {
        const struct rank_rates *first = *(const struct rank_rates *const *)a,
                                *second = *(const struct rank_rates *const *)b;

        return first->rank->rank < second->rank->rank ? -1 : first->rank->rank > second->rank->rank;
}

/* ---- items --------------------------------------------------------------------------------------------------- */

static bool shown_is_wanted(const Dlp__Job *job, const char *filter) {
        return !*filter || strcasestr(job->name, filter) || strcasestr(job->user, filter) ||
               strcasestr(job->dataset, filter);
}

bool item_has(const struct item *item, const char *text) {
        return shown_is_wanted(item->job->job, text);
}

/* `ranks` has room for the job's. */
static void add_ranks(struct items *items, const struct job_rates *job, const struct rank_rates **ranks) {
        for (size_t i = 0; i < job->job->n_ranks; i++)
                ranks[i] = &job->ranks[i];
        qsort(ranks, job->job->n_ranks, sizeof(const struct rank_rates *), compare_ranks);
        for (size_t i = 0; i < job->job->n_ranks; i++)
                items->items[items->n++] = (struct item){ job, ranks[i], i + 1 == job->job->n_ranks,
                                                          key_of(job, ranks[i]) };
}

void items_make(const struct rates *rates, struct sorting sorting, const char *filter, expands_fn *expands,
                const void *arg, struct items *ret_items) {
        const struct job_rates **jobs = room_for(rates->n_jobs, sizeof(const struct job_rates *));
        const struct rank_rates **ranks;
        size_t n_jobs = 0, n_ranks = 0;

        for (size_t i = 0; i < rates->n_jobs; i++)
                if (shown_is_wanted(rates->jobs[i].job, filter)) {
                        jobs[n_jobs++] = &rates->jobs[i];
                        n_ranks += rates->jobs[i].job->n_ranks;
                }
        qsort_r(jobs, n_jobs, sizeof(const struct job_rates *), compare_jobs, &sorting);
        *ret_items = (struct items){ .items = room_for(n_jobs + n_ranks, sizeof(struct item)), .n_jobs = n_jobs };
        ranks = room_for(n_ranks, sizeof(const struct rank_rates *));
        for (size_t i = 0; i < n_jobs; i++) {
                struct item item = { jobs[i], NULL, false, key_of(jobs[i], NULL) };

                ret_items->items[ret_items->n++] = item;
                if (expands(arg, item.key))
                        add_ranks(ret_items, jobs[i], ranks);
        }
        free(ranks);
        free(jobs);
}

void items_free(struct items *items) {
        free(items->items);
        *items = (struct items){ .n = 0 };
}
