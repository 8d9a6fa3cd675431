/* The ledger of damaged samples: its lines, its entries in memory, and its file through crashes and other mishaps. */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/data/ledger/ledger.h"
#include "daemon/data/ledger/ledger_book.h"
#include "proto/base/clock.h"
#include "tests/support/tree.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define N_SAMPLES           20u
#define SOON_MS             60000

/* ---- lines --------------------------------------------------------------------------------------------------- */

START_TEST(a_line_is_read_as_it_was_written_whatever_the_names_are) {
        static const char *const TEXTS[] = { "plain",        "", "tab\tand\nline", "back\\slash\\t", "\x01\x7f end",
                                             "w\xc3\xb6rter" };

        for (size_t i = 0; i < ARRAY_LENGTH(TEXTS); i++) {
                struct ledger_entry entry = {
                        .sample = UINT64_MAX - i, .n_met = 7, .first_unix = 0, .last_unix = 1795264270
                };
                char line[LEDGER_LINE_MAX];
                struct ledger_entry again;
                size_t n;

                strcpy(entry.error.text, TEXTS[i]);
                strcpy(entry.field, TEXTS[i]);
                n = ledger_line_print(line, &entry, TEXTS[i]);
                ck_assert_int_eq(line[n - 1], '\n');
                line[n - 1] = '\0';
                ck_assert_ptr_null(strchr(line, '\n'));
                ck_assert_int_eq(ledger_line_parse(line, &again), 0);
                ck_assert_uint_eq(again.sample, entry.sample);
                ck_assert_uint_eq(again.n_met, 7);
                ck_assert_str_eq(again.field, TEXTS[i]);
                ck_assert_int_eq(again.first_unix, 0);
                ck_assert_int_eq(again.last_unix, 1795264270);
                if (i == 0 || i == 1 || i == 3 || i == 5)
                        ck_assert_str_eq(again.error.text, TEXTS[i]); /* the others become printable, as every reason */
        }
}
END_TEST

START_TEST(the_longest_names_fit_a_line) {
        struct ledger_entry entry = {
                .sample = UINT64_MAX, .n_met = UINT64_MAX, .first_unix = INT64_MAX, .last_unix = INT64_MIN
        };
        char line[LEDGER_LINE_MAX], path[PATH_MAX];

        memset(path, '\x01', sizeof(path) - 1);
        path[sizeof(path) - 1] = '\0';
        memset(entry.error.text, '\x02', sizeof(entry.error.text) - 1);
        entry.error.text[sizeof(entry.error.text) - 1] = '\0';
        memset(entry.field, '\x03', sizeof(entry.field) - 1);
        ck_assert_uint_lt(ledger_line_print(line, &entry, path), LEDGER_LINE_MAX);
}
END_TEST

static const char *const NO_LINES[] = {
        "",
        "17",
        "17\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg",                /* torn */
        "17\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tcut\tand more", /* two lines in one */
        "-1\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tcut",
        "99999999999999999999999\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tcut",
        "17\t0\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tcut",
        "17\t1\tyesterday\t2026-11-21T12:00:00Z\ta.jpg\tcut",
        "17\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00\ta.jpg\tcut",
        "17\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Zulu\ta.jpg\tcut",
        "17\t1\t1026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tcut",
        "17\t1\t9999-13-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tcut", /* would be printed as the year 10000 */
        "17\t1\t2026-11-21T12:00:00Z\t1970--1-21T12:00:00Z\ta.jpg\tcut", /* and this as 1969 */
        "17\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tcut\timage\t", /* a column too many */
        "17\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tcut\t0123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
        "x17\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tcut",
};

START_TEST(what_is_no_line_is_none) {
        struct ledger_entry entry;

        ck_assert_int_eq(ledger_line_parse(NO_LINES[_i], &entry), -EBADMSG);
}
END_TEST

START_TEST(a_line_without_a_field_is_of_an_earlier_version) {
        static const char HEADER[] =
                "# dataloaderd damaged samples 1\n# digest 17\n# sample\ttimes\tfirst\tlast\tpath\t"
                "error\n";
        struct ledger_entry entry;

        ck_assert(ledger_header_matches(HEADER, "17"));
        ck_assert(!ledger_header_matches(HEADER, "18"));
        ck_assert_int_eq(ledger_line_parse("17\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tcut", &entry), 0);
        ck_assert_str_eq(entry.error.text, "cut");
        ck_assert_str_eq(entry.field, "");
}
END_TEST

