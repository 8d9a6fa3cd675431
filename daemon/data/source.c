#include "daemon/data/source.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/base/work/errand.h"
#include "daemon/data/growth.h"
#include "daemon/data/source_type.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

#define LOOK_SAMPLES 4096u /* between two looks of an errand */

void source_close(struct source *source) {
        if (source)
                source->type->close(source);
}

void source_closep(struct source **source) {
        source_close(*source);
}

int source_is_current(const struct source *source, int root_fd, struct why *why) {
        return source->type->compare(source, root_fd, SOURCE_COMPARE_ALL, why);
}

int source_is_same(const struct source *source, int root_fd, bool by_time, struct why *why) {
        return source->type->compare(source, root_fd, by_time ? SOURCE_COMPARE_TIMES : SOURCE_COMPARE_NAMES, why);
}

uint32_t source_part_of(const struct source *source, uint64_t sample) {
        uint32_t low = 0, high = source->n_parts;

        while (high - low > 1) { /* the sample is in one of [low, high) */
                uint32_t middle = low + (high - low) / 2;

                if (source->parts[middle].first <= sample)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}

const struct source *source_with(const struct source *source, uint64_t *sample) {
        const struct source_part *part;

        if (source->n_parts == 0)
                return source;
        part = &source->parts[source_part_of(source, *sample)];
        *sample -= part->first;
        return part->source;
}

uint64_t source_n_known(const struct source *source) {
        if (source->growth && growth_blocks(source->growth)) { /* of the first block: others begin with other numbers */
                bool is_whole;

                return dlp_block_size(growth_blocks(source->growth), 0, &is_whole);
        }
        return source->growth ? growth_n_samples(source->growth, NULL) : source->n_samples;
}

uint64_t source_n_possible(const struct source *source) {
        const struct dlp_blocks *blocks = source->growth ? growth_blocks(source->growth) : NULL;

        if (blocks)
                return (uint64_t)blocks->n << blocks->shift;
        return source->growth ? DLP_STREAM_MAX : source->n_samples;
}

const char *source_broken(const struct source *source, uint64_t sample) {
        source = source_with(source, &sample);
        return source->type->broken ? source->type->broken(source, sample) : NULL;
}

bool source_shard_end(const struct source *source, uint64_t sample, uint64_t *ret_end) {
        uint64_t within = sample;
        const struct source *part = source_with(source, &within);

        if (!part->type->shard_end || !part->type->shard_end(part, within, ret_end))
                return false;
        *ret_end += sample - within;
        return true;
}

void source_locate(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent) {
        assert(sample < source->n_samples && field < source->schema.n_fields);
        source = source_with(source, &sample);
        source->type->locate(source, sample, field, ret_extent);
}

/* The field that has the value. */
static uint32_t own_field(const struct source *source, uint32_t field) {
        uint32_t same_as = source->schema.fields[field].same_as;

        return same_as > 0 ? same_as - 1 : field;
}

/* The size of a known value; false: the sample does not have it. */
static bool source_value_bytes(const struct source *source, uint64_t sample, uint32_t field, uint64_t *ret_n_bytes) {
        const struct schema_field *described = &source->schema.fields[field];

        if (source->type->value_bytes)
                return source->type->value_bytes(source, sample, own_field(source, field), ret_n_bytes);
        *ret_n_bytes = dlp_dtype_bytes(described->dtype);
        for (uint32_t i = 0; i < described->n_dims; i++)
                *ret_n_bytes *= (uint64_t)described->shape[i];
        return true;
}

bool source_has(const struct source *source, uint64_t sample, uint32_t field) {
        const struct schema_field *described;
        struct extent extent;
        uint64_t n_bytes;

        source = source_with(source, &sample);
        described = &source->schema.fields[field];
        if (described->kind == FIELD_NAME)
                return true;
        if (!described->is_stored)
                return source_value_bytes(source, sample, field, &n_bytes);
        source_locate(source, sample, field, &extent);
        return !(extent.flags & EXTENT_ABSENT);
}

uint64_t source_length(const struct source *source, uint64_t sample, uint32_t field) {
        struct extent extent;
        uint64_t n_bytes;

        source = source_with(source, &sample);
        if (!source->schema.fields[field].is_stored)
                return source_value_bytes(source, sample, field, &n_bytes) ? n_bytes : 0;
        source_locate(source, sample, field, &extent);
        return extent.flags & EXTENT_UNREACHABLE ? source->max_length : extent.length;
}

bool source_next_piece(const struct source *source, uint64_t sample, uint32_t field, struct source_piece *piece) {
        struct extent extent;

        assert(sample < source->n_samples && field < source->schema.n_fields);
        source = source_with(source, &sample);
        piece->number++;
        if (source->schema.fields[field].is_gathered)
                return source->type->next_piece(source, sample, field, piece);
        if (piece->number > 1)
                return false;
        source->type->locate(source, sample, field, &extent);
        piece->bytes = source->type->row ? source->type->row(source, sample, field) : NULL;
        piece->offset = extent.offset;
        piece->n_bytes = extent.length;
        piece->n_before = 0;
        return true;
}

void source_prefetch(const struct source *source, uint64_t sample, bool is_near) {
        assert(sample < source->n_samples);
        source = source_with(source, &sample);
        if (source->type->prefetch)
                source->type->prefetch(source, sample, is_near);
}

bool source_is_mapped(const struct source *source, uint32_t field) {
        struct source_piece piece = { 0 };

        assert(source->n_parts == 0);
        return source->n_samples > 0 && source_next_piece(source, 0, field, &piece) && piece.bytes;
}

bool source_rows_were_there(const struct source *source, uint32_t field) {
        assert(source->type->rows_were_there && field < source->schema.n_fields);
        return source->type->rows_were_there(source, field);
}

void source_value(const struct source *source, uint64_t sample, uint32_t field, void *ret_value) {
        assert(sample < source->n_samples && field < source->schema.n_fields);
        source = source_with(source, &sample);
        source->type->value(source, sample, own_field(source, field), ret_value);
}

size_t source_name(const struct source *source, uint64_t sample, char *ret_name) {
        assert(sample < source->n_samples);
        source = source_with(source, &sample);
        return source->type->name(source, sample, ret_name);
}

const char *source_class_name(const struct source *source, uint32_t label) {
        assert(label < source->n_classes);
        return source->type->class_name(source, label);
}

size_t extent_path(const struct extent *extent, char *ret_path) {
        char *end = stpcpy(ret_path, extent->dir);

        if (end != ret_path)
                *end++ = '/';
        return (size_t)(stpcpy(end, extent->name) - ret_path);
}

bool extent_is_same_file(const struct extent *one, const struct extent *other) {
        if (!one->shard || !other->shard)
                return !one->shard && !other->shard && one->file == other->file;
        return one->idx_shard == other->idx_shard;
}

/* ---- the longest samples --------------------------------------------------------------------------------------- */

/* `lengths` is a heap of the n longest so far, with the smallest on top. Replaces the one on top by `length`. */
static void heap_replace_first(uint64_t *lengths, uint64_t n, uint64_t length) {
        uint64_t at = 0;

        for (;;) {
                uint64_t child = 2 * at + 1;

                if (child + 1 < n && lengths[child + 1] < lengths[child])
                        child++;
                if (child >= n || lengths[child] >= length)
                        break;
                lengths[at] = lengths[child];
                at = child;
        }
        lengths[at] = length;
}

static bool source_is_near(const struct source *source, const struct source_read *read, const struct extent *extent) {
        uint64_t gap = source->max_gap;

        return gap == 0 || !extent->shard ||
               (extent->offset <= read->end + gap && read->begin <= extent->offset + extent->length + gap);
}

uint32_t source_add_to_reads(const struct source *source, const struct extent *extent, struct source_read *reads,
                             uint32_t *n) {
        uint64_t end = extent->offset + extent->length;
        uint32_t i = 0;

        while (i < *n && !(extent_is_same_file(extent, &reads[i].first) && source_is_near(source, &reads[i], extent)))
                i++;
        if (i == *n)
                reads[(*n)++] = (struct source_read){ .first = *extent, .begin = extent->offset, .end = end };
        reads[i].begin = extent->offset < reads[i].begin ? extent->offset : reads[i].begin;
        reads[i].end = end > reads[i].end ? end : reads[i].end;
        return i;
}

static bool are_all_wanted(const struct source *source, const uint32_t *fields, uint32_t n_fields) {
        for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                bool is_wanted = !source->schema.fields[i].is_stored;

                for (uint32_t k = 0; k < n_fields && !is_wanted; k++)
                        is_wanted = fields[k] == i;
                if (!is_wanted)
                        return false;
        }
        return true;
}

