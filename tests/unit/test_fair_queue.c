/* Sharing a pool's time: who is served next, reckoned with made-up times and without a thread; and threads over it. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/threads/fair_queue.h"
#include "tests/support/fair.h"
#include "tests/support/suite.h"

#define N_SHARES 4u
#define MS       1000000ull
#define N_BUSY   3u /* threads */
#define N_PUSHED 5000u

/* One who always has items, each of which takes `item_ns`. */
struct user {
        struct fair_group group; /* its own, unless user_join() */
        struct fair_share share;
        struct fair_item items[8];
        uint64_t item_ns;
        uint64_t rare_ns; /* what 16 items take after each 400 others; 0: as the others */
        uint64_t n_taken, n_served;
        uint64_t served_ns; /* of the model's time: its last item */
        uint32_t n_gaps;    /* how often it got none for a second */
        bool is_idle;       /* its items are not pushed again */
};

static struct fair_queue queue;
static struct user users[N_SHARES];
static struct fair_thread workers[16]; /* of the model */

static void user_begin(struct user *user, uint32_t weight, uint64_t item_ns) {
        memset(user, 0, sizeof(*user));
        user->item_ns = item_ns;
        fair_group_init(&user->group, NULL);
        fair_share_init(&user->share, &user->group, weight);
}

/* From now on it is one of those that `other` belongs to. Before its first item. */
static void user_join(struct user *user, struct user *other) {
        user->share.account.above = other->share.account.above;
}

static void user_push(struct user *user) {
        for (size_t i = 0; i < sizeof(user->items) / sizeof(user->items[0]); i++)
                fair_queue_push(&queue, &user->share, &user->items[i]);
}

static struct user *user_of(const struct fair_item *item) {
        for (uint32_t i = 0; i < N_SHARES; i++)
                if (item->share == &users[i].share)
                        return &users[i];
        ck_abort_msg("an item of nobody");
        return NULL;
}

static uint64_t next_ns(struct user *user) {
        return user->rare_ns > 0 && user->n_taken++ % 416 >= 400 ? user->rare_ns : user->item_ns;
}

static void note_served(struct user *user, uint64_t now_ns) {
        if (now_ns - user->served_ns > 1000 * MS)
                user->n_gaps++;
        user->served_ns = now_ns;
        user->n_served++;
}

/* So many workers of a model serve for so long: each takes the next item when its last one is done. */
static void serve(uint32_t n_workers, uint64_t ns) {
        struct fair_item *held[16] = { 0 };
        uint64_t done_ns[16] = { 0 }, took_ns[16] = { 0 };

        ck_assert_uint_le(n_workers, 16);
        for (;;) {
                uint32_t first = 0;
                struct user *user;

                for (uint32_t i = 1; i < n_workers; i++)
                        if (done_ns[i] < done_ns[first])
                                first = i;
                if (held[first]) {
                        user = user_of(held[first]);
                        fair_item_done(held[first], took_ns[first]);
                        note_served(user, done_ns[first]);
                        if (!user->is_idle)
                                fair_queue_push(&queue, &user->share, held[first]);
                }
                held[first] = done_ns[first] < ns ? fair_next(&queue, &workers[first]) : NULL;
                if (!held[first] && done_ns[first] >= ns)
                        break;
                took_ns[first] = held[first] ? next_ns(user_of(held[first])) : MS;
                done_ns[first] += took_ns[first];
        }
        for (uint32_t i = 0; i < n_workers; i++) /* what is under way at the end counts nothing */
                if (held[i])
                        fair_item_done(held[i], 0);
}

static uint64_t had_ms(const struct user *user) {
        return atomic_load(&user->share.taken_ns) / MS;
}

static void check_had(const struct user *user, uint64_t expected_ms, uint64_t tolerance_ms) {
        ck_assert_msg(had_ms(user) + tolerance_ms >= expected_ms && had_ms(user) <= expected_ms + tolerance_ms,
                      "share %u had %llu ms, not %llu", (unsigned)(user - users), (unsigned long long)had_ms(user),
                      (unsigned long long)expected_ms);
}

