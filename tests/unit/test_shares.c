/* How tasks are shared between jobs: the arithmetic, over made-up jobs. */
#include <check.h>
#include <string.h>

#include "daemon/pipeline/jobs/shares.h"
#include "tests/support/suite.h"

#define N_JOBS 8u
#define DEPTH  64u
#define TASKS  256u

struct model_job {
        struct task_group user; /* its own, unless of_one_user() */
        struct task_group household;
        struct task_share share;
        uint32_t weight;
        bool wants;
        bool hangs; /* what it takes does not come back */
};

static struct shares shares;
static struct model_job jobs[N_JOBS];

static void begin(uint32_t n_depth, uint32_t n_tasks) {
        memset(jobs, 0, sizeof(jobs));
        for (uint32_t i = 0; i < N_JOBS; i++) {
                jobs[i].weight = 1;
                jobs[i].share.group = &jobs[i].user;
        }
        shares_init(&shares, n_depth, n_tasks);
}

static void of_one_user(uint32_t first, uint32_t last) {
        for (uint32_t i = first; i <= last; i++)
                jobs[i].share.group = &jobs[first].user;
}

/* The job lives in a household, which is that of its first job. */
static void lives_in(uint32_t i, uint32_t household, uint32_t user) {
        jobs[i].share.group = &jobs[household].household;
        jobs[household].household.above = &jobs[user].user;
}

static struct model_job *next_job(void) {
        struct model_job *best = NULL;

        for (uint32_t i = 0; i < N_JOBS; i++) {
                struct model_job *job = &jobs[i];

                if (!job->wants || !shares_may_take(&shares, &job->share, job->weight))
                        continue;
                if (!best || shares_compare(&job->share, job->weight, &best->share, best->weight) < 0)
                        best = job;
        }
        return best;
}

/* One planning: hands out all that may be had. */
static void plan(void) {
        struct model_job *job;

        shares_begin(&shares);
        for (uint32_t i = 0; i < N_JOBS; i++)
                if (jobs[i].wants || jobs[i].share.n_tasks > jobs[i].share.n_stuck)
                        shares_want(&shares, &jobs[i].share, jobs[i].weight);
        while ((job = next_job()))
                shares_take(&shares, &job->share);
}

/* So many tasks of each job that does not hang come back. */
static void come_back(uint32_t n) {
        for (uint32_t i = 0; i < N_JOBS; i++)
                for (uint32_t k = 0; k < n && !jobs[i].hangs && jobs[i].share.n_tasks > 0; k++)
                        shares_give(&shares, &jobs[i].share, false);
}

/* A while later all that hangs is known to be stuck. */
static void notice_stuck(void) {
        for (uint32_t i = 0; i < N_JOBS; i++)
                while (jobs[i].hangs && jobs[i].share.n_stuck < jobs[i].share.n_tasks)
                        shares_set_stuck(&shares, &jobs[i].share, true);
}

static void go_on(uint32_t n_rounds) {
        for (uint32_t i = 0; i < n_rounds; i++) {
                come_back(4);
                plan();
        }
}

START_TEST(a_job_alone_has_the_whole_depth_and_no_more) {
        begin(DEPTH, TASKS);
        jobs[0].wants = true;
        plan();
        ck_assert_uint_eq(jobs[0].share.n_tasks, DEPTH);
        go_on(10);
        ck_assert_uint_eq(jobs[0].share.n_tasks, DEPTH);
}
END_TEST

START_TEST(who_comes_gets_its_part_at_once_and_those_before_come_down_to_theirs) {
        begin(DEPTH, TASKS);
        jobs[0].wants = true;
        plan();
        jobs[1].wants = true;
        plan();
        ck_assert_uint_eq(jobs[1].share.n_tasks, DEPTH / 2);
        go_on(20);
        ck_assert_uint_eq(jobs[0].share.n_tasks, DEPTH / 2);
        ck_assert_uint_eq(jobs[1].share.n_tasks, DEPTH / 2);
}
END_TEST

START_TEST(parts_follow_the_weights) {
        begin(DEPTH, TASKS);
        jobs[0].weight = 3;
        jobs[0].wants = jobs[1].wants = true;
        plan();
        go_on(20);
        ck_assert_uint_eq(jobs[0].share.n_tasks, 48);
        ck_assert_uint_eq(jobs[1].share.n_tasks, 16);
}
END_TEST