/* Whoever does not want it any more does not look at the result either (base/work/errand.h). */
static bool is_still_wanted(uint64_t sample) {
        return sample % LOOK_SAMPLES > 0 || errand_look() == 0;
}

static uint64_t find_longest_read(const struct source *source, const uint32_t *fields, uint32_t n_fields) {
        uint64_t n_samples = source->has_fixed_lengths && source->n_samples ? 1 : source->n_samples, longest = 0;
        struct source_read reads[SCHEMA_FIELDS_MAX];
        struct extent extent;

        for (uint64_t sample = 0; sample < n_samples && is_still_wanted(sample); sample++) {
                uint32_t n = 0;

                for (uint32_t i = 0; i < n_fields; i++) {
                        source_locate(source, sample, fields[i], &extent);
                        if (!(extent.flags & EXTENT_ABSENT))
                                source_add_to_reads(source, &extent, reads, &n);
                }
                for (uint32_t i = 0; i < n; i++)
                        longest = reads[i].end - reads[i].begin > longest ? reads[i].end - reads[i].begin : longest;
        }
        return longest;
}

uint64_t source_longest_read(const struct source *source, const uint32_t *fields, uint32_t n_fields) {
        if (source->growth) /* of samples that are not there yet, only the limits are known */
                return n_fields == 1 ? source->type->longest(source, fields[0]) : source->max_span;
        if (source->max_gap == 0 && are_all_wanted(source, fields, n_fields))
                return source->max_span; /* known since it was opened */
        return find_longest_read(source, fields, n_fields);
}

