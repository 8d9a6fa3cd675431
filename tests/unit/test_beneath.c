/* Files within a folder, wherever links lead (base/machine/beneath.h). */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

static struct tree tree;
static char root[128];
static int inside, follows; /* two roots of the same folder */

static void begin(void) {
        struct why why = { 0 };
        char link[128];

        tree_make(&tree);
        tree_file(&tree, "secret/file", "secret");
        tree_file(&tree, "d/sub/file", "of the dataset");
        tree_link(&tree, "link", "d"); /* the folder itself may be reached through a link */
        snprintf(root, sizeof(root), "%s/d", tree.root);
        snprintf(link, sizeof(link), "%s/link", tree.root);
        inside = beneath_root(link, false, &why);
        ck_assert_msg(inside >= 0, "%s", why.text);
        follows = beneath_root(link, true, &why);
        ck_assert_int_ge(follows, 0);
}

static void end(void) {
        close(inside);
        close(follows);
        tree_remove(&tree);
}

/* 0 or the errno, which beneath_open() and beneath_stat() must agree on. */
static int error_of(int root_fd, const char *path) {
        _cleanup_(closep) int fd = beneath_open(root_fd, path, O_RDONLY | O_CLOEXEC);
        int error = fd < 0 ? errno : 0;
        struct stat status;

        ck_assert_int_eq(beneath_stat(root_fd, path, &status) < 0 ? errno : 0, error);
        return error;
}

START_TEST(links_lead_anywhere_inside_and_nowhere_else) {
        char absolute[256];
        const struct {
                const char *target; /* of d/l */
                int error, followed;
        } rows[] = {
                { "sub/file", 0, 0 },
                { "sub/../sub/./file", 0, 0 },
                { "../d/sub/file", EXDEV, 0 }, /* out and in again */
                { "../secret/file", EXDEV, 0 },
                { "sub/../../secret/file", EXDEV, 0 },
                { "../nothing", EXDEV, ENOENT }, /* whether it is there is not told */
                { absolute, EXDEV, 0 },
                { "/nothing", EXDEV, ENOENT },
                { "nothing", ENOENT, ENOENT },
                { "l", ELOOP, ELOOP },
        };

        begin();
        snprintf(absolute, sizeof(absolute), "%s/sub/file", root);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                tree_link(&tree, "d/l", rows[i].target);
                ck_assert_msg(error_of(inside, "l") == rows[i].error, "%s: %d", rows[i].target, error_of(inside, "l"));
                ck_assert_int_eq(error_of(follows, "l"), rows[i].followed);
                ck_assert_int_eq(unlinkat(tree.fd, "d/l", 0), 0);
        }
        tree_link(&tree, "d/folder", "../secret");
        ck_assert_int_eq(error_of(inside, "folder/file"), EXDEV);
        ck_assert_int_eq(error_of(inside, "../secret/file"), EXDEV);
        ck_assert_int_eq(error_of(inside, "sub/file/.."), ENOTDIR);
        end();
}

START_TEST(a_copy_of_the_descriptor_is_the_same_kind_of_root) {
        int number;

        begin();
        number = dup(inside);
        tree_link(&tree, "d/l", "../secret/file");
        ck_assert_int_eq(error_of(number, "l"), EXDEV);
        ck_assert_int_ge(dup3(follows, number, O_CLOEXEC), 0);
        ck_assert_int_eq(error_of(number, "l"), 0);
        ck_assert_int_ge(dup3(inside, number, O_CLOEXEC), 0);
        ck_assert_int_eq(error_of(number, "l"), EXDEV);
        close(number);
        end();
}

