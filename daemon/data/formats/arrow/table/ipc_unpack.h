/* data/formats/arrow/table/ipc_unpack.h: compressed buffers.
 *
 * A writer may compress each buffer of a batch by itself, with LZ4 (frames) or zstd: 8 bytes with the plain length, -1
 * if the buffer is stored as it is, then the bytes. No row can be read alone, so a batch is unpacked as a whole. */
#pragma once

#include "daemon/data/formats/arrow/table/ipc_batch.h"

#define ARROW_UNPACKED_MAX (1ull << 30) /* bytes of a batch, if nothing else limits it */

/* Unpacks all buffers of a compressed batch into memory, where its buffers lie from then on. Does nothing for others.
 * Returns 0; -EBADMSG, or -EFBIG for more than max_bytes; -ENOMEM; or an errno of reading; with `why`, which
 * does not name the batch. Blocks for reading. */
int arrow_unpack(struct arrow_batch *batch, int fd, uint64_t max_bytes, struct why *why);
