#include "daemon/data/view/view.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/source_type.h"
#include "daemon/data/view/split.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"

#define ALTERNATIVES_MAX 8u
#define DIGEST_SIZE      65u

struct view_field {
        uint32_t n;
        uint32_t inner[ALTERNATIVES_MAX]; /* fields of the source under it */
};

struct view_source {
        struct source source; /* the first member: callers have a pointer to it */
        struct source *inner;
        struct split split;
        struct view_field fields[SCHEMA_FIELDS_MAX];
        char digest[DIGEST_SIZE];
};

static const struct source_type VIEW_TYPE;

static const struct view_source *view_of(const struct source *source) {
        return (const struct view_source *)source;
}

static void view_close(struct source *source) {
        struct view_source *view = (struct view_source *)source;

        source_close(view->inner);
        split_fini(&view->split);
        free(view);
}

/* ---- what is chosen -------------------------------------------------------------------------------------------- */

static int view_refuse_field(const struct source *inner, const char *name, size_t n, struct why *why) {
        const char *reason = refusal_of(inner->refused, inner->n_refused, name, n);
        struct nearest nearest;
        char names[256] = "";

        if (reason)
                return why_set(why, -ENOTSUP, "fields: %.*s cannot be served: %s", (int)n, name, reason);
        nearest_begin(&nearest, name, n);
        for (uint32_t i = 0; i < inner->schema.n_fields; i++)
                nearest_offer(&nearest, inner->schema.fields[i].name);
        for (uint32_t i = 0, at = 0; i < inner->schema.n_fields && at < sizeof(names); i++)
                at += (uint32_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
                                         inner->schema.fields[i].name);
        return why_set(why, -EINVAL, "fields: the dataset has no field \"%.*s\"%s; its fields are %s", (int)n, name,
                       nearest_hint(&nearest), names);
}

static int view_find_inner(const struct source *inner, const char *name, size_t n, uint32_t *ret_idx, struct why *why) {
        for (uint32_t i = 0; i < inner->schema.n_fields; i++)
                if (field_name_is(&inner->schema.fields[i], name, n)) {
                        *ret_idx = i;
                        return 0;
                }
        return view_refuse_field(inner, name, n, why);
}

/* Alternatives become one tensor, so they must be described alike. */
static bool view_is_alike(const struct schema_field *one, const struct schema_field *other) {
        return one->kind == other->kind && one->is_stored == other->is_stored &&
               one->is_gathered == other->is_gathered && one->is_big_endian == other->is_big_endian &&
               one->coding == other->coding && one->dtype == other->dtype && one->n_dims == other->n_dims &&
               memcmp(one->shape, other->shape, one->n_dims * sizeof(one->shape[0])) == 0;
}

/* Without the blanks around it. */
static const char *view_trim(const char *text, size_t *n) {
        while (*n > 0 && isspace((unsigned char)text[0])) {
                text++;
                (*n)--;
        }
        while (*n > 0 && isspace((unsigned char)text[*n - 1]))
                (*n)--;
        return text;
}

/* One that no sample has is passed over: "jpg|png" is also for a dataset of PNG files. */
static int add_alternatives(struct view_source *view, struct view_field *field, const char *text, size_t n,
                            struct why *why) {
        const struct schema *schema = &view->inner->schema;
        struct why first = { 0 };

        for (;;) {
                size_t n_one = 0, n_name;
                const char *name;
                int r;

                while (n_one < n && text[n_one] != '|')
                        n_one++;
                if (field->n == ALTERNATIVES_MAX)
                        return why_set(why, -EINVAL, "fields: more than %u alternatives", ALTERNATIVES_MAX);
                n_name = n_one;
                name = view_trim(text, &n_name);
                r = view_find_inner(view->inner, name, n_name, &field->inner[field->n], why);
                if (r < 0 && n_name == 0)
                        return r;
                if (r < 0 && !first.text[0])
                        first = *why;
                if (r == 0 && !view_is_alike(&schema->fields[field->inner[0]], &schema->fields[field->inner[field->n]]))
                        return why_set(
                                why, -EINVAL,
                                "fields: %s and %.*s differ in kind, dtype or shape, so they cannot be one field",
                                schema->fields[field->inner[0]].name, (int)n_name, name);
                field->n += r == 0;
                if (n_one == n)
                        break;
                text += n_one + 1;
                n -= n_one + 1;
        }
        if (field->n > 0)
                return 0;
        *why = first;
        return -EINVAL;
}

