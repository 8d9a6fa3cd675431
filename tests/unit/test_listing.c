/* Listings: what jsonl, csv and text find in their files, field by field and byte by byte, and what they refuse. */
#include "daemon/data/format.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/dataset.h"
#include "daemon/data/formats/listing/csv/csv_cell.h"
#include "daemon/data/formats/listing/csv/csv_scan.h"
#include "proto/base/cleanup.h"
#include "tests/support/shown_samples.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

static struct tree tree;

static void expect(const char *format, const char *below, const char *options, const char *expected) {
        samples_expect(&tree, format, below, options, expected);
}

static void refuse(const char *format, const char *below, const char *options, const char *words) {
        samples_refuse(&tree, format, below, options, words);
}

static void setup(void) {
        tree_make(&tree);
}

static void teardown(void) {
        tree_remove(&tree);
}

/* ---- jsonl ----------------------------------------------------------------------------------------------------- */

START_TEST(members_become_fields_of_their_kind) {
        setup();
        tree_file(&tree, "a.jsonl",
                  "{\"id\": 1, \"text\": \"caf\\u00e9\", \"score\": 1.5, \"ok\": true, \"meta\": {\"a\": [1]}}\r\n"
                  "\n"
                  "  {\"text\": \"\", \"id\": -9223372036854775808, \"score\": 2, \"ok\": false, \"meta\": null}\n"
                  "{\"id\":3,\"text\":\"x\",\"ok\":null,\"new\":\"y\"}");
        expect("jsonl", "a.jsonl", NULL,
               "text:t' meta:b'? new:t'? id:i8 score:f8? ok:b1?\n"
               "a.jsonl:0 | \"caf\\u00e9\" | {\"a\": [1]} | - | 1 | 1.5 | 1\n"
               "a.jsonl:1 | \"\" | - | - | -9223372036854775808 | 2 | 0\n"
               "a.jsonl:2 | \"x\" | - | \"y\" | 3 | - | -\n");
        teardown();
}
END_TEST

START_TEST(arrays_of_numbers_have_a_shape_if_they_agree) {
        setup();
        tree_file(&tree, "a.jsonl",
                  "{\"fixed\":[1,2], \"varies\":[1], \"boxes\":[[1,2.5]], \"uneven\":[[1]], \"mixed\":[1], "
                  "\"masks\":[true], \"empty\":[]}\n"
                  "{\"fixed\":[3,4], \"varies\":[], \"boxes\":[[3,4],[5,6]], \"uneven\":[[1,2]], \"mixed\":[\"a\"], "
                  "\"masks\":[false], \"empty\":[]}\n");
        expect("jsonl", "a.jsonl", NULL,
               "fixed:i8[2]' varies:i8[-1]' boxes:f8[-1][2]' uneven:b' mixed:b' masks:b1[1]' empty:i8[-1]'\n"
               "a.jsonl:0 | [1,2] | [1] | [[1,2.5]] | [[1]] | [1] | [true] | []\n"
               "a.jsonl:1 | [3,4] | [] | [[3,4],[5,6]] | [[1,2]] | [\"a\"] | [false] | []\n");
        teardown();
}
END_TEST

START_TEST(the_files_of_a_folder_come_in_the_order_of_their_names) {
        setup();
        tree_file(&tree, "b.jsonl", "{\"n\":2}\n{\"n\":3}\n");
        tree_file(&tree, "a.ndjson", "\xef\xbb\xbf{\"n\":1}\n");
        tree_file(&tree, "c.jsonl", "");
        tree_file(&tree, ".hidden.jsonl", "{\"n\":7}\n");
        tree_file(&tree, "state.json", "{\"n\":8}\n");
        expect("jsonl", "", NULL, "n:i8\na.ndjson:0 | 1\nb.jsonl:0 | 2\nb.jsonl:1 | 3\n");
        expect("jsonl", "{b.jsonl,a.ndjson}", NULL, "n:i8\nb.jsonl:0 | 2\nb.jsonl:1 | 3\na.ndjson:0 | 1\n");
        teardown();
}
END_TEST

START_TEST(a_file_may_be_one_array_of_objects) {
        setup();
        tree_file(&tree, "a.json", "\xef\xbb\xbf\n[\n  {\"a\": 1,\n   \"t\": \"x\"},{\"a\":2,\"t\":\"]\"} ]\n ");
        tree_file(&tree, "b.json", "[]");
        expect("jsonl", "", NULL, "t:t' a:i8\na.json:0 | \"x\" | 1\na.json:1 | \"]\" | 2\n");
        tree_file(&tree, "a.json", "[{\"a\":1},\n{\"a\":}]");
        refuse("jsonl", "a.json", NULL, "a.json: line 2: byte 5: \"}]\" where a value");
        tree_file(&tree, "a.json", "[{\"a\":1},\n\n]");
        refuse("jsonl", "a.json", NULL, "a.json: line 3: \"]\" where an object");
        tree_file(&tree, "a.json", "[{\"a\":1}\n{\"a\":2}]");
        refuse("jsonl", "a.json", NULL, "a.json: line 2: \"{\" where \",\" or \"]\" after an object");
        tree_file(&tree, "a.json", "[{\"a\":1}");
        refuse("jsonl", "a.json", NULL, "line 1: the file ends where \",\" or \"]\"");
        tree_file(&tree, "a.json", "[{\"a\":1}] x");
        refuse("jsonl", "a.json", NULL, "line 1: \"x\" where the end of the file");
        tree_file(&tree, "a.json", "[{\"a\":1},[2]]");
        refuse("jsonl", "a.json", NULL, "line 1: \"[2]\" where an object");
        teardown();
}
END_TEST

