#include "client/lib/diagnose/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/diagnose/origin_read.h"
#include "proto/wait_reason.h"

#define BATCHES_MIN     5u /* of the rank that took most: fewer say nothing about a mean */
#define SECONDS_MIN     1.0
#define LAG_SHARE       0.8 /* of what the others take: a rank that takes less is slow */
#define USED_SHARE      0.6 /* what is used less than this on average does not hold up anything */
#define STEP_SHARE      0.4 /* of the workers' time: a step that takes more is heavy */
#define IN_STEP         2u /* steps between the first rank and the last one, where each waits for the others in every step */
#define OTHERS_MIN      0.001
#define FETCH_SHARE     0.5  /* of the time of reads: more is the origin's */
#define SATURATED_SHARE 0.85 /* workers lose the rest between samples */

/* ---- differences --------------------------------------------------------------------------------------------- */

/* A counter that is smaller than before has begun anew. */
static double more(uint64_t now, uint64_t before) {
        return (double)(now >= before ? now - before : now);
}

static double verdict_seconds(double ns) {
        return ns / 1e9;
}

static double verdict_share_of(double part, double whole) {
        if (!(whole > 0) || !(part > 0))
                return 0;
        return part < whole ? part / whole : 1;
}

static double verdict_smaller(double a, double b) {
        return a < b ? a : b;
}

static double verdict_larger(double a, double b) {
        return a > b ? a : b;
}

/* The smallest supply; 0 does not limit. */
static double verdict_least(double a, double b) {
        return a <= 0 ? b : b <= 0 ? a : verdict_smaller(a, b);
}

/* What lies between the looks, in seconds and numbers. */
struct between {
        double seconds;
        double n_samples, n_tokens, n_reads, n_bytes;
        double reading, fetching, queued, working; /* seconds, summed over samples */
        double node_working, node_cpu, node_bytes, node_storage;
        double node_under_way; /* seconds, summed over the samples of all jobs */
        bool has_node;         /* the node's numbers are of this time */
};

static double stage_seconds(const Dlp__Job *before, const Dlp__Stage *stage) {
        for (size_t i = 0; before && i < before->n_stages; i++)
                if (strcmp(before->stages[i]->name, stage->name) == 0)
                        return verdict_seconds(more(stage->taken_ns, before->stages[i]->taken_ns));
        return verdict_seconds((double)stage->taken_ns);
}

static double oldest_rank(const Dlp__Job *job) {
        uint64_t age_ns = 0;

        for (size_t i = 0; i < job->n_ranks; i++)
                if (job->ranks[i]->age_ns > age_ns)
                        age_ns = job->ranks[i]->age_ns;
        return verdict_seconds((double)age_ns);
}

static void compare_nodes(const struct look *before, const struct look *now, struct between *b) {
        const Dlp__Node *old = before ? before->node : NULL, *node = now->node;

        b->has_node = old && node && node->now_ns > old->now_ns && node->worker_ns >= old->worker_ns;
        if (!b->has_node)
                return;
        b->node_working = verdict_seconds(more(node->worker_ns, old->worker_ns));
        b->node_cpu = verdict_seconds(more(node->worker_cpu_ns, old->worker_cpu_ns));
        b->node_bytes = more(node->n_bytes_read, old->n_bytes_read);
        b->node_storage = node->has_storage_bytes ? more(node->storage_bytes, old->storage_bytes) : -1;
        b->node_under_way = verdict_seconds(more(node->read_ns, old->read_ns) + more(node->queued_ns, old->queued_ns)) +
                            b->node_working;
}

static void verdict_compare(const struct look *before, const struct look *now, struct between *b) {
        static const Dlp__Job NOTHING = DLP__JOB__INIT;
        const Dlp__Job *old = before ? before->job : &NOTHING, *job = now->job;
        double stages = 0;

        *b = (struct between){ .node_storage = -1 };
        b->seconds = before && job->now_ns > old->now_ns ? verdict_seconds((double)(job->now_ns - old->now_ns))
                                                         : oldest_rank(job);
        b->n_samples = more(job->n_samples, old->n_samples);
        b->n_tokens = more(job->n_tokens, old->n_tokens);
        b->n_reads = more(job->n_reads, old->n_reads);
        b->n_bytes = more(job->n_bytes_read, old->n_bytes_read);
        b->reading = verdict_seconds(more(job->read_ns, old->read_ns));
        b->fetching = verdict_seconds(more(job->fetch_ns, old->fetch_ns));
        b->queued = verdict_seconds(more(job->queued_ns, old->queued_ns));
        for (size_t i = 0; i < job->n_stages; i++)
                stages += stage_seconds(old, job->stages[i]);
        b->working = verdict_larger(stages, verdict_seconds(more(job->worker_ns, old->worker_ns)));
        compare_nodes(before, now, b);
}

