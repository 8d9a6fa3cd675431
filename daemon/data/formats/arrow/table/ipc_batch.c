#include "daemon/data/formats/arrow/table/ipc_batch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/base/little_endian.h"

#define ROWS_MAX   (1ull << 40)
#define VIEW_BYTES 16u

enum {
        RECORD_ROWS,
        RECORD_NODES,
        RECORD_BUFFERS,
        RECORD_COMPRESSION,
        RECORD_VARIADIC
};
enum {
        CODEC_LZ4,
        CODEC_ZSTD
};

/* The vectors of the header, and how far they have been used. */
struct reading {
        struct arrow_batch *batch;
        const struct arrow_schema *schema;
        const struct arrow_message *message;
        struct flat_vector nodes, buffers, variadic;
        uint32_t idx_node, idx_buffer, idx_variadic;
        uint32_t idx_field; /* for messages */
        struct why *why;
};

static int ipc_batch_damaged(const struct reading *reading, const char *what) {
        return why_set(
                reading->why, -EBADMSG, "column \"%s\": %s; write the file again",
                arrow_schema_text(reading->schema, arrow_schema_field(reading->schema, reading->idx_field)->name),
                what);
}

static int ipc_batch_no_memory(const struct reading *reading) {
        return why_set(reading->why, -ENOMEM, "no memory for its arrays");
}

static int take_buffer(struct reading *reading, struct arrow_buffer *ret_buffer) {
        const uint8_t *bytes;
        uint64_t offset, n_bytes;

        if (reading->idx_buffer == reading->buffers.n)
                return ipc_batch_damaged(reading, "has fewer buffers than its type needs");
        bytes = flat_vector_bytes(&reading->buffers, reading->idx_buffer++);
        offset = le64(bytes);
        n_bytes = le64(bytes + 8);
        if (offset > reading->message->n_body || n_bytes > reading->message->n_body - offset)
                return ipc_batch_damaged(reading, "a buffer lies outside its message");
        *ret_buffer = (struct arrow_buffer){ .offset = reading->message->body + offset, .n_bytes = n_bytes };
        return growing_append(&reading->batch->buffers, ret_buffer, sizeof(*ret_buffer)) < 0
                       ? ipc_batch_no_memory(reading)
                       : 0;
}

/* A buffer of n_elements of n_bits; `may_be_empty`: also if there are elements. */
static int take_sized(struct reading *reading, uint64_t n_elements, uint64_t n_bits, bool may_be_empty) {
        struct arrow_buffer buffer;
        uint64_t n;
        int r = take_buffer(reading, &buffer);

        if (r < 0 || (buffer.n_bytes == 0 && may_be_empty) || reading->batch->compression != ARROW_PLAIN)
                return r;
        if (__builtin_mul_overflow(n_elements, n_bits, &n) || n / 8 + (n % 8 > 0) > buffer.n_bytes)
                return ipc_batch_damaged(reading, "a buffer is shorter than its elements");
        return 0;
}

/* Elements and nulls; the buffer that says which are null. */
static int take_node(struct reading *reading, struct arrow_array *array, bool has_validity) {
        const uint8_t *bytes;

        if (reading->idx_node == reading->nodes.n)
                return ipc_batch_damaged(reading, "the batch has fewer arrays than its schema");
        bytes = flat_vector_bytes(&reading->nodes, reading->idx_node++);
        array->n = le64(bytes);
        array->n_nulls = le64(bytes + 8);
        array->first_buffer = reading->idx_buffer;
        if (array->n > ROWS_MAX || array->n_nulls > array->n)
                return ipc_batch_damaged(reading, "its number of elements or of nulls cannot be right");
        return has_validity ? take_sized(reading, array->n, 1, array->n_nulls == 0) : 0;
}

static int take_views(struct reading *reading, const struct arrow_array *array) {
        struct arrow_buffer buffer;
        uint64_t n;
        int r = take_sized(reading, array->n, 8 * VIEW_BYTES, array->n == 0);

        if (r < 0)
                return r;
        if (reading->idx_variadic == reading->variadic.n)
                return ipc_batch_damaged(reading, "the number of its buffers is missing");
        n = le64(flat_vector_bytes(&reading->variadic, reading->idx_variadic++));
        if (n > reading->buffers.n)
                return ipc_batch_damaged(reading, "has fewer buffers than its type needs");
        for (; n > 0 && r == 0; n--)
                r = take_buffer(reading, &buffer);
        return r;
}

/* The buffers besides the first one. */
static int take_buffers(struct reading *reading, const struct arrow_field *field, const struct arrow_array *array) {
        uint32_t n_offset_bits = field->is_large ? 64 : 32;
        struct arrow_buffer buffer;
        int r = 0;

        switch (field->kind) {
        case ARROW_BOOL:
                return take_sized(reading, array->n, 1, array->n == 0);
        case ARROW_NUMBER:
        case ARROW_FIXED:
                return take_sized(reading, array->n, 8ull * field->width, array->n == 0);
        case ARROW_BYTES:
                r = take_sized(reading, array->n + 1, n_offset_bits, array->n == 0);
                return r < 0 ? r : take_buffer(reading, &buffer);
        case ARROW_BYTES_VIEW:
                return take_views(reading, array);
        case ARROW_LIST:
                return take_sized(reading, array->n + 1, n_offset_bits, array->n == 0);
        case ARROW_LIST_VIEW:
                for (int i = 0; i < 2 && r == 0; i++)
                        r = take_sized(reading, array->n, n_offset_bits, array->n == 0);
                return r;
        case ARROW_UNION:
                r = take_buffer(reading, &buffer);
                return r == 0 && field->unit == 1 ? take_buffer(reading, &buffer) : r;
        default:
                return 0;
        }
}

