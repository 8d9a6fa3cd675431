/* data/formats/shard.h: samples packed into large files, for reading at the disk's speed.
 *
 * Each small file costs an open, a lookup and a close. A packed sample costs one aligned read past the page cache. A
 * shard has a few hundred MiB: a header, the samples' bytes (each begins at a multiple of SHARD_ALIGN), and a table
 * with the offset, length, label and former path of each sample and the names of all classes of the dataset. So a
 * folder of shards is a complete dataset (format "packed"). Its index has the same samples, in the same order, with the
 * same names and labels as the folder that was packed. If the bytes are the same too, so is its digest, and a resume
 * token stays valid.
 *
 * Little-endian. Every access is checked against the length: a shard may come from a stranger. */
#pragma once

#include <stdint.h>

#include "daemon/data/index/index.h"
#include "proto/base/why.h"

#define SHARD_ALIGN  4096u /* bytes: enough for O_DIRECT on every disk */
#define SHARD_SUFFIX ".shard"

struct shard_writer;

/* Begins a shard in `fd`, which is empty and stays the caller's. Class names are those of the whole dataset, in label
 * order, and are copied. Returns 0 or an errno. */
int shard_writer_new(int fd, const char *const *class_names, uint32_t n_classes, struct shard_writer **ret_writer,
                     struct why *why);

/* Appends a sample; `path` as in the index ("n01440764/x.jpg"). Blocks for the disk. Returns 0 or an errno with
 * `why`. */
int shard_writer_add(struct shard_writer *writer, const char *path, int32_t label, const void *bytes, uint64_t n_bytes,
                     struct why *why);

/* Writes table and header, and syncs. The same samples give the same bytes. */
int shard_writer_finish(struct shard_writer *writer, struct why *why);
void shard_writer_free(struct shard_writer *writer); /* takes NULL */

/* Writes the name, such as "shard-000017.shard". Sorting by name keeps the order of the shards. */
void shard_name(uint64_t idx, char ret_name[32]);
