#include "daemon/data/formats/arrow/table/flat.h"

#include "daemon/base/little_endian.h"

#define REFERENCE_BYTES 4u
#define VTABLE_HEADER   4u /* its own size and the table's, of two bytes each */

static bool has(struct flat *flat, size_t at, size_t n_bytes) {
        if (flat->is_damaged || at > flat->n_bytes || n_bytes > flat->n_bytes - at)
                flat->is_damaged = true;
        return !flat->is_damaged;
}

static struct flat_table table_at(struct flat *flat, size_t at) {
        struct flat_table table = { .flat = flat, .at = at };
        int64_t vtable;

        if (!has(flat, at, REFERENCE_BYTES))
                return (struct flat_table){ 0 };
        vtable = (int64_t)at - (int32_t)le32(flat->bytes + at);
        if (vtable < 0 || !has(flat, (size_t)vtable, VTABLE_HEADER)) {
                flat->is_damaged = true;
                return (struct flat_table){ 0 };
        }
        table.vtable = (size_t)vtable;
        table.n_vtable = le16(flat->bytes + vtable);
        table.n_table = le16(flat->bytes + vtable + 2);
        if (table.n_vtable < VTABLE_HEADER || !has(flat, table.vtable, table.n_vtable) ||
            !has(flat, at, table.n_table)) {
                flat->is_damaged = true;
                return (struct flat_table){ 0 };
        }
        return table;
}

struct flat_table flat_root(struct flat *flat) {
        if (!has(flat, 0, REFERENCE_BYTES))
                return (struct flat_table){ 0 };
        return table_at(flat, le32(flat->bytes));
}

/* Where a field of n_bytes is. Returns false if it is absent. */
static bool flat_find(const struct flat_table *table, uint32_t field, uint32_t n_bytes, size_t *ret_at) {
        uint32_t slot = VTABLE_HEADER + 2 * field, offset;

        if (!table->flat || table->flat->is_damaged || slot + 2 > table->n_vtable)
                return false;
        offset = le16(table->flat->bytes + table->vtable + slot);
        if (offset == 0)
                return false;
        if (offset + n_bytes > table->n_table) {
                table->flat->is_damaged = true;
                return false;
        }
        *ret_at = table->at + offset;
        return true;
}

uint64_t flat_unsigned(const struct flat_table *table, uint32_t field, uint32_t n_bytes, uint64_t otherwise) {
        uint64_t number = 0;
        size_t at;

        if (!flat_find(table, field, n_bytes, &at))
                return otherwise;
        for (uint32_t i = 0; i < n_bytes; i++)
                number |= (uint64_t)table->flat->bytes[at + i] << 8 * i;
        return number;
}

int64_t flat_signed(const struct flat_table *table, uint32_t field, uint32_t n_bytes, int64_t otherwise) {
        uint32_t n_unused = 64 - 8 * n_bytes;

        return (int64_t)(flat_unsigned(table, field, n_bytes, (uint64_t)otherwise) << n_unused) >> n_unused;
}

/* Follows the reference in a field. Returns false if it is absent or leads nowhere. */
static bool flat_follow(const struct flat_table *table, uint32_t field, size_t *ret_at) {
        size_t at;

        if (!flat_find(table, field, REFERENCE_BYTES, &at))
                return false;
        *ret_at = at + le32(table->flat->bytes + at); /* both are below 2^33 */
        return has(table->flat, *ret_at, REFERENCE_BYTES);
}

struct flat_table flat_inner(const struct flat_table *table, uint32_t field) {
        size_t at;

        if (!flat_follow(table, field, &at))
                return (struct flat_table){ 0 };
        return table_at(table->flat, at);
}

struct flat_vector flat_vector(const struct flat_table *table, uint32_t field, uint32_t n_stride) {
        struct flat_vector vector = { .flat = table->flat, .n_stride = n_stride };
        uint32_t n;

        if (!flat_follow(table, field, &vector.at))
                return vector;
        n = le32(table->flat->bytes + vector.at);
        vector.at += REFERENCE_BYTES;
        if (has(table->flat, vector.at, (size_t)n * n_stride))
                vector.n = n;
        return vector;
}

const char *flat_text(const struct flat_table *table, uint32_t field, size_t *ret_n) {
        struct flat_vector vector = flat_vector(table, field, 1);

        *ret_n = vector.n;
        return vector.n > 0 ? (const char *)vector.flat->bytes + vector.at : "";
}

const uint8_t *flat_vector_bytes(const struct flat_vector *vector, uint32_t i) {
        return vector->flat->bytes + vector->at + (size_t)i * vector->n_stride;
}

struct flat_table flat_vector_table(const struct flat_vector *vector, uint32_t i) {
        const uint8_t *reference = flat_vector_bytes(vector, i);

        return table_at(vector->flat, (size_t)(reference - vector->flat->bytes) + le32(reference));
}