/* ---- ranks --------------------------------------------------------------------------------------------------- */

struct rank_times {
        double waited, busy; /* seconds */
        double n_batches;
        double batch; /* samples in one */
};

static const Dlp__Rank *rank_before(const struct look *before, const Dlp__Rank *rank, double passed) {
        if (!before || verdict_seconds((double)rank->age_ns) < passed) /* it attached again */
                return NULL;
        for (size_t i = 0; i < before->job->n_ranks; i++)
                if (before->job->ranks[i]->rank == rank->rank)
                        return before->job->ranks[i];
        return NULL;
}

/* Samples in a batch: the last one of an epoch is smaller, and damaged ones may be left out. */
static double samples_in_batch(const Dlp__Job *job, const Dlp__Rank *rank) {
        double n_batches = (rank->waiting ? (double)rank->waiting->n_batches : 0) + rank->n_ready;
        double n_samples = (double)rank->n_samples + (double)rank->n_samples_again; /* the client counts both */
        double n = n_batches > 0 ? n_samples / n_batches : 0;

        return n > 0 && n < job->batch_size ? n : job->batch_size;
}

/* Returns whether this rank has waited or has had a batch. The wait for its first one counts as long as it lasts: a
 * function or a disk that never comes back must not look like a job that waits for nothing. */
static bool rank_measure(const struct look *before, const struct look *now, const Dlp__Rank *rank, double passed,
                         struct rank_times *ret_times) {
        static const Dlp__Waiting NOTHING = DLP__WAITING__INIT;
        const Dlp__Rank *old = rank_before(before, rank, passed);
        const Dlp__Waiting *was = old && old->waiting ? old->waiting : &NOTHING, *is = rank->waiting;

        if (!is)
                return false;
        ret_times->waited = verdict_seconds(is->n_batches > 0 ? more(is->wait_ns, was->wait_ns)
                                                              : more(is->waiting_ns, was->waiting_ns));
        ret_times->busy = verdict_seconds(more(is->busy_ns, was->busy_ns));
        ret_times->n_batches = more(is->n_batches, was->n_batches);
        ret_times->batch = samples_in_batch(now->job, rank);
        return ret_times->waited + ret_times->busy > 0;
}

static double wait_share(const struct rank_times *times) {
        return verdict_share_of(times->waited, times->waited + times->busy);
}

static double batch_rate(const struct rank_times *times) {
        return times->n_batches / (times->waited + times->busy);
}

/* What ranks have in common, found in one pass. */
struct ranks_seen {
        uint32_t n;
        double sum_of_shares, rate, most_batches;
        double most_wait, second_wait;
        double least_rate, least_wait, sum_of_rates; /* least_wait: the wait of the one with the least rate */
        int64_t most_waiting, slowest;
        double passed; /* seconds of a rank, on average */
};

static void see_rank(struct ranks_seen *seen, const Dlp__Rank *rank, const struct rank_times *times) {
        double share = wait_share(times), rate = batch_rate(times);

        if (seen->n == 0 || rate < seen->least_rate) {
                seen->least_rate = rate;
                seen->least_wait = share;
                seen->slowest = rank->rank;
        }
        if (seen->n == 0 || share > seen->most_wait) {
                seen->second_wait = seen->n == 0 ? 0 : seen->most_wait;
                seen->most_wait = share;
                seen->most_waiting = rank->rank;
        } else if (share > seen->second_wait) {
                seen->second_wait = share;
        }
        seen->n++;
        seen->sum_of_shares += share;
        seen->sum_of_rates += rate;
        seen->passed += (times->waited + times->busy - seen->passed) / seen->n;
        seen->rate += rate * times->batch;
        seen->most_batches = verdict_larger(seen->most_batches, times->n_batches);
}