static void setup(void) {
        fair_queue_init(&queue);
        memset(workers, 0, sizeof(workers));
        for (uint32_t i = 0; i < N_SHARES; i++)
                user_begin(&users[i], 1, MS);
}

static void teardown(void) {
        fair_queue_fini(&queue);
}

/* So many threads of a model, and all users' items have been measured. */
static void have_threads(uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                workers[i].is_counted = true;
        queue.n_threads = n;
        for (uint32_t i = 0; i < N_SHARES; i++) {
                atomic_store(&users[i].share.usual_ns, (int64_t)users[i].item_ns);
                atomic_store(&users[i].share.account.longest_ns, (int64_t)users[i].item_ns);
        }
}

START_TEST(one_share_is_a_queue) {
        struct fair_item items[3];

        for (int i = 0; i < 3; i++)
                fair_queue_push(&queue, &users[0].share, &items[i]);
        for (int i = 0; i < 3; i++)
                ck_assert_ptr_eq(fair_next(&queue, NULL), &items[i]);
        ck_assert_ptr_null(fair_next(&queue, NULL));
}
END_TEST

START_TEST(several_that_are_pushed_at_once_come_after_those_before_and_in_their_sequence) {
        struct fair_item items[4], *several[] = { &items[1], &items[2], &items[3] };

        fair_queue_push(&queue, &users[0].share, &items[0]);
        fair_queue_push_all(&queue, &users[0].share, several, 0);
        fair_queue_push_all(&queue, &users[0].share, several, 3);
        for (int i = 0; i < 4; i++)
                ck_assert_ptr_eq(fair_next(&queue, NULL), &items[i]);
        ck_assert_ptr_null(fair_next(&queue, NULL));
}
END_TEST

/* Each holds its item until all have one: that comes only if all were woken. */
static void *take_one_and_wait(void *userdata) {
        pthread_barrier_t *barrier = userdata;

        ck_assert_ptr_nonnull(fair_queue_pop(&queue, NULL));
        pthread_barrier_wait(barrier);
        return NULL;
}

static void wait_until_all_sleep(uint32_t n) {
        uint32_t n_waiting;

        do {
                sched_yield();
                pthread_mutex_lock(&queue.lock);
                n_waiting = queue.n_waiting;
                pthread_mutex_unlock(&queue.lock);
        } while (n_waiting < n);
}

START_TEST(several_items_that_take_long_wake_a_thread_each) {
        struct fair_item items[3], *several[] = { &items[0], &items[1], &items[2] };
        pthread_barrier_t barrier;
        pthread_t threads[3];

        pthread_barrier_init(&barrier, NULL, 3);
        atomic_store(&users[0].share.usual_ns, (int64_t)MS);
        for (int i = 0; i < 3; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, take_one_and_wait, &barrier), 0);
        wait_until_all_sleep(3);
        fair_queue_push_all(&queue, &users[0].share, several, 3);
        for (int i = 0; i < 3; i++)
                pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&barrier);
}
END_TEST

START_TEST(each_gets_the_same_time_whatever_its_items_take) {
        static const uint64_t ITEM_NS[N_SHARES] = { MS / 10, MS, 20 * MS, 300 * MS };

        for (uint32_t i = 0; i < N_SHARES; i++) {
                user_begin(&users[i], 1, ITEM_NS[i]);
                user_push(&users[i]);
        }
        serve(2, 40000 * MS);
        for (uint32_t i = 0; i < N_SHARES; i++)
                check_had(&users[i], 20000, 1000);
}
END_TEST

START_TEST(many_workers_that_take_at_once_are_spread_over_the_shares) {
        user_begin(&users[0], 1, 1000 * MS);
        user_begin(&users[1], 1, MS);
        have_threads(8);
        user_push(&users[0]);
        user_push(&users[1]);
        serve(8, 30000 * MS);
        check_had(&users[0], 120000, 6000);
        check_had(&users[1], 120000, 6000);
}
END_TEST

