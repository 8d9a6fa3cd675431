/* Order tables: the right order, made once, usable before it is done, gone when nobody wants it. Clean under TSan. */

#include "daemon/data/orders/order_table.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/limits.h"
#include "proto/order/epoch_plan.h"
#include "proto/order/tdperm.h"
#include "tests/support/stuck_sweeper.h"

/* An owner: a budget, and somebody who waits to be told that there is more. */
struct owner {
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        uint64_t n_ready; /* mutex */
        atomic_uint_fast64_t n_bytes, limit_bytes, n_reserved;
};

static int owner_reserve(void *userdata, void *payer, uint64_t n_bytes, const char *what, struct why *why) {
        struct owner *owner = userdata;

        if (atomic_fetch_add(&owner->n_bytes, n_bytes) + n_bytes > atomic_load(&owner->limit_bytes)) {
                atomic_fetch_sub(&owner->n_bytes, n_bytes);
                return why_set(why, -ENOMEM, "%s does not fit", what);
        }
        atomic_fetch_add(&owner->n_reserved, 1);
        return 0;
}

static void owner_release(void *userdata, void *payer, uint64_t n_bytes) {
        struct owner *owner = userdata;

        atomic_fetch_sub(&owner->n_bytes, n_bytes);
}

static void owner_ready(void *userdata) {
        struct owner *owner = userdata;

        pthread_mutex_lock(&owner->mutex);
        owner->n_ready++;
        pthread_cond_broadcast(&owner->changed);
        pthread_mutex_unlock(&owner->mutex);
}

static struct order_tables *start(struct owner *owner) {
        struct order_tables_options options = {
                .reserve = owner_reserve,
                .release = owner_release,
                .ready = owner_ready,
                .userdata = owner,
        };
        struct order_tables *tables;

        *owner = (struct owner){ .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
        atomic_init(&owner->limit_bytes, 1ull << 30);
        ck_assert_int_eq(order_tables_new(&options, &tables), 0);
        return tables;
}

/* Stops, and expects that every byte was given back. */
static void stop(struct owner *owner, struct order_tables *tables) {
        order_tables_free(tables);
        ck_assert_uint_eq(atomic_load(&owner->n_bytes), 0);
}

/* Looks up, waiting as a caller would: only for the callback, at most ten seconds for each. */
static uint64_t at(struct owner *owner, struct order_table *table, uint64_t position) {
        uint64_t idx = UINT64_MAX, n_ready_before;
        struct timespec until;

        for (;;) {
                int r;

                pthread_mutex_lock(&owner->mutex);
                n_ready_before = owner->n_ready;
                pthread_mutex_unlock(&owner->mutex);
                r = order_table_at(table, position, &idx);
                if (r == 0)
                        return idx;
                if (r != ORDER_NOT_YET)
                        ck_abort_msg("order_table_at: %d", r);

                clock_gettime(CLOCK_REALTIME, &until);
                until.tv_sec += 10;
                pthread_mutex_lock(&owner->mutex);
                while (owner->n_ready == n_ready_before)
                        if (pthread_cond_timedwait(&owner->changed, &owner->mutex, &until) == ETIMEDOUT)
                                ck_abort_msg("nobody said that position %ju is there", (uintmax_t)position);
                pthread_mutex_unlock(&owner->mutex);
        }
}

/* randperm(n) of a seed, made in one go. */
static uint32_t *whole(uint64_t n, uint64_t seed, enum dlp_torch_compat compat) {
        uint32_t *table = calloc(n + 1, sizeof(*table));
        struct dlp_torch_random random;
        struct dlp_shuffle shuffle;

        dlp_torch_seed(&random, seed);
        dlp_shuffle_init(&shuffle, &random, table, n, compat);
        dlp_shuffle_advance(&shuffle, n);
        return table;
}

START_TEST(a_table_is_the_order_of_seed_plus_epoch) {
        static const uint64_t SIZES[] = { 1, 2, 1000, 4096, 4097, 1000003 };
        struct owner owner;
        struct order_tables *tables = start(&owner);

        for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
                struct order_spec spec = { .terms = {
                                                   .n_samples = SIZES[i], .seed = 40, .epoch = 2, .shuffle = true } };
                uint32_t *expected = whole(spec.terms.n_samples, 42, DLP_TORCH_2_7);
                struct order_table *table;

                ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
                for (uint64_t k = 0; k < spec.terms.n_samples; k++)
                        if (at(&owner, table, k) != expected[k])
                                ck_abort_msg("position %ju of %ju", (uintmax_t)k, (uintmax_t)spec.terms.n_samples);
                ck_assert_uint_eq(at(&owner, table, spec.terms.n_samples * 3 + spec.terms.n_samples / 2),
                                  expected[spec.terms.n_samples / 2]);
                order_table_put(table);
                free(expected);
        }
        stop(&owner, tables);
}
END_TEST