static void verdict_see_ranks(const struct look *before, const struct look *now, double passed, struct ranks_seen *seen,
                              struct verdict *v) {
        struct rank_times times;

        *seen = (struct ranks_seen){ .most_waiting = -1, .slowest = -1 };
        for (size_t i = 0; i < now->job->n_ranks; i++) {
                const Dlp__Rank *rank = now->job->ranks[i];

                if (v->n_slots == 0 || rank->n_slots < v->n_slots)
                        v->n_slots = rank->n_slots;
                if (!rank_measure(before, now, rank, passed, &times))
                        continue;
                see_rank(seen, rank, &times);
                v->n_batches += (uint64_t)verdict_smaller(times.n_batches, 1e15); /* as many as a claim can be */
        }
}

/* Does the slowest rank take its time itself? */
static bool lags(const struct ranks_seen *seen) {
        double others = seen->n > 1 ? (seen->sum_of_rates - seen->least_rate) / (seen->n - 1) : 0;

        return others > 0 && seen->least_rate < LAG_SHARE * others && seen->least_wait < VERDICT_MODERATE_WAIT;
}

/* Are all ranks at the same place, as far as one look tells? A look may come between two ranks' steps, or their epochs.
 */
static bool are_in_step(const Dlp__Job *job) {
        uint64_t first = UINT64_MAX, last = 0, epoch = job->n_ranks > 0 ? job->ranks[0]->epoch : 0;

        for (size_t i = 0; i < job->n_ranks; i++) {
                const Dlp__Rank *rank = job->ranks[i];

                if (rank->epoch != epoch)
                        return false;
                first = rank->step < first ? rank->step : first;
                last = rank->step > last ? rank->step : last;
        }
        return job->n_ranks > 1 && last - first <= IN_STEP;
}

/* The part of the time that ranks which wait for each other lose: of each step the longest wait, whoever had it. */
static double lost_share(const struct look *before, const struct look *now, const struct ranks_seen *seen) {
        if (!before || !are_in_step(before->job) || !are_in_step(now->job))
                return 0;
        return verdict_share_of(verdict_seconds(more(now->job->step_wait_ns, before->job->step_wait_ns)), seen->passed);
}

static void judge_ranks(const struct ranks_seen *seen, double lost, struct verdict *v) {
        v->rate = seen->rate;
        v->mean_wait_share = seen->n > 0 ? seen->sum_of_shares / seen->n : 0;
        v->wait_share = verdict_larger(seen->most_wait, lost);
        if (seen->n > 1 && seen->most_wait >= VERDICT_MODERATE_WAIT && seen->second_wait < VERDICT_MODERATE_WAIT)
                v->rank = seen->most_waiting;
        if (lags(seen)) {
                v->wait_share = seen->least_wait;
                v->rank = seen->slowest;
        }
        v->bound = v->wait_share < VERDICT_MODERATE_WAIT ? VERDICT_NOT_BOUND
                   : v->wait_share < VERDICT_HIGH_WAIT   ? VERDICT_MODERATELY
                                                         : VERDICT_HIGHLY;
        v->demand = v->rate / verdict_larger(1 - v->wait_share, 0.001);
}

/* ---- supplies ------------------------------------------------------------------------------------------------ */

static void judge_stages(const struct look *before, const struct look *now, struct verdict *v) {
        static const char *const OWN[] = { "other", "header", "decode", "move", "masks",
                                           "audio", "text",   "tokens", "copy", "collate" };
        double sum = 0, most = 0;

        for (size_t i = 0; i < now->job->n_stages; i++) {
                double taken = stage_seconds(before ? before->job : NULL, now->job->stages[i]);

                sum += taken;
                v->has_pictures |= taken > 0 && strcmp(now->job->stages[i]->name, "decode") == 0;
                v->has_tokens |= taken > 0 && strcmp(now->job->stages[i]->name, "tokens") == 0;
                if (taken > most) {
                        most = taken;
                        snprintf(v->stage, sizeof(v->stage), "%s", now->job->stages[i]->name);
                }
        }
        v->stage_share = verdict_share_of(most, sum);
        v->stage_is_step = v->stage[0] != '\0';
        for (size_t i = 0; i < sizeof(OWN) / sizeof(OWN[0]); i++)
                if (strcmp(v->stage, OWN[i]) == 0)
                        v->stage_is_step = false;
}

