/* The index file: it says what was put in, refuses damage, notices a changed folder, and is replaced as a whole. */

#include "daemon/data/index/index.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/threads/thread.h"
#include "daemon/data/dataset.h"
#include "daemon/data/index/index_layout.h"
#include "daemon/data/index/index_sweep.h"
#include "proto/base/cleanup.h"
#include "tests/support/tree.h"
#include "tests/support/vectors.h"

/* A folder "data" of two classes and five files, and beside it the folder "index". */
static void make_small(struct tree *tree) {
        tree_make(tree);
        tree_file(tree, "data/cat/1.jpg", "1");
        tree_file(tree, "data/cat/2.jpg", "22");
        tree_file(tree, "data/cat/more/3.jpg", "333");
        tree_file(tree, "data/dog/4.png", "4444");
        tree_file(tree, "data/dog/5.png", "55555");
        tree_dir(tree, "index");
}

static int open_small(const struct tree *tree, struct dataset **ret_dataset, struct dataset_report *ret_report,
                      struct why *why) {
        char path[PATH_MAX], index_dir[PATH_MAX];
        struct dataset_spec spec = { .name = "small", .follows_links = true, .path = path, .format = "imagefolder" };

        snprintf(path, sizeof(path), "%s/data", tree->root);
        snprintf(index_dir, sizeof(index_dir), "%s/index", tree->root);
        return dataset_open(&spec, index_dir, NULL, ret_dataset, ret_report, why);
}

/* With the root. */
static uint64_t n_dirs_of(const struct tree *tree, const char *path) {
        _cleanup_(closep) int fd = openat(tree->fd, path, O_RDONLY);
        struct index_header header;

        ck_assert_int_eq(index_read_header(fd, &header, NULL), 0);
        return header.n_dirs;
}

/* Opens, expects it to come about like this, closes. */
static void expect_how(const struct tree *tree, enum dataset_how how, const char *reason) {
        struct dataset_report report;
        struct dataset *dataset;
        struct why why = { 0 };

        ck_assert_msg(open_small(tree, &dataset, &report, &why) == 0, "%s", why.text);
        ck_assert_msg(report.how == how, "%d: %s", (int)report.how, report.reason.text);
        ck_assert_msg(strstr(report.reason.text, reason) != NULL, "\"%s\"", report.reason.text);
        ck_assert(report.saved);
        dataset_unref(dataset);
}

static unsigned n_entries(const struct tree *tree, const char *path) {
        DIR *dir = fdopendir(openat(tree->fd, path, O_RDONLY | O_DIRECTORY));
        unsigned n = 0;

        while (readdir(dir))
                n++;
        closedir(dir);
        return n - 2;
}

START_TEST(an_index_is_built_once_and_then_loaded) {
        struct dataset_report report;
        struct dataset *dataset;
        struct tree tree;
        char digest[INDEX_DIGEST_SIZE];

        make_small(&tree);
        ck_assert_int_eq(open_small(&tree, &dataset, &report, NULL), 0);
        ck_assert(report.how == DATASET_BUILT && report.saved);
        strcpy(digest, dataset_source(dataset)->digest);
        dataset_unref(dataset);

        ck_assert_int_eq(open_small(&tree, &dataset, &report, NULL), 0);
        ck_assert(report.how == DATASET_LOADED && report.saved);
        {
                const struct source *index = dataset_source(dataset);

                ck_assert_str_eq(index->digest, digest);
                ck_assert_str_eq(index->format, "imagefolder");
                ck_assert_uint_eq(index->n_samples, 5);
                ck_assert_uint_eq(index_n_fields(index), 1);
                ck_assert_uint_eq(index_n_files(index), 5);
                ck_assert_uint_eq(n_dirs_of(&tree, "index/small.index"), 4);
                ck_assert_uint_eq(index->n_classes, 2);
                ck_assert_uint_eq(index->total_bytes, 15);
                ck_assert_uint_eq(index->max_length, 5);
                for (uint64_t i = 0; i < 5; i++) { /* file i + 1 has i + 1 bytes of that digit */
                        struct extent place;
                        char path[INDEX_PATH_SIZE], byte;
                        int fd;

                        source_locate(index, i, 0, &place);
                        source_name(index, i, path);
                        ck_assert_uint_eq(place.length, i + 1);
                        ck_assert_int_eq(index_label(index, i), i >= 3);
                        fd = openat(dataset_root_fd(dataset), path, O_RDONLY);
                        ck_assert_int_eq(read(fd, &byte, 1), 1);
                        ck_assert_int_eq(byte, (char)('1' + i));
                        close(fd);
                }
        }
        ck_assert_int_eq(dataset_is_current(dataset, NULL), 0);
        ck_assert_uint_eq(n_entries(&tree, "index"), 1);
        dataset_unref(dataset);
        tree_remove(&tree);
}
END_TEST