START_TEST(who_asks_for_the_same_order_gets_the_same_table) {
        struct order_spec spec = { .terms = { .n_samples = 1000, .seed = 5, .epoch = 1, .shuffle = true } }, other;
        struct order_table *first, *table;
        struct owner owner;
        struct order_tables *tables = start(&owner);

        ck_assert_int_eq(order_table_get(tables, &spec, &first, NULL), 0);
        other = (struct order_spec){ .terms = {
                                             .n_samples = 1000, .seed = 1ull << 32 | 2, .epoch = 4, .shuffle = true } };
        ck_assert_int_eq(order_table_get(tables, &other, &table, NULL), 0); /* torch seeds with 6 as well */
        ck_assert_ptr_eq(table, first);
        order_table_put(table);
        ck_assert_uint_eq(atomic_load(&owner.n_reserved), 1);
        ck_assert_uint_eq(atomic_load(&owner.n_bytes), 4000);

        for (int i = 0; i < 4; i++) {
                other = spec;
                other.terms.n_samples += i == 0;
                other.terms.seed += i == 1;
                other.terms.compat = i == 2 ? DLP_TORCH_BEFORE_2_6 : DLP_TORCH_2_7;
                other.terms.shuffle = i != 3;
                ck_assert_int_eq(order_table_get(tables, &other, &table, NULL), 0);
                ck_assert_ptr_ne(table, first);
                order_table_put(table);
        }
        order_table_put(first);
        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        order_table_put(table);
        stop(&owner, tables);
}
END_TEST

START_TEST(a_sequential_order_takes_no_memory) {
        struct order_spec spec = { .terms = { .n_samples = DLP_SAMPLES_MAX } };
        struct order_table *table;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        uint64_t idx;

        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        ck_assert_int_eq(order_table_at(table, 123456789, &idx), 0);
        ck_assert_uint_eq(idx, 123456789);
        ck_assert_int_eq(order_table_at(table, DLP_SAMPLES_MAX + 7, &idx), 0);
        ck_assert_uint_eq(idx, 7);
        ck_assert_uint_eq(atomic_load(&owner.n_reserved), 0);
        order_table_put(table);
        stop(&owner, tables);
}
END_TEST

START_TEST(a_computed_order_is_there_at_once_and_takes_no_memory) {
        struct order_spec spec = {
                .terms = { .n_samples = 1000003, .seed = 40, .epoch = 2, .shuffle = true, .kind = DLP_ORDER_TDPERM }
        };
        struct order_table *table, *other;
        struct dlp_tdperm tdperm;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        uint64_t idx;

        dlp_tdperm_init(&tdperm, 40, 2, 0, spec.terms.n_samples);
        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        ck_assert_int_eq(order_table_at(table, spec.terms.n_samples - 1, &idx), 0);
        for (uint64_t k = 0; k < spec.terms.n_samples; k += 997) {
                ck_assert_int_eq(order_table_at(table, k + 2 * spec.terms.n_samples, &idx), 0);
                ck_assert_uint_eq(idx, dlp_tdperm_at(&tdperm, k));
        }
        for (int i = 0; i < 4; i++) {
                struct order_spec another = spec;

                another.terms.seed += i == 1; /* 41 + 1 is not 40 + 2 here */
                another.terms.epoch -= i == 1;
                another.terms.shuffle = i != 2;
                another.terms.kind = i == 3 ? DLP_ORDER_TORCH : DLP_ORDER_TDPERM;
                ck_assert_uint_eq(atomic_load(&owner.n_reserved), 0);
                ck_assert_int_eq(order_table_get(tables, &another, &other, NULL), 0);
                ck_assert((other == table) == (i == 0));
                order_table_put(other);
        }
        order_table_put(table);

        spec.terms.n_samples = DLP_SAMPLES_MAX;
        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        ck_assert_int_eq(order_table_at(table, DLP_SAMPLES_MAX / 2, &idx), 0);
        ck_assert_uint_lt(idx, DLP_SAMPLES_MAX);
        ck_assert_uint_eq(atomic_load(&owner.n_reserved), 1); /* torch's */
        order_table_put(table);
        stop(&owner, tables);
}
END_TEST