START_TEST(elements_of_an_array_may_lie_across_reads) {
        enum {
                N = 30000
        };
        _cleanup_(freep) char *text = malloc(N * 160);
        const struct source *source;
        struct dataset *dataset;
        struct why why;
        size_t n = 0;

        ck_assert_ptr_nonnull(text);
        for (int i = 0; i < N; i++)
                n += (size_t)sprintf(text + n, "%s{\"i\": %d, \"t\": \"%0100d\"}", i ? ",\n" : "[", i, i);
        strcpy(text + n, "]");
        setup();
        tree_file(&tree, "a.json", text);
        ck_assert_msg(samples_open(&tree, "jsonl", "a.json", NULL, &dataset, &why) == 0, "%s", why.text);
        source = dataset_source(dataset);
        ck_assert_uint_eq(source->n_samples, N);
        for (int i = 0; i < N; i++) {
                struct extent extent;
                char expected[128];
                int64_t value;

                source_value(source, (uint64_t)i, 1, &value);
                ck_assert(value == i);
                source_locate(source, (uint64_t)i, 0, &extent);
                sprintf(expected, "\"%0100d\"", i);
                ck_assert(extent.length == 102 && memcmp(text + extent.offset, expected, 102) == 0);
        }
        dataset_unref(dataset);
        teardown();
}
END_TEST

START_TEST(a_member_that_comes_twice_counts_as_in_python) {
        setup();
        tree_file(&tree, "a.jsonl", "{\"a\":1,\"a\":2,\"caf\\u00e9\":3}\n{\"caf\xc3\xa9\":4,\"a\":5,\"a\":null}\n");
        expect("jsonl", "a.jsonl", NULL, "a:i8? caf\xc3\xa9:i8\na.jsonl:0 | 2 | 3\na.jsonl:1 | - | 4\n");
        teardown();
}
END_TEST

START_TEST(numbers_that_are_not_finite_are_taken_as_they_are_written_only) {
        setup();
        tree_file(&tree, "a.jsonl", "{\"a\":NaN,\"b\":{\"c\":Infinity}}\n{\"a\":[1e400,-Infinity]}\n{\"a\":7}\n");
        expect("jsonl", "a.jsonl", NULL, "b:b'?\na.jsonl:0 | {\"c\":Infinity}\na.jsonl:1 | -\na.jsonl:2 | -\n");
        tree_file(&tree, "b.jsonl", "{\"a\":NaN}\n");
        refuse("jsonl", "b.jsonl", NULL,
               "b.jsonl: line 1: \"a\": NaN is not a finite number; write null where a value is missing, or take it as "
               "it is written with raw = \"a\"");
        expect("jsonl", "a.jsonl", "raw=a\n",
               "a:b' b:b'?\na.jsonl:0 | NaN | {\"c\":Infinity}\na.jsonl:1 | [1e400,-Infinity] | -\na.jsonl:2 | 7 | -\n");
        teardown();
}
END_TEST

START_TEST(a_bad_line_is_refused_with_its_number) {
        static const struct {
                const char *text, *words;
        } FILES[] = {
                { "{\"a\":1}\n{\"a\":}\n", "a.jsonl: line 2: byte 5: \"}\" where a value" },
                { "{\"a\":1}\n\n[1]\n", "a.jsonl: line 3: \"[1]\" where an object" },
                { "{\"a\":1} {\"a\":2}\n", "line 1: byte 8: \"{\"a\":2}\" where the end" },
                { "{\"a\":\"\xff\"}\n", "line 1: byte 6: the string is not UTF-8" },
                { "{\"a\":1}\n{\"a\":\"x\"}\n", "\"a\" is a number in a.jsonl line 1 and a string in a.jsonl line 2" },
                { "{\"a\":true}\n{\"a\":1}\n",
                  "\"a\" is true or false in a.jsonl line 1 and a number in a.jsonl line 2" },
                { "{\"a\":{}}\n\n{\"a\":1}\n",
                  "\"a\" is a number in a.jsonl line 3 and an array or object in a.jsonl line 1" },
                { "{\"a\":18446744073709551616}\n",
                  "line 1: \"a\": the number 18446744073709551616 does not fit 64 bits" },
                { "{\"a\":-9223372036854775809}\n",
                  "line 1: \"a\": the number -9223372036854775809 does not fit 64 bits" },
                { "{\"a\":1}\n{\"a\":9223372036854775808}\n{\"a\":-1}\n",
                  "\"a\" is a negative number in a.jsonl line 3 and a number of 2^63 or more in a.jsonl line 2; write" },
                { "{\"a\":9223372036854775808}\n{\"a\":0.5}\n",
                  "\"a\" is a number of 2^63 or more in a.jsonl line 1 and a number in a.jsonl line 2" },
                { "{\"a\":[9223372036854775808]}\n", "line 1: \"a\": a whole number that does not fit 64 bits" },
                { "{\"a\":1.5}\n{\"a\":-Infinity}\n", "line 2: \"a\": -Infinity is not a finite number; write null" },
                { "{\"a\":1.5}\n{\"a\":1e999}\n", "line 2: \"a\": the number 1e999 exceeds float64; write null" },
                { "{\"a\":[1]}\n{\"a\":[2,NaN]}\n",
                  "line 2: \"a\": NaN is not a finite number; correct it, or take it as it is written with raw = \"a\"" },
                { "{\"\":1}\n", "line 1: a column has no name" },
                { "{\"a\\nb\":1}\n", "its name has a control character" },
                { "{\"\\ud800\":1}\n", "half of a surrogate pair" },
                { "{\"a\":null}\n{}\n", "its samples have no values" },
                { "\n\n", "a.jsonl: there is no sample in it" },
                { "\x1f\x8b\x08", "a.jsonl: is compressed with gzip" },
                { "BZh91AY&SY", "a.jsonl: is compressed with bzip2" },
                { "BZhou\n", "line 1" },
                { "\xff\xfe{", "a.jsonl: is UTF-16" },
        };

        setup();
        for (size_t i = 0; i < ARRAY_SIZE(FILES); i++) {
                tree_file(&tree, "a.jsonl", FILES[i].text);
                refuse("jsonl", "a.jsonl", NULL, FILES[i].words);
        }
        teardown();
}
END_TEST

