/* data/source_type.h: what a format implements to become a source. Private to this folder.
 *
 * A format's own struct has a struct source as its first member, fills it in when it is opened, and provides these
 * functions. Samples and fields passed to them exist: source.c has checked them. */
#pragma once

#include "daemon/data/source.h"

/* Which properties of the folder must be unchanged. */
enum source_compare {
        SOURCE_COMPARE_NAMES, /* directories and shards exist */
        SOURCE_COMPARE_TIMES, /* and have the same times and sizes */
        SOURCE_COMPARE_ALL,   /* and the same devices and inodes */
};

/* The longest read of all stored fields together, found by looking at each sample: max_span of a source that does not
 * know it otherwise. */
uint64_t source_longest_span(const struct source *source);

struct source_type {
        void (*close)(struct source *source);

        /* Returns 0, SOURCE_STALE or an errno. */
        int (*compare)(const struct source *source, int root_fd, enum source_compare compare, struct why *why);

        /* Where a stored field is. */
        void (*locate)(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent);

        /* As source_shard_end(). NULL: always false. */
        bool (*shard_end)(const struct source *source, uint64_t sample, uint64_t *ret_end);

        /* The bytes of a field that is one piece, if they are mapped. NULL: none are. */
        const uint8_t *(*row)(const struct source *source, uint64_t sample, uint32_t field);

        /* As source_next_piece(), of gathered fields; `number` is set already. NULL: there are none. */
        bool (*next_piece)(const struct source *source, uint64_t sample, uint32_t field, struct source_piece *piece);

        /* As source_prefetch(). NULL: nothing would be gained. */
        void (*prefetch)(const struct source *source, uint64_t sample, bool is_near);

        /* NULL: nothing is mapped. */
        bool (*rows_were_there)(const struct source *source, uint32_t field);

        /* The size of the value of a field that is neither stored nor a name; false: the sample does not have it. NULL:
         * the field's dtype and shape say it. */
        bool (*value_bytes)(const struct source *source, uint64_t sample, uint32_t field, uint64_t *ret_n_bytes);

        /* The value. NULL: all fields are stored. */
        void (*value)(const struct source *source, uint64_t sample, uint32_t field, void *ret_value);

        /* Why the sample cannot be served, whatever is asked of it; NULL: it can be. The text lives as long as the
         * source. NULL: all samples can be. */
        const char *(*broken)(const struct source *source, uint64_t sample);

        /* The most bytes of a field of any sample, of a source that grows. */
        uint64_t (*longest)(const struct source *source, uint32_t field);

        /* The most bytes of a field of n samples together. NULL: n times the longest. */
        uint64_t (*together)(const struct source *source, uint32_t field, uint32_t n);

        size_t (*name)(const struct source *source, uint64_t sample, char *ret_name);
        /* NULL: there are no classes. */
        const char *(*class_name)(const struct source *source, uint32_t label);
};