uint64_t source_longest_span(const struct source *source) {
        uint32_t fields[SCHEMA_FIELDS_MAX], n_fields = 0;

        for (uint32_t i = 0; i < source->schema.n_fields; i++)
                if (source->schema.fields[i].is_stored)
                        fields[n_fields++] = i;
        return find_longest_read(source, fields, n_fields);
}

int source_longest_together(const struct source *source, uint32_t field, uint32_t n, uint64_t alignment,
                            uint64_t *ret_bytes) {
        _cleanup_(freep) uint64_t *lengths = calloc(n, sizeof(*lengths)); /* all zero, which is a heap */
        uint64_t n_bytes = 0;

        if (source->growth) {
                *ret_bytes = n * ((source->type->longest(source, field) + alignment - 1) / alignment * alignment);
                if (source->type->together)
                        *ret_bytes = source->type->together(source, field, n) + n * alignment;
                return 0;
        }
        if (!lengths)
                return -ENOMEM;
        for (uint32_t i = 0; i < n && source->has_fixed_lengths; i++)
                lengths[i] = source_length(source, 0, field);
        for (uint64_t sample = source->has_fixed_lengths ? source->n_samples : 0;
             sample < source->n_samples && is_still_wanted(sample); sample++) {
                uint64_t length = source_length(source, sample, field);

                if (length > lengths[0])
                        heap_replace_first(lengths, n, length);
        }
        for (uint32_t i = 0; i < n; i++)
                n_bytes += (lengths[i] + alignment - 1) / alignment * alignment;
        *ret_bytes = n_bytes;
        return 0;
}
