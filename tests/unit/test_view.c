/* Some samples and fields of a source: data/view/view.h, data/view/split.h. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/index/index_builder.h"
#include "daemon/data/view/split.h"
#include "daemon/data/view/view.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

static const struct split_root ROOT = { AT_FDCWD, "." };

/* N samples with the names d/0, d/1, ...: an even one has jpg, an odd one png; all have txt and, but the first, width.
 */
static struct source *make(uint64_t n) {
        struct schema_field width = {
                .name = "width", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64, .may_be_absent = true
        };
        struct stat status = { .st_size = 1 << 20 };
        struct index_builder *builder;
        struct source *source;
        uint32_t idx, root, dir;
        struct why why;
        int fd;

        ck_assert_int_eq(index_builder_new("webdataset", 3, &builder), 0);
        index_builder_set_field(builder, 0, "jpg", FIELD_PICTURE, true);
        index_builder_set_field(builder, 1, "png", FIELD_PICTURE, true);
        index_builder_set_field(builder, 2, "txt", FIELD_BYTES, false);
        ck_assert_int_eq(index_builder_add_column(builder, &width, &idx), 0);
        ck_assert_int_eq(index_builder_add_dir(builder, "", &status, &root), 0);
        ck_assert_int_eq(index_builder_add_dir(builder, "d", NULL, &dir), 0);
        ck_assert_int_eq(index_builder_add_shard(builder, "a.tar", &status), 0);
        for (uint64_t i = 0; i < n; i++) {
                struct index_row rows[3] = { { .offset = i % 2 ? INDEX_ROW_ABSENT : 100 * i, .length = i % 2 ? 0 : 40 },
                                             { .offset = i % 2 ? 100 * i : INDEX_ROW_ABSENT, .length = i % 2 ? 30 : 0 },
                                             { .offset = 100 * i + 50, .length = i } };
                int64_t value = (int64_t)(1000 + i);
                char name[32];

                snprintf(name, sizeof(name), "%llu", (unsigned long long)i);
                ck_assert_int_eq(index_builder_add_file(builder, dir, name, 0, &rows[0].file), 0);
                rows[1].file = rows[2].file = rows[0].file;
                if (i > 0)
                        ck_assert_int_eq(index_builder_set_value(builder, idx, &value, sizeof(value)), 0);
                ck_assert_int_eq(index_builder_add_sample(builder, rows, 0), 0);
        }
        fd = memfd_create("index", MFD_CLOEXEC);
        ck_assert_int_eq(index_builder_write(builder, fd, "made", &why), 0);
        index_builder_free(builder);
        ck_assert_msg(index_open_fd(fd, "made", NULL, &source, &why) == 0, "%s", why.text);
        close(fd);
        return source;
}

START_TEST(fields_are_chosen_renamed_and_merged) {
        struct source *source = make(10);
        char name[SOURCE_NAME_SIZE];
        struct extent extent;
        int64_t width = 0;
        struct why why;

        ck_assert_msg(view_open(&source, " image = gif | jpg | bmp | png , caption=txt, width,id=__key__", NULL, &ROOT,
                                &why) == 0,
                      "%s", why.text);
        ck_assert_uint_eq(source->schema.n_fields, 4);
        ck_assert_str_eq(source->schema.fields[0].name, "image");
        ck_assert_str_eq(source->schema.fields[3].name, "id");
        ck_assert(source->schema.fields[3].kind == FIELD_NAME);
        ck_assert(!source->schema.fields[0].may_be_absent && source->schema.fields[2].may_be_absent);
        source_locate(source, 4, 0, &extent);
        ck_assert(extent.offset == 400 && extent.length == 40);
        source_locate(source, 5, 0, &extent);
        ck_assert(extent.offset == 500 && extent.length == 30);
        source_value(source, 5, 2, &width);
        ck_assert_int_eq(width, 1005);
        ck_assert(!source_has(source, 0, 2) && source_has(source, 5, 2));
        source_name(source, 7, name);
        ck_assert_str_eq(name, "d/7");
        ck_assert_uint_eq(source->max_length, 40);
        ck_assert_uint_eq(source->max_span, 59); /* sample 9: from its png at 900 to the end of its txt at 959 */
        source_close(source);
}
END_TEST

/* Fields that are left out do not make a sample longer. */
START_TEST(what_is_left_out_takes_no_memory) {
        struct source *source = make(10);
        struct why why;

        ck_assert_int_eq(view_open(&source, "txt", NULL, &ROOT, &why), 0);
        ck_assert_uint_eq(source->max_length, 9);
        ck_assert_uint_eq(source->max_span, 9);
        ck_assert_uint_eq(source->total_bytes, 45);
        source_close(source);
}
END_TEST

