/* tests/support/serving.h: the daemon's pipeline in the process of a test, and ranks that eat from it as a client does.
 *
 * Its dataset is a generated imagefolder of small PNGs. Picture i (in the order of the index) says so in each of its
 * pixels, so that a reorder, a loss or a duplicate is seen: red = i % 256, green = i / 256, blue = the pixel's place.
 * Its label is i * n_classes / n_samples. A rank maps both memories anew from their descriptors, the control page
 * read-only, and goes through proto/ring.h alone; it sleeps on its socket, so a lost wake-up ends the test. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/pipeline/pipeline.h"
#include "tests/support/tree.h"

#define PICTURE_SIDE 8u

struct serving_options {
        uint32_t n_samples, n_classes;
        uint32_t n_workers, n_tasks;
        uint32_t outage_timeout; /* seconds; 0: without end */
        uint64_t memory_limit;   /* bytes; 0: a GiB */
        bool is_isolated;        /* the program itself becomes the decoders' processes: cell_inside(); a second each */
        const char *reader;      /* NULL: "auto" */
        void (*spoil)(struct serving_options *options, const struct tree *tree); /* before the index is made */
};

struct serving {
        struct serving_options options;
        struct tree tree; /* photos/CLASS/NUMBER.png, index/ */
        struct settings settings;
        struct budget budget;
        struct cells cells;
        struct background *background;
        struct catalog catalog;
        struct catalog_dataset *dataset;
        struct pipeline *pipeline;
        struct jobs jobs;
        struct users users;
        _Atomic uint32_t n_broken;
        uint64_t used_bytes; /* of the budget, when nobody is attached */
};

/* Whatever goes wrong in here ends the test. */
void serving_start(struct serving *serving, const struct serving_options *options);

/* All ranks must have left. Fails if any of their memory did not come back. */
void serving_stop(struct serving *serving);

/* Writes a picture where sample `i` lies; relative to the tree's root. */
void serving_path(const struct serving_options *options, uint32_t i, char path[64]);
void write_picture(const struct tree *tree, const char *path, uint32_t identity, uint32_t width, uint32_t height);
void write_bytes(const struct tree *tree, const char *path, const void *bytes, size_t n_bytes);

/* The same file without its last `n_bytes`. */
void cut_file(const struct tree *tree, const char *path, uint32_t n_bytes);

/* Waits until everything that was removed is gone, except for the memory that ranks have not forgotten yet. */
void serving_settle(struct serving *serving);

/* ---- ranks --------------------------------------------------------------------------------------------------- */

struct rank_options {
        const char *job; /* NULL: "job" */
        uint32_t world, rank, batch_size;
        const char *pipeline; /* NULL: center_crop(8), which copies the picture */
        uint64_t seed, first_epoch, n_epochs;
        uint64_t first_position, first_step;
        bool shuffle, drop_last;
        enum dlp_order_kind order;
        enum dlp_partition partition;
        enum on_error on_error;
        double max_errors;
        uint32_t n_slots; /* 0: 4 */
};

struct rank {
        struct serving *serving;
        struct rank_options options;
        struct job *job;
        struct job_member *member;
        struct feed *feed;
        int socket, release_fd;
        const struct dlp_control *control;
        uint64_t control_bytes, payload_bytes;
        uint8_t *payload;
        uint64_t sequence;    /* taken next */
        uint64_t number;      /* of the feed that counts; batches of older ones are passed over */
        struct cursor cursor; /* where that began */
};

/* One batch that is held. */
struct taken {
        uint64_t sequence;
        uint32_t idx_slot;
        const struct dlp_slot_record *record;
        struct dlp_columns columns;
        const int64_t *labels;
        const uint8_t *images;
};

/* Joins and makes the ring. Returns 0, or what was refused; then there is nothing to leave. */
int rank_make(struct rank *rank, struct serving *serving, const struct rank_options *options, struct why *why);

/* Begins to be served. */
void rank_add(struct rank *rank);
void rank_attach(struct rank *rank, struct serving *serving, const struct rank_options *options);
void rank_leave(struct rank *rank);

/* Its two halves: the daemon's, and the client's, who may look at his ring in between. */
void rank_remove(struct rank *rank);
void rank_forget(struct rank *rank);

/* Waits for the next batch of the current feed, at most `timeout_ms`. Returns false if none came. */
bool rank_next(struct rank *rank, int timeout_ms, struct taken *ret_taken);
void rank_release(struct rank *rank, const struct taken *taken);

/* Goes on elsewhere. */
void rank_seek(struct rank *rank, const struct cursor *cursor);

/* How many samples the rank gets of an epoch, after the cursor's position if it is the one that it began with, and how
 * many batches they make. */
uint64_t rank_samples(const struct rank *rank, uint64_t epoch);
uint64_t rank_batches(const struct rank *rank, uint64_t epoch);

/* Ends the test unless the batch is (epoch, step) of this rank's order, each sample being what it says and nothing a
 * substitute. */
void rank_check(const struct rank *rank, const struct taken *taken, uint64_t epoch, uint64_t step);

/* Are the record's times possible? */
void check_times(const struct dlp_slot_record *record);

/* Does picture `place` of the batch show `identity`? */
void check_picture(const struct taken *taken, uint32_t place, uint32_t identity);

/* Takes, checks and releases all batches of an epoch that are still to come. */
void rank_eat_epoch(struct rank *rank, uint64_t epoch);

/* The order as the contract's own functions give it. */
uint64_t expected_index(const struct rank *rank, uint64_t epoch, uint64_t idx_sample);

void nap_ms(unsigned ms);
