/* Shards: what was packed comes out under the same names, in the same order, with the same digest; what is not a shard,
 * or not of this dataset, is refused with its name, and hostile bytes do no harm. */

#include "daemon/data/formats/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/data/dataset.h"
#include "daemon/data/formats/shard_layout.h"
#include "proto/base/cleanup.h"
#include "tests/support/shards.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/support/vectors.h"

static const char *const CLASSES[] = { "cat", "dog" };
static const struct {
        const char *path, *text;
        int32_t label;
} SAMPLES[] = {
        { "cat/1.jpg", "1", 0 },        { "cat/2.jpg", "22", 0 },   { "cat/empty.jpg", "", 0 },
        { "cat/more/3.jpg", "333", 0 }, { "dog/4.png", "4444", 1 }, { "dog/5.png", "55555", 1 },
};
#define N_SAMPLES ARRAY_SIZE(SAMPLES)

static void write_shard_of(const struct tree *tree, const char *path, const char *const *classes, uint32_t n_classes,
                           size_t first, size_t end) {
        _cleanup_(closep) int fd = openat(tree->fd, path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        struct shard_writer *writer;
        struct why why = { 0 };

        ck_assert_msg(shard_writer_new(fd, classes, n_classes, &writer, &why) == 0, "%s", why.text);
        for (size_t i = first; i < end; i++)
                ck_assert_msg(shard_writer_add(writer, SAMPLES[i].path, SAMPLES[i].label, SAMPLES[i].text,
                                               strlen(SAMPLES[i].text), &why) == 0,
                              "%s", why.text);
        ck_assert_msg(shard_writer_finish(writer, &why) == 0, "%s", why.text);
        shard_writer_free(writer);
}

static void write_shard(const struct tree *tree, uint64_t idx, size_t first, size_t end) {
        char name[32], path[64];

        shard_name(idx, name);
        snprintf(path, sizeof(path), "packed/%s", name);
        write_shard_of(tree, path, CLASSES, ARRAY_SIZE(CLASSES), first, end);
}

/* Folder "plain" and, in three shards of which one is empty, "packed"; beside them "index". */
static void make_both(struct tree *tree) {
        char path[64];

        tree_make(tree);
        for (size_t i = 0; i < N_SAMPLES; i++) {
                snprintf(path, sizeof(path), "plain/%s", SAMPLES[i].path);
                tree_file(tree, path, SAMPLES[i].text);
        }
        tree_dir(tree, "packed");
        tree_dir(tree, "index");
        write_shard(tree, 0, 0, 2);
        write_shard(tree, 1, 2, 2);
        write_shard(tree, 2, 2, N_SAMPLES);
        tree_file(tree, "packed/README", "not a shard");
}

static int open_as(const struct tree *tree, const char *name, const char *format, struct dataset **ret_dataset,
                   struct dataset_report *ret_report, struct why *why) {
        char path[PATH_MAX], index_dir[PATH_MAX];
        struct dataset_spec spec = { .name = name, .path = path, .format = format };

        snprintf(path, sizeof(path), "%s/%s", tree->root, name);
        snprintf(index_dir, sizeof(index_dir), "%s/index", tree->root);
        return dataset_open(&spec, index_dir, NULL, ret_dataset, ret_report, why);
}

static struct dataset *open_good(const struct tree *tree, const char *name, const char *format) {
        struct dataset *dataset = NULL;
        struct why why = { 0 };

        ck_assert_msg(open_as(tree, name, format, &dataset, NULL, &why) == 0, "%s", why.text);
        return dataset;
}

/* Expects it to be refused with these words. */
static void expect_refused(const struct tree *tree, int error, const char *one, const char *two) {
        struct dataset *dataset = NULL;
        struct why why = { 0 };
        int r = open_as(tree, "packed", "packed", &dataset, NULL, &why);

        ck_assert_msg(r == error, "%d: %s", r, why.text);
        ck_assert_msg(strstr(why.text, one) && strstr(why.text, two), "%s", why.text);
        ck_assert_ptr_null(dataset);
}

static uint8_t *shard_bytes(const struct tree *tree, uint64_t idx, size_t *ret_n_bytes) {
        char name[32], path[PATH_MAX];

        shard_name(idx, name);
        snprintf(path, sizeof(path), "%s/packed/%s", tree->root, name);
        return read_whole_file(path, ret_n_bytes);
}

/* ---- what was packed ----------------------------------------------------------------------------------------- */

START_TEST(a_packed_folder_has_the_same_samples_and_the_same_digest) {
        _cleanup_(dataset_unrefp) struct dataset *plain = NULL, *packed = NULL;
        const struct source *a, *b;
        struct tree tree;

        make_both(&tree);
        plain = open_good(&tree, "plain", "imagefolder");
        packed = open_good(&tree, "packed", "packed");
        a = dataset_source(plain);
        b = dataset_source(packed);
        ck_assert_str_eq(a->digest, b->digest);
        ck_assert_str_eq(b->format, "packed");
        ck_assert_uint_eq(a->n_shards, 0);
        ck_assert_uint_eq(b->n_shards, 3);
        ck_assert_uint_eq(b->n_samples, N_SAMPLES);
        ck_assert_uint_eq(b->n_classes, 2);
        ck_assert_uint_eq(b->total_bytes, a->total_bytes);
        for (uint64_t i = 0; i < N_SAMPLES; i++) {
                struct extent place;
                char path[INDEX_PATH_SIZE], bytes[16] = "";
                int fd;

                source_name(b, i, path);
                ck_assert_str_eq(path, SAMPLES[i].path);
                ck_assert_int_eq(index_label(b, i), SAMPLES[i].label);
                source_locate(b, i, 0, &place);
                ck_assert_str_eq(place.shard, i < 2 ? "shard-000000.shard" : "shard-000002.shard");
                ck_assert_uint_eq(place.idx_shard, i < 2 ? 0 : 2);
                ck_assert_uint_eq(place.offset % SHARD_ALIGN, 0);
                ck_assert_uint_eq(place.length, strlen(SAMPLES[i].text));
                fd = openat(dataset_root_fd(packed), place.shard, O_RDONLY);
                ck_assert_int_eq(pread(fd, bytes, place.length, (off_t)place.offset), place.length);
                ck_assert_str_eq(bytes, SAMPLES[i].text);
                close(fd);
                source_locate(a, i, 0, &place);
                ck_assert_ptr_null(place.shard);
        }
        tree_remove(&tree);
}
END_TEST

START_TEST(the_same_samples_give_the_same_bytes) {
        size_t n_one, n_two;
        struct tree one, two;
        uint8_t *a, *b;

        make_both(&one);
        make_both(&two);
        a = shard_bytes(&one, 2, &n_one);
        b = shard_bytes(&two, 2, &n_two);
        ck_assert_uint_eq(n_one, n_two);
        ck_assert_uint_eq(n_one % SHARD_ALIGN, 0);
        ck_assert_mem_eq(a, b, n_one);
        free(a);
        free(b);
        tree_remove(&one);
        tree_remove(&two);
}
END_TEST

START_TEST(what_cannot_be_a_sample_is_not_packed) {
        static const char *const PATHS[] = { "", "/etc/passwd", "../x.jpg", "cat/../../x", "cat//x", "cat/", "." };
        _cleanup_(closep) int fd = memfd_create("shard", MFD_CLOEXEC);
        struct shard_writer *writer;
        struct why why;

        ck_assert_int_eq(shard_writer_new(fd, (const char *const[]){ "cat", "a/b" }, 2, &writer, &why), -EINVAL);
        ck_assert_str_eq(why.text, "\"a/b\" cannot be the name of a class");
        ck_assert_int_eq(shard_writer_new(fd, (const char *const[]){ "" }, 1, &writer, NULL), -EINVAL);
        ck_assert_int_eq(shard_writer_new(fd, CLASSES, 2, &writer, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++)
                ck_assert_int_eq(shard_writer_add(writer, PATHS[i], 0, "x", 1, NULL), -EINVAL);
        ck_assert_int_eq(shard_writer_add(writer, "cat/x", 2, "x", 1, &why), -EINVAL);
        ck_assert_str_eq(why.text, "cat/x: label 2 has no class");
        ck_assert_int_eq(shard_writer_add(writer, "cat/x", -1, "x", 1, NULL), -EINVAL);
        shard_writer_free(writer);
        shard_writer_free(NULL);
}
END_TEST

/* ---- folders that are not whole ------------------------------------------------------------------------------ */

START_TEST(a_shard_that_is_missing_cut_or_strange_is_named) {
        static const char *const OTHERS[] = { "cat", "cow" };
        struct tree tree;

        make_both(&tree);
        renameat(tree.fd, "packed/shard-000001.shard", tree.fd, "aside");
        expect_refused(&tree, -ENOENT, "packed/shard-000001.shard is missing", "again");
        renameat(tree.fd, "packed/shard-000000.shard", tree.fd, "packed/shard-000001.shard");
        expect_refused(&tree, -ENOENT, "packed/shard-000000.shard is missing", "");
        tree_remove(&tree);

        make_both(&tree);
        write_shard_of(&tree, "packed/shard-000001.shard", OTHERS, 2, 0, 0);
        expect_refused(&tree, -EBADMSG, "shard-000001.shard is of another dataset", "class 1 is cow, not dog");
        write_shard_of(&tree, "packed/shard-000001.shard", CLASSES, 1, 0, 0);
        expect_refused(&tree, -EBADMSG, "shard-000001.shard is of a dataset of 1 classes", "of 2");
        tree_file(&tree, "packed/shard-000001.shard", "");
        expect_refused(&tree, -EBADMSG, "shard-000001.shard", "it is not a shard");
        unlinkat(tree.fd, "packed/shard-000001.shard", 0);
        tree_fifo(&tree, "packed/shard-000001.shard");
        expect_refused(&tree, -EBADMSG, "shard-000001.shard", "it is not a shard");
        unlinkat(tree.fd, "packed/shard-000001.shard", 0);
        tree_dir(&tree, "packed/shard-000001.shard");
        expect_refused(&tree, -EBADMSG, "shard-000001.shard", "it is not a shard");
        tree_remove(&tree);

        tree_make(&tree);
        tree_dir(&tree, "packed");
        tree_dir(&tree, "index");
        expect_refused(&tree, -ENOENT, "packed", "there is no shard in it");
        write_shard(&tree, 0, 0, 0);
        expect_refused(&tree, -ENOENT, "packed", "there is no sample in its shards");
        tree_remove(&tree);
}
END_TEST

static void cut(const struct tree *tree, const char *path, off_t n_bytes) {
        _cleanup_(closep) int fd = openat(tree->fd, path, O_WRONLY | O_CLOEXEC);

        ck_assert_int_eq(ftruncate(fd, n_bytes), 0);
}

START_TEST(a_shard_that_is_cut_or_rewritten_in_place_is_noticed) {
        struct dataset_report report;
        struct dataset *dataset = NULL;
        struct tree tree;

        make_both(&tree);
        dataset_unref(open_good(&tree, "packed", "packed"));
        ck_assert_int_eq(open_as(&tree, "packed", "packed", &dataset, &report, NULL), 0);
        ck_assert_int_eq(report.how, DATASET_LOADED);
        write_shard(&tree, 2, 3, N_SAMPLES); /* the folder's own time stays as it is */
        ck_assert_int_eq(dataset_is_current(dataset, NULL), SOURCE_STALE);
        dataset_unref(dataset);
        ck_assert_int_eq(open_as(&tree, "packed", "packed", &dataset, &report, NULL), 0);
        ck_assert_int_eq(report.how, DATASET_REBUILT);
        ck_assert_str_eq(report.reason.text, "shard-000002.shard has changed");
        ck_assert_uint_eq(dataset_source(dataset)->n_samples, N_SAMPLES - 1);
        dataset_unref(dataset);

        cut(&tree, "packed/shard-000002.shard", 4096);
        expect_refused(&tree, -EBADMSG, "shard-000002.shard: it has 4096 bytes and says it has 20480", "again");
        cut(&tree, "packed/shard-000002.shard", 100);
        expect_refused(&tree, -EBADMSG, "shard-000002.shard: it is not a shard", "");
        tree_remove(&tree);
}
END_TEST

/* ---- hostile bytes ------------------------------------------------------------------------------------------- */

static uint64_t seen; /* what use_all() read, so that no read is optimised away */

/* Reads everything that a parsed shard refers to; under ASan a bad reference ends the test. */
static void use_all(const struct shard *shard, const uint8_t *bytes, uint64_t n_bytes) {
        for (uint64_t i = 0; i < shard->header->n_classes; i++)
                seen += strlen(shard->names + shard->classes[i]);
        for (uint64_t i = 0; i < shard->header->n_samples; i++) {
                const struct shard_entry *entry = &shard->entries[i];
                const char *path = shard->names + entry->path;

                ck_assert(entry->offset <= n_bytes && entry->length <= n_bytes - entry->offset);
                seen += strlen(path) + bytes[entry->offset];
                ck_assert(path[0] != '/' && path[0] != '\0' && !strstr(path, "../"));
                ck_assert(entry->label >= 0 && (uint64_t)entry->label < shard->header->n_classes);
        }
}

static int parse(const uint8_t *bytes, size_t n_bytes) {
        struct shard shard;
        struct why why = { 0 };
        int r = shard_parse(bytes, n_bytes, &shard, &why);

        if (r == 0)
                use_all(&shard, bytes, n_bytes);
        else if (r != -EBADMSG || !why.text[0])
                ck_abort_msg("%d: %s", r, why.text);
        return r;
}

/* Where header and table lie: the samples between them may be anything. */
static bool is_checked(const struct shard_header *header, size_t at) {
        return at < sizeof(*header) || (at >= header->table && at < header->table + header->table_bytes);
}

START_TEST(no_single_damaged_byte_of_header_or_table_is_accepted) {
        const struct shard_header *header;
        struct shard_header good;
        struct tree tree;
        size_t n_bytes;
        uint8_t *bytes;

        make_both(&tree);
        bytes = shard_bytes(&tree, 2, &n_bytes);
        header = (const void *)bytes;
        good = *header;
        ck_assert_int_eq(parse(bytes, n_bytes), 0);
        for (size_t i = 0; i < n_bytes; i++)
                for (int bit = 0; bit < 8 && is_checked(&good, i); bit++) {
                        bytes[i] ^= (uint8_t)(1 << bit);
                        if (parse(bytes, n_bytes) != -EBADMSG)
                                ck_abort_msg("bit %d of byte %zu is not missed", bit, i);
                        bytes[i] ^= (uint8_t)(1 << bit);
                }
        free(bytes);
        tree_remove(&tree);
}
END_TEST

START_TEST(a_forged_shard_is_refused_or_harmless) {
        static const uint64_t VALUES[] = { 0,
                                           1,
                                           2,
                                           4095,
                                           4096,
                                           8192,
                                           16384,
                                           1ull << 24,
                                           1ull << 31,
                                           1ull << 40,
                                           INT64_MAX,
                                           1ull << 63,
                                           UINT64_MAX - 7,
                                           UINT64_MAX,
                                           0x00782f2e2e2f2e2eull /* "../../x" */ };
        size_t n_bytes, n_refused = 0, n_harmless = 0;
        struct tree tree;
        uint8_t *bytes;

        make_both(&tree);
        bytes = shard_bytes(&tree, 2, &n_bytes);
        for (size_t i = 0; i + 8 <= n_bytes; i += 4)
                for (size_t k = 0; k < ARRAY_SIZE(VALUES) && is_checked((const void *)bytes, i); k++) {
                        uint8_t *forged = malloc(n_bytes);
                        struct shard_header *header = (void *)forged;

                        memcpy(forged, bytes, n_bytes);
                        memcpy(forged + i, &VALUES[k], 8);
                        if (shard_check_header(header, n_bytes, NULL) == 0)
                                header->checksum = shard_checksum(header, forged + header->table);
                        *(parse(forged, n_bytes) == 0 ? &n_harmless : &n_refused) += 1;
                        free(forged);
                }
        ck_assert_uint_gt(n_refused, 500); /* counts, references, sums */
        ck_assert_uint_gt(n_harmless, 50); /* names, offsets that lie elsewhere within */
        free(bytes);
        tree_remove(&tree);
}
END_TEST

/* Else a small file could make an index that fills the memory. */
START_TEST(no_name_stands_for_two_samples) {
        struct shard_header *header;
        struct shard_entry *entries;
        struct shard shard;
        struct why why;
        struct tree tree;
        size_t n_bytes;
        uint8_t *bytes;

        make_both(&tree);
        bytes = shard_bytes(&tree, 2, &n_bytes);
        header = (void *)bytes;
        entries = (void *)(bytes + header->table);
        entries[1].path = entries[0].path;
        header->checksum = shard_checksum(header, entries);
        ck_assert_int_eq(shard_parse(bytes, n_bytes, &shard, &why), -EBADMSG);
        ck_assert_str_eq(why.text, "sample 1 of it has no path");
        free(bytes);
        tree_remove(&tree);
}
END_TEST

START_TEST(a_shard_of_another_length_than_it_says_is_refused) {
        size_t n_bytes;
        struct tree tree;
        uint8_t *bytes;

        make_both(&tree);
        bytes = shard_bytes(&tree, 2, &n_bytes);
        for (size_t n = 0; n < n_bytes; n++) {
                uint8_t *shorter = malloc(n ? n : 1);

                memcpy(shorter, bytes, n);
                ck_assert_int_eq(parse(shorter, n), -EBADMSG);
                free(shorter);
        }
        free(bytes);
        tree_remove(&tree);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "packed", a_packed_folder_has_the_same_samples_and_the_same_digest },
                { "packed", the_same_samples_give_the_same_bytes },
                { "packed", what_cannot_be_a_sample_is_not_packed },
                { "whole", a_shard_that_is_missing_cut_or_strange_is_named },
                { "whole", a_shard_that_is_cut_or_rewritten_in_place_is_noticed },
                { "hostile", no_single_damaged_byte_of_header_or_table_is_accepted },
                { "hostile", a_forged_shard_is_refused_or_harmless },
                { "hostile", no_name_stands_for_two_samples },
                { "hostile", a_shard_of_another_length_than_it_says_is_refused },
        };

        return suite_run("shard", rows, ARRAY_SIZE(rows));
}
