/* data/orders/data_sampling.h: what the orders of a job's epochs are made from: a sampler's steps, columns and parts,
 * and blocks.
 *
 * The steps come as text (proto/order/making/order_text.h). A column comes from the trainer, as a piece of shared
 * memory that nobody can change any more, or else from the dataset: the values of a field that are known without
 * reading anything, or the lengths of a field. These are read once, by sampling_load(), and kept in memory for all
 * epochs.
 *
 * Reference-counted: an attach, the job and the orders that are being made hold one each. sampling_load() may be
 * called by several threads; everything else is constant after it. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/base/work/sweeper.h"
#include "daemon/data/source.h"
#include "proto/order/blocks.h"
#include "proto/order/making/order_text.h"

#define SAMPLING_COLUMNS_MAX 16u

/* A column as a trainer hands it over: where it lies in the shared memory. */
struct sampling_column {
        const char *name;
        enum dlp_dtype dtype;
        uint64_t offset;
        uint64_t n_values;
};

struct sampling {
        struct dlp_order_text text;
        struct dlp_column columns[SAMPLING_COLUMNS_MAX];
        uint32_t n_columns;
        uint32_t n_given; /* of them, the first ones are the trainer's */
        struct dlp_part parts[DLP_PARTS_MAX];
        uint32_t n_parts;
        bool wants_blocks;        /* set before anybody else has it */
        struct dlp_blocks blocks; /* of the dataset, if they are wanted */
        char blocks_digest[65];   /* "": they are not */

        _Atomic uint32_t refs;
        pthread_mutex_t lock;
        bool is_loaded;        /* lock */
        struct budget *budget; /* paid for n_charged_bytes */
        uint64_t n_charged_bytes;
        struct sweep sweep;
        void *given; /* the trainer's memory, mapped; NULL: none */
        uint64_t n_given_bytes;
        void *owned[2 * SAMPLING_COLUMNS_MAX +
                    DLP_PARTS_MAX]; /* values and ends that were read from the dataset, names */
        uint32_t n_owned;
        char names[SAMPLING_COLUMNS_MAX][DLP_NAME_MAX];
};

/* Reads the text. `fd` is the shared memory of the n columns, or -1 if there are none; it stays the caller's. Checks
 * that it is sealed against every change and has pages for all of its bytes, so that nobody can make reading it fail,
 * and that each column lies within it. -EINVAL with what is wrong, -ENOMEM. */
int sampling_new(const char *text, int fd, const struct sampling_column *columns, uint32_t n,
                 struct sampling **ret_sampling, struct why *why);

struct sampling *sampling_ref(struct sampling *sampling);

/* Takes NULL. */
void sampling_unref(struct sampling *sampling);

/* The most positions of a unit. After sampling_load(). */
uint64_t sampling_unit_max(const struct sampling *sampling, uint32_t batch_size);

/* The length of a sample in the column of the step pack, which is the last one. After sampling_load(). */
uint32_t sampling_length(const struct sampling *sampling, uint64_t sample);

/* Can the source provide the columns that the steps ask for? Checks what is known without looking at samples. -EINVAL
 * with the fields that the source has. */
int sampling_check(const struct sampling *sampling, const struct source *source, struct why *why);

/* Reads what is missing from the source, once, and pays for it. Looks at each sample where there are columns: seconds
 * for 10^8. -ENOMEM with the numbers, -EINVAL. After an error it may be called again. */
int sampling_load(struct sampling *sampling, const struct source *source, struct budget *budget, struct why *why);