/* Positions are looked up while the thread still finds where windows begin. */
START_TEST(an_order_of_blocks_can_be_used_before_all_its_windows_are_found) {
        static uint64_t ends[60000];
        const struct dlp_blocks blocks = { .ends = ends, .n = sizeof(ends) / sizeof(ends[0]) };
        struct order_spec spec = { .terms = { .n_samples = 3 * sizeof(ends) / sizeof(ends[0]),
                                              .seed = 4,
                                              .epoch = 2,
                                              .shuffle = true,
                                              .kind = DLP_ORDER_BLOCKS,
                                              .blocks = &blocks } };
        struct order_table *table;
        struct dlp_sampler sampler;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        void *memory;

        for (uint32_t b = 0; b < blocks.n; b++)
                ends[b] = 3 * (b + 1);
        memory = calloc(1, dlp_sampler_table_bytes(&spec.terms));
        ck_assert_ptr_nonnull(memory);
        dlp_sampler_init(&sampler, &spec.terms, memory);
        dlp_sampler_advance(&sampler, UINT64_MAX);
        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        for (uint64_t k = 0; k < spec.terms.n_samples; k++)
                if (at(&owner, table, k) != dlp_sampler_at(&sampler, k))
                        ck_abort_msg("position %ju", (uintmax_t)k);
        ck_assert_uint_eq(atomic_load(&owner.n_bytes), dlp_sampler_table_bytes(&spec.terms));
        order_table_put(table);
        free(memory);
        stop(&owner, tables);
}
END_TEST

START_TEST(an_order_of_nothing_has_no_position) {
        struct order_table *table;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        uint64_t idx = 77;

        for (int i = 0; i < 3; i++) {
                struct order_spec spec = { .terms = { .shuffle = i > 0,
                                                      .kind = i == 2 ? DLP_ORDER_TDPERM : DLP_ORDER_TORCH } };

                ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
                ck_assert_int_eq(order_table_at(table, 0, &idx), -ERANGE);
                ck_assert_uint_eq(idx, 77);
                order_table_put(table);
        }
        stop(&owner, tables);
}
END_TEST

START_TEST(the_first_elements_can_be_used_long_before_the_last) {
        struct order_spec spec = { .terms = { .n_samples = 50000000, .seed = 1, .shuffle = true } };
        struct order_table *table;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        uint64_t idx;

        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        at(&owner, table, 100);
        ck_assert_int_eq(order_table_at(table, spec.terms.n_samples - 1, &idx), ORDER_NOT_YET);
        order_table_put(table); /* in the making: the thread frees it */
        stop(&owner, tables);
}
END_TEST

START_TEST(a_table_that_is_waited_for_goes_before_one_made_ahead) {
        struct order_spec ahead = { .terms = { .n_samples = 50000000, .seed = 1, .shuffle = true } };
        struct order_spec wanted = { .terms = { .n_samples = 100000, .seed = 2, .shuffle = true } };
        struct order_table *table_ahead, *table_wanted;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        uint64_t idx;

        ck_assert_int_eq(order_table_get(tables, &ahead, &table_ahead, NULL), 0);
        ck_assert_int_eq(order_table_get(tables, &wanted, &table_wanted, NULL), 0);
        at(&owner, table_wanted, wanted.terms.n_samples - 1);
        ck_assert_int_eq(order_table_at(table_ahead, ahead.terms.n_samples - 1, &idx), ORDER_NOT_YET);
        order_table_put(table_ahead);
        order_table_put(table_wanted);
        stop(&owner, tables);
}
END_TEST

START_TEST(memory_is_asked_for_and_a_refusal_is_passed_on) {
        struct order_spec spec = { .terms = { .n_samples = 1000000, .shuffle = true } };
        struct order_table *table = NULL;
        struct why why = { 0 };
        struct owner owner;
        struct order_tables *tables = start(&owner);

        atomic_store(&owner.limit_bytes, 3999999);
        ck_assert_int_eq(order_table_get(tables, &spec, &table, &why), -ENOMEM);
        ck_assert_str_eq(why.text, "the order of 1000000 samples does not fit");
        ck_assert_ptr_null(table);
        atomic_store(&owner.limit_bytes, 4000000);
        ck_assert_int_eq(order_table_get(tables, &spec, &table, &why), 0);
        ck_assert_uint_eq(atomic_load(&owner.n_bytes), 4000000);
        order_table_put(table);
        order_table_put(NULL);

        spec.terms.n_samples = DLP_SAMPLES_MAX + 1;
        ck_assert_int_eq(order_table_get(tables, &spec, &table, &why), -EINVAL);
        atomic_store(&owner.limit_bytes, UINT64_MAX);
        spec.terms.n_samples = DLP_SAMPLES_MAX; /* 8 TiB: either it is only promised, or it is an error */
        if (order_table_get(tables, &spec, &table, &why) == 0)
                order_table_put(table);
        stop(&owner, tables);
}
END_TEST

