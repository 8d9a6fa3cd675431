/* Folders by pattern: which paths fit, what their parts become, classes, files beside them, and what is refused. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/data/formats/listing/class_names.h"
#include "daemon/data/formats/listing/pattern.h"
#include "proto/base/cleanup.h"
#include "tests/support/shown_samples.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

static struct tree tree;

static void expect(const char *options, const char *expected) {
        samples_expect(&tree, "folder", "", options, expected);
}

static void refuse(const char *options, const char *words) {
        samples_refuse(&tree, "folder", "", options, words);
}

/* ---- patterns -------------------------------------------------------------------------------------------------- */

/* What the names of the pattern are in this path: "class=a name=b", or "no". */
static void expect_parts(const char *text, const char *path, const char *expected) {
        struct pattern_found found[PATTERN_PARTS_MAX];
        char shown[512] = "";
        struct pattern pattern;
        struct why why;
        size_t n = 0;
        int r;

        ck_assert_msg(pattern_parse(text, &pattern, &why) == 0, "%s", why.text);
        r = pattern_match(&pattern, path, found);
        ck_assert_int_ge(r, 0);
        for (size_t i = 0; i < pattern.n && r == 1; i++)
                if (pattern.parts[i].name[0])
                        n += (size_t)snprintf(shown + n, sizeof(shown) - n, "%s%s=%.*s", n ? " " : "",
                                              pattern.parts[i].name, (int)found[i].n, found[i].at);
        ck_assert_str_eq(r == 1 ? shown : "no", expected);
}

START_TEST(each_part_is_as_short_as_the_rest_allows) {
        expect_parts("{class}/{name}.jpg", "a/b.jpg", "class=a name=b");
        expect_parts("{class}/{name}.jpg", "a/b.c.jpg", "class=a name=b.c");
        expect_parts("{class}/{name}.jpg", "a/b/c.jpg", "no");
        expect_parts("{class}/{name}.jpg", "a/.jpg", "no");
        expect_parts("{class}/{name}.jpg", "a/b.png", "no");
        expect_parts("{class:**}/{name}.jpg", "a/b/c.jpg", "class=a/b name=c");
        expect_parts("?/{class:**}/{name}", "?/a/b", "class=a name=b");
        expect_parts("*/{class:**}/*.jpg", "s/street/indoor/1.jpg", "class=street/indoor");
        expect_parts("{age}_{gender}_{rest}", "25_0_2_2017.jpg", "age=25 gender=0 rest=2_2017.jpg");
        expect_parts("**/{name}.txt", "a/b/c.txt", "name=c");
        expect_parts("{a}.{b}", "x.y.z", "a=x b=y.z");
        expect_parts("only.jpg", "only.jpg", "");
        expect_parts("only.jpg", "only.jpg2", "no");
}
END_TEST

START_TEST(a_pattern_that_cannot_be_read_is_refused) {
        static const struct {
                const char *text, *words;
        } ROWS[] = {
                { "", "it is empty" },
                { "/a/{b}", "begins with a slash" },
                { "{a", "a brace is not closed" },
                { "a}", "a brace is closed that was not opened" },
                { "{}", "1 to 31 bytes" },
                { "{a{b}}", "1 to 31 bytes" },
                { "{a2345678901234567890123456789012}", "1 to 31 bytes" },
                { "{a:*}", "only :** may follow" },
                { "{a}/{a}", "a name comes twice" },
                { "{a}{b}", "a text is needed between two names" },
                { "{a}*", "a text is needed between two names" },
                { "*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*", "too many parts" },
        };
        struct pattern pattern;
        struct why why;

        for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
                ck_assert_int_eq(pattern_parse(ROWS[i].text, &pattern, &why), -EINVAL);
                ck_assert_msg(strstr(why.text, ROWS[i].words) != NULL, "row %zu: %s", i, why.text);
        }
}
END_TEST

START_TEST(a_path_that_could_be_read_in_a_million_ways_ends) {
        struct pattern_found found[PATTERN_PARTS_MAX];
        struct pattern pattern;
        char path[2001];

        memset(path, '_', sizeof(path) - 1);
        path[sizeof(path) - 1] = '\0';
        ck_assert_int_eq(pattern_parse("*_*_*_*_*_*_*_*_*x", &pattern, NULL), 0);
        ck_assert_int_eq(pattern_match(&pattern, path, found), -ELOOP);
}
END_TEST

/* ---- classes --------------------------------------------------------------------------------------------------- */

START_TEST(classes_are_numbered_in_the_order_of_their_names) {
        struct class_names names = { .texts = { 0 } };
        char text[32];

        for (uint64_t i = 0; i < 1000; i++)
                ck_assert_int_eq(class_names_put(&names, i, text, (size_t)sprintf(text, "%03d", (int)(i * 7 % 300))),
                                 0);
        ck_assert_int_eq(class_names_put(&names, 1001, "007", 3), 0);
        ck_assert_int_eq(class_names_put(&names, 2, "299", 3), 0); /* the last one counts */
        class_names_forget(&names, 3);
        ck_assert_int_eq(class_names_sort(&names), 0);
        ck_assert_uint_eq(class_names_count(&names), 300);
        for (size_t i = 0; i < 300; i++) {
                sprintf(text, "%03zu", i);
                ck_assert_str_eq(class_names_at(&names, i), text);
        }
        for (uint64_t i = 0; i < 1000; i++)
                ck_assert_int_eq(class_names_label(&names, i), i == 2 ? 299 : i == 3 ? -1 : (int)(i * 7 % 300));
        ck_assert_int_eq(class_names_label(&names, 1000), -1);
        ck_assert_int_eq(class_names_label(&names, 1001), 7);
        ck_assert_int_eq(class_names_label(&names, 1002), -1);
        class_names_fini(&names);
}
END_TEST

