/* data/index/index_builder.h: collects what a format finds, and writes it as an index file.
 *
 * A format adds classes, directories and files in any order, but each before it is referred to, and samples in the
 * dataset's own order. Takes about 70 bytes of memory for each sample until it is written. One thread. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/index/index_layout.h"
#include "daemon/data/refusals.h"
#include "proto/base/why.h"

struct index_builder;

/* What an error of these functions means, -ENOMEM or -E2BIG: a static text. */
const char *index_builder_text(int error);

/* The same as `why`, after the dataset's root. Returns the error. */
int index_builder_refused(int error, const char *root, struct why *why);

/* Makes an empty index of samples with n_fields stored fields each, at most INDEX_FIELDS_MAX. Until
 * index_builder_set_field() the first field is a picture with the name "image". `format` is shorter than
 * INDEX_FORMAT_NAME_MAX (asserted). */
int index_builder_new(const char *format, uint32_t n_fields, struct index_builder **ret_builder);

/* Both take NULL. */
void index_builder_free(struct index_builder *builder);
void index_builder_freep(struct index_builder **builder);

/* Sets what field `idx` is, which becomes part of the digest. To be called before the first sample is added. */
void index_builder_set_field(struct index_builder *builder, uint32_t idx, const char *name, enum field_kind kind,
                             bool may_be_absent);

/* The same for a field that a kind alone does not describe. `field` has a valid name, kind, coding, dtype and shape.
 * is_stored is not looked at. If may_be_absent is set, but all samples have the field, the index says so. */
void index_builder_describe(struct index_builder *builder, uint32_t idx, const struct schema_field *field);

/* The rows of stored field `idx` are whole files, although the samples are in shards: a listing names them. To be
 * called before the first sample is added. */
void index_builder_set_own_file(struct index_builder *builder, uint32_t idx);

/* The rows of stored field `idx` lie in the shard that is `n_shards` after that of their sample: one that is merged
 * with it, and is added later. To be called before the first sample is added. */
void index_builder_set_shards_after(struct index_builder *builder, uint32_t idx, uint32_t n_shards);

/* Samples have no names of their own: they are called SHARD:ROW, counted from 0 in each shard. A row without
 * INDEX_NO_FILE as its file must then be of a field with files of its own. To be called before the first sample is
 * added. */
void index_builder_name_rows(struct index_builder *builder);

/* The stored fields of a sample lie far apart in their shard, column by column: they are not read together with all
 * that is between them. To be called before the first sample is added. */
void index_builder_set_scattered(struct index_builder *builder);

/* Adds a column: a field that is known without reading, because its values are in the index. Kinds: FIELD_VALUE with a
 * dtype and a shape whose first dimension may vary; FIELD_TEXT, FIELD_BYTES and FIELD_TEXTS. Columns follow the stored
 * fields; both together are at most INDEX_FIELDS_MAX. To be called before the first sample is added. -ENOMEM, -E2BIG.
 */
int index_builder_add_column(struct index_builder *builder, const struct schema_field *field, uint32_t *ret_idx);

/* Sets the value of column `idx` for the sample that is added next: its elements in C order, its text without NUL, or
 * its list of texts (proto/base/texts.h).
 * A column that may be absent needs no value. The size must fit the shape (asserted). -ENOMEM, -E2BIG. */
int index_builder_set_value(struct index_builder *builder, uint32_t idx, const void *elements, uint64_t n_bytes);

/* A digest of the options that the format was given: 64 hexadecimal digits (asserted). Without it: no options. */
void index_builder_set_options(struct index_builder *builder, const char *digest);

/* The classes are names alone: the labels are in columns of the format's own, and each sample's is ignored. The digest
 * leaves them out, so it is that of a dataset without classes. To be called before the first sample is added. */
void index_builder_set_only_names(struct index_builder *builder);

/* Classes get the labels 0, 1, ... Returns 0, -ENOMEM or -E2BIG. */
int index_builder_add_class(struct index_builder *builder, const char *name);

/* A column that is not served, and why: it is listed, and not part of the digest. -ENOMEM. */
int index_builder_refuse(struct index_builder *builder, const struct refusal *refusal);

/* So many hidden files were passed over: that is told, and not part of the digest. */
void index_builder_set_hidden(struct index_builder *builder, uint32_t n);

/* The root ("") comes first. `status` is that of the directory from before it was read. NULL: the directory is only a
 * name, of packed files. Returns as above. */
int index_builder_add_dir(struct index_builder *builder, const char *path, const struct stat *status,
                          uint32_t *ret_dir);

/* The dataset is some named files of the root, not the whole folder: other files there may come and go, so the time of
 * the root does not count. To be called after the root was added. */
void index_builder_set_named(struct index_builder *builder);

/* The same, where the first shard is a list that names the others. `is_named`: the path of the dataset is that list,
 * not the folder. */
void index_builder_set_listed(struct index_builder *builder, bool is_named);

/* `flags`: INDEX_FILE_... Returns as above. */
int index_builder_add_file(struct index_builder *builder, uint32_t dir, const char *name, uint32_t flags,
                           uint64_t *ret_file);

/* The same by its path, shorter than PATH_MAX, in a directory that is only a name: that of the path before, usually. */
int index_builder_add_path(struct index_builder *builder, const char *path, uint32_t flags, uint64_t *ret_file);

/* The format that the samples had before they were packed; the digest names it instead of the packed format. Shorter
 * than INDEX_FORMAT_NAME_MAX (asserted). */
void index_builder_set_source(struct index_builder *builder, const char *format);

/* Samples that are added from now on lie in this file of the root, and their files are only names. `status` is from
 * before the file was read. To be called before the first sample is added, or never. Returns as above. */
int index_builder_add_shard(struct index_builder *builder, const char *name, const struct stat *status);

/* Adds a sample with its n_fields rows. A field that it does not have gets the offset INDEX_ROW_ABSENT and the length
 * 0. Without classes `label` is ignored. Returns as above. */
int index_builder_add_sample(struct index_builder *builder, const struct index_row *rows, int32_t label);

/* Adds the samples of `part`, a builder of which the same fields, columns and classes were told, to the shard that was
 * added last; none of them has a file (asserted). `part` stays as it is. After an error the index is good for nothing.
 * Returns as above. */
int index_builder_append(struct index_builder *builder, const struct index_builder *part);

/* When all samples are added: marks of the bytes of some of them (index_stamp.h), up to a thousand from the first to
 * the last, become part of the digest. Only bytes in shards have marks; in which shard they are makes no difference.
 * The first function says how many there are, and the second reads one, in any thread, several at once. Returns 0 or an
 * errno, with `why`. Blocks for the disk. */
int index_builder_begin_marks(struct index_builder *builder, uint64_t *ret_n);
int index_builder_mark(struct index_builder *builder, uint64_t idx, int root_fd, struct why *why);

/* Writes everything into `fd`, an empty file open for reading and writing, and syncs it. Computes the digest. Returns 0
 * or an errno; `path` is only for messages. */
int index_builder_write(struct index_builder *builder, int fd, const char *path, struct why *why);