START_TEST(a_range_is_numbers_or_shares) {
        static const struct {
                const char *text;
                uint64_t first, n;
        } rows[] = {
                { "0:90%", 0, 90 }, { "90%:", 90, 11 },      { "90%:100%", 90, 11 }, { ":7", 0, 7 },
                { "7:", 7, 94 },    { "12.5%:50%", 12, 38 }, { "100:101", 100, 1 },  { "0:100%", 0, 101 },
        };
        struct source *source = make(101);
        struct split split;
        struct why why;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                ck_assert_msg(split_make(source, rows[i].text, &ROOT, &split, &why) == 0, "%s", why.text);
                ck_assert_uint_eq(split.n_samples, rows[i].n);
                ck_assert_uint_eq(split_sample(&split, 0), rows[i].first);
                split_fini(&split);
        }
        source_close(source);
}
END_TEST

/* Both ends of a share are rounded alike, so parts that meet neither overlap nor leave a sample out. */
START_TEST(parts_of_a_dataset_make_the_whole) {
        for (uint64_t n = 1; n < 60; n++) {
                struct source *source = make(n);

                for (unsigned percent = 1; percent < 100; percent += 7) {
                        static const char *const before[] = { "", ":", "hash(0:", "hash(" };
                        static const char *const after[] = { "%:", "%", "%)", "%:)" };
                        uint64_t sum = 0;
                        bool seen[64];

                        for (int half = 0; half < 2; half++) {
                                memset(seen, 0, sizeof(seen));
                                sum = 0;
                                for (int i = 2 * half; i < 2 * half + 2; i++) {
                                        struct split split = { 0 };
                                        char text[32];

                                        snprintf(text, sizeof(text), "%s%u%s", before[i], percent, after[i]);
                                        if (split_make(source, text, &ROOT, &split, NULL) < 0)
                                                continue; /* empty */
                                        for (uint64_t k = 0; k < split.n_samples; k++) {
                                                ck_assert(!seen[split_sample(&split, k)]);
                                                seen[split_sample(&split, k)] = true;
                                        }
                                        sum += split.n_samples;
                                        split_fini(&split);
                                }
                                ck_assert_uint_eq(sum, n);
                        }
                }
                source_close(source);
        }
}
END_TEST

/* Compared with Python: int.from_bytes(hashlib.sha256(b"d/3").digest()[:8], "big") / 2**64 */
START_TEST(a_hash_keeps_a_sample_in_its_part_when_others_come) {
        struct source *few = make(20), *many = make(60);
        struct split one, other;
        bool is_in[60] = { false };
        struct why why;

        ck_assert_int_eq(split_make(few, "hash(0:40%; seed=7)", &ROOT, &one, &why), 0);
        ck_assert_int_eq(split_make(many, "hash(0:40%; seed=7)", &ROOT, &other, &why), 0);
        ck_assert_uint_lt(other.n_samples, 60);
        for (uint64_t i = 0; i < other.n_samples; i++)
                is_in[split_sample(&other, i)] = true;
        for (uint64_t i = 0, k = 0; i < 20; i++) {
                bool is_one = k < one.n_samples && split_sample(&one, k) == i;

                ck_assert(is_one == is_in[i]);
                k += is_one;
        }
        split_fini(&one);
        split_fini(&other);
        source_close(few);
        source_close(many);
}
END_TEST

/* torch.utils.data.random_split(range(10), [0.7, 0.3], torch.Generator().manual_seed(0)) and with seed 42 [3, 7] */
START_TEST(random_split_is_that_of_torch) {
        static const uint64_t first[] = { 4, 1, 7, 5, 3, 9, 0 }, second[] = { 8, 6, 2 }, lengths[] = { 2, 6, 1 };
        struct source *source = make(10);
        struct split split;
        struct why why;

        ck_assert_msg(split_make(source, "random_split(0.7,0.3; seed=0)[0]", &ROOT, &split, &why) == 0, "%s", why.text);
        ck_assert_uint_eq(split.n_samples, 7);
        for (uint64_t i = 0; i < 7; i++)
                ck_assert_uint_eq(split_sample(&split, i), first[i]);
        split_fini(&split);
        ck_assert_int_eq(split_make(source, "random_split(0.7, 0.3; seed=0)[1]", &ROOT, &split, &why), 0);
        ck_assert_uint_eq(split.n_samples, 3);
        for (uint64_t i = 0; i < 3; i++)
                ck_assert_uint_eq(split_sample(&split, i), second[i]);
        split_fini(&split);
        ck_assert_int_eq(split_make(source, "random_split(3,7; seed=42)[0]", &ROOT, &split, &why), 0);
        ck_assert_uint_eq(split.n_samples, 3);
        for (uint64_t i = 0; i < 3; i++)
                ck_assert_uint_eq(split_sample(&split, i), lengths[i]);
        split_fini(&split);
        source_close(source);
}
END_TEST

