/* tests/support/shards.h: a whole shard in memory. The daemon reads header and table one after the other. */
#pragma once

#include "daemon/data/formats/shard_layout.h"

/* Checks header and table (aligned to 8). Returns 0 or -EBADMSG with `why`. */
static inline int shard_parse(const void *bytes, uint64_t n_bytes, struct shard *ret_shard, struct why *why) {
        const struct shard_header *header = bytes;
        int r = shard_check_header(header, n_bytes, why);

        return r < 0 ? r : shard_check_table(header, (const uint8_t *)bytes + header->table, ret_shard, why);
}
