/* Whose turn it is for the memory of large pictures: the pool itself, over made-up jobs, users and times. */
#include <check.h>
#include <string.h>

#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/memory/scratch.h"
#include "tests/support/fair.h"
#include "tests/support/suite.h"

#define POOL    (256ull << 20)
#define N_USERS 3u
#define N_JOBS  2u /* a user */
#define N_TASKS 16u
#define SECOND  1000000000ull

static struct fair_queue ready;
static struct scratch_pool pool;
static struct user users[N_USERS];
static struct household households[N_USERS];
static struct job jobs[N_USERS][N_JOBS];
static struct feed feeds[N_USERS][N_JOBS];
static struct batch batches[N_USERS][N_JOBS];
static struct task tasks[N_USERS][N_JOBS][N_TASKS];
static uint64_t now_ns;

static void begin(void) {
        memset(users, 0, sizeof(users));
        memset(households, 0, sizeof(households));
        memset(jobs, 0, sizeof(jobs));
        memset(tasks, 0, sizeof(tasks));
        fair_queue_init(&ready);
        scratch_pool_init(&pool, POOL, &ready);
        now_ns = SECOND;
        for (uint32_t u = 0; u < N_USERS; u++) {
                fair_group_init(&users[u].time, NULL);
                fair_group_init(&households[u].time, &users[u].time);
                households[u].user = &users[u];
                households[u].scratch.above = &users[u].scratch;
                for (uint32_t j = 0; j < N_JOBS; j++) {
                        jobs[u][j].household = &households[u];
                        jobs[u][j].scratch.above = &households[u].scratch;
                        fair_share_init(&jobs[u][j].share, &households[u].time, 1);
                        feeds[u][j].job = &jobs[u][j];
                        batches[u][j].feed = &feeds[u][j];
                        for (uint32_t t = 0; t < N_TASKS; t++)
                                tasks[u][j][t].batch = &batches[u][j];
                }
        }
}

static void end(void) {
        scratch_pool_fini(&pool);
        fair_queue_fini(&ready);
}

static int take(struct task *task, uint64_t n_bytes) {
        return scratch_take(&pool, task, n_bytes, now_ns);
}

static void give(struct task *task) {
        scratch_give(&pool, task, now_ns);
}

/* The next one that was granted what it waited for, or NULL. */
static struct task *granted(void) {
        struct fair_item *item = fair_next(&ready, NULL);

        return item ? task_of_ready(item) : NULL;
}

START_TEST(who_finds_enough_does_not_wait_and_gives_it_back) {
        begin();
        ck_assert_int_eq(take(&tasks[0][0][0], POOL / 2), 0);
        ck_assert_int_eq(take(&tasks[1][0][0], POOL / 2), 0);
        ck_assert_uint_eq(pool.n_free, 0);
        give(&tasks[0][0][0]);
        give(&tasks[0][0][0]); /* it has nothing any more */
        give(&tasks[1][0][0]);
        ck_assert_uint_eq(pool.n_free, POOL);
        ck_assert_ptr_null(granted());
        end();
}
END_TEST

START_TEST(within_a_job_who_came_first_is_first_and_a_large_one_is_not_overtaken) {
        begin();
        ck_assert_int_eq(take(&tasks[0][0][0], POOL / 2), 0);
        ck_assert_int_eq(take(&tasks[0][0][1], POOL), SCRATCH_WAITS);
        ck_assert_int_eq(take(&tasks[0][0][2], 4096), SCRATCH_WAITS);
        now_ns += SECOND;
        give(&tasks[0][0][0]);
        ck_assert_ptr_eq(granted(), &tasks[0][0][1]);
        ck_assert_ptr_null(granted());
        now_ns += SECOND;
        give(&tasks[0][0][1]);
        ck_assert_ptr_eq(granted(), &tasks[0][0][2]);
        give(&tasks[0][0][2]);
        end();
}
END_TEST

/* User 0 has fifteen in line that take all there is for five seconds each; user 1 comes with one small picture after
 * the other. */
START_TEST(many_huge_pictures_of_a_user_cost_another_the_time_of_one) {
        begin();
        ck_assert_int_eq(take(&tasks[0][0][0], POOL), 0);
        for (uint32_t t = 1; t < N_TASKS; t++)
                ck_assert_int_eq(take(&tasks[0][0][t], POOL), SCRATCH_WAITS);
        now_ns += 5 * SECOND;
        ck_assert_int_eq(take(&tasks[1][0][0], POOL / 8), SCRATCH_WAITS);
        give(&tasks[0][0][0]);
        for (uint32_t n = 0; n < 20; n++) { /* a twentieth of the time, an eighth of the memory */
                ck_assert_ptr_eq(granted(), &tasks[1][0][n % 2]);
                ck_assert_int_eq(take(&tasks[1][0][(n + 1) % 2], POOL / 8), SCRATCH_WAITS);
                now_ns += SECOND / 4;
                give(&tasks[1][0][n % 2]);
        }
        give(&tasks[1][0][0]); /* granted meanwhile; nothing happens if the other one was */
        give(&tasks[1][0][1]);
        for (uint32_t t = 1; t < N_TASKS; t++) {
                now_ns += 5 * SECOND;
                give(&tasks[0][0][t]);
        }
        end();
}
END_TEST