START_TEST(time_is_shared_by_weight) {
        user_begin(&users[0], 3, 2 * MS);
        user_begin(&users[1], 1, 5 * MS);
        user_push(&users[0]);
        user_push(&users[1]);
        serve(2, 10000 * MS);
        check_had(&users[0], 15000, 300);
        check_had(&users[1], 5000, 300);
}
END_TEST

START_TEST(what_one_does_not_want_the_others_get) {
        user_push(&users[0]);
        serve(2, 1000 * MS);
        check_had(&users[0], 2000, 10);
}
END_TEST

START_TEST(a_newcomer_gets_its_share_at_once_and_no_more) {
        user_push(&users[0]);
        serve(1, 10000 * MS);
        user_push(&users[1]);
        serve(1, 1000 * MS);
        check_had(&users[1], 500, 10);
        check_had(&users[0], 10500, 10);
}
END_TEST

START_TEST(who_was_idle_has_saved_up_a_little_credit_at_most) {
        user_push(&users[0]);
        user_push(&users[1]);
        serve(1, 100 * MS);
        users[1].is_idle = true;
        serve(1, 20000 * MS);
        users[1].is_idle = false;
        ck_assert_uint_lt(had_ms(&users[1]), 100);
        user_push(&users[1]);
        serve(1, 2000 * MS);
        ck_assert_uint_le(had_ms(&users[1]), 100 + 1000 + FAIR_CREDIT_NS / MS);
        ck_assert_uint_ge(had_ms(&users[1]), 900);
}
END_TEST

/* Its queue runs empty again and again because reading or planning is a little late. */
START_TEST(a_queue_that_is_empty_for_a_moment_loses_nothing) {
        user_begin(&users[0], 1, 100 * MS);
        user_push(&users[0]);
        for (int round = 0; round < 100; round++) {
                user_push(&users[1]); /* 8 items of a millisecond, then nothing until a heavy one is done */
                users[1].is_idle = true;
                serve(1, 100 * MS);
        }
        check_had(&users[1], 800, 10); /* all that it wanted, which is far below its half */
}
END_TEST

START_TEST(an_expensive_surprise_is_paid_for_afterwards) {
        user_push(&users[0]);
        user_push(&users[1]);
        serve(1, 100 * MS);
        users[0].item_ns = 3000 * MS;
        serve(1, 2 * MS);
        users[0].item_ns = MS;
        serve(1, 2000 * MS); /* the other one's, until it has had as much */
        ck_assert_uint_ge(had_ms(&users[1]), 2000);
}
END_TEST

START_TEST(a_group_gets_no_more_by_having_more_shares) {
        for (uint32_t i = 0; i < N_SHARES; i++) {
                user_begin(&users[i], 1, (1 + i) * MS);
                if (i > 1)
                        user_join(&users[i], &users[1]);
                user_push(&users[i]);
        }
        serve(2, 30000 * MS);
        check_had(&users[0], 30000, 300);
        for (uint32_t i = 1; i < N_SHARES; i++)
                check_had(&users[i], 10000, 300);
}
END_TEST

START_TEST(within_a_group_time_is_shared_by_weight_and_its_own_weight_is_the_mean) {
        user_begin(&users[0], 2, MS);
        user_begin(&users[1], 3, MS);
        user_begin(&users[2], 1, 4 * MS);
        user_join(&users[2], &users[1]);
        for (uint32_t i = 0; i < 3; i++)
                user_push(&users[i]);
        serve(2, 8000 * MS);
        check_had(&users[0], 8000, 100); /* 2 beside (3 + 1) / 2 */
        check_had(&users[1], 6000, 100);
        check_had(&users[2], 2000, 100);
}
END_TEST