START_TEST(an_entry_that_is_a_link_is_looked_at_from_the_root) {
        _cleanup_(closep) int sub = -1;
        struct stat status;

        begin();
        sub = beneath_open(inside, "sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        tree_link(&tree, "d/sub/up", "../sub/file"); /* leads out of sub, and not out of the root */
        tree_link(&tree, "d/sub/out", "../../secret/file");
        ck_assert_int_eq(beneath_stat_entry(inside, "sub/file", sub, "file", &status), 0);
        ck_assert_int_eq(beneath_stat_entry(inside, "sub/up", sub, "up", &status), 0);
        ck_assert_int_eq(status.st_size, strlen("of the dataset"));
        ck_assert_int_eq(beneath_stat_entry(inside, "sub/out", sub, "out", &status), -1);
        ck_assert_int_eq(errno, EXDEV);
        ck_assert_int_eq(beneath_stat_entry(follows, "sub/out", sub, "out", &status), 0);
        end();
}

START_TEST(links_of_proc_are_refused_even_where_proc_is_inside) {
        struct why why;
        _cleanup_(closep) int proc = beneath_root("/proc/self", false, &why);
        char name[32];

        begin();
        snprintf(name, sizeof(name), "fd/%d", tree.fd);
        ck_assert_int_ge(proc, 0);
        ck_assert_int_eq(error_of(proc, name), ELOOP);
        ck_assert_int_eq(error_of(proc, "root/etc"), ELOOP);
        ck_assert_int_eq(error_of(proc, "statm"), 0);
        end();
}

/* 0 or the errno. */
static int named(const char *path) {
        _cleanup_(closep) int fd = beneath_open_named(inside, root, path, O_RDONLY | O_CLOEXEC);
        int error = fd < 0 ? errno : 0;
        struct stat status;

        ck_assert_int_eq(beneath_stat_named(inside, root, path, &status) < 0 ? errno : 0, error);
        return error;
}

START_TEST(what_the_configuration_names_may_lie_elsewhere_and_is_no_link_out_of_its_folder) {
        char path[256];

        begin();
        tree_file(&tree, "lists/one", "1");
        tree_link(&tree, "lists/two", "one");
        tree_link(&tree, "lists/three", "../secret/file");
        tree_link(&tree, "d/lists", "../lists");
        for (unsigned i = 0; i < 3; i++) {
                static const char *const NAMES[] = { "one", "two", "three" };

                snprintf(path, sizeof(path), "%s/lists/%s", tree.root, NAMES[i]);
                ck_assert_int_eq(named(path), i < 2 ? 0 : EXDEV);
                snprintf(path, sizeof(path), "../lists/%s", NAMES[i]);
                ck_assert_int_eq(named(path), i < 2 ? 0 : EXDEV);
                snprintf(path, sizeof(path), "%s/lists/%s", root, NAMES[i]); /* by a link in the root */
                ck_assert_int_eq(named(path), EXDEV);
        }
        snprintf(path, sizeof(path), "%s//sub/file", root);
        ck_assert_int_eq(named(path), 0);
        ck_assert_int_eq(named("sub/file"), 0);
        snprintf(path, sizeof(path), "%s/lists/two", tree.root);
        ck_assert_int_eq(error_of(inside, path), 0); /* formats remember such a name */
        snprintf(path, sizeof(path), "%s/lists/three", tree.root);
        ck_assert_int_eq(error_of(inside, path), EXDEV);
        end();
}

START_TEST(a_folder_that_is_not_there_is_named) {
        struct why why = { 0 };

        ck_assert_int_eq(beneath_root("/nowhere", false, &why), -ENOENT);
        ck_assert_str_eq(why.text, "/nowhere: No such file or directory");
}

int main(void) {
        const struct suite_row rows[] = {
                { "links", links_lead_anywhere_inside_and_nowhere_else },
                { "links", a_copy_of_the_descriptor_is_the_same_kind_of_root },
                { "links", an_entry_that_is_a_link_is_looked_at_from_the_root },
                { "links", links_of_proc_are_refused_even_where_proc_is_inside },
                { "links", what_the_configuration_names_may_lie_elsewhere_and_is_no_link_out_of_its_folder },
                { "links", a_folder_that_is_not_there_is_named },
        };

        return suite_run("beneath", rows, sizeof(rows) / sizeof(rows[0]));
}
