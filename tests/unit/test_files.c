/* Which files a dataset's path means: a folder, a file, a pattern with braces. */

#include "daemon/data/files/files.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/patterns/braces.h"
#include "daemon/base/patterns/glob_match.h"
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
        return files_find(whole, NULL, true, &files, &why);
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
        ck_assert_int_eq(files_find("x.tar", NULL, true, &files, &why), 0);
        ck_assert_str_eq(files.root, ".");
        ck_assert_str_eq(names(), "x.tar ");
        ck_assert_int_eq(chdir(before), 0);
}

START_TEST(a_pipe_is_one_file_that_says_so) {
        tree_fifo(&tree, "pipe");
        ck_assert_int_eq(find("pipe"), 0);
        ck_assert_str_eq(names(), "pipe ");
        ck_assert(files.is_pipe);
        tree_file(&tree, "x.tar", "x");
        ck_assert_int_eq(find("x.tar"), 0);
        ck_assert(!files.is_pipe);
}

START_TEST(what_is_neither_a_folder_nor_a_file_is_refused) {
        ck_assert_int_eq(files_find("/dev/null", NULL, true, &files, &why), -EINVAL);
        expect_refusal(-EINVAL, "/dev/null is neither a folder nor a file");
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
        ck_assert_ptr_nonnull(strstr(why.text, "/there, one of 2 files that the path names: No such file"));
        tree_dir(&tree, "there");
        ck_assert_int_eq(files_check(&wanted, tree.fd, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "/there is a folder, not a regular file"));
        ck_assert_int_eq(unlinkat(tree.fd, "there", AT_REMOVEDIR), 0);
        tree_fifo(&tree, "there");
        ck_assert_int_eq(files_check(&wanted, tree.fd, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "/there is not a regular file"));
}

/* ---- patterns -------------------------------------------------------------------------------------------------- */

struct expanded {
        char text[4096];
        size_t n;
};

static int append_expanded(void *userdata, const char *text, size_t n_bytes) {
        struct expanded *expanded = userdata;

        if (expanded->n < sizeof(expanded->text))
                expanded->n += (size_t)snprintf(expanded->text + expanded->n, sizeof(expanded->text) - expanded->n,
                                                "%s ", text);
        return 0;
}

/* The texts that come of a pattern, with a blank after each; or the refusal. */
static const char *expanded(const char *pattern) {
        static struct expanded all;
        struct braces_sink sink = { .give = append_expanded, .userdata = &all };

        all = (struct expanded){ 0 };
        if (braces_expand(pattern, &sink, &why) < 0)
                snprintf(all.text, sizeof(all.text), "%s", why.text);
        return all.text;
}

static const struct {
        const char *pattern, *path;
        bool is_match;
} MATCHES[] = {
        { "*.tar", "a.tar", true },
        { "*.tar", "d/a.tar", false },
        { "*.tar", ".a.tar", false },
        { ".*.tar", ".a.tar", true },
        { "d/a?.tar", "d/a1.tar", true },
        { "d/a?.tar", "d/a.tar", false },
        { "d/a", "d/a", true },
        { "d/a", "d/a/b", false },
        { "d/a/b", "d/a", false },
        { "**/*.tar", "a.tar", true },
        { "**/*.tar", "d/e/a.tar", true },
        { "**/*.tar", "d/.e/a.tar", false },
        { "**", "a", true },
        { "**", "d/e/a", true },
        { "**", "d/e/.a", false },
        { "d/**", "d/e/a", true },
        { "d/**", "e/e/a", false },
        { "d/**/x/*.bin", "d/x/a.bin", true },
        { "d/**/x/*.bin", "d/x/y/x/x/a.bin", true },
        { "d/**/x/*.bin", "d/x/y/a.bin", false },
        { "**/x/**/y/**", "a/x/b/x/y/c", true },
        { "**/x/**/y/**", "a/x/b/x/c", false },
        { "a**b", "a12b", true },
        { "a**b", "a1/2b", false },
        { "*", "", true },
        { "", "", true },
        { "", "a", false },
};

