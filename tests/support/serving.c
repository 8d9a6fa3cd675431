#include "tests/support/serving.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/order/tdperm.h"
#include "proto/ring.h"

#define PATIENCE_MS 60000 /* far above anything in here, also under a sanitizer on a busy machine */

void nap_ms(unsigned ms) {
        usleep(ms * 1000);
}

/* ---- pictures ------------------------------------------------------------------------------------------------ */

void serving_path(const struct serving_options *options, uint32_t i, char path[64]) {
        snprintf(path, 64, "photos/class_%03u/%08u.png",
                 (uint32_t)((uint64_t)i * options->n_classes / options->n_samples), i);
}

void write_bytes(const struct tree *tree, const char *path, const void *bytes, size_t n_bytes) {
        int fd;

        tree_file(tree, path, "");
        fd = openat(tree->fd, path, O_WRONLY | O_TRUNC | O_CLOEXEC);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, bytes, n_bytes), (ssize_t)n_bytes);
        close(fd);
}

void write_picture(const struct tree *tree, const char *path, uint32_t identity, uint32_t width, uint32_t height) {
        size_t n_bytes = (size_t)width * height * 3;
        uint8_t *pixels = malloc(n_bytes);
        struct spng_ihdr header = {
                .width = width, .height = height, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_TRUECOLOR
        };
        spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
        size_t n_png;
        int error;
        void *bytes;

        ck_assert_ptr_nonnull(pixels);
        for (size_t i = 0; i < n_bytes / 3; i++) {
                pixels[3 * i] = (uint8_t)identity;
                pixels[3 * i + 1] = (uint8_t)(identity >> 8);
                pixels[3 * i + 2] = (uint8_t)i;
        }
        spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
        spng_set_option(png, SPNG_IMG_COMPRESSION_LEVEL, 1);
        spng_set_ihdr(png, &header);
        ck_assert_int_eq(spng_encode_image(png, pixels, n_bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
        bytes = spng_get_png_buffer(png, &n_png, &error);
        ck_assert_ptr_nonnull(bytes);
        write_bytes(tree, path, bytes, n_png);
        free(bytes);
        free(pixels);
        spng_ctx_free(png);
}

void cut_file(const struct tree *tree, const char *path, uint32_t n_bytes) {
        int fd = openat(tree->fd, path, O_RDWR | O_CLOEXEC);
        off_t length;

        ck_assert_int_ge(fd, 0);
        length = lseek(fd, 0, SEEK_END);
        ck_assert_int_gt(length, n_bytes);
        ck_assert_int_eq(ftruncate(fd, length - n_bytes), 0);
        close(fd);
}

/* ---- the daemon's side --------------------------------------------------------------------------------------- */

static void on_broken(void *userdata, struct feed *feed) {
        struct serving *serving = userdata;

        (void)feed;
        atomic_fetch_add(&serving->n_broken, 1);
}

static void make_folder(struct serving *serving) {
        char path[64];

        for (uint32_t i = 0; i < serving->options.n_samples; i++) {
                serving_path(&serving->options, i, path);
                write_picture(&serving->tree, path, i, PICTURE_SIDE, PICTURE_SIDE);
        }
        if (serving->options.spoil)
                serving->options.spoil(&serving->options, &serving->tree);
        for (uint32_t i = 0; i < serving->options.n_samples; i++) {
                serving_path(&serving->options, i, path);
                path[strlen("photos/class_000")] = '\0';
                tree_age(&serving->tree, path);
        }
        tree_age(&serving->tree, "photos");
}

static void open_dataset(struct serving *serving) {
        char path[128], index_dir[128];
        struct catalog_wish wish = { .name = "photos", .path = path, .format = "imagefolder" };
        struct why why = { 0 };
        int r = -EAGAIN;

        snprintf(path, sizeof(path), "%s/photos", serving->tree.root);
        snprintf(index_dir, sizeof(index_dir), "%s/index", serving->tree.root);
        ck_assert_int_eq(background_new(&serving->background), 0);
        ck_assert_int_eq(catalog_init(&serving->catalog, serving->background, index_dir, NULL), 0);
        ck_assert_int_eq(catalog_configure(&serving->catalog, &wish, 1, &why), 0);
        for (int i = 0; i < PATIENCE_MS / 10 && r == -EAGAIN; i++) {
                struct pollfd poll_fd = { .fd = background_fd(serving->background), .events = POLLIN };

                background_reap(serving->background);
                r = catalog_get(&serving->catalog, "photos", &serving->dataset, &why);
                if (r == -EAGAIN)
                        poll(&poll_fd, 1, 10);
        }
        if (r < 0)
                ck_abort_msg("%s", why.text);
        ck_assert_uint_eq(dataset_source(serving->dataset->dataset)->n_samples, serving->options.n_samples);
}

static void configure(struct serving *serving) {
        const struct serving_options *options = &serving->options;
        struct settings *settings = &serving->settings;
        struct why why;

        settings->workers = options->n_workers ? options->n_workers : 2;
        settings->read_depth = options->n_tasks ? options->n_tasks : 16;
        settings->reader = options->reader ? strdup(options->reader) : NULL;
        settings->outage_timeout = options->outage_timeout ? options->outage_timeout : 1000000000;
        settings->isolation = options->is_isolated ? strdup("process") : NULL;
        settings->isolation_timeout = 1;
        settings->memory_limit = serving->budget.limit_bytes;
        settings->huge_pages = strdup("no");
        settings->lock_memory = strdup("no");
        ck_assert_int_eq(settings_fill(SETTINGS, N_SETTINGS, settings, &why), 0);
}

void serving_start(struct serving *serving, const struct serving_options *options) {
        struct pipeline_options pipeline_options = {
                .settings = &serving->settings,
                .cells = &serving->cells,
                .budget = &serving->budget,
                .broken = on_broken,
                .userdata = serving,
        };
        struct why why;

        *serving = (struct serving){ .options = *options };
        serving->budget.limit_bytes = options->memory_limit ? options->memory_limit : 1ull << 30;
        configure(serving);
        cells_init(&serving->cells, "/proc/self/exe");
        LIST_INIT(&serving->jobs);
        LIST_INIT(&serving->users);
        tree_make(&serving->tree);
        tree_dir(&serving->tree, "index");
        make_folder(serving);
        open_dataset(serving);
        if (pipeline_start(&pipeline_options, &serving->pipeline, &why) < 0)
                ck_abort_msg("%s", why.text);
        serving->used_bytes = budget_used(&serving->budget);
}

void serving_settle(struct serving *serving) {
        const struct lent_list *held = pipeline_held(serving->pipeline);

        for (int i = 0; budget_used(&serving->budget) != serving->used_bytes + atomic_load(&held->n_bytes); i++) {
                ck_assert_msg(i < PATIENCE_MS / 2, "%llu bytes of the budget did not come back",
                              (unsigned long long)(budget_used(&serving->budget) - serving->used_bytes));
                nap_ms(2);
                lent_look(pipeline_held(serving->pipeline));
        }
}

void serving_stop(struct serving *serving) {
        ck_assert(LIST_EMPTY(&serving->jobs));
        ck_assert_int_eq(pipeline_stop(serving->pipeline), 0);
        ck_assert_uint_eq(budget_used(&serving->budget), 0);
        ck_assert_uint_eq(atomic_load(&serving->dataset->refs), 2); /* the catalog's and ours */
        catalog_dataset_unref(serving->dataset);
        background_stop(serving->background);
        catalog_fini(&serving->catalog);
        background_free(serving->background);
        users_fini(&serving->users);
        settings_fini(&serving->settings);
        tree_remove(&serving->tree);
}

/* ---- ranks --------------------------------------------------------------------------------------------------- */

static int rank_join(struct rank *rank, struct programs *programs, struct why *why) {
        const struct rank_options *options = &rank->options;
        struct job_terms terms = {
                .world = options->world,
                .batch_size = options->batch_size,
                .seed = options->seed,
                .shuffle = options->shuffle,
                .order = options->order,
                .drop_last = options->drop_last,
                .partition = options->partition,
                .on_error = options->on_error,
                .max_errors = options->max_errors,
                .n_samples = rank->serving->options.n_samples,
                .dataset = "photos",
        };

        snprintf(terms.pipeline, sizeof(terms.pipeline), "%s", program_text(programs_first(programs)));
        const char *name = options->job ? options->job : "job";

        return job_join(&rank->serving->jobs, job_find(&rank->serving->jobs, getuid(), name),
                        household_get(user_get(&rank->serving->users, getuid()), 0), name, &terms, NULL, options->rank,
                        1000 + options->rank, &rank->job, &rank->member, why);
}

static void rank_map(struct rank *rank) {
        struct ring *ring = rank->feed->ring;

        rank->control_bytes = ring->control_segment.n_bytes;
        rank->payload_bytes = ring->payload_segment.n_bytes;
        rank->control = mmap(NULL, rank->control_bytes, PROT_READ, MAP_SHARED, ring->control_segment.lent_fd, 0);
        rank->payload = mmap(NULL, rank->payload_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                             ring->payload_segment.lent_fd, 0);
        ck_assert_ptr_ne(rank->control, MAP_FAILED);
        ck_assert_ptr_ne(rank->payload, MAP_FAILED);
        ck_assert_int_eq(dlp_layout_check(rank->control, rank->control_bytes, rank->payload_bytes), 0);
        rank->release_fd = dup(rank->feed->release_fd);
        ring_was_sent(ring);
}

int rank_make(struct rank *rank, struct serving *serving, const struct rank_options *options, struct why *why) {
        struct cursor first = { .epoch = options->first_epoch,
                                .position = options->first_position,
                                .step = options->first_step };
        struct feed_options feed_options = {
                .rank = options->rank,
                .first = first,
                .n_epochs = options->n_epochs,
                .n_slots = options->n_slots ? options->n_slots : 4,
                .numa_node = -1,
        };
        int sockets[2], r;

        *rank = (struct rank){ .serving = serving, .options = *options, .cursor = first };
        r = programs_parse(options->pipeline ? options->pipeline : "center_crop(8)",
                           dataset_source(serving->dataset->dataset), NULL, &feed_options.programs, why);
        if (r < 0)
                return r;
        r = rank_join(rank, feed_options.programs, why);
        if (r < 0) {
                programs_free(feed_options.programs);
                return r;
        }
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
        feed_options.job = job_ref(rank->job);
        feed_options.dataset = catalog_dataset_ref(serving->dataset);
        feed_options.wake_socket = sockets[0];
        rank->socket = sockets[1];
        r = pipeline_make_feed(serving->pipeline, &feed_options, &rank->feed, why);
        if (r < 0) {
                job_unref(feed_options.job);
                catalog_dataset_unref(feed_options.dataset);
                programs_free(feed_options.programs);
                job_leave(rank->job, rank->member);
                close(sockets[0]);
                close(sockets[1]);
                return r;
        }
        rank_map(rank);
        return 0;
}

void rank_add(struct rank *rank) {
        pipeline_add(rank->serving->pipeline, rank->feed);
        pipeline_skip_touching(rank->serving->pipeline, rank->feed);
}

void rank_attach(struct rank *rank, struct serving *serving, const struct rank_options *options) {
        struct why why = { 0 };

        if (rank_make(rank, serving, options, &why) < 0)
                ck_abort_msg("%s", why.text);
        rank_add(rank);
}

void rank_remove(struct rank *rank) {
        pipeline_remove(rank->serving->pipeline, rank->feed);
        job_leave(rank->job, rank->member);
}

void rank_forget(struct rank *rank) {
        munmap((void *)(uintptr_t)rank->control, rank->control_bytes);
        munmap(rank->payload, rank->payload_bytes);
        close(rank->socket);
        close(rank->release_fd);
}

void rank_leave(struct rank *rank) {
        rank_remove(rank);
        rank_forget(rank);
}

static struct dlp_client_page *page_of(const struct rank *rank) {
        return (struct dlp_client_page *)rank->payload;
}

static bool wait_for(struct rank *rank, uint64_t deadline_ns) {
        while (dlp_ring_wait_begin(rank->control, page_of(rank), rank->sequence)) {
                struct pollfd poll_fd = { .fd = rank->socket, .events = POLLIN };
                uint64_t now_ns = clock_now_ns();
                uint8_t wake;

                if (now_ns >= deadline_ns || poll(&poll_fd, 1, (int)((deadline_ns - now_ns) / 1000000 + 1)) == 0) {
                        atomic_store(&page_of(rank)->waiting, DLP_WAKE_NOBODY);
                        return dlp_ring_ready(rank->control, rank->sequence);
                }
                ck_assert_int_eq(recv(rank->socket, &wake, 1, 0), 1);
                ck_assert_uint_eq(wake, 0);
        }
        atomic_store(&page_of(rank)->waiting, DLP_WAKE_NOBODY);
        return true;
}

static void fill_taken(const struct rank *rank, struct taken *taken) {
        const uint8_t *slot;

        taken->idx_slot = dlp_ring_slot(rank->control, rank->sequence);
        ck_assert_uint_lt(taken->idx_slot, rank->control->n_slots);
        taken->record = dlp_slot_record(rank->control, taken->idx_slot);
        taken->columns = dlp_columns(rank->control, taken->idx_slot);
        taken->sequence = rank->sequence;
        ck_assert_uint_eq(taken->record->sequence, rank->sequence);
        slot = rank->payload + dlp_slot_offset(rank->control, taken->idx_slot);
        taken->images = slot + taken->record->tensors[0].offset;
        taken->labels = (const int64_t *)(slot + taken->record->tensors[1].offset);
}

bool rank_next(struct rank *rank, int timeout_ms, struct taken *ret_taken) {
        uint64_t deadline_ns = clock_now_ns() + (uint64_t)timeout_ms * 1000000;

        for (;;) {
                if (!dlp_ring_ready(rank->control, rank->sequence) && !wait_for(rank, deadline_ns))
                        return false;
                fill_taken(rank, ret_taken);
                dlp_ring_take(page_of(rank), rank->sequence++);
                if (ret_taken->record->stream == rank->number)
                        return true;
                rank_release(rank, ret_taken); /* left over from before a seek */
        }
}

void rank_release(struct rank *rank, const struct taken *taken) {
        uint64_t one = 1;

        if (dlp_ring_release(rank->control, page_of(rank), taken->sequence, taken->idx_slot))
                ck_assert_int_eq(write(rank->release_fd, &one, sizeof(one)), sizeof(one));
}

void rank_seek(struct rank *rank, const struct cursor *cursor) {
        rank->number = pipeline_seek(rank->serving->pipeline, rank->feed, cursor);
        rank->cursor = *cursor;
}

/* ---- what should have come ----------------------------------------------------------------------------------- */

static uint64_t begin_of(const struct rank *rank, uint64_t epoch) {
        return epoch == rank->cursor.epoch ? rank->cursor.position : 0;
}

uint64_t rank_samples(const struct rank *rank, uint64_t epoch) {
        const struct rank_options *options = &rank->options;

        return dlp_dealing_count(rank->serving->options.n_samples - begin_of(rank, epoch), options->world,
                                 options->rank, 1, options->partition);
}

uint64_t rank_batches(const struct rank *rank, uint64_t epoch) {
        uint64_t n = rank_samples(rank, epoch), size = rank->options.batch_size;

        return n / size + (!rank->options.drop_last && n % size > 0);
}

uint64_t expected_index(const struct rank *rank, uint64_t epoch, uint64_t idx_sample) {
        const struct rank_options *options = &rank->options;
        uint64_t n = rank->serving->options.n_samples, position, index;
        struct dlp_torch_random random;
        struct dlp_shuffle shuffle;
        struct dlp_tdperm tdperm;
        void *table;

        /* Not asked of the epoch plan: what is served shall be found right by another arithmetic than its own. */
        position = (begin_of(rank, epoch) + idx_sample * options->world + options->rank) % n;
        if (!options->shuffle)
                return position;
        if (options->order == DLP_ORDER_TDPERM) {
                dlp_tdperm_init(&tdperm, options->seed, epoch, 0, n);
                return dlp_tdperm_at(&tdperm, position);
        }
        table = calloc(n, dlp_shuffle_element_bytes(n));
        ck_assert_ptr_nonnull(table);
        dlp_torch_seed(&random, dlp_order_seed(options->seed, epoch));
        dlp_shuffle_init(&shuffle, &random, table, n, 0);
        ck_assert_uint_eq(dlp_shuffle_advance(&shuffle, n), n);
        index = dlp_shuffle_element(table, n, position);
        free(table);
        return index;
}

void check_picture(const struct taken *taken, uint32_t place, uint32_t identity) {
        const uint8_t *pixels = taken->images + (uint64_t)place * PICTURE_SIDE * PICTURE_SIDE * 3;

        for (uint32_t i = 0; i < PICTURE_SIDE * PICTURE_SIDE; i++) {
                ck_assert_uint_eq(pixels[3 * i], identity & 255);
                ck_assert_uint_eq(pixels[3 * i + 1], identity >> 8);
                ck_assert_uint_eq(pixels[3 * i + 2], i);
        }
}

/* A sample's three times lie one after the other between the batch's beginning and its end. */
void check_times(const struct dlp_slot_record *record) {
        uint64_t sum_ns = record->read_ns + record->queued_ns + record->decode_ns;

        ck_assert_uint_le(record->planned_ns, record->ready_ns);
        ck_assert_uint_gt(record->read_ns, 0);
        ck_assert_uint_gt(record->queued_ns, 0);
        ck_assert_uint_gt(record->decode_ns, 0);
        ck_assert_uint_le(sum_ns, record->n_planned * (record->ready_ns - record->planned_ns));
}

void rank_check(const struct rank *rank, const struct taken *taken, uint64_t epoch, uint64_t step) {
        const struct serving_options *serving = &rank->serving->options;
        uint64_t n_rest = rank_samples(rank, epoch) - step * rank->options.batch_size;

        ck_assert_msg(taken->record->status == DLP_BATCH_OK, "%s", taken->record->text);
        ck_assert_uint_eq(taken->record->epoch, epoch);
        ck_assert_uint_eq(taken->record->step, step);
        ck_assert_uint_eq(taken->record->n_samples,
                          n_rest < rank->options.batch_size ? n_rest : rank->options.batch_size);
        ck_assert_uint_eq(taken->record->n_errors, 0);
        ck_assert_uint_eq(taken->record->n_planned, taken->record->n_samples);
        ck_assert_uint_eq(taken->record->n_skipped, 0);
        check_times(taken->record);
        for (uint32_t i = 0; i < taken->record->n_samples; i++) {
                uint64_t index = expected_index(rank, epoch, step * rank->options.batch_size + i);

                ck_assert_int_eq(taken->columns.indices[i], (int64_t)index);
                ck_assert_int_eq(taken->columns.substitutes[i], -1);
                ck_assert_int_eq(taken->columns.idx_errors[i], -1);
                ck_assert_int_eq(taken->labels[i], (int64_t)(index * serving->n_classes / serving->n_samples));
                check_picture(taken, i, (uint32_t)index);
        }
}

void rank_eat_epoch(struct rank *rank, uint64_t epoch) {
        for (uint64_t step = epoch == rank->cursor.epoch ? rank->cursor.step : 0; step < rank_batches(rank, epoch);
             step++) {
                struct taken taken;

                ck_assert_msg(rank_next(rank, PATIENCE_MS, &taken), "epoch %llu step %llu did not come",
                              (unsigned long long)epoch, (unsigned long long)step);
                rank_check(rank, &taken, epoch, step);
                rank_release(rank, &taken);
        }
}
