#include "daemon/pipeline/feed_make.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/base/work/crew.h"
#include "daemon/collate/mix/mixing.h"
#include "daemon/collate/packing.h"
#include "daemon/data/growth.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/pipeline_rows.h"
#include "daemon/pipeline/replay/replay.h"
#include "daemon/pipeline/task.h"
#include "daemon/pipeline/workers/batch_function.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/amounts.h"

/* Is it read for this field? All views of a field, and all parts that name it, have it from one read. */
static bool reads_field(const struct program *program, uint32_t idx_field) {
        const struct codec *codec = program_codec(program, idx_field);

        return codec_is_stored(codec) && !codec_is_again(codec);
}

/* May a sample fail after one of its fields has been served, because others come with later reads? */
static bool has_several_reads(const struct feed_options *options) {
        for (uint32_t k = 0; k < programs_n_parts(options->programs); k++) {
                const struct program *program = programs_part(options->programs, k);
                uint32_t n_stored = 0;

                for (uint32_t i = 0; i < program_n_fields(program); i++)
                        n_stored += reads_field(program, i);
                if (n_stored > 1 && programs_source(options->programs, k)->has_several_files)
                        return true;
        }
        return false;
}

/* A process may end over a sample, or a function fail, when all its fields have been served: it is served again then.
 */
static bool has_functions(const struct program *program) {
        for (uint32_t i = 0; i < program_n_fields(program); i++)
                if (program_python(program, i))
                        return true;
        return false;
}

/* A cell may end over a field that it has opened without an error. */
static bool feed_is_for_cells(const struct programs *programs, uint32_t idx_field) {
        for (uint32_t k = 0; k < programs_n_parts(programs); k++)
                if (codec_interprets(program_codec(programs_part(programs, k), idx_field)))
                        return true;
        return false;
}

/* The form of each field, as its codec says, and from that the slots of the ring. */
static int feed_plan_layout(struct feed *feed, const struct feed_options *options, const struct feed_memory *memory,
                            struct why *why) {
        const struct job_terms *terms = &options->job->terms;
        const struct codec_terms codec_terms = {
                .batch_size = feed->batch_samples,
                .may_repeat = terms->on_error == ON_ERROR_SUBSTITUTE || terms->repeats ||
                              dlp_epoch_may_repeat(&feed->whole.terms),
                .max_pixels = memory->max_pixels,
        };
        struct layout_limits limits = {
                .batch_size = feed->batch_samples,
                .n_rows = terms->batch_size,
                .n_slots = options->n_slots,
                .memory_limit = memory->budget->limit_bytes,
                .is_spread = has_several_reads(options) || has_functions(programs_first(options->programs)),
        };
        struct recipe_work work = { .most = memory->max_step_pixels };
        struct field_form forms[DLP_TENSORS_MAX];
        uint32_t n_fields = program_n_fields(programs_first(options->programs));
        int r;

        for (uint32_t i = 0; i < n_fields; i++) {
                r = programs_form(options->programs, i, &codec_terms, &forms[i], why);
                if (r == 0)
                        r = codec_add_work(program_codec(programs_first(options->programs), i), &work, why);
                if (r < 0)
                        return r;
                if (memory->isolation && forms[i].how == COLLATE_RAGGED && feed_is_for_cells(options->programs, i))
                        limits.is_spread = true;
        }
        r = layout_plan(forms, n_fields, &limits, &feed->layout, why);
        return r < 0 ? r : batch_function_check(options->programs, feed->batch_samples, memory->large_bytes, why);
}

