/* Listings that several threads read in pieces: the index, and what is refused, are byte for byte those of one thread,
 * wherever the pieces are cut. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/data/files/cuts.h"
#include "daemon/data/format.h"
#include "daemon/data/formats/listing/csv/csv_scan.h"
#include "proto/base/cleanup.h"
#include "tests/support/outcomes.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

static struct tree tree;
static struct cuts_limits usual;

static void setup(void) {
        tree_make(&tree);
        usual = CUTS_LIMITS;
}

static void teardown(void) {
        CUTS_LIMITS = usual;
        tree_remove(&tree);
}

/* ---- an index as bytes ----------------------------------------------------------------------------------------- */

static void build(const struct format *format, const char *name, const char *text, uint32_t n_threads,
                  uint64_t cut_bytes, uint64_t long_bytes, const struct index_watch *watch, struct outcome *outcome) {
        CUTS_LIMITS = (struct cuts_limits){ .n_threads = n_threads, .cut_bytes = cut_bytes, .long_bytes = long_bytes };
        outcome_find(&tree, format, name, text, watch, outcome);
}

static void expect_same(const struct outcome *one, const struct outcome *other, const char *name, unsigned cut) {
        char way[64];

        snprintf(way, sizeof(way), "in pieces of %u bytes", cut);
        outcome_expect_same(one, other, name, way);
}

/* Compares pieces of each size up to `until` bytes, and of some more. Returns what one thread said. */
static int compare(const struct format *format, const char *name, const char *options, unsigned until) {
        static const unsigned MORE[] = { 0, 5, 100, 1000, 4096, 65536 };
        _cleanup_(outcome_fini) struct outcome alone;

        tree_age(&tree, ".");
        build(format, name, options, 1, 1 << 20, 1 << 20, NULL, &alone);
        for (unsigned cut = 1; cut < until + ARRAY_SIZE(MORE); cut++) {
                unsigned n_bytes = cut <= until ? cut : until + MORE[cut - until];
                uint64_t n_long = cut % 5 == 0 ? 64 : 1 << 20;
                _cleanup_(outcome_fini) struct outcome outcome;

                build(format, name, options, 2 + cut % 4, n_bytes, n_long, NULL, &outcome);
                expect_same(&alone, &outcome, name ? name : "the folder", n_bytes);
        }
        return alone.r;
}

/* ---- files on purpose ------------------------------------------------------------------------------------------ */

START_TEST(lines_are_the_same_wherever_a_file_is_cut) {
        static const char *const TEXTS[] = {
                "one\ntwo\n\nfour\r\n\r\n\n\nfive",
                "\n",
                "\n\n\n",
                "no end",
                "\xef\xbb\xbf"
                "after a mark\n\nx",
                "\xef\xbb\xbf",
                "a line that is longer than many pieces, so that whole pieces have none\nb\n\nc\r",
                "",
        };

        setup();
        for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {
                tree_file(&tree, "a.txt", TEXTS[i]);
                compare(&format_text, "a.txt", NULL, 20);
        }
        tree_file(&tree, "b.txt", "second\nfile\n");
        tree_file(&tree, "c.txt", "");
        tree_file(&tree, "d.txt",
                  "\xef\xbb\xbf"
                  "d\r\n\r\nfourth");
        compare(&format_text, NULL, NULL, 20);
        compare(&format_text, NULL, "sample=file\n", 3);
        tree_file(&tree, "c.txt", "\x1f\x8b");
        ck_assert_int_eq(compare(&format_text, NULL, NULL, 20), -ENOTSUP);
        teardown();
}
END_TEST

