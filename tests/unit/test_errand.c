/* Errands: threads of one user that work beside the workers weigh no more the more they are, and their time is charged.
 */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/machine/cpus.h"
#include "daemon/base/work/errand.h"
#include "daemon/data/orders/source_column.h"
#include "daemon/data/source_type.h"
#include "proto/base/clock.h"
#include "tests/support/suite.h"

#define N_THREADS 12u

static struct fair_group payer;
static struct errands errands;
static pthread_barrier_t all_begun, all_looked;
static _Atomic int lowest, highest;

static void setup(void) {
        payer = (struct fair_group){ 0 };
        fair_group_init(&payer, NULL);
        errands = (struct errands){ .payer = &payer };
        atomic_store(&lowest, 100);
        atomic_store(&highest, -100);
}

static int own_nice(void) {
        return getpriority(PRIO_PROCESS, 0);
}

static uint32_t n_weigh(void) {
        struct cpus cpus;

        cpus_find(&cpus);
        return (cpus_n_threads(&cpus) + 1) / 2;
}

/* Uses the CPU for longer than two looks are apart. */
static void work(void) {
        uint64_t until_ns = clock_now_ns() + 20000000u;

        usleep(10000); /* so that the first look is one, however busy the machine is */
        do
                errand_look();
        while (clock_now_ns() < until_ns);
}

static void *run(void *userdata) {
        int nice;

        (void)userdata;
        errand_begin(&errands, NULL);
        pthread_barrier_wait(&all_begun);
        work();
        nice = own_nice();
        if (nice < atomic_load(&lowest))
                atomic_store(&lowest, nice);
        if (nice > atomic_load(&highest))
                atomic_store(&highest, nice);
        pthread_barrier_wait(&all_looked);
        errand_end();
        return NULL;
}

static void run_threads(uint32_t n) {
        pthread_t threads[N_THREADS];

        pthread_barrier_init(&all_begun, NULL, n);
        pthread_barrier_init(&all_looked, NULL, n);
        for (uint32_t i = 0; i < n; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, run, NULL), 0);
        for (uint32_t i = 0; i < n; i++)
                pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&all_looked);
        pthread_barrier_destroy(&all_begun);
}

START_TEST(however_many_threads_there_are_they_weigh_as_much_as_a_few) {
        ck_assert_int_eq(errand_nice(5, 1, 4), 5);
        ck_assert_int_eq(errand_nice(5, 4, 4), 5);
        for (uint32_t n_few = 1; n_few <= 64; n_few *= 2)
                for (uint32_t n = n_few; n <= 32 * n_few; n++) {
                        double each = pow(1.25, -errand_nice(0, n, n_few));

                        ck_assert_double_le(n * each, n_few + 1e-9);
                        ck_assert_double_ge(n * each, n_few / 1.26);
                }
        ck_assert_int_eq(errand_nice(15, 1000000, 1), ERRAND_NICE_MAX);
}
END_TEST

START_TEST(all_threads_of_a_user_have_the_nice_value_of_their_number) {
        int nice = own_nice() + 2 < ERRAND_NICE_MAX ? own_nice() + 2 : ERRAND_NICE_MAX;

        setup();
        errands_set_nice(nice);
        run_threads(N_THREADS);
        ck_assert_int_eq(atomic_load(&lowest), errand_nice(nice, N_THREADS, n_weigh()));
        ck_assert_int_eq(atomic_load(&highest), atomic_load(&lowest));
        ck_assert_uint_eq(atomic_load(&errands.n_threads), 0);
}
END_TEST

START_TEST(a_single_thread_has_the_nice_value_that_is_set) {
        int nice = own_nice() + 2 < ERRAND_NICE_MAX ? own_nice() + 2 : ERRAND_NICE_MAX;

        setup();
        errands_set_nice(nice);
        run_threads(1);
        ck_assert_int_eq(atomic_load(&highest), nice);
}
END_TEST

START_TEST(its_time_on_a_cpu_is_charged_to_the_user) {
        setup();
        errand_begin(&errands, NULL);
        errand_begin(NULL, NULL); /* a part of it, which says nothing of whom it is for */
        work();
        errand_end();
        ck_assert_ptr_eq(errand_joined(), &errands);
        errand_end();
        ck_assert_ptr_null(errand_joined());
        ck_assert_uint_gt(atomic_load(&payer.beside_ns), 0);
        ck_assert_int_eq(atomic_load(&payer.account.beside_ns), (int64_t)atomic_load(&payer.beside_ns));

        setup();
        work(); /* of nobody */
        ck_assert_uint_eq(atomic_load(&payer.beside_ns), 0);
}
END_TEST

/* ---- whoever asked has left ------------------------------------------------------------------------------------- */

#define N_SAMPLES 1000000u
#define LEAVES_AT 5000u

static _Atomic bool is_unwanted;
static uint64_t n_asked;

static bool length_of(const struct source *source, uint64_t sample, uint32_t field, uint64_t *ret_n_bytes) {
        (void)source;
        (void)field;
        if (sample == LEAVES_AT)
                atomic_store(&is_unwanted, true);
        n_asked++;
        *ret_n_bytes = 8;
        return true;
}

static void value_of(const struct source *source, uint64_t sample, uint32_t field, void *ret_value) {
        uint64_t n_bytes;

        length_of(source, sample, field, &n_bytes);
        memset(ret_value, 0, 8);
}

START_TEST(a_column_that_nobody_waits_for_any_more_is_not_read_to_its_end) {
        static const struct source_type TYPE = { .value_bytes = length_of, .value = value_of };
        struct source source = { .type = &TYPE, .n_samples = N_SAMPLES };
        uint64_t n_bytes, longest;
        struct dlp_column column;

        source.schema.n_fields = 1;
        source.schema.fields[0] = (struct schema_field){
                .name = "x", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64, .n_dims = (uint32_t)_i > 0, .shape = { -1 }
        };
        for (unsigned what = 0; what < 4; what++) {
                bool is_lengths = what == 2, is_short;
                int r = 0;

                n_asked = 0;
                atomic_store(&is_unwanted, false);
                errand_begin(&errands, &is_unwanted);
                ck_assert_int_eq(errand_look(), 0);
                if (what == 0)
                        r = source_column_bytes(&source, 0, false, &n_bytes);
                else if (what < 3)
                        r = source_column_read(&source, 0, is_lengths, &column);
                else
                        r = source_longest_together(&source, 0, 2, 8, &longest);
                is_short = n_asked < 2 * N_SAMPLES / 100;
                if (n_asked > 0 || what > 0)
                        ck_assert_msg(is_short && (r == -ECANCELED || what == 3), "%u: %d after %lu", what, r,
                                      (unsigned long)n_asked);
                errand_end();
                ck_assert_int_eq(errand_look(), 0);
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "errand", however_many_threads_there_are_they_weigh_as_much_as_a_few, 0 },
                { "errand", all_threads_of_a_user_have_the_nice_value_of_their_number, 0 },
                { "errand", a_single_thread_has_the_nice_value_that_is_set, 0 },
                { "errand", its_time_on_a_cpu_is_charged_to_the_user, 0 },
                { "errand", a_column_that_nobody_waits_for_any_more_is_not_read_to_its_end, 2 },
        };

        return suite_run("errand", rows, sizeof(rows) / sizeof(rows[0]));
}