/* Compared with sha256sum over the bytes that hash_content() describes. */
START_TEST(the_digest_is_over_the_content_that_is_documented) {
        struct dataset *dataset;
        struct tree tree;

        make_small(&tree);
        ck_assert_int_eq(open_small(&tree, &dataset, NULL, NULL), 0);
        ck_assert_str_eq(dataset_source(dataset)->digest,
                         "38c024c4d705d2c9a7d40a6acb80bd3d88ce3ed7180212949d4737730392b789");
        dataset_unref(dataset);
        tree_remove(&tree);
}
END_TEST

START_TEST(the_digest_depends_on_content_and_not_on_place_or_time) {
        struct tree trees[5];
        char digests[5][INDEX_DIGEST_SIZE];

        for (int i = 0; i < 5; i++)
                make_small(&trees[i]);
        tree_age(&trees[1], "data/cat");                  /* another time */
        tree_file(&trees[2], "data/dog/5.png", "555555"); /* another length */
        renameat(trees[3].fd, "data/dog/5.png", trees[3].fd, "data/dog/6.png");
        renameat(trees[4].fd, "data/cat", trees[4].fd, "data/cow"); /* another class name */
        for (int i = 0; i < 5; i++) {
                struct dataset *dataset;

                ck_assert_int_eq(open_small(&trees[i], &dataset, NULL, NULL), 0);
                strcpy(digests[i], dataset_source(dataset)->digest);
                dataset_unref(dataset);
                tree_remove(&trees[i]);
        }
        ck_assert_str_eq(digests[0], digests[1]);
        for (int i = 2; i < 5; i++)
                for (int k = 0; k < i; k++)
                        ck_assert_str_ne(digests[i], digests[k]);
}
END_TEST

START_TEST(a_changed_folder_is_noticed_and_said) {
        struct tree tree;

        make_small(&tree);
        expect_how(&tree, DATASET_BUILT, "");
        expect_how(&tree, DATASET_LOADED, "");
        tree_file(&tree, "data/cat/more/new.jpg", "");
        expect_how(&tree, DATASET_REBUILT, "cat/more has changed");
        unlinkat(tree.fd, "data/dog/5.png", 0);
        expect_how(&tree, DATASET_REBUILT, "dog has changed");
        tree_file(&tree, "data/emu/6.jpg", "");
        expect_how(&tree, DATASET_REBUILT, "the folder itself has changed");
        tree_dir(&tree, "data/emu/empty");
        expect_how(&tree, DATASET_REBUILT, "emu has changed");
        renameat(tree.fd, "data/cat", tree.fd, "moved"); /* and another in its place, the root as old as before */
        tree_file(&tree, "data/cat/1.jpg", "");
        expect_how(&tree, DATASET_REBUILT, "the folder itself has changed");
        expect_how(&tree, DATASET_LOADED, "");
        tree_remove(&tree);
}
END_TEST

START_TEST(another_folder_of_the_same_age_is_noticed) {
        struct tree tree;

        make_small(&tree);
        tree_age(&tree, "data/cat/more");
        expect_how(&tree, DATASET_BUILT, "");
        {
                struct stat root, more;

                fstatat(tree.fd, "data/cat", &root, 0);
                fstatat(tree.fd, "data/cat/more", &more, 0);
                renameat(tree.fd, "data/cat/more", tree.fd, "moved");
                tree_file(&tree, "data/cat/more/3.jpg", "333");
                utimensat(tree.fd, "data/cat/more", (struct timespec[2]){ more.st_atim, more.st_mtim }, 0);
                utimensat(tree.fd, "data/cat", (struct timespec[2]){ root.st_atim, root.st_mtim }, 0);
        }
        expect_how(&tree, DATASET_REBUILT, "cat has changed");
        tree_remove(&tree);
}
END_TEST