START_TEST(a_path_matches_as_in_a_shell) {
        char much[601] = "", deep[2001] = "";

        ck_assert_msg(glob_match_path(MATCHES[_i].pattern, MATCHES[_i].path) == MATCHES[_i].is_match, "%s, %s",
                      MATCHES[_i].pattern, MATCHES[_i].path);
        for (unsigned i = 0; i < 200; i++)
                strcat(much, "**/");
        for (unsigned i = 0; i < 1000; i++)
                strcat(deep, "a/");
        strcpy(much + 597, "**x");
        ck_assert(!glob_match_path(much, deep)); /* in time that is bounded */
        memset(deep, 'a', sizeof(deep) - 1);
        ck_assert(!glob_match_path("*", deep)); /* longer than names may be */
}
END_TEST

START_TEST(braces_expand_as_shells_expand_them) {
        ck_assert_str_eq(expanded("x.tar"), "x.tar ");
        ck_assert_str_eq(expanded("x-{0..3}.tar"), "x-0.tar x-1.tar x-2.tar x-3.tar ");
        ck_assert_str_eq(expanded("{008..011}"), "008 009 010 011 ");
        ck_assert_str_eq(expanded("{8..011}"), "008 009 010 011 ");
        ck_assert_str_eq(expanded("{08..100..46}"), "008 054 100 ");
        ck_assert_str_eq(expanded("{0..10..5}{a,b}"), "0a 0b 5a 5b 10a 10b ");
        ck_assert_str_eq(expanded("{3..1}"), "3 2 1 ");
        ck_assert_str_eq(expanded("{5..5}"), "5 ");
        ck_assert_str_eq(expanded("{0..7..3}"), "0 3 6 ");
        ck_assert_str_eq(expanded("{7..0..3}"), "7 4 1 ");
        ck_assert_str_eq(expanded("{train,val}-{00..01}.tar"), "train-00.tar train-01.tar val-00.tar val-01.tar ");
        ck_assert_str_eq(expanded("{a,b{1,2{x,y}},c}d"), "ad b1d b2xd b2yd cd ");
        ck_assert_str_eq(expanded("{{1..2},{8..9}}"), "1 2 8 9 ");
        ck_assert_str_eq(expanded("x{,-1,-2}.tar"), "x.tar x-1.tar x-2.tar ");
        ck_assert_str_eq(expanded("{,a,}b"), "b ab b ");
        ck_assert_str_eq(expanded("{0..1},{0..1}"), "0,0 0,1 1,0 1,1 ");
        ck_assert_str_eq(expanded("x-{a..c}{0..1}"), "x-a0 x-a1 x-b0 x-b1 x-c0 x-c1 ");
        ck_assert_str_eq(expanded("{f..a..2}{Y..Z}"), "fY fZ dY dZ bY bZ ");
}

