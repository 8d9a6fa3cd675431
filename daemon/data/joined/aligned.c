#include "daemon/data/joined/aligned.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/source_type.h"

struct aligned {
        struct source source; /* the first member: callers have a pointer to it */
        const struct source *inner;
        uint32_t numbers[SCHEMA_FIELDS_MAX];
        uint32_t idx_number;
        int64_t number;
};

static const struct aligned *aligned_of(const struct source *source) {
        return (const struct aligned *)source;
}

static uint32_t aligned_inner_field(const struct source *source, uint32_t field) {
        return aligned_of(source)->numbers[field];
}

static void aligned_close(struct source *source) {
        free(source);
}

static int aligned_compare(const struct source *source, int root_fd, enum source_compare compare, struct why *why) {
        const struct source *inner = aligned_of(source)->inner;

        return inner->type->compare(inner, root_fd, compare, why);
}

static void aligned_locate(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent) {
        if (aligned_inner_field(source, field) == ALIGNED_NONE)
                *ret_extent = (struct extent){ .dir = "", .name = "", .flags = EXTENT_ABSENT };
        else
                source_locate(aligned_of(source)->inner, sample, aligned_inner_field(source, field), ret_extent);
}

static bool aligned_shard_end(const struct source *source, uint64_t sample, uint64_t *ret_end) {
        return source_shard_end(aligned_of(source)->inner, sample, ret_end);
}

static const uint8_t *aligned_row(const struct source *source, uint64_t sample, uint32_t field) {
        const struct source *inner = aligned_of(source)->inner;

        if (!inner->type->row || aligned_inner_field(source, field) == ALIGNED_NONE)
                return NULL;
        return inner->type->row(inner, sample, aligned_inner_field(source, field));
}

static bool aligned_next_piece(const struct source *source, uint64_t sample, uint32_t field,
                               struct source_piece *piece) {
        const struct source *inner = aligned_of(source)->inner;

        assert(aligned_inner_field(source, field) != ALIGNED_NONE); /* a gathered field is in all parts (joined.c) */
        return inner->type->next_piece(inner, sample, aligned_inner_field(source, field), piece);
}

static void aligned_prefetch(const struct source *source, uint64_t sample, bool is_near) {
        source_prefetch(aligned_of(source)->inner, sample, is_near);
}

static bool aligned_rows_were_there(const struct source *source, uint32_t field) {
        return source_rows_were_there(aligned_of(source)->inner, aligned_inner_field(source, field));
}

static bool aligned_value_bytes(const struct source *source, uint64_t sample, uint32_t field, uint64_t *ret_n_bytes) {
        const struct aligned *aligned = aligned_of(source);

        if (field == aligned->idx_number) {
                *ret_n_bytes = sizeof(aligned->number);
                return true;
        }
        if (aligned_inner_field(source, field) == ALIGNED_NONE)
                return false;
        *ret_n_bytes = source_length(aligned->inner, sample, aligned_inner_field(source, field));
        return source_has(aligned->inner, sample, aligned_inner_field(source, field));
}

static void aligned_value(const struct source *source, uint64_t sample, uint32_t field, void *ret_value) {
        const struct aligned *aligned = aligned_of(source);

        if (field == aligned->idx_number)
                memcpy(ret_value, &aligned->number, sizeof(aligned->number));
        else if (aligned_inner_field(source, field) != ALIGNED_NONE)
                source_value(aligned->inner, sample, aligned_inner_field(source, field), ret_value);
}

static const char *aligned_broken(const struct source *source, uint64_t sample) {
        return source_broken(aligned_of(source)->inner, sample);
}

static size_t aligned_name(const struct source *source, uint64_t sample, char *ret_name) {
        return source_name(aligned_of(source)->inner, sample, ret_name);
}

static const char *aligned_class_name(const struct source *source, uint32_t label) {
        return source_class_name(aligned_of(source)->inner, label);
}

static const struct source_type ALIGNED_TYPE = {
        .close = aligned_close,
        .compare = aligned_compare,
        .locate = aligned_locate,
        .shard_end = aligned_shard_end,
        .row = aligned_row,
        .next_piece = aligned_next_piece,
        .prefetch = aligned_prefetch,
        .rows_were_there = aligned_rows_were_there,
        .value_bytes = aligned_value_bytes,
        .value = aligned_value,
        .broken = aligned_broken,
        .name = aligned_name,
        .class_name = aligned_class_name,
};

int aligned_new(const struct source *inner, const struct schema *fields, const uint32_t *numbers, uint32_t idx_number,
                uint32_t number, struct source **ret_source) {
        struct aligned *aligned = calloc(1, sizeof(*aligned));

        if (!aligned)
                return -ENOMEM;
        aligned->source = *inner;
        aligned->source.type = &ALIGNED_TYPE;
        aligned->source.schema = *fields;
        aligned->inner = inner;
        aligned->idx_number = idx_number;
        aligned->number = number;
        memcpy(aligned->numbers, numbers, fields->n_fields * sizeof(*numbers));
        *ret_source = &aligned->source;
        return 0;
}
