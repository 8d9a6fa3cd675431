/* Which files a dataset's path means. */

#include "daemon/data/files.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/tree.h"

static struct tree tree;
static struct files files;
static struct why why;

static void setup(void) {
        tree_make(&tree);
        files = (struct files){ 0 };
        why.text[0] = '\0';
}

static void teardown(void) {
        files_fini(&files);
        tree_remove(&tree);
}

/* What the path below the test's folder means; "" for the folder itself. */
static int find(const char *path) {
        char whole[PATH_MAX];

        files_fini(&files);
        snprintf(whole, sizeof(whole), "%s%s%s", tree.root, path[0] ? "/" : "", path);
        return files_find(whole, &files, &why);
}

/* The names, with a blank after each. */
static const char *names(void) {
        static char text[4096];
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < files.n_names && n < sizeof(text); i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s ", files.names[i]);
        return text;
}

static void expect_refusal(int error, const char *words) {
        ck_assert_ptr_null(files.root);
        ck_assert_msg(strstr(why.text, words) != NULL, "\"%s\" lacks \"%s\" (%d)", why.text, words, error);
}

START_TEST(a_folder_is_meant_as_a_whole) {
        tree_dir(&tree, "d/e");
        ck_assert_int_eq(find("d"), 0);
        ck_assert_str_eq(files.root + strlen(tree.root), "/d");
        ck_assert_uint_eq(files.n_names, 0);
        tree_link(&tree, "link", "d");
        ck_assert_int_eq(find("link"), 0);
        ck_assert_uint_eq(files.n_names, 0);
}

START_TEST(a_file_is_meant_alone_in_its_folder) {
        tree_file(&tree, "d/x.tar", "x");
        tree_file(&tree, "d/y.tar", "y");
        ck_assert_int_eq(find("d/x.tar"), 0);
        ck_assert_str_eq(files.root + strlen(tree.root), "/d");
        ck_assert_str_eq(names(), "x.tar ");
        tree_link(&tree, "link", "d/y.tar"); /* the link is the name: it may lead elsewhere later */
        ck_assert_int_eq(find("link"), 0);
        ck_assert_str_eq(files.root, tree.root);
        ck_assert_str_eq(names(), "link ");
}

START_TEST(a_path_without_a_folder_is_relative) {
        char before[PATH_MAX];

        tree_file(&tree, "x.tar", "x");
        ck_assert(getcwd(before, sizeof(before)) && chdir(tree.root) == 0);
        ck_assert_int_eq(files_find("x.tar", &files, &why), 0);
        ck_assert_str_eq(files.root, ".");
        ck_assert_str_eq(names(), "x.tar ");
        ck_assert_int_eq(chdir(before), 0);
}

START_TEST(what_is_neither_a_folder_nor_a_file_is_refused) {
        tree_fifo(&tree, "pipe");
        ck_assert_int_eq(find("pipe"), -EINVAL);
        expect_refusal(-EINVAL, "pipe is neither a folder nor a file");
        ck_assert_int_eq(find("nowhere"), -ENOENT);
        expect_refusal(-ENOENT, "/nowhere cannot be opened: No such file or directory");
        tree_file(&tree, "x.tar", "x");
        ck_assert_int_eq(find("x.tar/"), -ENOTDIR);
        expect_refusal(-ENOTDIR, "cannot be opened");
}

START_TEST(a_named_file_that_is_gone_or_no_file_is_an_error_with_its_name) {
        const char *some[] = { "here", "there" };
        struct files wanted = { .root = tree.root, .names = some, .n_names = 2 };

        tree_file(&tree, "here", "x");
        tree_file(&tree, "there", "x");
        ck_assert_int_eq(files_check(&wanted, tree.fd, &why), 0);
        ck_assert_int_eq(unlinkat(tree.fd, "there", 0), 0);
        ck_assert_int_eq(files_check(&wanted, tree.fd, &why), -ENOENT);
        ck_assert_ptr_nonnull(strstr(why.text, "/there: No such file"));
        tree_dir(&tree, "there");
        ck_assert_int_eq(files_check(&wanted, tree.fd, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "/there is not a regular file"));
}

int main(void) {
        Suite *suite = suite_create("files");
        TCase *tests = tcase_create("files");
        SRunner *runner;
        int n_failed;

        tcase_add_checked_fixture(tests, setup, teardown);
        tcase_add_test(tests, a_folder_is_meant_as_a_whole);
        tcase_add_test(tests, a_file_is_meant_alone_in_its_folder);
        tcase_add_test(tests, a_path_without_a_folder_is_relative);
        tcase_add_test(tests, what_is_neither_a_folder_nor_a_file_is_refused);
        tcase_add_test(tests, a_named_file_that_is_gone_or_no_file_is_an_error_with_its_name);
        suite_add_tcase(suite, tests);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? 0 : 1;
}
