/* coco: which samples and fields a file of annotations makes, and what is refused in it. */
#include "daemon/data/format.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/dataset.h"
#include "proto/base/cleanup.h"
#include "tests/support/shown_samples.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#define SCHEMA                                                                                                         \
        "image:p' boxes:f4[-1][4] labels:i8[-1] category_ids:i8[-1] area:f4[-1] iscrowd:i8[-1] image_id:i8 "           \
        "segmentation:b masks:m"

#define IMAGE_AND "{\"images\":[{\"id\":1,\"file_name\":\"a\"}],\"annotations\":["
#define ONE       "{\"image_id\":1,\"category_id\":1,\"bbox\":[0,0,1,1]}"

static struct tree tree;

static void setup(void) {
        tree_make(&tree);
        tree_file(&tree, "p/a.jpg", "picture a");
        tree_file(&tree, "p/x/b.jpg", "picture b");
}

static void expect(const char *annotations, const char *expected) {
        tree_file(&tree, "a.json", annotations);
        samples_expect(&tree, "coco", "p", "annotations=../a.json\n", expected);
}

START_TEST(images_come_by_id_and_annotations_as_in_the_file) {
        setup();
        /* samples_expect() opens files below the root of the tree: the folder of pictures is that root here */
        tree_file(&tree, "a.jpg", "picture a");
        tree_file(&tree, "x/b.jpg", "picture b");
        tree_file(&tree, "a.json",
                  "{\"info\":{\"year\":[2017,{}]},\"annotations\":["
                  "{\"id\":1,\"image_id\":7,\"category_id\":90,\"bbox\":[1.5,2,3,4.25],\"area\":10.5,\"iscrowd\":0,"
                  "\"segmentation\":[[1, 2.5],[3]]},"
                  "{\"segmentation\":{\"size\":[2,2],\"counts\":\"a]\\\"\"},\"bbox\":[0,0,2,3],\"iscrowd\":1,"
                  "\"category_id\":1,\"image_id\":-3},"
                  "{\"image_id\":99,\"category_id\":1,\"bbox\":[0,0,1,1]},"
                  "{\"image_id\":7,\"category_id\":1,\"bbox\":[5,6,0,0],\"area\":1,\"keypoints\":[1,[2]]}],"
                  "\"images\":[{\"id\":8,\"file_name\":\"none.jpg\",\"width\":5},"
                  "{\"file_name\":\"./a.jpg\",\"id\":7},{\"id\":-3,\"file_name\":\"x/b.jpg\"}],"
                  "\"categories\":[{\"id\":90,\"name\":\"x\"},{\"id\":1},{\"id\":44}]}");
        samples_expect(&tree, "coco", "", "annotations=a.json\n",
                       SCHEMA "2\n"
                              "x/b.jpg | picture b | 0,0,2,3 | 0 | 1 | 6 | 1 | -3 | "
                              "[{\"size\":[2,2],\"counts\":\"a]\\\"\"}] | "
                              "[{\"size\":[2,2],\"counts\":\"a]\\\"\"}]\n"
                              "a.jpg | picture a | 1.5,2,4.5,6.25,5,6,5,6 | 2,0 | 90,1 | 10.5,1 | 0,0 | 7 | "
                              "[[[1, 2.5],[3]], null] | [[[1, 2.5],[3]], null]\n"
                              "none.jpg | missing |  |  |  |  |  | 8 | [] | []\n");
        tree_remove(&tree);
}
END_TEST

START_TEST(categories_that_are_not_listed_are_those_that_occur) {
        setup();
        expect("{\"images\":[{\"id\":1,\"file_name\":\"q.jpg\"}],\"annotations\":["
               "{\"image_id\":1,\"category_id\":5,\"bbox\":[0,0,1,1]},{\"image_id\":1,\"category_id\":3,"
               "\"bbox\":[0,0,1,1]},{\"image_id\":1,\"category_id\":5,\"bbox\":[0,0,1,1]}]}",
               SCHEMA "3\n"
                      "q.jpg | missing | 0,0,1,1,0,0,1,1,0,0,1,1 | 1,0,1 | 5,3,5 | 1,1,1 | 0,0,0 | 1 | "
                      "[null, null, null] | [null, null, null]\n");
        tree_remove(&tree);
}
END_TEST