START_TEST(whole_numbers_that_only_uint64_has_are_uint64) {
        setup();
        tree_file(&tree, "a.jsonl",
                  "{\"a\":1,\"b\":-5}\n{\"a\":18446744073709551615,\"b\":7}\n{\"a\":null,\"b\":0}\n"
                  "{\"a\":9223372036854775808,\"b\":9223372036854775807}\n");
        expect("jsonl", "a.jsonl", NULL,
               "a:u8? b:i8\na.jsonl:0 | 1 | -5\na.jsonl:1 | 18446744073709551615 | 7\na.jsonl:2 | - | 0\n"
               "a.jsonl:3 | 9223372036854775808 | 9223372036854775807\n");
        tree_file(&tree, "a.csv",
                  "a,b,c,d\n1,1,1,1\n9223372036854775808,9223372036854775808,9223372036854775808,-4\n7,-1,2.5,0.5\n");
        expect("csv", "a.csv", NULL,
               "b:t' c:t' a:u8 d:f8\na.csv:0 | 1 | 1 | 1 | 1\n"
               "a.csv:1 | 9223372036854775808 | 9223372036854775808 | 9223372036854775808 | -4\n"
               "a.csv:2 | -1 | 2.5 | 7 | 0.5\n");
        teardown();
}
END_TEST

START_TEST(a_raw_member_may_be_anything) {
        setup();
        tree_file(&tree, "a.jsonl", "{\"a\":9223372036854775808,\"b\":[1]}\n{\"a\":\"x\",\"b\":[2]}\n{\"a\":null}\n");
        expect("jsonl", "a.jsonl", "raw=b, a\n",
               "a:b' b:b'?\na.jsonl:0 | 9223372036854775808 | [1]\na.jsonl:1 | \"x\" | [2]\na.jsonl:2 | null | -\n");
        teardown();
}
END_TEST

/* ---- files that a listing names -------------------------------------------------------------------------------- */

START_TEST(a_column_of_paths_becomes_the_files) {
        setup();
        tree_file(&tree, "a.jsonl",
                  "{\"path\":\"./x/1.jpg\",\"wav\":\"s/1.wav\",\"t\":\"one\"}\n"
                  "{\"path\":\"x//\\u0032.PNG\",\"wav\":null,\"t\":\"two\"}\n"
                  "{\"path\":\"none.jpg\",\"wav\":\"s/1.wav\",\"t\":\"three\"}\n");
        tree_file(&tree, "x/1.jpg", "picture 1");
        tree_file(&tree, "x/2.PNG", "picture 2");
        tree_file(&tree, "s/1.wav", "sound 1");
        expect("jsonl", "a.jsonl", "files=image=path, wav\n",
               "image:p' wav:s'? path:t' t:t'\n"
               "a.jsonl:0 | picture 1 | sound 1 | \"./x/1.jpg\" | \"one\"\n"
               "a.jsonl:1 | picture 2 | - | \"x//\\u0032.PNG\" | \"two\"\n"
               "a.jsonl:2 | missing | sound 1 | \"none.jpg\" | \"three\"\n");
        teardown();
}
END_TEST

START_TEST(paths_are_relative_to_the_folder_of_their_listing) {
        setup();
        tree_file(&tree, "one/metadata.jsonl", "{\"file_name\":\"1.jpg\",\"text\":\"a\"}\n");
        tree_file(&tree, "two/metadata.jsonl", "{\"file_name\":\"1.jpg\",\"text\":\"b\"}\n");
        tree_file(&tree, "one/1.jpg", "first");
        tree_file(&tree, "two/1.jpg", "second");
        expect("jsonl", "{one,two}/metadata.jsonl", NULL,
               "image:p' file_name:t' text:t'\n"
               "one/metadata.jsonl:0 | first | \"1.jpg\" | \"a\"\n"
               "two/metadata.jsonl:0 | second | \"1.jpg\" | \"b\"\n");
        teardown();
}
END_TEST

START_TEST(known_names_of_columns_are_files_only_if_they_exist) {
        setup();
        tree_file(&tree, "a.jsonl", "{\"audio_filepath\":\"1.flac\",\"duration\":1.5}\n");
        expect("jsonl", "a.jsonl", NULL, "audio_filepath:t' duration:f8\na.jsonl:0 | \"1.flac\" | 1.5\n");
        tree_file(&tree, "1.flac", "sound");
        expect("jsonl", "a.jsonl", NULL,
               "audio:s' audio_filepath:t' duration:f8\na.jsonl:0 | sound | \"1.flac\" | 1.5\n");
        tree_file(&tree, "a.jsonl", "{\"file_name\":\"1.flac\"}\n{\"file_name\":\"/etc/passwd\"}\n");
        expect("jsonl", "a.jsonl", NULL, "file_name:t'\na.jsonl:0 | \"1.flac\"\na.jsonl:1 | \"/etc/passwd\"\n");
        teardown();
}
END_TEST