/* "NAME=FIELD|FIELD", or "FIELD" under its own name. */
static int view_add_field(struct view_source *view, const char *text, size_t n, struct why *why) {
        struct schema *schema = &view->source.schema;
        const char *equals = memchr(text, '=', n), *name = text;
        size_t n_name = equals ? (size_t)(equals - text) : n;
        struct schema_field *described;
        struct view_field *field;
        int r;

        name = view_trim(text, &n_name);
        if (equals && n_name >= SCHEMA_NAME_MAX)
                return why_set(why, -EINVAL,
                               "fields: \"%.*s\" is too long for a field's name, which has at most %u bytes",
                               (int)(n_name < 100 ? n_name : 100), name, SCHEMA_NAME_MAX - 1);
        if (schema->n_fields == SCHEMA_FIELDS_MAX || n_name == 0)
                return why_set(why, -EINVAL,
                               "fields: \"%.*s\" is not understood; write NAME=FIELD, NAME=FIELD|FIELD or FIELD, "
                               "separated by commas",
                               (int)(n < 100 ? n : 100), text);
        for (uint32_t i = 0; i < schema->n_fields; i++)
                if (field_name_is(&schema->fields[i], name, n_name))
                        return why_set(why, -EINVAL, "fields: two fields have the name \"%.*s\"", (int)n_name, name);
        field = &view->fields[schema->n_fields];
        described = &schema->fields[schema->n_fields];
        r = equals ? add_alternatives(view, field, equals + 1, n - (size_t)(equals + 1 - text), why)
                   : add_alternatives(view, field, name, n_name, why);
        if (r < 0)
                return r;
        *described = view->inner->schema.fields[field->inner[0]];
        for (uint32_t i = 1; i < field->n; i++)
                described->may_be_absent &= view->inner->schema.fields[field->inner[i]].may_be_absent;
        described->same_as = 0;
        field_name_from(name, n_name, described->name);
        schema->n_fields++;
        return 0;
}

static int choose_fields(struct view_source *view, const char *text, struct why *why) {
        int r = 0;

        if (!text) {
                view->source.schema = view->inner->schema;
                for (uint32_t i = 0; i < view->source.schema.n_fields; i++) {
                        view->fields[i] = (struct view_field){ .n = 1, .inner = { i } };
                        view->source.schema.fields[i].same_as = 0; /* the source under it knows */
                }
                return 0;
        }
        view->source.schema.n_fields = 0;
        while (r == 0) {
                size_t n = strcspn(text, ",");

                r = view_add_field(view, text, n, why);
                if (!text[n])
                        break;
                text += n + 1;
        }
        return r;
}

/* ---- asked for each sample ------------------------------------------------------------------------------------- */

/* Which alternative the sample has; the first one if it has none. */
static uint32_t view_inner_field(const struct view_source *view, uint64_t inner_sample, uint32_t field) {
        const struct view_field *chosen = &view->fields[field];

        for (uint32_t i = 0; i < chosen->n && chosen->n > 1; i++)
                if (source_has(view->inner, inner_sample, chosen->inner[i]))
                        return chosen->inner[i];
        return chosen->inner[0];
}

static void view_locate(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent) {
        const struct view_source *view = view_of(source);
        uint64_t inner = split_sample(&view->split, sample);

        source_locate(view->inner, inner, view_inner_field(view, inner, field), ret_extent);
}

static const uint8_t *view_row(const struct source *source, uint64_t sample, uint32_t field) {
        const struct view_source *view = view_of(source);

        /* Alternatives lie in different mappings, so that source_rows_were_there() would not know which one to ask. */
        if (view->fields[field].n > 1)
                return NULL;
        return view->inner->type->row ? view->inner->type->row(view->inner, split_sample(&view->split, sample),
                                                               view->fields[field].inner[0])
                                      : NULL;
}

