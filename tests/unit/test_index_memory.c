/* What an index takes while it is built: it is paid for, a part of the limit at most, and given back; and building ends
 * within a record when it is told to. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/data/dataset.h"
#include "daemon/data/formats/tfrecord/crc32c.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/index/indexing_json.h"
#include "daemon/data/index/indexing_sort.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#define N_ROWS 400000u

static const struct {
        const char *format, *file, *row, *begin;
} KINDS[] = {
        { "csv", "a.csv", "1\n", "a\n" },
        { "jsonl", "a.jsonl", "{\"a\":1}\n", "" },
        { "text", "a.txt", "1\n", "" },
};

static struct tree tree;

struct onlooker {
        struct budget budget;
        uint64_t most;
};

static void look(void *userdata, uint64_t n_files) {
        struct onlooker *onlooker = userdata;
        uint64_t used = budget_used(&onlooker->budget);

        onlooker->most = used > onlooker->most ? used : onlooker->most;
}

static int open_kind(size_t kind, struct onlooker *onlooker, const atomic_bool *cancel, struct why *why) {
        const struct index_watch watch = { .progress = look, .userdata = onlooker, .cancel = cancel };
        char path[128];
        struct dataset_spec spec = { .name = "d",
                                     .follows_links = true,
                                     .path = path,
                                     .format = KINDS[kind].format,
                                     .budget = &onlooker->budget };
        struct dataset *dataset;
        int r;

        snprintf(path, sizeof(path), "%s/%s", tree.root, KINDS[kind].file);
        tree_age(&tree, ".");
        r = dataset_open(&spec, "/proc/nowhere", &watch, &dataset, NULL, why);
        if (r == 0)
                dataset_unref(dataset);
        return r;
}

static void write_rows(size_t kind, size_t n) {
        size_t n_row = strlen(KINDS[kind].row), n_begin = strlen(KINDS[kind].begin);
        _cleanup_(freep) char *text = malloc(n_begin + n * n_row + 1);

        strcpy(text, KINDS[kind].begin);
        for (size_t i = 0; i <= n; i++)
                strcpy(text + n_begin + i * n_row, i < n ? KINDS[kind].row : "");
        tree_file(&tree, KINDS[kind].file, text);
}

START_TEST(an_index_takes_at_most_a_part_of_what_is_left_and_gives_it_back) {
        struct onlooker large = { .budget = { .limit_bytes = 1ull << 30 } };
        struct onlooker small = { .budget = { .limit_bytes = 8ull << 20 } };
        struct why why = { 0 };

        tree_make(&tree);
        write_rows((size_t)_i, N_ROWS);
        if (open_kind((size_t)_i, &large, NULL, &why) < 0)
                ck_abort_msg("%s", why.text);
        ck_assert_uint_gt(large.most, N_ROWS * 8); /* it is counted */
        ck_assert_uint_lt(large.most, N_ROWS * 160);
        ck_assert_uint_eq(budget_used(&large.budget), 0);

        ck_assert_int_eq(open_kind((size_t)_i, &small, NULL, &why), -ENOMEM);
        ck_assert_msg(strstr(why.text, "memory_limit: making the index needs more than") != NULL, "%s", why.text);
        ck_assert_uint_le(small.most, small.budget.limit_bytes / 4 * 3);
        ck_assert_uint_eq(budget_used(&small.budget), 0);
        tree_remove(&tree);
}
END_TEST

START_TEST(building_ends_within_a_record) {
        struct onlooker onlooker = { .budget = { .limit_bytes = 1ull << 30 } };
        _cleanup_(freep) char *text = malloc((8u << 20) + 1);
        atomic_bool cancel = true;
        struct why why = { 0 };

        tree_make(&tree);
        memset(text, '1', 8u << 20); /* one record */
        text[8u << 20] = '\0';
        tree_file(&tree, KINDS[_i].file, text);
        ck_assert_int_eq(open_kind((size_t)_i, &onlooker, &cancel, &why), -ECANCELED);
        tree_remove(&tree);
}
END_TEST

/* ---- what has to be in memory as a whole ----------------------------------------------------------------------- */

#define WHOLE_BYTES (24u << 20)
#define NAME_BYTES  (7u << 20) /* fits once, and not with a copy beside it */

/* Files with a piece of `n` bytes (0: WHOLE_BYTES) between `begin` and `end`, in which `filling` comes again and again.
 * The message says `with`. */