static int feed_make_ring(struct feed *feed, const struct feed_options *options, const struct feed_memory *memory,
                          struct why *why) {
        struct ring_options ring_options = {
                .geometry = {
                        .n_slots = options->n_slots,
                        .batch_size = feed->batch_samples,
                        .slot_bytes = feed->layout.slot_bytes,
                        .n_ragged = feed->layout.n_ragged,
                },
                .memory = {
                        .huge_pages = memory->huge_pages,
                        .lock = memory->lock,
                        .numa_node = options->numa_node,
                        .sparse = feed->layout.is_sparse,
                        .n_threads = memory->n_threads,
                },
                .budget = memory->budget,
                .held = memory->held,
                .rank = options->rank,
                .waits = &options->job->waits,
        };

        snprintf(ring_options.whose, sizeof(ring_options.whose), "rank %u of job \"%s\"", options->rank,
                 options->job->name);
        if (getrandom(&ring_options.generation, sizeof(ring_options.generation), 0) < 0)
                return why_errno(why, -errno, "ring");
        return ring_new(&ring_options, &feed->ring, why);
}

static int isolate(struct feed *feed, const struct feed_options *options, const struct feed_memory *memory,
                   struct why *why) {
        if (!memory->isolation)
                return 0;
        feed->large.isolation = memory->isolation;
        return isolated_feed_new(memory->isolation, feed->ring, options->programs, &feed->isolated, why);
}

static bool feed_is_packed(const struct feed *feed) {
        for (uint32_t i = 0; i < feed->layout.n_fields; i++)
                if (feed->layout.fields[i].form.how == COLLATE_PACKED)
                        return true;
        return false;
}

/* Where samples are mixed with one another, a batch has room for what it draws. */
static int draws_init(struct feed *feed) {
        uint32_t n = mixing_n_draws(&feed->layout);

        for (uint32_t i = 0; i < feed->ring->n_slots && n > 0; i++) {
                feed->batches[i].draws = calloc(n, sizeof(struct mix_draw));
                if (!feed->batches[i].draws)
                        return -ENOMEM;
        }
        return 0;
}

/* Where units have several samples, a batch keeps which positions it holds. */
static int positions_init(struct feed *feed) {
        const struct sampling *sampling = feed->job->sampling;

        if (!sampling || !dlp_order_text_grouper(&sampling->text))
                return 0;
        for (uint32_t i = 0; i < feed->ring->n_slots; i++) {
                feed->batches[i].positions = calloc(feed->batch_samples, sizeof(uint64_t));
                if (!feed->batches[i].positions)
                        return -ENOMEM;
                if (!feed_is_packed(feed))
                        continue;
                feed->batches[i].packs = calloc(feed->batch_samples, sizeof(struct pack_place));
                if (!feed->batches[i].packs)
                        return -ENOMEM;
                feed->batches[i].collating.packs = feed->batches[i].packs;
        }
        return 0;
}

/* Where functions get whole batches, a batch keeps which samples it holds. */
static int samples_init(struct feed *feed) {
        for (uint32_t i = 0; i < feed->ring->n_slots && feed->layout.has_whole; i++) {
                feed->batches[i].samples = calloc(feed->batch_samples, sizeof(struct batch_sample));
                if (!feed->batches[i].samples)
                        return -ENOMEM;
        }
        return 0;
}

static void free_positions(struct batch *batch) {
        free(batch->samples);
        free(batch->draws);
        free(batch->positions);
        free(batch->packs);
}

static void positions_fini(struct feed *feed) {
        for (uint32_t i = 0; i < DLP_SLOTS_MAX; i++)
                free_positions(&feed->batches[i]);
}

static void batches_init(struct feed *feed) {
        for (uint32_t i = 0; i < DLP_SLOTS_MAX; i++) {
                struct batch *batch = &feed->batches[i];

                batch->feed = feed;
                pthread_mutex_init(&batch->lock, NULL);
                if (i >= feed->ring->n_slots)
                        continue;
                batch->slot = &feed->ring->slots[i];
                collating_init(&batch->collating, &feed->layout, batch->slot->base, batch->slot->places);
        }
}

#define LARGE_AT_ONCE 8u  /* large files of a feed that are read at the same time, */
#define LARGE_SHARE   16u /* if all of them take at most 1/16 of memory_limit; else fewer */
#define LARGE_MAX     4u  /* one file may take at most 1/4 of it */