/* The race that a second's or a tick's resolution of times would leave open. */
START_TEST(a_change_right_after_indexing_is_noticed) {
        struct tree tree;
        char name[64];

        make_small(&tree);
        expect_how(&tree, DATASET_BUILT, "");
        for (int i = 0; i < 20; i++) {
                snprintf(name, sizeof(name), "data/cat/quick-%d.jpg", i);
                tree_file(&tree, name, "");
                expect_how(&tree, DATASET_REBUILT, "cat has changed");
        }
        tree_remove(&tree);
}
END_TEST

START_TEST(an_open_dataset_outlives_its_replacement) {
        struct dataset *dataset;
        char path[INDEX_PATH_SIZE];
        struct why why = { 0 };
        struct tree tree;

        make_small(&tree);
        ck_assert_int_eq(open_small(&tree, &dataset, NULL, NULL), 0);
        tree_file(&tree, "data/ant/0.jpg", "");
        ck_assert_int_eq(dataset_is_current(dataset, &why), SOURCE_STALE);
        expect_how(&tree, DATASET_REBUILT, "has changed");
        source_name(dataset_source(dataset), 0, path);
        ck_assert_str_eq(path, "cat/1.jpg");
        dataset_unref(dataset_ref(dataset));
        dataset_unref(dataset);
        tree_remove(&tree);
}
END_TEST

START_TEST(where_nothing_can_be_saved_the_index_lives_in_memory) {
        struct dataset_report report;
        struct dataset_spec spec;
        struct dataset *dataset;
        char path[PATH_MAX];
        struct tree tree;

        make_small(&tree);
        snprintf(path, sizeof(path), "%s/data", tree.root);
        spec = (struct dataset_spec){ .name = "small", .follows_links = true, .path = path, .format = "imagefolder" };
        ck_assert_int_eq(dataset_open(&spec, "/proc/nowhere", NULL, &dataset, &report, NULL), 0);
        ck_assert(report.how == DATASET_BUILT && !report.saved);
        ck_assert_ptr_nonnull(strstr(report.not_saved.text, "/proc/nowhere"));
        ck_assert_uint_eq(dataset_source(dataset)->n_samples, 5);
        dataset_unref(dataset);
        tree_remove(&tree);
}
END_TEST

static void use_all(const struct source *index, int root_fd);

START_TEST(an_index_that_others_may_write_is_copied_before_it_is_believed) {
        static const char *const FILES[] = { "index/small.index", "given.index" };
        char given[PATH_MAX], path[PATH_MAX], index_dir[PATH_MAX], digest[INDEX_DIGEST_SIZE];
        struct budget budget = { .limit_bytes = 1 << 20 };
        struct dataset *dataset, *staged, *in_memory;
        struct dataset_report report;
        struct dataset_spec spec;
        struct stat file;
        struct tree tree;
        int fd;

        make_small(&tree);
        ck_assert_int_eq(open_small(&tree, &dataset, NULL, NULL), 0);
        strcpy(digest, dataset_source(dataset)->digest);
        dataset_unref(dataset);
        snprintf(path, sizeof(path), "%s/data", tree.root);
        snprintf(index_dir, sizeof(index_dir), "%s/index", tree.root);
        snprintf(given, sizeof(given), "%s/given.index", tree.root);
        spec = (struct dataset_spec){
                .name = "small", .follows_links = true, .path = path, .format = "imagefolder", .budget = &budget
        };

        /* Ours, where it belongs: mapped, and nothing is counted. */
        ck_assert_int_eq(dataset_open(&spec, index_dir, NULL, &dataset, &report, NULL), 0);
        ck_assert(report.how == DATASET_LOADED && budget_used(&budget) == 0);
        dataset_unref(dataset);

        /* Writable by others: copied into memory, which is counted. */
        ck_assert_int_eq(linkat(tree.fd, FILES[0], tree.fd, FILES[1], 0), 0);
        ck_assert_int_eq(fchmodat(tree.fd, FILES[0], 0664, 0), 0);
        ck_assert_int_eq(dataset_open(&spec, index_dir, NULL, &dataset, &report, NULL), 0);
        ck_assert(report.how == DATASET_LOADED);
        ck_assert_uint_gt(budget_used(&budget), sizeof(struct index_header));

        /* One that was staged: copied, whoever may write it; the second time the copy is taken. */
        spec.name = "other";
        spec.given_index = given;
        spec.given_digest = digest;
        for (int i = 0; i < 2; i++) {
                ck_assert_int_eq(dataset_open(&spec, index_dir, NULL, &staged, &report, NULL), 0);
                ck_assert(report.how == DATASET_GIVEN);
                if (i == 0)
                        dataset_unref(staged);
        }
        ck_assert_int_eq(dataset_open(&spec, "/proc/nowhere", NULL, &in_memory, &report, NULL), 0);
        ck_assert(report.how == DATASET_GIVEN);
        ck_assert_int_eq(fstatat(tree.fd, FILES[1], &file, 0), 0);
        ck_assert_uint_eq(budget_used(&budget), 2 * (uint64_t)file.st_size);

        fd = openat(tree.fd, FILES[1], O_WRONLY | O_TRUNC);
        ck_assert_int_ge(fd, 0);
        close(fd);
        use_all(dataset_source(dataset), tree.fd);
        use_all(dataset_source(staged), tree.fd);
        use_all(dataset_source(in_memory), tree.fd);
        dataset_unref(dataset);
        dataset_unref(staged);
        dataset_unref(in_memory);
        ck_assert_uint_eq(budget_used(&budget), 0);
        tree_remove(&tree);
}
END_TEST