START_TEST(paths_stay_within_the_dataset) {
        static const struct {
                const char *path, *words;
        } PATHS[] = {
                { "/etc/passwd", "a.jsonl: line 2: \"p\": the path \"/etc/passwd\" is absolute" },
                { "../a.jsonl", "the path \"../a.jsonl\" has \"..\" in it" },
                { "x/../../y", "has \"..\" in it" },
                { "x/..", "has \"..\" in it" },
                { "", "names no file" },
                { "x/", "names no file" },
                { ".", "names no file" },
                { "a\\u0000b", "names no file" },
        };
        char text[256];

        setup();
        for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++) {
                snprintf(text, sizeof(text), "{\"p\":\"ok.jpg\"}\n{\"p\":\"%s\"}\n", PATHS[i].path);
                tree_file(&tree, "a.jsonl", text);
                refuse("jsonl", "a.jsonl", "files=image=p\n", PATHS[i].words);
        }
        tree_file(&tree, "a.jsonl", "{\"p\":\"x\",\"n\":1}\n");
        refuse("jsonl", "a.jsonl", "files=image=q\n", "files names the column \"q\", which no sample has");
        refuse("jsonl", "a.jsonl", "files=image=n\n", "files names the column \"n\", whose values are not all strings");
        refuse("jsonl", "a.jsonl", "files=image=p=n\n", "files = \"image=p=n\"");
        refuse("jsonl", "a.jsonl", "files=a=p,a=p\n", "no field twice");
        teardown();
}
END_TEST

START_TEST(a_path_may_be_made_of_several_columns) {
        setup();
        tree_file(&tree, "a.jsonl",
                  "{\"set\":\"tr\\u0061in\",\"id\":7,\"n\":\"1\"}\n{\"id\":8,\"n\":\"2\",\"set\":\"val\"}\n"
                  "{\"set\":\"val\",\"n\":\"3\"}\n{\"id\":9,\"set\":\"val\",\"n\":\"4\",\"id\":null}\n");
        tree_file(&tree, "d/train/7.jpg", "picture 7");
        tree_file(&tree, "d/val/8.jpg", "picture 8");
        tree_file(&tree, "m7", "mask 7");
        expect("jsonl", "a.jsonl", "files=image=d/{set}/{id}.jpg , mask=m{id}\n",
               "image:p'? mask:b'? set:t' n:t' id:i8?\n"
               "a.jsonl:0 | picture 7 | mask 7 | \"tr\\u0061in\" | \"1\" | 7\n"
               "a.jsonl:1 | picture 8 | missing | \"val\" | \"2\" | 8\n"
               "a.jsonl:2 | - | - | \"val\" | \"3\" | -\n"
               "a.jsonl:3 | - | - | \"val\" | \"4\" | -\n");
        tree_file(&tree, "b.jsonl", "{\"p\":\"x\",\"q\":[1],\"r\":\"../..\"}\n");
        refuse("jsonl", "b.jsonl", "files=f=a/{p\n", "files = \"f=a/{p\"");
        refuse("jsonl", "b.jsonl", "files=f=a/{}\n", "names of fields and of columns were expected");
        refuse("jsonl", "b.jsonl", "files=f={p}}\n", "names of fields and of columns were expected");
        refuse("jsonl", "b.jsonl", "files=f={p{p}}\n", "names of fields and of columns were expected");
        refuse("jsonl", "b.jsonl", "files=f={p}{p}{p}{p}{p}{p}{p}{p}{p}\n",
               "names of fields and of columns were expected");
        refuse("jsonl", "b.jsonl", "files=f={p}.{x}\n", "files names the column \"x\", which no sample has");
        refuse("jsonl", "b.jsonl", "files=f={q}\n", "no sample has all columns that name the files of the field \"f\"");
        refuse("jsonl", "b.jsonl", "files=f=a/{r}/b\n", "b.jsonl: line 1: the path \"a/../../b\" has \"..\"");
        refuse("jsonl", "b.jsonl", "files=f=/{p}\n", "is absolute");
        teardown();
}
END_TEST

START_TEST(a_path_that_comes_twice_and_is_null_then_is_none) {
        setup();
        tree_file(&tree, "a.jsonl", "{\"p\":\"1\",\"p\":null}\n{\"p\":\"2\"}\n{\"p\":\"2\",\"p\":\"1\"}\n");
        tree_file(&tree, "1", "one");
        tree_file(&tree, "2", "two");
        expect("jsonl", "a.jsonl", "files=f=p\n",
               "f:b'? p:t'?\na.jsonl:0 | - | -\na.jsonl:1 | two | \"2\"\na.jsonl:2 | one | \"1\"\n");
        teardown();
}
END_TEST

START_TEST(a_column_of_texts_can_be_the_class) {
        setup();
        tree_file(&tree, "a.csv", "id,breed\n1,pug\n2,\"a \"\"b\"\"\"\n3,pug\n");
        expect("csv", "a.csv", "label=breed\n",
               "breed:t' id:i8 label:i8\na.csv:0 | pug | 1 | 1\na.csv:1 | \"a \"\"b\"\"\" | 2 | 0\na.csv:2 | pug | 3 | 1\n");
        expect("csv", "a.csv", "label=id\n",
               "breed:t' label:i8\na.csv:0 | pug | 1\na.csv:1 | \"a \"\"b\"\"\" | 2\na.csv:2 | pug | 3\n");
        tree_file(&tree, "a.jsonl", "{\"label\":\"caf\\u00e9\",\"n\":\"x\"}\n{\"label\":\"b\",\"n\":\"y\"}\n");
        expect("jsonl", "a.jsonl", "label=label\n", "n:t' label:i8\na.jsonl:0 | \"x\" | 1\na.jsonl:1 | \"y\" | 0\n");
        tree_file(&tree, "b.csv", "a,b\n1,x\n2,\n");
        refuse("csv", "b.csv", "label=b\n", "sample 1 has no \"b\", which label makes its class");
        refuse("csv", "b.csv", "label=c\n", "label names the column \"c\", which no sample has");
        tree_file(&tree, "b.jsonl", "{\"a\":[1],\"b\":\"x\\u0000\"}\n");
        refuse("jsonl", "b.jsonl", "label=a\n", "which is neither text nor a number");
        refuse("jsonl", "b.jsonl", "label=b\n", "b.jsonl: line 1: \"b\": the name of a class has a NUL in it");
        tree_file(&tree, "c.csv", "a,label\nx,y\n");
        refuse("csv", "c.csv", "label=a\n", "there is a column \"label\" too");
        teardown();
}
END_TEST

