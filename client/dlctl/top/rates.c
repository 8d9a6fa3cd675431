#include "client/dlctl/top/rates.h"

#include <stdlib.h>
#include <string.h>

#include "client/dlctl/room.h"

/* Counters of a client are its claims: one may go back. */
static double rates_less(uint64_t now, uint64_t earlier) {
        return now > earlier ? (double)(now - earlier) : 0;
}

static double rates_share_of(double part, double whole) {
        return whole <= 0 ? UNKNOWN : part >= whole ? 1 : part / whole;
}

static double each(double sum, double n) {
        return n > 0 ? sum / n : UNKNOWN;
}

static void rates_forget(double rates[N_RATES]) {
        for (size_t i = 0; i < N_RATES; i++)
                rates[i] = UNKNOWN;
}

/* ---- ranks --------------------------------------------------------------------------------------------------- */

static void rate_rank(const Dlp__Rank *rank, const Dlp__Rank *earlier, struct rank_rates *rates) {
        double ns = earlier ? rates_less(rank->age_ns, earlier->age_ns) : 0, wait, busy;
        const Dlp__Waiting *now = rank->waiting, *then = earlier ? earlier->waiting : NULL;

        rates->rank = rank;
        rates_forget(rates->rates);
        rates->n_ready = rank->n_ready;
        rates->n_slots = rank->n_slots;
        rates->ring_bytes = (double)rank->ring_bytes;
        rates->waiting = now ? (double)now->waiting_ns / 1e9 : 0;
        if (ns <= 0)
                return;
        rates->samples = rates_less(rank->n_samples, earlier->n_samples) / ns * 1e9;
        rates->batches = rates_less(rank->n_batches, earlier->n_batches) / ns * 1e9;
        if (!now || !then)
                return;
        wait = now->n_batches > 0 || now->wait_ns > 0
                       ? rates_less(now->wait_ns, then->wait_ns)
                       : rates_less(now->waiting_ns, then->waiting_ns); /* for the first one */
        busy = rates_less(now->busy_ns, then->busy_ns);
        rates->batches = rates_less(now->n_batches, then->n_batches) / ns * 1e9;
        rates->wait = rates_share_of(wait, wait + busy);
        rates->ready = 1 - rates_share_of(rates_less(now->empty_ns, then->empty_ns), ns); /* ns > 0 */
        rates->per_step = each(busy / 1e9, rates_less(now->n_batches, then->n_batches));
}

/* ---- stages -------------------------------------------------------------------------------------------------- */

static const Dlp__Stage *find_stage(const Dlp__Job *job, const char *name) {
        for (size_t i = 0; i < job->n_stages; i++)
                if (strcmp(job->stages[i]->name, name) == 0)
                        return job->stages[i];
        return NULL;
}

static int compare_stages(const void *a, const void *b) {
        const struct stage_rates *first = a, *second = b;

        return first->workers < second->workers   ? 1
               : first->workers > second->workers ? -1
                                                  : strcmp(first->name, second->name);
}

static void rate_stages(struct job_rates *rates, double ns) {
        double n_samples = rates_less(rates->job->n_samples, rates->earlier->n_samples), sum = 0;

        for (size_t i = 0; i < rates->job->n_stages; i++) {
                const Dlp__Stage *stage = rates->job->stages[i], *then = find_stage(rates->earlier, stage->name);
                double taken = rates_less(stage->taken_ns, then ? then->taken_ns : 0);

                if (taken <= 0)
                        continue;
                rates->stages[rates->n_stages++] = (struct stage_rates){
                        .name = stage->name,
                        .workers = taken / ns,
                        .per_sample = each(taken / 1e9, n_samples),
                };
                sum += taken / ns;
        }
        for (size_t i = 0; i < rates->n_stages; i++)
                rates->stages[i].share = rates_share_of(rates->stages[i].workers, sum);
        qsort(rates->stages, rates->n_stages, sizeof(*rates->stages), compare_stages);
}

/* ---- jobs ---------------------------------------------------------------------------------------------------- */

/* The job, and the node at that moment; no job: it was not there. */
static struct look earliest(const struct glance *const *glances, size_t n_glances, const Dlp__Job *job, size_t hint) {
        for (size_t i = 0; i + 1 < n_glances; i++) {
                const Dlp__Job *found = glance_find_job(glances[i], job, hint);

                if (found && found->now_ns < job->now_ns)
                        return (struct look){ found, glances[i]->node };
        }
        return (struct look){ NULL, NULL };
}

static const Dlp__Rank *earliest_rank(const struct glance *const *glances, size_t n_glances, const Dlp__Job *job,
                                      size_t job_hint, size_t rank_idx) {
        for (size_t i = 0; i + 1 < n_glances; i++) {
                const Dlp__Job *found = glance_find_job(glances[i], job, job_hint);
                const Dlp__Rank *rank = found ? glance_find_rank(found, job->ranks[rank_idx], rank_idx) : NULL;

                if (rank)
                        return rank;
        }
        return NULL;
}