START_TEST(a_line_without_end_is_refused_and_comments_are_passed_over) {
        struct ledger_entry entry;
        char *line = malloc(LEDGER_LINE_MAX * 2);

        ck_assert_ptr_nonnull(line);
        memset(line, '7', LEDGER_LINE_MAX * 2 - 1);
        line[LEDGER_LINE_MAX * 2 - 1] = '\0';
        ck_assert_int_eq(ledger_line_parse(line, &entry), -EBADMSG);
        free(line);
        ck_assert_int_eq(ledger_line_parse("# anything", &entry), 1);
        ck_assert_int_eq(
                ledger_line_parse("17\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tends in \\", &entry), 0);
        ck_assert_int_eq(ledger_line_parse("17\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\t\\x", &entry), 0);
        ck_assert_int_eq(ledger_line_parse("17\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\t\\x4", &entry),
                         0);
}
END_TEST

/* ---- the book ------------------------------------------------------------------------------------------------ */

START_TEST(a_sample_is_entered_once_and_counted_each_time) {
        struct ledger_entry entry;
        struct ledger_book book;
        uint32_t idx = 0;

        ck_assert_int_eq(ledger_book_init(&book, 1000), 0);
        ck_assert(!ledger_book_at(&book, 0, &entry));
        ck_assert_int_eq(ledger_book_meet(&book, 999, "image", "cut", 10), LEDGER_BOOK_ADDED);
        ck_assert_int_eq(ledger_book_meet(&book, 5, "image", "gone", 11), LEDGER_BOOK_ADDED);
        ck_assert_int_eq(ledger_book_meet(&book, 999, "image", "gone too", 12), LEDGER_BOOK_KNOWN);
        ck_assert_uint_eq(book.n_met, 2);
        ck_assert(ledger_book_at(&book, 0, &entry));
        ck_assert_uint_eq(entry.sample, 999);
        ck_assert_uint_eq(entry.n_met, 2);
        ck_assert_int_eq(entry.first_unix, 10);
        ck_assert_int_eq(entry.last_unix, 12);
        ck_assert_str_eq(entry.error.text, "gone too"); /* as met last */

        /* Each is written once, and again when it has changed and somebody asks for changes. */
        ck_assert(ledger_book_take(&book, LEDGER_NEW, &idx, &entry));
        ck_assert(ledger_book_take(&book, LEDGER_NEW, &idx, &entry));
        ck_assert(!ledger_book_take(&book, LEDGER_NEW, &idx, &entry));
        ck_assert_int_eq(ledger_book_meet(&book, 5, "image", "gone", 13), LEDGER_BOOK_KNOWN);
        idx = 0;
        ck_assert(!ledger_book_take(&book, LEDGER_NEW, &idx, &entry));
        ck_assert(ledger_book_take(&book, LEDGER_REPEATED, &idx, &entry));
        ck_assert_uint_eq(entry.sample, 5);
        ck_assert(!ledger_book_take(&book, LEDGER_REPEATED, &idx, &entry));
        ledger_book_unwrite(&book);
        idx = 0;
        ck_assert(ledger_book_take(&book, LEDGER_NEW, &idx, &entry));
        ledger_book_fini(&book);
        ledger_book_fini(&book);
}
END_TEST

START_TEST(beyond_the_limit_samples_are_counted_and_said_once) {
        struct ledger_entry entry = { .n_met = 1 };
        struct ledger_book book;

        ck_assert_int_eq(ledger_book_init(&book, 10ull * LEDGER_ENTRIES_MAX), 0);
        for (uint64_t i = 0; i < LEDGER_ENTRIES_MAX; i++)
                ck_assert_int_eq(ledger_book_meet(&book, i * 7, "image", "cut", 1), LEDGER_BOOK_ADDED);
        ck_assert_int_eq(ledger_book_meet(&book, 1, "image", "cut", 1), LEDGER_BOOK_FULL);
        ck_assert_int_eq(ledger_book_meet(&book, 1, "image", "cut", 1), LEDGER_BOOK_KNOWN);
        ck_assert_int_eq(ledger_book_meet(&book, 2, "image", "cut", 1), LEDGER_BOOK_KNOWN);
        ck_assert_int_eq(ledger_book_meet(&book, 7, "image", "cut", 1), LEDGER_BOOK_KNOWN);
        ck_assert_uint_eq(book.n_met, LEDGER_ENTRIES_MAX + 2);
        ck_assert_uint_eq(book.n_kept, LEDGER_ENTRIES_MAX);
        for (uint64_t i = 0; i < LEDGER_ENTRIES_MAX; i++) {
                ck_assert(ledger_book_at(&book, i, &entry));
                ck_assert_uint_eq(entry.sample, i * 7);
                ck_assert_uint_eq(entry.n_met, i == 1 ? 2 : 1);
        }
        entry.sample = 3;
        ck_assert_int_eq(ledger_book_put(&book, &entry), -ENOSPC);
        entry.sample = 10ull * LEDGER_ENTRIES_MAX;
        ck_assert_int_eq(ledger_book_put(&book, &entry), -ERANGE);
        ledger_book_fini(&book);
}
END_TEST

