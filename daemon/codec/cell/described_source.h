/* codec/cell/described_source.h: a source that is nothing but its description, for codecs in a cell.
 *
 * Its fields are those of the dataset. Of the sample that an order is about it knows the value that the order brought.
 */
#pragma once

#include "daemon/data/source.h"

struct described_source {
        struct source source;
        const uint8_t *value; /* NULL: the sample does not have it */
        uint64_t n_bytes;
        uint32_t idx_boxes; /* another field that has a value at the same time */
        const uint8_t *boxes;
        uint64_t n_boxes_bytes;
};

void described_source_init(struct described_source *described, const struct schema *schema, uint32_t n_classes);

/* Which value the field has that is opened next, whichever that is. The bytes stay the caller's. */
void described_source_set(struct described_source *described, const uint8_t *value, uint64_t n_bytes);

/* The value of the boxes on which that field's plan depends, if it does: they are field `idx_boxes` of the source.
 * Until the next described_source_set(). */
void described_source_set_boxes(struct described_source *described, uint32_t idx_boxes, const uint8_t *value,
                                uint64_t n_bytes);
