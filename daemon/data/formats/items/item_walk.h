/* data/formats/items/item_walk.h: one walk over the items of a shard after the other: the first one finds out what arrays
 * are that say it themselves, the second one makes the index. One thread. */
#pragma once

#include "daemon/data/formats/items/items.h"

struct item_walk {
        struct item_set *set;
        int root_fd;
        const char *root;
        const struct index_watch *watch; /* may be NULL */
        const atomic_bool *is_over;      /* nobody wants what it finds any more; may be NULL */
        struct why *why;
        struct index_builder *builder;           /* NULL: this walk only finds what the arrays are */
        struct index_row rows[INDEX_FIELDS_MAX]; /* of the item: first of all columns, then of those that are served */
        uint64_t n_items;                        /* so far */

        const char *name; /* of the shard */
        int fd;
        uint64_t n_bytes;
        const struct item_place *places; /* of its layout */
        uint32_t n_places;
        uint64_t idx_item; /* in the shard */
        uint32_t *begins;  /* of the items, and the end of the last one; in `table` */
        struct growing table;

        uint64_t window_at;
        size_t n_window;
        uint8_t window[64 << 10];
        uint32_t dtypes[INDEX_FIELDS_MAX]; /* of each column in this shard */
        bool has_array[INDEX_FIELDS_MAX];  /* the column's type and shape are known from an earlier item */
};

/* Walks over all items of a shard, of which `ret_status` is from before it was read; with a builder, it is added to it.
 * Returns 0 or an errno with the walk's `why`, which names shard and item. Blocks for a small read of each item. */
int item_walk_shard(struct item_walk *walk, uint64_t idx_shard, struct stat *ret_status);