START_TEST(what_one_share_of_a_group_does_not_want_the_others_of_it_get) {
        user_join(&users[2], &users[1]);
        for (uint32_t i = 0; i < 3; i++)
                user_push(&users[i]);
        serve(1, 400 * MS);
        users[2].is_idle = true;
        serve(1, 10000 * MS);
        check_had(&users[0], 5200, 100);
        check_had(&users[1], 5100, 100);
}
END_TEST

/* Who leaves and comes back under another name has had what it has had. */
START_TEST(a_new_share_of_a_group_brings_no_new_credit) {
        user_push(&users[0]);
        user_push(&users[1]);
        serve(1, 1000 * MS);
        users[1].is_idle = true;
        users[0].item_ns = 3000 * MS;
        serve(1, 20 * MS); /* an expensive one under way */
        users[0].is_idle = true;
        users[0].item_ns = MS;
        users[1].is_idle = false;
        user_push(&users[1]);
        serve(1, 8 * MS);
        ck_assert_uint_ge(had_ms(&users[0]), 3400);
        user_join(&users[2], &users[0]);
        user_push(&users[2]);
        serve(1, 2000 * MS); /* all of it the other one's: the group has had 3 s more */
        ck_assert_uint_lt(had_ms(&users[2]), 100);
}
END_TEST

/* User 0 has one share; user 1 has one in the first of its groups, and two in the second. */
static void two_groups_of_one_user(struct fair_group groups[2]) {
        for (uint32_t i = 0; i < 2; i++)
                fair_group_init(&groups[i], &users[1].group);
        for (uint32_t i = 1; i < N_SHARES; i++)
                users[i].share.account.above = &groups[i > 1].account;
}

START_TEST(what_a_user_consists_of_has_the_same_time_each_whatever_its_shares_are) {
        struct fair_group groups[2] = { 0 };

        for (uint32_t i = 0; i < N_SHARES; i++)
                user_begin(&users[i], 1, (1 + i) * MS);
        two_groups_of_one_user(groups);
        for (uint32_t i = 0; i < N_SHARES; i++)
                user_push(&users[i]);
        serve(2, 30000 * MS);
        check_had(&users[0], 30000, 300);
        check_had(&users[1], 15000, 300);
        check_had(&users[2], 7500, 300);
        check_had(&users[3], 7500, 300);
        users[1].is_idle = true;
        serve(2, 20000 * MS);
        check_had(&users[0], 50000, 600);
        check_had(&users[2], 17500, 600);
        check_had(&users[3], 17500, 600);
}
END_TEST

START_TEST(a_users_weight_is_the_mean_of_what_it_consists_of) {
        struct fair_group groups[2] = { 0 };

        user_begin(&users[0], 2, MS);
        user_begin(&users[1], 3, MS);
        two_groups_of_one_user(groups);
        for (uint32_t i = 0; i < N_SHARES; i++)
                user_push(&users[i]);
        serve(2, 8000 * MS);
        check_had(&users[0], 8000, 100); /* 2 beside (3 + (1 + 1) / 2) / 2 */
        check_had(&users[1], 6000, 100);
        check_had(&users[2], 1000, 100);
        check_had(&users[3], 1000, 100);
}
END_TEST

START_TEST(a_share_that_comes_and_goes_within_a_user_leaves_the_others_in_their_lists) {
        struct fair_group groups[2] = { 0 };
        struct fair_item items[N_SHARES] = { 0 };

        two_groups_of_one_user(groups);
        for (uint32_t round = 0; round < 200; round++) {
                uint32_t n = 0;

                for (uint32_t i = 0; i < N_SHARES; i++)
                        if (round >> i & 1)
                                fair_queue_push(&queue, &users[i].share, &items[n++]);
                for (; n > 0; n--)
                        fair_item_done(fair_next(&queue, NULL), MS);
                ck_assert_ptr_null(fair_next(&queue, NULL));
        }
}
END_TEST

/* ---- items that take long ------------------------------------------------------------------------------------- */

