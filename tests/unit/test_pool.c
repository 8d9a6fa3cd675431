/* The set of workers: more and fewer of them while two ranks eat, without a sample lost or out of order; threads that
 * are sent home; the ceiling's arithmetic. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/pipeline/planner/planner.h"
#include "proto/base/clock.h"
#include "tests/support/serving.h"
#include "tests/support/suite.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define SECOND_NS           1000000000ull

static struct serving serving;

/* ---- sent home by the queue ---------------------------------------------------------------------------------- */

#define N_HOMES 4u

static struct fair_queue queue;
static struct fair_group group;
static struct fair_share everybody;
static _Atomic uint32_t n_taken, n_home;

static void begin(void) {
        memset(&everybody, 0, sizeof(everybody));
        memset(&group, 0, sizeof(group));
        fair_group_init(&group, NULL);
        fair_share_init(&everybody, &group, 1);
        fair_queue_init(&queue);
}

static void push(struct fair_item *item) {
        fair_queue_push(&queue, &everybody, item);
}

static void *take_all(void *userdata) {
        (void)userdata;
        while (fair_queue_pop(&queue, NULL))
                atomic_fetch_add(&n_taken, 1);
        atomic_fetch_add(&n_home, 1);
        return NULL;
}

static void wait_for(_Atomic uint32_t *value, uint32_t expected) {
        for (int i = 0; atomic_load(value) != expected; i++) {
                ck_assert_msg(i < 15000, "%u, not %u, within 30 s", atomic_load(value), expected);
                nap_ms(2);
        }
}

START_TEST(a_dismissal_sends_one_home_and_leaves_what_is_queued_to_the_others) {
        pthread_t threads[N_HOMES];
        struct fair_item items[500];

        begin();
        atomic_store(&n_taken, 0);
        atomic_store(&n_home, 0);
        for (uint32_t i = 0; i < N_HOMES; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, take_all, NULL), 0);
        nap_ms(20); /* they sleep, most likely */
        fair_queue_dismiss(&queue, 1);
        wait_for(&n_home, 1);
        for (int i = 0; i < 500; i++)
                push(&items[i]);
        fair_queue_dismiss(&queue, 2);
        wait_for(&n_home, 3);
        wait_for(&n_taken, 500);
        fair_queue_stop(&queue);
        for (uint32_t i = 0; i < N_HOMES; i++)
                pthread_join(threads[i], NULL);
        ck_assert_uint_eq(atomic_load(&n_home), N_HOMES);
        fair_queue_fini(&queue);
}
END_TEST

START_TEST(a_dismissal_that_nobody_followed_can_be_taken_back) {
        struct fair_item item;

        begin();
        push(&item);
        fair_queue_dismiss(&queue, 3);
        ck_assert_uint_eq(fair_queue_retain(&queue, 2), 2);
        ck_assert_ptr_null(fair_queue_pop(&queue, NULL)); /* the third one */
        ck_assert_ptr_eq(fair_queue_pop(&queue, NULL), &item);
        ck_assert_uint_eq(fair_queue_retain(&queue, 1), 0);
        fair_queue_fini(&queue);
}
END_TEST

/* A wake-up for an item may reach the thread that is on its way out: then the other one must be awake, too. Pushing one
 * item at a time, a lost one stands still for ever. */
START_TEST(no_wake_up_is_lost_to_who_leaves) {
        pthread_t stays, leaves;
        struct fair_item items[2];

        for (int round = 0; round < 300; round++) {
                begin();
                atomic_store(&n_taken, 0);
                atomic_store(&n_home, 0);
                pthread_create(&stays, NULL, take_all, NULL);
                pthread_create(&leaves, NULL, take_all, NULL);
                if (round % 2)
                        sched_yield();
                push(&items[0]);
                fair_queue_dismiss(&queue, 1);
                push(&items[1]);
                wait_for(&n_taken, 2);
                wait_for(&n_home, 1);
                fair_queue_stop(&queue);
                pthread_join(stays, NULL);
                pthread_join(leaves, NULL);
                fair_queue_fini(&queue);
        }
}
END_TEST

/* ---- the ceiling's arithmetic -------------------------------------------------------------------------------- */

static const uint64_t CEILINGS[] = { 100, 500, 1000, 3500, 64000 };

/* Threads that take CPU time in pieces, each alone on its CPU, and rest as they are told, on a clock of the test's own.
 */
