#include "daemon/data/intake/intake.h"

/* The source, and the life of the thread that fills it.
 *
 * The thread may hang in a file system that does not answer. So closing the source waits for a moment only, and then
 * leaves the intake to the thread, which frees it when it comes back. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/threads/thread.h"
#include "daemon/base/work/errand.h"
#include "daemon/data/intake/intake_private.h"
#include "daemon/data/source_compare.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/order/epoch_plan.h"

#define SPOOL_BYTES (4ull << 30)  /* without spool_limit */
#define LOOK_NS     500000000ull  /* between two looks for a shard */
#define PATIENCE_NS 2000000000ull /* of a close for the thread */
#define TICK_NS     50000000l     /* of the wait for the first shard, which can be cancelled */

static const struct intake *intake_of(const struct source *source) {
        return (const struct intake *)source;
}

static void intake_free(struct intake *intake) {
        for (size_t i = 0; intake->names && i < intake->n_names; i++)
                free(intake->names[i]);
        free(intake->names);
        free(intake->root);
        free(intake->sorted);
        free(intake->split);
        closep(&intake->root_fd);
        growing_fini(&intake->listed);
        growing_fini(&intake->late);
        roll_fini(&intake->roll);
        closep(&intake->pipe.fd);
        closep(&intake->pipe.file);
        free(intake->pipe.window);
        spool_close(&intake->spool);
        free(intake->spool_path);
        pieces_fini(&intake->samples);
        pieces_fini(&intake->shards);
        text_pool_fini(&intake->texts);
        growth_unref(intake->growth);
        pthread_cond_destroy(&intake->changed);
        pthread_mutex_destroy(&intake->lock);
        free(intake);
}

/* ---- the thread ------------------------------------------------------------------------------------------------ */

/* Waits until it is time for the next look. Returns false if the thread is to end. */
static bool intake_rest(struct intake *intake) {
        uint64_t until_ns = clock_now_ns() + LOOK_NS;
        bool stop;

        pthread_mutex_lock(&intake->lock);
        while (!(stop = atomic_load(&intake->stop)) && clock_now_ns() < until_ns)
                thread_wait_until(&intake->changed, &intake->lock, until_ns);
        pthread_mutex_unlock(&intake->lock);
        return !stop;
}

static void end_stream(struct intake *intake) {
        uint64_t n = growth_n_samples(intake->growth, NULL);
        struct growth_report *report;
        struct why why;

        if (!intake->is_pipe && roll_add_end(&intake->roll, &why) < 0)
                intake_trouble(intake, &why);
        report = growth_report_begin(intake->growth);
        report->waiting.text[0] = '\0';
        growth_report_end(intake->growth);
        log_info("stream", "%s has ended with %llu samples in %llu shards", intake->root, (unsigned long long)n,
                 (unsigned long long)intake->shards.n);
        growth_publish(intake->growth, n, true);
}

static void *intake_run(void *argument) {
        struct intake *intake = argument;
        struct why why;
        bool is_mine;

        errand_begin(NULL, NULL); /* not with the nice value of what opened the stream, which has ended */
        while (!atomic_load(&intake->stop)) {
                int r = intake_next(intake, &why);

                if (r == INTAKE_OVER)
                        end_stream(intake);
                if (r == INTAKE_OVER || (r != INTAKE_TAKEN && !intake_rest(intake)))
                        break;
        }
        errand_end();
        pthread_mutex_lock(&intake->lock);
        intake->is_ended = true;
        is_mine = intake->is_abandoned;
        pthread_cond_signal(&intake->changed);
        pthread_mutex_unlock(&intake->lock);
        if (is_mine)
                intake_free(intake);
        return NULL;
}

/* ---- the source ------------------------------------------------------------------------------------------------ */

