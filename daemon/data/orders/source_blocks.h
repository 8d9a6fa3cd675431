/* data/orders/source_blocks.h: the blocks of a dataset, for the order that goes through it block by block
 * (proto/order/blocks.h).
 *
 * A block is a shard, where shards hold samples that follow each other: tar, TFRecord, lines, rows of tables, MDS,
 * LitData. A shard that is longer than SOURCE_BLOCK_LONG is cut into blocks of this length; but not of a format whose
 * files have to be read through to know how long they are (format.h, is_read_through): their number would then depend
 * on the length of the last one, and no epoch could begin before all are here. Everything else (a folder of pictures,
 * arrays, tokens of Megatron) is cut into blocks of SOURCE_BLOCK_SAMPLES. A shard without a sample does not count, and
 * blocks end where a part of several datasets ends. */
#pragma once

#include "daemon/base/budget.h"
#include "daemon/data/source.h"
#include "proto/order/blocks.h"

/* What a group of blocks gives in a round, so that none of these is open for longer than a window. With tokens of 8 kB
 * a block is 8 MiB, which is what is fetched at once from far away. */
#define SOURCE_BLOCK_SAMPLES ((uint64_t)DLP_BLOCKS_SHARE)

/* The longest row group that pyarrow writes unless it is told otherwise: to take one row of it, all of it has to be
 * unpacked, so shorter blocks would unpack it several times. 10^8 rows in a file are 96 blocks. */
#define SOURCE_BLOCK_LONG (1ull << 20)

/* Finds them, and pays for their table, of ret_blocks->n * 8 bytes, which is then the caller's (free()). `source` is
 * not a stream, and has samples. A few instructions for each block. -ENOMEM with `why`. */
int source_blocks_find(const struct source *source, struct budget *budget, struct dlp_blocks *ret_blocks,
                       struct why *why);

/* Writes the digest of where they end: 64 hexadecimal digits and a NUL. The digest of a dataset leaves out how its
 * samples are distributed over shards, and this order depends on it. -ENOMEM. */
int source_blocks_digest(const struct dlp_blocks *blocks, char ret_digest[65]);
