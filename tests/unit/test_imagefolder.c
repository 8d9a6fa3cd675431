/* imagefolder finds what torchvision's ImageFolder finds, in its order, and says clearly what it will not take.
 *
 * tests/integration/imagefolder_vs_torchvision.py compares with the real one on random trees. */

#include "daemon/data/format.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/data/dataset.h"
#include "daemon/data/formats/name_order.h"
#include "proto/base/cleanup.h"
#include "tests/support/tree.h"

/* The index of a tree without saving it; returns what dataset_open() returns. */
static int open_tree(const struct tree *tree, const char *below, struct dataset **ret_dataset, struct why *why) {
        char path[PATH_MAX];
        struct dataset_spec spec = { .name = "tree", .path = path, .format = "imagefolder", .follows_links = true };

        snprintf(path, sizeof(path), "%s/%s", tree->root, below);
        return dataset_open(&spec, "/proc/nowhere", NULL, ret_dataset, NULL, why);
}

/* Expects exactly these samples, as "label path". */
static void expect(const struct tree *tree, const char *const *expected, size_t n_expected) {
        struct dataset *dataset;
        struct why why = { 0 };
        const struct source *index;

        ck_assert_msg(open_tree(tree, "", &dataset, &why) == 0, "%s", why.text);
        index = dataset_source(dataset);
        for (uint64_t i = 0; i < index->n_samples && i < n_expected; i++) {
                char path[INDEX_PATH_SIZE], shown[INDEX_PATH_SIZE + 16];

                ck_assert_uint_eq(source_name(index, i, path), strlen(path));
                snprintf(shown, sizeof(shown), "%d %s", index_label(index, i), path);
                ck_assert_str_eq(shown, expected[i]);
        }
        ck_assert_uint_eq(index->n_samples, n_expected);
        dataset_unref(dataset);
}
#define EXPECT(tree, ...)                                                                                              \
        do {                                                                                                           \
                static const char *const EXPECTED[] = { __VA_ARGS__ };                                                 \
                expect(tree, EXPECTED, ARRAY_SIZE(EXPECTED));                                                          \
        } while (0)

static void expect_error(const struct tree *tree, const char *below, int error, const char *part) {
        struct dataset *dataset;
        struct why why = { 0 };
        int r;

        r = open_tree(tree, below, &dataset, &why);
        ck_assert_msg(r == error, "%d: %s", r, why.text);
        ck_assert_msg(strstr(why.text, part) != NULL, "\"%s\" lacks \"%s\"", why.text, part);
}

START_TEST(classes_and_files_come_sorted_and_filtered_by_extension) {
        struct tree tree;

        tree_make(&tree);
        tree_file(&tree, "dog/2.JPG", "");
        tree_file(&tree, "dog/10.jpeg", "");
        tree_file(&tree, "dog/.webp", "");
        tree_file(&tree, "dog/.hidden.PnG", "");
        tree_file(&tree, "dog/notes.txt", "");
        tree_file(&tree, "dog/jpg", "");
        tree_file(&tree, "dog/a.jpg.bak", "");
        tree_file(&tree, "dog/x.tiff", "");
        tree_file(&tree, "Cat/x.bmp", "");
        tree_file(&tree, ".hidden/x.ppm", "");
        tree_file(&tree, "not-a-class.jpg", "");
        EXPECT(&tree, "0 .hidden/x.ppm", "1 Cat/x.bmp", "2 dog/.hidden.PnG", "2 dog/.webp", "2 dog/10.jpeg",
               "2 dog/2.JPG", "2 dog/x.tiff");
        tree_remove(&tree);
}
END_TEST

START_TEST(directories_sort_by_their_whole_path) {
        struct tree tree;

        tree_make(&tree);
        tree_file(&tree, "c/a/b/1.jpg", "");
        tree_file(&tree, "c/a-b/2.jpg", "");
        tree_file(&tree, "c/a.b/3.jpg", "");
        tree_file(&tree, "c/a0/4.jpg", "");
        tree_file(&tree, "c/a/5.jpg", "");
        tree_file(&tree, "c/z.jpg", "");
        tree_file(&tree, "c/folder.jpg/6.jpg", "");
        EXPECT(&tree, "0 c/z.jpg", "0 c/a/5.jpg", "0 c/a-b/2.jpg", "0 c/a.b/3.jpg", "0 c/a/b/1.jpg", "0 c/a0/4.jpg",
               "0 c/folder.jpg/6.jpg");
        tree_remove(&tree);
}
END_TEST

