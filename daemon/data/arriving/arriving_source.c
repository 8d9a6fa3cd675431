/* What is asked about a sample is asked of the index of its file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/arriving/arriving_private.h"

#define LIMIT_BYTES (1ull << 20) /* of a field, or */
#define LIMIT_TIMES 8u           /* times as long as the longest one that was there first */
#define MEAN_TIMES  16u          /* times the mean: what the others in its batch take on average at most */

static const struct arriving *arriving_of(const struct source *source) {
        return (const struct arriving *)source;
}

/* The index that has the sample, whose number becomes that of the index. NULL: there is none. */
static const struct source *arriving_with(const struct source *source, uint64_t *sample) {
        const struct arriving *arriving = arriving_of(source);
        uint32_t shift = growth_blocks(arriving->growth)->shift;
        uint64_t file = *sample >> shift;
        const struct source *inner = NULL;

        *sample &= (UINT64_C(1) << shift) - 1;
        if (file < arriving->spec.n)
                inner = atomic_load_explicit(&arriving->files[file].source, memory_order_acquire);
        return inner && *sample < inner->n_samples ? inner : NULL;
}

static void arriving_close(struct source *source) {
        arriving_free((struct arriving *)source);
}

/* It is made of what was unpacked, which only its maker changes. */
static int arriving_compare(const struct source *source, int root_fd, enum source_compare compare, struct why *why) {
        (void)source, (void)root_fd, (void)compare, (void)why;
        return 0;
}

static void arriving_locate(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent) {
        uint64_t row = sample;
        const struct source *inner = arriving_with(source, &row);

        if (!inner) {
                *ret_extent = (struct extent){ .dir = "", .name = "", .flags = EXTENT_ABSENT };
                return;
        }
        source_locate(inner, row, field, ret_extent);
        ret_extent->idx_shard = (uint32_t)(sample >> growth_blocks(arriving_of(source)->growth)->shift);
        ret_extent->file |= (uint64_t)ret_extent->idx_shard << 40;
        ret_extent->stamp = NULL; /* it grows */
}

static const uint8_t *arriving_row(const struct source *source, uint64_t sample, uint32_t field) {
        const struct source *inner = arriving_with(source, &sample);

        return inner && inner->type->row ? inner->type->row(inner, sample, field) : NULL;
}

static void arriving_prefetch(const struct source *source, uint64_t sample, bool is_near) {
        const struct source *inner = arriving_with(source, &sample);

        if (inner)
                source_prefetch(inner, sample, is_near);
}

static bool arriving_value_bytes(const struct source *source, uint64_t sample, uint32_t field, uint64_t *ret_n_bytes) {
        const struct source *inner = arriving_with(source, &sample);

        *ret_n_bytes = inner && source_has(inner, sample, field) ? source_length(inner, sample, field) : 0;
        return inner && source_has(inner, sample, field);
}

static void arriving_value(const struct source *source, uint64_t sample, uint32_t field, void *ret_value) {
        const struct source *inner = arriving_with(source, &sample);

        if (inner)
                source_value(inner, sample, field, ret_value);
}

static bool is_too_long(const struct arriving *arriving, const struct source *inner, uint64_t row) {
        for (uint32_t i = 0; i < inner->schema.n_fields; i++)
                if (inner->schema.fields[i].is_stored && source_length(inner, row, i) > arriving->limits[i])
                        return true;
        return false;
}

static const char *arriving_broken(const struct source *source, uint64_t sample) {
        const struct arriving *arriving = arriving_of(source);
        const struct source *inner = arriving_with(source, &sample);
        const char *broken;

        if (!inner)
                return "there is no such sample";
        broken = source_broken(inner, sample);
        if (!broken && is_too_long(arriving, inner, sample))
                broken = arriving->too_long.text;
        return broken;
}

static uint64_t arriving_longest(const struct source *source, uint32_t field) {
        return arriving_of(source)->limits[field];
}

