/* data/formats/items/item_array.h: arrays that say themselves what they are, in a prefix before their elements. */
#pragma once

#include "daemon/data/formats/items/items.h"

struct item_array {
        uint32_t dtype;
        uint32_t n_dims;
        uint64_t shape[SCHEMA_DIMS_MAX];
        uint64_t n_prefix; /* bytes before the elements */
};

/* Reads what stands before the elements of a column's array from its first n bytes. Returns false if it does not fit,
 * or is an array that no field can be. */
bool item_array_read(const struct item_column *column, const uint8_t *bytes, size_t n, struct item_array *array);

/* Does the array have n_bytes bytes, with its prefix? */
bool item_array_has_elements(const struct item_array *array, uint64_t n_bytes);

/* Is it what the field says? */
bool item_array_fits(const struct schema_field *field, const struct item_array *array);