START_TEST(records_of_json_are_the_same_wherever_a_file_is_cut) {
        static const struct {
                const char *text, *options;
                int r;
        } FILES[] = {
                { "{\"a\":1}\n{\"a\":2}\r\n\n  \n {\"a\":3}\n{\"a\":4.5}", NULL, 0 },
                { "   \n\n\n\n\n\n\n\n\n    {\"a\":1}\n{\"b\":2}\n", NULL, 0 },
                { "{\"a\":1}\n{\"b\":\"x\",\"a\":2}\n{}\n{\"c\":null}\n{\"a\":null,\"d\":[1]}\n", NULL, 0 },
                { "{\"a\":1,\"a\":2}\n{\"a\":null,\"a\":3}\n{\"a\":4,\"a\":null}\n", NULL, 0 },
                { "{\"caf\\u00e9\":1}\n{\"caf\xc3\xa9\":2}\n", NULL, 0 },
                /* what a column is may be said by its last record */
                { "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n{\"a\":\"x\"}\n{\"a\":5}\n", NULL, -ENODATA },
                { "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":true}\n{\"a\":\"x\"}\n{\"a\":5}\n", NULL, -ENODATA },
                { "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n{\"a\":5e-1}\n", NULL, 0 },
                { "{\"a\":[1]}\n{\"a\":[2]}\n{\"a\":[]}\n{\"a\":[3,4]}\n{\"a\":[1.5]}\n", NULL, 0 },
                { "{\"a\":[]}\n{\"a\":[[]]}\n{\"a\":[[1,2]]}\n{\"a\":[[3,4]]}\n{\"a\":[[5,6],[7,8]]}\n", NULL, 0 },
                { "{\"a\":[[1,2]]}\n{\"a\":[[1,2]]}\n{\"a\":[[1,2]]}\n{\"a\":[[3]]}\n", NULL, 0 },
                { "{\"a\":[1]}\n{\"a\":[1]}\n{\"a\":[true]}\n{\"a\":[true]}\n", NULL, 0 },
                { "{\"a\":[]}\n{\"a\":[]}\n{\"a\":[\"x\"]}\n{\"a\":[\"x\",\"y\"]}\n", NULL, 0 },
                { "{\"a\":[\"x\"]}\n{\"a\":[\"x\"]}\n{\"a\":[[]]}\n{\"a\":[1]}\n", NULL, 0 },
                { "{\"a\":\"a string that reaches over many of the pieces, and on\",\"b\":1}\n{\"b\":2}\n", NULL, 0 },
                { "{\"a\":1}\n{\"a\":[9223372036854775808]}\n{\"a\":}\n", "raw=a\n", -EBADMSG },
                /* of several errors the first one counts */
                { "{\"a\":1}\n\n{\"a\":2}\n{\"a\":}\n{\"a\":3}\n[]\n{\"a\":4}\nx\n", NULL, -EBADMSG },
                { "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"\":3}\n[]\n", NULL, -EBADMSG },
                { "{\"a\":1}\n{\"a\":2}\n{\"a\":18446744073709551616}\n[]\n", NULL, -EBADMSG },
                { "{\"a\":1}\n{\"a\":2}\n{\"a\":9223372036854775808}\n{\"a\":4}\n", NULL, 0 },
                { "{\"a\":1}\n{\"a\":-2}\n{\"a\":3}\n{\"a\":9223372036854775808}\n{\"a\":-5}\n", NULL, -ENODATA },
                /* arrays are not cut */
                { "[{\"a\":1},\n{\"a\":2},\n{\"a\":3}\n]\n", NULL, 0 },
                { " \n\n\n\n[{\"a\":1},\n{\"a\":2},\n{\"a\":}\n]\n", NULL, -EBADMSG },
                /* files, and classes */
                { "{\"p\":\"x/1\"}\n{\"p\":\"x/2\"}\n{\"p\":null}\n{\"q\":1}\n{\"p\":\"x/2\",\"p\":null}\n",
                  "files=f=p\n", 0 },
                { "{\"p\":\"x/1\"}\n{\"p\":\"x/2\"}\n{\"p\":\"/etc/x\"}\n{\"p\":\"../x\"}\n[]\n", "files=f=p\n",
                  -EINVAL },
                { "{\"file_name\":\"x/1\"}\n{\"file_name\":\"x/2\"}\n{\"file_name\":\"x/2\"}\n", NULL, 0 },
                { "{\"file_name\":\"x/1\"}\n{\"file_name\":\"x/2\"}\n{\"file_name\":\"../x\"}\n", NULL, 0 },
                { "{\"d\":\"x\",\"n\":1}\n{\"d\":\"y\",\"n\":2}\n{\"n\":2}\n{\"d\":\"x\",\"n\":2}\n{\"d\":\"x\",\"n\":2.5}\n",
                  "files=f={d}/{n}\n", 0 },
                { "{\"d\":\"x\",\"n\":1}\n{\"d\":\"x\",\"n\":2}\n{\"n\":2,\"d\":\"..\"}\n{\n", "files=f={d}/{n}\n",
                  -EINVAL },
                { "{\"l\":\"cat\"}\n{\"l\":\"ant\"}\n{\"l\":\"dog\"}\n{\"l\":\"cat\"}\n{\"l\":\"bee\"}\n", "label=l\n",
                  0 },
                { "{\"a\":1,\"b\":2}\n{\"a\":NaN,\"b\":2}\n{\"b\":3}\n{\"a\":NaN,\"\":4,\"b\":5}\n{\"a\":1,\"b\":2}\n",
                  NULL, 0 },
                { "{\"l\":\"cat\"}\n{\"l\":\"ant\"}\n{\"l\":null}\n{\"l\":\"cat\"}\n", "label=l\n", -EINVAL },
                { "{\"l\":\"cat\"}\n{\"l\":\"ant\"}\n{\"l\":\"a\\u0000\"}\n{\"l\":\"cat\"}\n", "label=l\n", -EINVAL },
        };

        setup();
        tree_file(&tree, "x/1", "one");
        tree_file(&tree, "x/2", "two");
        for (size_t i = 0; i < ARRAY_SIZE(FILES); i++) {
                tree_file(&tree, "a.jsonl", FILES[i].text);
                ck_assert_msg(compare(&format_jsonl, "a.jsonl", FILES[i].options, 30) == FILES[i].r, "%s",
                              FILES[i].text);
        }
        teardown();
}
END_TEST

