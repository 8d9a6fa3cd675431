/* data/source.h: what a dataset's samples are and where their bytes are, whatever its format.
 *
 * A source is live: it is asked for each sample, and answers from an index, which is mapped, or by computing (rows of
 * an array). The floors above do not know which. What never changes is in struct source itself; the rest are functions
 * of the format (struct source_type).
 *
 * An opened source is immutable; any number of threads may use it. All functions are quick and never block, except
 * source_is_current() and source_is_same(), which look at the folder. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/schema.h"
#include "proto/base/why.h"

#define SOURCE_NAME_SIZE PATH_MAX /* bytes with NUL that hold what any sample is called */

#define EXTENT_NOT_REGULAR 1u /* a FIFO, a socket, a device: reading it must be refused, not tried */
#define EXTENT_UNREACHABLE 2u /* could not be looked at: a broken link, no permission on the way; length 0 */
#define EXTENT_ABSENT      4u /* this sample does not have the field */

/* Positive outcome of source_is_current(): the folder has changed. */
#define SOURCE_STALE 1

/* Where the bytes of a field of a sample are. Strings point into the source and live as long as the source. */
struct extent {
        const char *dir;  /* relative to the dataset's folder; "" for the folder itself */
        const char *name; /* within that directory */
        uint64_t file;    /* number of the file: fields and samples may share one */
        uint64_t offset;  /* bytes */
        uint64_t length;  /* bytes */
        uint32_t flags;   /* EXTENT_... */

        const char *shard;  /* the file in the folder that it is a part of; dir and name only say what it was called.
                             * NULL: it lies in dir by itself */
        uint32_t idx_shard; /* 0 without */
};

struct source;

struct source_type;

/* The first member of what a format opens. Set when it is opened, and read by anybody from then on. */
struct source {
        const struct source_type *type;
        struct schema schema;
        const char *format;
        const char *digest; /* of the content: 64 hexadecimal digits */
        uint64_t n_samples;
        uint64_t n_shards;    /* 0: each sample lies in files of its own */
        uint64_t total_bytes; /* of all stored fields of all samples */
        uint64_t max_length;  /* bytes of the longest stored field of any sample */
        uint64_t max_span;    /* the most from the first to the last byte of a sample's stored fields in their file */
        uint64_t max_name_bytes; /* of the longest that any sample is called, without NUL */
        uint64_t memory_bytes;   /* that it keeps mapped */
        uint32_t n_classes;      /* of the labels */
        bool has_file_a_field;   /* the stored fields of a sample lie in a file each, not side by side */
};

/* NULL is fine. */
void source_close(struct source *source);
void source_closep(struct source **source);

/* Does the folder still look as it did when the source was opened first? Looks at each directory or shard of it, not at
 * each file: a file that was added, removed or renamed changes its directory's time. A file that was rewritten in place
 * is not noticed; its reader meets the other length. Returns 0; SOURCE_STALE, `why` saying what changed; or an errno.
 * Blocks for about one stat a directory or shard. */
int source_is_current(const struct source *source, int root_fd, struct why *why);

/* The same, but where it lies does not count: devices and inodes may be others, as after a file system was mounted
 * again. Without `by_time` the directories and shards must only be there. */
int source_is_same(const struct source *source, int root_fd, bool by_time, struct why *why);

/* Where stored field `field` of sample < n_samples lies. */
void source_locate(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent);

/* Bytes of it; of one whose file could not be looked at, as many as the longest has. */
uint64_t source_length(const struct source *source, uint64_t sample, uint32_t field);

/* The bytes of a stored field where they are mapped, as many as source_length() says; NULL: they have to be read. The
 * file may be cut short, or its disk be slow: only the functions of base/machine/mapped.h may touch them. */
const uint8_t *source_row(const struct source *source, uint64_t sample, uint32_t field);

/* Were all rows of the field that were copied until now really there? A file that is cut ends in zeroes up to the end
 * of its last page, which look like any others. May wait for the disk. */
bool source_rows_were_there(const struct source *source, uint32_t field);

/* Writes the value of a field that is neither stored nor a name: its elements, in C order, little-endian. */
void source_value(const struct source *source, uint64_t sample, uint32_t field, void *ret_value);

/* Writes what a sample is called, in messages and in the ledger, into SOURCE_NAME_SIZE bytes: its file's path relative
 * to the folder, or what it was called before it was packed. Returns its length. */
size_t source_name(const struct source *source, uint64_t sample, char *ret_name);

/* Name of class `label` < n_classes. */
const char *source_class_name(const struct source *source, uint32_t label);

/* Bytes of the `n` longest samples' field together, each rounded up to a multiple of `alignment`. Looks at each sample:
 * milliseconds a million. -ENOMEM. */
int source_longest_together(const struct source *source, uint32_t field, uint32_t n, uint64_t alignment,
                            uint64_t *ret_bytes);
