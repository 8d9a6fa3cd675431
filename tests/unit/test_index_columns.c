/* Fields of an index that are not pictures: values that are kept in it, and rows in files of their own. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/index/index_builder.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

static struct schema_field field(const char *name, enum field_kind kind, uint32_t dtype, int64_t rows,
                                 int64_t columns) {
        struct schema_field field = { .kind = kind, .dtype = dtype, .n_dims = (rows != 0) + (columns != 0) };

        strcpy(field.name, name);
        field.shape[0] = rows;
        field.shape[1] = columns;
        return field;
}

static int write_index(struct index_builder *builder) {
        int fd = memfd_create("index", MFD_CLOEXEC);
        struct why why;

        ck_assert_msg(index_builder_write(builder, fd, "made", &why) == 0, "%s", why.text);
        return fd;
}

static struct source *open_index(int fd) {
        struct source *source;
        struct why why;

        ck_assert_msg(index_open_fd(fd, "made", NULL, &source, &why) == 0, "%s", why.text);
        return source;
}

/* Three samples in the shards a.jsonl (2) and b.jsonl (1): a text at bytes of the shard, a picture in a file of its
 * own, an int64, boxes [-1, 4], a caption that the second sample does not have. */
static struct index_builder *begin_listing(uint32_t ret_columns[3]) {
        struct stat status = { .st_size = 100 };
        struct schema_field text = field("text", FIELD_TEXT, 0, 0, 0), image = field("image", FIELD_PICTURE, 0, 0, 0);
        struct schema_field columns[] = { field("width", FIELD_VALUE, DLP_DTYPE_INT64, 0, 0),
                                          field("boxes", FIELD_VALUE, DLP_DTYPE_FLOAT32, -1, 4),
                                          field("caption", FIELD_TEXT, 0, 0, 0) };
        struct index_builder *builder;
        uint32_t idx;

        text.coding = CODING_JSON;
        columns[2].may_be_absent = true;
        ck_assert_int_eq(index_builder_new("jsonl", 2, &builder), 0);
        index_builder_describe(builder, 0, &text);
        index_builder_describe(builder, 1, &image);
        index_builder_set_own_file(builder, 1);
        index_builder_name_rows(builder);
        for (int i = 0; i < 3; i++)
                ck_assert_int_eq(index_builder_add_column(builder, &columns[i], &ret_columns[i]), 0);
        ck_assert_int_eq(index_builder_add_dir(builder, "", &status, &idx), 0);
        ck_assert_int_eq(index_builder_add_dir(builder, "pictures", NULL, &idx), 0);
        ck_assert_int_eq(index_builder_add_shard(builder, "a.jsonl", &status), 0);
        return builder;
}

static void add_listed(struct index_builder *builder, const uint32_t *columns, uint64_t i, int64_t width) {
        static const float boxes[3][4] = { { 0, 1, 2, 3 }, { 4, 5, 6, 7 }, { 8, 9, 10, 11 } };
        struct index_row rows[2] = { { .file = INDEX_NO_FILE, .offset = 10 * i, .length = 7 }, { .length = 1000 + i } };
        char name[32];

        snprintf(name, sizeof(name), "%llu.jpg", (unsigned long long)i);
        ck_assert_int_eq(index_builder_add_file(builder, 1, name, 0, &rows[1].file), 0);
        ck_assert_int_eq(index_builder_set_value(builder, columns[0], &width, sizeof(width)), 0);
        ck_assert_int_eq(index_builder_set_value(builder, columns[1], boxes, i * sizeof(boxes[0])), 0);
        if (i != 1)
                ck_assert_int_eq(index_builder_set_value(builder, columns[2], "cats", i + 1), 0);
        ck_assert_int_eq(index_builder_add_sample(builder, rows, 0), 0);
}

static int make_listing(int64_t width) {
        struct stat status = { .st_size = 60 };
        struct index_builder *builder;
        uint32_t columns[3];
        int fd;

        builder = begin_listing(columns);
        add_listed(builder, columns, 0, 640);
        add_listed(builder, columns, 1, width);
        ck_assert_int_eq(index_builder_add_shard(builder, "b.jsonl", &status), 0);
        add_listed(builder, columns, 2, -1);
        fd = write_index(builder);
        index_builder_free(builder);
        return fd;
}

