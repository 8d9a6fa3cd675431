/* The journal: what is noted is read, what is torn or damaged costs itself alone, another plan's is none. */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/tree/journal.h"
#include "tests/support/temporary.h"

#define PLAN     "8f3a09b2c4d1000000000000000000000000000000000000000000000000cafe"
#define OTHER    "8f3a09b2c4d1000000000000000000000000000000000000000000000000caff"
#define N_CHUNKS 10000u
#define HEADER   64
#define RECORD   32

static char folder[64], path[128];
static struct digest128 digests[N_CHUNKS];
static struct journal journal;
static struct why why;

static struct digest128 digest_of(uint64_t idx) {
        return (struct digest128){ .low = idx * 7 + 1, .high = idx };
}

static void setup(void) {
        temporary_folder(folder, sizeof(folder));
        snprintf(path, sizeof(path), "%s/journal", folder);
        memset(digests, 0, sizeof(digests));
        journal = JOURNAL_NONE;
        ck_assert_int_eq(journal_begin(&journal, path, PLAN, N_CHUNKS, digests, &why), 0);
}

static void teardown(void) {
        journal_close(&journal);
        unlink(path);
        ck_assert_int_eq(rmdir(folder), 0); /* nothing is left beside it */
}

static void note(uint64_t first, uint64_t end) {
        for (uint64_t i = first; i < end; i++)
                ck_assert_int_eq(journal_note(&journal, i, digest_of(i)), 0);
}

/* Reads, and checks that just these are known. Returns the number of records. */
static int64_t check_known(uint64_t first, uint64_t end, uint64_t but) {
        int64_t n;

        memset(digests, 0, sizeof(digests));
        n = journal_read(path, PLAN, N_CHUNKS, digests, &why);
        for (uint64_t i = 0; i < N_CHUNKS; i++) {
                bool is_known = i >= first && i < end && i != but;

                if (digest128_is_known(digests[i]) != is_known ||
                    (is_known && !digest128_equal(digests[i], digest_of(i))))
                        ck_abort_msg("chunk %lu", (unsigned long)i);
        }
        return n;
}

START_TEST(what_was_noted_is_read) {
        note(0, 5000); /* more than are read at once */
        ck_assert_int_eq(check_known(0, 5000, N_CHUNKS), 5000);
}
END_TEST

START_TEST(what_was_taken_back_is_not_known_and_may_be_noted_again) {
        note(0, 10);
        ck_assert_int_eq(journal_note(&journal, 3, (struct digest128){ 0 }), 0);
        ck_assert_int_eq(check_known(0, 10, 3), 11);
        note(3, 4);
        ck_assert_int_eq(check_known(0, 10, N_CHUNKS), 12);
}
END_TEST

START_TEST(a_journal_cut_anywhere_keeps_all_records_before_the_cut) {
        note(0, 4);
        for (off_t size = HEADER + 4 * RECORD; size-- > 0;) {
                uint64_t n = size < HEADER ? 0 : (uint64_t)(size - HEADER) / RECORD;

                ck_assert_int_eq(truncate(path, size), 0);
                ck_assert_int_eq(check_known(0, n, N_CHUNKS), (int64_t)n);
        }
}
END_TEST

START_TEST(behind_a_torn_record_it_goes_on) {
        note(0, 4);
        ck_assert_int_eq(truncate(path, HEADER + 3 * RECORD + 11), 0);
        journal_close(&journal);
        ck_assert_int_eq(journal_continue(&journal, path, PLAN, N_CHUNKS, &why), 0);
        note(3, 9);
        ck_assert_int_eq(check_known(0, 9, N_CHUNKS), 9);
}
END_TEST

START_TEST(a_damaged_byte_costs_the_record_that_it_is_in) {
        uint8_t byte;
        int fd = open(path, O_RDWR);

        note(0, 8);
        for (off_t at = HEADER; at < HEADER + 8 * RECORD; at += 5) {
                ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
                byte ^= 0x40;
                ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
                ck_assert_int_eq(check_known(0, 8, (uint64_t)(at - HEADER) / RECORD), 8);
                byte ^= 0x40;
                ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
        }
        for (off_t at = 0; at < HEADER; at++) {
                ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
                byte ^= 0x40;
                ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
                ck_assert_int_eq(check_known(0, 0, N_CHUNKS), 0);
                byte ^= 0x40;
                ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
        }
        close(fd);
}
END_TEST