START_TEST(categories_are_classes_if_all_have_names_that_can_be_one) {
        static const struct {
                const char *name;
                uint32_t n_classes;
        } NAMES[] = {
                { "\"a b\"", 2 },       { "\"\\u00e4\"", 2 }, { "\"\"", 0 },
                { "\"a\\u0000b\"", 0 }, { "7", 0 },           { "null", 0 },
        };
        struct dataset *dataset;
        char text[200];
        struct why why;

        setup();
        for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
                snprintf(text, sizeof(text),
                         "{\"images\":[{\"id\":1,\"file_name\":\"q\"}],\"categories\":[{\"name\":%s,\"id\":9},"
                         "{\"id\":2,\"name\":\"first\"}]}",
                         NAMES[i].name);
                tree_file(&tree, "a.json", text);
                ck_assert_msg(samples_open(&tree, "coco", "p", "annotations=../a.json\n", &dataset, &why) == 0, "%s",
                              why.text);
                ck_assert_uint_eq(dataset_source(dataset)->n_classes, NAMES[i].n_classes);
                if (NAMES[i].n_classes > 0)
                        ck_assert_str_eq(source_class_name(dataset_source(dataset), 0), "first");
                if (i < 2)
                        ck_assert_str_eq(source_class_name(dataset_source(dataset), 1), i ? "\u00e4" : "a b");
                dataset_unref(dataset);
        }
        tree_remove(&tree);
}
END_TEST

START_TEST(what_is_wrong_in_annotations_is_said_with_its_place) {
        static const struct {
                const char *text, *words;
        } FILES[] = {
                { "[]", "is not a file of COCO annotations, which begins with {" },
                { "{\"images\":[]}", "names no image" },
                { "{\"annotations\":[]}", "it has no \"images\"" },
                { "{\"images\":[],\"annotations\":[]}", "names no image" },
                { "{\"images\":[{\"id\":1}],\"annotations\":[]}", "images[0] needs id and file_name" },
                { "{\"images\":[{\"id\":\"1\",\"file_name\":\"a\"}]}",
                  "images[0]: \"id\": \"\"1\"\" where a whole number" },
                { "{\"images\":[{\"id\":99999999999999999999,\"file_name\":\"a\"}]}", "does not fit 64 bits" },
                { "{\"images\":[{\"id\":1,\"file_name\":\"../a\"}]}",
                  "images[0]: \"file_name\": the path \"../a\" has \"..\"" },
                { "{\"images\":[{\"id\":1,\"file_name\":\"/a\"}]}", "is absolute" },
                { "{\"images\":[{\"id\":1,\"file_name\":\"a\"},{\"id\":1,\"file_name\":\"b\"}],\"annotations\":[]}",
                  "two images have the id 1" },
                { "{\"images\":[],\"images\":[]}", "\"images\" comes twice" },
                { "{\"images\":{}}", "\"images\" is not an array" },
                { "{\"images\":[1]}", "images[0] is not an object" },
                { IMAGE_AND "{\"category_id\":1,\"bbox\":[0,0,1,1]}]}", "annotations[0]: has no \"image_id\"" },
                { IMAGE_AND "{\"image_id\":NaN}]}", "annotations[0]: \"image_id\": \"NaN\" where a whole number" },
                { "{\"images\":[{\"id\":NaN}]}", "images[0]: \"id\": \"NaN\" where a whole number" },
                { "{\"images\":[", "the text ends where the rest of an array" },
                { "{\"images\":[],}", "byte 13: \"}\" where the name of a member" },
                { "\x1f\x8b", "is compressed with gzip" },
        };

        setup();
        for (size_t i = 0; i < ARRAY_SIZE(FILES); i++) {
                tree_file(&tree, "a.json", FILES[i].text);
                samples_refuse(&tree, "coco", "p", "annotations=../a.json\n", FILES[i].words);
        }
        samples_refuse(&tree, "coco", "p", NULL, "the format coco needs the key annotations");
        samples_refuse(&tree, "coco", "p", "annotations=../none.json\n", "../none.json: No such file");
        samples_refuse(&tree, "coco", "p", "annotations=..\n",
                       "annotations: ..: a link leads out of the dataset's folder");
        tree_remove(&tree);
}
END_TEST