START_TEST(threads_together_stay_below_the_ceiling_and_reach_it) {
        enum {
                N_THREADS = 8
        };
        uint64_t milli = CEILINGS[_i], at_ns[N_THREADS], spent_ns = 0, begin_ns = 100 * SECOND_NS, now_ns = begin_ns;
        uint64_t may_ns;
        unsigned seed = 1;
        struct pace pace;

        pace_init(&pace);
        pace_set(&pace, milli);
        for (uint32_t i = 0; i < N_THREADS; i++)
                at_ns[i] = begin_ns;
        while (now_ns < begin_ns + 20 * SECOND_NS) {
                uint64_t piece_ns = 1000000 + (uint64_t)rand_r(&seed) % 9000000, go_ns;
                uint32_t first = 0;

                for (uint32_t i = 1; i < N_THREADS; i++)
                        if (at_ns[i] < at_ns[first])
                                first = i;
                now_ns = at_ns[first] + piece_ns;
                spent_ns += piece_ns;
                go_ns = pace_charge(&pace, now_ns, piece_ns);
                at_ns[first] = go_ns > now_ns ? go_ns : now_ns;
        }
        may_ns = (now_ns - begin_ns + PACE_CREDIT_NS) * milli / 1000;
        ck_assert_uint_le(spent_ns, may_ns + N_THREADS * 10000000ull);
        if (milli < N_THREADS * 1000) /* else they do not come that far */
                ck_assert_uint_ge(spent_ns, may_ns * 95 / 100 - N_THREADS * 10000000ull);
        pace_fini(&pace);
}
END_TEST

START_TEST(without_a_ceiling_nobody_rests_and_nothing_is_owed) {
        uint64_t clock_ns = 5;
        struct pace pace;

        pace_init(&pace);
        ck_assert_uint_eq(pace_charge(&pace, SECOND_NS, SECOND_NS), SECOND_NS);
        pace_rest(&pace, &clock_ns, 0);
        ck_assert_uint_eq(clock_ns, 0);
        pace_fini(&pace);
}
END_TEST

static void *rest_for_hours(void *userdata) {
        struct pace *pace = userdata;
        uint64_t clock_ns = 1; /* what this thread took in its life is owed, too: next to nothing */

        pthread_mutex_lock(&pace->lock);
        pace_charge(pace, clock_now_ns(), 3600 * SECOND_NS);
        pthread_mutex_unlock(&pace->lock);
        atomic_fetch_add(&n_taken, 1);
        pace_rest(pace, &clock_ns, 0);
        atomic_fetch_add(&n_home, 1);
        return NULL;
}

START_TEST(who_rests_goes_on_when_the_ceiling_changes_or_all_ends) {
        struct pace pace;
        pthread_t thread;

        for (int way = 0; way < 3; way++) {
                pace_init(&pace);
                pace_set(&pace, 1);
                atomic_store(&n_home, 0);
                atomic_store(&n_taken, 0);
                pthread_create(&thread, NULL, rest_for_hours, &pace);
                wait_for(&n_taken, 1);
                nap_ms(50); /* it rests, most likely */
                ck_assert_uint_eq(atomic_load(&n_home), 0);
                if (way == 0)
                        pace_set(&pace, 0);
                else if (way == 1)
                        pace_set(&pace, 2);
                else
                        pace_stop(&pace);
                wait_for(&n_home, 1);
                pthread_join(thread, NULL);
                pace_fini(&pace);
        }
}
END_TEST

/* ---- more and fewer ------------------------------------------------------------------------------------------ */

/* Threads of this process that are called worker-N. */
static uint32_t count_threads(void) {
        char path[300], name[32] = "";
        DIR *dir = opendir("/proc/self/task");
        struct dirent *entry;
        uint32_t n = 0;

        ck_assert_ptr_nonnull(dir);
        while ((entry = readdir(dir))) {
                FILE *file;

                snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
                file = fopen(path, "re");
                if (file && fgets(name, sizeof(name), file))
                        n += strncmp(name, "worker-", 7) == 0;
                if (file)
                        fclose(file);
        }
        closedir(dir);
        return n;
}

static void expect_threads(uint32_t expected) {
        for (int i = 0; count_threads() != expected; i++) {
                ck_assert_msg(i < 3000, "%u workers, not %u, within 30 s", count_threads(), expected);
                nap_ms(10);
        }
}

static void set_workers(uint32_t n_workers) {
        struct why why;

        if (pool_set_workers(pipeline_pool(serving.pipeline), n_workers, &why) < 0)
                ck_abort_msg("%s", why.text);
        ck_assert_uint_eq(pipeline_n_workers(serving.pipeline), n_workers);
}