struct account {
        struct budget budget;
        uint32_t n_rises; /* from nothing to something */
        _Atomic bool stop;
};

static void *watch_account(void *userdata) {
        struct account *account = userdata;
        uint64_t before = 0;

        while (!atomic_load(&account->stop)) {
                uint64_t used = budget_used(&account->budget);

                account->n_rises += before == 0 && used > 0;
                before = used;
        }
        return NULL;
}

/* Somebody else could take its memory in between, and then it would be refused though it has been copied. */
START_TEST(the_copy_of_an_index_is_counted_without_a_gap) {
        enum {
                N = 300
        };
        char given[PATH_MAX], path[PATH_MAX], digest[INDEX_DIGEST_SIZE];
        static struct account account;
        struct dataset_spec spec;
        struct dataset *dataset;
        pthread_t watcher;
        struct tree tree;

        make_small(&tree);
        ck_assert_int_eq(open_small(&tree, &dataset, NULL, NULL), 0);
        strcpy(digest, dataset_source(dataset)->digest);
        dataset_unref(dataset);
        snprintf(path, sizeof(path), "%s/data", tree.root);
        snprintf(given, sizeof(given), "%s/index/small.index", tree.root);
        account = (struct account){ .budget.limit_bytes = 1 << 20 };
        spec = (struct dataset_spec){ .name = "small",
                                      .follows_links = true,
                                      .path = path,
                                      .format = "imagefolder",
                                      .budget = &account.budget,
                                      .given_index = given,
                                      .given_digest = digest };
        ck_assert_int_eq(thread_start(&watcher, "watcher", watch_account, &account), 0);
        for (uint32_t i = 0; i < N; i++) {
                ck_assert_int_eq(dataset_open(&spec, "/proc/nowhere", NULL, &dataset, NULL, NULL), 0);
                dataset_unref(dataset);
        }
        atomic_store(&account.stop, true);
        thread_join(watcher);
        ck_assert_uint_le(account.n_rises, N);
        tree_remove(&tree);
}
END_TEST

START_TEST(an_index_in_memory_that_memory_limit_has_no_room_for_is_refused) {
        struct budget budget = { .limit_bytes = 100 };
        struct dataset_spec spec;
        struct dataset *dataset;
        struct why why = { 0 };
        char path[PATH_MAX];
        struct tree tree;

        make_small(&tree);
        snprintf(path, sizeof(path), "%s/data", tree.root);
        spec = (struct dataset_spec){
                .name = "small", .follows_links = true, .path = path, .format = "imagefolder", .budget = &budget
        };
        ck_assert_int_eq(dataset_open(&spec, "/proc/nowhere", NULL, &dataset, NULL, &why), -ENOMEM);
        ck_assert_ptr_nonnull(strstr(why.text, "memory_limit"));
        ck_assert_uint_eq(budget_used(&budget), 0);
        tree_remove(&tree);
}
END_TEST