/* ---- csv ------------------------------------------------------------------------------------------------------- */

START_TEST(cells_become_fields_of_their_kind) {
        setup();
        tree_file(&tree, "a.csv",
                  "\xef\xbb\xbfid,\"the \"\"text\"\"\",score,ok,zip,q\r\n"
                  "1,\"a, \"\"b\"\"\r\nc\",1.5,True,007,\"12\"\r\n"
                  "\r\n"
                  "-2,,2,false,8,\"13\"\r\n"
                  "3,plain,nan,TRUE,9,\r\n");
        expect("csv", "a.csv", NULL,
               "the \"text\":t' zip:t' id:i8 score:f8 ok:b1 q:i8?\n"
               "a.csv:0 | \"a, \"\"b\"\"\r\nc\" | 007 | 1 | 1.5 | 1 | 12\n"
               "a.csv:1 |  | 8 | -2 | 2 | 0 | 13\n"
               "a.csv:2 | plain | 9 | 3 | nan | 1 | -\n");
        teardown();
}
END_TEST

START_TEST(blanks_around_numbers_do_not_count) {
        setup();
        tree_file(&tree, "a.csv", "i,f,b,t,e\n 1, -1.5e3 , True,\" 2 \", \n2,+.5,false ,x,\n");
        expect("csv", "a.csv", NULL,
               "t:t' e:t' i:i8 f:f8 b:b1\na.csv:0 | \" 2 \" |   | 1 | -1500 | 1\na.csv:1 | x |  | 2 | 0.5 | 0\n");
        teardown();
}
END_TEST

START_TEST(delimiters_and_names_may_be_given) {
        setup();
        tree_file(&tree, "a.tsv", "a\tb\n1\tx,y\n");
        expect("csv", "a.tsv", NULL, "b:t' a:i8\na.tsv:0 | x,y | 1\n");
        tree_file(&tree, "a.csv", "1;x\r2;y");
        expect("csv", "a.csv", "delimiter=;\ncolumns=n,t\n", "t:t' n:i8\na.csv:0 | x | 1\na.csv:1 | y | 2\n");
        teardown();
}
END_TEST

START_TEST(cells_may_be_between_blanks) {
        setup();
        tree_file(&tree, "val.txt", "  1.JPEG \t 65\n\n \t \n2.JPEG 970  \r\n\"a \"\"b\"\".JPEG\"\t-1");
        tree_file(&tree, "val/1.JPEG", "one");
        tree_file(&tree, "val/a \"b\".JPEG", "three");
        expect("csv", "val.txt", "delimiter=blank\ncolumns=name,label\nfiles=image=val/{name}\n",
               "image:p' name:t' label:i8\n"
               "val.txt:0 | one | 1.JPEG | 65\n"
               "val.txt:1 | missing | 2.JPEG | 970\n"
               "val.txt:2 | three | \"a \"\"b\"\".JPEG\" | -1\n");
        tree_file(&tree, "b.txt", "a b\n1 2 3\n");
        refuse("csv", "b.txt", "delimiter=blank\n", "b.txt: line 2: there are more cells than the 2 columns");
        tree_file(&tree, "b.txt", "a b\n 1 \n");
        refuse("csv", "b.txt", "delimiter=blank\n", "b.txt: line 2: there are 1 cells for 2 columns");
        tree_file(&tree, "b.txt", "a b\n\"1\"2\n");
        refuse("csv", "b.txt", "delimiter=blank\n", "b.txt: line 2: \"2\" follows the quote");
        teardown();
}
END_TEST

START_TEST(rows_of_other_tables_belong_to_the_samples) {
        setup();
        tree_file(&tree, "images.txt", "1 a/x.jpg\n2 b/y.jpg\n3 a/z.jpg\n");
        tree_file(&tree, "labels.txt",
                  "\xef\xbb\xbf"
                  "3 7\n1 7\n\n2 5\n9 5\n");
        tree_file(&tree, "classes.txt", "class_id class\r\n5 \"a \"\"b\"\"\"\r\n7 007\r\n");
        tree_file(&tree, "boxes.txt", "2 1.5\n1 2\n3 3\n");
        expect("csv", "images.txt",
               "delimiter=blank\ncolumns=id, path\nlabel=class\n"
               "join=labels.txt(id, class_id), classes.txt , boxes.txt ( id,w )\n",
               "path:t' id:i8 class_id:i8 class:t w:f8 label:i8\n"
               "images.txt:0 | a/x.jpg | 1 | 7 | \"007\" | 2 | 0\n"
               "images.txt:1 | b/y.jpg | 2 | 5 | \"a \"b\"\" | 1.5 | 1\n"
               "images.txt:2 | a/z.jpg | 3 | 7 | \"007\" | 3 | 0\n");
        teardown();
}
END_TEST

