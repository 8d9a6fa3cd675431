#include "daemon/staging/prepare/prepare_shards.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/data/formats/shard.h"
#include "daemon/staging/prepare/prepare.h"

/* What a sample takes of a shard; something even if it is empty, so that no shard holds samples without end. */
static uint64_t prepare_shards_room_of(const struct source *index, uint64_t sample) {
        struct extent place;

        source_locate(index, sample, 0, &place);
        return place.length ? (place.length + SHARD_ALIGN - 1) / SHARD_ALIGN * SHARD_ALIGN : SHARD_ALIGN;
}

/* The end of the shard that begins with sample `first`. */
static uint64_t end_of_shard(const struct source *index, uint64_t shard_bytes, uint64_t first) {
        uint64_t n_samples = index->n_samples, n_bytes = prepare_shards_room_of(index, first), end = first + 1;

        while (end < n_samples) {
                uint64_t room = prepare_shards_room_of(index, end);

                if (n_bytes > shard_bytes || room > shard_bytes - n_bytes)
                        break;
                n_bytes += room;
                end++;
        }
        return end;
}

uint64_t prepare_n_shards(const struct source *index, uint64_t shard_bytes) {
        uint64_t n_samples = index->n_samples, n_shards = 0;

        for (uint64_t first = 0; first < n_samples; first = end_of_shard(index, shard_bytes, first))
                n_shards++;
        return n_shards;
}

int shards_plan(const struct source *index, uint64_t shard_bytes, uint32_t node, uint32_t n_nodes,
                struct shards *ret_shards) {
        uint64_t n_shards = prepare_n_shards(index, shard_bytes), first = 0;
        struct shards shards = { .runs = calloc(n_shards / n_nodes + 1, sizeof(*shards.runs)) };

        assert(n_nodes > 0 && node < n_nodes);
        if (!shards.runs)
                return -ENOMEM;
        for (uint64_t i = 0; i < n_shards; i++) {
                uint64_t end = end_of_shard(index, shard_bytes, first);

                if (i % n_nodes == node)
                        shards.runs[shards.n_runs++] =
                                (struct shard_run){ .idx_shard = i, .first_sample = first, .n_samples = end - first };
                first = end;
        }
        *ret_shards = shards;
        return 0;
}

void shards_fini(struct shards *shards) {
        free(shards->runs);
        *shards = (struct shards){};
}