/* It has had so much more than the others: whoever of them has items comes first. */
static void user_had(struct user *user, uint64_t ms) {
        fair_share_charge(&user->share, ms * MS);
}

START_TEST(what_is_charged_before_the_first_item_counts) {
        user_push(&users[0]);
        user_push(&users[1]);
        serve(1, 1000 * MS);
        fair_group_charge(&users[2].group, 3000 * MS); /* an index that he had made, */
        user_had(&users[3], 3000);                     /* and an order of a job */
        user_push(&users[2]);
        user_push(&users[3]);
        serve(1, 3000 * MS);
        check_had(&users[2], 0, 5);
        check_had(&users[3], 0, 5);
        serve(1, 6000 * MS); /* the others have had as much */
        ck_assert_uint_gt(had_ms(&users[2]), 0);
        ck_assert_uint_gt(had_ms(&users[3]), 0);
}
END_TEST

START_TEST(what_is_charged_without_items_is_remembered_up_to_a_limit) {
        user_push(&users[0]);
        serve(1, 100 * MS);
        fair_group_charge(&users[1].group, 3600000 * MS); /* an hour */
        user_push(&users[1]);
        serve(1, FAIR_DEBT_NS + 1000 * MS);
        ck_assert_uint_gt(had_ms(&users[1]), 0);
        ck_assert_uint_eq(atomic_load(&users[1].group.beside_ns), 3600000 * MS);
}
END_TEST

/* The thread's next item is this user's. */
static void takes(uint32_t idx_thread, const struct user *user) {
        struct fair_item *item = fair_next(&queue, &workers[idx_thread]);

        ck_assert_ptr_nonnull(item);
        ck_assert_msg(user_of(item) == user, "thread %u has an item of user %u, not %u", idx_thread,
                      (unsigned)(user_of(item) - users), (unsigned)(user - users));
}

START_TEST(long_items_leave_a_thread_to_another_user) {
        users[0].item_ns = 3000 * MS;
        have_threads(3);
        user_push(&users[0]);
        user_push(&users[1]);
        user_had(&users[1], 60000);
        takes(0, &users[0]);
        takes(1, &users[0]);
        takes(2, &users[1]);
        takes(2, &users[1]);
        takes(0, &users[0]); /* one is done, so there is room for one */
        takes(2, &users[1]);
}
END_TEST

START_TEST(what_a_user_had_beside_long_items_the_next_one_waits_for) {
        users[0].item_ns = 3000 * MS;
        have_threads(3);
        user_push(&users[0]);
        user_push(&users[1]);
        user_had(&users[1], 60000);
        takes(0, &users[0]);
        fair_group_charge(&users[0].group, 20000 * MS);
        for (int i = 0; i < 8; i++)
                takes(0, &users[1]); /* although that one had more, and there is room for a long item */
        queue.age += 2;              /* the other one has gone */
        takes(0, &users[0]);
}
END_TEST

START_TEST(long_items_of_several_users_leave_a_thread_together) {
        users[0].item_ns = users[2].item_ns = 3000 * MS;
        have_threads(2);
        for (uint32_t i = 0; i < 3; i++)
                user_push(&users[i]);
        user_had(&users[1], 60000);
        user_had(&users[2], 1000);
        takes(0, &users[0]);
        for (int i = 0; i < 8; i++)
                takes(1, &users[1]);
}
END_TEST

START_TEST(what_nobody_has_measured_is_tried_with_one_item) {
        have_threads(3);
        atomic_store(&users[0].share.account.longest_ns, 0);
        user_push(&users[0]);
        user_push(&users[1]);
        user_had(&users[1], 60000);
        takes(0, &users[0]);
        takes(1, &users[1]);
        takes(2, &users[1]);
}
END_TEST

