/* staging/prepare/sample_reader.h: a sample's bytes, from the folder that is prepared. Private to this floor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/index/index.h"
#include "daemon/staging/prepare/prepare_block.h"
#include "proto/base/why.h"

/* Larger samples lie in a file without a name meanwhile: memory stays bounded whatever is in the folder. */
#define SAMPLE_IN_MEMORY (32ull << 20)

struct sample_reader {
        const struct source *index;
        int root_fd;
        int spare_fd;               /* folder for files without a name */
        const _Atomic bool *cancel; /* may be NULL */
};

/* Memory that sample_reader_read() takes for a sample, in bytes. */
uint64_t sample_reader_need(const struct sample_reader *reader, uint64_t sample);

/* Blocks for the disk. The block is the caller's (block_free). Returns 0; -ECANCELED; -ESTALE if the file has another
 * length than the index says; -ENOSPC, ...; `why` names the file. */
int sample_reader_read(const struct sample_reader *reader, uint64_t sample, struct block *ret_block, struct why *why);
