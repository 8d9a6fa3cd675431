/* staging/prepare/source.h: a sample's bytes, from the folder that is prepared. Private to this floor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/why.h"
#include "daemon/data/index.h"
#include "daemon/staging/prepare/block.h"

/* Larger samples lie in a file without a name meanwhile: memory stays bounded whatever is in the folder. */
#define SOURCE_IN_MEMORY (32ull << 20)

struct source {
        const struct index *index;
        int root_fd;
        int spare_fd;               /* folder for files without a name */
        const _Atomic bool *cancel; /* may be NULL */
};

/* Memory that source_read() takes for a sample, in bytes. */
uint64_t source_need(const struct source *source, uint64_t sample);

/* Blocks for the disk. The block is the caller's (block_free). Returns 0; -ECANCELED; -ESTALE if the file has another
 * length than the index says; -ENOSPC, ...; `why` names the file. */
int source_read(const struct source *source, uint64_t sample, struct block *ret_block, struct why *why);