/* Of the fields that the program reads. The longest read of all fields is known; only if it is too long for a task's
 * own buffer does it matter that the program's may be shorter. */
static uint64_t longest_read(const struct program *program, const struct source *source) {
        uint32_t fields[DLP_TENSORS_MAX], n_fields = 0;

        if (source->max_span + READER_ALIGN <= TASK_BUFFER_BYTES)
                return source->max_span;
        for (uint32_t i = 0; i < program_n_fields(program); i++)
                if (reads_field(program, i))
                        fields[n_fields++] = codec_field(program_codec(program, i));
        return source_longest_read(source, fields, n_fields);
}

static uint64_t longest_of_all(const struct programs *programs) {
        uint64_t longest = 0;

        for (uint32_t k = 0; k < programs_n_parts(programs); k++) {
                uint64_t one = longest_read(programs_part(programs, k), programs_source(programs, k));

                longest = one > longest ? one : longest;
        }
        return longest;
}

static int refuse_largest(uint64_t longest_bytes, uint64_t most_bytes, struct why *why) {
        char longest[AMOUNT_TEXT_MAX], most[AMOUNT_TEXT_MAX];

        format_compared(longest, longest_bytes, most, most_bytes);
        return why_set(why, -EFBIG,
                       "dataset: its largest sample has %s in the fields asked for, %s can be read (a quarter of "
                       "memory_limit): raise memory_limit, or ask for on_error \"skip\" or \"substitute\"",
                       longest, most);
}

/* Reserves memory for the largest file of the dataset, or for several. A task that finds none free waits until another
 * one gives its own back. */
static int feed_reserve_large(struct feed *feed, uint64_t longest, struct why *why) {
        const struct job_terms *terms = &feed->job->terms;
        uint64_t limit = feed->budget->limit_bytes, cost;
        uint64_t n_bytes = (longest + READER_ALIGN) / READER_ALIGN * READER_ALIGN;
        uint32_t n = terms->batch_size < LARGE_AT_ONCE ? terms->batch_size : LARGE_AT_ONCE;
        int r;

        feed->large.budget = &feed->large_budget;
        feed->large_max = limit / LARGE_MAX;
        if (n_bytes <= TASK_BUFFER_BYTES)
                return 0;
        if (n_bytes > feed->large_max) {
                if (terms->on_error == ON_ERROR_FAIL)
                        return refuse_largest(longest, feed->large_max, why);
                n_bytes = feed->large_max; /* longer reads will be damaged samples (task_buffer()) */
        }
        cost = large_buffer_cost(n_bytes);
        while (n > 1 && n * cost > limit / LARGE_SHARE)
                n /= 2;
        r = budget_reserve(feed->budget, n * cost, "reading the largest files", why);
        if (r < 0 && n > 1) { /* one is enough to get on; several only keep the disk busier */
                n = 1;
                r = budget_reserve(feed->budget, cost, "reading the largest file", why);
        }
        if (r == 0)
                feed->large_budget.limit_bytes = n * cost;
        return r;
}

/* Reads the sampler's columns, and says how many samples a batch has at most. */
static int load_sampling(struct feed *feed, const struct feed_memory *memory, struct why *why) {
        const struct job_terms *terms = &feed->job->terms;
        struct sampling *sampling = feed->job->sampling;
        uint64_t n = terms->batch_size, n_unit;
        int r;

        feed->batch_samples = terms->batch_size;
        if (!sampling)
                return 0;
        r = sampling_load(sampling, dataset_source(feed->dataset->dataset), memory->budget, why);
        if (r < 0)
                return r;
        n_unit = sampling_unit_max(sampling, terms->batch_size);
        if (terms->deals_batches)
                n = n_unit;
        else if (__builtin_mul_overflow(n, n_unit, &n))
                n = UINT64_MAX;
        if (n > DLP_BATCH_MAX)
                return why_set(why, -EOVERFLOW,
                               "sampler: a batch may have up to %llu samples; at most %u are possible. Ask for smaller "
                               "batches, or limit the samples of each",
                               (unsigned long long)n, DLP_BATCH_MAX);
        feed->batch_samples = (uint32_t)n;
        return 0;
}

