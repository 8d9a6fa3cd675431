/* Several sources as one: data/joined/joined.h. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/growth.h"
#include "daemon/data/index/index_builder.h"
#include "daemon/data/joined/joined.h"
#include "daemon/data/orders/data_sampling.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "tests/support/suite.h"

/* What differs from source to source. */
struct made {
        const char *stored;       /* its stored field */
        const char *known;        /* its column, */
        struct schema_field form; /* of this form */
        const char *classes[3];
};

/* N samples with the names d/0, d/1, ...; the column of sample i begins with 1000 + i. */
static struct source *make(uint64_t n, const struct made *made) {
        struct schema_field column = made->form;
        struct stat status = { .st_size = 1 << 20 };
        struct index_builder *builder;
        struct source *source;
        uint32_t idx, root, dir;
        struct why why;
        int fd;

        snprintf(column.name, sizeof(column.name), "%s", made->known);
        ck_assert_int_eq(index_builder_new("webdataset", 1, &builder), 0);
        index_builder_set_field(builder, 0, made->stored, FIELD_BYTES, false);
        ck_assert_int_eq(index_builder_add_column(builder, &column, &idx), 0);
        ck_assert_int_eq(index_builder_add_dir(builder, "", &status, &root), 0);
        ck_assert_int_eq(index_builder_add_dir(builder, "d", NULL, &dir), 0);
        ck_assert_int_eq(index_builder_add_shard(builder, "a.tar", &status), 0);
        for (size_t i = 0; i < ARRAY_SIZE(made->classes) && made->classes[i]; i++)
                ck_assert_int_eq(index_builder_add_class(builder, made->classes[i]), 0);
        for (uint64_t i = 0; i < n; i++) {
                struct index_row row = { .offset = 100 * i, .length = 40 };
                int64_t value[4] = { (int64_t)(1000 + i) };
                uint64_t n_elements = 1;
                char name[32];

                for (uint32_t k = 0; k < column.n_dims; k++)
                        n_elements *= (uint64_t)column.shape[k];
                snprintf(name, sizeof(name), "%llu", (unsigned long long)i);
                ck_assert_int_eq(index_builder_add_file(builder, dir, name, 0, &row.file), 0);
                ck_assert_int_eq(index_builder_set_value(builder, idx, value, n_elements * sizeof(value[0])), 0);
                ck_assert_int_eq(index_builder_add_sample(builder, &row, 0), 0);
        }
        fd = memfd_create("index", MFD_CLOEXEC);
        ck_assert_int_eq(index_builder_write(builder, fd, "made", &why), 0);
        index_builder_free(builder);
        ck_assert_msg(index_open_fd(fd, "made", NULL, &source, &why) == 0, "%s", why.text);
        close(fd);
        return source;
}

#define SCALAR                                                                                                         \
        { .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 }

static const struct made PLAIN = { .stored = "jpg", .known = "width", .form = SCALAR };

static struct source *join(const struct joined_part *parts, uint32_t n_parts) {
        struct source *source;
        struct why why;

        ck_assert_msg(joined_open(parts, n_parts, &source, &why) == 0, "%s", why.text);
        return source;
}

static uint32_t field_of(const struct source *source, const char *name) {
        for (uint32_t i = 0; i < source->schema.n_fields; i++)
                if (strcmp(source->schema.fields[i].name, name) == 0)
                        return i;
        ck_abort_msg("no field %s", name);
}

static int64_t value_of(const struct source *source, uint64_t sample, const char *field) {
        int64_t value[4] = { -1 };

        source_value(source, sample, field_of(source, field), value);
        return value[0];
}

/* The order of the next epoch may still be made when its job has left, and the dataset is closed then. */
START_TEST(a_sampler_knows_its_parts_after_the_source_is_closed) {
        struct source *one = make(3, &PLAIN), *two = make(2, &PLAIN);
        const struct joined_part parts[] = { { "one", one }, { "two", two } };
        struct source *source = join(parts, ARRAY_SIZE(parts));
        struct budget budget = { .limit_bytes = UINT64_MAX };
        struct sampling *sampling;
        struct why why;

        ck_assert_msg(sampling_new("mix(one=0.5, two=0.5)", -1, NULL, 0, &sampling, &why) == 0, "%s", why.text);
        ck_assert_msg(sampling_load(sampling, source, &budget, &why) == 0, "%s", why.text);
        source_close(source);
        source_close(one);
        source_close(two);
        ck_assert_uint_eq(sampling->n_parts, ARRAY_SIZE(parts));
        ck_assert_str_eq(sampling->parts[0].name, "one");
        ck_assert_str_eq(sampling->parts[1].name, "two");
        ck_assert_uint_eq(sampling->parts[1].first, 3);
        sampling_unref(sampling);
}
END_TEST