/* ---- the file ------------------------------------------------------------------------------------------------ */

struct fixture {
        struct tree tree;
        char index_dir[96], folder[96];
        struct ledgers *ledgers;
        struct dataset *dataset;
        struct ledger *ledger;
};

static struct fixture f;

static void open_dataset(void) {
        struct dataset_spec spec = { .name = "photos", .path = f.folder, .format = "imagefolder" };
        struct why why;

        if (dataset_open(&spec, f.index_dir, NULL, &f.dataset, NULL, &why) < 0)
                ck_abort_msg("%s", why.text);
}

static void begin(void) {
        ck_assert_int_eq(ledgers_new(f.index_dir, &f.ledgers), 0);
        open_dataset();
        ck_assert_int_eq(ledger_open(f.ledgers, f.dataset, &f.ledger), 0);
}

static void end(void) {
        ledger_unref(f.ledger);
        dataset_unref(f.dataset);
        ledgers_free(f.ledgers);
}

static void setup(void) {
        char path[64];

        tree_make(&f.tree);
        tree_dir(&f.tree, "index");
        for (uint32_t i = 0; i < N_SAMPLES; i++) {
                snprintf(path, sizeof(path), "photos/cats/%02u.png", i);
                tree_file(&f.tree, path, "not looked at");
        }
        tree_age(&f.tree, "photos/cats");
        tree_age(&f.tree, "photos");
        snprintf(f.index_dir, sizeof(f.index_dir), "%s/index", f.tree.root);
        snprintf(f.folder, sizeof(f.folder), "%s/photos", f.tree.root);
        begin();
}

static void teardown(void) {
        tree_remove(&f.tree);
}

static void restart(void) {
        end();
        begin();
}

/* What lies there, or "" if nothing does. */
static const char *text_of(const char *path) {
        static char text[65536];
        int fd = openat(f.tree.fd, path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

        ck_assert_int_ge(n, 0);
        text[n] = '\0';
        if (fd >= 0)
                close(fd);
        return text;
}

static void append_text(const char *path, const char *text, size_t n) {
        int fd = openat(f.tree.fd, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, text, n), (ssize_t)n);
        close(fd);
}

static unsigned n_lines(const char *path) {
        unsigned n = 0;

        for (const char *c = text_of(path); *c; c++)
                n += *c == '\n';
        return n;
}

static uint64_t n_met(uint64_t sample) {
        struct ledger_entry entry;

        for (uint64_t i = 0; ledger_at(f.ledger, i, &entry); i++)
                if (entry.sample == sample)
                        return entry.n_met;
        return 0;
}

#define FILE_PATH "index/photos.errors"

START_TEST(nothing_is_written_for_a_healthy_dataset) {
        restart();
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 0);
        end();
        ck_assert_int_eq(faccessat(f.tree.fd, FILE_PATH, F_OK, 0), -1);
}
END_TEST

START_TEST(what_is_new_is_in_the_file_within_a_second) {
        uint64_t begin_ns = clock_now_ns();

        ledger_meet(f.ledger, 3, "image", "cut short");
        ledger_meet(f.ledger, 9, "image", "gone");
        while (n_lines(FILE_PATH) < 5) {
                ck_assert_uint_lt(clock_now_ns() - begin_ns, SOON_MS * 1000000ull);
                usleep(1000);
        }
        ck_assert_ptr_nonnull(strstr(text_of(FILE_PATH), "\n3\t1\t"));
        ck_assert_ptr_nonnull(strstr(text_of(FILE_PATH), "\tcats/03.png\tcut short\timage\n"));
        end();
        ck_assert_uint_eq(n_lines(FILE_PATH), 5); /* nothing more to say */
}
END_TEST

