/* data/index/index_builder.h: collects what a format finds, and writes it as an index file.
 *
 * A format adds classes, directories and files in any order in which each is known before it is referred to, and
 * samples in the dataset's own order. About 70 bytes a sample of memory until it is written. One thread. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/index/index_layout.h"
#include "proto/base/why.h"

struct index_builder;

/* An empty index of samples with n_fields stored fields each, of which the first is a picture with the name "image"
 * until index_builder_set_field(). `format` is shorter than INDEX_FORMAT_NAME_MAX (asserted). */
int index_builder_new(const char *format, uint32_t n_fields, struct index_builder **ret_builder);

/* NULL is fine. */
void index_builder_free(struct index_builder *builder);
void index_builder_freep(struct index_builder **builder);

/* Says what field `idx` is. The digest names it. Before the first sample. */
void index_builder_set_field(struct index_builder *builder, uint32_t idx, const char *name, enum field_kind kind,
                             bool may_be_absent);

/* Classes get the labels 0, 1, ... Returns 0, -ENOMEM or -E2BIG. */
int index_builder_add_class(struct index_builder *builder, const char *name);

/* The root ("") comes first. `status` is the directory's, taken before it was read; NULL: it is only a name, of packed
 * files. Same returns. */
int index_builder_add_dir(struct index_builder *builder, const char *path, const struct stat *status,
                          uint32_t *ret_dir);

/* The dataset is some named files of the root, not the whole folder: other files may come and go beside them, so the
 * root's time does not count. After the root was added. */
void index_builder_set_named(struct index_builder *builder);

/* `flags`: INDEX_FILE_... Same returns. */
int index_builder_add_file(struct index_builder *builder, uint32_t dir, const char *name, uint32_t flags,
                           uint64_t *ret_file);

/* What the samples were before they were packed; the digest names it in place of the format. Shorter than
 * INDEX_FORMAT_NAME_MAX (asserted). */
void index_builder_set_source(struct index_builder *builder, const char *format);

/* The samples that are added from now on lie in this file of the root; their files are only names. `status` from before
 * it was read. With the first sample or never. Same returns. */
int index_builder_add_shard(struct index_builder *builder, const char *name, const struct stat *status);

/* Adds a sample with its n_fields rows; those of fields that it does not have have the offset INDEX_ROW_ABSENT and the
 * length 0. Without classes `label` is not looked at. Same returns. */
int index_builder_add_sample(struct index_builder *builder, const struct index_row *rows, int32_t label);

/* Writes everything into `fd`, an empty file open for reading and writing, and syncs it. The digest is made here.
 * Returns 0 or an errno; `path` is only for messages. */
int index_builder_write(struct index_builder *builder, int fd, const char *path, struct why *why);