struct eater {
        struct rank rank;
        uint64_t n_epochs;
        pthread_t thread;
        _Atomic bool is_done;
};

static void *eat(void *userdata) {
        struct eater *eater = userdata;

        for (uint64_t epoch = 0; epoch < eater->n_epochs; epoch++)
                rank_eat_epoch(&eater->rank, epoch);
        atomic_store(&eater->is_done, true);
        return NULL;
}

START_TEST(one_to_eight_workers_at_random_while_two_ranks_eat_lose_nothing) {
        struct eater eaters[2];
        unsigned seed = 20;
        uint32_t n_changes = 0;

        serving_start(&serving, &(struct serving_options){ .n_samples = 97, .n_classes = 3, .n_workers = 2 });
        for (uint32_t i = 0; i < 2; i++) {
                eaters[i].n_epochs = 60;
                atomic_init(&eaters[i].is_done, false);
                rank_attach(
                        &eaters[i].rank, &serving,
                        &(struct rank_options){ .world = 2, .rank = i, .batch_size = 4, .shuffle = true, .seed = 5 });
                ck_assert_int_eq(pthread_create(&eaters[i].thread, NULL, eat, &eaters[i]), 0);
        }
        while (!atomic_load(&eaters[0].is_done) || !atomic_load(&eaters[1].is_done)) {
                set_workers(1 + (uint32_t)rand_r(&seed) % 8);
                n_changes++;
                if (rand_r(&seed) % 4 == 0)
                        nap_ms((unsigned)rand_r(&seed) % 5);
        }
        for (uint32_t i = 0; i < 2; i++) {
                pthread_join(eaters[i].thread, NULL);
                rank_leave(&eaters[i].rank);
        }
        ck_assert_uint_gt(n_changes, 10);
        set_workers(2); /* what they keep for themselves is as at the start */
        expect_threads(2);
        serving_settle(&serving);
        serving_stop(&serving);
}
END_TEST

START_TEST(there_are_as_many_threads_as_are_asked_for) {
        static const uint32_t NUMBERS[] = { 5, 1, 8, 3, 3, 2 };

        serving_start(&serving, &(struct serving_options){ .n_samples = 4, .n_classes = 2, .n_workers = 2 });
        for (size_t i = 0; i < ARRAY_LENGTH(NUMBERS); i++) {
                set_workers(NUMBERS[i]);
                expect_threads(NUMBERS[i]);
        }
        serving_settle(&serving);
        serving_stop(&serving);
}
END_TEST

START_TEST(what_a_worker_counted_stays_when_it_leaves) {
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 60, .n_classes = 2, .n_workers = 8 });
        rank_attach(&rank, &serving, &(struct rank_options){ .world = 1, .batch_size = 6, .n_epochs = 1 });
        rank_eat_epoch(&rank, 0);
        rank_leave(&rank);
        set_workers(1);
        expect_threads(1);
        ck_assert_uint_eq(counter_get(&pipeline_counters(serving.pipeline)->n_samples), 60);
        ck_assert_uint_eq(counter_get(&pipeline_counters(serving.pipeline)->n_batches), 10);
        set_workers(8);
        serving_settle(&serving);
        serving_stop(&serving);
}
END_TEST

START_TEST(workers_that_memory_limit_has_no_scratch_for_are_refused_and_those_before_stay) {
        uint64_t scratch = WORKER_SCRATCH_BYTES, rest;
        struct why why = { 0 };

        serving_start(&serving, &(struct serving_options){ .n_samples = 8, .n_classes = 2, .n_workers = 2 });
        rest = serving.budget.limit_bytes - budget_used(&serving.budget) - 3 * scratch - 4096;
        ck_assert_int_eq(budget_reserve(&serving.budget, rest, "a ring", NULL), 0);
        ck_assert_int_eq(pool_set_workers(pipeline_pool(serving.pipeline), 6, &why), -ENOMEM);
        ck_assert_ptr_nonnull(strstr(why.text, "a worker's scratch"));
        ck_assert_uint_eq(pipeline_n_workers(serving.pipeline), 2);
        expect_threads(2);
        set_workers(5); /* that fits */
        expect_threads(5);
        set_workers(2);
        expect_threads(2);
        budget_release(&serving.budget, rest);
        serving_settle(&serving);
        serving_stop(&serving);
}
END_TEST