/* Parts of any length, none at all too: each sample is found with its own number, place and value. */
START_TEST(the_samples_of_a_part_follow_those_of_the_part_before_it) {
        static const uint64_t lengths[] = { 0, 3, 1, 0, 0, 7, 2, 0 };
        struct joined_part parts[ARRAY_SIZE(lengths)];
        char names[ARRAY_SIZE(lengths)][8], name[SOURCE_NAME_SIZE];
        struct source *source;
        struct extent extent;
        uint64_t sample = 0;

        for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
                snprintf(names[k], sizeof(names[k]), "p%zu", k);
                parts[k] = (struct joined_part){ names[k], make(lengths[k], &PLAIN) };
        }
        source = join(parts, ARRAY_SIZE(lengths));
        ck_assert_uint_eq(source->n_samples, 13);
        ck_assert_uint_eq(source->n_parts, ARRAY_SIZE(lengths));
        ck_assert_uint_eq(source->total_bytes, 13 * 40);
        for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
                ck_assert_str_eq(source->parts[k].name, names[k]);
                ck_assert_uint_eq(source->parts[k].first, sample);
                for (uint64_t i = 0; i < lengths[k]; i++, sample++) {
                        char expected[32];

                        ck_assert_uint_eq(source_part_of(source, sample), k);
                        source_locate(source, sample, 0, &extent);
                        ck_assert_uint_eq(extent.offset, 100 * i);
                        ck_assert_int_eq(value_of(source, sample, "width"), (int64_t)(1000 + i));
                        ck_assert_int_eq(value_of(source, sample, JOINED_FIELD), (int64_t)k);
                        snprintf(expected, sizeof(expected), "d/%llu", (unsigned long long)i);
                        source_name(source, sample, name);
                        ck_assert_str_eq(name, expected);
                }
        }
        source_close(source);
        for (size_t k = 0; k < ARRAY_SIZE(lengths); k++)
                source_close((struct source *)(uintptr_t)parts[k].source);
}
END_TEST

START_TEST(fields_are_those_of_all_parts_and_absent_where_a_part_has_none) {
        static const struct made other = { .stored = "png", .known = "width", .form = SCALAR };
        const struct joined_part parts[] = { { "a", make(2, &PLAIN) }, { "b", make(3, &other) } };
        struct source *source = join(parts, 2);
        uint32_t jpg = field_of(source, "jpg"), png = field_of(source, "png"), width = field_of(source, "width");

        ck_assert(source->schema.fields[jpg].may_be_absent && source->schema.fields[png].may_be_absent);
        ck_assert(!source->schema.fields[width].may_be_absent);
        for (uint64_t i = 0; i < 5; i++) {
                ck_assert(source_has(source, i, jpg) == (i < 2) && source_has(source, i, png) == (i >= 2));
                ck_assert_uint_eq(source_length(source, i, jpg), i < 2 ? 40 : 0);
                ck_assert(source_has(source, i, width) && source_has(source, i, field_of(source, "__key__")));
        }
        for (uint32_t k = 0; k < 2; k++) /* fields have the same numbers in all parts */
                for (uint32_t i = 0; i < source->schema.n_fields; i++)
                        ck_assert_str_eq(source->parts[k].source->schema.fields[i].name, source->schema.fields[i].name);
        ck_assert(source->schema.fields[field_of(source, JOINED_FIELD)].is_on_demand);
        source_close(source);
        source_close((struct source *)(uintptr_t)parts[0].source);
        source_close((struct source *)(uintptr_t)parts[1].source);
}
END_TEST

START_TEST(the_first_dimension_varies_if_it_differs_from_part_to_part) {
        static const struct made pairs = {
                .stored = "jpg",
                .known = "width",
                .form = { .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64, .n_dims = 2, .shape = { 1, 2 } }
        };
        static const struct made twice = {
                .stored = "jpg",
                .known = "width",
                .form = { .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64, .n_dims = 2, .shape = { 2, 2 } }
        };
        const struct joined_part parts[] = { { "a", make(2, &pairs) }, { "b", make(2, &twice) } };
        struct source *source = join(parts, 2);
        uint32_t width = field_of(source, "width");

        for (uint32_t k = 0; k < 2; k++) {
                ck_assert_int_eq(source->parts[k].source->schema.fields[width].shape[0], -1);
                ck_assert_int_eq(source->parts[k].source->schema.fields[width].shape[1], 2);
        }
        ck_assert_uint_eq(source_length(source, 1, width), 16);
        ck_assert_uint_eq(source_length(source, 2, width), 32);
        source_close(source);
        source_close((struct source *)(uintptr_t)parts[0].source);
        source_close((struct source *)(uintptr_t)parts[1].source);
}
END_TEST

