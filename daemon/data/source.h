/* data/source.h: what a dataset's samples are and where their bytes are, in any format.
 *
 * A source is live: it is asked about each sample, and answers from an index, which is mapped, or by computing (rows of
 * an array). Modules above do not know which. What never changes is stored in struct source itself; the rest are
 * functions of the format (struct source_type).
 *
 * An opened source is immutable; any number of threads may use it. All functions are quick and never block, except
 * source_is_current() and source_is_same(), which look at the folder. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/refusals.h"
#include "daemon/data/schema.h"
#include "proto/base/why.h"

#define SOURCE_NAME_SIZE PATH_MAX /* bytes with NUL that hold the name of any sample */

#define EXTENT_NOT_REGULAR 1u /* a FIFO, a socket, a device: a read must be refused, not tried */
#define EXTENT_UNREACHABLE 2u /* could not be looked at: a broken link, no permission on the path; length 0 */
#define EXTENT_ABSENT      4u /* this sample does not have the field */

/* Positive outcome of source_is_current(): the folder has changed. */
#define SOURCE_STALE 1

struct file_stamp;

/* Where the bytes of one field of a sample are. The strings point into the source and live as long as it does. */
struct extent {
        const char *dir;  /* relative to the dataset's folder; "" for the folder itself */
        const char *name; /* within that directory */
        uint64_t file;    /* number of the file: fields and samples may share one */
        uint64_t offset;  /* bytes */
        uint64_t length;  /* bytes */
        uint32_t flags;   /* EXTENT_... */

        const char *shard;  /* the file in the folder that holds it; dir and name are its former name. NULL: none */
        uint32_t idx_shard; /* 0 without a shard */
        const struct file_stamp *stamp; /* of the shard, as it was indexed; NULL: not known */
};

/* A part of a stored field that lies in one place. Most fields are one piece; a gathered field (schema.h) is several,
 * all in the file of source_locate(). */
struct source_piece {
        const uint8_t *bytes; /* if it is mapped; NULL: it has to be read. See source_next_piece() */
        uint64_t offset;      /* in the file */
        uint64_t n_bytes;
        uint64_t n_before;  /* elements of the field before this piece */
        uint32_t dtype;     /* of a gathered field: of its elements as they are stored */
        uint32_t number;    /* of the piece, from 1 */
        uint64_t cursor[4]; /* the source's own */
};

struct source;

struct source_type;

/* A source that is made of several has parts (data/joined/joined.h). */
struct source_part {
        const char *name;      /* of its dataset */
        struct source *source; /* of its own samples, with the fields of all parts in the same sequence */
        uint64_t first;        /* the number of its first sample among those of all parts */
};

/* The first member of the struct that a format opens. Its fields are set when it is opened, and anyone may read them
 * after that. */
struct source {
        const struct source_type *type;
        struct schema schema;
        const char *format;
        const char *digest;      /* of the content: 64 hexadecimal digits */
        uint64_t n_samples;      /* DLP_UNKNOWN of a stream: see `growth` */
        uint64_t n_shards;       /* 0: each sample has files of its own */
        uint64_t total_bytes;    /* of all stored fields of all samples */
        uint64_t max_length;     /* bytes of the longest stored field of any sample */
        uint64_t max_span;       /* the longest distance from the first to the last byte of a sample in its file */
        uint64_t max_name_bytes; /* length of the longest name of a sample, without NUL */
        uint32_t n_classes;      /* of the labels */
        uint64_t max_gap;        /* fields of a sample that lie farther apart in a file are read one by one; 0: never */
        bool has_several_files; /* the stored fields of a sample are not side by side: in several files, or far apart */
        bool has_fixed_lengths; /* a stored field has the same length in all samples */
        struct growth *growth;  /* of a stream: how many samples there are so far; else NULL (data/growth.h) */
        const struct refusal *refused; /* columns that cannot be served (data/refusals.h) */
        uint32_t n_refused;
        const struct source_part *parts;
        uint32_t n_parts; /* 0: it is not made of several */
};

/* Both take NULL. */
void source_close(struct source *source);
void source_closep(struct source **source);

/* Does the folder still look as it did when the source was opened first? Looks at each directory or shard, but not at
 * each file in a directory: adding, removing or renaming a file changes the time of its directory. Where each sample
 * has files of its own, one that was rewritten in place is not noticed; its reader notices if the length differs. The
 * digest leaves their bytes out, as it is also that of the same samples when they are packed.
 * Shards are noticed by any difference of base/machine/file_stamp.h, and then indexed again: if no byte differs, it is
 * the same dataset, with the same digest. Returns 0; SOURCE_STALE with `why`, which says what changed; or an errno.
 * Blocks for about one stat of each directory or shard. */
int source_is_current(const struct source *source, int root_fd, struct why *why);