START_TEST(names_that_are_not_ascii_sort_as_python_sorts_them) {
        struct tree tree;

        tree_make(&tree);
        tree_file(&tree, "c/\xee\x80\x80.jpg", "");     /* U+E000 */
        tree_file(&tree, "c/\xff.jpg", "");             /* no UTF-8: U+DCFF, before U+E000 */
        tree_file(&tree, "c/\xf0\x9f\x98\x80.jpg", ""); /* U+1F600 */
        tree_file(&tree, "c/\xc3\xa9.jpg", "");         /* U+00E9 */
        tree_file(&tree, "c/\xc3.jpg", "");             /* cut: U+DCC3 */
        tree_file(&tree, "c/line\nbreak\t.jpg", "");
        EXPECT(&tree, "0 c/line\nbreak\t.jpg", "0 c/\xc3\xa9.jpg", "0 c/\xc3.jpg", "0 c/\xff.jpg",
               "0 c/\xee\x80\x80.jpg", "0 c/\xf0\x9f\x98\x80.jpg");
        tree_remove(&tree);
}
END_TEST

START_TEST(the_order_of_names_is_a_total_order) {
        static const char *const SORTED[] = {
                "",
                "a",
                "a-b",
                "a/b",
                "a0",
                "a\xc3\xa9",
                "a\xed\x9f\xbf" /* U+D7FF */,
                "a\x80" /* U+DC80 */,
                "a\xc0\xaf",
                "a\xc3",
                "a\xc3z",
                "a\xe4\xb8",
                "a\xed\xa0\x80" /* an encoded surrogate */,
                "a\xf0\x9f\x98",
                "a\xf4\x90\x80\x80",
                "a\xff",
                "a\xee\x80\x80",
                "a\xef\xbf\xbf",
                "a\xf0\x90\x80\x80",
                "a\xf4\x8f\xbf\xbf",
                "b",
        };

        for (int i = 0; i < (int)ARRAY_SIZE(SORTED); i++)
                for (int k = 0; k < (int)ARRAY_SIZE(SORTED); k++) {
                        int compared = name_compare(SORTED[i], SORTED[k]);

                        ck_assert_msg((compared > 0) - (compared < 0) == (i > k) - (i < k), "%d against %d", i, k);
                }
}
END_TEST

START_TEST(links_are_followed_and_what_is_no_file_is_marked) {
        struct extent place;
        struct dataset *dataset;
        struct tree tree;

        tree_make(&tree);
        tree_file(&tree, "other/folder/deep.jpg", "12345");
        tree_file(&tree, "root/c/0.jpg", "123");
        tree_link(&tree, "root/c/1.jpg", "../../other/folder/deep.jpg");
        tree_link(&tree, "root/c/2.jpg", "nowhere");
        tree_link(&tree, "root/c/3.jpg", "3.jpg");
        tree_fifo(&tree, "root/c/4.jpg");
        tree_link(&tree, "root/c/linked", "../../other/folder");
        tree_link(&tree, "root/d", "../other/folder");
        tree_link(&tree, "root/broken-class", "nowhere");
        ck_assert_int_eq(open_tree(&tree, "root", &dataset, NULL), 0);
        {
                static const struct {
                        const char *dir, *name;
                        uint64_t length;
                        uint32_t flags;
                } EXPECTED[] = {
                        { "c", "0.jpg", 3, 0 },
                        { "c", "1.jpg", 5, 0 },
                        { "c", "2.jpg", 0, INDEX_FILE_UNREACHABLE },
                        { "c", "3.jpg", 0, INDEX_FILE_UNREACHABLE },
                        { "c", "4.jpg", 0, INDEX_FILE_NOT_REGULAR },
                        { "c/linked", "deep.jpg", 5, 0 },
                        { "d", "deep.jpg", 5, 0 },
                };
                const struct source *index = dataset_source(dataset);

                ck_assert_uint_eq(index->n_samples, ARRAY_SIZE(EXPECTED));
                for (size_t i = 0; i < ARRAY_SIZE(EXPECTED); i++) {
                        source_locate(index, i, 0, &place);
                        ck_assert_str_eq(place.dir, EXPECTED[i].dir);
                        ck_assert_str_eq(place.name, EXPECTED[i].name);
                        ck_assert_uint_eq(place.length, EXPECTED[i].length);
                        ck_assert_uint_eq(place.flags, EXPECTED[i].flags);
                        ck_assert_uint_eq(place.offset, 0);
                }
                ck_assert_uint_eq(index->n_classes, 2);
                ck_assert_str_eq(source_class_name(index, 1), "d");
                ck_assert_uint_eq(index->total_bytes, 18);
                ck_assert_uint_eq(index->max_length, 5);
        }
        dataset_unref(dataset);
        tree_remove(&tree);
}
END_TEST