/* One that is as long as any may be, and others that are longer than most. */
static uint64_t arriving_together(const struct source *source, uint32_t field, uint32_t n) {
        const struct arriving *arriving = arriving_of(source);

        return arriving->limits[field] + (n - 1) * (MEAN_TIMES * arriving->means[field] + 64);
}

static size_t arriving_name(const struct source *source, uint64_t sample, char *ret_name) {
        const struct arriving *arriving = arriving_of(source);
        uint64_t row = sample, file = sample >> growth_blocks(arriving->growth)->shift;
        const struct source *inner = arriving_with(source, &row);

        if (inner)
                return source_name(inner, row, ret_name);
        return (size_t)snprintf(ret_name, SOURCE_NAME_SIZE, "%s",
                                file < arriving->spec.n ? arriving->spec.names[file] : "");
}

const struct source_type ARRIVING_TYPE = {
        .close = arriving_close,
        .compare = arriving_compare,
        .locate = arriving_locate,
        .row = arriving_row,
        .prefetch = arriving_prefetch,
        .value_bytes = arriving_value_bytes,
        .value = arriving_value,
        .broken = arriving_broken,
        .longest = arriving_longest,
        .together = arriving_together,
        .name = arriving_name,
};

/* ---- fields ------------------------------------------------------------------------------------------------------ */

void arriving_describe(struct arriving *arriving, const struct source *first) {
        struct source *source = &arriving->source;
        uint64_t span = 0;

        source->schema = first->schema;
        source->format = first->format;
        source->has_several_files = first->has_several_files;
        source->max_gap = first->max_gap;
        source->max_length = 0;
        for (uint32_t i = 0; i < first->schema.n_fields; i++) {
                uint64_t longest = 0, sum = 0;

                if (!first->schema.fields[i].is_stored)
                        continue;
                for (uint64_t row = 0; row < first->n_samples; row++) {
                        uint64_t length = source_length(first, row, i);

                        longest = length > longest ? length : longest;
                        sum += length;
                }
                arriving->means[i] = sum / first->n_samples;
                arriving->limits[i] = LIMIT_TIMES * longest > LIMIT_BYTES ? LIMIT_TIMES * longest : LIMIT_BYTES;
                span += arriving->limits[i];
                if (arriving->limits[i] > source->max_length)
                        source->max_length = arriving->limits[i];
        }
        source->max_span = span + LIMIT_TIMES * first->max_span;
        source->max_name_bytes = SOURCE_NAME_SIZE - 1;
        why_set(&arriving->too_long, 0,
                "a field of it is longer than %llu bytes, the most that is served before all files were unpacked; take "
                "another order than blocks",
                (unsigned long long)LIMIT_BYTES);
}

static bool arriving_is_alike(const struct schema_field *one, const struct schema_field *other) {
        if (strcmp(one->name, other->name) != 0 || one->kind != other->kind || one->coding != other->coding ||
            one->is_stored != other->is_stored || one->same_as != other->same_as || one->n_dims != other->n_dims ||
            (one->kind == FIELD_VALUE && one->dtype != other->dtype) || (other->may_be_absent && !one->may_be_absent))
                return false;
        for (uint32_t d = 0; d < one->n_dims; d++)
                if (one->shape[d] != other->shape[d])
                        return false;
        return true;
}

bool arriving_has_same_fields(const struct arriving *arriving, const struct source *source, struct why *ret_why) {
        const struct schema *first = &arriving->source.schema;
        uint32_t n = source->schema.n_fields < first->n_fields ? source->schema.n_fields : first->n_fields;

        for (uint32_t i = 0; i < n; i++)
                if (!arriving_is_alike(&first->fields[i], &source->schema.fields[i])) {
                        why_set(ret_why, 0,
                                "its field %s is not as the first part of %s has it (another type, or not in each "
                                "sample); take another order than blocks",
                                first->fields[i].name, arriving->spec.names[0]);
                        return false;
                }
        if (source->schema.n_fields == first->n_fields)
                return true;
        why_set(ret_why, 0, "it has %u fields, and the first part of %s has %u; take another order than blocks",
                source->schema.n_fields, arriving->spec.names[0], first->n_fields);
        return false;
}