START_TEST(names_that_are_no_file_names_are_refused) {
        static const char *const NAMES[] = { "", ".", "..", "../a", ".hidden", "./a" };
        char path[PATH_MAX], *long_name;

        for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
                ck_assert_int_eq(dataset_index_path("/somewhere", NAMES[i], path, NULL), -EINVAL);
        ck_assert_int_eq(dataset_index_path("/somewhere", "photos", path, NULL), 0);
        ck_assert_str_eq(path, "/somewhere/photos.index");
        ck_assert_int_eq(dataset_index_path("/somewhere", "/data/photos/train {split=\"0:90%\"}", path, NULL), 0);
        ck_assert_msg(strncmp(path, "/somewhere/train-path-", 22) == 0 && strlen(path) == 22 + 24 + 6, "%s", path);
        long_name = malloc(PATH_MAX);
        memset(long_name, 'x', PATH_MAX - 1);
        long_name[PATH_MAX - 1] = '\0';
        ck_assert_int_eq(dataset_index_path("/somewhere", long_name, path, NULL), -EINVAL);
        ck_assert_int_eq(dataset_index_path(long_name, "photos", path, NULL), -ENAMETOOLONG);
        free(long_name);
}
END_TEST

/* ---- damage -------------------------------------------------------------------------------------------------- */

static uint64_t seen; /* what use_all() read, so that no read is optimised away */

/* Reads everything that can be asked of an index; under ASan a bad reference ends the test. */
static void use_all(const struct source *index, int root_fd) {
        char path[INDEX_PATH_SIZE];

        for (uint32_t i = 0; i < index->n_classes; i++)
                seen += strlen(source_class_name(index, i));
        for (uint64_t i = 0; i < index->n_samples; i++)
                for (uint32_t k = 0; k < index_n_fields(index); k++) {
                        struct extent place;

                        source_locate(index, i, k, &place);
                        seen += place.length + strlen(place.dir) + strlen(place.name);
                        if (source_name(index, i, path) != strlen(path) || strstr(path, "../") || path[0] == '/')
                                ck_abort_msg("an impossible path: %s", path);
                        if (index_label(index, i) < 0 || (uint32_t)index_label(index, i) >= index->n_classes)
                                ck_abort_msg("label %d", index_label(index, i));
                }
        seen += strlen(index->digest) + strlen(index->format);
        source_is_current(index, root_fd, NULL);
}

static void put_checksum(uint8_t *bytes, size_t n_bytes) {
        uint64_t sum;

        if (n_bytes < sizeof(struct index_header))
                return;
        sum = index_checksum(bytes + INDEX_CHECKSUM_FROM, n_bytes / 8 * 8 - INDEX_CHECKSUM_FROM);
        memcpy(bytes + offsetof(struct index_header, checksum), &sum, sizeof(sum));
}

/* Opens these bytes as a file. Returns what index_open_fd() returned; if 0, everything was used. */
static int open_bytes(const uint8_t *bytes, size_t n_bytes, int root_fd) {
        _cleanup_(closep) int fd = memfd_create("damaged", MFD_CLOEXEC);
        struct source *index = NULL;
        struct why why = { 0 };
        int r;

        if (write(fd, bytes, n_bytes) != (ssize_t)n_bytes)
                ck_abort_msg("cannot write");
        r = index_open_fd(fd, "damaged", NULL, &index, &why);
        if (r == 0)
                use_all(index, root_fd);
        if (r < 0 && (r != -EBADMSG || !why.text[0] || index))
                ck_abort_msg("%d: %s", r, why.text);
        source_close(index);
        return r;
}

static uint8_t *small_bytes(struct tree *tree, size_t *ret_n_bytes) {
        struct dataset *dataset;
        char path[PATH_MAX];

        make_small(tree);
        ck_assert_int_eq(open_small(tree, &dataset, NULL, NULL), 0);
        dataset_unref(dataset);
        snprintf(path, sizeof(path), "%s/index/small.index", tree->root);
        return read_whole_file(path, ret_n_bytes);
}

START_TEST(no_single_damaged_byte_is_accepted) {
        struct tree tree;
        size_t n_bytes;
        uint8_t *bytes = small_bytes(&tree, &n_bytes);

        ck_assert_int_eq(open_bytes(bytes, n_bytes, tree.fd), 0);
        for (size_t i = 0; i < n_bytes; i++)
                for (int bit = 0; bit < 8; bit++) {
                        bytes[i] ^= (uint8_t)(1 << bit);
                        if (open_bytes(bytes, n_bytes, tree.fd) != -EBADMSG)
                                ck_abort_msg("bit %d of byte %zu is not missed", bit, i);
                        bytes[i] ^= (uint8_t)(1 << bit);
                }
        free(bytes);
        tree_remove(&tree);
}
END_TEST

