/* numpy.random.default_rng() and its permutation(), with the values of numpy 2.4.6. */
#include "proto/order/numpy_generator.h"

#include <errno.h>

#include "tests/support/maker.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

START_TEST(draws_are_those_of_default_rng) {
        static const struct {
                uint64_t seed, draws[2];
        } ROWS[] = {
                { 0, { 0xa30febcfd9c2825f, 0x4510bdf882d9d721 } },
                { 1, { 0x8306bdf37922e4ff, 0xf35196bbc152a866 } },
                { 42, { 0xc621fbcd16d92688, 0x705a5661a791ffc1 } },
                { 4294967295, { 0x407f5fa930d8fd9f, 0x3814b22eb9684802 } },
                { 4294967296, { 0xe3c5ebe285ac1625, 0x8ea09968fe31dbcc } },
                { 9223372036854788153u, { 0x7e82ff06e5a17e1c, 0x9375de147f211adb } },
                { 18446744073709551615u, { 0xae163a7a8c47568f, 0xd86659f5f3382359 } },
        };

        for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
                struct dlp_numpy_generator generator;

                dlp_numpy_generator_seed(&generator, ROWS[i].seed);
                for (int k = 0; k < 2; k++)
                        ck_assert_uint_eq(dlp_numpy_generator_u64(&generator), ROWS[i].draws[k]);
                dlp_numpy_generator_seed(&generator, ROWS[i].seed);
                ck_assert_uint_eq(dlp_numpy_generator_u32(&generator), (uint32_t)ROWS[i].draws[0]);
                ck_assert_uint_eq(dlp_numpy_generator_u32(&generator), ROWS[i].draws[0] >> 32);
                ck_assert_uint_eq(dlp_numpy_generator_u32(&generator), (uint32_t)ROWS[i].draws[1]);
        }
}
END_TEST

START_TEST(a_number_below_a_limit_is_never_above_it) {
        struct dlp_numpy_generator generator;

        dlp_numpy_generator_seed(&generator, 3);
        ck_assert_uint_eq(dlp_numpy_generator_at_most(&generator, 0), 0);
        for (uint64_t most = 1; most < 1ull << 40; most = most * 3 + 1)
                for (int i = 0; i < 20; i++)
                        ck_assert(dlp_numpy_generator_at_most(&generator, most) <= most);
}
END_TEST

START_TEST(numpy_shuffle_is_the_permutation_of_default_rng_in_each_epoch) {
        static const struct {
                const char *text;
                uint64_t n, first, fnv;
        } ROWS[] = {
                { "numpy_shuffle(seed=0)", 1, 0, 0xa8c7f832281a39c5 },
                { "numpy_shuffle(seed=0)", 2, 0, 0x692558b056101a44 },
                { "numpy_shuffle(seed=42)", 10, 5, 0x2cb8aa3365f06124 },
                { "numpy_shuffle(seed=7)", 1000, 816, 0x8d3499080b5f4a01 },
                { "numpy_shuffle(seed=4294967296)", 4097, 1061, 0x3cf733509c824385 },
                { "numpy_shuffle(seed=18446744073709551615)", 100000, 80760, 0x7933003e88ce28f1 },
                { "numpy_shuffle(seed=8589934593)", 65537, 3834, 0x9606d2518a31c1e0 },
        };
        static struct maker maker;

        for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
                uint64_t hash = FNV1A_BEGIN;

                maker_init(&maker, ROWS[i].n);
                maker.terms.base.epoch = i; /* counts for nothing */
                ck_assert_int_eq(maker_order(&maker, ROWS[i].text), 0);
                ck_assert_uint_eq(maker.order.n_positions, ROWS[i].n);
                ck_assert_uint_eq(dlp_order_sample(&maker.order, 0), ROWS[i].first);
                for (uint64_t k = 0; k < ROWS[i].n; k++) {
                        uint64_t sample = dlp_order_sample(&maker.order, k);

                        hash = fnv1a_more(hash, &sample, sizeof(sample));
                }
                ck_assert_uint_eq(hash, ROWS[i].fnv);
                maker_fini(&maker);
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "draws", draws_are_those_of_default_rng },
                { "draws", a_number_below_a_limit_is_never_above_it },
                { "permutations", numpy_shuffle_is_the_permutation_of_default_rng_in_each_epoch },
        };

        return suite_run("numpy_generator", rows, sizeof(rows) / sizeof(rows[0]));
}
