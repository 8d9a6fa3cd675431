/* staging/prepare/prepare_shards.h: which samples lie in which shard, and who makes it. Private to this floor.
 *
 * A function of the index and shard_bytes alone: a shard is full when the next sample would take it beyond shard_bytes,
 * counted as the samples lie in it (multiples of SHARD_ALIGN of source bytes), and holds one sample at least. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/index/index.h"

struct shard_run {
        uint64_t idx_shard;
        uint64_t first_sample, n_samples;
        uint64_t first_position; /* of its samples among all that this node has to make; set by the maker of the list */
};

struct shards {
        struct shard_run *runs; /* of one node, in order */
        uint64_t n_runs;
};

/* The shards k with k % n_nodes == node. -ENOMEM. */
int shards_plan(const struct source *index, uint64_t shard_bytes, uint32_t node, uint32_t n_nodes,
                struct shards *ret_shards);
void shards_fini(struct shards *shards);