/* Whoever can write index files can make the checksum right: nothing then may lead outside of the file or the folder.
 */
START_TEST(a_forged_index_is_refused_or_harmless) {
        static const uint8_t VALUES[] = { 0x00, 0x01, 0x02, 0x2e, 0x2f, 0x7f, 0x80, 0xff };
        struct tree tree;
        size_t n_bytes, n_refused = 0, n_harmless = 0;
        uint8_t *bytes = small_bytes(&tree, &n_bytes);

        for (size_t i = 0; i < n_bytes; i++)
                for (size_t k = 0; k < ARRAY_SIZE(VALUES); k++) {
                        uint8_t *forged = malloc(n_bytes);

                        memcpy(forged, bytes, n_bytes);
                        forged[i] = VALUES[k];
                        put_checksum(forged, n_bytes);
                        *(open_bytes(forged, n_bytes, tree.fd) == 0 ? &n_harmless : &n_refused) += 1;
                        free(forged);
                }
        ck_assert_uint_gt(n_refused, 1000);  /* counts, references, sums */
        ck_assert_uint_gt(n_harmless, 1000); /* names, times */
        free(bytes);
        tree_remove(&tree);
}
END_TEST

START_TEST(forged_words_are_refused_or_harmless) {
        static const uint64_t VALUES[] = { 0,          1,          4,         5,          1ull << 31,     UINT32_MAX,
                                           1ull << 40, 1ull << 60, INT64_MAX, 1ull << 63, UINT64_MAX - 7, UINT64_MAX };
        struct tree tree;
        size_t n_bytes;
        uint8_t *bytes = small_bytes(&tree, &n_bytes);

        for (size_t i = 0; i + 8 <= n_bytes; i += 4)
                for (size_t k = 0; k < ARRAY_SIZE(VALUES); k++) {
                        uint8_t *forged = malloc(n_bytes);

                        memcpy(forged, bytes, n_bytes);
                        memcpy(forged + i, &VALUES[k], 8);
                        put_checksum(forged, n_bytes);
                        open_bytes(forged, n_bytes, tree.fd);
                        free(forged);
                }
        free(bytes);
        tree_remove(&tree);
}
END_TEST

START_TEST(a_truncated_or_longer_file_is_refused) {
        struct tree tree;
        size_t n_bytes;
        uint8_t *bytes = small_bytes(&tree, &n_bytes), *longer;

        longer = calloc(1, n_bytes + 64);
        for (size_t n = 0; n <= n_bytes + 64; n++) {
                uint64_t says = n;

                if (n == n_bytes)
                        continue;
                memcpy(longer, bytes, n_bytes);
                ck_assert_int_eq(open_bytes(longer, n, tree.fd), -EBADMSG);
                memcpy(longer + offsetof(struct index_header, file_bytes), &says, sizeof(says));
                put_checksum(longer, n);
                ck_assert_int_eq(open_bytes(longer, n, tree.fd), -EBADMSG);
        }
        free(longer);
        free(bytes);
        tree_remove(&tree);
}
END_TEST

START_TEST(a_damaged_index_is_built_anew) {
        struct tree tree;

        make_small(&tree);
        tree_file(&tree, "index/small.index", "");
        expect_how(&tree, DATASET_REBUILT, "too short");
        expect_how(&tree, DATASET_LOADED, "");
        tree_file(&tree, "index/small.index", "DLDINDEX");
        expect_how(&tree, DATASET_REBUILT, "too short");
        unlinkat(tree.fd, "index/small.index", 0);
        tree_fifo(&tree, "index/small.index"); /* must not hang */
        expect_how(&tree, DATASET_REBUILT, "too short");
        expect_how(&tree, DATASET_LOADED, "");
        ck_assert_uint_eq(n_entries(&tree, "index"), 1);
        tree_remove(&tree);
}
END_TEST

/* ---- several at once ----------------------------------------------------------------------------------------- */

static void *open_often(void *argument) {
        const struct tree *tree = argument;

        for (int i = 0; i < 30; i++) {
                struct dataset *dataset;

                if (open_small(tree, &dataset, NULL, NULL) != 0 || dataset_source(dataset)->n_samples != 5)
                        return argument;
                dataset_unref(dataset);
                if (i % 3 == 0)
                        unlinkat(tree->fd, "index/small.index", 0); /* so that somebody builds */
        }
        return NULL;
}