START_TEST(a_user_gets_no_more_by_having_more_jobs) {
        begin(DEPTH, TASKS);
        of_one_user(1, 4);
        for (uint32_t i = 0; i < 5; i++)
                jobs[i].wants = true;
        plan();
        go_on(20);
        ck_assert_uint_eq(jobs[0].share.n_tasks, DEPTH / 2);
        for (uint32_t i = 1; i < 5; i++)
                ck_assert_uint_eq(jobs[i].share.n_tasks, DEPTH / 8);
}
END_TEST

START_TEST(a_user_alone_has_the_whole_depth_for_all_jobs) {
        begin(DEPTH, TASKS);
        of_one_user(0, 3);
        for (uint32_t i = 0; i < 4; i++)
                jobs[i].wants = true;
        plan();
        for (uint32_t i = 0; i < 4; i++)
                ck_assert_uint_eq(jobs[i].share.n_tasks, DEPTH / 4);
        jobs[2].wants = jobs[3].wants = false;
        go_on(20);
        ck_assert_uint_eq(jobs[0].share.n_tasks + jobs[1].share.n_tasks, DEPTH);
}
END_TEST

START_TEST(a_user_has_the_mean_of_the_weights) {
        begin(DEPTH, TASKS);
        of_one_user(1, 2);
        jobs[0].weight = 2;
        jobs[1].weight = 3;
        for (uint32_t i = 0; i < 3; i++)
                jobs[i].wants = true;
        plan();
        go_on(20);
        ck_assert_uint_eq(jobs[0].share.n_tasks, 32);
        ck_assert_uint_eq(jobs[1].share.n_tasks, 24);
        ck_assert_uint_eq(jobs[2].share.n_tasks, 8);
}
END_TEST

START_TEST(a_household_gets_no_more_by_having_more_jobs) {
        begin(DEPTH, TASKS);
        lives_in(0, 0, 0);
        lives_in(1, 1, 1);
        for (uint32_t i = 0; i < 6; i++) {
                if (i > 1)
                        lives_in(i, 2, 1);
                jobs[i].wants = true;
        }
        plan();
        go_on(20);
        ck_assert_uint_eq(jobs[0].share.n_tasks, DEPTH / 2);
        ck_assert_uint_eq(jobs[1].share.n_tasks, DEPTH / 4);
        for (uint32_t i = 2; i < 6; i++)
                ck_assert_uint_eq(jobs[i].share.n_tasks, DEPTH / 16);
        jobs[0].wants = false;
        go_on(20);
        ck_assert_uint_eq(jobs[1].share.n_tasks, DEPTH / 2);
        ck_assert_uint_eq(jobs[1].user.n_tasks, DEPTH);
        jobs[1].wants = false;
        go_on(20);
        ck_assert_uint_eq(jobs[2].household.n_tasks, DEPTH);
}
END_TEST

START_TEST(all_jobs_of_a_user_that_hang_leave_tasks_to_others_and_some_to_the_user) {
        static const struct {
                uint32_t n_tasks, n_own, n_others;
        } ROWS[] = { { 64, 1, 2 }, { 128, 5, 5 }, { 256, 7, 10 } };

        begin(DEPTH, ROWS[_i].n_tasks);
        of_one_user(0, 5);
        for (uint32_t i = 0; i < 6; i++) { /* the first ones take the most: one after the other is the worst case */
                jobs[i].wants = jobs[i].hangs = true;
                plan();
                notice_stuck();
                if (i == (_i == 2 ? 4 : 2))
                        ck_assert_uint_ge(jobs[i].share.n_tasks, ROWS[_i].n_own);
        }
        jobs[6].wants = true;
        plan();
        go_on(10);
        ck_assert_uint_ge(jobs[6].share.n_tasks, ROWS[_i].n_others);
}
END_TEST

START_TEST(what_one_does_not_want_the_others_have) {
        begin(DEPTH, TASKS);
        for (uint32_t i = 0; i < 4; i++)
                jobs[i].wants = true;
        plan();
        go_on(20);
        for (uint32_t i = 0; i < 4; i++)
                ck_assert_uint_eq(jobs[i].share.n_tasks, DEPTH / 4);
        jobs[0].wants = jobs[1].wants = jobs[2].wants = false;
        go_on(20);
        ck_assert_uint_eq(jobs[3].share.n_tasks, DEPTH);
}
END_TEST

START_TEST(beside_a_job_that_hangs_another_has_the_whole_depth) {
        begin(DEPTH, TASKS);
        jobs[0].wants = jobs[0].hangs = true;
        plan();
        jobs[1].wants = true;
        plan();
        ck_assert_uint_ge(jobs[1].share.n_tasks, DEPTH / 2); /* at once: nobody knows yet that the first one hangs */
        notice_stuck();
        go_on(20);
        ck_assert_uint_eq(jobs[1].share.n_tasks, DEPTH);
        ck_assert_uint_eq(jobs[0].share.n_tasks, DEPTH); /* what it had: not one more */
}
END_TEST

