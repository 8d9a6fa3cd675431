/* Where a worker's time goes: marks, sums, and what many workers add up. */

#include <check.h>
#include <pthread.h>
#include <string.h>

#include "daemon/augment/step.h"
#include "daemon/base/machine/own_io.h"
#include "daemon/base/stage_clock.h"
#include "daemon/pipeline/jobs/tally.h"
#include "tests/support/suite.h"

START_TEST(the_stages_of_a_sample_add_up_to_all_of_its_time) {
        struct stage_clock clock = { 0 };
        struct stage_total totals[N_STAGES] = { 0 };
        static struct stage_sums sums;
        uint64_t begin_ns, end_ns, sum_ns = 0;

        memset(&sums, 0, sizeof(sums));
        begin_ns = stage_clock_start(&clock, STAGE_OTHER);
        stage_enter(&clock, STAGE_HEADER);
        stage_enter(&clock, STAGE_DECODE);
        stage_enter(&clock, STAGE_DECODE); /* nothing */
        for (volatile int i = 0; i < 100000; i++)
                ;
        stage_clock_move(&clock, STAGE_RESIZE, 1000);
        stage_enter(&clock, STAGE_OTHER);
        end_ns = stage_clock_stop(&clock);
        stage_clock_harvest(&clock, &sums);
        stage_sums_add_to(&sums, totals);
        for (uint32_t i = 0; i < N_STAGES; i++)
                sum_ns += totals[i].ns;
        ck_assert_uint_eq(sum_ns, end_ns - begin_ns);
        ck_assert_uint_eq(totals[STAGE_RESIZE].ns, 1000);
        ck_assert_uint_eq(totals[STAGE_RESIZE].n, 1);
        ck_assert_uint_eq(totals[STAGE_DECODE].n, 1);
        ck_assert_uint_eq(totals[STAGE_OTHER].n, 2);
        stage_clock_harvest(&clock, &sums); /* it is empty now */
        memset(totals, 0, sizeof(totals));
        stage_sums_add_to(&sums, totals);
        ck_assert_uint_eq(totals[STAGE_RESIZE].ns, 1000);
}
END_TEST

START_TEST(no_more_is_moved_than_a_stage_has) {
        struct stage_clock clock = { 0 };

        stage_clock_start(&clock, STAGE_DECODE);
        stage_clock_move(&clock, STAGE_RESIZE, UINT64_MAX);
        ck_assert_uint_eq(clock.sums[STAGE_DECODE].ns, 0);
        ck_assert_uint_lt(clock.sums[STAGE_RESIZE].ns, UINT64_MAX / 2);
        stage_clock_drop(&clock);
        ck_assert_uint_eq(clock.sums[STAGE_RESIZE].ns + clock.used, 0);
        stage_enter(NULL, STAGE_DECODE);
        stage_clock_move(NULL, STAGE_RESIZE, 1);
}
END_TEST

START_TEST(a_step_that_takes_time_has_the_stage_of_its_own_name) {
        unsigned n = 0;

        for (const struct kind *const *kind = picture_steps.kinds; *kind; kind++) {
                enum stage_id stage = ((const struct step_type *)*kind)->stage;

                if (stage != STAGE_OTHER)
                        ck_assert_str_eq(stage_name(stage), (*kind)->name);
                n += stage != STAGE_OTHER;
        }
        ck_assert_uint_gt(n, 30);
}
END_TEST

static struct tally tallies[TALLIES];

static void *count_much(void *userdata) {
        struct stage_clock clock = { 0 };

        for (int i = 0; i < 5000; i++) {
                struct tally *tally = &tallies[(uintptr_t)userdata % TALLIES];

                stage_clock_start(&clock, STAGE_DECODE);
                stage_enter(&clock, STAGE_CONVERT);
                stage_clock_stop(&clock);
                stage_clock_harvest(&clock, &tally->stages);
                tally_add(tally, &(struct tally_counts){ .n_samples = 1, .n_bytes_read = 10 });
        }
        return NULL;
}

START_TEST(what_many_workers_count_is_all_there) {
        pthread_t threads[10]; /* two of them in one tally */
        struct tally_totals totals;

        memset(tallies, 0, sizeof(tallies));
        for (uintptr_t i = 0; i < 10; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, count_much, (void *)i), 0);
        tallies_total(tallies, &totals); /* while they count */
        for (int i = 0; i < 10; i++)
                pthread_join(threads[i], NULL);
        tallies_total(tallies, &totals);
        ck_assert_uint_eq(totals.counts.n_samples, 50000);
        ck_assert_uint_eq(totals.counts.n_bytes_read, 500000);
        ck_assert_uint_eq(totals.stages[STAGE_DECODE].n, 50000);
        ck_assert_uint_eq(totals.stages[STAGE_CONVERT].n, 50000);
        ck_assert_uint_eq(sizeof(tallies[0]) % 64, 0);
}
END_TEST

START_TEST(bytes_of_storage_are_found_in_the_kernels_text) {
        uint64_t bytes = 7;

        ck_assert(own_storage_bytes_parse("rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 0\n", &bytes));
        ck_assert_uint_eq(bytes, 4096);
        ck_assert(!own_storage_bytes_parse("", &bytes));
        ck_assert(!own_storage_bytes_parse("rchar: 1\n", &bytes));
        ck_assert(!own_storage_bytes_parse("a\nread_bytes: -1\n", &bytes));
        ck_assert(!own_storage_bytes_parse("a\nread_bytes: 12x\n", &bytes));
        ck_assert_uint_eq(bytes, 4096);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "clock", the_stages_of_a_sample_add_up_to_all_of_its_time, 0 },
                { "clock", no_more_is_moved_than_a_stage_has, 0 },
                { "clock", a_step_that_takes_time_has_the_stage_of_its_own_name, 0 },
                { "tally", what_many_workers_count_is_all_there, 0 },
                { "machine", bytes_of_storage_are_found_in_the_kernels_text, 0 },
        };

        return suite_run("stage_clock", rows, sizeof(rows) / sizeof(rows[0]));
}