START_TEST(stopping_does_not_wait_for_a_table_to_be_done) {
        struct order_spec spec = { .terms = {
                                           .n_samples = 1ull << 31, .shuffle = true, .compat = DLP_TORCH_BEFORE_2_6 } };
        struct order_table *table;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        uint64_t begin_ns;

        atomic_store(&owner.limit_bytes, UINT64_MAX);
        if (order_table_get(tables, &spec, &table, NULL) == 0) { /* 8 GiB, of which little is touched */
                at(&owner, table, 10);
                order_table_put(table);
        }
        begin_ns = clock_now_ns();
        stop(&owner, tables);
        ck_assert_uint_lt(clock_now_ns() - begin_ns, 60000000000ull);
}
END_TEST

/* ---- orders of samplers ---------------------------------------------------------------------------------------- */

/* A sampler with one column "w" of n values, or without any. */
static struct sampling *sampling_of(const char *text, const double *values, uint64_t n) {
        struct sampling_column column = { .name = "w", .dtype = DLP_DTYPE_FLOAT64, .n_values = n };
        struct sampling *sampling;
        int fd = -1;

        if (n > 0) {
                fd = memfd_create("column", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                ck_assert_int_ge(fd, 0);
                ck_assert_int_eq(write(fd, values, n * sizeof(*values)), (ssize_t)(n * sizeof(*values)));
                ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 0);
        }
        ck_assert_int_eq(sampling_new(text, fd, &column, n > 0, &sampling, NULL), 0);
        if (fd >= 0)
                close(fd); /* its memory stays mapped */
        return sampling;
}

/* Waits, as a caller would, until it is known how many units there are, or that there will be none. */
static uint64_t n_units(struct owner *owner, struct order_table *table, struct why *ret_why) {
        struct timespec until;

        for (;;) {
                uint64_t n_ready_before, n;

                pthread_mutex_lock(&owner->mutex);
                n_ready_before = owner->n_ready;
                pthread_mutex_unlock(&owner->mutex);
                n = order_table_n_units(table);
                if (n != DLP_UNKNOWN || order_table_has_failed(table, ret_why))
                        return n;
                clock_gettime(CLOCK_REALTIME, &until);
                until.tv_sec += 60;
                pthread_mutex_lock(&owner->mutex);
                while (owner->n_ready == n_ready_before)
                        if (pthread_cond_timedwait(&owner->changed, &owner->mutex, &until) == ETIMEDOUT)
                                ck_abort_msg("nobody said that the order is there, or that it has failed");
                pthread_mutex_unlock(&owner->mutex);
        }
}

START_TEST(an_order_that_is_made_can_be_used_before_it_is_whole) {
        struct sampling *sampling = sampling_of("random(replacement=true, n=20000000)", NULL, 0);
        struct order_spec spec = { .terms = { .n_samples = 100, .seed = 3, .shuffle = true },
                                   .sampling = sampling,
                                   .batch_size = 4 };
        struct order_table *table;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        struct why why;

        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        ck_assert_uint_eq(n_units(&owner, table, &why), 20000000);
        at(&owner, table, 0);
        ck_assert(!order_table_has(table, 20000000));
        ck_assert_uint_eq(order_table_made(table)->n_units, 20000000);
        order_table_put(table); /* while it is being made */
        sampling_unref(sampling);
        stop(&owner, tables);
}
END_TEST

START_TEST(an_order_that_cannot_be_made_says_why_to_all_who_wait) {
        const double values[] = { 1, 2, NAN, 4 };
        struct sampling *sampling = sampling_of("weighted(column=w)", values, 4);
        struct order_spec spec = { .terms = { .n_samples = 4, .shuffle = true },
                                   .sampling = sampling,
                                   .batch_size = 1 };
        struct order_table *table, *other;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        struct why why = { 0 };
        uint64_t index;

        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        ck_assert_int_eq(order_table_get(tables, &spec, &other, NULL), 0);
        ck_assert_ptr_eq(table, other);
        sampling_unref(sampling); /* the tables have it */
        ck_assert_uint_eq(n_units(&owner, table, &why), DLP_UNKNOWN);
        ck_assert_ptr_nonnull(strstr(why.text, "weighted"));
        ck_assert_int_eq(order_table_at(other, 0, &index), ORDER_NOT_YET);
        ck_assert(order_table_has_failed(other, &why));
        order_table_put(table);
        order_table_put(other);
        stop(&owner, tables);
}
END_TEST