START_TEST(braces_that_mean_nothing_are_refused_with_what_is_allowed) {
        static const struct {
                const char *pattern, *words;
        } REFUSED[] = {
                { "x-{0..3.tar", "x-{0..3.tar: a brace is not closed" },
                { "{{a,b}", "a brace is not closed" },
                { "x-{a,b}}.tar", "the brace at character 8 closes nothing" },
                { "}{", "the brace at character 1 closes nothing" },
                { "x-{}.tar", "\"{}\" is neither a list such as {a,b} nor a range such as {000..127}" },
                { "x-{a}.tar", "\"{a}\" is neither" },
                { "x-{a..C}.tar", "\"{a..C}\" is neither" },
                { "x-{a..3}.tar", "\"{a..3}\" is neither" },
                { "x-{ab..c}.tar", "\"{ab..c}\" is neither" },
                { "{a..bc}", "\"{a..bc}\" is neither" },
                { "{a..c..0}", "\"{a..c..0}\" is neither" },
                { "{a..}", "\"{a..}\" is neither" },
                { "x-{-1..3}.tar", "\"{-1..3}\" is neither" },
                { "{0..3..0}", "\"{0..3..0}\" is neither" },
                { "{0..}", "\"{0..}\" is neither" },
                { "{0...3}", "\"{0...3}\" is neither" },
                { "{0..3..}", "\"{0..3..}\" is neither" },
                { "{0..3.5}", "\"{0..3.5}\" is neither" },
                { "{0..9999999999999999999}", "is neither" },
                { "{0..{1,2}}", "\"{0..{1,2}}\" is neither" },
                { "{0..999999999999}", "it stands for more than 1000000 names" },
                { "{0..999}{0..999}{0..999}", "it stands for more than 1000000 names" },
                { "{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}", "more than 1000000" },
                { "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"
                  "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
                  "more than 32 braces" },
        };

        for (size_t i = 0; i < sizeof(REFUSED) / sizeof(REFUSED[0]); i++) {
                const char *said = expanded(REFUSED[i].pattern);

                ck_assert_msg(strstr(said, REFUSED[i].words), "%s: \"%s\"", REFUSED[i].pattern, said);
        }
}

START_TEST(names_that_would_fill_the_memory_are_refused) {
        char pattern[3000];
        size_t n = 0;

        for (; n < 2000; n++)
                pattern[n] = 'x';
        strcpy(pattern + n, "{0..999999}");
        ck_assert_ptr_nonnull(strstr(expanded(pattern), "names of more than 256 MiB"));
}

START_TEST(a_pattern_is_meant_as_its_files_in_the_folder_before_the_first_brace) {
        tree_dir(&tree, "d");
        ck_assert_int_eq(find("d/x-{2..0}.tar"), 0);
        ck_assert_str_eq(files.root + strlen(tree.root), "/d");
        ck_assert_str_eq(names(), "x-2.tar x-1.tar x-0.tar ");
        ck_assert_int_eq(find("d/{b,a}/x-{0..1}.tar"), 0);
        ck_assert_str_eq(files.root + strlen(tree.root), "/d");
        ck_assert_str_eq(names(), "b/x-0.tar b/x-1.tar a/x-0.tar a/x-1.tar ");
        ck_assert_int_eq(find("d{/a,/b/}/x.tar"), 0);
        ck_assert_str_eq(files.root, tree.root);
        ck_assert_str_eq(names(), "d/a/x.tar d/b/x.tar ");
        ck_assert_int_eq(find("d/{,a}/x.tar"), 0);
        ck_assert_str_eq(names(), "x.tar a/x.tar ");
        ck_assert_int_eq(files_find("/{usr,etc}/x", NULL, true, (files_fini(&files), &files), &why), 0);
        ck_assert_str_eq(files.root, "/");
        ck_assert_str_eq(names(), "usr/x etc/x ");
        ck_assert_int_eq(files_find("{usr,etc}/x", NULL, true, (files_fini(&files), &files), &why), 0);
        ck_assert_str_eq(files.root, ".");
        ck_assert_str_eq(names(), "usr/x etc/x ");
}

START_TEST(a_path_that_exists_as_it_is_written_is_no_pattern) {
        tree_file(&tree, "d/x{1,2}.tar", "x");
        tree_dir(&tree, "{a,b}");
        ck_assert_int_eq(find("d/x{1,2}.tar"), 0);
        ck_assert_str_eq(names(), "x{1,2}.tar ");
        ck_assert_int_eq(find("{a,b}"), 0);
        ck_assert_uint_eq(files.n_names, 0);
}

START_TEST(a_list_may_be_longer_than_a_name) {
        char pattern[3000] = "{";
        size_t n = 1;

        for (int i = 0; i < 200; i++)
                n += (size_t)snprintf(pattern + n, sizeof(pattern) - n, "%ssample-%d", i ? "," : "", i * i);
        strcpy(pattern + n, "}.tar");
        ck_assert_int_eq(find(pattern), 0);
        ck_assert_uint_eq(files.n_names, 200);
        ck_assert_str_eq(files.names[199], "sample-39601.tar");
}

