/* What an index file says about its fields, and the values of its columns. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/data/index/index_columns.h"
#include "proto/base/texts.h"

#define ELEMENTS_MAX (1ull << 40) /* of a field of one sample: no product of sizes overflows */

static uint64_t index_validate_fields_align8(uint64_t n) {
        return (n + 7) & ~7ull;
}

static bool shape_is_valid(const struct index_field *field) {
        uint64_t n_elements = 1;

        if (field->n_dims > SCHEMA_DIMS_MAX)
                return false;
        for (uint32_t i = 0; i < field->n_dims; i++) {
                bool varies = i == 0 && field->shape[0] == -1;

                if (field->shape[i] < 0 && !varies)
                        return false;
                if (!varies && (__builtin_mul_overflow(n_elements, (uint64_t)field->shape[i], &n_elements) ||
                                n_elements > ELEMENTS_MAX))
                        return false;
        }
        return true;
}

static bool holds_texts(uint32_t coding, bool is_column) {
        return is_column ? coding == CODING_PLAIN
                         : coding == CODING_JSON || coding == CODING_LIST || coding == CODING_STEPS;
}

static bool kind_is_valid(const struct index_field *field, bool is_column) {
        if (field->kind >= N_FIELD_KINDS || field->kind == FIELD_NAME || field->coding >= N_FIELD_CODINGS)
                return false;
        if (field->kind == FIELD_VALUE)
                return field->dtype != DLP_DTYPE_BYTES && field->dtype < DLP_DTYPE_TEXT && shape_is_valid(field);
        if (field->kind == FIELD_TEXTS)
                return field->n_dims == 0 && holds_texts(field->coding, is_column);
        return field->n_dims == 0 && (!is_column || field->kind == FIELD_TEXT || field->kind == FIELD_BYTES);
}

/* Only what lies in a shard may lie in another one than its sample. */
static bool place_is_valid(const struct index_header *header, const struct index_field *field, bool is_column) {
        return field->shards_after == 0 ||
               (!is_column && !(field->flags & INDEX_FIELD_OWN_FILE) && field->shards_after < header->n_shards);
}

int index_check_fields(const struct index_header *header, const struct index_field *fields, struct why *why) {
        uint64_t n_fields = header->n_fields + header->n_columns;

        for (uint64_t i = 0; i < n_fields; i++) {
                if (!memchr(fields[i].name, '\0', sizeof(fields[i].name)) || fields[i].name[0] == '\0' ||
                    fields[i].flags & ~INDEX_FIELD_FLAGS ||
                    !place_is_valid(header, &fields[i], i >= header->n_fields) ||
                    !kind_is_valid(&fields[i], i >= header->n_fields))
                        return why_set(why, -EBADMSG, "field %" PRIu64 " is invalid", i);
                for (uint64_t k = 0; k < i; k++)
                        if (strcmp(fields[i].name, fields[k].name) == 0)
                                return why_set(why, -EBADMSG, "field %" PRIu64 " has the name of another one", i);
        }
        return 0;
}

/* Where the values end: each end after the one before, whole rows, and nothing of an absent value. */
static bool ends_are_valid(const struct index_field *field, const uint64_t *ends, uint64_t n_samples) {
        uint64_t unit = index_field_unit(field), before = 0;
        bool varies = index_field_varies(field);

        for (uint64_t i = 0; i < n_samples; i++) {
                uint64_t end = ends[i] & ~INDEX_VALUE_ABSENT;
                bool is_absent = ends[i] & INDEX_VALUE_ABSENT;

                if (end < before || end > field->values_bytes || (is_absent && end != before))
                        return false;
                if (is_absent && !(field->flags & INDEX_FIELD_MAY_BE_ABSENT))
                        return false;
                if (!is_absent && (varies ? unit > 0 && (end - before) % unit != 0 : end - before != unit))
                        return false;
                before = end;
        }
        return before == field->values_bytes;
}

/* The lists of texts, which are where the ends say. */
static bool texts_are_valid(const uint64_t *ends, const uint8_t *values, uint64_t n_samples) {
        struct texts texts;
        uint64_t before = 0;

        for (uint64_t i = 0; i < n_samples; i++) {
                uint64_t end = ends[i] & ~INDEX_VALUE_ABSENT;

                if (!(ends[i] & INDEX_VALUE_ABSENT) && !texts_open(values + before, end - before, &texts))
                        return false;
                before = end;
        }
        return true;
}

static bool column_is_valid(const struct index_field *field, const uint8_t *values, uint64_t n_samples) {
        bool has_ends = field->flags & INDEX_FIELD_VARIES;

        if (index_field_varies(field) && index_field_unit(field) == 0)
                return false;
        if (has_ends && !ends_are_valid(field, (const void *)values, n_samples))
                return false;
        if (has_ends)
                return field->kind != FIELD_TEXTS ||
                       texts_are_valid((const void *)values, values + 8 * n_samples, n_samples);
        return !index_field_varies(field) && !(field->flags & INDEX_FIELD_MAY_BE_ABSENT) &&
               (unsigned __int128)n_samples * index_field_unit(field) == field->values_bytes;
}

int index_check_columns(const struct index_header *header, const struct index_field *columns, const uint8_t *values,
                        struct why *why) {
        uint64_t at = 0;

        for (uint64_t i = 0; i < header->n_columns; i++) {
                uint64_t ends_bytes = columns[i].flags & INDEX_FIELD_VARIES ? header->n_samples * 8 : 0;

                if (columns[i].values != at || columns[i].values_bytes > header->values_bytes ||
                    ends_bytes + index_validate_fields_align8(columns[i].values_bytes) > header->values_bytes - at ||
                    !column_is_valid(&columns[i], values + at, header->n_samples))
                        return why_set(why, -EBADMSG, "the values of column %" PRIu64 " are damaged", i);
                at += ends_bytes + index_validate_fields_align8(columns[i].values_bytes);
        }
        return at == header->values_bytes ? 0 : why_set(why, -EBADMSG, "its values do not fit its columns");
}
