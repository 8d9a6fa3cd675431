/* Datasets that grow: what is published can be read, by any thread and at any moment; the order that is made of it is
 * the one that all samples together would have. Clean under TSan. */

#include "daemon/data/growth.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/data/intake/pieces.h"
#include "daemon/data/orders/order_table.h"
#include "proto/order/epoch_plan.h"
#include "proto/ring.h"

#define N_SAMPLES 20011u
#define N_READERS 3

/* ---- the array and the number ---------------------------------------------------------------------------------- */

struct dataset_under_test {
        struct growth *growth;
        struct pieces samples; /* of uint64_t: 7 * its number + 1 */
};

static void *grow(void *argument) {
        struct dataset_under_test *dataset = argument;

        while (dataset->samples.n < N_SAMPLES) {
                for (unsigned i = 0; i < 37 && dataset->samples.n < N_SAMPLES; i++) {
                        uint64_t number = dataset->samples.n, *sample = pieces_append(&dataset->samples, NULL);

                        *sample = 7 * number + 1;
                }
                growth_publish(dataset->growth, dataset->samples.n, false);
        }
        growth_publish(dataset->growth, dataset->samples.n, true);
        return NULL;
}

static void *read_all(void *argument) {
        struct dataset_under_test *dataset = argument;
        bool is_over = false;
        uint64_t n = 0;

        while (!is_over) {
                uint64_t n_before = n;

                n = growth_n_samples(dataset->growth, &is_over);
                ck_assert_uint_ge(n, n_before);
                for (uint64_t i = n_before; i < n; i++)
                        ck_assert_uint_eq(*(uint64_t *)pieces_at(&dataset->samples, i), 7 * i + 1);
        }
        ck_assert_uint_eq(n, N_SAMPLES);
        return NULL;
}

START_TEST(readers_see_each_sample_that_was_published_and_the_end_after_the_last) {
        struct budget budget = { .limit_bytes = UINT64_MAX };
        struct dataset_under_test dataset;
        pthread_t writer, readers[N_READERS];

        ck_assert_int_eq(growth_new(&dataset.growth), 0);
        ck_assert_int_eq(pieces_init(&dataset.samples, sizeof(uint64_t), &budget, "samples"), 0);
        for (int i = 0; i < N_READERS; i++)
                ck_assert_int_eq(pthread_create(&readers[i], NULL, read_all, &dataset), 0);
        ck_assert_int_eq(pthread_create(&writer, NULL, grow, &dataset), 0);
        pthread_join(writer, NULL);
        for (int i = 0; i < N_READERS; i++)
                pthread_join(readers[i], NULL);
        ck_assert_uint_eq(budget_used(&budget), (N_SAMPLES + PIECE_ELEMENTS - 1) / PIECE_ELEMENTS * PIECE_ELEMENTS * 8);
        pieces_fini(&dataset.samples);
        ck_assert_uint_eq(budget_used(&budget), 0);
        growth_unref(dataset.growth);
}
END_TEST

