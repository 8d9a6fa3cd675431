/* data/source_type.h: what a format writes to become a source. Private to this floor.
 *
 * A format's own struct has a struct source as its first member, fills it in when it is opened, and gives these
 * functions. Samples and fields that they are asked for exist: source.c has looked. */
#pragma once

#include "daemon/data/source.h"

/* What of the folder has to be as it was. */
enum source_compare {
        SOURCE_COMPARE_NAMES, /* directories and shards are there */
        SOURCE_COMPARE_TIMES, /* and have their times and sizes */
        SOURCE_COMPARE_ALL,   /* and their devices and inodes */
};

struct source_type {
        void (*close)(struct source *source);

        /* Returns 0, SOURCE_STALE or an errno. */
        int (*compare)(const struct source *source, int root_fd, enum source_compare compare, struct why *why);

        /* A stored field. */
        void (*locate)(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent);

        /* As source_row(); NULL: nothing of it is in memory. */
        const uint8_t *(*row)(const struct source *source, uint64_t sample, uint32_t field);

        /* NULL without `row`. */
        bool (*rows_were_there)(const struct source *source, uint32_t field);

        /* A field that is not stored. NULL: all are. */
        void (*value)(const struct source *source, uint64_t sample, uint32_t field, void *ret_value);

        size_t (*name)(const struct source *source, uint64_t sample, char *ret_name);
        /* NULL: there are no classes. */
        const char *(*class_name)(const struct source *source, uint32_t label);
};
