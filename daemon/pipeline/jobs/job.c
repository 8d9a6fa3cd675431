#include "daemon/pipeline/jobs/job.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const ON_ERROR_NAMES[] = {
        [ON_ERROR_FAIL] = "fail",
        [ON_ERROR_SUBSTITUTE] = "substitute",
        [ON_ERROR_SKIP] = "skip",
};

const char *on_error_name(enum on_error on_error) {
        return on_error <= ON_ERROR_SKIP ? ON_ERROR_NAMES[on_error] : NULL;
}

int on_error_from_name(const char *name, enum on_error *ret_on_error) {
        for (size_t i = 0; i <= ON_ERROR_SKIP; i++)
                if (strcmp(name, ON_ERROR_NAMES[i]) == 0) {
                        *ret_on_error = (enum on_error)i;
                        return 0;
                }
        return -EINVAL;
}

struct job *job_find(struct jobs *jobs, uid_t uid, const char *name) {
        struct job *job;

        LIST_FOREACH(job, jobs, entry)
                if (job->uid == uid && strcmp(job->name, name) == 0)
                        return job;
        return NULL;
}

/* Who asks to join, and the texts that name him and one of those who are there. */
struct comparison {
        const struct job *job;
        uint32_t rank;
        struct why *why;
};

/* The first of them that came, of those that are there. */
static const struct job_member *first_member(const struct job *job) {
        const struct job_member *member, *first = NULL;

        LIST_FOREACH(member, &job->members, entry)
                first = member;
        return first;
}

static int differ(const struct comparison *both, const char *field, const char *theirs, const char *mine) {
        const struct job_member *first = first_member(both->job);

        return why_set(
                both->why, -EINVAL,
                "%s: job \"%s\" runs with %s, as rank %u (process %u) asked; rank %u asks for %s; all ranks of a "
                "job must ask for the same",
                field, both->job->name, theirs, first->rank, first->pid, both->rank, mine);
}

static int differ_number(const struct comparison *both, const char *field, uint64_t theirs, uint64_t mine) {
        char a[24], b[24];

        snprintf(a, sizeof(a), "%llu", (unsigned long long)theirs);
        snprintf(b, sizeof(b), "%llu", (unsigned long long)mine);
        return differ(both, field, a, b);
}

static int differ_order(const struct comparison *both, const struct job_terms *mine) {
        char a[DLP_ORDER_CHOICE_MAX], b[DLP_ORDER_CHOICE_MAX];

        job_order_print(&both->job->terms, a);
        job_order_print(mine, b);
        return differ(both, "order", a, b);
}

static const char *yes_no(bool value) {
        return value ? "true" : "false";
}

/* Compares field by field, in the order of the options: the first difference is the one that a person would check
 * first. */
static int job_agree(const struct comparison *both, const struct job_terms *mine) {
        const struct job_terms *theirs = &both->job->terms;

        if (strcmp(theirs->dataset, mine->dataset) != 0)
                return differ(both, "dataset", theirs->dataset, mine->dataset);
        if (strcmp(theirs->digest, mine->digest) != 0)
                return differ(both, "dataset digest", theirs->digest, mine->digest);
        if (theirs->n_samples != mine->n_samples)
                return differ_number(both, "dataset samples", theirs->n_samples, mine->n_samples);
        if (theirs->world != mine->world)
                return differ_number(both, "world_size", theirs->world, mine->world);
        if (theirs->batch_size != mine->batch_size)
                return differ_number(both, "batch_size", theirs->batch_size, mine->batch_size);
        if (strcmp(theirs->pipeline, mine->pipeline) != 0)
                return differ(both, "pipeline", theirs->pipeline, mine->pipeline);
        if (theirs->seed != mine->seed)
                return differ_number(both, "seed", theirs->seed, mine->seed);
        if (theirs->draws != mine->draws)
                return differ_number(both, "draws", theirs->draws, mine->draws);
        if (theirs->shuffle != mine->shuffle)
                return differ(both, "shuffle", yes_no(theirs->shuffle), yes_no(mine->shuffle));
        if (theirs->dealing != mine->dealing)
                return differ(both, "dealing", dlp_dealing_name(theirs->dealing), dlp_dealing_name(mine->dealing));
        if (theirs->partition != mine->partition)
                return differ(both, "partition", dlp_partition_name(theirs->partition),
                              dlp_partition_name(mine->partition));
        if (theirs->drop_last != mine->drop_last)
                return differ(both, "drop_last", yes_no(theirs->drop_last), yes_no(mine->drop_last));
        if (theirs->order != mine->order || theirs->window != mine->window)
                return differ_order(both, mine);
        if (strcmp(theirs->sampler, mine->sampler) != 0)
                return differ(both, "sampler", theirs->sampler, mine->sampler);
        if (strcmp(theirs->columns, mine->columns) != 0)
                return differ(both, "digest of the columns", theirs->columns, mine->columns);
        if (theirs->shuffle_buffer != mine->shuffle_buffer)
                return differ_number(both, "shuffle_buffer", theirs->shuffle_buffer, mine->shuffle_buffer);
        if (theirs->on_error != mine->on_error)
                return differ(both, "on_error", on_error_name(theirs->on_error), on_error_name(mine->on_error));
        if (theirs->max_errors != mine->max_errors) {
                char a[24], b[24];

                snprintf(a, sizeof(a), "%.10g", theirs->max_errors);
                snprintf(b, sizeof(b), "%.10g", mine->max_errors);
                return differ(both, "max_errors", a, b);
        }
        return 0;
}

