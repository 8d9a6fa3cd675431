/* data/formats/parquet/parquet_schema.h: the columns of a Parquet file, as its footer declares them.
 *
 * The schema is a tree. Only its leaves have values; a column of ours is an element below the root, which is a leaf, or
 * a group: a list, or a struct. The tree is kept as one row of elements, each before its children and these before its
 * next sibling. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/formats/differing/columns_map.h"
#include "daemon/data/formats/parquet/thrift.h"
#include "daemon/data/growing.h"
#include "proto/base/why.h"

#define PARQUET_ELEMENTS_MAX 16384u /* with all groups */
#define PARQUET_DEPTH_MAX    32u
#define PARQUET_NAME_MAX     1024u /* bytes */
#define PARQUET_WIDTH_MAX    (1u << 20)

enum parquet_physical {
        PARQUET_BOOLEAN,
        PARQUET_INT32,
        PARQUET_INT64,
        PARQUET_INT96,
        PARQUET_FLOAT,
        PARQUET_DOUBLE,
        PARQUET_BYTE_ARRAY,
        PARQUET_FIXED,
        PARQUET_N_PHYSICALS,
};

/* What the values of a leaf are, or a group is. */
enum parquet_meaning {
        PARQUET_NUMBER, /* or a bool: as `dtype` */
        PARQUET_TEXT,
        PARQUET_BYTES,
        PARQUET_NOTHING, /* no row has a value */
        PARQUET_OTHER,   /* a leaf that cannot be served */
        PARQUET_LIST,
        PARQUET_GROUP, /* a struct, or a map */
};

struct parquet_element {
        uint64_t name;    /* offset into names; UTF-8 */
        const char *type; /* as Parquet calls it, for messages */
        enum parquet_meaning meaning;
        enum parquet_physical physical; /* of a leaf */
        uint32_t width;                 /* bytes of a stored value; 0: it varies, or it is a bit */
        uint32_t dtype;                 /* enum dlp_dtype of a PARQUET_NUMBER */
        uint32_t time;                  /* 0: neither a date nor a time; equal only for those of the same unit */
        bool is_repeated;
        uint32_t idx_leaf;   /* of a leaf: which one of the leaves */
        uint32_t idx_parent; /* the element above; the root's is 0 */
        uint32_t n_children; /* 0: a leaf */
        uint32_t n_below;    /* elements below it, children of children included */
        uint32_t depth;      /* 1: a column; 0: the root */
        uint32_t n_defined;  /* the definition level of a value that is there down to here */
        uint32_t n_repeated; /* repeated elements from the root to here: the highest repetition level */
};

struct parquet_schema {
        struct growing elements; /* struct parquet_element; the first one is the root */
        uint32_t n_elements, n_leaves, n_columns;
        struct growing names; /* texts, each with a NUL */
};

/* Reads the list of elements from the footer. Returns 0; -EBADMSG or -ENOTSUP with `why`, which says what is wrong, but
 * not where; -ENOMEM. Any input is safe, and memory is bounded by its size. */
int parquet_schema_read(struct thrift *thrift, enum thrift_type type, struct parquet_schema *ret_schema,
                        struct why *why);

/* Takes a struct of zeroes. */
void parquet_schema_fini(struct parquet_schema *schema);

static inline const struct parquet_element *parquet_element(const struct parquet_schema *schema, uint32_t idx) {
        return (const struct parquet_element *)(const void *)schema->elements.bytes + idx;
}

static inline const char *parquet_element_name(const struct parquet_schema *schema, uint32_t idx) {
        return (const char *)schema->names.bytes + parquet_element(schema, idx)->name;
}

/* The definition level from which on a leaf has an element at this level of repetition, from 1 to its n_repeated. */
uint32_t parquet_schema_level(const struct parquet_schema *schema, uint32_t idx_leaf_element, uint32_t repetition);

/* As differing/columns_map.h wants them. Files may differ in the sequence of their columns, in what they have, and in
 * the types of numbers. Whether values may be missing does not count. */
extern const struct columns_type PARQUET_COLUMNS;
struct columns_range parquet_schema_range(const void *schema);

/* Gives columns without a type those that they have in another file; a schema of zeroes becomes a copy of the file's.
 * idx_leaf and idx_parent of all elements stay what they are where they come from. Returns 0, or -ENOMEM with `why`. */
int parquet_schema_complete(void *schema, const void *file, struct why *why);