#define ERRAND_SAMPLES (1u << 20)    /* to look at each of fewer takes some milliseconds */
#define ERRAND_TICK_NS 1000000000ull /* meanwhile there is nothing to do */

struct looking {
        struct feed *feed;
        const struct feed_options *options;
        const struct feed_memory *memory;
        uint64_t longest; /* of reads */
        int result;
        struct why *why;
};

static void feed_look(void *userdata) {
        struct looking *looking = userdata;

        looking->result = load_sampling(looking->feed, looking->memory, looking->why);
        if (looking->result == 0)
                looking->result = feed_plan_layout(looking->feed, looking->options, looking->memory, looking->why);
        if (looking->result == 0)
                looking->longest = longest_of_all(looking->options->programs);
}

/* What was not looked at to the end is not used. */
static void look_as_errand(void *userdata) {
        struct looking *looking = userdata;

        errand_begin(&looking->feed->job->household->user->errands, looking->options->is_unwanted);
        feed_look(looking);
        if (looking->result == 0 && errand_look() < 0)
                looking->result = why_errno(looking->why, -ECANCELED, "stream");
        errand_end();
}

static void nothing(void *userdata) {
        (void)userdata;
}

/* What may look at each sample is work of the user who asks for it. It has a thread of its own, which ends with it: one
 * that may not lower its nice value again would leave it to all that it starts, such as the making of an order. */
static int look_at_samples(struct looking *looking) {
        const struct feed *feed = looking->feed;
        int r;

        if (!feed->job->sampling && feed->n_samples < ERRAND_SAMPLES) {
                feed_look(looking);
                return looking->result;
        }
        r = crew_run("errand", 1, look_as_errand, ERRAND_TICK_NS, nothing, looking);
        return r < 0 ? why_errno(looking->why, r, "stream") : looking->result;
}

/* A stream that has ended is told to the client before it asks for its first batch. */
static void learn_at_once(struct feed *feed) {
        const struct growth *growth = dataset_source(feed->dataset->dataset)->growth;
        uint64_t n_samples;
        bool is_over;

        if (!growth)
                return;
        n_samples = growth_n_samples(growth, &is_over);
        if (is_over)
                feed_learn_length(feed, n_samples);
}

static int make_desk(struct feed *feed, const struct feed_options *options, const struct feed_memory *memory,
                     struct why *why) {
        int r;

        feed->programs = options->programs;
        r = desk_new(feed, memory->ready, &feed->desk);
        return r < 0 ? why_errno(why, r, "stream") : 0;
}

static bool may_hang(struct dataset *dataset) {
        for (uint32_t k = 0; k < dataset_n_parts(dataset); k++)
                if (disk_may_hang(dataset_root_fd(dataset_part(dataset, k))))
                        return true;
        return false;
}

