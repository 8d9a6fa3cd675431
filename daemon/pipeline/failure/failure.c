#include "daemon/pipeline/failure/failure.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/pipeline/batch.h"
#include "proto/base/clock.h"

#define LOGGED_ERRORS_MAX 100u /* for each dataset; further damaged samples are only counted */
#define SHORTAGE_TRIES    10u  /* before a lack of memory or descriptors counts as permanent */
#define SHORTAGE_REST_NS  100000000ull
#define SUBSTITUTES_MAX   4096u /* damaged samples in a row of the order before the job gives up */

/* The dataset that has the candidate, and its number there. */
static struct catalog_dataset *dataset_of(const struct task *task, uint64_t *ret_sample) {
        *ret_sample = task->sample.candidate;
        return catalog_dataset_with(task->batch->feed->dataset, ret_sample);
}

static void name_sample(struct task *task, const char *text, struct why *ret_named) {
        const struct catalog_dataset *all = task->batch->feed->dataset;
        char name[SOURCE_NAME_SIZE];
        uint64_t sample;
        const struct catalog_dataset *dataset = dataset_of(task, &sample);

        source_name(dataset_source(dataset->dataset), sample, name);
        if (dataset == all)
                why_set(ret_named, 0, "%s: sample %llu (%s): %s", dataset->name, (unsigned long long)sample, name,
                        text);
        else
                why_set(ret_named, 0, "%s: sample %llu (%s; number %llu of %s): %s", dataset->name,
                        (unsigned long long)sample, name, (unsigned long long)task->sample.candidate, all->name, text);
}

static void report(struct task *task, const struct why *named, const char *what_next) {
        uint64_t sample;
        struct catalog_dataset *dataset = dataset_of(task, &sample);
        uint64_t n_before = catalog_dataset_error(dataset, named->text);

        if (n_before < LOGGED_ERRORS_MAX)
                log_warning("sample", "%s; %s", named->text, what_next);
        else if (n_before == LOGGED_ERRORS_MAX)
                log_warning("sample", "%s has more than %u errors; further ones are counted only, see dlctl errors",
                            dataset->name, LOGGED_ERRORS_MAX);
}