START_TEST(a_user_gets_no_more_by_having_more_jobs_or_by_having_been_away) {
        uint32_t n_of_user[2] = { 0 };
        struct task *task, *last = &tasks[2][0][0];

        begin();
        ck_assert_int_eq(take(last, POOL), 0); /* user 2 has the pool for an hour before the others come */
        now_ns += 3600 * SECOND;
        for (uint32_t t = 0; t < N_TASKS; t++)
                for (uint32_t j = 0; j < N_JOBS; j++)
                        ck_assert_int_eq(take(&tasks[0][j][t], POOL), SCRATCH_WAITS);
        for (uint32_t t = 0; t < N_TASKS; t++)
                ck_assert_int_eq(take(&tasks[1][0][t], POOL), SCRATCH_WAITS);
        for (uint32_t n = 0; n < 3 * N_TASKS; n++) {
                give(last);
                task = granted();
                ck_assert_ptr_nonnull(task);
                last = task;
                if (n < 2 * N_TASKS)
                        n_of_user[task->batch->feed->job->household - households]++;
                now_ns += SECOND;
        }
        give(last);
        ck_assert_uint_eq(n_of_user[0], N_TASKS);
        ck_assert_uint_eq(n_of_user[1], N_TASKS);
        end();
}
END_TEST

START_TEST(jobs_of_a_user_have_the_same_or_what_their_weights_say) {
        uint32_t n_of_job[N_JOBS] = { 0 }, weight = _i == 0 ? 1 : 3;
        struct task *task, *last = &tasks[2][0][0];

        begin();
        atomic_store(&jobs[0][1].share.weight, weight);
        ck_assert_int_eq(take(last, POOL), 0);
        for (uint32_t j = 0; j < N_JOBS; j++)
                for (uint32_t t = 0; t < N_TASKS; t++)
                        ck_assert_int_eq(take(&tasks[0][j][t], POOL), SCRATCH_WAITS);
        for (uint32_t n = 0; n < N_JOBS * N_TASKS; n++) {
                now_ns += SECOND;
                give(last);
                task = granted();
                ck_assert_ptr_nonnull(task);
                last = task;
                if (n < 8)
                        n_of_job[task->batch->feed->job - jobs[0]]++;
        }
        give(last);
        ck_assert_uint_eq(n_of_job[0], 8 / (1 + weight));
        ck_assert_uint_eq(n_of_job[1], 8 - 8 / (1 + weight));
        end();
}
END_TEST

/* Two jobs in one, and one in the other. */
START_TEST(two_households_of_a_user_have_the_same) {
        uint32_t n_of_household[2] = { 0 };
        struct task *task, *last = &tasks[2][0][0];

        begin();
        households[1].scratch.above = &users[0].scratch;
        ck_assert_int_eq(take(last, POOL), 0);
        for (uint32_t t = 0; t < N_TASKS; t++) {
                for (uint32_t j = 0; j < N_JOBS; j++)
                        ck_assert_int_eq(take(&tasks[0][j][t], POOL), SCRATCH_WAITS);
                ck_assert_int_eq(take(&tasks[1][0][t], POOL), SCRATCH_WAITS);
        }
        for (uint32_t n = 0; n < 3 * N_TASKS; n++) {
                now_ns += SECOND;
                give(last);
                task = granted();
                ck_assert_ptr_nonnull(task);
                last = task;
                if (n < N_TASKS)
                        n_of_household[task->batch->feed->job->household - households]++;
        }
        give(last);
        ck_assert_uint_eq(n_of_household[0], N_TASKS / 2);
        ck_assert_uint_eq(n_of_household[1], N_TASKS / 2);
        end();
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "scratch", who_finds_enough_does_not_wait_and_gives_it_back, 0 },
                { "scratch", within_a_job_who_came_first_is_first_and_a_large_one_is_not_overtaken, 0 },
                { "scratch", many_huge_pictures_of_a_user_cost_another_the_time_of_one, 0 },
                { "scratch", a_user_gets_no_more_by_having_more_jobs_or_by_having_been_away, 0 },
                { "scratch", two_households_of_a_user_have_the_same, 0 },
                { "scratch", jobs_of_a_user_have_the_same_or_what_their_weights_say, 2 },
        };

        return suite_run("scratch", rows, sizeof(rows) / sizeof(rows[0]));
}
