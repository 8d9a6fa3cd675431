/* data/formats/differing/columns_map.h: where the columns of a dataset are in one of its files, whose columns may differ.
 *
 * A schema is a row of fields, each before its members and these before its next sibling. Columns, and members of
 * structs, belong together by their names, in any sequence. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define COLUMN_NONE  UINT32_MAX        /* the file does not have it, or no value of it */
#define COLUMN_OTHER (UINT32_MAX - 1u) /* it is of a type there that cannot take its place */

enum column_sort {
        COLUMN_VALUE,
        COLUMN_NULL, /* no row has a value, so any type can take its place */
        COLUMN_STRUCT,
};

/* How a format keeps its schemas. `idx` is a field. */
struct columns_type {
        const char *(*name)(const void *schema, uint32_t idx);
        uint32_t (*n_below)(const void *schema, uint32_t idx);
        enum column_sort (*sort)(const void *schema, uint32_t idx);
        /* Can the one field take the place of the other, apart from what is below them? */
        bool (*is_alike)(const void *schema, uint32_t idx, const void *other, uint32_t idx_other);
        /* Appends a copy of a field to a schema; and says how many fields below a field there are now. */
        int (*append)(void *schema, const void *from, uint32_t idx);
        void (*set_below)(void *schema, uint32_t idx, uint32_t n_below);
};

/* The columns of a schema: fields begin to end - 1. */
struct columns_range {
        const void *schema;
        uint32_t begin, end;
};

/* Writes into ret_map[i] where field i of `columns` is in `file`, COLUMN_NONE or COLUMN_OTHER. Returns false if no
 * column is in both. */
bool columns_map(const struct columns_type *type, struct columns_range columns, struct columns_range file,
                 uint32_t *ret_map);

/* Has one of the columns, or a member of a struct, no type yet? */
bool columns_have_null(const struct columns_type *type, struct columns_range columns);

/* Appends `columns` to the schema `into`, whose next field is n_before. What has no type there gets that of `file`.
 * Returns 0 or the errno of append(). */
int columns_complete(const struct columns_type *type, struct columns_range columns, struct columns_range file,
                     void *into, uint32_t n_before);
