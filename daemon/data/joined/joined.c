#include "daemon/data/joined/joined.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/joined/aligned.h"
#include "daemon/data/source_type.h"
#include "proto/base/clock.h"
#include "proto/limits.h"

#define DIGEST_SIZE 65u

struct joined {
        struct source source; /* the first member: callers have a pointer to it */
        struct source_part parts[DLP_PARTS_MAX];
        char *names[DLP_PARTS_MAX];
        char digest[DIGEST_SIZE];
        uint32_t idx_classes; /* the part whose classes are those of all */
};

static const struct joined *joined_of(const struct source *source) {
        return (const struct joined *)source;
}

static void joined_close(struct source *source) {
        struct joined *joined = (struct joined *)source;

        for (uint32_t k = 0; k < joined->source.n_parts; k++) {
                source_close(joined->parts[k].source);
                free(joined->names[k]);
        }
        free(joined);
}

static const char *joined_class_name(const struct source *source, uint32_t label) {
        const struct joined *joined = joined_of(source);

        return source_class_name(joined->parts[joined->idx_classes].source, label);
}

/* What is asked about a sample is asked of its part (source_with()), and what is asked about a folder of its dataset.
 */
static const struct source_type JOINED_TYPE = {
        .close = joined_close,
        .class_name = joined_class_name,
};

/* ---- fields ---------------------------------------------------------------------------------------------------- */

#define NAME_SLOTS 4096u /* several times as many as there may be fields */

/* The fields of a schema by their names. Datasets are joined on the main thread, and 64 of a thousand fields each would
 * take seconds if each name were compared with all. */
struct names {
        const struct schema *schema;
        uint64_t seed;              /* so that nobody can choose names that meet in one slot */
        uint16_t slots[NAME_SLOTS]; /* number of a field + 1; 0: none */
};

/* The slot of this name, or the empty one where it belongs. */
static uint16_t *joined_find_slot(struct names *names, const char *name) {
        uint64_t hash = names->seed;
        uint32_t at;

        for (const char *byte = name; *byte; byte++) {
                hash = (hash ^ (unsigned char)*byte) * UINT64_C(0xff51afd7ed558ccd);
                hash ^= hash >> 32;
        }
        at = (uint32_t)hash % NAME_SLOTS;
        while (names->slots[at] > 0 && strcmp(names->schema->fields[names->slots[at] - 1].name, name) != 0)
                at = (at + 1) % NAME_SLOTS;
        return &names->slots[at];
}

static uint32_t joined_find_field(struct names *names, const char *name) {
        uint16_t number = *joined_find_slot(names, name);

        return number > 0 ? number - 1u : ALIGNED_NONE;
}

static void note_field(struct names *names, uint32_t idx) {
        *joined_find_slot(names, names->schema->fields[idx].name) = (uint16_t)(idx + 1);
}

static void names_init(struct names *names, const struct schema *schema) {
        *names = (struct names){ .schema = schema, .seed = clock_now_ns() ^ (uintptr_t)names };
        for (uint32_t i = schema->n_fields; i > 0; i--) /* of equal ones the first */
                note_field(names, i - 1);
}

/* Takes in what a part says of a field that an earlier one has. */
static void joined_meet(struct schema_field *field, const struct schema_field *other) {
        field->may_be_absent |= other->may_be_absent;
        field->max_rows = other->max_rows > field->max_rows ? other->max_rows : field->max_rows;
        if (field->kind == FIELD_VALUE && other->kind == FIELD_VALUE && field->n_dims == other->n_dims &&
            field->n_dims > 0 && field->shape[0] != other->shape[0] && !field->is_gathered && !other->is_gathered)
                field->shape[0] = -1;
}

static int refuse_fields(struct why *why) {
        return why_set(why, -EINVAL,
                       "together the datasets have more than %u fields; choose some with their option fields",
                       SCHEMA_FIELDS_MAX);
}