static void judge_workers(const struct look *now, const struct between *b, struct verdict *v) {
        double others = b->has_node ? verdict_larger(b->node_working - b->working, 0) / b->seconds : 0;
        double taken = b->working / b->seconds, free_cpus;

        v->n_workers = now->node ? now->node->n_workers : 0;
        v->cpus = now->node ? (double)now->node->cpus_milli / 1000 : 0;
        v->cpu_share = b->has_node ? verdict_share_of(b->node_cpu, b->node_working) : 0;
        if (v->n_workers == 0 || !(taken > 0))
                return;
        v->other_share = verdict_share_of(others, v->n_workers);
        if (v->other_share < OTHERS_MIN) /* rounding */
                v->other_share = 0;
        v->worker_share = verdict_share_of(taken, verdict_larger(v->n_workers - others, taken));
        /* More workers than CPUs: what they take of these counts, if it is more. */
        if (v->cpus > 0 && v->cpu_share > 0) {
                free_cpus = v->cpus - others * v->cpu_share;
                v->worker_share = verdict_larger(v->worker_share,
                                                 verdict_share_of(taken * v->cpu_share, verdict_larger(free_cpus, 0)));
        }
        v->supply_workers = v->worker_share > 0 ? b->n_samples / b->seconds / v->worker_share : 0;
}

/* How many samples may be under way at once: what the daemon's depth leaves to this job, and its free slots hold. */
static double verdict_depth_of(const struct look *now, const struct between *b) {
        double own = (b->reading + b->queued + b->working) / b->seconds, slots = 0, depth;

        for (size_t i = 0; i < now->job->n_ranks; i++) {
                const Dlp__Rank *rank = now->job->ranks[i];
                uint32_t n_free = rank->n_slots > rank->n_leased ? rank->n_slots - rank->n_leased : 0;

                slots += n_free * samples_in_batch(now->job, rank);
        }
        depth = now->node ? now->node->read_depth : 0;
        if (b->has_node)
                depth -= verdict_larger(b->node_under_way / b->seconds - own, 0);
        return verdict_larger(verdict_least(depth, slots), own);
}

static void judge_storage(const struct look *now, const struct between *b, struct verdict *v) {
        double depth = verdict_depth_of(now, b);

        v->storage_share = b->node_storage >= 0 && b->node_bytes > 0 ? verdict_share_of(b->node_storage, b->node_bytes)
                                                                     : -1;
        v->queued_share = verdict_share_of(b->queued / b->seconds, depth);
        if (!(b->reading > 0) || !(b->n_reads > 0))
                return;
        v->read_ms = b->reading / b->n_reads * 1000;
        v->fetch_share = verdict_share_of(b->fetching, b->reading);
        v->reading_share = verdict_share_of(b->reading / b->seconds, depth);
        v->supply_storage = v->reading_share > 0 ? b->n_samples / b->seconds / v->reading_share : 0;
}

/* ---- the limit ----------------------------------------------------------------------------------------------- */

static enum verdict_limit held_by(const struct verdict *v) {
        /* What waits for workers that are not busy waits for their CPUs. */
        double workers = verdict_larger(v->worker_share, v->queued_share);

        /* Nor is it short of slots while others keep the workers busy. */
        if (v->other_share > 0 && v->other_share + v->worker_share * (1 - v->other_share) >= SATURATED_SHARE)
                workers = verdict_larger(workers, USED_SHARE);
        if (verdict_larger(workers, v->reading_share) < USED_SHARE)
                return VERDICT_LATENCY;
        if (v->reading_share > workers)
                return v->has_origin && v->fetch_share >= FETCH_SHARE ? VERDICT_ORIGIN : VERDICT_READING;
        return v->stage_is_step && v->stage_share >= STEP_SHARE ? VERDICT_STEP : VERDICT_DECODING;
}

static bool has_text(const char *text) {
        return text && text[0];
}

/* Also the order of a later epoch is being made; then there are batches. */
static bool waits_for_order(const Dlp__Job *job) {
        for (size_t i = 0; job->progress && i < job->n_ranks; i++)
                if (job->ranks[i]->n_ready == 0 && job->ranks[i]->n_filling == 0 && job->ranks[i]->n_leased == 0)
                        return true;
        return false;
}

