#include "daemon/staging/prepare/prepare.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/cpus.h"
#include "daemon/base/threads/thread.h"
#include "daemon/data/format.h"
#include "daemon/data/formats/shard.h"
#include "daemon/staging/prepare/maker.h"
#include "daemon/staging/prepare/prepare_shards.h"
#include "daemon/staging/prepare/sample_reader.h"
#include "daemon/staging/prepare/window.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define PREPARE_WORKERS_MAX 64u /* the window feeds no more, and each keeps MAKER_KEEPS */
#define READERS_MIN         8u  /* threads that only read wait for the disk, not for a CPU */
#define CANCEL_MS           50u /* how often the packer looks whether it is to end */
#define PROGRESS_NS         100000000ull
#define PART_SUFFIX         ".part" /* a shard that is not whole; never taken for one */
#define PART_NAME_SIZE      (32u + sizeof(PART_SUFFIX))

struct run {
        const struct prepare_options *options;
        struct steps steps;
        struct sample_reader reader;
        struct shards shards; /* those of this node that are to be made */
        struct window window;
        const char **class_names; /* the index's */
        uint64_t n_total;         /* samples of this node, those of whole shards included */
        uint64_t told_ns;         /* when progress was told */
        struct prepare_report report;

        uint32_t n_workers;
        struct worker {
                pthread_t thread;
                struct run *run;
                struct maker *maker; /* NULL: packing only */
                uint64_t position;   /* that it works on */
        } workers[PREPARE_WORKERS_MAX];
};

static bool prepare_is_cancelled(const struct run *run) {
        return run->options->cancel && atomic_load_explicit(run->options->cancel, memory_order_relaxed);
}

/* ---- workers ------------------------------------------------------------------------------------------------- */

static uint64_t prepare_sample_of(const struct run *run, uint64_t position) {
        uint64_t low = 0, high = run->shards.n_runs;

        while (high - low > 1) {
                uint64_t middle = low + (high - low) / 2;

                if (run->shards.runs[middle].first_position <= position)
                        low = middle;
                else
                        high = middle;
        }
        return run->shards.runs[low].first_sample + (position - run->shards.runs[low].first_position);
}

static int on_pay(void *userdata, uint64_t n_bytes) {
        struct worker *worker = userdata;

        return window_pay(&worker->run->window, worker->position, n_bytes) ? 0 : -ECANCELED;
}

static bool on_ask_cancelled(void *userdata) {
        struct worker *worker = userdata;

        return prepare_is_cancelled(worker->run) || window_is_stopped(&worker->run->window);
}

/* Makes something of the bytes in result->block, or leaves them. */
static int prepare_make(struct worker *worker, uint64_t sample, struct window_result *result) {
        struct maker_job job = {
                .bytes = result->block.bytes,
                .n_bytes = result->n_bytes,
                .n_paid = sample_reader_need(&worker->run->reader, sample),
                .pay = on_pay,
                .is_cancelled = on_ask_cancelled,
                .userdata = worker,
        };
        struct block file = {};
        size_t n_bytes;
        int r;

        r = maker_make(worker->maker, &job, &file, &n_bytes, &result->why);
        if (r == MAKER_CANNOT)
                result->is_kept = true;
        if (r == 0) {
                block_free(&result->block);
                result->block = file;
                result->n_bytes = n_bytes;
        }
        return r < 0 ? r : 0;
}

static void prepare_work(struct worker *worker) {
        struct run *run = worker->run;
        uint64_t sample = prepare_sample_of(run, worker->position);
        struct window_result result = {};
        struct extent place;
        int r;

        source_locate(run->options->index, sample, 0, &place);
        if (!window_pay(&run->window, worker->position, place.length))
                return;
        result.n_bytes = place.length;
        r = sample_reader_read(&run->reader, sample, &result.block, &result.why);
        if (r == 0 && worker->maker)
                r = prepare_make(worker, sample, &result);
        if (r < 0)
                block_free(&result.block);
        result.error = r;
        window_finish(&run->window, worker->position, &result);
}

static void *prepare_worker_main(void *argument) {
        struct worker *worker = argument;

        while (window_take(&worker->run->window, &worker->position))
                prepare_work(worker);
        return NULL;
}

