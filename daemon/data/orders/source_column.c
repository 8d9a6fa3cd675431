#include "daemon/data/orders/source_column.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/work/errand.h"
#include "proto/base/cleanup.h"

#define LOOK_SAMPLES 4096u /* between two looks of an errand */

/* A column of 10^9 samples takes minutes. -ECANCELED: nobody wants it any more. */
static int source_column_look(uint64_t sample) {
        return sample % LOOK_SAMPLES == 0 ? errand_look() : 0;
}

static bool has_varying_length(const struct schema_field *field) {
        for (uint32_t i = 0; i < field->n_dims; i++)
                if (field->shape[i] < 0)
                        return true;
        return field->kind != FIELD_VALUE && field->kind != FIELD_NUMBER;
}

/* Can the field's values be a column: are they known, numbers, and one for each sample or a list? */
static bool gives_values(const struct schema_field *field) {
        return field->kind == FIELD_VALUE && !field->is_stored && dlp_column_takes(field->dtype) &&
               (field->n_dims == 0 || (field->n_dims == 1 && field->shape[0] < 0)) &&
               (field->n_dims > 0 || !field->may_be_absent);
}

/* Are its elements stored as they are, so that the number of bytes says how many there are? */
static bool gives_lengths(const struct schema_field *field) {
        if (!has_varying_length(field) || field->kind == FIELD_NAME)
                return false;
        return field->kind != FIELD_VALUE || !field->is_stored || field->coding == CODING_PLAIN;
}

static bool gives(const struct schema_field *field, bool is_lengths) {
        return gives_values(field) || (is_lengths && gives_lengths(field));
}

static int source_column_refuse(const struct source *source, const struct dlp_column_wish *wish, const char *problem,
                                struct why *why) {
        char names[256] = "";
        size_t n = 0;

        for (uint32_t i = 0; i < source->schema.n_fields && n < sizeof(names); i++)
                if (gives(&source->schema.fields[i], wish->is_lengths))
                        n += (size_t)snprintf(names + n, sizeof(names) - n, " %s", source->schema.fields[i].name);
        return why_set(why, -EINVAL, "sampler: \"%s\" %s; give it as a column, or choose one of:%s", wish->name,
                       problem, n > 0 ? names : " (the dataset has none)");
}

int source_column_find(const struct source *source, const struct dlp_column_wish *wish, uint32_t *ret_field,
                       struct why *why) {
        for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                const struct schema_field *field = &source->schema.fields[i];

                if (strcmp(field->name, wish->name) != 0)
                        continue;
                if (!gives(field, wish->is_lengths))
                        return source_column_refuse(source, wish,
                                                    wish->is_lengths
                                                            ? "has no length that is known without reading it"
                                                            : "is not a number that is known without reading it",
                                                    why);
                *ret_field = i;
                return 0;
        }
        return source_column_refuse(source, wish, "is neither a column nor a field", why);
}

/* A field of varying length, of which lengths are wanted; else its values are. */
static bool counts(const struct schema_field *field, bool is_lengths) {
        return is_lengths && (!gives_values(field) || field->n_dims > 0);
}

/* Bytes of an element of the field's first dimension. */
static uint64_t source_column_row_bytes(const struct schema_field *field) {
        uint64_t n = field->kind == FIELD_VALUE ? dlp_dtype_bytes(field->dtype) : 1;

        for (uint32_t i = 1; field->kind == FIELD_VALUE && i < field->n_dims; i++)
                if (field->shape[i] > 0)
                        n *= (uint64_t)field->shape[i];
        return n;
}

static int count_values(const struct source *source, uint32_t field, uint64_t *ret_n) {
        uint64_t n_bytes = 0;
        int r;

        for (uint64_t i = 0; i < source->n_samples; i++) {
                r = source_column_look(i);
                if (r < 0)
                        return r;
                n_bytes += source_length(source, i, field);
        }
        *ret_n = n_bytes / dlp_dtype_bytes(source->schema.fields[field].dtype);
        return 0;
}