static void view_prefetch(const struct source *source, uint64_t sample, bool is_near) {
        const struct view_source *view = view_of(source);

        source_prefetch(view->inner, split_sample(&view->split, sample), is_near);
}

static bool view_next_piece(const struct source *source, uint64_t sample, uint32_t field, struct source_piece *piece) {
        const struct view_source *view = view_of(source);
        uint64_t inner = split_sample(&view->split, sample);

        return view->inner->type->next_piece(view->inner, inner, view_inner_field(view, inner, field), piece);
}

static bool view_rows_were_there(const struct source *source, uint32_t field) {
        const struct view_source *view = view_of(source);

        return source_rows_were_there(view->inner, view->fields[field].inner[0]);
}

static bool view_value_bytes(const struct source *source, uint64_t sample, uint32_t field, uint64_t *ret_n_bytes) {
        const struct view_source *view = view_of(source);
        uint64_t inner = split_sample(&view->split, sample);
        uint32_t idx = view_inner_field(view, inner, field);

        *ret_n_bytes = source_length(view->inner, inner, idx);
        return source_has(view->inner, inner, idx);
}

static void view_value(const struct source *source, uint64_t sample, uint32_t field, void *ret_value) {
        const struct view_source *view = view_of(source);
        uint64_t inner = split_sample(&view->split, sample);

        source_value(view->inner, inner, view_inner_field(view, inner, field), ret_value);
}