/* The fields of all parts, in the sequence in which they come first, each as the first part that has it says. */
static int unite_fields(const struct joined_part *parts, uint32_t n_parts, struct schema *all, uint32_t *ret_idx_number,
                        struct why *why) {
        uint32_t n_having[SCHEMA_FIELDS_MAX] = { 0 };
        struct names names;

        names_init(&names, all);
        for (uint32_t k = 0; k < n_parts; k++)
                for (uint32_t i = 0; i < parts[k].source->schema.n_fields; i++) {
                        const struct schema_field *field = &parts[k].source->schema.fields[i];
                        uint32_t idx = joined_find_field(&names, field->name);

                        if (idx == ALIGNED_NONE && all->n_fields == SCHEMA_FIELDS_MAX)
                                return refuse_fields(why);
                        if (idx == ALIGNED_NONE) {
                                idx = all->n_fields++;
                                all->fields[idx] = *field;
                                all->fields[idx].same_as = 0; /* the source under it knows */
                                note_field(&names, idx);
                        } else {
                                joined_meet(&all->fields[idx], field);
                        }
                        n_having[idx]++;
                }
        for (uint32_t i = 0; i < all->n_fields; i++)
                all->fields[i].may_be_absent |= n_having[i] < n_parts && all->fields[i].kind != FIELD_NAME;
        *ret_idx_number = ALIGNED_NONE;
        if (joined_find_field(&names, JOINED_FIELD) != ALIGNED_NONE || all->n_fields == SCHEMA_FIELDS_MAX)
                return 0;
        *ret_idx_number = all->n_fields;
        all->fields[all->n_fields++] = (struct schema_field){
                .name = JOINED_FIELD, .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64, .is_on_demand = true
        };
        return 0;
}

/* A part has all fields, its own in its own description: but what differs between parts is as all of them have it. */
static int align(const struct source *inner, const struct schema *all, uint32_t idx_number, uint32_t number,
                 struct source **ret_source) {
        struct schema fields = *all;
        uint32_t numbers[SCHEMA_FIELDS_MAX];
        struct names names;

        names_init(&names, &inner->schema);
        for (uint32_t i = 0; i < all->n_fields; i++) {
                struct schema_field *field = &fields.fields[i];

                numbers[i] = i == idx_number ? ALIGNED_NONE : joined_find_field(&names, all->fields[i].name);
                field->is_class = false;
                if (numbers[i] == ALIGNED_NONE)
                        continue;
                *field = inner->schema.fields[numbers[i]];
                field->same_as = 0;
                field->may_be_absent = all->fields[i].may_be_absent;
                field->max_rows = all->fields[i].max_rows;
                if (field->kind == FIELD_VALUE && field->n_dims > 0 && all->fields[i].kind == FIELD_VALUE &&
                    all->fields[i].n_dims == field->n_dims && all->fields[i].shape[0] < 0 && !field->is_gathered)
                        field->shape[0] = -1;
        }
        return aligned_new(inner, &fields, numbers, idx_number, number, ret_source);
}

/* ---- classes --------------------------------------------------------------------------------------------------- */

static int compare_classes(const struct source_part *one, const struct source_part *other, struct why *why) {
        uint32_t n_one = one->source->n_classes, n_other = other->source->n_classes;

        for (uint32_t i = 0; i < n_one && i < n_other; i++) {
                const char *name = source_class_name(one->source, i), *name_other = source_class_name(other->source, i);

                if (strcmp(name, name_other) != 0)
                        return why_set(why, -EINVAL, "class %u is \"%s\" in %s and \"%s\" in %s", i, name, one->name,
                                       name_other, other->name);
        }
        if (n_one != n_other)
                return why_set(why, -EINVAL, "%s has %u classes and %s has %u", one->name, n_one, other->name, n_other);
        return 0;
}

/* Has it a field of class numbers? Of annotations the names alone are known. */
static bool has_labels(const struct source *part) {
        for (uint32_t i = 0; i < part->schema.n_fields; i++)
                if (part->schema.fields[i].is_class)
                        return true;
        return false;
}

static int check_classes(const struct source *source, bool only_labels, struct why *why) {
        const struct source_part *first = NULL;
        int r = 0;

        for (uint32_t k = 0; k < source->n_parts && r == 0; k++) {
                if (source->parts[k].source->n_classes == 0 || (only_labels && !has_labels(source->parts[k].source)))
                        continue;
                if (first)
                        r = compare_classes(first, &source->parts[k], why);
                else
                        first = &source->parts[k];
        }
        return r;
}