START_TEST(a_job_that_recovers_is_one_of_several_again) {
        begin(DEPTH, TASKS);
        jobs[0].wants = jobs[0].hangs = jobs[1].wants = true;
        plan();
        notice_stuck();
        go_on(20);
        while (jobs[0].share.n_stuck > 0)
                shares_give(&shares, &jobs[0].share, true);
        jobs[0].hangs = false;
        go_on(40);
        ck_assert_uint_eq(jobs[0].share.n_tasks, DEPTH / 2);
        ck_assert_uint_eq(jobs[1].share.n_tasks, DEPTH / 2);
}
END_TEST

START_TEST(a_slow_disk_alone_is_read_at_the_whole_depth) {
        begin(DEPTH, TASKS);
        jobs[0].wants = jobs[0].hangs = true;
        plan();
        for (int round = 0; round < 10; round++) {
                notice_stuck();
                for (uint32_t i = 0; i < 8; i++) /* it takes long, but it comes */
                        shares_give(&shares, &jobs[0].share, true);
                plan();
                ck_assert_uint_eq(jobs[0].share.n_tasks, DEPTH);
        }
}
END_TEST

/* Jobs hang one after the other, each of them alone at first; with all the tasks there are, and with fewer. */
START_TEST(nobody_takes_the_last_ones) {
        static const struct {
                uint32_t n_tasks, n_hanging, n_at_least;
        } ROWS[] = { { 64, 1, 10 }, { 64, 2, 2 }, { 80, 1, 13 }, { 128, 1, 51 }, { 256, 1, 64 }, { 256, 3, 48 } };

        begin(DEPTH, ROWS[_i].n_tasks);
        for (uint32_t i = 0; i < ROWS[_i].n_hanging; i++) {
                jobs[i].wants = jobs[i].hangs = true;
                plan();
                notice_stuck();
        }
        jobs[3].wants = true;
        plan();
        go_on(10);
        ck_assert_uint_ge(jobs[3].share.n_tasks, ROWS[_i].n_at_least);
}
END_TEST

START_TEST(jobs_that_hang_together_cost_no_more_than_one) {
        begin(DEPTH, TASKS);
        for (uint32_t i = 0; i < 7; i++)
                jobs[i].wants = jobs[i].hangs = true;
        plan();
        notice_stuck();
        plan();
        ck_assert_uint_le(TASKS - shares.n_free, DEPTH + 7);
        jobs[7].wants = true;
        plan();
        ck_assert_uint_eq(jobs[7].share.n_tasks, DEPTH);
}
END_TEST

START_TEST(a_single_task_goes_round) {
        begin(1, 1);
        jobs[0].wants = true;
        plan();
        ck_assert_uint_eq(jobs[0].share.n_tasks, 1);
        jobs[1].wants = true;
        jobs[0].wants = false;
        come_back(1);
        plan();
        ck_assert_uint_eq(jobs[1].share.n_tasks, 1);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "shares", a_job_alone_has_the_whole_depth_and_no_more, 0 },
                { "shares", who_comes_gets_its_part_at_once_and_those_before_come_down_to_theirs, 0 },
                { "shares", parts_follow_the_weights, 0 },
                { "shares", a_user_gets_no_more_by_having_more_jobs, 0 },
                { "shares", a_household_gets_no_more_by_having_more_jobs, 0 },
                { "shares", a_user_alone_has_the_whole_depth_for_all_jobs, 0 },
                { "shares", a_user_has_the_mean_of_the_weights, 0 },
                { "shares", what_one_does_not_want_the_others_have, 0 },
                { "shares", a_single_task_goes_round, 0 },
                { "hanging", beside_a_job_that_hangs_another_has_the_whole_depth, 0 },
                { "hanging", a_job_that_recovers_is_one_of_several_again, 0 },
                { "hanging", a_slow_disk_alone_is_read_at_the_whole_depth, 0 },
                { "hanging", nobody_takes_the_last_ones, 6 },
                { "hanging", all_jobs_of_a_user_that_hang_leave_tasks_to_others_and_some_to_the_user, 3 },
                { "hanging", jobs_that_hang_together_cost_no_more_than_one, 0 },
        };

        return suite_run("shares", rows, sizeof(rows) / sizeof(rows[0]));
}