/* The first of the samples from `sample` on that is `inner` or comes after it under the view; they ascend. */
static uint64_t view_first_from(const struct view_source *view, uint64_t sample, uint64_t inner) {
        uint64_t low = sample, high = view->source.n_samples;

        while (low < high) { /* it is one of [low, high], where `high` may be that there is none */
                uint64_t middle = low + (high - low) / 2;

                if (split_sample(&view->split, middle) < inner)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool view_shard_end(const struct source *source, uint64_t sample, uint64_t *ret_end) {
        const struct view_source *view = view_of(source);
        uint64_t end;

        if (view->split.table && !view->split.is_ascending)
                return false;
        if (!source_shard_end(view->inner, split_sample(&view->split, sample), &end))
                return false;
        *ret_end = view_first_from(view, sample, end);
        return true;
}

static size_t view_name(const struct source *source, uint64_t sample, char *ret_name) {
        const struct view_source *view = view_of(source);

        return source_name(view->inner, split_sample(&view->split, sample), ret_name);
}

static const char *view_broken(const struct source *source, uint64_t sample) {
        const struct view_source *view = view_of(source);

        return source_broken(view->inner, split_sample(&view->split, sample));
}

static uint64_t view_longest(const struct source *source, uint32_t field) {
        const struct view_source *view = view_of(source);
        uint64_t longest = 0;

        for (uint32_t i = 0; i < view->fields[field].n; i++) {
                uint64_t one = source_longest_read(view->inner, &view->fields[field].inner[i], 1);

                longest = one > longest ? one : longest;
        }
        return longest;
}

static uint64_t view_together(const struct source *source, uint32_t field, uint32_t n) {
        const struct view_source *view = view_of(source);
        uint64_t most = 0, one = 0;

        for (uint32_t i = 0; i < view->fields[field].n; i++) {
                if (source_longest_together(view->inner, view->fields[field].inner[i], n, 1, &one) < 0)
                        return n * view_longest(source, field);
                most = one > most ? one : most;
        }
        return most;
}

static const char *view_class_name(const struct source *source, uint32_t label) {
        return source_class_name(view_of(source)->inner, label);
}

static int view_compare(const struct source *source, int root_fd, enum source_compare compare, struct why *why) {
        const struct view_source *view = view_of(source);

        return view->inner->type->compare(view->inner, root_fd, compare, why);
}

static const struct source_type VIEW_TYPE = {
        .close = view_close,
        .compare = view_compare,
        .locate = view_locate,
        .shard_end = view_shard_end,
        .row = view_row,
        .next_piece = view_next_piece,
        .prefetch = view_prefetch,
        .rows_were_there = view_rows_were_there,
        .value_bytes = view_value_bytes,
        .value = view_value,
        .name = view_name,
        .broken = view_broken,
        .longest = view_longest,
        .together = view_together,
        .class_name = view_class_name,
};

/* ---- opening --------------------------------------------------------------------------------------------------- */

static int view_make_digest(struct view_source *view, const char *fields, const char *split, struct why *why) {
        const char *const parts[] = { "view", view->inner->digest, fields ? fields : "", split ? split : "" };
        unsigned char digest[EVP_MAX_MD_SIZE];
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        int is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);
        char list[PATH_MAX];

        split_file(split ? split : "", list);
        for (size_t i = 0; i < ARRAY_SIZE(parts) && is_fine; i++)
                is_fine = EVP_DigestUpdate(context, parts[i], strlen(parts[i]) + 1);
        if (is_fine && list[0]) /* the same text names other samples when the file has changed */
                is_fine = EVP_DigestUpdate(context, view->split.table,
                                           view->split.n_samples * (view->split.is_wide ? 8 : 4));
        is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        if (!is_fine)
                return why_set(why, -ENOMEM, "its digest could not be made");
        for (size_t i = 0; i < (DIGEST_SIZE - 1) / 2; i++)
                snprintf(view->digest + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

/* Alternatives may be absent one by one, while every sample has one of them: then the field is never absent. */
static void view_look_for_absent(struct view_source *view) {
        for (uint32_t k = 0; k < view->source.schema.n_fields; k++) {
                struct schema_field *field = &view->source.schema.fields[k];
                bool is_absent = false;

                if (!field->may_be_absent || field->kind == FIELD_NAME)
                        continue;
                for (uint64_t i = 0; i < view->source.n_samples && !is_absent; i++) {
                        uint64_t inner = split_sample(&view->split, i);

                        is_absent = !source_has(view->inner, inner, view_inner_field(view, inner, k));
                }
                field->may_be_absent = is_absent;
        }
}

/* What is known of all samples and fields may be less for those that are left. */
static void view_measure(struct view_source *view) {
        struct source *source = &view->source;

        if (source->growth) /* the first shard has said what there is, and what may be absent */
                return;
        view_look_for_absent(view);
        source->total_bytes = 0;
        source->max_length = 0;
        for (uint32_t k = 0; k < source->schema.n_fields; k++) {
                if (!source->schema.fields[k].is_stored)
                        continue;
                for (uint64_t i = 0; i < (source->has_fixed_lengths ? 1 : source->n_samples); i++) {
                        uint64_t length = source_length(source, i, k);

                        source->total_bytes += source->has_fixed_lengths ? length * source->n_samples : length;
                        source->max_length = length > source->max_length ? length : source->max_length;
                }
        }
        source->max_span = source_longest_span(source);
}

static int view_fill(struct view_source *view, const char *fields, const char *split, const struct split_root *root,
                     struct why *why) {
        int r = choose_fields(view, fields, why);

        if (r == 0 && split && view->inner->growth)
                return why_set(why, -EINVAL,
                               "split: a stream has none, as it is not known how many samples it will have");
        if (r == 0 && split)
                r = split_make(view->inner, split, root, &view->split, why);
        if (r == 0 && !split)
                view->split.n_samples = view->inner->n_samples;
        if (r == 0)
                r = view_make_digest(view, fields, split, why);
        if (r < 0)
                return r;
        view->source.n_samples = view->split.n_samples;
        view->source.digest = view->digest;
        view->source.type = &VIEW_TYPE;
        view_measure(view);
        return 0;
}

int view_open(struct source **source, const char *fields, const char *split, const struct split_root *root,
              struct why *why) {
        struct view_source *view;
        int r;

        if (!fields && !split)
                return 0;
        view = calloc(1, sizeof(*view));
        if (!view)
                return why_set(why, -ENOMEM, "no memory to choose its fields and samples");
        view->source = **source;
        view->inner = *source;
        r = view_fill(view, fields, split, root, why);
        if (r < 0) {
                split_fini(&view->split);
                free(view);
                return r;
        }
        *source = &view->source;
        return 0;
}