START_TEST(values_of_every_shape_come_back_as_they_were_set) {
        _cleanup_(closep) int fd = make_listing(480);
        struct source *source = open_index(fd);
        float boxes[8];
        int64_t width;
        char text[8];

        ck_assert_uint_eq(source->n_samples, 3);
        ck_assert_uint_eq(source->schema.n_fields, 6); /* and the name */
        ck_assert_str_eq(source->schema.fields[0].name, "text");
        ck_assert(source->schema.fields[0].coding == CODING_JSON && source->schema.fields[0].is_stored);
        ck_assert(source->schema.fields[3].kind == FIELD_VALUE && !source->schema.fields[3].is_stored);
        ck_assert_int_eq(source->schema.fields[3].shape[0], -1);
        ck_assert_int_eq(source->schema.fields[3].shape[1], 4);
        ck_assert(!source->schema.fields[3].may_be_absent && source->schema.fields[4].may_be_absent);

        for (uint64_t i = 0; i < 3; i++) {
                source_value(source, i, 2, &width);
                ck_assert_int_eq(width, i == 0 ? 640 : i == 1 ? 480 : -1);
                ck_assert_uint_eq(source_length(source, i, 2), 8);
                ck_assert_uint_eq(source_length(source, i, 3), 16 * i);
                ck_assert(source_has(source, i, 3) && source_has(source, i, 4) == (i != 1));
        }
        source_value(source, 2, 3, boxes);
        ck_assert(boxes[0] == 0 && boxes[3] == 3 && boxes[7] == 7);
        ck_assert_uint_eq(source_length(source, 1, 4), 0);
        ck_assert_uint_eq(source_length(source, 2, 4), 3);
        source_value(source, 2, 4, text);
        ck_assert_int_eq(memcmp(text, "cat", 3), 0);
        source_close(source);
}
END_TEST

START_TEST(a_listing_lies_in_its_shard_and_what_it_names_in_files) {
        _cleanup_(closep) int fd = make_listing(480);
        struct source *source = open_index(fd);
        char name[SOURCE_NAME_SIZE];
        uint32_t both[] = { 0, 1 };
        struct extent extent;

        source_locate(source, 2, 0, &extent);
        ck_assert_str_eq(extent.shard, "b.jsonl");
        ck_assert_uint_eq(extent.offset, 20);
        source_locate(source, 2, 1, &extent);
        ck_assert_ptr_null(extent.shard);
        extent_path(&extent, name);
        ck_assert_str_eq(name, "pictures/2.jpg");
        ck_assert_uint_eq(extent.length, 1002);
        ck_assert(source->has_several_files);
        ck_assert_uint_eq(source_longest_read(source, both, 2), 1002);

        source_name(source, 1, name);
        ck_assert_str_eq(name, "a.jsonl:1");
        source_name(source, 2, name);
        ck_assert_str_eq(name, "b.jsonl:0");
        ck_assert_uint_ge(source->max_name_bytes, strlen(name));
        source_close(source);
}
END_TEST

START_TEST(another_value_is_another_dataset) {
        _cleanup_(closep) int one = make_listing(480), same = make_listing(480), other = make_listing(481);
        struct source *sources[] = { open_index(one), open_index(same), open_index(other) };

        ck_assert_str_eq(sources[0]->digest, sources[1]->digest);
        ck_assert_str_ne(sources[0]->digest, sources[2]->digest);
        for (int i = 0; i < 3; i++)
                source_close(sources[i]);
}
END_TEST

/* Absent values of a column of fixed size: the size of the others is in a table from the first absent one on. */
START_TEST(a_number_may_be_absent) {
        struct schema_field age = field("age", FIELD_VALUE, DLP_DTYPE_INT32, 0, 0);
        struct stat status = { .st_size = 100 };
        struct index_builder *builder;
        struct source *source;
        uint32_t idx, idx_dir;
        int fd;

        age.may_be_absent = true;
        ck_assert_int_eq(index_builder_new("csv", 0, &builder), 0);
        index_builder_name_rows(builder);
        ck_assert_int_eq(index_builder_add_column(builder, &age, &idx), 0);
        ck_assert_int_eq(index_builder_add_dir(builder, "", &status, &idx_dir), 0);
        ck_assert_int_eq(index_builder_add_shard(builder, "a.csv", &status), 0);
        for (int32_t i = 0; i < 5; i++) {
                if (i != 2)
                        ck_assert_int_eq(index_builder_set_value(builder, idx, &i, sizeof(i)), 0);
                ck_assert_int_eq(index_builder_add_sample(builder, NULL, 0), 0);
        }
        fd = write_index(builder);
        index_builder_free(builder);
        source = open_index(fd);
        close(fd);
        ck_assert(source->schema.fields[0].may_be_absent);
        for (int32_t i = 0; i < 5; i++) {
                int32_t value = -1;

                ck_assert_int_eq(source_has(source, (uint64_t)i, 0), i != 2);
                source_value(source, (uint64_t)i, 0, &value);
                ck_assert_int_eq(value, i == 2 ? -1 : i);
        }
        source_close(source);
}
END_TEST