START_TEST(what_nobody_wants_any_more_is_not_made_to_its_end) {
        static const char *const TEXTS[] = { "random(replacement=true)", "weighted(column=w, n=50000000)",
                                             "random(n=50000000)" };
        const double values[] = { 1, 2, 3, 4 };
        struct order_table *table;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        uint64_t begin_ns = clock_now_ns();

        for (size_t i = 0; i < 3; i++) {
                struct sampling *sampling = sampling_of(TEXTS[i], values, i == 1 ? 4 : 0);
                struct order_spec spec = { .terms = { .n_samples = i == 1 ? 4 : 50000000, .shuffle = true },
                                           .sampling = sampling,
                                           .batch_size = 1 };

                atomic_store(&owner.limit_bytes, UINT64_MAX);
                ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
                order_table_put(table); /* before its thread has begun, perhaps */
                ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
                sampling_unref(sampling);
                if (i == 0)
                        at(&owner, table, 1);
                order_table_put(table);
        }
        stop(&owner, tables); /* waits for their threads */
        ck_assert_uint_lt(clock_now_ns() - begin_ns, 60000000000ull);
}
END_TEST

/* Two users. Of each it is counted how often the threads that make their orders went on. */
struct makers {
        struct order_user users[2];
        atomic_uint n_told[2], n_others; /* those of user 0 from the request of user 1 to its order's end */
        atomic_bool is_counting, has_ended;
        _Atomic uint64_t n_spent[2];
};

static size_t payer_of(void *payer) {
        return (size_t)(uintptr_t)payer - 1;
}

static void makers_told(void *userdata, void *payer, uint64_t epoch, uint64_t n_done, uint64_t n_total) {
        struct makers *makers = userdata;

        atomic_fetch_add(&makers->n_told[payer_of(payer)], 1);
        if (payer_of(payer) == 1 && n_done == n_total) {
                atomic_store(&makers->has_ended, true);
        } else if (payer_of(payer) == 0 && atomic_load(&makers->is_counting) && !atomic_load(&makers->has_ended)) {
                atomic_fetch_add(&makers->n_others, 1);
        }
}

static struct order_user *makers_user(void *userdata, void *payer) {
        struct makers *makers = userdata;

        return &makers->users[payer_of(payer)];
}

static void makers_spent(void *userdata, void *payer, uint64_t taken_ns) {
        struct makers *makers = userdata;

        atomic_fetch_add(&makers->n_spent[payer_of(payer)], taken_ns);
}

START_TEST(long_orders_and_the_columns_of_samplers_are_given_back_by_a_thread_that_nobody_waits_for) {
        struct order_spec spec = { .terms = { .n_samples = SWEEP_BYTES / 4, .shuffle = true } };
        uint64_t n = SWEEP_BYTES / sizeof(double);
        double *values = calloc(n, sizeof(*values));
        struct stuck_sweeper stuck;
        struct order_table *table;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        struct sampling *sampling = sampling_of("weighted(column=w)", values, n);
        struct why why;

        free(values);
        ck_assert_int_eq(sweeper_start(&why), 0);
        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        at(&owner, table, 10);
        sweeper_stick(&stuck);
        order_table_put(table);
        while (sweeper_n_waiting() < 2) /* the thread that makes it may be the last to leave it */
                sched_yield();
        sampling_unref(sampling);
        ck_assert_uint_eq(sweeper_n_waiting(), 3);
        ck_assert_uint_eq(atomic_load(&owner.n_bytes), SWEEP_BYTES);
        sweeper_go_on(&stuck);
        ck_assert_uint_eq(atomic_load(&owner.n_bytes), 0);
        sweeper_stop();
        stop(&owner, tables);
}
END_TEST

