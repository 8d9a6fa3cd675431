/* data/formats/columnar/columnar_value.h: the value of a row in one column of a table: where its bytes are. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/schema.h"

#define COLUMNAR_NULL       UINT64_MAX /* offset, without bytes: the row has no value */
#define COLUMNAR_WIDTH_NONE UINT64_MAX

struct columnar_value {
        const uint8_t *bytes; /* NULL: in the file at `offset`. Valid until the next row */
        uint64_t offset, n_bytes;
};

static inline bool columnar_is_null(const struct columnar_value *value) {
        return !value->bytes && value->offset == COLUMNAR_NULL;
}

/* Lists within lists: a row's elements are an array only if all lists of a level have the same length. */
struct columnar_widths {
        uint64_t n[SCHEMA_DIMS_MAX]; /* elements of a list of dimension 1, 2, ...; [0] is not used. COLUMNAR_WIDTH_NONE:
                                      * none was seen yet, and the first one decides */
};