/* The rank that blocks this one is about to leave. Returns `error`, or -EAGAIN with a text of its own. */
static int unless_ending(const struct job *job, const struct job_member *only, int error, struct why *why) {
        const struct job_member *member, *last = NULL;

        LIST_FOREACH(member, &job->members, entry) {
                if (only && member != only)
                        continue;
                if (!process_is_ending(&member->process))
                        return error;
                last = member;
        }
        if (!last)
                return error;
        return why_set(why, -EAGAIN, "job: rank %u of job \"%s\" is still held by process %u, which is ending",
                       last->rank, job->name, last->pid);
}

/* May this rank join the existing job? */
static int job_admit(const struct job *job, const struct job_terms *terms, uint32_t rank, struct why *why) {
        const struct job_member *member;
        int r;

        r = job_agree(&(struct comparison){ job, rank, why }, terms);
        if (r < 0)
                return unless_ending(job, NULL, r, why);
        if (atomic_load_explicit(&job->failed, memory_order_acquire)) {
                r = why_set(why, -EBUSY, "job: job \"%s\" has failed and its last rank has not left yet: %s", job->name,
                            job->failure.text);
                return unless_ending(job, NULL, r, why);
        }
        LIST_FOREACH(member, &job->members, entry)
                if (member->rank == rank) {
                        r = why_set(why, -EADDRINUSE,
                                    "rank: rank %u of job \"%s\" is attached already by process %u; end that process, "
                                    "or give this run a job name of its own",
                                    rank, job->name, member->pid);
                        return unless_ending(job, member, r, why);
                }
        if (job->n_members >= DLP_LOCAL_RANKS_MAX)
                return why_set(why, -EUSERS, "rank: job \"%s\" has %u ranks on this node already, which is the limit",
                               job->name, DLP_LOCAL_RANKS_MAX);
        return 0;
}

static struct job *job_new(struct household *household, const char *name, const struct job_terms *terms,
                           struct sampling *sampling) {
        struct job *job = aligned_alloc(_Alignof(struct job), sizeof(*job));

        if (!job)
                return NULL;
        memset(job, 0, sizeof(*job));
        snprintf(job->name, sizeof(job->name), "%s", name);
        job->uid = household->user->uid;
        job->household = household;
        job->terms = *terms;
        job->sampling = sampling_ref(sampling);
        attendance_recall(job->uid, name, &job->attendance);
        if (damage_init(&job->damage, terms->max_errors, terms->n_samples) < 0) {
                damage_fini(&job->damage);
                sampling_unref(job->sampling);
                free(job);
                return NULL;
        }
        atomic_fetch_add_explicit(&household->n_jobs, 1, memory_order_relaxed);
        job->tasks.group = &household->tasks;
        job->reading.group = &household->reading;
        job->scratch.above = &household->scratch;
        fair_share_init(&job->share, &household->time, 1);
        pthread_mutex_init(&job->lock, NULL);
        step_waits_init(&job->waits);
        work_init(&job->order_work);
        return job;
}

int job_join(struct jobs *jobs, struct job *job, struct household *household, const char *name,
             const struct job_terms *terms, struct sampling *sampling, uint32_t rank, uint32_t pid,
             struct job **ret_job, struct job_member **ret_member, struct why *why) {
        struct job_member *member;
        int r;

        if (job) {
                r = job_admit(job, terms, rank, why);
                if (r < 0)
                        return r;
        }

        member = calloc(1, sizeof(*member)); /* before the job: a job without members would never be removed */
        if (member && !job) {
                job = job_new(household, name, terms, sampling);
                if (job)
                        LIST_INSERT_HEAD(jobs, job, entry);
        }
        if (!member || !job) {
                free(member);
                return why_errno(why, -ENOMEM, "job \"%s\"", name);
        }

        member->rank = rank;
        member->pid = pid;
        member->process = PROCESS_NONE;
        LIST_INSERT_HEAD(&job->members, member, entry);
        job->n_members++;
        attendance_note(&job->attendance, rank);
        *ret_job = job_ref(job);
        *ret_member = member;
        return 0;
}