/* What all ranks together say of the job. */
static void sum_ranks(struct job_rates *rates) {
        for (size_t i = 0; i < rates->job->n_ranks; i++) {
                const struct rank_rates *rank = &rates->ranks[i];

                rates->n_ready += rank->n_ready;
                rates->n_slots += rank->n_slots;
                rates->ring_bytes += rank->ring_bytes;
                if (rank->wait > rates->wait)
                        rates->wait = rank->wait;
                if (is_known(rank->ready) && (!is_known(rates->ready) || rank->ready < rates->ready))
                        rates->ready = rank->ready;
        }
        rates->ready_slots = each(rates->n_ready, rates->n_slots);
}

static void rate_job(const Dlp__Job *job, const Dlp__Job *earlier, struct job_rates *rates) {
        double ns = earlier ? rates_less(job->now_ns, earlier->now_ns) : 0;

        rates->job = job;
        rates->earlier = earlier;
        rates->seconds = ns / 1e9;
        rates_forget(rates->rates);
        rates->n_ready = rates->n_slots = rates->ring_bytes = 0;
        rates->n_errors = (double)job->n_errors;
        rates->n_ranks = (double)job->n_ranks;
        sum_ranks(rates);
        if (ns <= 0)
                return;
        rates->samples = rates_less(job->n_samples, earlier->n_samples) / ns * 1e9;
        rates->bytes = rates_less(job->n_bytes_read, earlier->n_bytes_read) / ns * 1e9;
        rates->workers = rates_less(job->worker_ns, earlier->worker_ns) / ns;
        rates->read_seconds = each(rates_less(job->read_ns, earlier->read_ns) / 1e9,
                                   rates_less(job->n_reads, earlier->n_reads));
        rate_stages(rates, ns);
}

/* ---- the node ------------------------------------------------------------------------------------------------ */

static const Dlp__Node *earliest_node(const struct glance *const *glances, size_t n_glances, const Dlp__Node *node) {
        for (size_t i = 0; i + 1 < n_glances; i++)
                if (glances[i]->node && glances[i]->node->now_ns < node->now_ns &&
                    glances[i]->node->worker_ns <= node->worker_ns && glances[i]->node->n_samples <= node->n_samples)
                        return glances[i]->node;
        return NULL;
}

static void rate_node(const struct glance *const *glances, size_t n_glances, struct node_rates *rates) {
        const struct glance *now = glances[n_glances - 1];
        const Dlp__Node *node = now->node, *then = node ? earliest_node(glances, n_glances, node) : NULL;
        double ns = then ? rates_less(node->now_ns, then->now_ns) : 0;

        rates->status = now->status;
        rates->node = node;
        rates_forget(rates->rates);
        if (ns <= 0)
                return;
        rates->samples = rates_less(node->n_samples, then->n_samples) / ns * 1e9;
        rates->bytes = rates_less(node->n_bytes_read, then->n_bytes_read) / ns * 1e9;
        rates->workers = rates_less(node->worker_ns, then->worker_ns) / ns;
        rates->cpus = rates_less(node->worker_cpu_ns, then->worker_cpu_ns) / ns;
        rates->read_seconds = each(rates_less(node->read_ns, then->read_ns) / 1e9,
                                   rates_less(node->n_reads, then->n_reads));
        if (node->has_storage_bytes && then->has_storage_bytes)
                rates->storage = rates_less(node->storage_bytes, then->storage_bytes) / ns * 1e9;
}

/* ---- all of it ----------------------------------------------------------------------------------------------- */

void rates_make(const struct glance *const *glances, size_t n_glances, struct rates *ret_rates) {
        const struct glance *now = glances[n_glances - 1];
        size_t n_ranks = 0, n_stages = 0;

        for (size_t i = 0; i < now->n_jobs; i++) {
                n_ranks += now->jobs[i].job->n_ranks;
                n_stages += now->jobs[i].job->n_stages;
        }
        *ret_rates = (struct rates){
                .jobs = room_for(now->n_jobs, sizeof(struct job_rates)),
                .n_jobs = now->n_jobs,
                .ranks = room_for(n_ranks, sizeof(struct rank_rates)),
                .stages = room_for(n_stages, sizeof(struct stage_rates)),
                .verdicts = room_for(now->n_jobs, sizeof(struct verdict)),
                .now = now,
        };
        rate_node(glances, n_glances, &ret_rates->node);
        n_ranks = n_stages = 0;
        for (size_t i = 0; i < now->n_jobs; i++) {
                const Dlp__Job *job = now->jobs[i].job;
                struct job_rates *rates = &ret_rates->jobs[i];
                struct look then = earliest(glances, n_glances, job, i), look = { job, now->node };

                rates->ranks = ret_rates->ranks + n_ranks;
                rates->stages = ret_rates->stages + n_stages;
                for (size_t k = 0; k < job->n_ranks; k++)
                        rate_rank(job->ranks[k], earliest_rank(glances, n_glances, job, i, k), &rates->ranks[k]);
                rate_job(job, then.job, rates);
                rates->verdict = &ret_rates->verdicts[i];
                verdict_make(then.job ? &then : NULL, &look, rates->verdict);
                if (rates->verdict->tokens > 0)
                        rates->tokens = rates->verdict->tokens;
                n_ranks += job->n_ranks;
                n_stages += job->n_stages;
        }
}

void rates_free(struct rates *rates) {
        free(rates->jobs);
        free(rates->ranks);
        free(rates->stages);
        free(rates->verdicts);
        *rates = (struct rates){ .n_jobs = 0 };
}
