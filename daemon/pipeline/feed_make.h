/* pipeline/feed_make.h: makes a feed: its ring, the memory of its batches and reads, its desk. */
#pragma once

#include "daemon/pipeline/feed.h"

struct feed_options {
        struct job *job;                 /* a reference of the caller's is taken over */
        struct catalog_dataset *dataset; /* likewise */
        struct programs *programs;       /* taken over */
        uint32_t rank;
        struct budget *budget; /* pays for its ring: the user's share; outlives the feed. NULL: the pipeline's */
        struct cursor first;
        uint64_t n_epochs; /* from first.epoch on; 0: no end */
        uint32_t n_slots;
        int numa_node;
        int wake_socket;                 /* taken over: a duplicate of the session's */
        const _Atomic bool *is_unwanted; /* set when nobody waits for the feed any more; NULL: never */
};

struct feed_memory {
        struct fair_queue *ready; /* to the workers */
        struct budget *budget;
        struct lent_list *held;
        struct order_tables *tables;
        enum segment_wish huge_pages, lock;
        struct isolation *isolation; /* NULL: workers decode */
        uint32_t n_threads;
        uint64_t max_pixels; /* bounds a slot of variable size */
        uint64_t max_step_pixels;
        uint64_t large_bytes; /* of scratch for large samples, and for batches that plug-ins collate */
};

/* Makes the ring and everything else; blocks while memory is touched. On failure the caller keeps what would have been
 * taken over. -EINVAL (no such rank, empty dataset), -ENOMEM with the numbers, -EOVERFLOW. */
int feed_new(const struct feed_options *options, const struct feed_memory *memory, struct feed **ret_feed,
             struct why *why);

/* Frees everything. None of its tasks may be under way. Takes NULL. */
void feed_free(struct feed *feed);