START_TEST(classes_are_known_if_all_who_have_some_have_the_same) {
        static const struct {
                const char *one[3], *other[3];
                uint32_t n;
                const char *said;
        } rows[] = {
                { { "cat", "dog" }, { "cat", "dog" }, 2, NULL },
                { { "cat", "dog" }, { 0 }, 2, NULL },
                { { 0 }, { "cat" }, 1, NULL },
                { { 0 }, { 0 }, 0, NULL },
                { { "cat", "dog" }, { "cat", "fox" }, 0, "class 1 is \"dog\" in a and \"fox\" in b" },
                { { "cat", "dog" }, { "cat" }, 0, "a has 2 classes and b has 1" },
        };
        struct why why;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct made one = PLAIN, other = PLAIN;
                struct joined_part parts[2];
                struct source *source;

                memcpy(one.classes, rows[i].one, sizeof(one.classes));
                memcpy(other.classes, rows[i].other, sizeof(other.classes));
                parts[0] = (struct joined_part){ "a", make(2, &one) };
                parts[1] = (struct joined_part){ "b", make(2, &other) };
                source = join(parts, 2);
                ck_assert_uint_eq(source->n_classes, rows[i].n);
                for (uint32_t k = 0; k < rows[i].n; k++)
                        ck_assert_str_eq(source_class_name(source, k),
                                         rows[i].one[0] ? rows[i].one[k] : rows[i].other[k]);
                ck_assert_int_eq(joined_check_classes(source, &why), rows[i].said ? -EINVAL : 0);
                ck_assert_msg(!rows[i].said || strstr(why.text, rows[i].said), "%s", why.text);
                source_close(source);
                source_close((struct source *)(uintptr_t)parts[0].source);
                source_close((struct source *)(uintptr_t)parts[1].source);
        }
}
END_TEST

/* Names, contents and sequence of the parts: each makes another digest. */
START_TEST(the_digest_is_that_of_the_parts_in_their_sequence) {
        struct source *a = make(2, &PLAIN), *b = make(3, &PLAIN), *c = make(4, &PLAIN);
        const struct joined_part rows[][2] = {
                { { "a", a }, { "b", b } },
                { { "b", b }, { "a", a } },
                { { "a", a }, { "x", b } },
                { { "a", a }, { "b", c } },
        };
        struct source *sources[ARRAY_SIZE(rows)], *again = join(rows[0], 2);

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                sources[i] = join(rows[i], 2);
        ck_assert_str_eq(again->digest, sources[0]->digest);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                for (size_t k = 0; k < i; k++)
                        ck_assert_str_ne(sources[i]->digest, sources[k]->digest);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                source_close(sources[i]);
        source_close(again);
        source_close(a);
        source_close(b);
        source_close(c);
}
END_TEST

START_TEST(a_field_of_that_name_keeps_its_meaning) {
        static const struct made made = { .stored = "jpg", .known = JOINED_FIELD, .form = SCALAR };
        const struct joined_part parts[] = { { "a", make(2, &PLAIN) }, { "b", make(2, &made) } };
        struct source *source = join(parts, 2);

        ck_assert_int_eq(value_of(source, 3, JOINED_FIELD), 1001);
        ck_assert(!source_has(source, 0, field_of(source, JOINED_FIELD)));
        source_close(source);
        source_close((struct source *)(uintptr_t)parts[0].source);
        source_close((struct source *)(uintptr_t)parts[1].source);
}
END_TEST

START_TEST(a_stream_and_too_many_samples_are_refused) {
        struct source *a = make(2, &PLAIN), *b = make(3, &PLAIN), *source;
        const struct joined_part parts[] = { { "a", a }, { "b", b } };
        struct growth *growth;
        struct why why;

        ck_assert_int_eq(growth_new(&growth), 0);
        b->growth = growth;
        ck_assert_int_eq(joined_open(parts, 2, &source, &why), -EINVAL);
        ck_assert_msg(strstr(why.text, "b is a stream"), "%s", why.text);
        b->growth = NULL;
        growth_unref(growth);
        b->n_samples = DLP_SAMPLES_MAX;
        ck_assert_int_eq(joined_open(parts, 2, &source, &why), -EINVAL);
        ck_assert_msg(strstr(why.text, "1099511627776 samples"), "%s", why.text);
        source_close(a);
        source_close(b);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "samples", the_samples_of_a_part_follow_those_of_the_part_before_it, 0 },
                { "samples", a_sampler_knows_its_parts_after_the_source_is_closed, 0 },
                { "fields", fields_are_those_of_all_parts_and_absent_where_a_part_has_none, 0 },
                { "fields", the_first_dimension_varies_if_it_differs_from_part_to_part, 0 },
                { "fields", a_field_of_that_name_keeps_its_meaning, 0 },
                { "classes", classes_are_known_if_all_who_have_some_have_the_same, 0 },
                { "whole", the_digest_is_that_of_the_parts_in_their_sequence, 0 },
                { "whole", a_stream_and_too_many_samples_are_refused, 0 },
        };

        return suite_run("joined", rows, ARRAY_SIZE(rows));
}