static enum verdict_limit verdict_limit_of(const struct look *now, const struct ranks_seen *seen,
                                           const struct verdict *v) {
        bool waits = v->wait_share >= VERDICT_MODERATE_WAIT;
        /* Few batches tell enough if the trainer does little else than wait for them. */
        bool is_short = seen->most_batches < BATCHES_MIN &&
                        !(v->wait_share >= VERDICT_HIGH_WAIT && v->seconds >= SECONDS_MIN && v->supply_workers > 0);

        if (has_text(now->job->failure))
                return VERDICT_ENDED;
        if (now->job->wait_reason && now->job->wait_reason->reason != DLP_WAIT_NOTHING)
                return now->job->wait_reason->reason == DLP_WAIT_ORIGIN ? VERDICT_ORIGIN : VERDICT_OUTAGE;
        if (waits_for_order(now->job) && (waits || seen->n == 0))
                return VERDICT_ORDER;
        if (is_short)
                return VERDICT_NOTHING_YET;
        if (lags(seen))
                return VERDICT_RANK;
        return waits ? held_by(v) : VERDICT_TRAINER;
}

/* As many workers as the trainer could use, if there are CPUs for them. */
static uint32_t workers_advised(const struct verdict *v) {
        double needed = v->supply_workers > 0 ? ceil(v->n_workers * v->demand / v->supply_workers) : 0;
        double n = verdict_smaller(verdict_smaller(needed, floor(v->cpus)), 100000);

        return n > v->n_workers ? (uint32_t)n : v->n_workers;
}

static void verdict_predict(const struct ranks_seen *seen, struct verdict *v) {
        /* What keeps workers that are always busy from being busy for the whole time is lost with more of them, too. */
        double p = v->worker_share >= SATURATED_SHARE ? v->supply_workers * v->worker_share : v->supply_workers;
        double f = v->supply_storage;

        switch (v->limit) {
        case VERDICT_RANK: /* as quick as the others, as far as they do not wait */
                v->predicted = verdict_least(v->rate * (seen->sum_of_rates - seen->least_rate) / (seen->n - 1) *
                                                     seen->n / verdict_larger(seen->sum_of_rates, 1e-9),
                                             verdict_least(v->supply_workers, f));
                break;
        case VERDICT_TRAINER:
                v->predicted = v->demand;
                break;
        case VERDICT_READING:
        case VERDICT_ORIGIN:
                v->predicted = verdict_least(v->supply_workers, v->demand);
                break;
        case VERDICT_DECODING:
                v->n_workers_advised = workers_advised(v);
                v->predicted = verdict_least(
                        verdict_least(p * v->n_workers_advised / verdict_larger(v->n_workers, 1), f), v->demand);
                if (v->n_workers_advised <= v->n_workers) /* twice as many CPUs */
                        v->predicted = verdict_least(verdict_least(2 * p, f), v->demand);
                break;
        case VERDICT_STEP:
                v->predicted = verdict_least(verdict_least(p / verdict_larger(1 - v->stage_share, 0.001), f),
                                             v->demand);
                break;
        case VERDICT_LATENCY:
                v->predicted = verdict_least(verdict_least(v->supply_workers, f), v->demand);
                break;
        default:
                break;
        }
}

void verdict_make(const struct look *before, const struct look *now, struct verdict *ret_verdict) {
        struct between b;
        struct ranks_seen seen;
        struct verdict v = { .rank = -1, .storage_share = -1, .is_since_attach = !before };

        verdict_compare(before, now, &b);
        v.seconds = b.seconds;
        v.has_origin = now->job->from != NULL;
        if (v.has_origin)
                dli_origin_read(now->job->from, &v.origin);
        verdict_see_ranks(before, now, before ? b.seconds : 0, &seen, &v);
        judge_ranks(&seen, lost_share(before, now, &seen), &v);
        judge_stages(before, now, &v);
        if (b.seconds > 0) {
                judge_workers(now, &b, &v);
                judge_storage(now, &b, &v);
        }
        if (b.n_samples > 0) /* prepared batches have as many a sample as those that were taken */
                v.tokens = v.rate * b.n_tokens / b.n_samples;
        v.limit = verdict_limit_of(now, &seen, &v);
        verdict_predict(&seen, &v);
        verdict_say(now->job, &v);
        *ret_verdict = v;
}