/* The same, but the place does not count: devices, inodes and times of change may differ, as after a file system was
 * mounted again.
 * Without `by_time` the directories and shards must only exist. */
int source_is_same(const struct source *source, int root_fd, bool by_time, struct why *why);

/* Which part the sample belongs to. The source has parts. */
uint32_t source_part_of(const struct source *source, uint64_t sample);

/* The source that has the sample, under the number *sample, which changes: the part's, or the source itself. The
 * functions below do this by themselves; fields have the same numbers in both. */
const struct source *source_with(const struct source *source, uint64_t *sample);

/* How many samples there are now: all, or those of a stream that have arrived. */
uint64_t source_n_known(const struct source *source);

/* How many there may be at most: for tables that have a place for each. */
uint64_t source_n_possible(const struct source *source);

/* Why the sample cannot be served, whatever is asked of it; NULL: it can be. For what a stream found to be damaged when
 * it took it in. */
const char *source_broken(const struct source *source, uint64_t sample);

/* Where the shard ends in which the sample (< n_samples) lies: the first sample after it that lies in another one, or
 * n_samples. False: shards do not hold samples that follow each other, or there are none. */
bool source_shard_end(const struct source *source, uint64_t sample, uint64_t *ret_end);

/* Where the stored field `field` of the sample (< n_samples) lies. */
void source_locate(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent);

/* Does the sample have the field? */
bool source_has(const struct source *source, uint64_t sample, uint32_t field);

/* The length of the field in bytes, as it is stored or as source_value() writes it; 0 if the sample does not have it.
 * If its file could not be looked at: the length of the longest field. */
uint64_t source_length(const struct source *source, uint64_t sample, uint32_t field);

/* The next piece of a stored field; the first one for a `piece` of zeroes. Returns false after the last one, and the
 * piece is then undefined. A field that is absent has one piece, of no bytes.
 *
 * Mapped bytes: the file may be cut short, or its disk may be slow, so only the functions of base/machine/mapped.h may
 * touch them. */
bool source_next_piece(const struct source *source, uint64_t sample, uint32_t field, struct source_piece *piece);

/* The pieces of this sample are asked for soon: brings what says where they are into the CPU's cache. To be called
 * twice, first when the sample is still far. */
void source_prefetch(const struct source *source, uint64_t sample, bool is_near);

/* Can its pieces be copied from a mapping? Single ones may still have to be read. Ask it, and the next one, of each
 * part of a source that has parts. */
bool source_is_mapped(const struct source *source, uint32_t field);

/* Were all pieces of the field that have been copied so far really there? A file that was cut reads as zeroes up to the
 * end of its last page, and they look like any other bytes. May wait for the disk. */
bool source_rows_were_there(const struct source *source, uint32_t field);

/* Writes the value of a field that is neither stored nor a name: its elements, in C order, little-endian, or its text;
 * source_length() bytes. Nothing if the sample does not have it. */
void source_value(const struct source *source, uint64_t sample, uint32_t field, void *ret_value);

/* Writes the name of a sample, for messages and the ledger, into SOURCE_NAME_SIZE bytes: the path of its file relative
 * to the folder, or its name before it was packed. Returns its length. */
size_t source_name(const struct source *source, uint64_t sample, char *ret_name);

/* Name of class `label` < n_classes. */
const char *source_class_name(const struct source *source, uint32_t label);

/* Writes the path of the file, relative to the folder, into SOURCE_NAME_SIZE bytes: of a field that has a file of its
 * own. Returns its length. */
size_t extent_path(const struct extent *extent, char *ret_path);

/* What one read brings: fields that lie in one file, and whatever is between them. */
struct source_read {
        struct extent first; /* of the fields, in the order in which they were added */
        uint64_t begin, end;
};

/* Adds a field of a sample to the reads of the sample, *n of them so far, which need room for one more. Returns which
 * one brings it. The reads depend on the order in which fields are added. */
uint32_t source_add_to_reads(const struct source *source, const struct extent *extent, struct source_read *reads,
                             uint32_t *n);

/* Do two fields lie in one file? */
bool extent_is_same_file(const struct extent *one, const struct extent *other);

/* The most bytes that one read for a sample brings if only these stored fields are wanted: what one file has of them,
 * and what lies in between. Known if all stored fields are wanted or the lengths are fixed; else this looks at each
 * sample: milliseconds for a million. Too low if nobody wants it any more (base/work/errand.h). */
uint64_t source_longest_read(const struct source *source, const uint32_t *fields, uint32_t n_fields);

/* The total bytes of the field, stored or known, in the `n` longest samples, each rounded up to a multiple of
 * `alignment`. Looks at each sample unless the lengths are fixed, as above. -ENOMEM. */
int source_longest_together(const struct source *source, uint32_t field, uint32_t n, uint64_t alignment,
                            uint64_t *ret_bytes);