static void intake_close(struct source *source) {
        struct intake *intake = (struct intake *)source;
        uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
        bool is_ended;

        if (!intake->has_thread) {
                intake_free(intake);
                return;
        }
        pthread_mutex_lock(&intake->lock);
        atomic_store(&intake->stop, true);
        pthread_cond_signal(&intake->changed);
        while (!intake->is_ended && clock_now_ns() < until_ns)
                thread_wait_until(&intake->changed, &intake->lock, until_ns);
        is_ended = intake->is_ended;
        intake->is_abandoned = !is_ended;
        pthread_mutex_unlock(&intake->lock);
        if (is_ended) {
                thread_join(intake->thread);
                intake_free(intake);
        } else {
                pthread_detach(intake->thread);
        }
}

static const struct taken_sample *intake_sample_at(const struct source *source, uint64_t sample) {
        return pieces_at(&intake_of(source)->samples, sample);
}

static void intake_locate(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent) {
        const struct taken_sample *taken = intake_sample_at(source, sample);
        const struct taken_row *row = &taken->rows[field];
        const struct taken_shard *shard = pieces_at(&intake_of(source)->shards, taken->idx_shard);

        *ret_extent = (struct extent){
                .dir = "",
                .name = taken->name,
                .file = sample,
                .offset = row->offset == ROW_ABSENT ? 0 : row->offset,
                .length = row->n_bytes,
                .flags = row->offset == ROW_ABSENT ? EXTENT_ABSENT : 0,
                .shard = shard->path,
                .idx_shard = taken->idx_shard,
        };
}

static size_t intake_name(const struct source *source, uint64_t sample, char *ret_name) {
        return (size_t)(stpcpy(ret_name, intake_sample_at(source, sample)->name) - ret_name);
}

static const char *intake_broken(const struct source *source, uint64_t sample) {
        return intake_sample_at(source, sample)->broken;
}

static uint64_t intake_longest(const struct source *source, uint32_t field) {
        return intake_of(source)->fields[field].limit;
}

/* Of the shards, only the first one: if that is another one, it is another stream. */
static int intake_compare(const struct source *source, int root_fd, enum source_compare compare, struct why *why) {
        const struct intake *intake = intake_of(source);
        const struct taken_sample *sample = pieces_at(&intake->samples, 0);
        const struct taken_shard *shard = pieces_at(&intake->shards, sample->idx_shard);
        struct why detail;
        int r;

        if (intake->is_pipe) /* it does not change, it goes on */
                return 0;
        r = source_compare_file(root_fd, shard->name, &intake->first, compare, &detail);
        return r == 0 ? 0
                      : why_set(why, r, "the stream's first shard, %s/%s: %s", intake->root, shard->name, detail.text);
}

static const struct source_type INTAKE_TYPE = {
        .close = intake_close,
        .compare = intake_compare,
        .locate = intake_locate,
        .name = intake_name,
        .broken = intake_broken,
        .longest = intake_longest,
};

/* ---- opening --------------------------------------------------------------------------------------------------- */

static int copy_names(struct intake *intake, const struct files *files) {
        intake->names = files->n_names > 0 ? calloc(files->n_names, sizeof(*intake->names)) : NULL;
        if (files->n_names > 0 && !intake->names)
                return -ENOMEM;
        for (; intake->n_names < files->n_names; intake->n_names++) {
                intake->names[intake->n_names] = strdup(files->names[intake->n_names]);
                if (!intake->names[intake->n_names])
                        return -ENOMEM;
        }
        return 0;
}

static int intake_new(const struct intake_spec *spec, struct intake **ret_intake) {
        struct intake *intake = calloc(1, sizeof(*intake));
        int r;

        if (!intake)
                return -ENOMEM;
        pthread_mutex_init(&intake->lock, NULL);
        pthread_cond_init(&intake->changed, NULL);
        intake->roll.fd = intake->spool.fd = intake->pipe.fd = intake->pipe.file = -1;
        intake->is_pipe = spec->files->is_pipe;
        intake->budget = spec->budget;
        intake->root_fd = fcntl(spec->root_fd, F_DUPFD_CLOEXEC, 3);
        intake->root = strdup(spec->files->root);
        text_pool_init(&intake->texts, spec->budget, "the names of a stream's samples");
        r = intake->root_fd < 0 ? -errno : intake->root ? copy_names(intake, spec->files) : -ENOMEM;
        if (r == 0)
                r = growth_new(&intake->growth);
        if (r == 0)
                r = pieces_init(&intake->shards, sizeof(struct taken_shard), spec->budget, "the shards of a stream");
        if (r < 0) {
                intake_free(intake);
                return r;
        }
        intake->source = (struct source){
                .type = &INTAKE_TYPE,
                .format = spec->options->format->name,
                .digest = intake->digest,
                .n_samples = DLP_UNKNOWN,
                .n_shards = 1, /* more than none: samples are parts of files */
                .max_name_bytes = INTAKE_NAME_MAX,
                .growth = intake->growth,
        };
        *ret_intake = intake;
        return 0;
}

