/* data/formats/shard.h: samples packed into large files, for reading at the disk's speed.
 *
 * Small files cost an open, a lookup and a close each; packed, a sample is one aligned read past the page cache. A
 * shard is a few hundred MiB: a header, the samples' bytes (each begins at a multiple of SHARD_ALIGN), and a table: for
 * each sample its offset, length, label and the path that it had, and the names of all classes of the dataset. So a
 * folder of shards is a dataset by itself (format "packed"), and its index has the same samples, in the same order,
 * under the same names and labels as the folder that was packed; where the bytes are the same too, so is its digest,
 * and a resume token goes on.
 *
 * Little-endian; read by (bytes, length) checks only: a shard may come from a stranger. */
#pragma once

#include <stdint.h>

#include "daemon/data/index/index.h"
#include "proto/base/why.h"

#define SHARD_ALIGN  4096u /* bytes: what O_DIRECT likes on every disk */
#define SHARD_SUFFIX ".shard"

struct shard_writer;

/* Begins a shard in `fd` (empty; stays the caller's). Class names are those of the whole dataset, in label order,
 * copied. Returns 0 or an errno. */
int shard_writer_new(int fd, const char *const *class_names, uint32_t n_classes, struct shard_writer **ret_writer,
                     struct why *why);

/* Appends a sample; `path` as the index has it ("n01440764/x.jpg"). Blocks for the disk. Errno with `why`. */
int shard_writer_add(struct shard_writer *writer, const char *path, int32_t label, const void *bytes, uint64_t n_bytes,
                     struct why *why);

/* Writes table and header, and syncs. The same samples give the same bytes. */
int shard_writer_finish(struct shard_writer *writer, struct why *why);
void shard_writer_free(struct shard_writer *writer); /* NULL is fine */

/* "shard-000017.shard" of 1,000 shards or one: shards sort by name as they follow each other. */
void shard_name(uint64_t idx, char ret_name[32]);