START_TEST(lists_of_texts_come_back_and_damaged_ones_are_refused) {
        static const struct {
                uint64_t words[3]; /* and 2 bytes of text */
                bool is_fine;
        } rows[] = { { { 2, 1, 2 }, true }, { { 2, 2, 1 }, false }, { { 2, 1, 3 }, false }, { { 3, 1, 2 }, false } };
        struct schema_field words = field("words", FIELD_TEXTS, 0, 0, 0);
        struct stat status = { .st_size = 100 };
        uint8_t value[26] = { 0 }, read[26];
        uint32_t idx, idx_dir;
        struct why why;

        words.may_be_absent = true;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct source *source = NULL;
                struct index_builder *builder;
                int fd, r;

                ck_assert_int_eq(index_builder_new("arrow", 0, &builder), 0);
                index_builder_name_rows(builder);
                ck_assert_int_eq(index_builder_add_column(builder, &words, &idx), 0);
                ck_assert_int_eq(index_builder_add_dir(builder, "", &status, &idx_dir), 0);
                ck_assert_int_eq(index_builder_add_shard(builder, "a.arrow", &status), 0);
                ck_assert_int_eq(index_builder_add_sample(builder, NULL, 0), 0);
                memcpy(value, rows[i].words, sizeof(rows[i].words));
                memcpy(value + 24, "ab", 2);
                ck_assert_int_eq(index_builder_set_value(builder, idx, value, sizeof(value)), 0);
                ck_assert_int_eq(index_builder_add_sample(builder, NULL, 0), 0);
                fd = write_index(builder);
                index_builder_free(builder);
                r = index_open_fd(fd, "made", NULL, &source, &why);
                close(fd);
                ck_assert_int_eq(r, rows[i].is_fine ? 0 : -EBADMSG);
                if (r < 0) {
                        ck_assert_ptr_nonnull(strstr(why.text, "values of column 0"));
                        continue;
                }
                ck_assert(!source_has(source, 0, 0) && source_length(source, 1, 0) == sizeof(value));
                source_value(source, 1, 0, read);
                ck_assert_mem_eq(read, value, sizeof(value));
                source_close(source);
        }
}
END_TEST

/* Two samples, one in each of two shards, with a text there and a caption in the shard that is merged with it. */
static int make_merged(uint32_t shards_after) {
        struct schema_field text = field("txt", FIELD_BYTES, 0, 0, 0), caption = field("caption", FIELD_BYTES, 0, 0, 0);
        struct stat status = { .st_size = 1000 }, small = { .st_size = 40 };
        static const char *const names[] = { "a0", "a1", "b0", "b1" };
        struct index_builder *builder;
        uint32_t idx;
        int fd;

        ck_assert_int_eq(index_builder_new("webdataset", 2, &builder), 0);
        index_builder_describe(builder, 0, &text);
        index_builder_describe(builder, 1, &caption);
        index_builder_set_shards_after(builder, 1, shards_after);
        ck_assert_int_eq(index_builder_add_dir(builder, "", &status, &idx), 0);
        for (uint64_t i = 0; i < 4; i++) {
                struct index_row rows[2] = { { .offset = 700, .length = 100 }, { .offset = 30, .length = 10 } };

                ck_assert_int_eq(index_builder_add_shard(builder, names[i], i < 2 ? &status : &small), 0);
                if (i >= 2)
                        continue;
                ck_assert_int_eq(index_builder_add_file(builder, 0, names[i], 0, &rows[0].file), 0);
                rows[1].file = rows[0].file;
                ck_assert_int_eq(index_builder_add_sample(builder, rows, 0), 0);
        }
        fd = write_index(builder);
        index_builder_free(builder);
        return fd;
}