START_TEST(a_table_that_does_not_belong_is_refused) {
        static const struct {
                const char *options, *words;
        } ROWS[] = {
                { "join=none.csv\n", "none.csv" },
                { "join=a.csv(\n", "files and their columns were expected" },
                { "join=a.csv(id, x) y\n", "files and their columns were expected" },
                { "join=a.csv()\n", "files and their columns were expected" },
                { "join=../a.csv(id, x)\n", "files and their columns were expected" },
                { "join=a.csv,,\n", "files and their columns were expected" },
                { "join=a.csv(id)\n", "a.csv: line 1: there are 2 cells for 1 columns" },
                { "join=a.csv(id, x)\n", "images.csv: line 3: a.csv has no row for the id \"2\"" },
                { "join=a.csv(key, x)\n", "the first column of a.csv, \"key\", is in none of the tables before it" },
                { "join=a.csv(id, path)\n", "a.csv has a column \"path\", as a table before it; rename one" },
                { "join=twice.csv(id, x)\n", "twice.csv: two rows have the key \"1\"" },
                { "join=uneven.csv(id, x)\n", "uneven.csv: line 2: there are 3 cells for 2 columns" },
                { "join=empty.csv\n", "empty.csv has no column but its key" },
        };

        setup();
        tree_file(&tree, "images.csv", "id,path\n1,a\n2,b\n");
        tree_file(&tree, "a.csv", "1,x\n");
        tree_file(&tree, "twice.csv", "1,x\n2,y\n1,z\n");
        tree_file(&tree, "uneven.csv", "1,x\n2,y,z\n");
        tree_file(&tree, "empty.csv", "");
        for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++)
                refuse("csv", "images.csv", ROWS[i].options, ROWS[i].words);
        tree_file(&tree, "images.csv", "id,path,id\n1,a,1\n");
        tree_file(&tree, "a.csv", "1,x\n,y\n"); /* the row without a key must not be found */
        refuse("csv", "images.csv", "join=a.csv(id, x)\n",
               "line 2: the first column of a.csv is \"id\", which cannot be served: images.csv: line 1: two columns");
        tree_remove(&tree);
        tree_make(&tree);
        tree_file(&tree, "a.csv", "id,path\n1,a\n");
        tree_file(&tree, "b.csv", "id\n1\n");
        tree_file(&tree, "labels.txt", "1,x\n");
        refuse("csv", "", "join=labels.txt(id, x)\n",
               "b.csv: line 1: column 2 is \"nothing\", and \"path\" in the file before");
        teardown();
}
END_TEST

START_TEST(lines_before_the_first_row_can_be_skipped) {
        setup();
        tree_file(&tree, "a.txt", "2\r\nyoung smiling\r\n1.jpg  1 -1\r\n2.jpg -1  1\r\n");
        expect("csv", "a.txt", "delimiter=blank\nskip_lines=2\ncolumns=f, young, smiling\n",
               "f:t' young:i8 smiling:i8\na.txt:0 | 1.jpg | 1 | -1\na.txt:1 | 2.jpg | -1 | 1\n");
        expect("csv", "a.txt", "delimiter=blank\nskip_lines=2\n", "1.jpg:t' 1:i8 -1:i8\na.txt:0 | 2.jpg | -1 | 1\n");
        refuse("csv", "a.txt", "skip_lines=4\n", "there is no sample in it");
        refuse("csv", "a.txt", "skip_lines=9\n", "there is no sample in it");
        refuse("csv", "a.txt", "skip_lines=x\n", "skip_lines: \"x\" is not allowed");
        tree_file(&tree, "b.txt", "#\n#\na,b\n1,2,3\n");
        refuse("csv", "b.txt", "skip_lines=2\n", "b.txt: line 4: there are more cells");
        teardown();
}
END_TEST