START_TEST(a_list_names_samples_in_its_order) {
        char path[] = "/tmp/dataloaderd-view-XXXXXX", text[64];
        struct source *source = make(10);
        int fd = mkstemp(path);
        struct split split;
        struct why why;

        ck_assert_int_eq(write(fd, "d/7\nd/0\r\n\nd/3", 13), 13);
        snprintf(text, sizeof(text), "list(%s)", path);
        ck_assert_msg(split_make(source, text, &ROOT, &split, &why) == 0, "%s", why.text);
        ck_assert_uint_eq(split.n_samples, 3);
        ck_assert(split_sample(&split, 0) == 7 && split_sample(&split, 1) == 0 && split_sample(&split, 2) == 3);
        split_fini(&split);
        ck_assert_int_eq(write(fd, "x\n", 2), 2); /* d/3x */
        ck_assert_int_eq(split_make(source, text, &ROOT, &split, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "\"d/3x\", but no sample has this name"));
        ck_assert_int_eq(write(fd, "d/0\n", 4), 4);
        ck_assert_int_eq(split_make(source, text, &ROOT, &split, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "\"d/0\" twice"));
        close(fd);
        unlink(path);
        source_close(source);
}
END_TEST

START_TEST(what_is_wrong_is_said) {
        static const struct {
                const char *fields, *split, *said;
        } rows[] = {
                { "image=jpg|txt", NULL, "jpg and txt differ in kind" },
                { "image=gif", NULL, "no field \"gif\"; its fields are jpg, png, txt, width, __key__" },
                { "image=gif|bmp", NULL, "no field \"gif\"; its fields are jpg, png, txt, width, __key__" },
                { "image=jpg|", NULL, "no field \"\"" },
                { "image=gif|jpg|txt", NULL, "jpg and txt differ in kind" },
                { "a=jpg, a=png", NULL, "two fields have the name \"a\"" },
                { "", NULL, "is not understood" },
                { "a=", NULL, "no field \"\"" },
                { "jpg,", NULL, "is not understood" },
                { NULL, "0:11", "there are fewer" },
                { NULL, "5:5", "it is empty" },
                { NULL, "0:101%", "is not understood" },
                { NULL, "1", "is not understood; write a range such as" },
                { NULL, "train[0:1]", "is not understood; write a range such as" },
                { NULL, "-1:", "is not understood" },
                { NULL, "1:2:3", "is not understood" },
                { NULL, "hash(0.1:0.2)", "is not understood" },
                { NULL, "hash(50%:20%)", "is not understood" },
                { NULL, "list(relative)", "is not understood" },
                { NULL, "list(/nowhere/at/all)", "/nowhere/at/all" },
                { NULL, "random_split(0.5,0.4; seed=0)[0]", "neither shares with the sum 1" },
                { NULL, "random_split(5,4; seed=0)[0]", "lengths with the sum 10" },
                { NULL, "random_split(0.5,0.5)[0]", "is not understood" },
                { NULL, "random_split(0.5,0.5; seed=0)[2]", "is not understood" },
                { NULL, "random_split(0.5,0.5; seed=0)", "is not understood" },
        };
        struct source *source = make(10), *before = source;
        struct why why;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                ck_assert_msg(view_open(&source, rows[i].fields, rows[i].split, &ROOT, &why) < 0, "row %zu", i);
                ck_assert_msg(strstr(why.text, rows[i].said) != NULL, "row %zu: %s", i, why.text);
                ck_assert(source == before);
        }
        source_close(source);
}
END_TEST

START_TEST(each_view_is_a_dataset_of_its_own) {
        struct source *sources[] = { make(10), make(10), make(10), make(10) };
        struct why why;

        ck_assert_int_eq(view_open(&sources[1], "txt", NULL, &ROOT, &why), 0);
        ck_assert_int_eq(view_open(&sources[2], NULL, "0:50%", &ROOT, &why), 0);
        ck_assert_int_eq(view_open(&sources[3], NULL, "50%:", &ROOT, &why), 0);
        for (int i = 0; i < 4; i++)
                for (int k = 0; k < i; k++)
                        ck_assert_str_ne(sources[i]->digest, sources[k]->digest);
        for (int i = 0; i < 4; i++)
                source_close(sources[i]);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "fields", fields_are_chosen_renamed_and_merged, 0 },
                { "fields", what_is_left_out_takes_no_memory, 0 },
                { "split", a_range_is_numbers_or_shares, 0 },
                { "split", parts_of_a_dataset_make_the_whole, 0 },
                { "split", a_hash_keeps_a_sample_in_its_part_when_others_come, 0 },
                { "split", random_split_is_that_of_torch, 0 },
                { "split", a_list_names_samples_in_its_order, 0 },
                { "views", what_is_wrong_is_said, 0 },
                { "views", each_view_is_a_dataset_of_its_own, 0 },
        };

        return suite_run("view", rows, ARRAY_SIZE(rows));
}