START_TEST(a_users_new_job_does_not_get_the_thread_that_the_long_ones_left) {
        users[0].item_ns = 3000 * MS;
        user_join(&users[2], &users[0]);
        have_threads(2);
        atomic_store(&users[2].share.account.longest_ns, 0);
        user_push(&users[0]);
        user_push(&users[1]);
        user_had(&users[1], 60000);
        takes(0, &users[0]);
        user_push(&users[2]);
        takes(1, &users[1]);
        takes(0, &users[2]); /* but is the next one */
}
END_TEST

START_TEST(a_group_within_a_user_is_no_way_to_the_thread_that_was_left_to_others) {
        struct fair_group groups[2] = { 0 };

        users[2].item_ns = 3000 * MS;
        two_groups_of_one_user(groups);
        have_threads(2);
        atomic_store(&users[1].share.account.longest_ns, 0);
        user_push(&users[2]);
        user_push(&users[0]);
        user_had(&users[0], 60000);
        takes(0, &users[2]);
        user_push(&users[1]);
        takes(1, &users[0]);
        atomic_store(&users[1].group.account.longest_ns, 3000 * (int64_t)MS);
        takes(0, &users[1]); /* is long, as whatever is new of this user */
        for (int i = 0; i < 6; i++)
                takes(1, &users[0]);
}
END_TEST

START_TEST(a_users_new_job_is_taken_for_what_the_others_are) {
        user_join(&users[2], &users[0]);
        have_threads(2);
        atomic_store(&users[0].group.account.longest_ns, 3000 * (int64_t)MS);
        atomic_store(&users[2].share.account.longest_ns, 0);
        user_push(&users[1]);
        user_push(&users[2]);
        user_had(&users[1], 60000);
        takes(0, &users[2]);
        fair_item_done(&users[2].items[0], MS);
        for (int i = 0; i < 8; i++)
                takes(1, &users[1]);
        takes(0, &users[2]);
}
END_TEST

START_TEST(long_items_get_every_thread_when_others_have_long_ones_only) {
        users[0].item_ns = users[1].item_ns = 3000 * MS;
        have_threads(2);
        user_push(&users[0]);
        user_push(&users[1]);
        takes(0, &users[0]);
        takes(1, &users[1]);
        takes(0, &users[0]);
}
END_TEST

START_TEST(long_items_after_many_short_ones_fill_the_threads_once_at_most) {
        users[0].rare_ns = 10000 * MS;
        have_threads(8);
        user_push(&users[0]);
        user_push(&users[1]);
        serve(8, 300000 * MS);
        ck_assert_uint_le(users[1].n_gaps, 1);
        ck_assert_uint_gt(had_ms(&users[1]), had_ms(&users[0]) * 9 / 10);
}
END_TEST

START_TEST(who_comes_when_long_items_have_every_thread_makes_one_be_given_up) {
        users[0].item_ns = users[2].item_ns = 3000 * MS;
        have_threads(2);
        user_push(&users[0]);
        takes(0, &users[0]);
        takes(1, &users[0]);
        user_push(&users[0]);
        user_push(&users[2]); /* its own are long as well */
        ck_assert(!fair_queue_presses(&queue, &workers[0]));
        user_push(&users[1]);
        ck_assert(fair_queue_presses(&queue, &workers[1]));
        ck_assert(!fair_queue_presses(&queue, &workers[0])); /* one alone */
        user_had(&users[0], 1000);
        user_had(&users[2], 1000);
        takes(1, &users[1]);
        user_push(&users[3]);
        ck_assert(!fair_queue_presses(&queue, &workers[0])); /* the other thread comes soon */
}
END_TEST

/* ---- threads ------------------------------------------------------------------------------------------------- */

static _Atomic uint32_t n_done;

static void *take(void *userdata) {
        struct fair_item *item;

        (void)userdata;
        while ((item = fair_queue_pop(&queue, NULL))) {
                fair_item_done(item, MS);
                atomic_fetch_add(&n_done, 1);
        }
        return NULL;
}