#define BOX "\"bbox\":[0,0,1,1]"

/* The columns of the second annotation, and what is said of them; the others are served. */
START_TEST(what_is_wrong_with_a_value_refuses_the_columns_that_are_made_of_it) {
        static const struct {
                const char *members, *columns, *words;
        } VALUES[] = {
                { "\"category_id\":1,\"bbox\":[1,2,3]", "boxes area", ": [x, y, width, height]" },
                { "\"category_id\":1,\"bbox\":[1,2,3,4,5],\"area\":1", "boxes", "\"bbox\": [x, y, width, height]" },
                { "\"bbox\":[[1,2,3,4]],\"area\":1,\"category_id\":1", "boxes", "\"bbox\": [x, y, width, height]" },
                { "\"bbox\":null,\"area\":1,\"category_id\":1", "boxes", "\"bbox\": [x, y, width, height]" },
                { "\"category_id\":1,\"area\":2", "boxes", "has no \"bbox\"" },
                { "\"category_id\":1", "boxes area", "has no \"" },
                { BOX, "labels category_ids", "has no \"category_id\"" },
                { BOX ",\"category_id\":7", "labels", "the category 7 is not among \"categories\"" },
                { BOX ",\"category_id\":Infinity", "labels category_ids", "\"category_id\": \"Infinity\" where" },
                { BOX ",\"category_id\":{\"a\":[1]}", "labels category_ids", "\"category_id\": " },
                { BOX ",\"category_id\":1,\"iscrowd\":NaN", "iscrowd", "\"iscrowd\": \"NaN\" where a whole number" },
                { "\"category_id\":1,\"area\":1,\"bbox\":[1,NaN,3,4]", "boxes",
                  "\"bbox\": NaN is not a finite number; correct it, or leave this one of annotations out" },
                { "\"category_id\":1,\"area\":1,\"bbox\":[1,2,-Infinity,4]", "boxes", "-Infinity is not a finite" },
                { "\"category_id\":1,\"area\":1,\"bbox\":[1,2,1e999,4]", "boxes", "1e999 exceeds float64" },
                { "\"category_id\":1,\"area\":1,\"bbox\":[1,2,1e39,4]", "boxes", "exceeds float32; correct it" },
                { "\"category_id\":1,\"area\":1,\"bbox\":[3e38,2,3e38,4]", "boxes", "\"bbox\": exceeds float32" },
                { "\"category_id\":1,\"bbox\":[0,0,1e30,1e30]", "area", "\"area\": exceeds float32" },
                { BOX ",\"category_id\":1,\"area\":NaN", "area", "\"area\": NaN is not a finite number; correct it" },
                { BOX ",\"category_id\":1,\"area\":1e39", "area", "\"area\": exceeds float32" },
                { BOX ",\"category_id\":1,\"area\":[[2]]", "area", "\"area\": " },
        };

        setup();
        for (size_t i = 0; i < ARRAY_SIZE(VALUES); i++) {
                char text[600], columns[200] = "";
                const struct source *source;
                struct dataset *dataset;
                struct why why;

                snprintf(text, sizeof(text), "{\"categories\":[{\"id\":1}],%s,{\"image_id\":1,%s},%s]}",
                         &(IMAGE_AND ONE)[1], VALUES[i].members, ONE);
                tree_file(&tree, "a.json", text);
                ck_assert_msg(samples_open(&tree, "coco", "p", "annotations=../a.json\n", &dataset, &why) == 0,
                              "%s: %s", text, why.text);
                source = dataset_source(dataset);
                for (uint32_t k = 0; k < source->n_refused; k++) {
                        sprintf(columns + strlen(columns), "%s%s", k ? " " : "", source->refused[k].name);
                        ck_assert_msg(strstr(source->refused[k].reason, "a.json: annotations[1]: ") &&
                                              strstr(source->refused[k].reason, k == 0 ? VALUES[i].words : ""),
                                      "%s: %s", text, source->refused[k].reason);
                }
                ck_assert_str_eq(columns, VALUES[i].columns);
                ck_assert_uint_eq(source->schema.n_fields + source->n_refused, 10); /* with __key__ */
                ck_assert_str_eq(source->schema.fields[source->schema.n_fields - 1].name, "masks");
                ck_assert_uint_eq(source->schema.fields[source->schema.n_fields - 1].max_rows, 3);
                dataset_unref(dataset);
        }
        tree_remove(&tree);
}
END_TEST

