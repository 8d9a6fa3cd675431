/* data/formats/arrow/table/ipc_batch.h: the arrays of a record batch: how many elements each has, and where its buffers lie.
 *
 * A batch lists its arrays in the sequence of the schema's fields. What each array has depends on its type alone; here
 * it is checked that its buffers lie in the message's body and are as long as its elements need. Offsets within the
 * buffers are checked when they are read (cells.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/formats/arrow/table/ipc_schema.h"
#include "daemon/data/formats/arrow/table/message.h"

#define ARROW_ROWS_FOR_NOTHING 65536u /* rows that a batch may have without a byte for each eight of them */

enum arrow_compression {
        ARROW_PLAIN,
        ARROW_LZ4,
        ARROW_ZSTD,
};

struct arrow_buffer {
        uint64_t offset, n_bytes; /* in the file, or in what was unpacked */
};

struct arrow_array {
        uint64_t n;       /* elements */
        uint64_t n_nulls; /* at most n */
        uint32_t first_buffer, n_buffers;
};

struct arrow_batch {
        uint64_t n_rows;
        enum arrow_compression compression; /* not ARROW_PLAIN: each buffer has to be unpacked as a whole */
        struct growing unpacked;            /* its memory */
        uint8_t *plain;                     /* what was unpacked; NULL: the buffers lie in the file (ipc_unpack.h) */
        uint64_t n_plain;                   /* bytes of it */
        uint32_t first_field;               /* of the schema */
        bool is_dictionary;                 /* the first field's array holds the values of its dictionary */
        struct growing arrays;              /* struct arrow_array; that of field f is f - first_field. The children of a
                                             * column with a dictionary have none: zeroes */
        struct growing buffers;             /* struct arrow_buffer */
};

/* Reads the header of a record batch, of all columns. `batch` is one that was read before, whose memory is used again,
 * or zeroes. Returns 0; -EBADMSG with `why`, which names the column; or -ENOMEM. Any input is safe. */
int arrow_batch_read(struct arrow_batch *batch, const struct arrow_schema *schema, const struct arrow_message *message,
                     struct why *why);

/* The same for the values of a dictionary, which field `idx_field` uses. `record` is its record batch. */
int arrow_batch_read_dictionary(struct arrow_batch *batch, const struct arrow_schema *schema, uint32_t idx_field,
                                const struct flat_table *record, const struct arrow_message *message, struct why *why);

/* Takes a struct of zeroes. */
void arrow_batch_fini(struct arrow_batch *batch);

static inline const struct arrow_array *arrow_batch_array(const struct arrow_batch *batch, uint32_t idx_field) {
        return (const struct arrow_array *)(const void *)batch->arrays.bytes + (idx_field - batch->first_field);
}

/* Buffer i < n_buffers of an array. */
static inline const struct arrow_buffer *arrow_batch_buffer(const struct arrow_batch *batch,
                                                            const struct arrow_array *array, uint32_t i) {
        return (const struct arrow_buffer *)(const void *)batch->buffers.bytes + array->first_buffer + i;
}

/* Does the batch hold indices into a dictionary for this field? */
static inline bool arrow_batch_has_indices(const struct arrow_batch *batch, const struct arrow_schema *schema,
                                           uint32_t idx_field) {
        return arrow_schema_field(schema, idx_field)->has_dictionary &&
               !(batch->is_dictionary && idx_field == batch->first_field);
}