START_TEST(however_many_orders_one_user_has_made_another_users_order_has_every_second_turn) {
        struct sampling *sampling = sampling_of("random(replacement=true)", NULL, 0);
        struct makers makers = { .n_others = 0 };
        struct order_tables_options options = {
                .told = makers_told, .user = makers_user, .spent = makers_spent, .n_makers = 1, .userdata = &makers
        };
        struct order_table *tables_of[13];
        struct order_tables *tables;

        for (size_t i = 0; i < 2; i++)
                order_user_init(&makers.users[i]);
        ck_assert_int_eq(order_tables_new(&options, &tables), 0);
        for (size_t i = 0; i < 13; i++) {
                struct order_spec spec = { .terms = { .n_samples = 20000000, .seed = i, .shuffle = true },
                                           .payer = (void *)(uintptr_t)(i < 12 ? 1 : 2),
                                           .sampling = sampling,
                                           .batch_size = 1 };

                atomic_store(&makers.is_counting, i == 12);
                ck_assert_int_eq(order_table_get(tables, &spec, &tables_of[i], NULL), 0);
        }
        sampling_unref(sampling);
        while (!atomic_load(&makers.has_ended))
                usleep(1000);
        for (size_t i = 0; i < 13; i++)
                order_table_put(tables_of[i]);
        order_tables_free(tables);
        ck_assert_uint_gt(atomic_load(&makers.n_told[1]), 10);
        /* As often, if all turns take the same; without turns it is twelve times as often. */
        ck_assert_uint_lt(atomic_load(&makers.n_others), 4 * atomic_load(&makers.n_told[1]));
        ck_assert_uint_gt(atomic_load(&makers.n_spent[0]), 0);
        ck_assert_uint_gt(atomic_load(&makers.n_spent[1]), 0);
}
END_TEST

START_TEST(a_shuffle_does_not_wait_for_all_shuffles_of_another_user) {
        struct makers makers = { .n_others = 0 };
        struct order_tables_options options = {
                .told = makers_told, .user = makers_user, .spent = makers_spent, .userdata = &makers
        };
        struct order_table *tables_of[9];
        struct order_tables *tables;
        uint64_t index;

        for (size_t i = 0; i < 2; i++)
                order_user_init(&makers.users[i]);
        ck_assert_int_eq(order_tables_new(&options, &tables), 0);
        for (size_t i = 0; i < 9; i++) {
                struct order_spec spec = { .terms = { .n_samples = 10000000, .seed = i, .shuffle = true },
                                           .payer = (void *)(uintptr_t)(i < 8 ? 1 : 2) };

                atomic_store(&makers.is_counting, i == 8);
                ck_assert_int_eq(order_table_get(tables, &spec, &tables_of[i], NULL), 0);
        }
        while (!atomic_load(&makers.has_ended)) { /* all are waited for to their last position */
                for (size_t i = 0; i < 9; i++)
                        order_table_at(tables_of[i], 9999999, &index);
                usleep(200);
        }
        for (size_t i = 0; i < 9; i++)
                order_table_put(tables_of[i]);
        order_tables_free(tables);
        ck_assert_uint_lt(atomic_load(&makers.n_others), 4 * atomic_load(&makers.n_told[1]));
}
END_TEST

START_TEST(an_order_that_is_made_is_shared_within_its_epoch_alone) {
        struct sampling *sampling = sampling_of("random(replacement=true, n=30)", NULL, 0);
        struct order_spec spec = { .terms = { .n_samples = 10, .seed = 8, .epoch = 1, .shuffle = true },
                                   .sampling = sampling,
                                   .batch_size = 1 };
        struct order_table *first, *table;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        struct why why;

        ck_assert_int_eq(order_table_get(tables, &spec, &first, NULL), 0);
        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        ck_assert_ptr_eq(first, table);
        ck_assert_uint_eq(atomic_load(&owner.n_reserved), 1);
        order_table_put(table);
        ck_assert_uint_eq(n_units(&owner, first, &why), 30);
        for (uint64_t i = 0; i < 60; i++) /* after the last one comes the first */
                ck_assert_uint_eq(at(&owner, first, i), at(&owner, first, i % 30));
        spec.terms.epoch = 2;
        ck_assert_int_eq(order_table_get(tables, &spec, &table, NULL), 0);
        ck_assert_ptr_ne(first, table);
        order_table_put(table);

        spec.terms.epoch = 3; /* no memory: refused, and nothing is kept */
        atomic_store(&owner.limit_bytes, 0);
        ck_assert_int_eq(order_table_get(tables, &spec, &table, &why), -ENOMEM);
        order_table_put(first);
        sampling_unref(sampling);
        stop(&owner, tables);
}
END_TEST