START_TEST(several_builders_at_once_leave_one_whole_index) {
        pthread_t threads[4];
        struct tree tree;
        void *failed;

        make_small(&tree);
        for (int i = 0; i < 4; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, open_often, &tree), 0);
        for (int i = 0; i < 4; i++) {
                pthread_join(threads[i], &failed);
                ck_assert_ptr_null(failed);
        }
        expect_how(&tree, n_entries(&tree, "index") ? DATASET_LOADED : DATASET_BUILT, "");
        ck_assert_uint_eq(n_entries(&tree, "index"), 1); /* nothing temporary is left */
        tree_remove(&tree);
}
END_TEST

START_TEST(what_a_killed_indexing_left_behind_is_swept_and_nothing_else) {
        static const char *const GONE[] = { "a.index.new-abc123", "b.new-x.errors.new-Zz9Zz9",
                                            "future.index.new-abc123" };
        static const char *const KEPT[] = { "a.index",
                                            "a.errors",
                                            "a.errors.old",
                                            "a.index.new-abc",
                                            "a.index.new-abc1234",
                                            ".index.new-abc123",
                                            "young.index.new-abc123" };
        struct timespec old[2] = { { .tv_sec = 1000000 }, { .tv_sec = 1000000 } };
        struct timespec later[2] = { { .tv_sec = time(NULL) + 86400 }, { .tv_sec = time(NULL) + 86400 } };
        char path[PATH_MAX];
        struct tree tree;

        tree_make(&tree);
        for (size_t i = 0; i < sizeof(GONE) / sizeof(GONE[0]); i++) {
                snprintf(path, sizeof(path), "index/%s", GONE[i]);
                tree_file(&tree, path, "half of it");
                ck_assert_int_eq(utimensat(tree.fd, path, strncmp(GONE[i], "future", 6) == 0 ? later : old, 0), 0);
        }
        for (size_t i = 0; i < sizeof(KEPT) / sizeof(KEPT[0]); i++) {
                snprintf(path, sizeof(path), "index/%s", KEPT[i]);
                tree_file(&tree, path, "somebody's");
                if (strncmp(KEPT[i], "young", 5) != 0)
                        ck_assert_int_eq(utimensat(tree.fd, path, old, 0), 0);
        }
        snprintf(path, sizeof(path), "%s/index", tree.root);
        index_sweep(path);
        ck_assert_uint_eq(n_entries(&tree, "index"), sizeof(KEPT) / sizeof(KEPT[0]));
        index_sweep("/nowhere/at/all");
        tree_remove(&tree);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("index");
        TCase *tests = tcase_create("all");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(tests, 120);
        tcase_add_test(tests, an_index_is_built_once_and_then_loaded);
        tcase_add_test(tests, the_digest_is_over_the_content_that_is_documented);
        tcase_add_test(tests, the_digest_depends_on_content_and_not_on_place_or_time);
        tcase_add_test(tests, a_changed_folder_is_noticed_and_said);
        tcase_add_test(tests, another_folder_of_the_same_age_is_noticed);
        tcase_add_test(tests, a_change_right_after_indexing_is_noticed);
        tcase_add_test(tests, an_open_dataset_outlives_its_replacement);
        tcase_add_test(tests, where_nothing_can_be_saved_the_index_lives_in_memory);
        tcase_add_test(tests, an_index_that_others_may_write_is_copied_before_it_is_believed);
        tcase_add_test(tests, the_copy_of_an_index_is_counted_without_a_gap);
        tcase_add_test(tests, an_index_in_memory_that_memory_limit_has_no_room_for_is_refused);
        tcase_add_test(tests, names_that_are_no_file_names_are_refused);
        tcase_add_test(tests, no_single_damaged_byte_is_accepted);
        tcase_add_test(tests, a_forged_index_is_refused_or_harmless);
        tcase_add_test(tests, forged_words_are_refused_or_harmless);
        tcase_add_test(tests, a_truncated_or_longer_file_is_refused);
        tcase_add_test(tests, a_damaged_index_is_built_anew);
        tcase_add_test(tests, several_builders_at_once_leave_one_whole_index);
        tcase_add_test(tests, what_a_killed_indexing_left_behind_is_swept_and_nothing_else);
        suite_add_tcase(suite, tests);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