static uint32_t choose_n_workers(const struct run *run) {
        uint32_t n = run->options->n_workers;
        struct cpus cpus;

        if (n == 0) {
                cpus_find(&cpus);
                n = cpus_n_threads(&cpus);
                if (run->steps.packs_only && n < READERS_MIN)
                        n = READERS_MIN;
        }
        return n < PREPARE_WORKERS_MAX ? n : PREPARE_WORKERS_MAX;
}

static int start_worker(struct run *run, struct why *why) {
        struct worker *worker = &run->workers[run->n_workers];
        char name[THREAD_NAME_MAX + 1];
        int r;

        worker->run = run;
        if (!run->steps.packs_only) {
                r = maker_new(&run->steps, &worker->maker, why);
                if (r < 0)
                        return r;
        }
        snprintf(name, sizeof(name), "prepare-%u", run->n_workers);
        r = thread_start(&worker->thread, name, prepare_worker_main, worker);
        if (r < 0) {
                maker_free(TAKE_PTR(worker->maker));
                return why_errno(why, r, "cannot start a thread that prepares samples");
        }
        run->n_workers++;
        return 0;
}

/* A limit on threads may leave us with fewer than we wanted; one is enough. */
static int prepare_start_workers(struct run *run, struct why *why) {
        uint32_t n = choose_n_workers(run);
        int r = 0;

        while (run->n_workers < n && r == 0)
                r = start_worker(run, why);
        return run->n_workers > 0 ? 0 : r;
}

static void stop_workers(struct run *run) {
        window_stop(&run->window);
        for (uint32_t i = 0; i < run->n_workers; i++) {
                thread_join(run->workers[i].thread);
                maker_free(run->workers[i].maker);
        }
}

/* ---- the packer: a shard ------------------------------------------------------------------------------------- */

static void prepare_tell_progress(struct run *run, bool is_end) {
        uint64_t now = clock_now_ns();

        if (!run->options->progress || (!is_end && now - run->told_ns < PROGRESS_NS))
                return;
        run->told_ns = now;
        run->options->progress(run->options->userdata, run->report.n_samples, run->n_total);
}

static int wait_next(struct run *run, struct window_result **ret_result) {
        for (;;) {
                if (prepare_is_cancelled(run))
                        return -ECANCELED;
                *ret_result = window_next(&run->window, CANCEL_MS);
                if (*ret_result)
                        return 0;
                prepare_tell_progress(run, false);
        }
}

/* `path` may be long, and the reason is what counts. */
static void note_kept(struct run *run, const char *path, const struct why *why) {
        if (run->report.n_kept_as_is++ == 0)
                why_set(&run->report.first_kept, 0, "%s: %s", path, why->text);
}

static int pack_sample(struct run *run, struct shard_writer *writer, uint64_t sample, struct why *why) {
        const struct source *index = run->options->index;
        struct window_result *result;
        char path[INDEX_PATH_SIZE];
        int r;

        r = wait_next(run, &result);
        if (r < 0)
                return r;
        if (result->error < 0) {
                if (why)
                        *why = result->why;
                return result->error;
        }
        source_name(index, sample, path);
        r = shard_writer_add(writer, path, index_label(index, sample), result->block.bytes, result->n_bytes, why);
        if (r < 0)
                return r;
        if (result->is_kept)
                note_kept(run, path, &result->why);
        run->report.n_samples++;
        window_packed(&run->window);
        prepare_tell_progress(run, false);
        return 0;
}

static int fill_shard(struct run *run, const struct shard_run *shard, int fd, struct why *why) {
        struct shard_writer *writer = NULL;
        int r;

        r = shard_writer_new(fd, run->class_names, run->options->index->n_classes, &writer, why);
        for (uint64_t i = 0; i < shard->n_samples && r == 0; i++)
                r = pack_sample(run, writer, shard->first_sample + i, why);
        if (r == 0)
                r = shard_writer_finish(writer, why);
        shard_writer_free(writer);
        return r;
}