struct dlp_sampler_terms job_sampler_terms(const struct job_terms *terms, uint64_t n_samples, uint64_t epoch) {
        return (struct dlp_sampler_terms){ .n_samples = n_samples,
                                           .seed = terms->seed,
                                           .epoch = epoch,
                                           .shuffle = terms->shuffle,
                                           .kind = terms->order,
                                           .shuffle_buffer = terms->shuffle_buffer,
                                           .window = terms->window };
}

void job_order_print(const struct job_terms *terms, char ret_text[DLP_ORDER_CHOICE_MAX]) {
        const struct dlp_order_choice choice = { .kind = terms->order, .window = terms->window };

        dlp_order_choice_print(&choice, ret_text);
}

struct dlp_epoch_terms job_epoch_terms(const struct job_terms *terms, uint64_t n_samples) {
        struct dlp_sampler_terms sampler = job_sampler_terms(terms, n_samples, 0);
        uint64_t n_positions = terms->is_made ? DLP_UNKNOWN : dlp_sampler_n_positions(&sampler);

        return (struct dlp_epoch_terms){ .n_positions = n_positions,
                                         .world = terms->world,
                                         .batch_size = terms->deals_batches ? 1 : terms->batch_size,
                                         .dealing = terms->dealing,
                                         .partition = terms->partition,
                                         .drop_last = terms->drop_last };
}

struct cursor cursor_begin(const struct cursor *cursor, const struct job_terms *terms, uint64_t n_samples) {
        struct dlp_epoch_terms epoch = job_epoch_terms(terms, n_samples);

        if (!dlp_epoch_is_end(&epoch, cursor->position))
                return *cursor;
        return (struct cursor){ .epoch = cursor->epoch + 1 };
}

int job_place(const struct job *job, struct job_member *member, const struct cursor *cursor, struct why *why) {
        struct dlp_epoch_terms epoch = job_epoch_terms(&job->terms, job->terms.n_samples);
        struct cursor begin = cursor_begin(cursor, &job->terms, job->terms.n_samples);
        const struct job_member *other;
        int r;

        LIST_FOREACH(other, &job->members, entry) {
                uint64_t theirs = other->cursor.position, mine = begin.position;

                if (other == member || other->cursor.epoch != begin.epoch) /* ranks may be in different epochs */
                        continue;
                if (dlp_epoch_is_dealt_alike(&epoch, theirs, mine) || (other->has_moved && mine == 0))
                        continue;
                r = why_set(why, -EINVAL,
                            "position: rank %u of job \"%s\" resumed epoch %llu at %llu, this rank asks for %llu; "
                            "all ranks must load the same state",
                            other->rank, job->name, (unsigned long long)begin.epoch, (unsigned long long)theirs,
                            (unsigned long long)mine);
                return unless_ending(job, other, r, why);
        }
        member->cursor = begin;
        return 0;
}

void job_move(const struct job *job, struct job_member *member, const struct cursor *cursor) {
        member->cursor = cursor_begin(cursor, &job->terms, job->terms.n_samples);
        member->has_moved = true;
}

int cursor_check(const struct cursor *cursor, const struct job_terms *terms, uint32_t rank, uint64_t n_samples,
                 struct why *why) {
        struct dlp_epoch_terms epoch = job_epoch_terms(terms, n_samples);
        struct dlp_epoch_plan plan;

        if (cursor->position > epoch.n_positions)
                return why_set(why, -EINVAL,
                               "position: %llu is out of range; the dataset has %llu samples, 0 to %llu are allowed",
                               (unsigned long long)cursor->position, (unsigned long long)n_samples,
                               (unsigned long long)epoch.n_positions);
        plan = dlp_epoch_plan_make(&epoch, rank, cursor->position);
        if (cursor->step > plan.n_batches)
                return why_set(
                        why, -EINVAL,
                        "step: %llu is out of range; this rank has %llu batches from position %llu of an epoch on",
                        (unsigned long long)cursor->step, (unsigned long long)plan.n_batches,
                        (unsigned long long)cursor->position);
        return 0;
}

void job_leave(struct job *job, struct job_member *member) {
        LIST_REMOVE(member, entry);
        free(member);
        if (--job->n_members == 0) {
                LIST_REMOVE(job, entry); /* the next rank with this name starts a new job */
                attendance_keep(job->uid, job->name, &job->attendance);
        }
        job_unref(job);
}