START_TEST(a_pattern_that_leads_elsewhere_or_names_a_file_twice_is_refused) {
        ck_assert_int_eq(find("d/{a,../b}/x.tar"), -EINVAL);
        expect_refusal(-EINVAL, "\"../b/x.tar\"; after its first brace");
        ck_assert_int_eq(find("d/{a,b}/./x.tar"), -EINVAL);
        expect_refusal(-EINVAL, "\"a/./x.tar\"; after");
        ck_assert_int_eq(find("d/{a,}"), -EINVAL);
        expect_refusal(-EINVAL, "\"\"; after");
        ck_assert_int_eq(find("d/{a,b}/"), -EINVAL);
        expect_refusal(-EINVAL, "\"a/\"; after");
        ck_assert_int_eq(find("d/x-{1..3,2}.tar"), 0); /* a list of "1..3" and "2" */
        ck_assert_str_eq(names(), "x-1..3.tar x-2.tar ");
        ck_assert_int_eq(find("d/x-{{1..3},2}.tar"), -EINVAL);
        expect_refusal(-EINVAL, "names x-2.tar twice");
        ck_assert_int_eq(find("d/x-{0..3.tar"), -EINVAL);
        expect_refusal(-EINVAL, "x-{0..3.tar: a brace is not closed");
}

/* What a path of parts means; in each part, "@" is the test's folder. */
static int find_parts(const char *path) {
        char whole[4 * PATH_MAX];
        size_t n = 0;

        for (; *path; path++)
                n += (size_t)snprintf(whole + n, sizeof(whole) - n, *path == '@' ? "%s" : "%.1s",
                                      *path == '@' ? tree.root : path);
        files_fini(&files);
        return files_find(whole, NULL, true, &files, &why);
}

START_TEST(parts_are_their_files_one_after_the_other_in_the_deepest_folder_of_all) {
        ck_assert_int_eq(find_parts("@/d/a-{000..002}.tar::@/e/b-{1..0}.tar"), 0);
        ck_assert_str_eq(files.root, tree.root);
        ck_assert_str_eq(names(), "d/a-000.tar d/a-001.tar d/a-002.tar e/b-1.tar e/b-0.tar ");
        ck_assert_int_eq(find_parts("@/d/{b,a{1..2}}.tar::@/d/c.tar::@/d//c/x.tar"), 0);
        ck_assert_str_eq(files.root + strlen(tree.root), "/d");
        ck_assert_str_eq(names(), "b.tar a1.tar a2.tar c.tar c/x.tar ");
        ck_assert_int_eq(find_parts("@/d/x.tar::@/dd/x.tar"), 0); /* whole names of folders, not their beginnings */
        ck_assert_str_eq(files.root, tree.root);
        ck_assert_str_eq(names(), "d/x.tar dd/x.tar ");
        ck_assert_int_eq(find_parts("@/d/e/x.tar::@/d{/e,}/y.tar"), 0);
        ck_assert_str_eq(files.root, tree.root);
        ck_assert_str_eq(names(), "d/e/x.tar d/e/y.tar d/y.tar ");
        ck_assert_int_eq(find_parts("/usr/x.tar::/etc/{a,b}.tar"), 0);
        ck_assert_str_eq(files.root, "/");
        ck_assert_str_eq(names(), "usr/x.tar etc/a.tar etc/b.tar ");
}

START_TEST(a_path_that_exists_as_it_is_written_has_no_parts) {
        tree_file(&tree, "a::b.tar", "x");
        tree_dir(&tree, "c::d");
        ck_assert_int_eq(find("a::b.tar"), 0);
        ck_assert_str_eq(names(), "a::b.tar ");
        ck_assert_int_eq(find("c::d"), 0);
        ck_assert_uint_eq(files.n_names, 0);
}