START_TEST(a_number_that_is_none_is_refused_and_0_stands_for_the_cpus) {
        char text[POOL_TEXT_MAX];
        struct why why = { 0 };
        struct cpus cpus;
        struct pool *pool;

        serving_start(&serving, &(struct serving_options){ .n_samples = 4, .n_classes = 2, .n_workers = 2 });
        pool = pipeline_pool(serving.pipeline);
        ck_assert_int_eq(pool_set_workers(pool, WORKERS_MAX + 1, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "0 to 4096"));
        ck_assert_ptr_nonnull(strstr(pool_text(pool, text), "a fixed number: affinity"));

        cpus_find(&cpus);
        ck_assert_int_eq(pool_set_workers(pool, 0, &why), 0);
        ck_assert_uint_eq(pipeline_n_workers(serving.pipeline), cpus_n_threads(&cpus));
        ck_assert_ptr_nonnull(strstr(pool_text(pool, text), "as many as CPUs, asked for at run time: affinity"));
        set_workers(2);
        expect_threads(2);
        serving_settle(&serving);
        serving_stop(&serving);
}
END_TEST

/* ---- who writes where ---------------------------------------------------------------------------------------- */

#define LINE_OF(type, field) (offsetof(struct type, field) / 64)

START_TEST(what_a_worker_writes_for_each_sample_lies_in_lines_of_its_own) {
        ck_assert_uint_eq(sizeof(struct worker) % 64, 0);
        ck_assert_uint_eq(offsetof(struct worker, counters) % 64, 0);
        ck_assert_uint_gt(LINE_OF(worker, counted), LINE_OF(worker, result));
        serving_start(&serving, &(struct serving_options){ .n_samples = 4, .n_classes = 2, .n_workers = 8 });
        for (uint32_t i = 0; i < 8; i++)
                ck_assert_uint_eq((uintptr_t)pipeline_pool(serving.pipeline)->workers[i] % 64, 0);
        serving_stop(&serving);
}
END_TEST

/* What all workers write for each sample of a batch, and what they read of it, of its feed and of the queue. */
START_TEST(what_workers_share_and_write_lies_apart_from_what_they_only_read) {
        struct rank rank;

        ck_assert_uint_eq(sizeof(struct batch) % 64, 0);
        ck_assert_uint_gt(LINE_OF(batch, n_left), LINE_OF(batch, n_samples));
        ck_assert_uint_eq(LINE_OF(batch, n_left), LINE_OF(batch, decode_ns));
        ck_assert_uint_gt(LINE_OF(feed, planned_seeks), LINE_OF(feed, counters.n_skipped));
        ck_assert_uint_lt(LINE_OF(feed, is_ended), LINE_OF(feed, batches));
        ck_assert_uint_eq(LINE_OF(fair_queue, n_waiting), LINE_OF(fair_queue, all.below));
        ck_assert_uint_gt(LINE_OF(job, share), LINE_OF(job, failed));
        ck_assert_uint_eq(sizeof(struct job) % 64, 0);
        ck_assert_uint_gt(LINE_OF(planner, lock), LINE_OF(planner, resting));

        serving_start(&serving, &(struct serving_options){ .n_samples = 4, .n_classes = 2 });
        rank_attach(&rank, &serving, &(struct rank_options){ .world = 1, .batch_size = 2 });
        ck_assert_uint_eq((uintptr_t)rank.feed % 64, 0);
        rank_leave(&rank);
        serving_settle(&serving);
        serving_stop(&serving);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "queue", a_dismissal_sends_one_home_and_leaves_what_is_queued_to_the_others, 0 },
                { "queue", a_dismissal_that_nobody_followed_can_be_taken_back, 0 },
                { "queue", no_wake_up_is_lost_to_who_leaves, 0 },
                { "pace", threads_together_stay_below_the_ceiling_and_reach_it, ARRAY_LENGTH(CEILINGS) },
                { "pace", without_a_ceiling_nobody_rests_and_nothing_is_owed, 0 },
                { "pace", who_rests_goes_on_when_the_ceiling_changes_or_all_ends, 0 },
                { "resize", one_to_eight_workers_at_random_while_two_ranks_eat_lose_nothing, 0 },
                { "resize", there_are_as_many_threads_as_are_asked_for, 0 },
                { "resize", what_a_worker_counted_stays_when_it_leaves, 0 },
                { "resize", workers_that_memory_limit_has_no_scratch_for_are_refused_and_those_before_stay, 0 },
                { "resize", a_number_that_is_none_is_refused_and_0_stands_for_the_cpus, 0 },
                { "lines", what_workers_share_and_write_lies_apart_from_what_they_only_read, 0 },
                { "lines", what_a_worker_writes_for_each_sample_lies_in_lines_of_its_own, 0 },
        };

        return suite_run("pool", rows, ARRAY_LENGTH(rows));
}