struct job *job_ref(struct job *job) {
        atomic_fetch_add_explicit(&job->refs, 1, memory_order_relaxed);
        return job;
}

void job_unref(struct job *job) {
        if (!job || atomic_fetch_sub_explicit(&job->refs, 1, memory_order_acq_rel) > 1)
                return;
        if (job->orders_budget)
                budget_release(job->orders_budget, job->orders_bytes);
        damage_fini(&job->damage);
        sampling_unref(job->sampling);
        work_fini(&job->order_work);
        pthread_mutex_destroy(&job->lock);
        step_waits_destroy(&job->waits);
        atomic_fetch_sub_explicit(&job->household->n_jobs, 1,
                                  memory_order_release); /* nothing of it is used any more */
        free(job);
}

int job_reserve_orders(struct job *job, struct budget *budget, uint64_t n_bytes, struct why *why) {
        int r = 0;

        pthread_mutex_lock(&job->lock);
        if (!job->orders_budget) {
                r = budget_reserve(budget, n_bytes, "the order of two epochs of this job", why);
                if (r == 0) {
                        job->orders_budget = budget;
                        job->orders_bytes = n_bytes;
                }
        }
        pthread_mutex_unlock(&job->lock);
        return r;
}

/* With the lock. A sampler's epochs may grow, as a curriculum's do: then the job reserves more. */
static int reserve_longer_order(struct job *job, uint64_t n_bytes, struct why *why) {
        uint64_t wanted = 2 * n_bytes;
        int r;

        if (!job->orders_budget || wanted <= job->orders_bytes)
                return 0;
        r = budget_reserve(job->orders_budget, wanted - job->orders_bytes, "the order of a longer epoch", why);
        if (r == 0)
                job->orders_bytes = wanted;
        return r;
}

int job_take_order(struct job *job, uint64_t n_bytes, struct why *why) {
        int r;

        pthread_mutex_lock(&job->lock);
        r = reserve_longer_order(job, n_bytes, why);
        if (r < 0)
                ; /* no room for it, now or later */
        else if (n_bytes <= job->orders_bytes - job->orders_used_bytes)
                job->orders_used_bytes += n_bytes;
        else
                r = why_set(why, -EAGAIN, "the order of an epoch: two epochs' are in use");
        pthread_mutex_unlock(&job->lock);
        if (r == 0) /* the table may outlive the ranks, and gives its memory back later */
                job_ref(job);
        return r;
}

void job_give_order(struct job *job, uint64_t n_bytes) {
        pthread_mutex_lock(&job->lock);
        assert(job->orders_used_bytes >= n_bytes);
        job->orders_used_bytes -= n_bytes;
        pthread_mutex_unlock(&job->lock);
        job_unref(job);
}

void job_tell_order(struct job *job, uint64_t epoch, uint64_t n_done, uint64_t n_total) {
        pthread_mutex_lock(&job->lock);
        if (n_done >= n_total) {
                if (job->has_order_told && epoch == job->order_epoch) {
                        job->has_order_told = false;
                        work_end(&job->order_work);
                }
        } else {
                if (!job->has_order_told || epoch < job->order_epoch) {
                        job->has_order_told = true;
                        job->order_epoch = epoch;
                        work_begin(&job->order_work, "making the order", "samples");
                }
                if (epoch == job->order_epoch)
                        work_tell(&job->order_work, n_done, n_total, "samples");
        }
        pthread_mutex_unlock(&job->lock);
}

bool job_order_progress(struct job *job, uint64_t epoch, struct dlp_progress *ret_progress) {
        bool is_told;

        pthread_mutex_lock(&job->lock);
        is_told = job->has_order_told && job->order_epoch <= epoch && work_read(&job->order_work, ret_progress);
        pthread_mutex_unlock(&job->lock);
        return is_told;
}

bool job_fail(struct job *job, uint32_t code, const char *text) {
        bool first;

        pthread_mutex_lock(&job->lock);
        first = !atomic_load_explicit(&job->failed, memory_order_relaxed);
        if (first) { /* what fails later is often a consequence of it */
                snprintf(job->failure.text, sizeof(job->failure.text), "%s", text);
                job->failure_code = code;
                atomic_store_explicit(&job->failed, true, memory_order_release);
        }
        pthread_mutex_unlock(&job->lock);
        return first;
}

uint32_t job_failure(struct job *job, struct why *ret_why) {
        uint32_t code;

        pthread_mutex_lock(&job->lock);
        *ret_why = job->failure;
        code = job->failure_code;
        pthread_mutex_unlock(&job->lock);
        return code;
}
