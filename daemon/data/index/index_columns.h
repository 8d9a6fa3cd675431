/* data/index/index_columns.h: the columns of an index that is being built: values of each sample that are known without
 * reading. Private to this folder; formats use index_builder.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/growing.h"
#include "daemon/data/index/index_layout.h"

struct index_column {
        struct index_field field;
        struct growing elements; /* of all samples, one after the other */
        struct growing ends;     /* as in the file; empty while all samples have values of one size */
        uint64_t n_absent;
        bool is_set; /* for the sample that is added next */
};

struct index_columns {
        uint32_t n;
        struct index_column columns[INDEX_FIELDS_MAX];
};

void index_columns_fini(struct index_columns *columns);

/* What `field` is, as the index file says it: without flags and place. */
void index_field_describe(struct index_field *ret_described, const struct schema_field *field);

/* The size of a value that has the shape of the field; of one row if the first dimension varies; 1 for text and bytes.
 * UINT64_MAX if that overflows. */
uint64_t index_field_unit(const struct index_field *field);

/* Does the size of a value depend on the sample? */
bool index_field_varies(const struct index_field *field);

/* As the functions of index_builder.h with such names. */
int index_columns_add(struct index_columns *columns, const struct schema_field *field, uint32_t *ret_idx);
int index_columns_set(struct index_columns *columns, uint32_t idx, const void *elements, uint64_t n_bytes);

/* The sample number `n_samples`, counted from 0, has its values. A column without one is absent (asserted that it may
 * be). -ENOMEM. */
int index_columns_next(struct index_columns *columns, uint64_t n_samples);

/* Adds the values of the n_part samples of `part`, which has the same fields, after n_samples. -ENOMEM, -E2BIG. */
int index_columns_append(struct index_columns *columns, uint64_t n_samples, const struct index_columns *part,
                         uint64_t n_part);

/* All samples are added: settles flags and places. Returns the bytes of the section. */
uint64_t index_columns_end(struct index_columns *columns);