START_TEST(what_does_not_fit_the_budget_is_refused_and_leaves_no_trace) {
        struct budget budget = { .limit_bytes = PIECE_ELEMENTS * 8 + 100 };
        struct pieces pieces;
        struct text_pool texts;
        struct text_pool_mark mark;
        struct why why;

        ck_assert_int_eq(pieces_init(&pieces, 8, &budget, "samples of a test"), 0);
        for (unsigned i = 0; i < PIECE_ELEMENTS; i++)
                ck_assert_ptr_nonnull(pieces_append(&pieces, &why));
        ck_assert_ptr_null(pieces_append(&pieces, &why));
        ck_assert_ptr_nonnull(strstr(why.text, "samples of a test"));
        ck_assert_uint_eq(pieces.n, PIECE_ELEMENTS);
        text_pool_init(&texts, &budget, "texts of a test");
        ck_assert_ptr_null(text_pool_add(&texts, "abc", 3, &why));
        pieces_fini(&pieces);

        budget.limit_bytes = 1u << 20;
        ck_assert_str_eq(text_pool_add(&texts, "abc", 3, &why), "abc");
        mark = text_pool_mark(&texts);
        for (unsigned i = 0; i < 100000 && text_pool_add(&texts, "0123456789012345678901234567890123456789", 40, &why);
             i++)
                ;
        ck_assert_ptr_nonnull(strstr(why.text, "texts of a test"));
        text_pool_rewind(&texts, &mark);
        ck_assert_str_eq(text_pool_add(&texts, "def", 3, &why), "def");
        text_pool_fini(&texts);
        ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

/* ---- the order ------------------------------------------------------------------------------------------------- */

struct owner {
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        uint64_t n_ready;
        atomic_int n_kept; /* payers that are kept for a table */
};

static int keep(void *userdata, void *payer, uint64_t n_bytes, const char *what, struct why *why) {
        (void)payer;
        (void)what;
        (void)why;
        ck_assert_uint_eq(n_bytes, 0); /* a table of a stream pays as it grows */
        atomic_fetch_add(&((struct owner *)userdata)->n_kept, 1);
        return 0;
}

static void give_back(void *userdata, void *payer, uint64_t n_bytes) {
        (void)payer;
        (void)n_bytes;
        atomic_fetch_sub(&((struct owner *)userdata)->n_kept, 1);
}

static void ready(void *userdata) {
        struct owner *owner = userdata;

        pthread_mutex_lock(&owner->mutex);
        owner->n_ready++;
        pthread_cond_broadcast(&owner->changed);
        pthread_mutex_unlock(&owner->mutex);
}

/* Waits as the planner does: only ready() wakes it. A wake-up that was lost would let this hang. */
static uint64_t await(struct owner *owner, struct order_table *table, uint64_t position, uint64_t *n_seen) {
        uint64_t index;

        while (order_table_at(table, position, &index) != 0) {
                pthread_mutex_lock(&owner->mutex);
                while (owner->n_ready == *n_seen)
                        pthread_cond_wait(&owner->changed, &owner->mutex);
                *n_seen = owner->n_ready;
                pthread_mutex_unlock(&owner->mutex);
        }
        return index;
}

struct slow_writer {
        struct growth *growth;
        uint64_t n, step;
};

static void *publish_slowly(void *argument) {
        struct slow_writer *writer = argument;
        const struct timespec pause = { .tv_nsec = 20000 };

        for (uint64_t n = 0; n < writer->n; n += writer->step) {
                growth_publish(writer->growth, n, false);
                nanosleep(&pause, NULL);
        }
        growth_publish(writer->growth, writer->n, false);
        nanosleep(&pause, NULL);
        growth_publish(writer->growth, writer->n, true);
        return NULL;
}

static void expect_order(const struct dlp_sampler_terms *known, struct order_table *table, struct owner *owner) {
        uint64_t n_bytes = dlp_sampler_table_bytes(known), n_seen = 0, index;
        void *memory = n_bytes > 0 ? calloc(1, n_bytes) : NULL;
        struct dlp_sampler *sampler = aligned_alloc(64, sizeof(*sampler));

        memset(sampler, 0, sizeof(*sampler));
        dlp_sampler_init(sampler, known, memory);
        while (dlp_sampler_advance(sampler, 1000) < known->n_samples)
                ;
        for (uint64_t i = 0; i < known->n_samples; i++)
                ck_assert_uint_eq(await(owner, table, i, &n_seen), dlp_sampler_at(sampler, i));
        /* after the last position comes the first, which is known only when the end is */
        ck_assert_uint_eq(await(owner, table, known->n_samples, &n_seen), dlp_sampler_at(sampler, 0));
        ck_assert_int_eq(order_table_at(table, 0, &index), 0);
        free(memory);
        free(sampler);
}

static const uint32_t SIZES[] = { 0, 1, 2, 99, 1000, 50000 }; /* 0: not shuffled */

START_TEST(an_order_made_as_samples_arrive_is_the_order_of_all_of_them) {
        struct owner owner = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
        struct order_tables_options options = {
                .reserve = keep, .release = give_back, .ready = ready, .userdata = &owner
        };
        struct dlp_sampler_terms known = { .n_samples = 3001,
                                           .seed = 11,
                                           .epoch = 2,
                                           .shuffle = SIZES[_i] > 0,
                                           .kind = DLP_ORDER_BUFFER,
                                           .shuffle_buffer = SIZES[_i] };
        struct budget budget = { .limit_bytes = UINT64_MAX };
        struct order_spec spec = { .terms = known, .budget = &budget };
        struct slow_writer writer = { .n = known.n_samples, .step = 53 };
        struct order_table *table, *same;
        struct order_tables *tables;
        pthread_t thread;

        ck_assert_int_eq(growth_new(&writer.growth), 0);
        spec.growth = writer.growth;
        spec.terms.n_samples = DLP_UNKNOWN;
        ck_assert_int_eq(order_tables_new(&options, &tables), 0);
        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        ck_assert_int_eq(order_table_get(tables, &spec, &same, NULL), 0);
        ck_assert_ptr_eq(table, same);
        ck_assert(!order_table_has(table, 1));
        ck_assert_int_eq(pthread_create(&thread, NULL, publish_slowly, &writer), 0);
        expect_order(&known, table, &owner);
        pthread_join(thread, NULL);
        order_table_put(table);
        order_table_put(same);
        order_tables_free(tables);
        ck_assert_int_eq(atomic_load(&owner.n_kept), 0);
        ck_assert_uint_eq(budget_used(&budget), 0);
        growth_unref(writer.growth);
}
END_TEST

/* ---- the plan and the control page ----------------------------------------------------------------------------- */

/* A batch that was begun before the end was known is the one that a plan with the end has. */
START_TEST(a_batch_that_needs_no_more_than_there_is_does_not_depend_on_the_end) {
        for (uint64_t n = 1; n < 200; n += 7)
                for (uint32_t world = 1; world < 6; world += 2)
                        for (unsigned choice = 0; choice < 12; choice++) {
                                struct dlp_epoch_terms terms = { .n_positions = DLP_UNKNOWN,
                                                                 .world = world,
                                                                 .batch_size = 3,
                                                                 .partition = (enum dlp_partition)(choice % 3),
                                                                 .dealing = choice < 6 ? DLP_DEALING_STRIDED
                                                                                       : DLP_DEALING_BATCH,
                                                                 .drop_last = choice % 2 };
                                struct dlp_epoch_plan open = dlp_epoch_plan_make(&terms, world - 1, n % 5), closed;

                                terms.n_positions = n;
                                closed = dlp_epoch_plan_make(&terms, world - 1, n % 5);
                                for (uint64_t step = 0; dlp_epoch_plan_needs(&open, step) <= n; step++) {
                                        ck_assert(!dlp_epoch_plan_is_over(&closed, step));
                                        ck_assert_uint_eq(dlp_epoch_plan_batch(&closed, step).n_samples, 3);
                                        ck_assert_uint_eq(dlp_epoch_plan_batch(&open, step).n_samples, 3);
                                        for (uint64_t k = 3 * step; k < 3 * step + 3; k++)
                                                ck_assert_uint_eq(dlp_epoch_plan_position(&open, k),
                                                                  dlp_epoch_plan_position(&closed, k));
                                }
                        }
}
END_TEST

START_TEST(the_control_page_tells_a_length_also_of_nothing_and_wakes_who_waits) {
        static struct dlp_control control;
        static struct dlp_client_page page;

        ck_assert_uint_eq(dlp_ring_length(&control), DLP_UNKNOWN);
        ck_assert_int_eq(dlp_ring_set_length(&control, &page, 0), DLP_WAKE_NOBODY);
        ck_assert_uint_eq(dlp_ring_length(&control), 0);
        ck_assert(dlp_ring_wait_begin(&control, &page, 0));
        ck_assert_int_eq(dlp_ring_set_length(&control, &page, 77), DLP_WAKE_PACKET);
        ck_assert_uint_eq(dlp_ring_length(&control), 77);
}
END_TEST

/* What is wanted comes in the sequence in which it was asked for, and nothing after a failure: it would be taken up
 * again and again. */
START_TEST(blocks_that_are_wanted_are_found_until_one_has_failed) {
        static const size_t NUMBERS[] = { 2, 1, 0 };
        const struct why why = { "damaged" };
        _Atomic uint64_t taken = 0;
        struct growth *growth;
        uint32_t block = 9;

        ck_assert_int_eq(growth_new_blocks(3, 10, NULL, NULL, &growth), 0);
        ck_assert(!growth_wanted_block(growth, &taken, NUMBERS, &block));
        growth_want_block(growth, 1, 5, true);
        growth_want_block(growth, 2, 5, false);
        ck_assert(growth_wanted_block(growth, &taken, NUMBERS, &block));
        ck_assert_uint_eq(block, 2); /* needed before what is only needed later */
        taken = 1;
        ck_assert(growth_wanted_block(growth, &taken, NUMBERS, &block));
        ck_assert_uint_eq(block, 1);
        growth_set_block(growth, 1, 5, false);
        ck_assert(!growth_wanted_block(growth, &taken, NUMBERS, &block));
        taken = 0;
        growth_fail(growth, &why);
        ck_assert(!growth_wanted_block(growth, &taken, NUMBERS, &block));
        growth_unref(growth);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("growth");
        TCase *tests = tcase_create("all");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(tests, 120);
        tcase_add_test(tests, readers_see_each_sample_that_was_published_and_the_end_after_the_last);
        tcase_add_test(tests, what_does_not_fit_the_budget_is_refused_and_leaves_no_trace);
        tcase_add_loop_test(tests, an_order_made_as_samples_arrive_is_the_order_of_all_of_them, 0,
                            sizeof(SIZES) / sizeof(SIZES[0]));
        tcase_add_test(tests, a_batch_that_needs_no_more_than_there_is_does_not_depend_on_the_end);
        tcase_add_test(tests, blocks_that_are_wanted_are_found_until_one_has_failed);
        tcase_add_test(tests, the_control_page_tells_a_length_also_of_nothing_and_wakes_who_waits);
        suite_add_tcase(suite, tests);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed > 0;
}
