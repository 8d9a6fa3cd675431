/* order/sampler.h: which sample is at a position of an epoch.
 *
 * A sampler is a pure function of (seed, epoch): it says how many positions an epoch has and which sample is at each.
 * There may be more or fewer positions than samples; with today's samplers there are as many:
 *
 *   sequential  position i holds sample i
 *   torch       torch.randperm(n) seeded with seed + epoch, which is DistributedSampler's order (order/shuffle.h)
 *   tdperm      ours, computed (order/tdperm.h)
 *   buffer      a shuffle buffer, which streams have: a table (order/shuffle_buffer.h)
 *   blocks      block by block, a few shuffled together: a small table (order/blocks.h)
 *
 * A sampler either computes each position, or fills a table that belongs to the caller, in steps: after each step more
 * leading positions are final. The daemon fills tables in the background (daemon/data/orders/order_table.h), `dlctl
 * order` while it prints.
 *
 * Each is a file order/sampler_NAME.c with a struct dlp_sampler_type, and a row in sampler.c. libc only, no allocation,
 * no locks. dlp_sampler_advance() is for one thread; any number of threads may meanwhile ask for final positions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"
#include "proto/order/blocks.h"
#include "proto/order/shuffle.h"
#include "proto/order/shuffle_buffer.h"
#include "proto/order/tdperm.h"
#include "proto/order/torch_random.h"

/* How an epoch is shuffled. The values are sent in messages and tokens. */
enum dlp_order_kind {
        DLP_ORDER_TORCH = 0,  /* torch.randperm: a table, made from its beginning */
        DLP_ORDER_TDPERM = 1, /* computed element by element */
        DLP_ORDER_BUFFER = 2, /* a shuffle buffer: the only one that needs not know how many samples there are */
        DLP_ORDER_BLOCKS = 3, /* a few blocks of the dataset after the other */
};

/* "torch", "tdperm", "buffer", "blocks"; NULL for a value that is none of them. Static text. */
const char *dlp_order_kind_name(enum dlp_order_kind kind);

/* An order as people name it: a kind, and of blocks perhaps how many of them are shuffled together. */
struct dlp_order_choice {
        enum dlp_order_kind kind;
        uint32_t window; /* DLP_ORDER_BLOCKS: 1 .. DLP_BLOCKS_WINDOW_MAX; else 0 */
};

/* Reads "torch", "blocks" or "blocks(window=16)". -EINVAL with what is allowed. */
int dlp_order_choice_read(const char *text, struct dlp_order_choice *ret_choice, struct why *why);

#define DLP_ORDER_CHOICE_MAX 32u /* bytes with NUL */

/* Writes it in its one normal spelling: "blocks" for the usual window. */
void dlp_order_choice_print(const struct dlp_order_choice *choice, char ret_text[DLP_ORDER_CHOICE_MAX]);

/* Everything on which the order of an epoch depends. */
struct dlp_sampler_terms {
        uint64_t n_samples; /* of the dataset, <= DLP_SAMPLES_MAX; or DLP_UNKNOWN: then it can be asked for its length
                               and compared, but has no table */
        uint64_t seed;
        uint64_t epoch;
        bool shuffle;
        enum dlp_order_kind kind;        /* of the shuffling */
        enum dlp_torch_compat compat;    /* DLP_ORDER_TORCH; 0: the newest torch */
        uint32_t shuffle_buffer;         /* DLP_ORDER_BUFFER: samples, <= DLP_BUFFER_MAX; 0: DLP_BUFFER_DEFAULT */
        uint32_t window;                 /* DLP_ORDER_BLOCKS: <= DLP_BLOCKS_WINDOW_MAX; 0: DLP_BLOCKS_WINDOW */
        const struct dlp_blocks *blocks; /* DLP_ORDER_BLOCKS: of the n_samples; the caller's, and it outlives the
                                            sampler. NULL: the terms can be asked for their length alone */
};

/* The size of the shuffle buffer of these terms; the blocks that are shuffled together. */
uint32_t dlp_sampler_buffer_size(const struct dlp_sampler_terms *terms);
uint32_t dlp_sampler_window(const struct dlp_sampler_terms *terms);

struct dlp_sampler_type;

/* One epoch's order. The first line is constant once it is made; the rest may be changed by dlp_sampler_advance(). */
struct dlp_sampler {
        const struct dlp_sampler_type *type;
        uint64_t n_positions;
        const void *table; /* the caller's; NULL: computed */
        struct dlp_tdperm tdperm;

        _Alignas(64) struct dlp_shuffle shuffle;
        struct dlp_torch_random random;
        struct dlp_shuffle_buffer buffer;
        uint64_t n_final; /* of a buffer's order */
        struct dlp_block_order block_order;
};

/* What a kind of sampler does. Functions get terms with n_samples > 0, except n_positions() and is_same(). */
struct dlp_sampler_type {
        /* Positions of an epoch, or DLP_UNKNOWN (order/epoch_plan.h). */
        uint64_t (*n_positions)(const struct dlp_sampler_terms *terms);

        /* Bytes of the table; NULL: it needs none. */
        uint64_t (*table_bytes)(const struct dlp_sampler_terms *terms);

        /* Prepares. `table` holds zeroes. */
        void (*begin)(struct dlp_sampler *sampler, const struct dlp_sampler_terms *terms, void *table);

        /* Continues filling the table; as dlp_sampler_advance(). NULL: it needs none. */
        uint64_t (*advance)(struct dlp_sampler *sampler, uint64_t n_steps);

        /* The sample at a position that is final. Any thread. */
        uint64_t (*at)(const struct dlp_sampler *sampler, uint64_t position);

        /* Do two terms of this type, with equal n_samples, give the same order? NULL: always. */
        bool (*is_same)(const struct dlp_sampler_terms *a, const struct dlp_sampler_terms *b);
};

/* Positions of an epoch. */
uint64_t dlp_sampler_n_positions(const struct dlp_sampler_terms *terms);

/* Bytes of the table that such an order takes; 0 if it is computed. */
uint64_t dlp_sampler_table_bytes(const struct dlp_sampler_terms *terms);

/* Do both give the same order? */
bool dlp_sampler_is_same(const struct dlp_sampler_terms *a, const struct dlp_sampler_terms *b);

/* Prepares an order. `table`: dlp_sampler_table_bytes() bytes that belong to the caller, aligned to 8, ALL ZERO (fresh
 * mmap or calloc: nothing is written before it is needed), until the sampler is not used any more; NULL if that is 0.
 */
void dlp_sampler_init(struct dlp_sampler *sampler, const struct dlp_sampler_terms *terms, void *table);

/* Makes up to n_steps more steps of the table, each a few tens of nanoseconds. Returns how many leading positions are
 * now final: n_positions means that it is done. A computed order is done at once. */
uint64_t dlp_sampler_advance(struct dlp_sampler *sampler, uint64_t n_steps);

/* The sample at `position`, which must be final. Any thread. A few nanoseconds for a table in the cache, some tens for
 * a computed order. */
uint64_t dlp_sampler_at(const struct dlp_sampler *sampler, uint64_t position);