START_TEST(parts_that_name_nothing_or_a_file_twice_are_refused) {
        static const struct {
                const char *path, *words;
        } REFUSED[] = {
                { "@/a.tar::",
                  "a part of it, or of what is merged with it, is empty; write :: only between two parts" },
                { "::@/a.tar", "a part of it" },
                { "@/a.tar::::@/b.tar", "a part of it" },
                { "@/a.tar::b.tar", "\"b.tar\", a part of it or of what is merged with it, does not begin with /" },
                { "@/a.tar:::@/b.tar", "\":/" },
                { "@/{a::@/b}.tar", "a brace is not closed" },
                { "@/a.tar::@/{0..1", "a brace is not closed" },
                { "@/d/a.tar::@/d/{b,a}.tar", "the path names a.tar twice" },
                { "@/d/a.tar::@/d//a.tar", "the path names a.tar twice" },
                { "@/d/a.tar::@/e/../d/a.tar", "\"e/../d/a.tar\"; after its first brace it names files" },
                { "@/d/a.tar::@/d/", "stands for \"\"" },
                { "@/a-{0..600000}.tar::@/b-{0..600000}.tar", "it stands for more than 1000000 names" },
        };

        for (size_t i = 0; i < sizeof(REFUSED) / sizeof(REFUSED[0]); i++) {
                int r = find_parts(REFUSED[i].path);

                ck_assert_msg(r < 0 && strstr(why.text, REFUSED[i].words), "%s: %d \"%s\"", REFUSED[i].path, r,
                              why.text);
                ck_assert_ptr_null(files.root);
        }
}

START_TEST(a_part_that_is_a_folder_is_an_error_that_says_what_to_write) {
        tree_file(&tree, "x.tar", "x");
        tree_dir(&tree, "d");
        ck_assert_int_eq(find_parts("@/x.tar::@/d"), 0);
        ck_assert_int_eq(files_check(&files, tree.fd, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "/d is a folder, not a regular file; name its files, as in DIR/x-{0"));
}

/* Merges the lists with the path; in each, "@" is the test's folder. */
static int find_merged(const char *path, const char *merge) {
        char texts[2][4 * PATH_MAX] = { "", "" };

        for (int i = 0; i < 2; i++) {
                size_t n = 0;

                for (const char *at = i == 0 ? path : merge; *at; at++)
                        n += (size_t)snprintf(texts[i] + n, sizeof(texts[i]) - n, *at == '@' ? "%s" : "%.1s",
                                              *at == '@' ? tree.root : at);
        }
        files_fini(&files);
        return files_find(texts[0], texts[1], true, &files, &why);
}

static const char *merged(void) {
        static char text[4096];
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = files.n_names; i < files_n_all(&files) && n < sizeof(text); i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s ", files.names[i]);
        return text;
}

START_TEST(lists_that_are_merged_follow_the_names_of_the_path) {
        ck_assert_int_eq(find_merged("@/d/a-{0..1}.tar", "@/d/b-{0..1}.tar"), 0);
        ck_assert_str_eq(files.root + strlen(tree.root), "/d");
        ck_assert_str_eq(names(), "a-0.tar a-1.tar ");
        ck_assert_str_eq(merged(), "b-0.tar b-1.tar ");
        ck_assert_uint_eq(files.n_merged, 1);
        ck_assert_int_eq(find_merged("@/d/a.tar::@/e/b.tar", "@/f/{x,y}.tar , @/g/z.tar::@/h/z.tar,@/i/{u,v,}"),
                         -EINVAL);
        expect_refusal(-EINVAL, "the path names 2 files, and the list \"");
        expect_refusal(-EINVAL, "/i/{u,v,}\" that is merged with it 3: each file of the path needs one");
        ck_assert_int_eq(find_merged("@/d/a.tar::@/e/b.tar", "@/f/{x,y}.tar , @/g/z.tar::@/h/z.tar,@/i/{u,v}"), 0);
        ck_assert_str_eq(files.root, tree.root);
        ck_assert_str_eq(names(), "d/a.tar e/b.tar ");
        ck_assert_str_eq(merged(), "f/x.tar f/y.tar g/z.tar h/z.tar i/u i/v ");
        ck_assert_uint_eq(files.n_merged, 3);
}