START_TEST(entries_and_counts_survive_a_restart) {
        ledger_meet(f.ledger, 3, "image", "cut short");
        for (int i = 0; i < 10; i++)
                ledger_meet(f.ledger, 9, "image", "gone");
        restart();
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 2);
        ck_assert_uint_eq(n_met(3), 1);
        ck_assert_uint_eq(n_met(9), 10);
        ledger_meet(f.ledger, 9, "image", "gone");
        restart();
        ck_assert_uint_eq(n_met(9), 11);
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 2);
        end();
}
END_TEST

static const char *const TORN[] = {
        "11\t1\t2026-11-21T12:00:00Z\t2026-11-2", "11\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z",
        "11\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\ta.jpg\tno pict", /* all columns are there */
};

START_TEST(a_torn_last_line_is_no_entry_and_does_not_spoil_the_next) {
        const char *torn = TORN[_i];

        ledger_meet(f.ledger, 3, "image", "cut short");
        end();
        append_text(FILE_PATH, torn, strlen(torn));
        begin();
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 1);
        ledger_meet(f.ledger, 12, "image", "gone");
        restart();
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 2);
        ck_assert_uint_eq(n_met(3), 1);
        ck_assert_uint_eq(n_met(11), 0);
        ck_assert_uint_eq(n_met(12), 1);
        end();
}
END_TEST

START_TEST(rubbish_in_the_middle_costs_only_itself) {
        static const char RUBBISH[] =
                "\0\0\0\0\0\xff\xfe\n99\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\tx\tno such sample\n"
                "7\t1\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\tx\tby hand\n";

        ledger_meet(f.ledger, 3, "image", "cut short");
        end();
        append_text(FILE_PATH, RUBBISH, sizeof(RUBBISH) - 1);
        begin();
        ck_assert_uint_eq(n_met(3), 1);
        ck_assert_uint_eq(n_met(7), 1);
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 2);
        end();
}
END_TEST

START_TEST(the_ledger_of_another_content_is_put_aside) {
        ledger_meet(f.ledger, 3, "image", "cut short");
        end();
        tree_file(&f.tree, "photos/cats/new.png", "one more");
        tree_age(&f.tree, "photos/cats");
        begin();
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 0);
        ck_assert_ptr_nonnull(strstr(text_of("index/photos.errors.old"), "cats/03.png"));
        ledger_meet(f.ledger, N_SAMPLES, "image", "new");
        restart();
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 1);
        ck_assert_ptr_null(strstr(text_of(FILE_PATH), "cats/03.png"));
        end();
}
END_TEST

static const char *const NO_LEDGERS[] = { "something else\n", "# dataloaderd damaged samples 1\n# dig", "\n" };

START_TEST(what_is_no_ledger_is_put_aside) {
        end();
        append_text(FILE_PATH, NO_LEDGERS[_i], strlen(NO_LEDGERS[_i]));
        begin();
        ck_assert_str_eq(text_of("index/photos.errors.old"), NO_LEDGERS[_i]);
        ledger_meet(f.ledger, 3, "image", "cut short");
        restart();
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 1);
        end();
}
END_TEST

START_TEST(a_file_that_is_removed_is_made_anew_with_all_that_is_known) {
        ledger_meet(f.ledger, 3, "image", "cut short");
        restart();
        ck_assert_int_eq(unlinkat(f.tree.fd, FILE_PATH, 0), 0);
        ledger_meet(f.ledger, 9, "image", "gone");
        restart();
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 2);
        end();
}
END_TEST

START_TEST(a_file_that_repeats_itself_is_written_anew) {
        char line[128];

        ledger_meet(f.ledger, 3, "image", "cut short");
        end();
        for (unsigned i = 2; i < 3000; i++) {
                snprintf(line, sizeof(line), "%u\t%u\t2026-11-21T12:00:00Z\t2026-11-21T12:00:00Z\tx\tcut\n", i % 5, i);
                append_text(FILE_PATH, line, strlen(line));
        }
        begin();
        ck_assert_uint_eq(n_lines(FILE_PATH), 3 + 5);
        for (unsigned i = 0; i < 5; i++)
                ck_assert_uint_eq(n_met(i), 2995 + i);
        ledger_meet(f.ledger, 9, "image", "gone");
        restart();
        ck_assert_uint_eq(n_lines(FILE_PATH), 3 + 6);
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 6);
        end();
}
END_TEST