int source_column_bytes(const struct source *source, uint32_t field, bool is_lengths, uint64_t *ret_bytes) {
        const struct schema_field *described = &source->schema.fields[field];
        uint64_t n = source->n_samples;
        int r = 0;

        if (counts(described, is_lengths)) {
                *ret_bytes = n * sizeof(uint32_t);
                return 0;
        }
        if (described->n_dims > 0)
                r = count_values(source, field, &n);
        if (r < 0)
                return r;
        *ret_bytes = n * dlp_dtype_bytes(described->dtype);
        if (described->n_dims > 0)
                *ret_bytes += source->n_samples * sizeof(uint64_t);
        return 0;
}

bool source_column_counts(const struct source *source, uint32_t field, bool is_lengths) {
        return counts(&source->schema.fields[field], is_lengths);
}

uint32_t source_column_length(const struct source *source, uint32_t field, uint64_t sample) {
        uint64_t n = source_length(source, sample, field) / source_column_row_bytes(&source->schema.fields[field]);

        return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static int read_lengths(const struct source *source, uint32_t field, struct dlp_column *column) {
        _cleanup_(freep) uint32_t *lengths = malloc((source->n_samples + 1) * sizeof(*lengths));

        if (!lengths)
                return -ENOMEM;
        for (uint64_t i = 0; i < source->n_samples; i++) {
                int r = source_column_look(i);

                if (r < 0)
                        return r;
                lengths[i] = source_column_length(source, field, i);
        }
        *column = (struct dlp_column){ .dtype = DLP_DTYPE_UINT32,
                                       .values = TAKE_PTR(lengths),
                                       .n_values = source->n_samples,
                                       .n_samples = source->n_samples };
        return 0;
}

static int source_column_read_values(const struct source *source, uint32_t field, struct dlp_column *column) {
        enum dlp_dtype dtype = source->schema.fields[field].dtype;
        uint64_t each = dlp_dtype_bytes(dtype);
        _cleanup_(freep) uint8_t *values = malloc((source->n_samples + 1) * each);

        if (!values)
                return -ENOMEM;
        for (uint64_t i = 0; i < source->n_samples; i++) {
                int r = source_column_look(i);

                if (r < 0)
                        return r;
                source_value(source, i, field, values + i * each);
        }
        *column = (struct dlp_column){ .dtype = dtype,
                                       .values = TAKE_PTR(values),
                                       .n_values = source->n_samples,
                                       .n_samples = source->n_samples };
        return 0;
}

static int read_lists(const struct source *source, uint32_t field, struct dlp_column *column) {
        enum dlp_dtype dtype = source->schema.fields[field].dtype;
        uint64_t each = dlp_dtype_bytes(dtype), n_all, n = 0;
        _cleanup_(freep) uint8_t *values = NULL;
        _cleanup_(freep) uint64_t *ends = NULL;
        int r = count_values(source, field, &n_all);

        if (r < 0)
                return r;
        values = malloc((n_all + 1) * each);
        ends = malloc((source->n_samples + 1) * sizeof(*ends));
        if (!values || !ends)
                return -ENOMEM;
        for (uint64_t i = 0; i < source->n_samples; i++) {
                uint64_t n_here = source_length(source, i, field) / each;

                r = source_column_look(i);
                if (r < 0)
                        return r;
                if (n_here > 0)
                        source_value(source, i, field, values + n * each);
                n += n_here;
                ends[i] = n;
        }
        *column = (struct dlp_column){ .dtype = dtype,
                                       .values = TAKE_PTR(values),
                                       .n_values = n,
                                       .ends = TAKE_PTR(ends),
                                       .n_samples = source->n_samples };
        return 0;
}

int source_column_read(const struct source *source, uint32_t field, bool is_lengths, struct dlp_column *ret_column) {
        const struct schema_field *described = &source->schema.fields[field];

        if (counts(described, is_lengths))
                return read_lengths(source, field, ret_column);
        return described->n_dims == 0 ? source_column_read_values(source, field, ret_column)
                                      : read_lists(source, field, ret_column);
}
