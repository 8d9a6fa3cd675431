/* data/formats/arrow/table/flat.h: reads FlatBuffers, the encoding of Arrow's metadata.
 *
 * A table refers to its fields by number; a small table of offsets (the vtable) says where each one is, and an absent
 * field has its default. All numbers are little-endian. The bytes come from a file and are never trusted: each read is
 * checked against the buffer. The first wrong reference marks the buffer as damaged; from then on all reads return
 * defaults and all vectors are empty, so a reader checks `is_damaged` once, after it has read what it needs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flat {
        const uint8_t *bytes;
        size_t n_bytes; /* below 2^31 */
        bool is_damaged;
};

/* A table; `flat` is NULL for one that is absent, and then all of its fields are. */
struct flat_table {
        struct flat *flat;
        size_t at;         /* of the table */
        size_t vtable;     /* of its vtable */
        uint32_t n_vtable; /* bytes of the vtable */
        uint32_t n_table;  /* bytes of the table */
};

struct flat_vector {
        struct flat *flat;
        size_t at;         /* of the first element */
        uint32_t n;        /* elements */
        uint32_t n_stride; /* bytes of an element */
};

/* The table that the buffer begins with. */
struct flat_table flat_root(struct flat *flat);

/* A number of 1, 2, 4 or 8 bytes (`n_bytes`), sign-extended if it is signed. */
int64_t flat_signed(const struct flat_table *table, uint32_t field, uint32_t n_bytes, int64_t otherwise);
uint64_t flat_unsigned(const struct flat_table *table, uint32_t field, uint32_t n_bytes, uint64_t otherwise);

/* A table in a field. It is absent if the field is. */
struct flat_table flat_inner(const struct flat_table *table, uint32_t field);

/* A text, which is not NUL-terminated and may have any bytes. Returns "" and 0 bytes if it is absent. */
const char *flat_text(const struct flat_table *table, uint32_t field, size_t *ret_n);

/* A vector of elements of n_stride bytes; of tables: 4. Empty if it is absent. */
struct flat_vector flat_vector(const struct flat_table *table, uint32_t field, uint32_t n_stride);

/* Element i < n of a vector of tables. */
struct flat_table flat_vector_table(const struct flat_vector *vector, uint32_t i);

/* Element i < n of a vector of numbers or structs; n_stride bytes of it are there. */
const uint8_t *flat_vector_bytes(const struct flat_vector *vector, uint32_t i);