START_TEST(a_field_may_lie_in_the_shard_that_is_merged_with_that_of_its_sample) {
        static const char *const shards[2][2] = { { "a0", "b0" }, { "a1", "b1" } };
        _cleanup_(closep) int fd = make_merged(2);
        struct source *source = open_index(fd);
        struct source_read reads[2];
        struct extent extent;
        uint32_t n = 0;

        for (uint64_t sample = 0; sample < 2; sample++)
                for (uint32_t i = 0; i < 2; i++) {
                        source_locate(source, sample, i, &extent);
                        ck_assert_str_eq(extent.shard, shards[sample][i]);
                        ck_assert_uint_eq(extent.idx_shard, sample + 2 * i);
                }
        ck_assert_uint_eq(source->max_span, 100); /* of one shard */
        ck_assert(source->has_several_files);
        for (uint32_t i = 0; i < 2; i++) {
                source_locate(source, 0, i, &extent);
                ck_assert_uint_eq(source_add_to_reads(source, &extent, reads, &n), i);
        }
        ck_assert_uint_eq(n, 2);
        source_close(source);
}
END_TEST

START_TEST(a_field_in_a_shard_that_is_not_there_or_too_short_is_refused) {
        static const uint32_t places[] = { 0, 1, 2, 3, 4, UINT32_MAX };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                _cleanup_(closep) int fd = make_merged(places[i]);
                struct source *source;
                struct why why;
                int r = index_open_fd(fd, "made", NULL, &source, &why);

                ck_assert_msg((r == 0) == (places[i] <= 2), "%u: %d %s", places[i], r, r < 0 ? why.text : "");
                if (r == 0)
                        source_close(source);
        }
}
END_TEST

/* Every byte of the file, changed, with the checksum made right again: refused, or what is accepted can be used. */
START_TEST(a_damaged_column_is_refused_or_harmless) {
        _cleanup_(closep) int made = make_listing(480);
        off_t n_bytes = lseek(made, 0, SEEK_END);
        uint64_t bytes[512];
        uint32_t n_refused = 0;

        ck_assert_int_le(n_bytes, (off_t)sizeof(bytes) * 8);
        for (off_t at = INDEX_CHECKSUM_FROM; at < n_bytes; at++) {
                _cleanup_(closep) int fd = memfd_create("damaged", MFD_CLOEXEC);
                _cleanup_(freep) uint8_t *copy = aligned_alloc(8, (size_t)n_bytes);
                struct index_header *header = (void *)copy;
                struct source *source;
                struct why why;

                ck_assert_int_eq(pread(made, copy, (size_t)n_bytes, 0), n_bytes);
                copy[at] ^= 0x81;
                header->checksum = index_checksum(copy + INDEX_CHECKSUM_FROM, (size_t)n_bytes - INDEX_CHECKSUM_FROM);
                ck_assert_int_eq(write(fd, copy, (size_t)n_bytes), n_bytes);
                if (index_open_fd(fd, "damaged", NULL, &source, &why) < 0) {
                        n_refused++;
                        continue;
                }
                for (uint64_t i = 0; i < source->n_samples; i++)
                        for (uint32_t k = 0; k < source->schema.n_fields; k++) {
                                _cleanup_(freep) uint8_t *value = malloc(source_length(source, i, k) + 1);

                                if (!source->schema.fields[k].is_stored && source->schema.fields[k].kind != FIELD_NAME)
                                        source_value(source, i, k, value);
                        }
                source_close(source);
        }
        ck_assert_uint_gt(n_refused, 300);
}
END_TEST

/* Samples of a shard: a text that some lack, a number and a point that some lack, lists. */
static struct index_builder *begin_rows(void) {
        struct stat status = { .st_size = 1000 };
        struct schema_field text = field("text", FIELD_TEXT, 0, 0, 0);
        struct schema_field columns[] = { field("number", FIELD_VALUE, DLP_DTYPE_INT16, 0, 0),
                                          field("point", FIELD_VALUE, DLP_DTYPE_FLOAT32, 2, 0),
                                          field("list", FIELD_VALUE, DLP_DTYPE_INT64, -1, 0) };
        struct index_builder *builder;
        uint32_t idx;