START_TEST(rows_of_csv_are_the_same_wherever_a_file_is_cut) {
        static const struct {
                const char *text, *options;
                int r;
        } FILES[] = {
                { "a,b\n1,2\n3,4\r\n\r\n\n5,6\r7,8\r\r\n9,10", NULL, 0 },
                { "a,b\n1,\"two\nlines\"\n3,\"\"\n4,\"\"\"\n\"\"\"\n5,\"\r\n\r\n\",\n", NULL, -EBADMSG },
                { "a,b\n1,\"two\nlines\"\n3,\"\"\n4,\"\"\"\n\"\"\"\n5,\"\r\n\r\n\"\n6,\"a,\n1,2\n3,4\n\"\n", NULL, 0 },
                { "a,b\n1,5\" disk\n2,\"x\n1,\"\"\n\"\n3,a\"\"\n4,\"\n\"\n5,\"6\"\n", NULL, 0 },
                { "a\n\"\"\"\"\"\"\n\"\"\"\n\"\n\"\n\"\"\"\n\"\"\n1\n", NULL, 0 },
                { "\n\n\xef\xbb\xbf\n", NULL, -ENOENT },
                { "\xef\xbb\xbf"
                  "a,b\n1,2\n3,4\n",
                  NULL, 0 },
                { "a,b\n1,2\n3,4\n5\n6\n7,\"8\n", NULL, -EBADMSG },
                { "a,b\n1,2\n3,4\n5,6,7\n\"6\"x,7\n", NULL, -EBADMSG },
                { "a,b\n1,2\n3,4\n\"6\"x,7\n\n\n\n1\n", NULL, -EBADMSG },
                { "a,b\n1,2\n3,4\n5,\"never closed\n6,7\n8,9\n", NULL, -EBADMSG },
                { "a,b\n1,2\n3,4\n5,x\n6,1.5\n", NULL, 0 },
                { "a,b\n1,2\n3,4\n5,\n6,1.5\n", NULL, 0 },
                { "a;\"b\";c\n1;\"2;\n3\";\"4\"\n5;6;7\n", "delimiter=;\n", 0 },
                { "name label\n\n  x   \"1 2\n3\"  \n y\t5\n z \"\"\"\" \n", "delimiter=blank\n", 0 },
                { "skipped \"\nand this, \"too\n1,2\n3,4\n5,\"6\n7\"\n", "skip_lines=2\ncolumns=a, b\n", 0 },
                { "p,l\nx/1,cat\n\"x/2\",\"a \"\"b\"\"\"\n,ant\nx/2,\"c\nd\"\n", "files=f=p\nlabel=l\n", 0 },
                { "p,l\nx/1,cat\n\"x/2\",\"a \"\"b\"\"\"\nx/2,\"c\nd\"\n/x,a\nx/1\n", "files=f=p\nlabel=l\n", -EINVAL },
                { "d,n\nx,1\nx,2\n,2\ny,\"1\"\n", "files=f={d}/{n}\n", 0 },
                { "k,v\n1,2\n2,3\n1,4\n\"2\",5\n", "join=b.csv\n", 0 },
                { "k,v\n1,2\n2,3\n1,4\n3,5\n", "join=b.csv\n", -EINVAL },
        };

        setup();
        tree_file(&tree, "x/1", "one");
        tree_file(&tree, "x/2", "two");
        tree_file(&tree, "b.csv", "k,w\n1,one\n2,two\n");
        for (size_t i = 0; i < ARRAY_SIZE(FILES); i++) {
                tree_file(&tree, "a.csv", FILES[i].text);
                ck_assert_msg(compare(&format_csv, "a.csv", FILES[i].options, 40) == FILES[i].r, "%s", FILES[i].text);
        }
        teardown();
}
END_TEST