static bool has_validity(enum arrow_kind kind) {
        return kind != ARROW_NULL && kind != ARROW_UNION && kind != ARROW_RUNS;
}

/* Do the elements of its children suffice? */
static bool fits_parent(const struct arrow_field *parent, const struct arrow_array *of_parent,
                        const struct arrow_array *array) {
        uint64_t n = of_parent->n;

        if (parent->kind == ARROW_FIXED_LIST)
                return !__builtin_mul_overflow(n, (uint64_t)parent->width, &n) && array->n >= n;
        return parent->kind != ARROW_STRUCT || array->n >= n;
}

/* The array of a field, and those below it. */
static int ipc_batch_take_field(struct reading *reading, uint32_t idx_field, const struct arrow_field *parent,
                                const struct arrow_array *of_parent) {
        const struct arrow_field *field = arrow_schema_field(reading->schema, idx_field);
        bool has_indices = arrow_batch_has_indices(reading->batch, reading->schema, idx_field);
        struct arrow_array array = { 0 };
        uint32_t idx_child = idx_field + 1;
        int r;

        reading->idx_field = idx_field;
        r = take_node(reading, &array, has_indices || has_validity(field->kind));
        if (r == 0 && (parent ? !fits_parent(parent, of_parent, &array) : array.n != reading->batch->n_rows))
                r = ipc_batch_damaged(reading, "has another number of elements than its batch");
        if (r == 0)
                r = has_indices ? take_sized(reading, array.n, 8ull * field->index_width, array.n == 0)
                                : take_buffers(reading, field, &array);
        if (r < 0)
                return r;
        array.n_buffers = reading->idx_buffer - array.first_buffer;
        if (growing_append(&reading->batch->arrays, &array, sizeof(array)) < 0)
                return ipc_batch_no_memory(reading);
        if (has_indices)
                return growing_append(&reading->batch->arrays, NULL, field->n_below * sizeof(array)) < 0
                               ? ipc_batch_no_memory(reading)
                               : 0;
        for (uint32_t i = 0; i < field->n_children && r == 0; i++) {
                r = ipc_batch_take_field(reading, idx_child, field, &array);
                idx_child += 1 + arrow_schema_field(reading->schema, idx_child)->n_below;
        }
        return r;
}

/* A batch whose rows take no bytes could claim any number of them. */
static bool is_plausible(const struct reading *reading) {
        return reading->batch->n_rows <= ARROW_ROWS_FOR_NOTHING + 8 * reading->message->n_body ||
               reading->batch->compression != ARROW_PLAIN;
}

static int ipc_batch_take_header(struct reading *reading, const struct flat_table *record) {
        struct flat_table compression = flat_inner(record, RECORD_COMPRESSION);
        uint64_t codec = flat_unsigned(&compression, 0, 1, CODEC_LZ4);
        struct arrow_batch *batch = reading->batch;

        batch->n_rows = flat_unsigned(record, RECORD_ROWS, 8, 0);
        reading->nodes = flat_vector(record, RECORD_NODES, 16);
        reading->buffers = flat_vector(record, RECORD_BUFFERS, 16);
        reading->variadic = flat_vector(record, RECORD_VARIADIC, 8);
        batch->compression = !compression.flat ? ARROW_PLAIN : codec == CODEC_LZ4 ? ARROW_LZ4 : ARROW_ZSTD;
        if (!record->flat || record->flat->is_damaged)
                return why_set(reading->why, -EBADMSG, "a message is damaged; copy the file again");
        if (compression.flat && (codec > CODEC_ZSTD || flat_unsigned(&compression, 1, 1, 0) != 0))
                return why_set(reading->why, -ENOTSUP,
                               "is compressed in a way that is not known (%" PRIu64 "); write it uncompressed", codec);
        if (batch->n_rows > ROWS_MAX || !is_plausible(reading))
                return why_set(reading->why, -EBADMSG,
                               "claims to have %" PRIu64 " rows in %" PRIu64 " bytes; write the file again",
                               batch->n_rows, reading->message->n_body);
        return 0;
}

static void ipc_batch_clear(struct arrow_batch *batch) {
        growing_clear(&batch->arrays);
        growing_clear(&batch->buffers);
        growing_fini(&batch->unpacked);
        batch->plain = NULL;
        batch->first_field = 0;
        batch->is_dictionary = false;
}

int arrow_batch_read(struct arrow_batch *batch, const struct arrow_schema *schema, const struct arrow_message *message,
                     struct why *why) {
        struct reading reading = { .batch = batch, .schema = schema, .message = message, .why = why };
        int r;

        ipc_batch_clear(batch);
        r = ipc_batch_take_header(&reading, &message->header);
        for (uint32_t idx = 0; idx < schema->n_fields && r == 0; idx += 1 + arrow_schema_field(schema, idx)->n_below)
                r = ipc_batch_take_field(&reading, idx, NULL, NULL);
        return r;
}

int arrow_batch_read_dictionary(struct arrow_batch *batch, const struct arrow_schema *schema, uint32_t idx_field,
                                const struct flat_table *record, const struct arrow_message *message, struct why *why) {
        struct reading reading = { .batch = batch, .schema = schema, .message = message, .why = why };
        int r;

        ipc_batch_clear(batch);
        batch->first_field = idx_field;
        batch->is_dictionary = true;
        r = ipc_batch_take_header(&reading, record);
        return r < 0 ? r : ipc_batch_take_field(&reading, idx_field, NULL, NULL);
}

void arrow_batch_fini(struct arrow_batch *batch) {
        growing_fini(&batch->arrays);
        growing_fini(&batch->buffers);
        growing_fini(&batch->unpacked);
        batch->plain = NULL;
}