START_TEST(zeros_of_a_power_cut_are_no_records) {
        note(0, 2);
        ck_assert_int_eq(truncate(path, HEADER + 100 * RECORD), 0);
        ck_assert_int_eq(check_known(0, 2, N_CHUNKS), 100);
}
END_TEST

START_TEST(the_journal_of_another_plan_is_none_and_is_replaced_whole) {
        note(0, 8);
        memset(digests, 0, sizeof(digests));
        ck_assert_int_eq(journal_read(path, OTHER, N_CHUNKS, digests, &why), 0);
        ck_assert_int_eq(journal_read(path, PLAN, N_CHUNKS - 1, digests, &why), 0);
        ck_assert(!digest128_is_known(digests[0]));
        ck_assert_int_lt(journal_continue(&journal, path, OTHER, N_CHUNKS, &why), 0);
        journal_close(&journal);
        digests[77] = digest_of(77);
        ck_assert_int_eq(journal_begin(&journal, path, OTHER, N_CHUNKS, digests, &why), 0);
        digests[77] = (struct digest128){ 0 };
        ck_assert_int_eq(journal_read(path, OTHER, N_CHUNKS, digests, &why), 1);
        ck_assert(digest128_equal(digests[77], digest_of(77)));
        ck_assert_int_eq(check_known(0, 0, N_CHUNKS), 0);
}
END_TEST

START_TEST(records_of_another_journal_do_not_count_here) {
        uint8_t record[RECORD];
        int fd = open(path, O_RDONLY);

        note(0, 1);
        ck_assert_int_eq(pread(fd, record, RECORD, HEADER), RECORD);
        close(fd);
        journal_close(&journal);
        memset(digests, 0, sizeof(digests));
        ck_assert_int_eq(journal_begin(&journal, path, OTHER, N_CHUNKS, digests, &why), 0);
        ck_assert_int_eq(pwrite(journal.fd, record, RECORD, HEADER), RECORD);
        ck_assert_int_eq(journal_read(path, OTHER, N_CHUNKS, digests, &why), 1);
        ck_assert(!digest128_is_known(digests[0]));
}
END_TEST

START_TEST(no_journal_and_what_is_none_are_told_apart_from_errors) {
        unlink(path);
        ck_assert_int_eq(journal_read(path, PLAN, N_CHUNKS, digests, &why), 0);
        ck_assert_int_eq(symlink("/dev/zero", path), 0);
        ck_assert_int_eq(journal_read(path, PLAN, N_CHUNKS, digests, &why), 0);
        unlink(path);
        ck_assert_int_eq(mkfifo(path, 0600), 0);
        ck_assert_int_eq(journal_read(path, PLAN, N_CHUNKS, digests, &why), 0);
        ck_assert_int_lt(journal_read("/dev/null/journal", PLAN, N_CHUNKS, digests, &why), 0);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("journal");
        TCase *all = tcase_create("all");
        SRunner *runner;
        int n_failed;

        tcase_add_checked_fixture(all, setup, teardown);
        tcase_add_test(all, what_was_noted_is_read);
        tcase_add_test(all, what_was_taken_back_is_not_known_and_may_be_noted_again);
        tcase_add_test(all, a_journal_cut_anywhere_keeps_all_records_before_the_cut);
        tcase_add_test(all, behind_a_torn_record_it_goes_on);
        tcase_add_test(all, a_damaged_byte_costs_the_record_that_it_is_in);
        tcase_add_test(all, zeros_of_a_power_cut_are_no_records);
        tcase_add_test(all, the_journal_of_another_plan_is_none_and_is_replaced_whole);
        tcase_add_test(all, records_of_another_journal_do_not_count_here);
        tcase_add_test(all, no_journal_and_what_is_none_are_told_apart_from_errors);
        tcase_set_timeout(all, 60);
        suite_add_tcase(suite, all);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