START_TEST(files_of_a_folder_are_the_same_wherever_they_are_cut) {
        setup();
        tree_file(&tree, "a.csv", "a,b\n1,2\n3,4\n");
        tree_file(&tree, "b.csv", "a,b\n");
        tree_file(&tree, "c.csv", "");
        tree_file(&tree, "d.csv",
                  "\n\n\xef\xbb\xbf"
                  "a,b\n");
        compare(&format_csv, NULL, NULL, 20);
        tree_file(&tree, "d.csv", "\xef\xbb\xbf\n\n\"a\",b\n5,\"6\n7\"\n8,9\n");
        tree_file(&tree, "e.csv", "a,b\r\n5,\"6\n7\"\r\n8,9\r\n\"\n\n\n\",\n1,2");
        ck_assert_int_eq(compare(&format_csv, NULL, NULL, 30), 0);
        tree_file(&tree, "f.csv", "c,a,d\r\n5,\"6\n7\",\r\n8,9,\"x\"\r\n1,2,");
        tree_file(&tree, "g.csv", "b\r\n5\n\n6\n7\n");
        ck_assert_int_eq(compare(&format_csv, NULL, NULL, 30), 0);
        tree_file(&tree, "g.csv", "b,a,b,c\r\n5,6,7,\n8,9,0,1\n,,,2\n");
        tree_file(&tree, "h.csv", "a,\"b\"\r\n5,6\n7,8\n");
        ck_assert_int_eq(compare(&format_csv, NULL, NULL, 30), 0);
        tree_file(&tree, "i.csv", "a,b\r\n5\n");
        ck_assert_int_eq(compare(&format_csv, NULL, NULL, 30), -EBADMSG);
        tree_file(&tree, "f.csv", "\"a\n\",e\r\n5,\"6\n7\"\r\n8,9\r\n1,2");
        ck_assert_int_eq(compare(&format_csv, NULL, NULL, 30), -EINVAL);
        compare(&format_csv, NULL, "columns=a, b\n", 20);

        for (int i = 0; i < 40; i++) {
                char name[16], text[64];

                sprintf(name, "x%02d.jsonl", i);
                sprintf(text, i == 20 ? "[{\"a\":%d},\n{\"b\":2}]\n" : "{\"a\":%d}\n{\"a\":2, \"s\":\"t\"}\n", i);
                tree_file(&tree, name, i % 7 ? text : "");
        }
        ck_assert_int_eq(compare(&format_jsonl, NULL, NULL, 20), 0);
        tree_file(&tree, "x33.jsonl", "{\"a\":1}\nx\n");
        tree_file(&tree, "x34.jsonl", "x\n");
        ck_assert_int_eq(compare(&format_jsonl, NULL, NULL, 20), -EBADMSG);
        teardown();
}
END_TEST