int joined_check_classes(const struct source *source, struct why *why) {
        return check_classes(source, true, why);
}

static void joined_take_classes(struct joined *joined) {
        struct source *source = &joined->source;

        if (check_classes(source, false, NULL) < 0)
                return;
        for (uint32_t k = 0; k < source->n_parts && source->n_classes == 0; k++) {
                joined->idx_classes = k;
                source->n_classes = joined->parts[k].source->n_classes;
        }
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

static int joined_make_digest(struct joined *joined, struct why *why) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        int is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) &&
                      EVP_DigestUpdate(context, "joined", sizeof("joined"));

        for (uint32_t k = 0; k < joined->source.n_parts && is_fine; k++) {
                const struct source_part *part = &joined->parts[k];

                is_fine = EVP_DigestUpdate(context, part->name, strlen(part->name) + 1) &&
                          EVP_DigestUpdate(context, part->source->digest, strlen(part->source->digest) + 1);
        }
        is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        if (!is_fine)
                return why_set(why, -ENOMEM, "the digest of the datasets could not be made");
        for (size_t i = 0; i < (DIGEST_SIZE - 1) / 2; i++)
                snprintf(joined->digest + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

static uint64_t joined_larger(uint64_t one, uint64_t other) {
        return one > other ? one : other;
}

/* What is asked about the whole, and not about a part. */
static void joined_measure(struct source *all, const struct source *part) {
        all->n_samples += part->n_samples;
        all->n_shards += part->n_shards;
        all->total_bytes += part->total_bytes;
        all->max_length = joined_larger(all->max_length, part->max_length);
        all->max_span = joined_larger(all->max_span, part->max_span);
        all->max_name_bytes = joined_larger(all->max_name_bytes, part->max_name_bytes);
        all->has_several_files |= part->has_several_files;
}

static int joined_add_part(struct joined *joined, const struct joined_part *part, uint32_t idx_number,
                           struct why *why) {
        struct source *source = &joined->source;
        uint32_t k = source->n_parts;

        if (part->source->growth)
                return why_set(why, -EINVAL,
                               "dataset %s is a stream, and can only be served alone: where the samples of other "
                               "datasets begin would depend on when it ends",
                               part->name);
        joined->names[k] = strdup(part->name);
        if (!joined->names[k] || align(part->source, &source->schema, idx_number, k, &joined->parts[k].source) < 0) {
                free(joined->names[k]);
                return why_set(why, -ENOMEM, "no memory to join datasets");
        }
        joined->parts[k].name = joined->names[k];
        joined->parts[k].first = source->n_samples;
        source->n_parts = k + 1;
        joined_measure(source, part->source);
        if (source->n_samples > DLP_SAMPLES_MAX)
                return why_set(why, -EINVAL, "together the datasets have more than %llu samples",
                               (unsigned long long)DLP_SAMPLES_MAX);
        return 0;
}

int joined_open(const struct joined_part *parts, uint32_t n_parts, struct source **ret_source, struct why *why) {
        struct joined *joined = calloc(1, sizeof(*joined));
        uint32_t idx_number;
        int r;

        assert(n_parts >= 2 && n_parts <= DLP_PARTS_MAX);
        if (!joined)
                return why_set(why, -ENOMEM, "no memory to join datasets");
        joined->source.type = &JOINED_TYPE;
        joined->source.format = "joined";
        joined->source.parts = joined->parts;
        joined->source.digest = joined->digest;
        r = unite_fields(parts, n_parts, &joined->source.schema, &idx_number, why);
        for (uint32_t k = 0; k < n_parts && r == 0; k++)
                r = joined_add_part(joined, &parts[k], idx_number, why);
        if (r == 0)
                r = joined_make_digest(joined, why);
        if (r < 0) {
                joined_close(&joined->source);
                return r;
        }
        joined_take_classes(joined);
        *ret_source = &joined->source;
        return 0;
}