static bool intake_is_cancelled(const struct index_watch *watch) {
        return watch && watch->cancel && atomic_load_explicit(watch->cancel, memory_order_relaxed);
}

/* Takes shards in until one has samples. Nobody is told of the stream before that. */
static int intake_take_first(struct intake *intake, const struct index_watch *watch, struct why *why) {
        const struct timespec tick = { .tv_nsec = TICK_NS };
        uint64_t next_ns = 0;

        while (growth_n_samples(intake->growth, NULL) == 0) {
                int r = INTAKE_WAITS;

                if (intake_is_cancelled(watch))
                        return why_set(why, -ECANCELED, "%s: waiting for the first shard was cancelled", intake->root);
                if (clock_now_ns() >= next_ns) {
                        r = intake_next(intake, why);
                        next_ns = clock_now_ns() + LOOK_NS;
                }
                if (r == INTAKE_OVER)
                        return why_set(why, -ENOENT, "%s: the stream has ended without a sample", intake->root);
                if (r < 0)
                        return r;
                if (r == INTAKE_WAITS)
                        nanosleep(&tick, NULL);
                else
                        next_ns = 0;
        }
        return 0;
}

static int intake_read_options(struct intake *intake, const struct intake_spec *spec, struct why *why) {
        const char *spool = format_option(spec->options, "spool"), *split = format_option(spec->options, "split");
        const char *name = text_after_slash(spec->roll);

        intake->field_limit = format_option_number(spec->options, "field_limit", 0);
        intake->spool_limit = format_option_number(spec->options, "spool_limit", SPOOL_BYTES);
        if (split && (spec->files->n_names > 0 || spec->files->is_pipe))
                return why_set(why, -EINVAL,
                               "%s/%s: the path names the archives, so split = \"%s\" chooses nothing; name the "
                               "folder, or leave split out",
                               spec->files->root, spec->files->names[0], split);
        intake->split = split ? strdup(split) : NULL;
        if (split && !intake->split)
                return why_errno(why, -ENOMEM, "a stream");
        if (asprintf(&intake->spool_path, "%s%s%s.spool", spool ? spool : "", spool ? "/" : "",
                     spool ? name : spec->roll) < 0) {
                intake->spool_path = NULL;
                return why_errno(why, -ENOMEM, "a stream");
        }
        return 0;
}

int intake_open(const struct intake_spec *spec, const struct index_watch *watch, struct source **ret_source,
                struct why *why) {
        struct intake *intake;
        struct why trouble;
        int r;

        r = intake_new(spec, &intake);
        if (r < 0)
                return why_errno(why, r, "%s: opening the stream", spec->files->root);
        r = intake_read_options(intake, spec, why);
        trouble.text[0] = '\0';
        if (r == 0 && !intake->is_pipe)
                r = roll_open(&intake->roll, spec->roll, &trouble);
        if (r == 0 && trouble.text[0])
                intake_trouble(intake, &trouble);
        intake->stopped = watch && watch->cancel ? watch->cancel : &intake->stop;
        if (r == 0)
                r = intake_take_first(intake, watch, why);
        intake->stopped = &intake->stop;
        if (r == 0) {
                r = thread_start(&intake->thread, "stream", intake_run, intake);
                intake->has_thread = r == 0;
                if (r < 0)
                        why_errno(why, r, "%s: a thread for the stream", intake->root);
        }
        if (r < 0) {
                intake_free(intake);
                return r;
        }
        *ret_source = &intake->source;
        return 0;
}