/* ---- files by chance ------------------------------------------------------------------------------------------- */

static uint32_t random_below(uint64_t *random, uint32_t n) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(*random >> 33) % n;
}

/* Words that make rows and records, some of them wrong; a wrong one is rare, so that much is read before it. */
static void make_text(uint64_t *random, bool is_csv, char *text, size_t n_words) {
        static const char *const CSV[] = { "1,2\n",     "3.5,x\r\n",  "\"a\nb\",7\n", "\"\"\"\",\"\n\n\"\n",
                                           "5\" x,1\r", "\n",         "\"\r\n\",\n",  "true,\"1\"\n",
                                           ",\n",       "\"x\"y,2\n", "1\n",          "\"" },
                                 *const JSON[] = { "{\"a\":1}\n",
                                                   "{\"a\":2.5,\"b\":\"x\"}\r\n",
                                                   "\n",
                                                   "{\"b\":null}\n",
                                                   "{\"c\":[1,2],\"a\":3}\n",
                                                   "{}\n",
                                                   "  {\"c\":[]}\n",
                                                   "{\"d\":[\"x\"]}\n",
                                                   "{\"b\":\"\\u00e9\",\"b\":\"y\"}\n",
                                                   "{\"a\":}\n",
                                                   "{\"b\":7}\n",
                                                   "[]" };
        size_t n = (size_t)sprintf(text, "%s", is_csv ? "a,b\n" : "");

        for (size_t i = 0; i < n_words; i++) {
                uint32_t word = random_below(random, random_below(random, 100) == 0 ? 12 : 9);

                n += (size_t)sprintf(text + n, "%s", is_csv ? CSV[word] : JSON[word]);
        }
}

START_TEST(texts_by_chance_are_the_same_in_pieces) {
        char text[8192];
        uint64_t random = 5;

        setup();
        for (int i = 0; i < 150; i++) {
                bool is_csv = i % 2;
                const struct format *format = is_csv ? &format_csv : &format_jsonl;
                const char *name = is_csv ? "a.csv" : "a.jsonl";
                _cleanup_(outcome_fini) struct outcome alone;

                make_text(&random, is_csv, text, 20 + random_below(&random, 100));
                tree_file(&tree, name, text);
                build(format, name, NULL, 1, 1 << 20, 1 << 20, NULL, &alone);
                for (int k = 0; k < 6; k++) {
                        unsigned n_bytes = 1 + random_below(&random, k < 3 ? 30 : 300);
                        _cleanup_(outcome_fini) struct outcome outcome;

                        build(format, name, NULL, 2 + random_below(&random, 7), n_bytes, 1 << 20, NULL, &outcome);
                        expect_same(&alone, &outcome, text, n_bytes);
                }
        }
        teardown();
}
END_TEST

