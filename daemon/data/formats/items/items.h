/* data/formats/items/items.h: shards that begin with a table of their items, as MDS and LitData write them.
 *
 *      n (4 bytes), begin of each item and end of the last one (4 bytes each), what the format likes, items
 *
 * An item: the sizes of those columns that have no fixed size (4 bytes each), then the columns, one after the other.
 * Which columns there are is said elsewhere, in the format's index.json. All numbers are little-endian, and count from
 * the begin of the shard. Every number is checked against the file, since any of them may be damaged. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/format.h"
#include "daemon/data/formats/differing/columns_map.h"
#include "daemon/data/growing.h"
#include "daemon/data/schema.h"

#define ITEM_NAME_MAX 256u /* bytes of a column's name, with a NUL */

/* What stands before the elements of an array, and says what it is. */
enum item_prefix {
        PREFIX_NONE,
        PREFIX_MDS_SHAPE, /* n_dims << 2 | log2 of the size of a dimension (1 byte), the dimensions */
        PREFIX_MDS_ARRAY, /* a type (1 byte), then as before */
        PREFIX_NUMPY,     /* LitData: a type, n_dims, the dimensions: 4 bytes each */
        PREFIX_TENSOR,    /* the same, big-endian (older ones little-endian), and the types have other numbers */
};

struct item_column {
        struct schema_field field; /* of an array with a prefix without dimensions, which items_build() finds */
        uint64_t n_bytes;          /* 0: not fixed */
        enum item_prefix prefix;
        char refused[32]; /* how its values are stored, if they cannot be served; "": they can */
        uint64_t n_shard; /* of such a column: 1 + the shard in which they are not stored as in the first; 0: in none */
        bool is_mixed;    /* a number whose type differs from shard to shard: a column of the index */
        bool is_left_out; /* it cannot be served, and is not in the index */
};

/* A value within an item of some shards. */
struct item_place {
        uint32_t idx_column; /* of the set; COLUMN_NONE: it is not one of them */
        uint32_t dtype;      /* of a number */
        uint64_t n_bytes;    /* 0: not fixed */
};

/* What the items of some shards hold, in this sequence. */
struct item_layout {
        size_t first; /* of the set's places */
        uint32_t n;
};

struct item_shard {
        size_t name; /* offset into names: relative to the root, checked to lie within it */
        uint64_t n_items;
        uint64_t n_bytes;    /* of the file, unless the set is_resized */
        uint32_t idx_layout; /* the last one when it was added; of a set without layouts all items hold its columns */
};

struct item_set {
        const char *format; /* its name */
        const char *item;   /* what an item is called in messages: "sample" */
        struct item_column columns[INDEX_FIELDS_MAX];
        uint32_t n_columns;
        struct refusals *refusals; /* of format_refusals(); NULL in a part */
        bool is_bare;              /* an item is its one column, without sizes, */
        uint64_t
                n_block_bytes; /* and if this is not 0, samples are not items, but blocks of this size within a shard */
        bool is_resized;       /* the files were decompressed since their sizes were written down */
        int (*check)(int fd, uint64_t n_bytes, struct why *why); /* of a shard before it is read, or NULL: returns 0 or
                                                                  * an errno with `why`, which does not name it */
        struct growing layouts, places;                          /* struct item_layout, struct item_place */
        struct growing shards;                                   /* struct item_shard */
        struct growing names;
        struct stat folder, index_status; /* of the root and of its index.json, from before they were read */
        int64_t settled_ns;
};

/* Takes a struct of zeroes. */
void item_set_fini(struct item_set *set);

/* Adds a shard of the set. Returns 0; -EBADMSG with `why` if the name leads out of the root or a number is impossible;
 * -ENOMEM. */
int item_set_add_shard(struct item_set *set, const char *name, int64_t n_items, int64_t n_bytes, struct why *why);

/* Adds a layout of n places for the shards that are added from now on. -ENOMEM. */
int item_set_add_layout(struct item_set *set, const struct item_place *places, uint32_t n);

/* The columns that `fields` (as in fields = "a=x|y, b") does not name become bytes that nobody asks for, whatever they
 * hold. NULL: all are wanted. Columns among the refusals are left out. Returns the first one that is wanted and
 * refused, and not left out yet; or NULL. */
const struct item_column *item_set_choose(struct item_set *set, const char *fields);

/* The type of an element, as MDS and LitData number them in a prefix. Returns false for one that no tensor has. */
bool item_dtype(enum item_prefix prefix, uint32_t number, uint32_t *ret_dtype);

/* Makes the index of a set. Returns 0 or an errno with `why`, which names shard and item. Blocks for a small read of
 * each item. */
int items_build(struct item_set *set, int root_fd, const char *root, const struct index_watch *watch,
                struct index_builder **ret_builder, struct why *why);