/* A device on which nothing fits; and a folder that is not there. */
START_TEST(what_cannot_be_written_is_kept_in_memory_and_written_later) {
        if (_i == 0)
                tree_link(&f.tree, FILE_PATH, "/dev/full");
        else
                ck_assert_int_eq(renameat(f.tree.fd, "index", f.tree.fd, "away"), 0);
        if (_i == 1)
                tree_file(&f.tree, "index", "no folder");
        ledger_meet(f.ledger, 3, "image", "cut short");
        usleep(500000);
        ledger_meet(f.ledger, 9, "image", "gone");
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 2);
        usleep(500000);
        ck_assert_int_eq(unlinkat(f.tree.fd, _i == 0 ? FILE_PATH : "index", 0), 0);
        ledger_meet(f.ledger, 12, "image", "back");
        restart();
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 3);
        end();
}
END_TEST

START_TEST(who_opens_the_same_content_shares_its_ledger) {
        struct dataset *first = f.dataset;
        struct ledger *other;

        ledger_meet(f.ledger, 3, "image", "cut short");
        open_dataset();
        ck_assert_int_eq(ledger_open(f.ledgers, f.dataset, &other), 0);
        ck_assert_ptr_eq(other, f.ledger);
        ledger_unref(other);
        dataset_unref(first);
        ck_assert_uint_eq(ledger_n_samples(f.ledger), 1);
        end();
}
END_TEST

static void *meet_main(void *userdata) {
        for (uint64_t i = 0; i < 20000; i++)
                ledger_meet(f.ledger, (i + (uintptr_t)userdata) % N_SAMPLES, "image", "cut");
        return NULL;
}

START_TEST(many_workers_meet_while_it_is_written) {
        pthread_t threads[4];
        uint64_t sum = 0;

        for (uintptr_t i = 0; i < ARRAY_LENGTH(threads); i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, meet_main, (void *)i), 0);
        for (size_t i = 0; i < ARRAY_LENGTH(threads); i++)
                pthread_join(threads[i], NULL);
        restart();
        for (uint64_t i = 0; i < N_SAMPLES; i++)
                sum += n_met(i);
        ck_assert_uint_eq(sum, ARRAY_LENGTH(threads) * 20000);
        end();
}
END_TEST

int main(void) {
        Suite *suite = suite_create("ledger");
        TCase *lines = tcase_create("lines"), *book = tcase_create("book"), *file = tcase_create("file");
        SRunner *runner;
        int n_failed;

        tcase_add_test(lines, a_line_is_read_as_it_was_written_whatever_the_names_are);
        tcase_add_test(lines, the_longest_names_fit_a_line);
        tcase_add_loop_test(lines, what_is_no_line_is_none, 0, (int)ARRAY_LENGTH(NO_LINES));
        tcase_add_test(lines, a_line_without_a_field_is_of_an_earlier_version);
        tcase_add_test(lines, a_line_without_end_is_refused_and_comments_are_passed_over);
        suite_add_tcase(suite, lines);

        tcase_add_test(book, a_sample_is_entered_once_and_counted_each_time);
        tcase_add_test(book, beyond_the_limit_samples_are_counted_and_said_once);
        tcase_set_timeout(book, 60);
        suite_add_tcase(suite, book);

        tcase_add_checked_fixture(file, setup, teardown);
        tcase_add_test(file, nothing_is_written_for_a_healthy_dataset);
        tcase_add_test(file, what_is_new_is_in_the_file_within_a_second);
        tcase_add_test(file, entries_and_counts_survive_a_restart);
        tcase_add_loop_test(file, a_torn_last_line_is_no_entry_and_does_not_spoil_the_next, 0, ARRAY_LENGTH(TORN));
        tcase_add_test(file, rubbish_in_the_middle_costs_only_itself);
        tcase_add_test(file, the_ledger_of_another_content_is_put_aside);
        tcase_add_loop_test(file, what_is_no_ledger_is_put_aside, 0, (int)ARRAY_LENGTH(NO_LEDGERS));
        tcase_add_test(file, a_file_that_is_removed_is_made_anew_with_all_that_is_known);
        tcase_add_test(file, a_file_that_repeats_itself_is_written_anew);
        tcase_add_loop_test(file, what_cannot_be_written_is_kept_in_memory_and_written_later, 0, 2);
        tcase_add_test(file, who_opens_the_same_content_shares_its_ledger);
        tcase_add_test(file, many_workers_meet_while_it_is_written);
        tcase_set_timeout(file, 60);
        suite_add_tcase(suite, file);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