        text.may_be_absent = columns[1].may_be_absent = columns[2].may_be_absent = true;
        ck_assert_int_eq(index_builder_new("parquet", 1, &builder), 0);
        index_builder_describe(builder, 0, &text);
        index_builder_name_rows(builder);
        for (int i = 0; i < 3; i++)
                ck_assert_int_eq(index_builder_add_column(builder, &columns[i], &idx), 0);
        ck_assert_int_eq(index_builder_add_class(builder, "a"), 0);
        ck_assert_int_eq(index_builder_add_class(builder, "b"), 0);
        ck_assert_int_eq(index_builder_add_dir(builder, "", &status, &idx), 0);
        ck_assert_int_eq(index_builder_add_shard(builder, "a.parquet", &status), 0);
        return builder;
}

/* What sample i lacks depends on `chance`. */
static void add_row(struct index_builder *builder, uint64_t i, uint64_t chance) {
        bool has_text = (i * chance) % 7 != 1, has_point = chance % 3 == 0 || (i * chance) % 11 < 9;
        struct index_row row = { .file = INDEX_NO_FILE,
                                 .offset = has_text ? 10 * i : INDEX_ROW_ABSENT,
                                 .length = has_text ? i % 10 : 0 };
        const int64_t list[4] = { (int64_t)i, 1, 2, 3 };
        const float point[2] = { (float)i, 0.5F };
        int16_t number = (int16_t)(3 * i);

        ck_assert_int_eq(index_builder_set_value(builder, 0, &number, sizeof(number)), 0);
        if (has_point)
                ck_assert_int_eq(index_builder_set_value(builder, 1, point, sizeof(point)), 0);
        if (i % 5 != chance % 5)
                ck_assert_int_eq(index_builder_set_value(builder, 2, list, i % 5 * sizeof(list[0])), 0);
        ck_assert_int_eq(index_builder_add_sample(builder, &row, (int32_t)(i % 2)), 0);
}

static void expect_equal_files(int one, int other) {
        off_t n = lseek(one, 0, SEEK_END);
        void *a, *b;

        ck_assert_int_eq(n, lseek(other, 0, SEEK_END));
        a = mmap(NULL, (size_t)n, PROT_READ, MAP_SHARED, one, 0);
        b = mmap(NULL, (size_t)n, PROT_READ, MAP_SHARED, other, 0);
        ck_assert(a != MAP_FAILED && b != MAP_FAILED);
        ck_assert_mem_eq(a, b, (size_t)n);
        munmap(a, (size_t)n);
        munmap(b, (size_t)n);
}

START_TEST(parts_that_are_appended_are_as_if_their_samples_had_been_added) {
        enum {
                N_ROWS = 40
        };

        for (uint64_t chance = 0; chance < 12; chance++) {
                for (uint64_t cut = 0; cut <= N_ROWS; cut++) {
                        struct index_builder *whole = begin_rows(), *parts[2] = { begin_rows(), begin_rows() };
                        _cleanup_(closep) int one = -1;
                        _cleanup_(closep) int other = -1;

                        for (uint64_t i = 0; i < N_ROWS; i++) {
                                add_row(whole, i, chance);
                                add_row(parts[i >= cut], i, chance);
                        }
                        ck_assert_int_eq(index_builder_append(parts[0], parts[1]), 0);
                        one = write_index(whole);
                        other = write_index(parts[0]);
                        expect_equal_files(one, other);
                        index_builder_free(whole);
                        index_builder_free(parts[0]);
                        index_builder_free(parts[1]);
                }
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "columns", values_of_every_shape_come_back_as_they_were_set, 0 },
                { "columns", a_field_may_lie_in_the_shard_that_is_merged_with_that_of_its_sample, 0 },
                { "columns", a_field_in_a_shard_that_is_not_there_or_too_short_is_refused, 0 },
                { "columns", a_listing_lies_in_its_shard_and_what_it_names_in_files, 0 },
                { "columns", another_value_is_another_dataset, 0 },
                { "columns", a_number_may_be_absent, 0 },
                { "columns", lists_of_texts_come_back_and_damaged_ones_are_refused, 0 },
                { "columns", a_damaged_column_is_refused_or_harmless, 0 },
                { "parts", parts_that_are_appended_are_as_if_their_samples_had_been_added },
        };

        return suite_run("index_columns", rows, ARRAY_SIZE(rows));
}