START_TEST(a_cell_is_a_number_or_a_truth_only_if_all_of_it_is) {
        static const struct {
                const char *text;
                enum value_kind kind;
                double number;
        } CELLS[] = {
                { "", CELL_ABSENT, 0 },
                { "0", CELL_INTEGER, 0 },
                { "-0", CELL_INTEGER, 0 },
                { " 12\t", CELL_INTEGER, 12 },
                { "\n12\r\n", CELL_INTEGER, 12 },
                { "-123456789012345678", CELL_NEGATIVE, -123456789012345678.0 },
                { "-9223372036854775808", CELL_NEGATIVE, -9223372036854775808.0 },
                { "9223372036854775807", CELL_INTEGER, 9223372036854775807.0 },
                { "9223372036854775808", CELL_HUGE, -9223372036854775808.0 },
                { "18446744073709551615", CELL_HUGE, -1 },
                { "18446744073709551616", CELL_TEXT, 0 },
                { "-9223372036854775809", CELL_TEXT, 0 },
                { "1234567890123456789012", CELL_TEXT, 0 },
                { "007", CELL_TEXT, 0 },
                { "+5", CELL_TEXT, 0 },
                { "-", CELL_TEXT, 0 },
                { ".", CELL_TEXT, 0 },
                { "-.", CELL_TEXT, 0 },
                { " ", CELL_TEXT, 0 },
                { "1.5", CELL_FLOAT, 1.5 },
                { "+1.", CELL_FLOAT, 1 },
                { "-.25", CELL_FLOAT, -0.25 },
                { "007.5", CELL_FLOAT, 7.5 },
                { "0.1234567890123456789", CELL_FLOAT, 0.1234567890123456789 },
                { "123456789012345678901234.5", CELL_FLOAT, 123456789012345678901234.5 },
                { "25e-1", CELL_FLOAT, 2.5 },
                { "1E+2", CELL_FLOAT, 100 },
                { "1.5.5", CELL_TEXT, 0 },
                { "1e", CELL_TEXT, 0 },
                { "0x1p3", CELL_TEXT, 0 },
                { "1.5\n", CELL_TEXT, 0 },
                { "1 2", CELL_TEXT, 0 },
                { "12,5", CELL_TEXT, 0 },
                { "-Infinity", CELL_FLOAT, -HUGE_VAL },
                { "inf", CELL_FLOAT, HUGE_VAL },
                { "infinit", CELL_TEXT, 0 },
                { "TRUE", CELL_BOOLEAN, 1 },
                { "false", CELL_BOOLEAN, 0 },
                { "truely", CELL_TEXT, 0 },
                { "three", CELL_TEXT, 0 },
                { "cat", CELL_TEXT, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(CELLS); i++) {
                struct table_cell cell = { .begin = 7, .n_bytes = 9 };
                double number;

                csv_cell_judge((const uint8_t *)CELLS[i].text, strlen(CELLS[i].text), &cell);
                number = cell.kind == CELL_FLOAT ? cell.number : (double)cell.integer;
                ck_assert_msg(cell.kind == CELLS[i].kind, "%s: kind %u", CELLS[i].text, cell.kind);
                ck_assert_msg(cell.kind >= CELL_TEXT || cell.kind == CELL_ABSENT || number == CELLS[i].number, "%s: %g",
                              CELLS[i].text, number);
                ck_assert(cell.begin == 7 && cell.n_bytes == 9);
        }
}
END_TEST

START_TEST(a_bad_row_is_refused_with_its_line) {
        static const struct {
                const char *text, *words;
        } FILES[] = {
                { "a,b\n1,\"x\ny\"\n2\n", "a.csv: line 4: there are 1 cells for 2 columns" },
                { "a,b\n1,2,3\n", "a.csv: line 2: there are more cells than the 2 columns" },
                { "a,b\n1,\"x\"y\n", "a.csv: line 2: \"y\" follows the quote that ends a cell" },
                { "a,b\n1,\"x\n", "a.csv: line 2: a cell begins with a quote and has no second one" },
                { "a,a\n1,2\n", "line 1: two columns have the name \"a\"" },
                { "\x01\n2\n", "line 1: column \"?\": its name has a control character" },
                { "a,b\n", "a.csv: there is no sample in it" },
        };

        setup();
        for (size_t i = 0; i < ARRAY_SIZE(FILES); i++) {
                tree_file(&tree, "a.csv", FILES[i].text);
                refuse("csv", "a.csv", NULL, FILES[i].words);
        }
        tree_file(&tree, "a.csv", "a,b\n1,2\n");
        tree_file(&tree, "b.csv", "c,d\n1,2\n");
        refuse("csv", "", NULL, "b.csv: line 1: none of its columns is in the files before it");
        refuse("csv", "a.csv", "delimiter=ab\n", "delimiter: \"ab\"");
        teardown();
}
END_TEST

/* The cells of a row, each in brackets. */
static void show_cells(const char *bytes, size_t n_row, char *into) {
        struct csv_cell cell;
        size_t at = 0;

        *into = '\0';
        while (csv_next_cell((const uint8_t *)bytes, n_row, ',', &at, &cell)) {
                uint8_t text[64];
                size_t n = csv_text((const uint8_t *)bytes + cell.begin, cell.n_bytes, text);

                into += sprintf(into, "[%.*s]", (int)n, (const char *)text);
        }
}

START_TEST(a_row_that_is_cut_is_not_taken_for_a_whole_one) {
        static const char ROW[] = "a,\"b\r\n\"\"c\",,d\r\nnext";
        char cells[64];

        for (size_t n = 0; n <= sizeof(ROW) - 1; n++) {
                size_t n_row = 0, n_with_end = 0;
                uint64_t n_lines = 0;
                int r = csv_find_row((const uint8_t *)ROW, n, false, ',', &n_row, &n_with_end, &n_lines, NULL);

                ck_assert_int_eq(r, n < 15 ? CSV_MORE : 0);
                if (r != 0)
                        continue;
                ck_assert_uint_eq(n_row, 13);
                ck_assert_uint_eq(n_with_end, 15);
                ck_assert_uint_eq(n_lines, 2);
                show_cells(ROW, n_row, cells);
                ck_assert_str_eq(cells, "[a][b\r\n\"c][][d]");
        }
}
END_TEST

START_TEST(a_plain_cell_ends_at_the_first_byte_that_ends_it) {
        static const char *const ENDS[] = { ",;\n", "\n,", "\r\n", ";\r\n" };
        char row[64];

        for (int filler = 1; filler < 256; filler++)
                for (size_t n = 0; n < 20; n++)
                        for (size_t i = 0; i < ARRAY_SIZE(ENDS); i++) {
                                size_t n_row = 0, n_with_end = 0, at = 0;
                                char delimiter = ENDS[i][0] == ';' ? ';' : ',';
                                struct csv_cell cell = { 0 };
                                uint64_t n_lines;

                                if (strchr(",;\"\r\n", filler))
                                        continue;
                                memset(row, filler, n);
                                strcpy(row + n, ENDS[i]);
                                ck_assert(csv_find_row((const uint8_t *)row, strlen(row), true, delimiter, &n_row,
                                                       &n_with_end, &n_lines, NULL) == 0);
                                ck_assert(csv_next_cell((const uint8_t *)row, n_row, delimiter, &at, &cell));
                                ck_assert(cell.begin == 0 && cell.n_bytes == n);
                        }
}
END_TEST

/* ---- text ------------------------------------------------------------------------------------------------------ */

START_TEST(each_line_of_a_text_is_a_sample_also_an_empty_one) {
        setup();
        tree_file(&tree, "a.txt", "\xef\xbb\xbfone\r\n\ntwo \rx\n");
        tree_file(&tree, "b.txt", "\nlast");
        tree_file(&tree, "c.md", "not a part");
        expect("text", "", NULL, "text:t'\na.txt:0 | one\na.txt:1 | \na.txt:2 | two \rx\nb.txt:0 | \nb.txt:1 | last\n");
        expect("text", "c.md", NULL, "text:t'\nc.md:0 | not a part\n");
        expect("text", "", "sample=file\n", "text:t'\na.txt:0 | one\r\n\ntwo \rx\n\nb.txt:0 | \nlast\n");
        refuse("text", "", "sample=word\n", "sample: \"word\" is not allowed");
        teardown();
}
END_TEST

START_TEST(lines_longer_than_a_read_are_whole) {
        _cleanup_(freep) char *text = malloc((5u << 20) + 8);
        const struct source *source;
        struct dataset *dataset;
        struct extent extent;
        struct why why;

        memset(text, 'x', 5u << 20);
        strcpy(text + (5u << 20), "\nend\n");
        text[7] = '\n';
        setup();
        tree_file(&tree, "a.txt", text);
        ck_assert_msg(samples_open(&tree, "text", "a.txt", NULL, &dataset, &why) == 0, "%s", why.text);
        source = dataset_source(dataset);
        ck_assert_uint_eq(source->n_samples, 3);
        source_locate(source, 1, 0, &extent);
        ck_assert_uint_eq(extent.offset, 8);
        ck_assert_uint_eq(extent.length, (5u << 20) - 8);
        source_locate(source, 2, 0, &extent);
        ck_assert_uint_eq(extent.offset, (5u << 20) + 1);
        ck_assert_uint_eq(extent.length, 3);
        dataset_unref(dataset);
        teardown();
}
END_TEST

/* ---- which format it is ---------------------------------------------------------------------------------------- */

/* Which of the formats say that it is theirs: j, c, t. */
static const char *who_says_so(const char *name) {
        static char who[4];
        const struct files files = { .root = tree.root, .names = &name, .n_names = name ? 1 : 0 };
        char *at = who;

        if (format_jsonl.is_it(tree.fd, &files))
                *at++ = 'j';
        if (format_csv.is_it(tree.fd, &files))
                *at++ = 'c';
        if (format_text.is_it(tree.fd, &files))
                *at++ = 't';
        *at = '\0';
        return who;
}

START_TEST(a_listing_is_told_by_names_and_content) {
        setup();
        tree_file(&tree, "a.jsonl", "\xef\xbb\xbf\n {\"a\": [1, 2]}\n{\"a\":");
        tree_file(&tree, "long.json", "{\"a\": \"never");
        tree_file(&tree, "array.json", "[\n{\"a\": 1}]");
        tree_file(&tree, "numbers.json", "[1, 2]");
        tree_file(&tree, "pretty.json", "{\n  \"a\": 1\n}");
        tree_file(&tree, "a.csv", "a,b\n1,2\n");
        tree_file(&tree, "a.txt", "{}");
        tree_file(&tree, "empty.txt", "");
        ck_assert_str_eq(who_says_so("a.jsonl"), "j");
        ck_assert_str_eq(who_says_so("long.json"), "j");
        ck_assert_str_eq(who_says_so("array.json"), "j");
        ck_assert_str_eq(who_says_so("numbers.json"), "");
        ck_assert_str_eq(who_says_so("pretty.json"), "");
        ck_assert_str_eq(who_says_so("a.csv"), "c");
        ck_assert_str_eq(who_says_so("a.txt"), "t");
        ck_assert_str_eq(who_says_so("empty.txt"), "");
        ck_assert_str_eq(who_says_so(NULL), "j"); /* beside anything */
        tree_remove(&tree);
        tree_make(&tree);
        tree_file(&tree, "README.txt.md", "x");
        tree_file(&tree, "b.csv", "a,b\n1,2\n");
        ck_assert_str_eq(who_says_so(NULL), "c");
        tree_file(&tree, "x.jpg", "a picture");
        ck_assert_str_eq(who_says_so(NULL), "");
        teardown();
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "jsonl", members_become_fields_of_their_kind },
                { "jsonl", arrays_of_numbers_have_a_shape_if_they_agree },
                { "jsonl", the_files_of_a_folder_come_in_the_order_of_their_names },
                { "jsonl", a_file_may_be_one_array_of_objects },
                { "jsonl", elements_of_an_array_may_lie_across_reads },
                { "jsonl", a_member_that_comes_twice_counts_as_in_python },
                { "jsonl", numbers_that_are_not_finite_are_taken_as_they_are_written_only },
                { "jsonl", a_bad_line_is_refused_with_its_number },
                { "jsonl", whole_numbers_that_only_uint64_has_are_uint64 },
                { "jsonl", a_raw_member_may_be_anything },
                { "files", a_column_of_paths_becomes_the_files },
                { "files", paths_are_relative_to_the_folder_of_their_listing },
                { "files", known_names_of_columns_are_files_only_if_they_exist },
                { "files", paths_stay_within_the_dataset },
                { "files", a_path_may_be_made_of_several_columns },
                { "files", a_path_that_comes_twice_and_is_null_then_is_none },
                { "csv", cells_become_fields_of_their_kind },
                { "csv", blanks_around_numbers_do_not_count },
                { "csv", delimiters_and_names_may_be_given },
                { "label", a_column_of_texts_can_be_the_class },
                { "csv", cells_may_be_between_blanks },
                { "csv", rows_of_other_tables_belong_to_the_samples },
                { "csv", a_table_that_does_not_belong_is_refused },
                { "csv", lines_before_the_first_row_can_be_skipped },
                { "csv", a_bad_row_is_refused_with_its_line },
                { "csv", a_cell_is_a_number_or_a_truth_only_if_all_of_it_is },
                { "csv", a_row_that_is_cut_is_not_taken_for_a_whole_one },
                { "csv", a_plain_cell_ends_at_the_first_byte_that_ends_it },
                { "text", each_line_of_a_text_is_a_sample_also_an_empty_one },
                { "text", lines_longer_than_a_read_are_whole },
                { "is_it", a_listing_is_told_by_names_and_content },
        };

        return suite_run("listing", rows, ARRAY_SIZE(rows));
}
