#include "daemon/data/index/index_columns.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

void index_columns_fini(struct index_columns *columns) {
        for (uint32_t i = 0; i < columns->n; i++) {
                growing_fini(&columns->columns[i].elements);
                growing_fini(&columns->columns[i].ends);
        }
        columns->n = 0;
}

void index_field_describe(struct index_field *ret_described, const struct schema_field *field) {
        *ret_described = (struct index_field){
                .kind = field->kind,
                .flags = (field->may_be_absent ? INDEX_FIELD_MAY_BE_ABSENT : 0) |
                         (field->is_big_endian ? INDEX_FIELD_BIG_ENDIAN : 0) | (field->is_json ? INDEX_FIELD_JSON : 0),
                .coding = field->coding,
                .dtype = field->dtype,
                .n_dims = field->n_dims,
        };
        strcpy(ret_described->name, field->name);
        for (uint32_t i = 0; i < field->n_dims; i++)
                ret_described->shape[i] = field->shape[i];
}

uint64_t index_field_unit(const struct index_field *field) {
        uint64_t n_bytes = field->kind == FIELD_VALUE ? dlp_dtype_bytes(field->dtype) : 1;

        for (uint32_t i = 0; i < field->n_dims; i++)
                if (field->shape[i] >= 0 && __builtin_mul_overflow(n_bytes, (uint64_t)field->shape[i], &n_bytes))
                        return UINT64_MAX;
        return n_bytes;
}

bool index_field_varies(const struct index_field *field) {
        return field->kind != FIELD_VALUE || (field->n_dims > 0 && field->shape[0] < 0);
}

int index_columns_add(struct index_columns *columns, const struct schema_field *field, uint32_t *ret_idx) {
        struct index_column *column = &columns->columns[columns->n];

        assert(field->kind == FIELD_VALUE || field->kind == FIELD_TEXT || field->kind == FIELD_BYTES ||
               field->kind == FIELD_TEXTS);
        assert(field->name[0] && field->n_dims <= SCHEMA_DIMS_MAX);
        if (columns->n == INDEX_FIELDS_MAX)
                return -E2BIG;
        *column = (struct index_column){ 0 };
        index_field_describe(&column->field, field);
        *ret_idx = columns->n++;
        return 0;
}

int index_columns_set(struct index_columns *columns, uint32_t idx, const void *elements, uint64_t n_bytes) {
        struct index_column *column = &columns->columns[idx];
        uint64_t unit = index_field_unit(&column->field);
        int r;

        assert(idx < columns->n && !column->is_set);
        assert(index_field_varies(&column->field) ? unit > 0 && n_bytes % unit == 0 : n_bytes == unit);
        if (n_bytes > INDEX_VALUES_MAX - column->elements.n_bytes)
                return -E2BIG;
        r = growing_append(&column->elements, elements, n_bytes);
        column->is_set = r >= 0;
        return r;
}

/* Until now all values had one size. */
static int begin_ends(struct index_column *column, uint64_t n_samples) {
        uint64_t unit = index_field_unit(&column->field);
        int r = 0;

        for (uint64_t i = 0; i < n_samples && r >= 0; i++) {
                uint64_t end = (i + 1) * unit;

                r = growing_append(&column->ends, &end, sizeof(end));
        }
        return r;
}

int index_columns_next(struct index_columns *columns, uint64_t n_samples) {
        for (uint32_t i = 0; i < columns->n; i++) {
                struct index_column *column = &columns->columns[i];
                uint64_t end = column->elements.n_bytes | (column->is_set ? 0 : INDEX_VALUE_ABSENT);
                bool has_ends = column->ends.n_bytes > 0 || index_field_varies(&column->field);
                int r = 0;

                assert(column->is_set || column->field.flags & INDEX_FIELD_MAY_BE_ABSENT);
                if (!column->is_set && !has_ends)
                        r = begin_ends(column, n_samples);
                if (r >= 0 && (has_ends || !column->is_set))
                        r = growing_append(&column->ends, &end, sizeof(end));
                if (r < 0)
                        return r;
                column->n_absent += !column->is_set;
                column->is_set = false;
        }
        return 0;
}

static int append_ends(struct index_column *column, uint64_t base, const struct index_column *part, uint64_t n_part) {
        const uint64_t *ends = (const void *)part->ends.bytes;
        uint64_t unit = index_field_unit(&part->field);
        int r = 0;

        for (uint64_t i = 0; i < n_part && r >= 0; i++) {
                uint64_t end = base + (ends ? ends[i] & ~INDEX_VALUE_ABSENT : (i + 1) * unit);

                end |= ends ? ends[i] & INDEX_VALUE_ABSENT : 0;
                r = growing_append(&column->ends, &end, sizeof(end));
        }
        return r;
}

static int append_column(struct index_column *column, uint64_t n_samples, const struct index_column *part,
                         uint64_t n_part) {
        uint64_t base = column->elements.n_bytes;
        bool has_ends = column->ends.n_bytes > 0 || part->ends.n_bytes > 0;
        int r = 0;

        assert(!column->is_set && !part->is_set && strcmp(column->field.name, part->field.name) == 0);
        if (part->elements.n_bytes > INDEX_VALUES_MAX - base)
                return -E2BIG;
        if (has_ends && column->ends.n_bytes == 0)
                r = begin_ends(column, n_samples);
        if (r >= 0 && has_ends)
                r = append_ends(column, base, part, n_part);
        if (r >= 0)
                r = growing_append(&column->elements, part->elements.bytes, part->elements.n_bytes);
        column->n_absent += part->n_absent;
        return r;
}

int index_columns_append(struct index_columns *columns, uint64_t n_samples, const struct index_columns *part,
                         uint64_t n_part) {
        int r = 0;

        assert(columns->n == part->n);
        for (uint32_t i = 0; i < columns->n && r >= 0; i++)
                r = append_column(&columns->columns[i], n_samples, &part->columns[i], n_part);
        return r;
}

static uint64_t index_columns_align8(uint64_t n) {
        return (n + 7) & ~7ull;
}

uint64_t index_columns_end(struct index_columns *columns) {
        uint64_t at = 0;

        for (uint32_t i = 0; i < columns->n; i++) {
                struct index_column *column = &columns->columns[i];

                column->field.flags &= ~(INDEX_FIELD_MAY_BE_ABSENT | INDEX_FIELD_VARIES);
                if (column->n_absent > 0)
                        column->field.flags |= INDEX_FIELD_MAY_BE_ABSENT;
                if (column->ends.n_bytes > 0 || index_field_varies(&column->field))
                        column->field.flags |= INDEX_FIELD_VARIES;
                column->field.values = at;
                column->field.values_bytes = column->elements.n_bytes;
                at += column->ends.n_bytes + index_columns_align8(column->elements.n_bytes);
        }
        return at;
}