START_TEST(a_link_that_leads_back_is_named_not_followed) {
        struct tree tree;

        tree_make(&tree);
        tree_file(&tree, "below/c/a/1.jpg", "");
        tree_link(&tree, "below/c/a/up", "..");
        expect_error(&tree, "below", -ELOOP, "c/a/up");
        tree_file(&tree, "self/c/1.jpg", "");
        tree_link(&tree, "self/c/here", ".");
        expect_error(&tree, "self", -ELOOP, "c/here");
        tree_file(&tree, "root/c/1.jpg", "");
        tree_link(&tree, "root/d", ".");
        expect_error(&tree, "root", -ELOOP, "d: this link leads back");
        tree_file(&tree, "above/c/1.jpg", "");
        tree_link(&tree, "above/c/up", "../..");
        expect_error(&tree, "above", -ELOOP, "leads back");
        tree_remove(&tree);
}
END_TEST

START_TEST(a_folder_that_is_no_imagefolder_is_refused_by_name) {
        struct tree tree;

        tree_make(&tree);
        expect_error(&tree, "missing", -ENOENT, "missing");
        tree_file(&tree, "flat/1.jpg", "");
        expect_error(&tree, "flat", -ENOENT, "no class folder");
        expect_error(&tree, "flat/1.jpg", -ENOTDIR, "flat/1.jpg");
        tree_file(&tree, "partly/full/1.jpg", "");
        tree_file(&tree, "partly/empty/notes.txt", "");
        tree_dir(&tree, "partly/void");
        expect_error(&tree, "partly", -ENOENT, "classes empty, void;");
        tree_link(&tree, "odd/loop", "loop");
        expect_error(&tree, "odd", -ELOOP, "odd/loop");
        tree_remove(&tree);
}
END_TEST

START_TEST(many_empty_classes_are_not_all_listed) {
        struct tree tree;
        char name[300];

        tree_make(&tree);
        for (int i = 0; i < 200; i++) {
                snprintf(name, sizeof(name), "%03d-%0*d", i, i, i);
                tree_dir(&tree, name);
        }
        expect_error(&tree, "", -ENOENT, "...;");
        tree_remove(&tree);
}
END_TEST

START_TEST(a_folder_that_may_not_be_read_is_an_error_not_a_loss) {
        struct tree tree;

        tree_make(&tree);
        tree_file(&tree, "c/1.jpg", "");
        tree_file(&tree, "c/private/2.jpg", "");
        ck_assert_int_eq(fchmodat(tree.fd, "c/private", 0, 0), 0);
        if (geteuid() == 0) /* root may read everything */
                ck_assert_int_eq(seteuid(65534), 0);
        expect_error(&tree, "", -EACCES, "c/private");
        if (getuid() == 0)
                ck_assert_int_eq(seteuid(0), 0);
        ck_assert_int_eq(fchmodat(tree.fd, "c/private", 0755, 0), 0);
        tree_remove(&tree);
}
END_TEST

/* Folders in folders, made and removed one step at a time since no call takes so long a path. */
START_TEST(a_path_that_is_too_long_is_named) {
        enum {
                N_LEVELS = 20,
                N_NAME = 250
        };
        struct tree tree;
        char name[N_NAME + 1];
        int fds[N_LEVELS + 1];

        tree_make(&tree);
        tree_dir(&tree, "c");
        memset(name, 'n', N_NAME);
        name[N_NAME] = '\0';
        fds[0] = openat(tree.fd, "c", O_RDONLY | O_DIRECTORY);
        for (int i = 0; i < N_LEVELS; i++) {
                ck_assert_int_eq(mkdirat(fds[i], name, 0755), 0);
                fds[i + 1] = openat(fds[i], name, O_RDONLY | O_DIRECTORY);
        }
        expect_error(&tree, "", -ENAMETOOLONG, "4095 bytes");
        for (int i = N_LEVELS; i > 0; i--) {
                close(fds[i]);
                ck_assert_int_eq(unlinkat(fds[i - 1], name, AT_REMOVEDIR), 0);
        }
        close(fds[0]);
        tree_remove(&tree);
}
END_TEST