/* ---- folders --------------------------------------------------------------------------------------------------- */

START_TEST(parts_of_a_path_are_fields_and_the_class_is_the_label) {
        tree_make(&tree);
        tree_file(&tree, "b/7.jpg", "b7");
        tree_file(&tree, "a/10.png", "a10");
        tree_file(&tree, "a/8.jpg", "a8");
        tree_file(&tree, "a/notes", "no picture");
        tree_file(&tree, "a/.hidden.jpg", "x");
        tree_file(&tree, ".git/1.jpg", "x");
        tree_file(&tree, "a/deep/9.jpg", "x");
        expect("pattern={class}/{id}.jpg\n",
               "image:p' class:t id:i8 label:i8\na/8.jpg | a8 | \"a\" | 8 | 0\nb/7.jpg | b7 | \"b\" | 7 | 1\n");
        expect("pattern={class}/{id}.*\n",
               "image:p' class:t id:i8 label:i8\n"
               "a/10.png | a10 | \"a\" | 10 | 0\na/8.jpg | a8 | \"a\" | 8 | 0\nb/7.jpg | b7 | \"b\" | 7 | 1\n");
        expect("pattern=a/*\n", "file:b'\na/10.png | a10\na/8.jpg | a8\na/notes | no picture\n");
        expect("pattern={group}/{x}.jpg\nlabel=x\n",
               "image:p' group:t label:i8\na/8.jpg | a8 | \"a\" | 8\nb/7.jpg | b7 | \"b\" | 7\n");
        expect("pattern={class:**}/{x}.jpg\n",
               "image:p' class:t x:i8 label:i8\n"
               "a/8.jpg | a8 | \"a\" | 8 | 0\na/deep/9.jpg | x | \"a/deep\" | 9 | 1\nb/7.jpg | b7 | \"b\" | 7 | 2\n");
        tree_remove(&tree);
}
END_TEST

START_TEST(targets_in_names_are_numbers_unless_one_would_lose_something) {
        tree_make(&tree);
        tree_file(&tree, "25_0.50_001.jpg", "x");
        tree_file(&tree, "3_-1e3_02.jpg", "y");
        expect("pattern={age}_{score}_{id}.jpg\n",
               "image:p' age:i8 score:f8 id:t\n25_0.50_001.jpg | x | 25 | 0.5 | \"001\"\n3_-1e3_02.jpg | y | 3 | -1000 | \"02\"\n");
        tree_remove(&tree);
}
END_TEST

START_TEST(files_beside_a_sample_are_found_by_its_parts) {
        tree_make(&tree);
        tree_file(&tree, "img/train/a_1.png", "picture 1");
        tree_file(&tree, "img/train/a_2.png", "picture 2");
        tree_file(&tree, "mask/train/a_1_m.png", "mask 1");
        expect("pattern=img/{set}/{city}_{id}.png\nfiles=mask=mask/{set}/{city}_{id}_m.png\n",
               "image:p' mask:p' set:t city:t id:i8\n"
               "img/train/a_1.png | picture 1 | mask 1 | \"train\" | \"a\" | 1\n"
               "img/train/a_2.png | picture 2 | missing | \"train\" | \"a\" | 2\n");
        refuse("pattern=img/{set}/{id}.png\nfiles=mask={city}.png\n",
               "files names the column \"city\", which no sample has");
        tree_remove(&tree);
}
END_TEST

START_TEST(what_is_not_a_dataset_is_refused) {
        tree_make(&tree);
        refuse("pattern=*.jpg\n", "no file in it fits the pattern");
        tree_file(&tree, "d/a.jpeg", "x");
        refuse("pattern={name}.jpg\n", "no file in it fits the pattern");
        refuse("pattern=d/{name}.jpg\n", "fits the pattern; there is, for example, d/a.jpeg");
        refuse(NULL, "the format folder needs pattern");
        refuse("pattern={a\n", "a brace is not closed");
        refuse("pattern=d/{a}.jpeg\nlabel=b\n", "label names the column \"b\", which no sample has");
        refuse("pattern={label}/{a}.jpeg\nlabel=a\n", "there is a column \"label\" too");
        refuse("pattern=d/{image}.jpeg\n", "two fields would be called \"image\"");
        refuse("pattern=d/{a}.jpeg\nfiles=image=d/{a}.jpeg\n", "two fields would be called \"image\"");
        tree_link(&tree, "d/loop", "..");
        refuse("pattern=**/{a}.jpeg\n", "this link leads back to");
        tree_remove(&tree);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "pattern", each_part_is_as_short_as_the_rest_allows },
                { "pattern", a_pattern_that_cannot_be_read_is_refused },
                { "pattern", a_path_that_could_be_read_in_a_million_ways_ends },
                { "classes", classes_are_numbered_in_the_order_of_their_names },
                { "folder", parts_of_a_path_are_fields_and_the_class_is_the_label },
                { "folder", targets_in_names_are_numbers_unless_one_would_lose_something },
                { "folder", files_beside_a_sample_are_found_by_its_parts },
                { "folder", what_is_not_a_dataset_is_refused },
        };

        return suite_run("folder", rows, ARRAY_SIZE(rows));
}