/* These errors may be temporary: another job decodes large pictures, or many files are opened at once. */
static bool is_shortage(int error) {
        return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

/* Is the sample itself at fault, wherever and whenever it is read? Only then may another sample take its place, or may
 * it be left out: what a lack of memory or descriptors decided would differ from rank to rank and from run to run.
 * Errors of reads have been judged before (pipeline/failure/outage.h). */
static bool is_damage(int error) {
        /* EMEDIUMTYPE is about sizes that differ: no other sample would fit any better. */
        return !is_shortage(error) && error != -ECANCELED && error != -EMEDIUMTYPE;
}

/* ---- what follows ---------------------------------------------------------------------------------------------- */

static enum sample_state end_job(struct worker *worker, struct task *task, uint32_t code, const struct why *named) {
        report(task, named, "the job ends");
        worker->fault.code = code;
        worker->fault.why = *named;
        return SAMPLE_FAIL;
}

static enum sample_state failure_rest(struct task *task, const struct why *named) {
        if (task->n_shortages++ == 0)
                report(task, named, "it is tried again for a second");
        task->not_before_ns = clock_now_ns() + SHORTAGE_REST_NS;
        return SAMPLE_REST;
}

static bool is_to_be_judged(const struct task *task, int error) {
        return task->request.result < 0 && !is_shortage(error) && error != -ECANCELED;
}

static enum sample_state substitute(struct worker *worker, struct task *task, const struct why *named) {
        struct feed *feed = task->batch->feed;
        struct why none;

        if (++task->sample.n_tries < feed->whole.terms.n_positions && task->sample.n_tries <= SUBSTITUTES_MAX) {
                report(task, named, "the next sample of the order takes its place");
                task->trouble->since_ns = 0;
                batch_forget_shape(task->batch);
                return SAMPLE_SUBSTITUTE;
        }
        why_set(&none, 0, "%s: no good sample found to take the place of sample %llu in %llu tries; the first: %s",
                feed->dataset->name, (unsigned long long)task->sample.index, (unsigned long long)task->sample.n_tries,
                task->trouble->reason.text);
        return end_job(worker, task, EBADMSG, &none);
}

static enum sample_state end_too_many(struct worker *worker, struct task *task, const struct why *last) {
        const struct feed *feed = task->batch->feed;
        uint64_t sample;
        unsigned long long n_allowed = feed->job->damage.n_allowed;
        struct why why;

        why_set(&why, 0, "%s: %llu damaged samples, max_errors allows %llu; the last: %s; dlctl errors %s lists them",
                feed->dataset->name, n_allowed + 1, n_allowed, last->text, dataset_of(task, &sample)->name);
        return end_job(worker, task, ENOTRECOVERABLE, &why);
}

/* The reader's text begins with the path of the file that it read. There is none if all fields are known. */
static const char *failure_without_path(const struct task *task, const char *text) {
        size_t n = task->request.path ? strlen(task->request.path) : 0;

        if (n == 0)
                return text;
        return strncmp(text, task->request.path, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

/* The text names the file with which something is wrong, unless that is what the sample is called, which stands next to
 * it anyway. It is another one in a shard, and where a sample has several files or is a record that names them. What
 * only a value or a function of the trainer's is to blame for is not said of a file. */
static void failure_describe(const struct task *task, const char *text, struct why *ret_text) {
        const char *bare = failure_without_path(task, text), *path = task->request.path;
        char name[SOURCE_NAME_SIZE];
        uint64_t sample;
        const struct catalog_dataset *dataset = dataset_of(task, &sample);
        bool is_of_file = bare != text || task->request.is_part || task->request.result < 0;

        source_name(dataset_source(dataset->dataset), sample, name);
        if (path && is_of_file && strcmp(path, name) != 0)
                why_set(ret_text, 0, "%s: %s", path, bare);
        else
                why_set(ret_text, 0, "%s", bare);
}

/* It is not known yet whether the sample or its file system is at fault, so nothing is decided here. */
static enum sample_state park(struct task *task, uint64_t round, const struct why *named) {
        if (task->trouble->since_ns == 0)
                task->trouble->since_ns = clock_now_ns();
        task->trouble->last = *named;
        task->trouble->round = round;
        return SAMPLE_PARK;
}

enum sample_state failure_decide(struct worker *worker, struct task *task) {
        struct job *job = task->batch->feed->job;
        uint64_t sample, round;
        struct catalog_dataset *dataset = dataset_of(task, &sample);
        int error = task_trouble(task) ? worker->fault.error : -ENOMEM;
        struct why text, named;

        task->function.n_tries = 0;
        task->idx_read = 0;
        failure_describe(task, worker->fault.why.text, &text);
        name_sample(task, text.text, &named);
        if (is_to_be_judged(task, error) && outage_judge(dataset->outage, sample, error, &round) == OUTAGE_WAIT)
                return park(task, round, &named);
        counter_add(&worker->counters->n_sample_errors, 1);
        if (is_shortage(error) && task->n_shortages < SHORTAGE_TRIES)
                return failure_rest(task, &named);
        if (!is_damage(error)) /* shapes that differ: the pipeline makes them, and each run would end so */
                return end_job(worker, task, error == -EMEDIUMTYPE ? EINVAL : EBADMSG, &named);
        if (!task->trouble->reason.text[0])
                task->trouble->reason = named;
        ledger_meet(dataset->ledger, sample, task->bad_field ? task->bad_field : "", text.text);
        if (!damage_meet(&job->damage, task->sample.candidate))
                return end_too_many(worker, task, &named);
        switch (job->terms.on_error) {
        case ON_ERROR_SKIP:
                report(task, &named, "it is left out of its batch");
                return SAMPLE_SKIP;
        case ON_ERROR_SUBSTITUTE:
                return substitute(worker, task, &named);
        case ON_ERROR_FAIL:
                break;
        }
        return end_job(worker, task, EBADMSG, &named);
}

enum sample_state failure_skip(struct worker *worker, struct task *task) {
        batch_forget_shape(task->batch);
        batch_skip(task->batch, task->idx_sample);
        counter_add(&worker->counters->n_skipped, 1);
        return SAMPLE_END;
}

enum sample_state failure_fail(struct worker *worker, struct task *task) {
        batch_failed(task->batch, task->idx_sample, worker->fault.code, &worker->fault.why);
        return SAMPLE_END;
}

void failure_of_batch(struct task *task, const struct why *why, struct counters *counters) {
        const struct batch *batch = task->batch;
        uint64_t sample;
        struct catalog_dataset *dataset = dataset_of(task, &sample);
        struct why text, named;

        why_set(&text, 0, "the batch of %u samples that begins with it (batch %llu of epoch %llu): %s", batch->n_kept,
                (unsigned long long)batch->step, (unsigned long long)batch->epoch, why->text);
        name_sample(task, text.text, &named);
        counter_add(&counters->n_sample_errors, 1);
        ledger_meet(dataset->ledger, sample, "", text.text);
        report(task, &named, "the job ends");
        batch_failed(task->batch, task->idx_sample, EBADMSG, &named);
}
