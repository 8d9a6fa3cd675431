/* data/index.h: the table of a dataset's samples: where the bytes of sample i lie, and its label.
 *
 * It is a file, made once by a format (data/format.h), written under another name and renamed into place, and mapped
 * read-only from then on. Opening checks all of it in one pass (about 20 ms a million samples once its pages are in
 * memory), so that the accessors need no checks and a damaged or hostile file is refused, never a crash; whoever opened
 * it builds a new one. A file that others may write, or that lies on a network or FUSE file system, is copied into
 * sealed memory before it is looked at: cutting a mapped file would end the process, and writing over it would undo the
 * check. Files in the daemon's own folder are replaced, never changed, and mapped where they lie.
 *
 * The digest names the content and nothing else: format, class names, and for each sample in order its relative path,
 * length and label. It is the same on every node that has the same files, whatever their mtimes or absolute paths. Of
 * packed samples it names the format, paths and lengths that they had before, so that packing does not change it.
 *
 * An opened index is immutable; any number of threads may use it. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/base/why.h"

#define INDEX_DIGEST_SIZE 65u      /* 64 hexadecimal digits of SHA-256, NUL */
#define INDEX_PATH_SIZE   PATH_MAX /* bytes with NUL that hold every sample's path relative to the root */

#define INDEX_FILE_NOT_REGULAR 1u /* a FIFO, a socket, a device: reading it must be refused, not tried */
#define INDEX_FILE_UNREACHABLE 2u /* could not be looked at: a broken link, no permission on the way; length 0 */

/* Positive outcome of index_is_current(). */
#define INDEX_STALE 1

struct index;

/* What is known of one field of a sample. Strings point into the index and live as long as it. */
struct index_place {
        const char *dir;  /* relative to the root; "" for the root itself */
        const char *name; /* within that directory */
        uint64_t file;    /* number of the file: fields and samples may share one */
        uint64_t offset;  /* bytes */
        uint64_t length;  /* bytes, as found when the index was made */
        uint32_t flags;   /* INDEX_FILE_... */

        const char *shard;  /* the file in the root that it is a part of; dir and name only say what it was called.
                             * NULL: it lies in dir by itself */
        uint32_t idx_shard; /* 0 without */
};

/* Opens and checks an index file. A copy in memory is counted in `budget` until the index is closed (NULL: nobody
 * counts). Returns 0; -ENOENT if there is none; -EBADMSG if it is damaged, of another version or no index at all;
 * -ENOMEM if the budget has no room for the copy; another errno. `why` names the file. */
int index_open(const char *path, struct budget *budget, struct index **ret_index, struct why *why);

/* The same for a descriptor, which stays the caller's; `path` is only for messages. */
int index_open_fd(int fd, const char *path, struct budget *budget, struct index **ret_index, struct why *why);

/* Unmaps. NULL is fine. */
void index_close(struct index *index);
void index_closep(struct index **index);

/* Does the folder still look as it did when the index was made? Looks at each directory of it (not at each file): a
 * file that was added, removed or renamed changes its directory's time. A file that was rewritten in place is not
 * noticed; its reader meets the other length. Returns 0; INDEX_STALE, `why` saying what changed; or an errno. Blocks
 * for about one stat a directory. Packed samples: one a shard, which may not have been rewritten in place either. */
int index_is_current(const struct index *index, int root_fd, struct why *why);

/* The same, but where it lies does not count: devices and inodes may be others, as after a file system was mounted
 * again. Without `by_time` the directories and shards must only be there. */
int index_is_same(const struct index *index, int root_fd, bool by_time, struct why *why);

uint64_t index_n_samples(const struct index *index);
uint32_t index_n_fields(const struct index *index);
uint64_t index_n_files(const struct index *index);
uint64_t index_n_dirs(const struct index *index);
uint32_t index_n_classes(const struct index *index);
uint64_t index_n_shards(const struct index *index);     /* 0: samples are not packed */
uint64_t index_total_bytes(const struct index *index);  /* of all samples */
uint64_t index_max_length(const struct index *index);   /* bytes of the longest field of any sample */
uint64_t index_memory_bytes(const struct index *index); /* mapped */
const char *index_format(const struct index *index);
const char *index_digest(const struct index *index);

/* Name of class `label` < index_n_classes(). */
const char *index_class_name(const struct index *index, uint32_t label);

/* Label of a sample < index_n_samples(): a class number. */
int32_t index_label(const struct index *index, uint64_t sample);

/* Bytes of the first field of a sample; of one whose file could not be looked at, as many as the longest has. */
uint64_t index_length(const struct index *index, uint64_t sample);

/* Where field `field` < index_n_fields() of a sample lies. */
void index_locate(const struct index *index, uint64_t sample, uint32_t field, struct index_place *ret_place);

/* Writes the path of a sample's field, relative to the root, into INDEX_PATH_SIZE bytes: of a packed one the path that
 * it had. Returns its length. */
size_t index_path(const struct index *index, uint64_t sample, uint32_t field, char *ret_path);