/* Sizes that a file claims are not used: those of the pictures count. */
START_TEST(what_is_not_read_may_be_no_number) {
        setup();
        expect("{\"info\":NaN,\"images\":[{\"id\":1,\"file_name\":\"q.jpg\",\"width\":NaN,\"height\":1e999}],"
               "\"annotations\":[{\"image_id\":1,\"category_id\":5,\"bbox\":[0,0,1,1],\"score\":NaN,"
               "\"segmentation\":[[0,0,NaN,1,2,3]]}]}",
               SCHEMA "1\nq.jpg | missing | 0,0,1,1 | 0 | 5 | 1 | 0 | 1 | [[[0,0,NaN,1,2,3]]] | [[[0,0,NaN,1,2,3]]]\n");
        tree_remove(&tree);
}
END_TEST

START_TEST(a_file_of_many_reads_has_the_same_annotations) {
        enum {
                N = 20000
        };
        _cleanup_(freep) char *text = malloc(N * 220 + 1024);
        const struct source *source;
        struct dataset *dataset;
        struct why why;
        size_t n;

        ck_assert_ptr_nonnull(text);
        setup();
        n = (size_t)sprintf(text, "{\"images\":[");
        for (int i = 0; i < N / 10; i++)
                n += (size_t)sprintf(text + n, "%s{\"id\":%d,\"file_name\":\"%d.jpg\"}", i ? "," : "", i * 3, i);
        n += (size_t)sprintf(text + n, "],\"annotations\":[");
        for (int i = 0; i < N; i++) /* the images in turns, so that each one's are far apart */
                n += (size_t)sprintf(text + n,
                                     "%s{\"image_id\":%d,\"category_id\":%d,\"bbox\":[%d,1,2,3],\"segmentation\":"
                                     "[[\"%090d\"]]}",
                                     i ? "," : "", i % (N / 10) * 3, i % 7, i, i);
        sprintf(text + n, "]}");
        tree_file(&tree, "a.json", text);
        ck_assert_msg(samples_open(&tree, "coco", "p", "annotations=../a.json\n", &dataset, &why) == 0, "%s", why.text);
        source = dataset_source(dataset);
        ck_assert_uint_eq(source->n_samples, N / 10);
        for (uint64_t i = 0; i < source->n_samples; i++) {
                float boxes[10][4];
                char segmentations[1100], expected[1100];
                size_t at = 0;

                ck_assert_uint_eq(source_length(source, i, 1), sizeof(boxes));
                source_value(source, i, 1, boxes);
                for (uint64_t k = 0; k < 10; k++) {
                        ck_assert(boxes[k][0] == (float)(k * (N / 10) + i));
                        at += (size_t)sprintf(expected + at, "%s[[\"%090" PRIu64 "\"]]", k ? ", " : "[",
                                              k * (N / 10) + i);
                }
                strcpy(expected + at, "]");
                source_value(source, i, 7, segmentations);
                ck_assert(source_length(source, i, 7) == strlen(expected));
                ck_assert(memcmp(segmentations, expected, strlen(expected)) == 0);
        }
        dataset_unref(dataset);
        tree_remove(&tree);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "coco", images_come_by_id_and_annotations_as_in_the_file },
                { "coco", categories_that_are_not_listed_are_those_that_occur },
                { "coco", categories_are_classes_if_all_have_names_that_can_be_one },
                { "coco", what_is_wrong_in_annotations_is_said_with_its_place },
                { "coco", what_is_wrong_with_a_value_refuses_the_columns_that_are_made_of_it },
                { "coco", what_is_not_read_may_be_no_number },
                { "coco", a_file_of_many_reads_has_the_same_annotations },
        };

        return suite_run("coco", rows, ARRAY_SIZE(rows));
}
