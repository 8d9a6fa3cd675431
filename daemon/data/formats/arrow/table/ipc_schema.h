/* data/formats/arrow/table/ipc_schema.h: the columns of an Arrow file, as its first message declares them.
 *
 * Columns may have children (the elements of a list, the members of a struct). The schema is kept as one row of fields,
 * each before its children and these before its next sibling; in this sequence record batches list their arrays. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/formats/arrow/table/flat.h"
#include "daemon/data/formats/differing/columns_map.h"
#include "daemon/data/growing.h"
#include "proto/base/why.h"

#define ARROW_FIELDS_MAX 4096u /* with all children */
#define ARROW_DEPTH_MAX  16u
#define ARROW_NAME_MAX   1024u /* bytes */

enum arrow_kind {
        ARROW_NULL,       /* no value has anything */
        ARROW_BOOL,       /* bits */
        ARROW_NUMBER,     /* of `width` bytes, as `dtype` */
        ARROW_FIXED,      /* `width` bytes without a dtype of ours: fixed binary, decimals, intervals */
        ARROW_BYTES,      /* 32-bit offsets, or 64-bit ones if is_large; then bytes: text if is_text */
        ARROW_BYTES_VIEW, /* views of 16 bytes; then any number of buffers with bytes */
        ARROW_LIST,       /* offsets; one child */
        ARROW_LIST_VIEW,  /* offsets and sizes; one child */
        ARROW_FIXED_LIST, /* `width` elements; one child */
        ARROW_STRUCT,
        ARROW_UNION,
        ARROW_RUNS, /* run-end encoded */
};

struct arrow_field {
        uint64_t name;      /* offset into names; UTF-8 */
        uint64_t extension; /* offset into names: the name of its extension type, "" without one */
        const char *type;   /* its type as Arrow calls it, for messages */
        enum arrow_kind kind;
        bool is_large, is_text;
        uint32_t width; /* bytes; of a fixed list: elements */
        uint32_t dtype; /* enum dlp_dtype of a number */
        int64_t unit;   /* of times and unions: Arrow's number; of decimals: digits after the point */

        bool has_dictionary; /* batches hold indices into a dictionary, whose elements have the type above */
        bool index_is_signed;
        uint32_t index_width; /* bytes */
        int64_t dictionary;   /* its id */

        uint32_t n_children;
        uint32_t n_below; /* fields below it, children of children included */
        uint32_t depth;   /* 0: a column */
};

struct arrow_schema {
        struct growing fields; /* struct arrow_field */
        uint32_t n_fields, n_columns;
        struct growing names; /* texts, each with a NUL */
        uint64_t huggingface; /* offset into names: what the library "datasets" has noted in the schema, JSON; or "" */
};

/* Reads a message's header of the type schema. Returns 0; -EBADMSG or -ENOTSUP with `why`, which says what is wrong,
 * but not where; -ENOMEM. Any input is safe, and memory is bounded by its size. */
int arrow_schema_read(const struct flat_table *header, struct arrow_schema *ret_schema, struct why *why);

/* Takes a struct of zeroes. */
void arrow_schema_fini(struct arrow_schema *schema);

static inline const struct arrow_field *arrow_schema_field(const struct arrow_schema *schema, uint32_t idx) {
        return (const struct arrow_field *)(const void *)schema->fields.bytes + idx;
}

static inline const char *arrow_schema_text(const struct arrow_schema *schema, uint64_t at) {
        return (const char *)schema->names.bytes + at;
}

/* As differing/columns_map.h wants them. Files may differ in the sequence of their columns, in what they have, in the
 * kinds of texts and lists, and in the types of numbers. */
extern const struct columns_type ARROW_COLUMNS;
struct columns_range arrow_schema_range(const void *schema);

/* Gives columns without a type those that they have in another file; a schema of zeroes becomes a copy of the file's.
 * Returns 0, or -ENOMEM with `why`. */
int arrow_schema_complete(void *schema, const void *file, struct why *why);