START_TEST(no_item_is_lost_between_threads) {
        struct fair_item *items = calloc(N_PUSHED, sizeof(*items));
        pthread_t threads[N_BUSY];

        ck_assert_ptr_nonnull(items);
        atomic_store(&n_done, 0);
        for (uint32_t i = 0; i < N_BUSY; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, take, NULL), 0);
        for (uint32_t i = 0; i < N_PUSHED; i++)
                fair_queue_push(&queue, &users[i % N_SHARES].share, &items[i]);
        while (atomic_load(&n_done) < N_PUSHED)
                sched_yield(); /* for ever if one is lost: Check's limit ends it */
        fair_queue_stop(&queue);
        for (uint32_t i = 0; i < N_BUSY; i++)
                pthread_join(threads[i], NULL);
        for (uint32_t i = 0; i < N_SHARES; i++)
                ck_assert_uint_eq(had_ms(&users[i]), N_PUSHED / N_SHARES);
        free(items);
}
END_TEST

static void *take_until_stopped(void *userdata) {
        struct fair_thread *thread = userdata;

        while (fair_queue_pop(&queue, thread))
                atomic_fetch_add(&n_done, 1); /* it is at it until the next one */
        return NULL;
}

static void *take_one(void *userdata) {
        ck_assert_ptr_nonnull(fair_queue_pop(&queue, userdata));
        atomic_fetch_add(&n_done, 1);
        return NULL;
}

START_TEST(a_thread_that_was_left_to_another_user_takes_long_items_when_that_one_has_gone) {
        pthread_t threads[2];

        atomic_store(&n_done, 0);
        atomic_store(&users[0].share.account.longest_ns, 3000 * (int64_t)MS);
        atomic_store(&users[1].share.account.longest_ns, (int64_t)MS);
        have_threads(2);
        fair_queue_push(&queue, &users[1].share, &users[1].items[0]);
        takes(0, &users[1]);
        user_push(&users[0]);
        for (int i = 0; i < 2; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, take_one, &workers[i]), 0);
        for (int i = 0; i < 2; i++)
                pthread_join(threads[i], NULL); /* for ever if one waits for the user: Check's limit ends it */
}
END_TEST

START_TEST(no_long_item_is_left_beside_short_ones) {
        struct fair_thread taking[N_BUSY] = { 0 };
        struct fair_item items[200] = { 0 };
        pthread_t threads[N_BUSY];

        atomic_store(&n_done, 0);
        for (uint32_t i = 0; i < N_SHARES; i++)
                users[i].item_ns = i % 2 == 0 ? MS : 1000 * MS;
        have_threads(0);
        for (uint32_t i = 0; i < N_BUSY; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, take_until_stopped, &taking[i]), 0);
        for (uint32_t i = 0; i < 200; i++)
                fair_queue_push(&queue, &users[i % N_SHARES].share, &items[i]);
        while (atomic_load(&n_done) < 200)
                sched_yield();
        fair_queue_stop(&queue);
        for (uint32_t i = 0; i < N_BUSY; i++)
                pthread_join(threads[i], NULL);
        ck_assert_uint_eq(queue.n_threads, 0);
        ck_assert_uint_eq(queue.n_held, 0);
}
END_TEST

START_TEST(stopping_wakes_sleepers_and_keeps_what_is_left) {
        struct fair_item items[2] = { 0 };
        pthread_t threads[N_BUSY];

        atomic_store(&n_done, 0);
        for (uint32_t i = 0; i < N_BUSY; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, take, NULL), 0);
        usleep(20000);
        fair_queue_stop(&queue);
        for (uint32_t i = 0; i < N_BUSY; i++)
                pthread_join(threads[i], NULL);
        fair_queue_push(&queue, &users[0].share, &items[0]);
        fair_queue_push(&queue, &users[0].share, &items[1]);
        ck_assert_ptr_null(fair_queue_pop(&queue, NULL));
        ck_assert_ptr_eq(STAILQ_FIRST(&users[0].share.items), &items[0]);
        ck_assert_ptr_eq(STAILQ_NEXT(&items[0], entry), &items[1]);
        ck_assert_ptr_null(STAILQ_NEXT(&items[1], entry));
        ck_assert_uint_eq(atomic_load(&n_done), 0);
}
END_TEST