int feed_new(const struct feed_options *options, const struct feed_memory *memory, struct feed **ret_feed,
             struct why *why) {
        const struct job_terms *terms = &options->job->terms;
        const struct source *index = dataset_source(options->dataset->dataset);
        struct dlp_epoch_terms epoch;
        struct order_spec spec;
        struct looking looking;
        struct feed *feed;
        int r;

        feed = aligned_alloc(_Alignof(struct feed), sizeof(*feed));
        if (!feed)
                return why_errno(why, -ENOMEM, "stream");
        memset(feed, 0, sizeof(*feed));
        feed->wake_socket = -1;
        feed->release_fd = eventfd(0, EFD_CLOEXEC);
        if (feed->release_fd < 0) {
                r = why_errno(why, -errno, "stream: eventfd");
                free(feed);
                return r;
        }
        r = dataset_hold(options->dataset->dataset, why); /* before its folder is used */
        if (r < 0) {
                close(feed->release_fd);
                free(feed);
                return r;
        }

        TAILQ_INIT(&feed->parked);
        feed->budget = memory->budget;
        STAILQ_INIT(&feed->large_waiting);
        feed->job = options->job;
        feed->rank = options->rank;
        feed->dataset = options->dataset;
        feed->may_hang = may_hang(options->dataset->dataset);
        feed->n_samples = feed->length = index->n_samples;
        epoch = job_epoch_terms(terms, feed->n_samples);
        feed->whole = dlp_epoch_plan_make(&epoch, options->rank, 0);
        feed->end_epoch = options->n_epochs && options->n_epochs <= DLP_EPOCH_MAX - options->first.epoch
                                  ? options->first.epoch + options->n_epochs
                                  : DLP_EPOCH_MAX + 1;
        feed_go_to(feed, &options->first);

        looking = (struct looking){ .feed = feed, .options = options, .memory = memory, .why = why };
        r = look_at_samples(&looking);
        spec = feed_order_spec(feed, feed->epoch);
        if (r == 0) /* once for each job: so the end of an epoch never needs memory that is not available */
                r = job_reserve_orders(options->job, memory->budget, 2 * order_table_bytes(&spec), why);
        if (r == 0 && !feed->is_ended) { /* early; others' epochs may have both tables */
                r = order_table_get(memory->tables, &spec, &feed->order, why);
                if (r == -EAGAIN)
                        r = 0;
        }
        feed->order_epoch = feed->epoch;
        if (r == 0)
                r = feed_reserve_large(feed, looking.longest, why);
        if (r == 0)
                r = make_desk(feed, options, memory, why);
        if (r == 0)
                r = feed_make_ring(feed, options, memory, why);
        if (r == 0) {
                r = isolate(feed, options, memory, why);
                if (r == 0 && (draws_init(feed) < 0 || positions_init(feed) < 0 || samples_init(feed) < 0)) {
                        positions_fini(feed);
                        r = why_errno(why, -ENOMEM, "stream");
                }
                if (r < 0) {
                        isolated_feed_free(feed->isolated);
                        ring_free(feed->ring);
                }
        }
        if (r < 0) {
                if (feed->order)
                        order_table_put(feed->order);
                budget_release(feed->budget, feed->large_budget.limit_bytes);
                dataset_leave(options->dataset->dataset);
                close(feed->release_fd);
                desk_free(feed->desk);
                free(feed);
                return r;
        }
        batches_init(feed);

        feed->has_rows = rows_are_mapped(feed);
        feed->wake_socket = options->wake_socket;
        learn_at_once(feed);
        *ret_feed = feed;
        return 0;
}

void feed_free(struct feed *feed) {
        if (!feed)
                return;
        for (uint32_t i = 0; i < DLP_SLOTS_MAX; i++) {
                if (feed->batches[i].order)
                        order_table_put(feed->batches[i].order);
                pthread_mutex_destroy(&feed->batches[i].lock);
                if (feed->batches[i].slot)
                        collating_fini(&feed->batches[i].collating);
        }
        positions_fini(feed);
        replay_fini(feed);
        desk_free(feed->desk);
        if (feed->order)
                order_table_put(feed->order);
        if (feed->next_order)
                order_table_put(feed->next_order);
        large_buffers_trim(&feed->large);
        budget_release(feed->budget, feed->large_budget.limit_bytes);
        isolated_feed_free(feed->isolated);
        ring_free(feed->ring);
        programs_free(feed->programs);
        dataset_leave(feed->dataset->dataset);
        catalog_dataset_unref(feed->dataset);
        job_unref(feed->job);
        close(feed->release_fd);
        if (feed->wake_socket >= 0)
                close(feed->wake_socket);
        free(feed);
}