/* Who waits for an order tries again when he is told: he would be told of his own try, and again, for ever. */
START_TEST(where_no_thread_can_be_started_an_order_is_refused_and_nobody_is_told_to_try_again) {
        struct sampling *sampling = sampling_of("random(replacement=true, n=30)", NULL, 0);
        struct order_spec spec = { .terms = { .n_samples = 10, .shuffle = true },
                                   .sampling = sampling,
                                   .batch_size = 1 };
        struct owner owner;
        struct order_tables *tables = start(&owner);
        struct order_table *table;
        pthread_attr_t before, huge;
        struct why why;

        ck_assert_int_eq(pthread_getattr_default_np(&before), 0);
        pthread_attr_init(&huge);
        ck_assert_int_eq(pthread_attr_setstacksize(&huge, (size_t)1 << 47), 0); /* more than there are addresses */
        ck_assert_int_eq(pthread_setattr_default_np(&huge), 0);
        ck_assert_int_eq(order_table_get(tables, &spec, &table, &why), -EAGAIN);
        ck_assert_int_eq(pthread_setattr_default_np(&before), 0);
        pthread_mutex_lock(&owner.mutex);
        ck_assert_uint_eq(owner.n_ready, 0);
        pthread_mutex_unlock(&owner.mutex);
        ck_assert_uint_eq(atomic_load(&owner.n_bytes), 0);

        ck_assert_int_eq(order_table_get(tables, &spec, &table, &why), 0);
        at(&owner, table, 0);
        order_table_put(table);
        pthread_attr_destroy(&huge);
        pthread_attr_destroy(&before);
        sampling_unref(sampling);
        stop(&owner, tables);
}
END_TEST

/* ---- many threads -------------------------------------------------------------------------------------------- */

#define N_THREADS 4
#ifdef __SANITIZE_THREAD__
#define N_EPOCHS 12
#else
#define N_EPOCHS 40
#endif
#define N_SAMPLES 30011u

struct reader {
        struct owner *owner;
        struct order_tables *tables;
        uint32_t rank;
        uint64_t sum; /* over all epochs, of (position + 1) * index */
};

/* A rank: takes its slice of each epoch and asks for the next one ahead. */
static void *read_epochs(void *argument) {
        struct reader *reader = argument;
        struct order_table *table, *next;

        if (order_table_get(reader->tables,
                            &(struct order_spec){ .terms = { .n_samples = N_SAMPLES, .shuffle = true } }, &table,
                            NULL) != 0)
                return argument;
        for (uint64_t epoch = 0; epoch < N_EPOCHS; epoch++) {
                struct order_spec spec = { .terms = { .n_samples = N_SAMPLES, .epoch = epoch + 1, .shuffle = true } };

                if (order_table_get(reader->tables, &spec, &next, NULL) != 0)
                        return argument;
                for (uint64_t p = reader->rank; p < N_SAMPLES; p += N_THREADS)
                        reader->sum += (p + 1) * at(reader->owner, table, p);
                order_table_put(table);
                table = next;
        }
        order_table_put(table);
        return NULL;
}

START_TEST(ranks_that_share_tables_all_see_the_same_orders) {
        struct reader readers[N_THREADS];
        pthread_t threads[N_THREADS];
        uint64_t sum = 0, expected = 0;
        struct owner owner;
        struct order_tables *tables = start(&owner);
        void *failed;

        for (uint32_t i = 0; i < N_THREADS; i++) {
                readers[i] = (struct reader){ .owner = &owner, .tables = tables, .rank = i };
                ck_assert_int_eq(pthread_create(&threads[i], NULL, read_epochs, &readers[i]), 0);
        }
        for (uint32_t i = 0; i < N_THREADS; i++) {
                pthread_join(threads[i], &failed);
                ck_assert_ptr_null(failed);
                sum += readers[i].sum;
        }
        for (uint64_t epoch = 0; epoch < N_EPOCHS; epoch++) {
                uint32_t *order = whole(N_SAMPLES, epoch, DLP_TORCH_2_7);

                for (uint64_t p = 0; p < N_SAMPLES; p++)
                        expected += (p + 1) * order[p];
                free(order);
        }
        ck_assert_uint_eq(sum, expected);
        stop(&owner, tables);
}
END_TEST

/* Tables that come and go while the thread works on them. */
static void *get_and_put(void *argument) {
        struct reader *reader = argument;

        for (unsigned i = 0; i < 10 * N_EPOCHS; i++) {
                struct order_spec spec = { .terms = {
                                                   .n_samples = 20000 + i % 3, .seed = i % 5, .shuffle = i % 7 != 0 } };
                struct order_table *table;

                if (order_table_get(reader->tables, &spec, &table, NULL) != 0)
                        return argument;
                if (i % 2)
                        at(reader->owner, table, i * 37);
                order_table_put(table);
        }
        return NULL;
}

