/* data/index/index.h: the source that is a table: where the bytes of sample i lie, and its label.
 *
 * It is a file, made once by a format (data/format.h), written under another name and renamed into place, and mapped
 * read-only from then on. Opening checks all of it in one pass (about 20 ms for a million samples once its pages are in
 * memory). So the accessors need no checks, and a damaged or hostile file is refused and never causes a crash; the
 * caller then builds a new one. A file that others may write, or that lies on a network or FUSE file system, is copied
 * into sealed memory before it is checked: cutting a mapped file would end the process, and overwriting it would make
 * the check useless. Files in the daemon's own folder are replaced, never changed, so they are mapped directly.
 *
 * The digest names the content and nothing else: format, class names, for each sample in order its relative path,
 * length and label, and marks of the bytes of some samples that are in shards. It is the same on every node that has
 * the same files, whatever their times, absolute paths or shards. For packed samples it names the format, paths and
 * lengths that they had before, so packing does not change it.
 *
 * An opened index is immutable; any number of threads may use it. */
#pragma once

#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/data/source.h"

#define INDEX_DIGEST_SIZE 65u              /* 64 hexadecimal digits of SHA-256, NUL */
#define INDEX_PATH_SIZE   SOURCE_NAME_SIZE /* bytes with NUL that hold the path of any sample relative to the root */

#define INDEX_FILE_NOT_REGULAR EXTENT_NOT_REGULAR
#define INDEX_FILE_UNREACHABLE EXTENT_UNREACHABLE

/* Opens and checks an index file. A copy in memory is counted in `budget` until the source is closed (NULL: it is not
 * counted). Returns 0; -ENOENT if there is none; -EBADMSG if it is damaged, of another version or not an index; -ENOMEM
 * if the budget has no room for the copy; or another errno. `why` names the file. */
int index_open(const char *path, struct budget *budget, struct source **ret_source, struct why *why);

/* The same for an open descriptor, which the caller keeps; `path` is only for messages. */
int index_open_fd(int fd, const char *path, struct budget *budget, struct source **ret_source, struct why *why);

/* The same, but always of a copy in memory, whoever may write the file. */
int index_open_copy(int fd, const char *path, struct budget *budget, struct source **ret_source, struct why *why);

/* Was the index made of these files of its root, in this order? `n_names` 0: of the whole folder. The source must be an
 * index (asserted), here and below. */
bool index_is_of(const struct source *source, const char *const *names, size_t n_names);

/* The digest of the options that it was made with (data/format_options.h); "" without any. */
const char *index_options(const struct source *source);

/* The file that is shard `idx` < n_shards, relative to the root. */
const char *index_shard_name(const struct source *source, uint64_t idx);

/* Do the samples of two indexes with the same digest lie at the same places in their shards? (The digest does not
 * tell.)
 */
bool index_has_same_places(const struct source *source, const struct source *other);

/* For callers that know that the source is an index (asserted). */
int64_t index_last_change_ns(const struct source *source); /* of the shard that was changed last, as it was indexed */
uint64_t index_n_files(const struct source *source);
uint32_t index_n_hidden(const struct source *source);              /* files that were passed over */
uint32_t index_n_fields(const struct source *source);              /* that are stored */
uint32_t index_n_columns(const struct source *source);             /* which follow them, except label and name */
bool index_has_labels(const struct source *source);                /* each sample is of a class */
int32_t index_label(const struct source *source, uint64_t sample); /* its number; 0 without labels */