/* Under another name, whole and on the disk before it gets its own. What an earlier run left half-made goes. */
static int make_shard(struct run *run, const struct shard_run *shard, struct why *why) {
        _cleanup_(closep) int fd = -1;
        int out_fd = run->options->out_fd, r;
        char name[32], part[PART_NAME_SIZE];

        shard_name(shard->idx_shard, name);
        snprintf(part, sizeof(part), "%s" PART_SUFFIX, name);
        if (unlinkat(out_fd, part, 0) < 0 && errno != ENOENT)
                return why_errno(why, -errno, "cannot remove %s, which an earlier run left", part);
        fd = openat(out_fd, part, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
                return why_errno(why, -errno, "cannot make %s", part);
        r = fill_shard(run, shard, fd, why);
        if (r == 0 && renameat(out_fd, part, out_fd, name) < 0)
                r = why_errno(why, -errno, "cannot rename %s to %s", part, name);
        if (r < 0)
                unlinkat(out_fd, part, 0);
        return r;
}

/* ---- all of them --------------------------------------------------------------------------------------------- */

/* Is this shard there, as an earlier run has left it? Only what is whole has this name. */
static bool prepare_is_whole(const struct run *run, const struct shard_run *shard) {
        struct stat status;
        char name[32];

        shard_name(shard->idx_shard, name);
        return fstatat(run->options->out_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
}

/* Leaves the shards that are to be made in the list. Returns how many samples they have. */
static uint64_t skip_whole(struct run *run) {
        struct shards *shards = &run->shards;
        uint64_t n_left = 0, n_positions = 0;

        for (uint64_t i = 0; i < shards->n_runs; i++) {
                struct shard_run shard = shards->runs[i];

                run->n_total += shard.n_samples;
                if (prepare_is_whole(run, &shard)) {
                        run->report.n_samples += shard.n_samples;
                        continue;
                }
                shard.first_position = n_positions;
                n_positions += shard.n_samples;
                shards->runs[n_left++] = shard;
        }
        shards->n_runs = n_left;
        return n_positions;
}

/* The names of whole shards to the disk. `out_fd` may be an O_PATH descriptor. */
static int sync_folder(const struct run *run, struct why *why) {
        _cleanup_(closep) int fd = openat(run->options->out_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0 || fsync(fd) < 0)
                return why_errno(why, -errno, "cannot sync the folder of the shards");
        return 0;
}

static int prepare_make_shards(struct run *run, struct why *why) {
        int r = 0;

        for (uint64_t i = 0; i < run->shards.n_runs && r == 0; i++)
                r = make_shard(run, &run->shards.runs[i], why);
        return r < 0 ? r : sync_folder(run, why);
}

static int prepare_list_classes(struct run *run) {
        uint32_t n = run->options->index->n_classes;

        run->class_names = calloc(n ? n : 1, sizeof(*run->class_names));
        if (!run->class_names)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                run->class_names[i] = source_class_name(run->options->index, i);
        return 0;
}

static int prepare_prepare(struct run *run, struct why *why) {
        const struct prepare_options *options = run->options;
        const struct format *format;
        int r;

        r = format_find(options->index->format, &format, why);
        if (r < 0)
                return r;
        if (!index_has_labels(options->index))
                return why_set(why, -ENOTSUP, "samples of the format %s cannot be prepared; those of imagefolder can",
                               options->index->format);
        if (index_n_fields(options->index) != 1)
                return why_set(why, -ENOTSUP, "samples of %u fields cannot be prepared; pictures have one",
                               index_n_fields(options->index));
        if (format->is_prepared)
                return why_set(why, -ENOTSUP, "the dataset is packed already; prepare what it was packed from");
        r = steps_parse(options->steps, &run->steps, why);
        if (r < 0)
                return r;
        r = prepare_list_classes(run);
        if (r == 0)
                r = shards_plan(options->index, options->shard_bytes, options->node, options->n_nodes, &run->shards);
        if (r == 0)
                r = window_init(&run->window, skip_whole(run));
        if (r < 0)
                return why_set(why, r, "no memory for preparing a dataset of %" PRIu64 " samples",
                               options->index->n_samples);
        r = prepare_start_workers(run, why);
        if (r == 0)
                r = prepare_make_shards(run, why);
        stop_workers(run);
        window_fini(&run->window);
        return r;
}

int prepare_run(const struct prepare_options *options, struct prepare_report *ret_report, struct why *why) {
        struct run *run = calloc(1, sizeof(*run));
        int r;

        if (!run)
                return why_set(why, -ENOMEM, "no memory for preparing a dataset");
        run->options = options;
        run->reader = (struct sample_reader){
                .index = options->index,
                .root_fd = options->root_fd,
                .spare_fd = options->out_fd,
                .cancel = options->cancel,
        };
        r = prepare_prepare(run, why);
        if (r == 0) {
                prepare_tell_progress(run, true);
                *ret_report = run->report;
        }
        shards_fini(&run->shards);
        free(run->class_names);
        free(run);
        return r;
}