START_TEST(lists_that_cannot_be_merged_are_refused) {
        static const struct {
                const char *path, *merge, *words;
        } REFUSED[] = {
                { "@/a{0..2}.tar", "@/b{0..1}.tar", "the path names 3 files, and the list \"" },
                { "@/a{0..1}.tar", "@/b{0..2}.tar", "that is merged with it 3: each file" },
                { "@/a{0..1}.tar", "b{0..1}.tar", "\"b{0..1}.tar\", a part of it or of what is merged" },
                { "@/a{0..1}.tar", "", "is empty" },
                { "@/a{0..1}.tar", "@/a{1..2}.tar", "the path names a1.tar twice" },
                { "@/d", "@/a.tar", "is a folder; with merge, the path names the archives" },
                { "@/pipe", "@/a.tar", "is a pipe: nothing can be merged with it" },
                { "@/a{0..1}.tar",
                  "/1/{a,b},/2/{a,b},/3/{a,b},/4/{a,b},/5/{a,b},/6/{a,b},/7/{a,b},/8/{a,b},/9/{a,b},/10/{a,b},/11/{a,b},"
                  "/12/{a,b},/13/{a,b},/14/{a,b},/15/{a,b},/16/{a,b},/17/{a,b}",
                  "17 lists are to be merged with it, and 16 may be" },
        };

        tree_dir(&tree, "d");
        tree_fifo(&tree, "pipe");
        for (size_t i = 0; i < sizeof(REFUSED) / sizeof(REFUSED[0]); i++) {
                int r = find_merged(REFUSED[i].path, REFUSED[i].merge);

                ck_assert_msg(r < 0 && strstr(why.text, REFUSED[i].words), "%s, %s: %d \"%s\"", REFUSED[i].path,
                              REFUSED[i].merge, r, why.text);
        }
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
        tcase_add_test(tests, a_pipe_is_one_file_that_says_so);
        tcase_add_test(tests, what_is_neither_a_folder_nor_a_file_is_refused);
        tcase_add_test(tests, a_named_file_that_is_gone_or_no_file_is_an_error_with_its_name);
        tcase_add_loop_test(tests, a_path_matches_as_in_a_shell, 0, sizeof(MATCHES) / sizeof(MATCHES[0]));
        tcase_add_test(tests, braces_expand_as_shells_expand_them);
        tcase_add_test(tests, braces_that_mean_nothing_are_refused_with_what_is_allowed);
        tcase_add_test(tests, names_that_would_fill_the_memory_are_refused);
        tcase_add_test(tests, a_pattern_is_meant_as_its_files_in_the_folder_before_the_first_brace);
        tcase_add_test(tests, a_path_that_exists_as_it_is_written_is_no_pattern);
        tcase_add_test(tests, a_list_may_be_longer_than_a_name);
        tcase_add_test(tests, a_pattern_that_leads_elsewhere_or_names_a_file_twice_is_refused);
        tcase_add_test(tests, parts_are_their_files_one_after_the_other_in_the_deepest_folder_of_all);
        tcase_add_test(tests, a_path_that_exists_as_it_is_written_has_no_parts);
        tcase_add_test(tests, parts_that_name_nothing_or_a_file_twice_are_refused);
        tcase_add_test(tests, a_part_that_is_a_folder_is_an_error_that_says_what_to_write);
        tcase_add_test(tests, lists_that_are_merged_follow_the_names_of_the_path);
        tcase_add_test(tests, lists_that_cannot_be_merged_are_refused);
        suite_add_tcase(suite, tests);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? 0 : 1;
}