static const struct {
        const char *format, *path, *options;
        const char *file, *begin, *end;
        const char *filling, *with;
        size_t n;
} WHOLE[] = {
        { "text", "a.txt", NULL, "a.txt", "one\n", "\n", "x" },
        { "csv", "a.csv", NULL, "a.csv", "a\n\"", "\"\n", "x" },
        { "jsonl", "a.jsonl", NULL, "a.jsonl", "{\"a\":\"", "\"}\n", "x" },
        { "csv", "b.csv", "join=more.csv", "more.csv", "a,c\n1,\"", "\"\n", "x" },
        { "coco", "coco", "annotations=big.json", "coco/big.json", "{\"info\":\"", "\",\"images\":[]}", "x" },
        { "coco", "coco", "annotations=big.json", "coco/big.json", "{\"images\":[{\"id\":1,\"file_name\":\"", "\"}]}",
          "x", NULL, NAME_BYTES },
        { "coco", "coco", "annotations=big.json", "coco/big.json", "{\"images\":[],\"categories\":[{\"name\":\"",
          "\",\"id\":1}]}", "x", NULL, NAME_BYTES },
        { "csv", "a.csv", "files=a", "a.csv", "a\n", "\n", "x", NULL, NAME_BYTES },
        { "jsonl", "a.jsonl", "files=a", "a.jsonl", "{\"a\":\"", "\"}\n", "x", NULL, NAME_BYTES },
        { "mds", "items", NULL, "items/index.json", "{\"shards\":[", "],\"version\":2}", " " },
        { "litdata", "items", NULL, "items/index.json", "{\"chunks\":[", "]}", " " },
        { "tfrecord", "a.tfrecord", NULL, NULL, NULL, NULL, "x" },
        { "arrow", "saved", NULL, "saved/state.json", "{\"_data_files\":[", "]}", " " },
        { "arrow", "saved", NULL, "saved/state.json", "{\"_data_files\":[", "0]}", "0,", " with state.json,", 1 << 20 },
        { "arrow", "saved", NULL, "saved/dataset_dict.json", "[", "{}]", "{},", " with dataset_dict.json,", 1 << 20 },
};