START_TEST(quotes_tell_where_a_row_begins) {
        static const char *const WORDS[] = { "\"", "\"\"", "a", ",", "\n", "\r\n", "\r", " " };
        uint64_t random = 9;

        for (int i = 0; i < 3000; i++) {
                char text[256] = "\n"; /* a byte before the first row */
                uint8_t *bytes = (uint8_t *)text + 1;
                bool begins[256] = { false };
                size_t n, at = 0;

                for (int k = 0; k < 40; k++)
                        strcat(text, WORDS[random_below(&random, ARRAY_SIZE(WORDS))]);
                n = strlen(text) - 1;
                while (at < n) {
                        size_t n_row = 0, n_with_end = 0;
                        uint64_t n_lines;

                        begins[at] = true;
                        if (csv_find_row(bytes + at, n - at, true, ',', &n_row, &n_with_end, &n_lines, NULL) < 0)
                                break;
                        at += n_with_end;
                }
                for (size_t cut = 0, next; cut < at; cut++) { /* before the row that is refused */
                        uint8_t after[N_CSV_STATES], middle = random_below(&random, (uint32_t)cut + 1), state;
                        size_t found;

                        csv_states('\n', bytes, middle, ',', after);
                        state = after[CSV_PLAIN];
                        csv_states(text[middle], bytes + middle, cut - middle, ',', after);
                        for (next = cut; next < n && !begins[next];)
                                next++;
                        found = cut + csv_find_begin(text[cut], bytes + cut, n - cut, ',', after[state]);
                        ck_assert_msg(next > at || found == next, "%s: from %zu: %zu and not %zu", text, cut, found,
                                      next);
                }
        }
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------------------------- */

static void write_rows(const char *name, int n, const char *last) {
        FILE *file = fdopen(openat(tree.fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644), "w");

        ck_assert(file != NULL);
        if (strstr(name, ".csv"))
                fprintf(file, "i,f,t\n");
        for (int i = 0; i < n; i++)
                fprintf(file, strstr(name, ".csv") ? "%d,%d.25,\"t\n%d\"\n" : "{\"i\":%d,\"f\":%d.25,\"t\":\"%d\"}\n",
                        i, i, i);
        fprintf(file, "%s", last);
        ck_assert(fclose(file) == 0);
        tree_age(&tree, name);
}

START_TEST(a_large_file_is_the_same_by_many_threads) {
        static const char *const NAMES[] = { "a.jsonl", "a.csv", "a.txt" };
        const struct format *const FORMATS[] = { &format_jsonl, &format_csv, &format_text };

        setup();
        for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
                for (int k = 0; k < 2; k++) {
                        _cleanup_(outcome_fini) struct outcome alone, outcome;

                        write_rows(NAMES[i], 20000, k ? "a last one,\"x" : "");
                        build(FORMATS[i], NAMES[i], NULL, 1, 1 << 20, 1 << 20, NULL, &alone);
                        build(FORMATS[i], NAMES[i], NULL, CUTS_THREADS, 7001, 1 << 20, NULL, &outcome);
                        expect_same(&alone, &outcome, NAMES[i], 7001);
                }
        teardown();
}
END_TEST

struct watching {
        uint64_t n_last, n_words;
        atomic_bool cancel;
        bool is_to_cancel;
};

static void on_progress(void *userdata, uint64_t n) {
        struct watching *watching = userdata;

        ck_assert(n >= watching->n_last || n < 5000); /* it begins anew when the index is made */
        watching->n_last = n;
        watching->n_words++;
        if (watching->is_to_cancel)
                atomic_store(&watching->cancel, true);
}

START_TEST(progress_is_told_and_a_pass_can_be_cancelled) {
        struct watching watching = { .n_words = 0 };
        const struct index_watch watch = { .progress = on_progress, .userdata = &watching, .cancel = &watching.cancel };
        _cleanup_(outcome_fini) struct outcome outcome, cancelled;

        setup();
        write_rows("a.jsonl", 50000, "");
        build(&format_jsonl, "a.jsonl", NULL, 3, 5000, 1 << 20, &watch, &outcome);
        ck_assert_int_eq(outcome.r, 0);
        ck_assert_uint_ge(watching.n_words, 10);
        watching = (struct watching){ .is_to_cancel = true };
        build(&format_jsonl, "a.jsonl", NULL, 3, 5000, 1 << 20, &watch, &cancelled);
        ck_assert_int_eq(cancelled.r, -ECANCELED);
        ck_assert_uint_eq(watching.n_words, 1);
        ck_assert_uint_lt(watching.n_last, 10000);
        teardown();
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "same", lines_are_the_same_wherever_a_file_is_cut },
                { "same", records_of_json_are_the_same_wherever_a_file_is_cut },
                { "same", rows_of_csv_are_the_same_wherever_a_file_is_cut },
                { "same", files_of_a_folder_are_the_same_wherever_they_are_cut },
                { "chance", texts_by_chance_are_the_same_in_pieces },
                { "chance", quotes_tell_where_a_row_begins },
                { "threads", a_large_file_is_the_same_by_many_threads },
                { "threads", progress_is_told_and_a_pass_can_be_cancelled },
        };

        return suite_run("listing_parts", rows, ARRAY_SIZE(rows));
}