int main(void) {
        TCase *reckoned = tcase_create("reckoned"), *threaded = tcase_create("threaded");
        Suite *suite = suite_create("fair_queue");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_checked_fixture(reckoned, setup, teardown);
        tcase_add_test(reckoned, one_share_is_a_queue);
        tcase_add_test(reckoned, several_that_are_pushed_at_once_come_after_those_before_and_in_their_sequence);
        tcase_add_test(reckoned, several_items_that_take_long_wake_a_thread_each);
        tcase_add_test(reckoned, each_gets_the_same_time_whatever_its_items_take);
        tcase_add_test(reckoned, many_workers_that_take_at_once_are_spread_over_the_shares);
        tcase_add_test(reckoned, time_is_shared_by_weight);
        tcase_add_test(reckoned, what_one_does_not_want_the_others_get);
        tcase_add_test(reckoned, a_newcomer_gets_its_share_at_once_and_no_more);
        tcase_add_test(reckoned, who_was_idle_has_saved_up_a_little_credit_at_most);
        tcase_add_test(reckoned, a_queue_that_is_empty_for_a_moment_loses_nothing);
        tcase_add_test(reckoned, an_expensive_surprise_is_paid_for_afterwards);
        tcase_add_test(reckoned, what_is_charged_before_the_first_item_counts);
        tcase_add_test(reckoned, what_is_charged_without_items_is_remembered_up_to_a_limit);
        tcase_add_test(reckoned, a_group_gets_no_more_by_having_more_shares);
        tcase_add_test(reckoned, within_a_group_time_is_shared_by_weight_and_its_own_weight_is_the_mean);
        tcase_add_test(reckoned, what_one_share_of_a_group_does_not_want_the_others_of_it_get);
        tcase_add_test(reckoned, a_new_share_of_a_group_brings_no_new_credit);
        tcase_add_test(reckoned, what_a_user_consists_of_has_the_same_time_each_whatever_its_shares_are);
        tcase_add_test(reckoned, a_users_weight_is_the_mean_of_what_it_consists_of);
        tcase_add_test(reckoned, a_share_that_comes_and_goes_within_a_user_leaves_the_others_in_their_lists);
        tcase_add_test(reckoned, long_items_leave_a_thread_to_another_user);
        tcase_add_test(reckoned, what_a_user_had_beside_long_items_the_next_one_waits_for);
        tcase_add_test(reckoned, a_group_within_a_user_is_no_way_to_the_thread_that_was_left_to_others);
        tcase_add_test(reckoned, long_items_of_several_users_leave_a_thread_together);
        tcase_add_test(reckoned, what_nobody_has_measured_is_tried_with_one_item);
        tcase_add_test(reckoned, a_users_new_job_does_not_get_the_thread_that_the_long_ones_left);
        tcase_add_test(reckoned, a_users_new_job_is_taken_for_what_the_others_are);
        tcase_add_test(reckoned, long_items_get_every_thread_when_others_have_long_ones_only);
        tcase_add_test(reckoned, long_items_after_many_short_ones_fill_the_threads_once_at_most);
        tcase_add_test(reckoned, who_comes_when_long_items_have_every_thread_makes_one_be_given_up);
        suite_add_tcase(suite, reckoned);
        tcase_add_checked_fixture(threaded, setup, teardown);
        tcase_set_timeout(threaded, 60);
        tcase_add_test(threaded, no_item_is_lost_between_threads);
        tcase_add_test(threaded, a_thread_that_was_left_to_another_user_takes_long_items_when_that_one_has_gone);
        tcase_add_test(threaded, no_long_item_is_left_beside_short_ones);
        tcase_add_test(threaded, stopping_wakes_sleepers_and_keeps_what_is_left);
        suite_add_tcase(suite, threaded);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
