/* The index pass over TFRecord files, which are read ahead by several threads: it is the same each time, says the first
 * error in the order of the files, and ends when it is cancelled or when a file changes. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/format.h"
#include "daemon/data/formats/tfrecord/crc32c.h"
#include "daemon/data/index/index_builder.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#define N_FILES 40u
#define N_SMALL 5000u /* records; there is a word about progress before the last of them */

static struct tree tree;
static struct why why;

/* ---- files ------------------------------------------------------------------------------------------------------ */

static const char *name_of(uint32_t idx) {
        static char name[PATH_MAX];

        snprintf(name, sizeof(name), "%s/%02u.tfrecord", tree.root, idx);
        return name;
}

static void put(FILE *file, const void *bytes, uint64_t n) {
        uint32_t crc = crc32c_masked(crc32c(&n, 8));

        fwrite(&n, 8, 1, file);
        fwrite(&crc, 4, 1, file);
        fwrite(bytes, n, 1, file);
        crc = crc32c_masked(crc32c(bytes, n));
        fwrite(&crc, 4, 1, file);
}

/* Plain records, all of them different. */
static void make_file(uint32_t idx, uint32_t n_records, uint32_t n_bytes) {
        FILE *file = fopen(name_of(idx), "we");
        uint8_t *bytes = malloc(n_bytes);

        ck_assert(file && bytes);
        for (uint32_t i = 0; i < n_records; i++) {
                memset(bytes, 0x80 + (int)(i + idx) % 100, n_bytes);
                memcpy(bytes, &i, sizeof(i));
                put(file, bytes, n_bytes);
        }
        ck_assert_int_eq(fclose(file), 0);
        free(bytes);
}

/* About 1 MiB each, one with small records and one with a large one. */
static void make_files(void) {
        tree_make(&tree);
        for (uint32_t i = 0; i < N_FILES; i++)
                make_file(i, i == 0 ? N_SMALL : i == 20 ? 1 : 3 + i, i == 20 ? 6u << 20 : i == 0 ? 100 : 30000);
        for (uint32_t i = 0; i < N_FILES; i++)
                tree_age(&tree, strrchr(name_of(i), '/') + 1);
        tree_age(&tree, ".");
}

static void change_byte(uint32_t idx, off_t at) {
        _cleanup_(closep) int fd = open(name_of(idx), O_RDWR | O_CLOEXEC);
        uint8_t byte;

        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        byte ^= 1;
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
}

/* ---- passes ----------------------------------------------------------------------------------------------------- */

static int build(const struct index_watch *watch, struct index_builder **ret_builder) {
        why.text[0] = '\0';
        return format_tfrecord.build(tree.fd, &(struct files){ .root = tree.root }, NULL, watch, ret_builder, &why);
}

static void refuse(const struct index_watch *watch, int error, const char *words) {
        struct index_builder *builder = NULL;

        ck_assert_int_eq(build(watch, &builder), error);
        ck_assert_msg(strstr(why.text, words) != NULL, "%s", why.text);
}

static uint8_t *index_bytes(size_t *ret_n) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(closep) int fd = memfd_create("index", MFD_CLOEXEC);
        uint8_t *bytes;
        off_t n;

        ck_assert_msg(build(NULL, &builder) == 0, "%s", why.text);
        ck_assert_msg(index_builder_write(builder, fd, "index", &why) == 0, "%s", why.text);
        n = lseek(fd, 0, SEEK_END);
        bytes = malloc((size_t)n);
        ck_assert_int_eq(pread(fd, bytes, (size_t)n, 0), n);
        *ret_n = (size_t)n;
        return bytes;
}

START_TEST(the_index_is_the_same_each_time) {
        uint8_t *first, *other;
        size_t n, n_other;

        make_files();
        first = index_bytes(&n);
        for (int i = 0; i < 5; i++) {
                other = index_bytes(&n_other);
                ck_assert(n_other == n && memcmp(other, first, n) == 0);
                free(other);
        }
        free(first);
        tree_remove(&tree);
}
END_TEST

/* A missing file and a folder are noticed sooner than a checksum in a file before them. */
START_TEST(the_first_error_is_that_of_the_first_file) {
        const char *names[N_FILES + 1];
        char texts[N_FILES + 1][32];
        struct files files = { .root = tree.root, .names = names, .n_names = N_FILES + 1 };
        struct index_builder *builder = NULL;

        make_files();
        for (uint32_t i = 0; i < N_FILES + 1; i++) {
                snprintf(texts[i], sizeof(texts[i]), "%02u.tfrecord", i);
                names[i] = texts[i];
        }
        strcpy(texts[12], "absent");
        strcpy(texts[14], ".");
        change_byte(10, 300000);
        change_byte(11, 300000);
        for (int i = 0; i < 5; i++) {
                ck_assert_int_eq(format_tfrecord.build(tree.fd, &files, NULL, NULL, &builder, &why), -EBADMSG);
                ck_assert_ptr_nonnull(
                        strstr(why.text, "/10.tfrecord: record 9 at byte 270144: the checksum of its data"));
        }
        change_byte(10, 300000);
        change_byte(11, 300000);
        ck_assert_int_eq(format_tfrecord.build(tree.fd, &files, NULL, NULL, &builder, &why), -ENOENT);
        ck_assert_ptr_nonnull(strstr(why.text, "/absent"));
        strcpy(texts[12], "12.tfrecord");
        ck_assert_int_eq(format_tfrecord.build(tree.fd, &files, NULL, NULL, &builder, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "/.: is not a regular file"));
        tree_remove(&tree);
}
END_TEST

static atomic_bool cancelled;

static void cancel(void *userdata, uint64_t n) {
        (void)userdata;
        ck_assert_uint_gt(n, 0);
        atomic_store(&cancelled, true);
}

START_TEST(a_cancel_ends_the_pass) {
        const struct index_watch watch = { .progress = cancel, .cancel = &cancelled };

        make_files();
        make_file(1, N_SMALL, 100);
        atomic_store(&cancelled, false);
        refuse(&watch, -ECANCELED, "indexing was cancelled");
        tree_remove(&tree);
}
END_TEST

/* To less than was read by then, which is up to 4 MiB more than the records that were looked at. */
static void shrink(void *userdata, uint64_t n) {
        (void)n;
        ck_assert_int_eq(truncate(name_of(0), *(off_t *)userdata), 0);
}

START_TEST(a_file_that_shrinks_during_the_pass_is_refused) {
        off_t n_bytes = (off_t)N_SMALL * 4000;
        const struct index_watch watch = { .progress = shrink, .userdata = &n_bytes };

        make_files();
        make_file(0, N_SMALL, 8000);
        refuse(&watch, -ENODATA, "/00.tfrecord: record 4");
        ck_assert_ptr_nonnull(strstr(why.text, "became shorter while it was read"));
        refuse(NULL, -EBADMSG, "the file ends within it: it was cut");
        tree_remove(&tree);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "pass", the_index_is_the_same_each_time, 0 },
                { "pass", the_first_error_is_that_of_the_first_file, 0 },
                { "pass", a_cancel_ends_the_pass, 0 },
                { "pass", a_file_that_shrinks_during_the_pass_is_refused, 0 },
        };

        return suite_run("tfrecord_pass", rows, sizeof(rows) / sizeof(rows[0]));
}