START_TEST(deep_folders_need_few_descriptors) {
        struct rlimit before, few;
        struct tree tree;
        char path[1024] = "c";

        tree_make(&tree);
        for (int i = 0; i < 300; i++)
                strcat(path, "/d");
        strcat(path, "/deep.jpg");
        tree_file(&tree, path, "");
        getrlimit(RLIMIT_NOFILE, &before);
        few = (struct rlimit){ .rlim_cur = 32, .rlim_max = before.rlim_max };
        setrlimit(RLIMIT_NOFILE, &few);
        {
                struct dataset *dataset;
                struct why why = { 0 };

                ck_assert_msg(open_tree(&tree, "", &dataset, &why) == 0, "%s", why.text);
                ck_assert_uint_eq(dataset_source(dataset)->n_samples, 1);
                dataset_unref(dataset);
        }
        setrlimit(RLIMIT_NOFILE, &before);
        tree_remove(&tree);
}
END_TEST

struct onlooker {
        atomic_bool cancel;
        uint64_t n_files;
        unsigned n_calls;
};

static void see_progress(void *userdata, uint64_t n_files) {
        struct onlooker *onlooker = userdata;

        ck_assert_uint_ge(n_files, onlooker->n_files);
        onlooker->n_files = n_files;
        onlooker->n_calls++;
}

START_TEST(progress_is_shown_and_building_can_be_cancelled) {
        struct onlooker onlooker = { .cancel = false };
        struct index_watch watch = { .progress = see_progress, .userdata = &onlooker, .cancel = &onlooker.cancel };
        struct index_builder *builder;
        struct files files = { 0 };
        struct why why = { 0 };
        struct tree tree;
        char name[64];

        tree_make(&tree);
        files.root = tree.root;
        for (int i = 0; i < 9000; i++) {
                snprintf(name, sizeof(name), "c/%d.jpg", i);
                tree_file(&tree, name, "");
        }
        ck_assert_int_eq(format_build(&format_imagefolder, tree.fd, &files, NULL, &watch, &builder, &why), 0);
        index_builder_free(builder);
        ck_assert_uint_eq(onlooker.n_files, 9000);
        ck_assert_uint_ge(onlooker.n_calls, 3);

        atomic_store(&onlooker.cancel, true);
        ck_assert_int_eq(format_build(&format_imagefolder, tree.fd, &files, NULL, &watch, &builder, &why), -ECANCELED);
        tree_remove(&tree);
}
END_TEST

START_TEST(an_unknown_format_is_answered_with_the_known_ones) {
        const struct format *format = NULL;
        struct why why = { 0 };

        ck_assert_int_eq(format_find("imagefolders", &format, &why), -EINVAL);
        ck_assert_ptr_null(format);
        ck_assert_ptr_nonnull(strstr(
                why.text,
                "unknown format \"imagefolders\" (did you mean \"imagefolder\"?); choose one of: auto, arrow, "));
        ck_assert_ptr_nonnull(strstr(why.text, ", imagefolder, "));
        ck_assert_int_eq(format_find("imagefolder", &format, &why), 0);
        ck_assert_ptr_eq(format, &format_imagefolder);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("imagefolder");
        TCase *tests = tcase_create("all");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(tests, 60);
        tcase_add_test(tests, classes_and_files_come_sorted_and_filtered_by_extension);
        tcase_add_test(tests, directories_sort_by_their_whole_path);
        tcase_add_test(tests, names_that_are_not_ascii_sort_as_python_sorts_them);
        tcase_add_test(tests, the_order_of_names_is_a_total_order);
        tcase_add_test(tests, links_are_followed_and_what_is_no_file_is_marked);
        tcase_add_test(tests, a_link_that_leads_back_is_named_not_followed);
        tcase_add_test(tests, a_folder_that_is_no_imagefolder_is_refused_by_name);
        tcase_add_test(tests, many_empty_classes_are_not_all_listed);
        tcase_add_test(tests, a_folder_that_may_not_be_read_is_an_error_not_a_loss);
        tcase_add_test(tests, a_path_that_is_too_long_is_named);
        tcase_add_test(tests, deep_folders_need_few_descriptors);
        tcase_add_test(tests, progress_is_shown_and_building_can_be_cancelled);
        tcase_add_test(tests, an_unknown_format_is_answered_with_the_known_ones);
        suite_add_tcase(suite, tests);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