START_TEST(tables_may_come_and_go_at_any_moment) {
        struct reader reader;
        pthread_t threads[N_THREADS];
        struct owner owner;
        void *failed;

        reader = (struct reader){ .owner = &owner, .tables = start(&owner) };
        for (int i = 0; i < N_THREADS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, get_and_put, &reader), 0);
        for (int i = 0; i < N_THREADS; i++) {
                pthread_join(threads[i], &failed);
                ck_assert_ptr_null(failed);
        }
        stop(&owner, reader.tables);
}
END_TEST

struct made_reader {
        struct reader reader;
        struct sampling *sampling;
};

static void *read_made(void *argument) {
        struct made_reader *made = argument;

        for (uint64_t epoch = 0; epoch < N_EPOCHS; epoch++) {
                struct order_spec spec = { .terms = { .n_samples = N_SAMPLES, .epoch = epoch, .shuffle = true },
                                           .sampling = made->sampling,
                                           .batch_size = 8 };
                struct order_table *table;
                struct why why;

                if (order_table_get(made->reader.tables, &spec, &table, NULL) != 0)
                        return argument;
                if (epoch % 3 > 0 && n_units(made->reader.owner, table, &why) != N_SAMPLES)
                        return argument;
                for (uint64_t p = made->reader.rank; epoch % 3 > 1 && p < N_SAMPLES; p += N_THREADS)
                        made->reader.sum += at(made->reader.owner, table, p) + 1;
                order_table_put(table); /* of each third epoch before it is made */
        }
        return NULL;
}

START_TEST(threads_share_orders_that_are_made_and_leave_them_at_any_moment) {
        struct sampling *sampling = sampling_of("random()", NULL, 0);
        struct made_reader readers[N_THREADS];
        pthread_t threads[N_THREADS];
        struct owner owner;
        struct order_tables *tables = start(&owner);
        uint64_t sum = 0;
        void *failed;

        for (uint32_t i = 0; i < N_THREADS; i++) {
                readers[i] = (struct made_reader){ { .owner = &owner, .tables = tables, .rank = i }, sampling };
                ck_assert_int_eq(pthread_create(&threads[i], NULL, read_made, &readers[i]), 0);
        }
        for (uint32_t i = 0; i < N_THREADS; i++) {
                pthread_join(threads[i], &failed);
                ck_assert_ptr_null(failed);
                sum += readers[i].reader.sum;
        }
        ck_assert_uint_eq(sum, N_EPOCHS / 3 * ((uint64_t)N_SAMPLES * (N_SAMPLES + 1) / 2));
        sampling_unref(sampling);
        stop(&owner, tables);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("order_table");
        TCase *tests = tcase_create("all");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(tests, 120);
        tcase_add_test(tests, a_table_is_the_order_of_seed_plus_epoch);
        tcase_add_test(tests, who_asks_for_the_same_order_gets_the_same_table);
        tcase_add_test(tests, a_sequential_order_takes_no_memory);
        tcase_add_test(tests, a_computed_order_is_there_at_once_and_takes_no_memory);
        tcase_add_test(tests, an_order_of_blocks_can_be_used_before_all_its_windows_are_found);
        tcase_add_test(tests, an_order_of_nothing_has_no_position);
        tcase_add_test(tests, the_first_elements_can_be_used_long_before_the_last);
        tcase_add_test(tests, a_table_that_is_waited_for_goes_before_one_made_ahead);
        tcase_add_test(tests, memory_is_asked_for_and_a_refusal_is_passed_on);
        tcase_add_test(tests, stopping_does_not_wait_for_a_table_to_be_done);
        tcase_add_test(tests, an_order_that_is_made_can_be_used_before_it_is_whole);
        tcase_add_test(tests, an_order_that_cannot_be_made_says_why_to_all_who_wait);
        tcase_add_test(tests, what_nobody_wants_any_more_is_not_made_to_its_end);
        tcase_add_test(tests, however_many_orders_one_user_has_made_another_users_order_has_every_second_turn);
        tcase_add_test(tests, a_shuffle_does_not_wait_for_all_shuffles_of_another_user);
        tcase_add_test(tests, long_orders_and_the_columns_of_samplers_are_given_back_by_a_thread_that_nobody_waits_for);
        tcase_add_test(tests, an_order_that_is_made_is_shared_within_its_epoch_alone);
        tcase_add_test(tests, where_no_thread_can_be_started_an_order_is_refused_and_nobody_is_told_to_try_again);
        tcase_add_test(tests, threads_share_orders_that_are_made_and_leave_them_at_any_moment);
        tcase_add_test(tests, ranks_that_share_tables_all_see_the_same_orders);
        tcase_add_test(tests, tables_may_come_and_go_at_any_moment);
        suite_add_tcase(suite, tests);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