/* One record of 16 bytes more than WHOLE_BYTES, as TFRecordWriter writes it. */
static void write_record(void) {
        size_t n = WHOLE_BYTES + 16;
        _cleanup_(freep) uint8_t *bytes = calloc(n + 16, 1);
        _cleanup_(closep) int fd = openat(tree.fd, "a.tfrecord", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        uint32_t sum;

        memcpy(bytes, &n, 8);
        sum = crc32c_masked(crc32c(bytes, 8));
        memcpy(bytes + 8, &sum, sizeof(sum));
        sum = crc32c_masked(crc32c(bytes + 12, n));
        memcpy(bytes + 12 + n, &sum, sizeof(sum));
        ck_assert(fd >= 0 && disk_write_at(fd, bytes, n + 16, 0) == 0);
}

START_TEST(what_has_to_be_in_memory_as_a_whole_is_paid_for) {
        struct onlooker onlooker = { .budget = { .limit_bytes = 16u << 20 } };
        char path[128];
        struct dataset_spec spec = { .name = "d",
                                     .follows_links = true,
                                     .format = WHOLE[_i].format,
                                     .path = path,
                                     .options = WHOLE[_i].options,
                                     .budget = &onlooker.budget };
        struct dataset *dataset = NULL;
        struct why why = { 0 };

        tree_make(&tree);
        tree_file(&tree, "b.csv", "a,b\n1,2\n");
        tree_file(&tree, "coco/1.jpg", "1");
        if (WHOLE[_i].file) {
                size_t n_begin = strlen(WHOLE[_i].begin), n_filling = strlen(WHOLE[_i].filling);
                size_t n = (WHOLE[_i].n > 0 ? WHOLE[_i].n : WHOLE_BYTES) / n_filling * n_filling;
                _cleanup_(freep) char *text = malloc(n_begin + n + strlen(WHOLE[_i].end) + 1);

                strcpy(text, WHOLE[_i].begin);
                for (size_t i = 0; i < n; i++)
                        text[n_begin + i] = WHOLE[_i].filling[i % n_filling];
                strcpy(text + n_begin + n, WHOLE[_i].end);
                tree_file(&tree, WHOLE[_i].file, text);
        } else {
                write_record();
        }
        tree_age(&tree, ".");
        snprintf(path, sizeof(path), "%s/%s", tree.root, WHOLE[_i].path);
        ck_assert_int_eq(dataset_open(&spec, "/proc/nowhere", NULL, &dataset, NULL, &why), -ENOMEM);
        ck_assert_msg(strstr(why.text, "memory_limit: making the index") && strstr(why.text, " needs more than ") &&
                              strstr(why.text, WHOLE[_i].with ? WHOLE[_i].with : ""),
                      "%s", why.text);
        ck_assert_uint_eq(budget_used(&onlooker.budget), 0);
        tree_remove(&tree);
}
END_TEST

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

START_TEST(a_tree_of_json_is_paid_for_until_it_is_freed_and_ends_wherever_it_is_told) {
        struct onlooker onlooker = { .budget = { .limit_bytes = 1u << 30 } };
        struct indexing indexing = { .budget = &onlooker.budget, .is_refusing = ATOMIC_FLAG_INIT };
        struct indexing_json json = { 0 };
        char text[20000] = "[";
        int r = -ECANCELED;

        for (size_t i = 1; i + 1 < sizeof(text); i++)
                text[i] = i % 2 ? '1' : ',';
        text[sizeof(text) - 2] = ']';
        indexing_join(&indexing);
        for (INDEXING_LIMITS.n_looks = 1; r < 0; INDEXING_LIMITS.n_looks++) {
                indexing.n_looks = 0;
                r = indexing_json_read(&json, "text", text, strlen(text));
                ck_assert(r == -ECANCELED ? budget_used(&onlooker.budget) == 0 : r == 0);
        }
        ck_assert_uint_gt(INDEXING_LIMITS.n_looks, 10);
        INDEXING_LIMITS.n_looks = 0;
        ck_assert_int_eq(cJSON_GetArraySize(json.root), 9999);
        ck_assert_uint_gt(budget_used(&onlooker.budget), 9999 * sizeof(cJSON));
        indexing_json_fini(&json);
        ck_assert_uint_eq(budget_used(&onlooker.budget), 0);

        ck_assert_int_eq(indexing_json_read(&json, "text", text, 3), 0);
        ck_assert_ptr_null(json.root);
        indexing_json_fini(&json);
        ck_assert_uint_eq(budget_used(&onlooker.budget), 0);
        indexing_join(NULL);
}
END_TEST

/* ---- sorting --------------------------------------------------------------------------------------------------- */

#define N_SORTED 50001u

struct sorted {
        uint32_t key, place;
};

static int by_key(const void *one, const void *other, void *unused) {
        uint32_t a = ((const struct sorted *)one)->key, b = ((const struct sorted *)other)->key;

        return (a > b) - (a < b);
}

/* How many of the places from 0 on are there once. */
static size_t count_places(const struct sorted *items) {
        _cleanup_(freep) uint8_t *seen = calloc(N_SORTED, 1);
        size_t n = 0;

        for (size_t i = 0; i < N_SORTED; i++)
                if (items[i].place < N_SORTED && !seen[items[i].place]++)
                        n++;
        return n;
}

START_TEST(sorting_ends_wherever_it_is_told_and_loses_nothing) {
        struct onlooker onlooker = { .budget = { .limit_bytes = 1u << 30 } };
        struct indexing indexing = { .budget = &onlooker.budget, .is_refusing = ATOMIC_FLAG_INIT };
        _cleanup_(freep) struct sorted *items = calloc(N_SORTED, sizeof(*items));
        int r = -ECANCELED;

        indexing_join(&indexing);
        for (INDEXING_LIMITS.n_looks = 1; r < 0; INDEXING_LIMITS.n_looks++) {
                for (uint32_t i = 0; i < N_SORTED; i++)
                        items[i] = (struct sorted){ i * 2654435761u >> 20, i };
                indexing.n_looks = 0;
                r = indexing_sort(items, N_SORTED, sizeof(*items), by_key, NULL);
                ck_assert(r == 0 || r == -ECANCELED);
                ck_assert_uint_eq(count_places(items), N_SORTED);
        }
        ck_assert_uint_gt(INDEXING_LIMITS.n_looks, 20);
        for (uint32_t i = 1; i < N_SORTED; i++)
                ck_assert(items[i - 1].key < items[i].key ||
                          (items[i - 1].key == items[i].key && items[i - 1].place < items[i].place));
        ck_assert_uint_eq(budget_used(&onlooker.budget), 0);

        INDEXING_LIMITS.n_looks = 0;
        onlooker.budget.limit_bytes = 1000; /* for runs that are merged */
        for (uint32_t i = 0; i < N_SORTED; i++)
                items[i] = (struct sorted){ i * 2654435761u >> 20, i };
        ck_assert_int_eq(indexing_sort(items, N_SORTED, sizeof(*items), by_key, NULL), -ENOMEM);
        ck_assert_uint_eq(count_places(items), N_SORTED);
        indexing_join(NULL);
}
END_TEST

/* ---- every format ends when told ------------------------------------------------------------------------------- */

static const struct {
        const char *format, *path; /* from here, or in the tree */
        const char *options;
} MADE[] = {
        { "arrow", "tests/vectors/arrow/lists-zstd.arrow", NULL },
        { "coco", "coco", "annotations=coco.json" },
        { "csv", "a.csv", NULL },
        { "folder", "folder", "pattern={class}/{name}.jpg" },
        { "imagefolder", "folder", NULL },
        { "jsonl", "a.jsonl", NULL },
        { "litdata", "tests/vectors/litdata/records", NULL },
        { "mds", "tests/vectors/mds/all", NULL },
        { "megatron", "tests/vectors/megatron/small", NULL },
        { "npy", "a.npy", NULL },
        { "parquet", "tests/vectors/parquet/lists-gzip.parquet", NULL },
        { "text", "a.txt", NULL },
        { "tfrecord", "tests/vectors/tfrecord/photos", NULL },
        { "webdataset", "a.tar", NULL },
};

static void write_bytes(const char *name, const void *bytes, size_t n_bytes) {
        _cleanup_(closep) int fd = openat(tree.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        ck_assert(fd >= 0 && disk_write_at(fd, bytes, n_bytes, 0) == 0);
}

/* An archive with one member of one byte. */
static void write_tar(const char *name) {
        uint8_t blocks[4 * 512] = "1.txt";
        unsigned sum = 0;

        memcpy(blocks + 124, "00000000001", 12);
        memset(blocks + 148, ' ', 8);
        blocks[156] = '0';
        memcpy(blocks + 257, "ustar\00000", 8);
        blocks[512] = 'x';
        for (size_t i = 0; i < 512; i++)
                sum += blocks[i];
        snprintf((char *)blocks + 148, 8, "%06o", sum);
        write_bytes(name, blocks, sizeof(blocks));
}

/* Three numbers of one byte. */
static void write_npy(const char *name) {
        char text[128 + 3];

        memcpy(text, "\x93NUMPY\x01\0\x76", 10);
        snprintf(text + 10, sizeof(text) - 10, "%-117s\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }");
        memcpy(text + 128, "abc", 3);
        write_bytes(name, text, sizeof(text));
}

static void fill_tree(void) {
        tree_make(&tree);
        write_tar("a.tar");
        write_npy("a.npy");
        tree_file(&tree, "a.csv", "a,b\n1,2\n");
        tree_file(&tree, "a.jsonl", "{\"a\":1}\n");
        tree_file(&tree, "a.txt", "one\n");
        tree_file(&tree, "folder/x/1.jpg", "1");
        tree_file(&tree, "folder/y/2.jpg", "2");
        tree_file(&tree, "coco/1.jpg", "1");
        tree_file(&tree, "coco/coco.json",
                  "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}],\"annotations\":[{\"image_id\":1,"
                  "\"category_id\":1,\"bbox\":[0,0,1,1],\"segmentation\":[[0,0,1,0,1,1]]}],"
                  "\"categories\":[{\"id\":1}]}");
}

START_TEST(every_format_ends_wherever_it_is_told) {
        struct onlooker onlooker = { .budget = { .limit_bytes = 1ull << 30 } };
        char here[256], path[512];
        struct dataset_spec spec = { .name = "d",
                                     .follows_links = true,
                                     .format = MADE[_i].format,
                                     .path = path,
                                     .options = MADE[_i].options,
                                     .budget = &onlooker.budget };
        struct dataset *dataset = NULL;
        struct why why = { 0 };
        int r = -ECANCELED;

        fill_tree();
        tree_age(&tree, ".");
        ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
        snprintf(path, sizeof(path), "%s/%s", strchr(MADE[_i].path, '/') ? here : tree.root, MADE[_i].path);
        for (INDEXING_LIMITS.n_looks = 1; r < 0; INDEXING_LIMITS.n_looks++) {
                r = dataset_open(&spec, "/proc/nowhere", NULL, &dataset, NULL, &why);
                if (r < 0) {
                        ck_assert_msg(r == -ECANCELED && strstr(why.text, ": indexing was cancelled"), "%s: %d, %s",
                                      MADE[_i].format, r, why.text);
                        ck_assert_uint_eq(budget_used(&onlooker.budget), 0);
                }
        }
        ck_assert_uint_gt(INDEXING_LIMITS.n_looks, 2); /* it was told once at least */
        INDEXING_LIMITS.n_looks = 0;
        dataset_unref(dataset);
        ck_assert_uint_eq(budget_used(&onlooker.budget), 0);
        tree_remove(&tree);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "memory", an_index_takes_at_most_a_part_of_what_is_left_and_gives_it_back, ARRAY_SIZE(KINDS) },
                { "memory", what_has_to_be_in_memory_as_a_whole_is_paid_for, ARRAY_SIZE(WHOLE) },
                { "json", a_tree_of_json_is_paid_for_until_it_is_freed_and_ends_wherever_it_is_told, 0 },
                { "sorting", sorting_ends_wherever_it_is_told_and_loses_nothing, 0 },
                { "formats", every_format_ends_wherever_it_is_told, ARRAY_SIZE(MADE) },
                { "cancel", building_ends_within_a_record, ARRAY_SIZE(KINDS) },
        };

        return suite_run("index_memory", rows, ARRAY_SIZE(rows));
}
